"""Test scores of a model as rows are removed in the order of their values."""

from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import Bunch, check_random_state, column_or_1d, indexable

from .._utils.checks import check_groups, check_numbers
from .._utils.sklearn import HasMethods, Interval, StrOptions, validate_params
from ..games import check_scorer, train

CONSTRAINTS = {
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
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}  # of all functions that train models, by the names of their parameters
_PASS_GROUPS = " Pass groups= with values of groups."


def draw_seeds(estimator, rng):
    """Seeds for the random_state parameters of the estimator that are None."""
    return {
        name: int(rng.randint(np.iinfo(np.int32).max))
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }


def score_on(estimator, seeds, X, y, rows, classes, X_test, y_test, scorer):
    """Test score of the estimator fitted on some rows, which may lack some classes."""
    estimator = clone(estimator).set_params(**seeds)
    model, _ = train(estimator, X, y, None, classes, rows)
    return scorer(model, X_test, y_test)


def _refit_along(
    estimator, X, y, X_test, y_test, orders, counts, players, scoring, n_jobs, rng
):
    """Test scores (n_repeats, n_points) after a fit on the first ``counts`` players of
    every order.

    ``orders`` has one array (n_repeats, n_players) per curve, and ``players`` the
    player of each row. The same rows are fitted only once.
    """
    classes = np.unique(y) if is_classifier(estimator) else None
    scorer = check_scorer(estimator, scoring, None, classes)
    seeds = [draw_seeds(estimator, rng) for _ in orders[0]]
    tasks, keys = {}, []
    for curve in orders:
        for repeat, order in enumerate(curve):
            for count in counts:
                rows = np.flatnonzero(np.isin(players, order[:count]))
                key = (repeat if seeds[repeat] else 0, rows.tobytes())
                tasks.setdefault(key, (seeds[repeat], rows))
                keys.append(key)
    scores = Parallel(n_jobs=n_jobs)(
        delayed(score_on)(estimator, seed, X, y, rows, classes, X_test, y_test, scorer)
        for seed, rows in tasks.values()
    )
    found = dict(zip(tasks, scores))
    shape = len(orders), len(orders[0]), len(counts)
    return np.array([found[key] for key in keys], dtype=np.float64).reshape(shape)


@validate_params(CONSTRAINTS, prefer_skip_nested_validation=True)
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
    n_jobs=None,
    random_state=None,
):
    """Test scores of a model refitted as rows are removed in the order of their values.

    If the values are good, removing the rows of the lowest value first keeps the score,
    or raises it if some rows are wrong, and removing those of the highest value first
    lowers it faster than removing rows at random. A model of few rows, those of the
    highest value, is at the fractions near 1 of the curve that begins with the lowest.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor. After training on a single class it predicts that
        class; a class without rows has the small probability that
        `skvalue.games.ModelGame` gives it.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels or targets of the training rows.
    values : array-like of shape (n_samples,) or (n_groups,)
        Values of the training rows, or of the groups if `groups` is passed; higher is
        better.
    X_test : array-like of shape (n_test, n_features)
        Test rows, which must not have been used to compute the values.
    y_test : array-like of shape (n_test,)
        Labels or targets of the test rows.
    first : {"lowest", "highest"}, default="lowest"
        Whether the rows of the lowest or of the highest value are removed first.
    fractions : array-like, default=None
        Fractions of the rows removed, in [0, 1); None means 0, 0.05, ..., 0.5. At least
        one row stays.
    scoring : str or callable, default=None
        The score; None means the `score` method of the estimator.
    n_repeats : int, default=5
        Number of repeats. Repeats of the order by value differ in the order of equal
        values and in every random_state of the estimator that is None; equal refits are
        done once, so an estimator with a fixed random_state is cheaper.
    baseline : bool, default=True
        Whether to remove rows, or groups, at random for comparison.
    groups : array-like of shape (n_samples,), default=None
        Group of every row. Whole groups are then removed; the values are those of the
        groups in sorted order, as in `values_` and `groups_` of a valuer, and the
        fractions are of groups.
    n_jobs : int, default=None
        Number of joblib jobs for the refits.
    random_state : int, RandomState instance or None, default=None
        Controls the orders and the seeds of the estimator.

    Returns
    -------
    curve : Bunch
        ``fractions`` and ``n_rows`` (number of training rows; with groups, its mean
        over the repeats in the order by value), each of shape (n_points,); ``n_groups``
        (number of training groups, or None); ``scores`` and ``random_scores`` of shape
        (n_repeats, n_points), the latter None without baseline; and ``first``.

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, or fractions are out of
        range.

    See Also
    --------
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
    X, y = indexable(X, y)
    y, values = column_or_1d(y, warn=True), check_numbers(values, "values")
    names, players = check_groups(groups, len(y))
    if names is None:
        players = np.arange(len(y))
    n = len(y) if names is None else len(names)
    if len(values) != n:
        per, hint = ("group", "") if names is not None else ("row of X", _PASS_GROUPS)
        raise ValueError(
            f"values must have one entry per {per} ({n}). Got {len(values)}.{hint}"
        )
    if fractions is None:
        fractions = np.linspace(0, 0.5, 11)
    fractions = np.sort(check_numbers(fractions, "fractions"))
    if fractions[0] < 0 or fractions[-1] >= 1:
        raise ValueError(
            f"fractions must lie in [0, 1). Got {fractions[0]} to {fractions[-1]}."
        )
    counts = np.maximum(
        n - (fractions * n + 1e-9).astype(np.int64), 1
    )  # of those that stay
    rng = check_random_state(random_state)
    stays_first = -values if first == "lowest" else values
    # Ties are in random order.
    by_value = np.array(
        [np.lexsort((rng.permutation(n), stays_first)) for _ in range(n_repeats)]
    )
    orders = [by_value]
    if baseline:
        orders.append([rng.permutation(n) for _ in range(n_repeats)])
    scores = _refit_along(
        estimator, X, y, X_test, y_test, orders, counts, players, scoring, n_jobs, rng
    )
    n_rows = counts
    if names is not None:  # groups differ in size, and tied ones in their order
        n_rows = (
            np.bincount(players)[by_value].cumsum(axis=1)[:, counts - 1].mean(axis=0)
        )
    return Bunch(
        fractions=fractions,
        n_rows=n_rows,
        n_groups=None if names is None else counts,
        first=first,
        scores=scores[0],
        random_scores=scores[1] if baseline else None,
    )
