"""Which labels are probably wrong, what they should be, and how sure that is."""

from ._audit import audit_table
from ._detector import LabelErrorDetector
from ._duplicates import find_duplicates
from ._labels import label_spellings
from ._mend import (
    Correction,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
)
from ._private import LabelCounts, count_improbable_labels
from ._queue import ReviewQueue, head_to_accept
from ._read import Reading, read_table
from ._report import AuditReport
from ._table import table_to_numbers
from ._verdicts import count_errors, draw_rows, fit_curve, list_qvalues
from .checks import Finding, check_table

__all__ = [
    "AuditReport",
    "Correction",
    "Finding",
    "LabelCounts",
    "LabelErrorDetector",
    "Reading",
    "ReviewQueue",
    "audit_table",
    "check_table",
    "corrections_of",
    "corrections_to_csv",
    "count_errors",
    "count_improbable_labels",
    "draw_rows",
    "find_duplicates",
    "fit_curve",
    "fix_table",
    "head_to_accept",
    "label_spellings",
    "list_qvalues",
    "read_corrections",
    "read_table",
    "table_to_numbers",
]
