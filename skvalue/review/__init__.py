"""Which labels are probably wrong, what they should be, and how sure that is."""

from ._audit import audit_table
from ._detector import LabelErrorDetector
from ._duplicates import duplicate_groups
from ._report import AuditReport
from ._table import table_to_numbers
from ._verdicts import count_errors, draw_rows, fit_curve, list_qvalues

__all__ = [
    "AuditReport",
    "LabelErrorDetector",
    "audit_table",
    "count_errors",
    "draw_rows",
    "duplicate_groups",
    "fit_curve",
    "list_qvalues",
    "table_to_numbers",
]
