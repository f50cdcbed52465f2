"""What all valuers of rows share: validation, the steps of a fit, and its record.

The names of `__all__` are for authors of valuers; the others are used inside the
package.
"""

from .._utils.parallel import tiles
from .._utils.sklearn import Interval, StrOptions
from ._capabilities import Capabilities, follow_input_tags, takes_validation_set
from ._containers import is_numeric, is_plain, n_rows_of, rows_at, stack_rows
from ._hashes import hash_rows, row_hashes
from ._in_sample import BaseInSampleValuer
from ._input import make_problem
from ._points import mean_over_points
from ._privacy import PRIVACY_CONSTRAINTS, warn_of_guarantee
from ._problem import Points, Problem, Split
from ._record import Result
from ._rows import check_rows
from ._run import Run
from ._signal import warn_if_noise_exceeds
from ._splits import refuse_unseen_labels
from ._targets import encode_later, warn_of_numbers
from ._valuer import BaseScoringValuer, BaseValuer
from .valuer_checks import check_valuer

__all__ = [
    "PRIVACY_CONSTRAINTS",
    "BaseInSampleValuer",
    "BaseScoringValuer",
    "BaseValuer",
    "Capabilities",
    "Interval",
    "Points",
    "Problem",
    "Result",
    "Run",
    "Split",
    "StrOptions",
    "check_rows",
    "check_valuer",
    "make_problem",
    "mean_over_points",
    "refuse_unseen_labels",
    "rows_at",
    "tiles",
]
