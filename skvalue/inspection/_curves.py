"""Test scores of a model as rows are removed or added in the order of their values."""

from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import Bunch, check_random_state, column_or_1d, indexable

from .._utils.checks import check_groups, check_numbers, check_weights
from .._utils.sklearn import HasMethods, Interval, StrOptions, validate_params
from ..games import check_scorer, train

_CONSTRAINTS = {
    "estimator": [HasMethods(["fit"])],
    "X": ["array-like", "sparse matrix"],
    "y": ["array-like"],
    "values": ["array-like"],
    "X_test": ["array-like", "sparse matrix"],
    "y_test": ["array-like"],
    "first": [StrOptions({"lowest", "highest"})],
    "fractions": ["array-like", None],
    "scoring": [str, callable, None],
    "n_repeats": [Interval(Integral, 1, None, closed="left")],
    "baseline": ["boolean"],
    "groups": ["array-like", None],
    "sample_weight": ["array-like", None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}


def _check_fractions(fractions, default, allowed, rule):
    """Return the fractions as float64, in ascending order."""
    if fractions is None:
        return default
    fractions = check_numbers(fractions, "fractions")
    wrong = fractions[~allowed(fractions)]
    if len(wrong):
        raise ValueError(f"fractions must lie in {rule}. Got {wrong[0]}.")
    return np.sort(fractions)


def draw_seeds(estimator, rng):
    """Seeds for the random_state parameters of the estimator that are None."""
    return {
        name: int(rng.randint(np.iinfo(np.int32).max))
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }


def score_on(estimator, seeds, X, y, rows, sample_weight, classes, X_test, y_test, scorer):
    """Test score of the estimator fitted on some rows, which may lack some classes."""
    estimator = clone(estimator).set_params(**seeds)
    model, _ = train(estimator, X, y, sample_weight, classes, rows)
    return scorer(model, X_test, y_test)


def _refit_along(
    estimator, X, y, X_test, y_test, orders, counts, players, *, scoring, sample_weight, n_jobs, rng
):
    """Test scores (n_repeats, n_points) after a fit on the first ``counts`` players of every order.

    ``orders`` has one array (n_repeats, n_players) per curve, and ``players`` the player of each
    row. The same rows are fitted only once.
    """
    classes = np.unique(y) if is_classifier(estimator) and y.ndim == 1 else None
    scorer = check_scorer(estimator, scoring, None, classes)
    seeds = [draw_seeds(estimator, rng) for _ in orders[0]]
    tasks, keys = {}, []
    for curve in orders:
        for repeat, order in enumerate(curve):
            for count in counts:
                rows = rows_of(order[:count], players)
                key = (repeat if seeds[repeat] else 0, rows.tobytes())
                tasks.setdefault(key, (seeds[repeat], rows))
                keys.append(key)
    scores = Parallel(n_jobs=n_jobs)(
        delayed(score_on)(
            estimator, seed, X, y, rows, sample_weight, classes, X_test, y_test, scorer
        )
        for seed, rows in tasks.values()
    )
    found = dict(zip(tasks, scores))
    shape = len(orders), len(orders[0]), len(counts)
    return list(np.array([found[key] for key in keys], dtype=np.float64).reshape(shape))


def rows_of(chosen, players):
    """The rows of some players, ascending."""
    mask = np.zeros(players.max() + 1, dtype=bool)
    mask[chosen] = True
    return np.flatnonzero(mask[players])


def _orders(values, n_repeats, baseline, rng):
    """Orders by ascending value, with ties in random order, and random orders as the baseline."""
    n = len(values)
    by_value = np.array([np.lexsort((rng.permutation(n), values)) for _ in range(n_repeats)])
    if not baseline:
        return [by_value]
    return [by_value, np.array([rng.permutation(n) for _ in range(n_repeats)])]


_PASS_GROUPS = " Pass groups= with values of groups."

# Kind of curve -> default fractions, check of allowed ones, and their range in errors.
_FRACTIONS = {
    "removal": (np.linspace(0, 0.5, 11), lambda f: (f >= 0) & (f < 1), "[0, 1)"),
    "addition": (np.linspace(0.05, 0.5, 10), lambda f: (f > 0) & (f <= 1), "(0, 1]"),
}


def _curve(
    kind, estimator, X, y, values, X_test, y_test, first, fractions, n_repeats, baseline, groups,
    random_state, **options,
):  # fmt: skip
    """Both kinds of curves: the rows, or groups, that remain are the first ones of an order."""
    X, y = indexable(X, y)
    y = column_or_1d(y, warn=True) if np.shape(y)[1:] in ((), (1,)) else np.asarray(y)
    values = check_numbers(values, "values")
    names, players = check_groups(groups, len(y))
    if names is None:
        players = np.arange(len(y))
    n = len(y) if names is None else len(names)
    if len(values) != n:
        per, hint = ("group", "") if names is not None else ("row of X", _PASS_GROUPS)
        raise ValueError(f"values must have one entry per {per} ({n}). Got {len(values)}.{hint}")
    if options["sample_weight"] is not None:
        options["sample_weight"] = check_weights(options["sample_weight"], "sample_weight", len(y))
    fractions = _check_fractions(fractions, *_FRACTIONS[kind])
    counts = (fractions * n + 1e-9).astype(np.int64)
    counts = np.maximum(counts if kind == "addition" else n - counts, 1)
    kept_first = values if (first == "lowest") == (kind == "addition") else -values
    rng = check_random_state(random_state)
    orders = _orders(kept_first, n_repeats, baseline, rng)
    scores = _refit_along(
        estimator, X, y, X_test, y_test, orders, counts, players, rng=rng, **options
    )
    n_rows = counts
    if names is not None:  # groups differ in size, and tied ones in their order
        sums = np.bincount(players)[orders[0]].cumsum(axis=1)
        n_rows = sums[:, counts - 1].mean(axis=0)
    return Bunch(
        fractions=fractions,
        n_rows=n_rows,
        n_groups=None if names is None else counts,
        kind=kind,
        first=first,
        scores=scores[0],
        random_scores=scores[1] if baseline else None,
    )


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def value_removal_curve(
    estimator,
    X,
    y,
    values,
    X_test,
    y_test,
    *,
    first="lowest",
    fractions=None,
    scoring=None,
    n_repeats=5,
    baseline=True,
    groups=None,
    sample_weight=None,
    n_jobs=None,
    random_state=None,
):
    """Test scores of a model refitted as rows are removed in the order of their values.

    If the values are good, removing the rows of the lowest value first keeps the score, or raises
    it if some rows are wrong, and removing those of the highest value first lowers it faster than
    removing rows at random.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor. After training on a single class it predicts that class; a
        class without rows has the small probability that `skvalue.games.ModelGame` gives it.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels or targets of the training rows.
    values : array-like of shape (n_samples,) or (n_groups,)
        Values of the training rows, or of the groups if `groups` is passed; higher is better.
    X_test : array-like of shape (n_test, n_features)
        Test rows, which must not have been used to compute the values.
    y_test : array-like of shape (n_test,)
        Labels or targets of the test rows.
    first : {"lowest", "highest"}, default="lowest"
        Whether the rows of the lowest or of the highest value are removed first.
    fractions : array-like, default=None
        Fractions of the rows removed, in [0, 1); None means 0, 0.05, ..., 0.5. At least one row
        stays.
    scoring : str or callable, default=None
        The score; None means the `score` method of the estimator.
    n_repeats : int, default=5
        Number of repeats. Repeats of the order by value differ in the order of equal values and in
        every random_state of the estimator that is None; equal refits are done once, so an
        estimator with a fixed random_state is cheaper.
    baseline : bool, default=True
        Whether to remove rows, or groups, at random for comparison.
    groups : array-like of shape (n_samples,), default=None
        Group of every row. Whole groups are then removed; the values are those of the groups in
        sorted order, as in `values_` and `groups_` of a valuer, and the fractions are of groups.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights for the estimator's fit.
    n_jobs : int, default=None
        Number of joblib jobs for the refits.
    random_state : int, RandomState instance or None, default=None
        Controls the orders and the seeds of the estimator.

    Returns
    -------
    curve : Bunch
        ``fractions`` and ``n_rows`` (number of training rows; with groups, its mean over the
        repeats in the order by value), each of shape (n_points,); ``n_groups`` (number of training
        groups, or None); ``scores`` and ``random_scores`` of shape (n_repeats, n_points), the
        latter None without baseline; ``first``; ``kind``, which is "removal".

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, fractions are out of range, or a
        sample_weight is negative.

    See Also
    --------
    value_addition_curve : The same with rows added instead of removed.
    ValueRemovalDisplay : Plot of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skvalue.inspection import value_removal_curve
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 1, 1, 1])
    >>> values = [0.1, -0.2, 0.1, 0.1]
    >>> curve = value_removal_curve(
    ...     KNeighborsClassifier(1), X, y, values, [[0.08], [1.0]], [0, 1], fractions=[0, 0.25],
    ...     n_repeats=1, baseline=False,
    ... )
    >>> curve.n_rows.tolist(), curve.scores.tolist()
    ([4, 3], [[0.5, 1.0]])
    """
    return _curve(
        "removal", estimator, X, y, values, X_test, y_test, first, fractions, n_repeats, baseline,
        groups, random_state, scoring=scoring, sample_weight=sample_weight, n_jobs=n_jobs,
    )  # fmt: skip


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def value_addition_curve(
    estimator,
    X,
    y,
    values,
    X_test,
    y_test,
    *,
    first="highest",
    fractions=None,
    scoring=None,
    n_repeats=5,
    baseline=True,
    groups=None,
    sample_weight=None,
    n_jobs=None,
    random_state=None,
):
    """Test scores of a model refitted as rows are added in the order of their values.

    If the values are good, a few rows of the highest value train a better model than the same
    number of random rows.

    Parameters
    ----------
    estimator, X, y, values, X_test, y_test : required
        As in `value_removal_curve`.
    first : {"lowest", "highest"}, default="highest"
        Whether the rows of the lowest or of the highest value are added first.
    fractions : array-like, default=None
        Fractions of the rows added, in (0, 1]; None means 0.05, 0.1, ..., 0.5. At least one row is
        added.
    scoring, n_repeats, baseline, groups, sample_weight, n_jobs, random_state : optional
        As in `value_removal_curve`.

    Returns
    -------
    curve : Bunch
        As in `value_removal_curve`; ``kind`` is "addition".

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, fractions are out of range, or a
        sample_weight is negative.

    See Also
    --------
    value_removal_curve : The same with rows removed instead of added.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skvalue.inspection import value_addition_curve
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 1, 1, 1])
    >>> values = [0.3, -0.2, 0.2, 0.1]
    >>> curve = value_addition_curve(
    ...     KNeighborsClassifier(1), X, y, values, [[0.08], [1.0]], [0, 1], fractions=[0.5, 1],
    ...     n_repeats=1, baseline=False,
    ... )
    >>> curve.n_rows.tolist(), curve.scores.tolist()
    ([2, 4], [[1.0, 0.5]])
    """
    return _curve(
        "addition", estimator, X, y, values, X_test, y_test, first, fractions, n_repeats, baseline,
        groups, random_state, scoring=scoring, sample_weight=sample_weight, n_jobs=n_jobs,
    )  # fmt: skip
