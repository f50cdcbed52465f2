"""What noise on gradients does: to values, to gradients, and to finding bad parties."""

from numbers import Integral, Real

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import Bunch, check_array, check_random_state, column_or_1d, indexable

from .._utils.sklearn import HasMethods, Interval, safe_indexing, validate_params
from ..gradients import own_fractions
from ._scores import noisy_label_auc

__all__ = [
    "detection_curve",
    "detection_limit",
    "mean_adjusted_variance",
    "release_closeness",
    "uncertainty_curve",
]

_COUNT = Interval(Integral, 1, None, closed="left")


def mean_adjusted_variance(values, errors):
    """Uncertainty of estimated values: the mean over players of variance over size.

    For a value that is the mean mu_j of k marginal contributions with the standard error s_j, it
    is ``s_j^2 / |mu_j|``. A player whose value is zero, and certain, counts nothing.

    Parameters
    ----------
    values : array-like of shape (n_players,)
        Values.
    errors : array-like of shape (n_players,)
        Their standard errors, as in `values_error_`.

    Returns
    -------
    uncertainty : float
        In units of the utility; infinite where a value of zero is not certain, or an error is
        infinite, as those of one permutation are.

    Raises
    ------
    ValueError
        If the lengths differ, a value is not finite, or an error is negative or NaN.

    References
    ----------
    The paper of `skvalue.GradientSemivalueValuer`, Section 6.1 and Figure 2 (a).

    Examples
    --------
    >>> round(mean_adjusted_variance([0.5, -1.0], [0.1, 0.2]), 6)
    0.03
    """
    values, errors = (
        column_or_1d(
            check_array(
                part, ensure_2d=False, dtype=np.float64, input_name=name,
                ensure_all_finite=name == "values",
            )
        )
        for part, name in ((values, "values"), (errors, "errors"))
    )  # fmt: skip
    if len(values) != len(errors) or not errors.min() >= 0:
        raise ValueError(
            "errors must have one entry a value, none of them negative or NaN. Got "
            f"{len(errors)} errors from {errors.min():g} for {len(values)} values."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = errors**2 / np.abs(values)
    return float(np.mean(np.where(errors == 0, 0.0, ratios)))


@validate_params(
    {
        "valuer": [HasMethods(["fit", "set_params"])],
        "n_permutations": ["array-like"],
        "noises": [dict],
        "n_repeats": [_COUNT],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def uncertainty_curve(
    valuer, X, y, *, n_permutations, noises, n_repeats=1, random_state=None, **fit_params
):
    """Uncertainty of values against the number of permutations, for several kinds of noise.

    At a fixed guarantee, noise on every release grows with the number of releases. Independent
    noise makes values worse with every permutation; noise that is averaged does not.

    Parameters
    ----------
    valuer : estimator
        A `skvalue.GradientSemivalueValuer`; it is cloned, and fitted for every point.
    X : array-like of shape (n_samples, ...)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    n_permutations : array-like of int
        Numbers of permutations.
    noises : dict of str to dict
        Parameters of the valuer by the name of a curve, such as
        ``{"i.i.d.": {"noise": "iid"}, "no noise": {"epsilon": None}}``.
    n_repeats : int, default=1
        Fits of every point, with other random numbers.
    random_state : int, RandomState instance or None, default=None
        Seeds the fits.
    **fit_params : dict
        Of `fit`: X_val, y_val, groups.

    Returns
    -------
    curves : Bunch
        ``n_permutations`` of shape (n_points,); ``uncertainty`` and ``mean_value``, dicts by name
        of arrays of shape (n_repeats, n_points).

    See Also
    --------
    mean_adjusted_variance : What is on the vertical axis.
    UncertaintyDisplay : The picture.

    References
    ----------
    The paper of `skvalue.GradientSemivalueValuer`, Figure 2 (a) and (b).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skvalue import GradientSemivalueValuer
    >>> from skvalue.inspection import uncertainty_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curves = uncertainty_curve(
    ...     GradientSemivalueValuer("logistic", noise_multiplier=0.5, learning_rate=0.1),
    ...     X[:50], y[:50], X_val=X[50:], y_val=y[50:], n_permutations=[8, 64],
    ...     noises={"none": {"noise_multiplier": None}, "iid": {"noise": "iid"}}, random_state=0,
    ... )
    >>> bool(curves.uncertainty["iid"][0, 1] > curves.uncertainty["none"][0, 1])
    True
    """
    rng = check_random_state(random_state)
    counts = column_or_1d(check_array(n_permutations, ensure_2d=False, dtype=np.int64))
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_repeats)
    shape = (n_repeats, len(counts))
    found = Bunch(n_permutations=counts, uncertainty={}, mean_value={})
    for name, parameters in noises.items():
        found.uncertainty[name], found.mean_value[name] = np.empty(shape), np.empty(shape)
        for place in np.ndindex(shape):
            fitted = clone(valuer).set_params(
                n_permutations=int(counts[place[1]]),
                random_state=int(seeds[place[0]]),
                **parameters,
            )
            fitted.fit(X, y, **fit_params)
            found.uncertainty[name][place] = mean_adjusted_variance(
                fitted.values_, fitted.values_error_
            )
            found.mean_value[name][place] = fitted.values_.mean()
    return found


@validate_params(
    {
        "n_permutations": [_COUNT],
        "noise": [str, callable, "array-like"],
        "n_parties": [_COUNT],
        "n_parameters": [_COUNT],
        "noise_multiplier": [Interval(Real, 0, None, closed="neither")],
        "gradient_sd": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def release_closeness(
    n_permutations=100,
    *,
    noise="correlated",
    n_parties=50,
    n_parameters=20,
    noise_multiplier=1.0,
    gradient_sd=0.05,
    random_state=None,
):
    """How close what is stepped along is to the clean gradient, on simulated gradients.

    A party's gradients over permutations are a direction of its own plus independent normal
    deviations, clipped at norm one. Averaging over permutations takes noise away, and what changes
    from permutation to permutation with it.

    Parameters
    ----------
    n_permutations : int, default=100
        Number of permutations, k; noise on each release has the deviation
        ``sqrt(k) * noise_multiplier``.
    noise : {"iid", "correlated", "optimal"}, callable or array-like, default="correlated"
        As in `skvalue.GradientSemivalueValuer`.
    n_parties : int, default=50
        Number of parties.
    n_parameters : int, default=20
        Number of parameters.
    noise_multiplier : float, default=1.0
        Deviation of the noise of all releases together, over the clipping norm.
    gradient_sd : float, default=0.05
        Deviation of every coordinate of a gradient over permutations.
    random_state : int, RandomState instance or None, default=None
        Source of random numbers.

    Returns
    -------
    closeness : Bunch
        ``cosine`` and ``distance``, arrays of shape (n_permutations,): means over parties of the
        cosine and of the L2 distance between what is stepped along and the clean gradient, in
        every permutation.

    References
    ----------
    The paper of `skvalue.GradientSemivalueValuer`, Section 5.2 and Figure 1.

    Examples
    --------
    >>> from skvalue.inspection import release_closeness
    >>> iid, averaged = (
    ...     release_closeness(200, noise=noise, random_state=0) for noise in ("iid", "correlated")
    ... )
    >>> bool(averaged.cosine[-1] > 5 * abs(iid.cosine[-1]))
    True
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    deviation = np.sqrt(n_permutations) * noise_multiplier
    shares = own_fractions(noise, n_permutations, deviation**2, gradient_sd**2)
    shape = n_parties, n_parameters
    direction = rng.normal(size=shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    past, found = np.zeros(shape), np.empty((2, n_permutations))
    for t, share in enumerate(shares):
        clean = direction + gradient_sd * rng.normal(size=shape)
        clean /= np.maximum(np.linalg.norm(clean, axis=1, keepdims=True), 1.0)
        release = clean + deviation * rng.normal(size=shape)
        step = (1 - share) * past + share * release
        past += (release - past) / (t + 1)
        sizes = np.linalg.norm(clean, axis=1) * np.linalg.norm(step, axis=1)
        found[:, t] = (
            np.mean((clean * step).sum(axis=1) / sizes),
            np.mean(np.linalg.norm(clean - step, axis=1)),
        )
    return Bunch(cosine=found[0], distance=found[1])


def detection_limit(report, n_replaced=1):
    """Best AUROC at telling parties of which some units were replaced from those untouched.

    Replacing one unit is a test that no detector wins by more than Gaussian noise at a distance mu
    allows; replacing r units of a party, at most r times that distance.

    Parameters
    ----------
    report : PrivacyReport
        Of the fit, with Gaussian noise.
    n_replaced : int, default=1
        Units replaced in a party: with unit "example" and all labels of a party flipped, its
        number of rows.

    Returns
    -------
    auroc : float
        The limit.

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
    """AUROC of finding bad parties by their values, against epsilon and the size of parties.

    Beside it comes the limit that the guarantee itself sets to anybody, and the AUROC without
    noise.

    Parameters
    ----------
    valuer : estimator
        A private valuer with the parameters epsilon, random_state and, where it has one, unit; it
        is cloned.
    X : array-like of shape (n_samples, ...)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels.
    groups : array-like of shape (n_samples,)
        The party of every row; row numbers make every row a party.
    wrong : array-like of bool of shape (n_groups,)
        True for bad parties, in the sorted order of the groups. All of their rows are taken to be
        wrong, which is what the limit is for.
    X_val, y_val : array-likes
        Validation points.
    epsilons : array-like, default=(0.3, 1.0, 3.0)
        Guarantees.
    sizes : array-like of int, default=None
        Rows of a party that take part, the first ones of each; None: all of them, and as the size
        the largest party's.
    n_repeats : int, default=3
        Fits of every point.
    random_state : int, RandomState instance or None, default=None
        Seeds the fits; never the noise.

    Returns
    -------
    curves : Bunch
        ``epsilons``; ``sizes``; ``scores`` of shape (n_sizes, n_epsilons, n_repeats); ``limits`` of
        shape (n_sizes, n_epsilons); ``clean_scores`` of shape (n_sizes, n_repeats).

    Raises
    ------
    ValueError
        If wrong has not one entry a group, or a party has fewer rows than asked.

    See Also
    --------
    DetectionDisplay : The picture.

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
            f"wrong must have one entry a group ({len(names)}), in their sorted order. Got "
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
    place = np.empty(len(codes), dtype=np.int64)  # of every row in its group
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.empty((len(sizes), len(epsilons) + 1, n_repeats))
    limits = np.empty((len(sizes), len(epsilons)))
    for at, size in enumerate(sizes):
        rows = np.flatnonzero(place < size)
        data = safe_indexing(X, rows), safe_indexing(y, rows)
        for which, epsilon in enumerate([*epsilons, None]):
            for repeat in range(n_repeats):
                fitted = clone(valuer).set_params(
                    epsilon=epsilon, random_state=int(rng.randint(np.iinfo(np.int32).max))
                )
                fitted.fit(*data, groups=codes[rows], X_val=X_val, y_val=y_val)
                scores[at, which, repeat] = noisy_label_auc(fitted.values_, wrong)
            if epsilon is not None:
                per_row = getattr(fitted, "unit", "party") == "example"
                limits[at, which] = detection_limit(
                    fitted.privacy_, min(size, counts.max()) if per_row else 1
                )
    return Bunch(
        epsilons=epsilons,
        sizes=sizes,
        scores=scores[:, :-1],
        limits=limits,
        clean_scores=scores[:, -1],
    )
