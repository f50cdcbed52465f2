"""What all valuers of rows have in common: validation, the steps of a fit, and its
record."""

from ._containers import (
    follow_input_tags,
    is_numeric,
    is_plain,
    n_rows_of,
    rows_at,
    stack_rows,
)
from ._hashes import hash_rows, row_hashes
from ._in_sample import BaseInSampleValuer
from ._input import make_problem
from ._points import mean_over_points
from ._problem import Capabilities, Points, Problem, Split, takes_validation_set
from ._record import Result
from ._release import PRIVACY_CONSTRAINTS, warn_of_guarantee
from ._rows import check_rows
from ._run import Run
from ._splits import refuse_unseen_labels
from ._targets import codes_or_other, encode_later, warn_of_numbers
from ._valuer import BaseScoringValuer, BaseValuer
