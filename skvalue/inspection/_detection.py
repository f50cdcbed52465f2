"""Detection of bad parties by private values, compared with the limit of the guarantee."""

from numbers import Integral

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import Bunch, check_array, check_random_state, column_or_1d, indexable

from .._utils.sklearn import HasMethods, Interval, safe_indexing, validate_params
from ._scores import noisy_label_auc

_COUNT = Interval(Integral, 1, None, closed="left")


def detection_limit(report, n_replaced=1):
    """Largest AUROC of any detector of parties in which some units were replaced.

    Under mu-GDP, detecting that one unit was replaced is no easier than telling N(0, 1) from
    N(mu, 1); if r units of a party were replaced, no easier than telling N(0, 1) from N(r mu, 1).

    Parameters
    ----------
    report : PrivacyReport
        Report of a fit with Gaussian noise.
    n_replaced : int, default=1
        Number of units replaced in a party: if the unit is "example" and all labels of a party are
        flipped, its number of rows.

    Returns
    -------
    auroc : float
        Upper bound of the AUROC.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> [round(detection_limit(SimpleNamespace(detection_ceiling=0.583), r), 3) for r in (1, 4)]
    [0.583, 0.799]
    """
    return float(ndtr(n_replaced * ndtri(report.detection_ceiling)))


@validate_params(
    {
        "valuer": [HasMethods(["fit", "set_params"])],
        "groups": ["array-like"],
        "wrong": ["array-like"],
        "epsilons": ["array-like"],
        "sizes": ["array-like", None],
        "n_repeats": [_COUNT],
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
    """AUROC of detecting bad parties by their values, by epsilon and size of the parties.

    The limit that the privacy guarantee sets for any detector and the AUROC without noise are
    returned as well.

    Parameters
    ----------
    valuer : estimator
        A private valuer with the parameters epsilon, random_state and, possibly, unit; it is
        cloned.
    X : array-like of shape (n_samples, ...)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels of the training rows.
    groups : array-like of shape (n_samples,)
        Party of every row; with the row index, every row is a party.
    wrong : array-like of bool of shape (n_groups,)
        True for bad parties, in the sorted order of the groups. The limit assumes that all rows of
        a bad party are wrong.
    X_val, y_val : array-likes
        Validation points.
    epsilons : array-like, default=(0.3, 1.0, 3.0)
        Values of epsilon to fit with.
    sizes : array-like of int, default=None
        Numbers of rows per party; the first rows of each are used. None means all rows, and the
        reported size is that of the largest party.
    n_repeats : int, default=3
        Number of fits per size and epsilon.
    random_state : int, RandomState instance or None, default=None
        Seeds the fits, but not the privacy noise.

    Returns
    -------
    curves : Bunch
        ``epsilons``; ``sizes``; ``scores`` of shape (n_sizes, n_epsilons, n_repeats); ``limits`` of
        shape (n_sizes, n_epsilons); ``clean_scores``, which are without noise, of shape (n_sizes,
        n_repeats).

    Raises
    ------
    ValueError
        If wrong does not have one entry per group, or a party has fewer rows than one of several
        sizes.

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
    X, y, groups = indexable(X, y, column_or_1d(groups))
    rng = check_random_state(random_state)
    wrong = column_or_1d(wrong)
    names, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(wrong) != len(names):
        raise ValueError(
            f"wrong must have one entry per group ({len(names)}), in their sorted order. Got "
            f"{len(wrong)}."
        )
    epsilons = column_or_1d(check_array(epsilons, ensure_2d=False, dtype=np.float64))
    sizes = [counts.max()] if sizes is None else sizes
    sizes = column_or_1d(check_array(sizes, ensure_2d=False, dtype=np.int64))
    if len(sizes) > 1 and not 1 <= sizes.min() <= sizes.max() <= counts.min():
        raise ValueError(
            f"sizes must be between 1 and the rows of the smallest group ({counts.min()}). Got "
            f"{sizes.min()} to {sizes.max()}."
        )
    order = np.argsort(codes, kind="stable")
    place = np.empty(len(codes), dtype=np.int64)  # position of every row in its group
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.empty((len(sizes), len(epsilons) + 1, n_repeats))
    limits = np.empty((len(sizes), len(epsilons)))
    for at, size in enumerate(sizes):
        rows = np.flatnonzero(place < size)
        data = safe_indexing(X, rows), safe_indexing(y, rows)
        for which, epsilon in enumerate([*epsilons, None]):
            for repeat in range(n_repeats):
                seed = int(rng.randint(np.iinfo(np.int32).max))
                fitted = clone(valuer).set_params(epsilon=epsilon, random_state=seed)
                fitted.fit(*data, groups=codes[rows], X_val=X_val, y_val=y_val)
                scores[at, which, repeat] = noisy_label_auc(fitted.values_, wrong)
            if epsilon is not None:
                per_row = getattr(fitted, "unit", "party") == "example"
                n_replaced = min(size, counts.max()) if per_row else 1
                limits[at, which] = detection_limit(fitted.privacy_, n_replaced)
    return Bunch(
        epsilons=epsilons,
        sizes=sizes,
        scores=scores[:, :-1],
        limits=limits,
        clean_scores=scores[:, -1],
    )
