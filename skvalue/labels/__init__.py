"""Which labels are probably wrong, what they should be, and how sure that is."""

from ._detector import LabelErrorDetector
from ._duplicates import find_duplicates, match_rows
from ._model_skill import model_skill, predict_held_out
from ._private_counts import LabelCounts, count_improbable_labels
from ._queue import ReviewQueue, acceptable_prefix
from ._report_check import LabelErrorCheck
from ._spellings import label_spellings
from ._table import table_to_numbers
from ._verdicts import (
    check_verdicts,
    count_errors,
    draw_rows,
    fit_curve,
    list_qvalues,
    make_statement,
)

__all__ = [
    "LabelCounts",
    "LabelErrorCheck",
    "LabelErrorDetector",
    "ReviewQueue",
    "acceptable_prefix",
    "check_verdicts",
    "count_errors",
    "count_improbable_labels",
    "draw_rows",
    "find_duplicates",
    "fit_curve",
    "label_spellings",
    "list_qvalues",
    "make_statement",
    "match_rows",
    "model_skill",
    "predict_held_out",
    "table_to_numbers",
]
