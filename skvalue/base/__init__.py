"""What all valuers of rows have in common: validation, the steps of a fit, and its record."""

from ._containers import (
    follow_input_tags,
    is_numeric,
    is_plain,
    n_rows_of,
    row_hashes,
    rows_at,
    stack_rows,
)
from ._in_sample import BaseInSampleValuer
from ._labels import codes_or_other, public_classes
from ._points import Part, mean_over_splits
from ._problem import Points, Problem, Split, Takes, make_problem, refuse_unseen_labels
from ._record import Fitted, Result
from ._release import EXACT, PRIVACY_CONSTRAINTS, Release, warn_of_guarantee
from ._rows import check_rows
from ._seen_rows import hash_rows
from ._valuer import BaseScoringValuer, BaseValuer
