"""Detection of bad parties by private values, compared with the limit of the
guarantee."""

from numbers import Integral

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state, column_or_1d, indexable

from .._utils.checks import check_groups, check_numbers
from .._utils.plotting import BLUE, GREY, RED, draw_band, open_axes
from .._utils.sklearn import HasMethods, Interval, safe_indexing, validate_params
from ._scores import noisy_label_auc

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
    """AUROC of detecting bad parties by their values, by epsilon and size of the
    parties.

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
        If wrong does not have one entry per group, or a party has fewer rows than one
        of several sizes.

    See Also
    --------
    DetectionDisplay : Plot of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import GradientSemivalueValuer
    >>> from skvalue.inspection import detection_curve
    >>> rng = np.random.default_rng(0)
    >>> X, wrong = rng.normal(size=(600, 2)), np.arange(20) < 6
    >>> y, parties = (X[:, 0] > 0).astype(int), np.arange(500) % 20
    >>> curves = detection_curve(
    ...     GradientSemivalueValuer("logistic", unit="example", learning_rate=0.5,
    ...                             n_permutations=20, burn_in=0.5),
    ...     X[:500], np.where(wrong[parties], 1 - y[:500], y[:500]), groups=parties, wrong=wrong,
    ...     X_val=X[500:], y_val=y[500:], epsilons=[1000.0], n_repeats=1, random_state=0,
    ... )
    >>> curves.sizes.tolist(), curves.clean_scores.ravel().tolist()
    ([25], [1.0])
    >>> bool(curves.scores[0, 0, 0] > 0.9)
    True
    """
    X, y = indexable(X, y)
    names, codes = check_groups(groups, len(y))
    rng, wrong, counts = (
        check_random_state(random_state),
        column_or_1d(wrong),
        np.bincount(codes),
    )
    if len(wrong) != len(names):
        raise ValueError(
            f"wrong must have one entry per group ({len(names)}), in their sorted order. Got "
            f"{len(wrong)}."
        )
    epsilons = check_numbers(epsilons, "epsilons")
    sizes = check_numbers([counts.max()] if sizes is None else sizes, "sizes").astype(
        np.int64
    )
    if len(sizes) > 1 and not 1 <= sizes.min() <= sizes.max() <= counts.min():
        raise ValueError(
            f"sizes must be between 1 and the rows of the smallest group ({counts.min()}). Got "
            f"{sizes.min()} to {sizes.max()}."
        )
    scores = np.empty((len(sizes), len(epsilons) + 1, n_repeats))
    limits = np.empty((len(sizes), len(epsilons)))
    for at, size in enumerate(sizes):
        first = [np.flatnonzero(codes == group)[:size] for group in range(len(names))]
        rows = np.sort(np.concatenate(first))
        data = safe_indexing(X, rows), safe_indexing(y, rows)
        for which, epsilon in enumerate([*epsilons, None]):
            for repeat in range(n_repeats):
                seed = int(rng.randint(np.iinfo(np.int32).max))
                fitted = clone(valuer).set_params(epsilon=epsilon, random_state=seed)
                fitted.fit(*data, groups=codes[rows], X_val=X_val, y_val=y_val)
                scores[at, which, repeat] = noisy_label_auc(fitted.values_, wrong)
            if epsilon is not None:
                # Replacing one unit is no easier to detect than N(0, 1) to tell from
                # N(mu, 1); replacing all r rows of a party, than from N(r mu, 1).
                per_row = getattr(fitted, "unit", "party") == "example"
                n_replaced = min(size, counts.max()) if per_row else 1
                ceiling = fitted.privacy_.detection_ceiling
                limits[at, which] = ndtr(n_replaced * ndtri(ceiling))
    return Bunch(
        epsilons=epsilons,
        sizes=sizes,
        scores=scores[:, :-1],
        limits=limits,
        clean_scores=scores[:, -1],
    )


class DetectionDisplay:
    """AUROC of detecting bad parties, by size of the parties or epsilon, with its
    limit.

    It is drawn against epsilon if there is one size, and against the size otherwise.

    If the privacy guarantee holds, no method can detect them better than the limit.

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
    ...     sizes=np.array([8, 32]), epsilons=np.array([1.0]), scores=np.full((2, 1, 3), 0.7),
    ...     limits=np.array([[0.9], [1.0]]), clean_scores=np.ones((2, 3)),
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
        by_size = len(first.sizes) > 1
        if by_size and len(first.epsilons) > 1:
            raise ValueError(
                f"curves must have one size or one epsilon. Got {len(first.sizes)} and "
                f"{len(first.epsilons)}."
            )
        ax = open_axes(ax, type(self).__name__)
        x, label = (
            (first.sizes, "rows of a party") if by_size else (first.epsilons, "epsilon")
        )
        one = (slice(None), 0) if by_size else 0
        self.lines_ = [
            draw_band(ax, x, curve.scores[one], color=color, marker="o", label=name)[0]
            for (name, curve), color in zip(curves.items(), _COLORS * 9)
        ]
        limits = first.limits[one]
        dark = {"color": "0.2", "linewidth": 1.2}
        (self.limit_line_,) = ax.plot(
            x, limits, "--", label="limit of any method", **dark
        )
        clean = np.broadcast_to(first.clean_scores.mean(axis=-1), len(x))
        (self.clean_line_,) = ax.plot(x, clean, label="no noise, no privacy", **dark)
        ax.set(xscale="log", xlabel=label, ylabel="AUROC of finding bad parties")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
