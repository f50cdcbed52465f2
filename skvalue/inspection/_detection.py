"""Detection of bad parties by private values, and the limit of the guarantee."""

from itertools import cycle
from numbers import Integral

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state, indexable

from .._utils.checks import check_groups, check_numbers
from .._utils.plotting import BLUE, GREY, RED, draw_band, open_axes
from .._utils.sklearn import HasMethods, Interval, safe_indexing, validate_params
from ._scores import check_mask, noisy_label_auc

_COLORS = (BLUE, RED, "#edae49", GREY, "#00798c")


@validate_params(
    {
        "valuer": [HasMethods(["fit", "set_params"])],
        "groups": ["array-like"],
        "wrong": ["array-like"],
        "epsilons": ["array-like"],
        "sizes": ["array-like", None],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def detection_curve(
    valuer,
    X,
    y,
    *,
    groups,
    wrong,
    X_val,
    y_val,
    epsilons=(0.3, 1.0, 3.0),
    sizes=None,
    n_repeats=3,
    random_state=None,
):
    """AUROC of detecting bad parties by their values, by epsilon and size of a party.

    The limit that the privacy guarantee sets for any detector and the AUROC without
    noise are returned as well. The limit is that of Gaussian noise: under mu-GDP,
    detecting that r rows of a party were replaced is no easier than telling N(0, 1)
    from N(r mu, 1), with r = 1 if the unit of privacy is the party.

    Parameters
    ----------
    valuer : estimator
        A private valuer with the parameters epsilon, random_state and, possibly, unit;
        it is cloned.
    X : array-like of shape (n_samples, ...)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels of the training rows.
    groups : array-like of shape (n_samples,)
        Party of every row; with the row index, every row is a party.
    wrong : array-like of bool of shape (n_groups,)
        True for bad parties, in the sorted order of the groups. The limit assumes that
        all rows of a bad party are wrong.
    X_val, y_val : array-likes
        Validation points.
    epsilons : array-like, default=(0.3, 1.0, 3.0)
        Values of epsilon to fit with.
    sizes : array-like of int, default=None
        Numbers of rows per party; the first rows of each are used. None means all rows,
        and the reported size is that of the largest party.
    n_repeats : int, default=3
        Number of fits per size and epsilon.
    random_state : int, RandomState instance or None, default=None
        Seeds the fits, but not the privacy noise.

    Returns
    -------
    curves : Bunch
        ``epsilons``; ``sizes``; ``scores`` of shape (n_sizes, n_epsilons, n_repeats);
        ``limits`` of shape (n_sizes, n_epsilons); ``clean_scores``, which are without
        noise, of shape (n_sizes, n_repeats).

    Raises
    ------
    ValueError
        If wrong does not have one entry per group, or entries of one kind, sizes are
        not whole numbers, or a party has fewer rows than one of several sizes.

    See Also
    --------
    DetectionDisplay : Plot of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import GradientSemivalueValuer
    >>> from skvalue.inspection import detection_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> parties = np.arange(500) % 20
    >>> wrong = np.arange(20) < 6
    >>> valuer = GradientSemivalueValuer(
    ...     "logistic",
    ...     unit="example",
    ...     learning_rate=0.5,
    ...     n_permutations=20,
    ...     burn_in=0.5,
    ... )
    >>> curves = detection_curve(
    ...     valuer,
    ...     X[:500],
    ...     np.where(wrong[parties], 1 - y[:500], y[:500]),
    ...     groups=parties,
    ...     wrong=wrong,
    ...     X_val=X[500:],
    ...     y_val=y[500:],
    ...     epsilons=[1000.0],
    ...     n_repeats=1,
    ...     random_state=0,
    ... )
    >>> curves.sizes.tolist(), curves.clean_scores.ravel().tolist()
    ([25], [1.0])
    >>> bool(curves.scores[0, 0, 0] > 0.9)
    True
    """
    X, y = indexable(X, y)
    group_names, codes = check_groups(groups, len(y))
    n_groups = len(group_names)
    rng = check_random_state(random_state)
    wrong = check_mask(wrong, "wrong", n_groups, unit="group")
    epsilons = check_numbers(epsilons, "epsilons")
    group_sizes = np.bincount(codes)
    sizes = _check_sizes(sizes, group_sizes)

    # The last column of the scores is that without noise.
    scores = np.empty((len(sizes), len(epsilons) + 1, n_repeats))
    limits = np.empty((len(sizes), len(epsilons)))
    for i, size in enumerate(sizes):
        # The first rows of every group.
        rows_by_group = [np.flatnonzero(codes == k)[:size] for k in range(n_groups)]
        rows = np.sort(np.concatenate(rows_by_group))
        X_rows = safe_indexing(X, rows)
        y_rows = safe_indexing(y, rows)
        for j, epsilon in enumerate([*epsilons, None]):
            # The limit is the same for all fits with one epsilon.
            for repeat in range(n_repeats):
                seed = int(rng.randint(np.iinfo(np.int32).max))
                fitted = clone(valuer).set_params(epsilon=epsilon, random_state=seed)
                fitted.fit(X_rows, y_rows, groups=codes[rows], X_val=X_val, y_val=y_val)
                scores[i, j, repeat] = noisy_label_auc(fitted.values_, wrong)
            if epsilon is not None:
                limits[i, j] = _detection_limit(fitted, min(size, group_sizes.max()))
    return Bunch(
        epsilons=epsilons,
        sizes=sizes,
        scores=scores[:, :-1],
        limits=limits,
        clean_scores=scores[:, -1],
    )


def _check_sizes(sizes, group_sizes):
    """Numbers of rows per party; several must be sizes that every party has."""
    if sizes is None:
        sizes = [group_sizes.max()]
    sizes = check_numbers(sizes, "sizes")
    if (sizes < 1).any() or (sizes != np.floor(sizes)).any():
        raise ValueError(
            "sizes must be whole numbers of rows, at least 1. Got "
            f"{np.asarray(sizes).tolist()}."
        )
    sizes = sizes.astype(np.int64)
    if len(sizes) > 1 and not 1 <= sizes.min() <= sizes.max() <= group_sizes.min():
        raise ValueError(
            "sizes must be between 1 and the rows of the smallest group "
            f"({group_sizes.min()}). Got {sizes.min()} to {sizes.max()}."
        )
    return sizes


def _detection_limit(fitted, n_rows):
    """Largest AUROC of detecting a bad party of some rows, by the guarantee of a fit.

    Replacing one unit is no easier to detect than N(0, 1) to tell from N(mu, 1);
    replacing all r rows of a party, than from N(r mu, 1).
    """
    is_per_row = getattr(fitted, "unit", "party") == "example"
    n_replaced = n_rows if is_per_row else 1
    return ndtr(n_replaced * ndtri(fitted.privacy_.detection_ceiling))


class DetectionDisplay:
    """AUROC of detecting bad parties, by epsilon or size of a party, with its limit.

    It is drawn against epsilon if there is one size, and against the size otherwise. If
    the privacy guarantee holds, no method can detect them better than the limit.

    Parameters
    ----------
    curves : Bunch or dict of str to Bunch
        Results of `detection_curve`. Several, by name, must have the same sizes and
        epsilons.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Means over repeats, one line per curve.
    limit_line_ : matplotlib Line2D
        Line of the limit.
    clean_line_ : matplotlib Line2D
        Line of the AUROC without noise, of the first curve.

    See Also
    --------
    detection_curve : Compute the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import DetectionDisplay
    >>> curves = Bunch(
    ...     sizes=np.array([8, 32]),
    ...     epsilons=np.array([1.0]),
    ...     scores=np.full((2, 1, 3), 0.7),
    ...     limits=np.array([[0.9], [1.0]]),
    ...     clean_scores=np.ones((2, 3)),
    ... )
    >>> display = DetectionDisplay(curves).plot()
    >>> display.limit_line_.get_ydata().tolist()
    [0.9, 1.0]
    """

    def __init__(self, curves):
        self.curves = curves

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : DetectionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several sizes and several epsilons.
        """
        curves = self.curves
        if hasattr(curves, "scores"):
            curves = {"with noise": curves}
        first = next(iter(curves.values()))
        is_by_size = len(first.sizes) > 1
        if is_by_size and len(first.epsilons) > 1:
            raise ValueError(
                f"curves must have one size or one epsilon. Got {len(first.sizes)} and "
                f"{len(first.epsilons)}."
            )

        # Scores and limits have one line per size and one column per epsilon.
        if is_by_size:
            x = first.sizes
            xlabel = "rows of a party"
            index = (slice(None), 0)
        else:
            x = first.epsilons
            xlabel = "epsilon"
            index = 0

        ax = open_axes(ax, type(self).__name__)
        self.lines_ = []
        for (name, curve), color in zip(curves.items(), cycle(_COLORS)):
            scores = curve.scores[index]
            line, _ = draw_band(ax, x, scores, color=color, marker="o", label=name)
            self.lines_.append(line)

        style = {"color": "0.2", "linewidth": 1.2}
        limits = first.limits[index]
        (self.limit_line_,) = ax.plot(
            x, limits, "--", label="limit of any method", **style
        )
        clean_scores = np.broadcast_to(first.clean_scores.mean(axis=-1), len(x))
        (self.clean_line_,) = ax.plot(
            x, clean_scores, label="no noise, no privacy", **style
        )

        ax.set(xscale="log", xlabel=xlabel, ylabel="AUROC of finding bad parties")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
        ax.legend(frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
