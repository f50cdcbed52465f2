"""What a valuer supports."""

from dataclasses import asdict, dataclass

from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter


@dataclass(frozen=True)
class Capabilities:
    """What a valuer supports: its class attribute, or property, ``_capabilities``.

    Parameters
    ----------
    regression : bool, default=False
        Whether y may hold targets, and not only classes.
    task : {"auto", "classification", "regression"}, default="auto"
        The task that the user, or the model, requires.
    neighbors : bool, default=False
        Whether the method plays the games of neighbours: X may be sparse or in a file
        (`skvalue.neighbors.Rows`), validation points may have labels that no row has,
        and one game, less each point itself, replaces the n of leave-one-out.
    pairwise : bool, default=False
        Whether X holds the distances between the rows.
    allow_nd : bool, default=False
        Whether X may have more than two dimensions.
    any_rows : bool, default=False
        Whether X is left to an estimator that is trained on some of the rows.
    names : bool, default=True
        Whether frames of numbers stay frames, with column names; of `any_rows` alone.
    products : bool, default=False
        Whether X is multiplied, so that its numbers must not be too large.
    squares : bool, default=True
        Whether targets are squared, so that they must not be too large.
    points : bool, default=True
        Whether there are validation points, passed or held out.
    means : bool, default=True
        Whether the utility is a mean over validation points, so that new points only
        add terms.
    on_themselves : bool, default=False
        Whether cv=None evaluates each row on itself, and does not hold out rows.
    values_are_public : bool, default=False
        Whether the values of a private fit are published.
    protects_groups : bool, default=False
        Whether a private fit protects groups, if there are any, and not rows.
    fit_transform_error : str, default=""
        Why `fit_transform` is refused with epsilon; empty where it is not.

    Examples
    --------
    >>> from skvalue.base import Capabilities
    >>> Capabilities(regression=True).squares
    True
    """

    regression: bool = False
    task: str = "auto"
    neighbors: bool = False
    pairwise: bool = False
    allow_nd: bool = False
    any_rows: bool = False
    names: bool = True
    products: bool = False
    squares: bool = True
    points: bool = True
    means: bool = True
    on_themselves: bool = False
    values_are_public: bool = False
    protects_groups: bool = False
    fit_transform_error: str = ""


def takes_validation_set(valuer):
    """Whether `fit` of a valuer takes validation points."""
    capabilities = getattr(valuer, "_capabilities", Capabilities())
    return has_fit_parameter(valuer, "X_val") and capabilities.points


def follow_input_tags(tags, estimator):
    """Tags of a valuer that leaves X to an estimator, which allow what it allows."""
    for name, value in asdict(get_tags(estimator).input_tags).items():
        # Rows are indexed alone: a matrix of distances or a dict is not.
        if name not in ("pairwise", "dict"):
            setattr(tags.input_tags, name, value)
    return tags
