"""Test scores of a model as rows are removed or added in the order of their values."""

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.utils import Bunch, check_random_state, column_or_1d, indexable

from .._utils.checks import (
    check_groups,
    check_numbers,
    exact_integers,
    refuse_pairwise,
)
from .._utils.sklearn import validate_params
from ..games import check_scorer
from ._refits import CONSTRAINTS, Refits, draw_seeds


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
        (n_repeats, n_points), the latter None without baseline; ``first``; and
        ``kind``, which is "removal".

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, or fractions are out of
        range.

    See Also
    --------
    value_addition_curve : Scores as rows are added.
    ValueRemovalDisplay : Plot of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skvalue.inspection import value_removal_curve
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> y = np.array([0, 1, 1, 1])
    >>> values = [0.1, -0.2, 0.1, 0.1]
    >>> curve = value_removal_curve(
    ...     KNeighborsClassifier(1),
    ...     X,
    ...     y,
    ...     values,
    ...     X_test=[[0.08], [1.0]],
    ...     y_test=[0, 1],
    ...     fractions=[0, 0.25],
    ...     n_repeats=1,
    ...     baseline=False,
    ... )
    >>> curve.n_rows.tolist(), curve.scores.tolist()
    ([4, 3], [[0.5, 1.0]])
    """
    return _curve(
        "removal",
        (estimator, X, y, values, X_test, y_test),
        first=first,
        fractions=fractions,
        scoring=scoring,
        n_repeats=n_repeats,
        baseline=baseline,
        groups=groups,
        n_jobs=n_jobs,
        random_state=random_state,
    )


@validate_params(CONSTRAINTS, prefer_skip_nested_validation=True)
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
    n_jobs=None,
    random_state=None,
):
    """Test scores of a model fitted on few rows, added in the order of their values.

    Few rows of low value train a worse model than as many random rows. Those of the
    highest value need not train a better one: values are of rows among many others, and
    the highest may be much alike, or of one class. Use this curve to choose a few rows
    of many, and `value_removal_curve` to drop a few.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor, as in `value_removal_curve`.
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
    first : {"lowest", "highest"}, default="highest"
        Whether the rows of the lowest or of the highest value are added first.
    fractions : array-like, default=None
        Fractions of the rows added, in (0, 1]; None means 0.05, 0.1, ..., 0.5. At least
        one row is added.
    scoring : str or callable, default=None
        The score; None means the `score` method of the estimator.
    n_repeats : int, default=5
        Number of repeats, as in `value_removal_curve`.
    baseline : bool, default=True
        Whether to add rows, or groups, at random for comparison.
    groups : array-like of shape (n_samples,), default=None
        Group of every row. Whole groups are then added, as in `value_removal_curve`.
    n_jobs : int, default=None
        Number of joblib jobs for the refits.
    random_state : int, RandomState instance or None, default=None
        Controls the orders and the seeds of the estimator.

    Returns
    -------
    curve : Bunch
        As in `value_removal_curve`; ``kind`` is "addition".

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, or fractions are out of
        range.

    See Also
    --------
    value_removal_curve : Scores as rows are removed.
    ValueRemovalDisplay : Plot of the curves.

    References
    ----------
    A. Ghorbani, J. Zou: "Data Shapley: Equitable Valuation of Data for Machine
    Learning", ICML 2019; "Data Value Estimation on Private Gradients", Figure 6.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skvalue.inspection import value_addition_curve
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> y = np.array([0, 1, 1, 1])
    >>> values = [0.3, -0.2, 0.2, 0.1]
    >>> curve = value_addition_curve(
    ...     KNeighborsClassifier(1),
    ...     X,
    ...     y,
    ...     values,
    ...     X_test=[[0.08], [1.0]],
    ...     y_test=[0, 1],
    ...     fractions=[0.5, 1],
    ...     n_repeats=1,
    ...     baseline=False,
    ... )
    >>> curve.n_rows.tolist(), curve.scores.tolist()
    ([2, 4], [[1.0, 0.5]])
    """
    return _curve(
        "addition",
        (estimator, X, y, values, X_test, y_test),
        first=first,
        fractions=fractions,
        scoring=scoring,
        n_repeats=n_repeats,
        baseline=baseline,
        groups=groups,
        n_jobs=n_jobs,
        random_state=random_state,
    )


def _curve(
    kind,
    data,
    *,
    first,
    fractions,
    scoring,
    n_repeats,
    baseline,
    groups,
    n_jobs,
    random_state,
):
    """The curve of rows removed or added; `data` are the arguments by place."""
    estimator, X, y, values, X_test, y_test = data
    refuse_pairwise(estimator)
    X, y = indexable(X, y)
    y = column_or_1d(exact_integers(y), warn=True)
    values = check_numbers(values, "values")
    group_names, players = check_groups(groups, len(y))
    if group_names is None:
        players = np.arange(len(y))
        n_players = len(y)
    else:
        n_players = len(group_names)
    _check_n_values(len(values), n_players, group_names)

    fractions = _check_fractions(kind, fractions)
    # Rounded down, but for 0.29 * 100, which is just below 29.
    n_kept = (fractions * n_players + 1e-9).astype(np.int64)
    highest_first = first == "highest"
    if kind == "removal":
        n_kept = n_players - n_kept
        highest_first = not highest_first  # what is removed last stays longest
    n_kept = np.maximum(n_kept, 1)

    # In an order, the players that a model is fitted on come first. Ties are in random
    # order.
    rng = check_random_state(random_state)
    sort_keys = -values if highest_first else values
    orders_by_value = np.array(
        [np.lexsort((rng.permutation(n_players), sort_keys)) for _ in range(n_repeats)]
    )
    orders_by_curve = [orders_by_value]
    if baseline:
        random_orders = [rng.permutation(n_players) for _ in range(n_repeats)]
        orders_by_curve.append(random_orders)

    classes = np.unique(y) if is_classifier(estimator) else None
    refits = Refits(
        estimator=estimator,
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
        classes=classes,
        scorer=check_scorer(estimator, scoring, None, classes),
    )
    seeds = [draw_seeds(estimator, rng) for _ in range(n_repeats)]
    scores = _scores_along(refits, seeds, orders_by_curve, n_kept, players, n_jobs)

    n_rows = n_kept
    if group_names is not None:
        # Groups differ in size, and tied ones in their order.
        sizes = np.bincount(players)[orders_by_value]
        n_rows = sizes.cumsum(axis=1)[:, n_kept - 1].mean(axis=0)
    return Bunch(
        fractions=fractions,
        n_rows=n_rows,
        n_groups=None if group_names is None else n_kept,
        kind=kind,
        first=first,
        scores=scores[0],
        random_scores=scores[1] if baseline else None,
    )


def _check_n_values(n_values, n_players, group_names):
    if n_values == n_players:
        return
    if group_names is None:
        raise ValueError(
            f"values must have one entry per row of X ({n_players}). Got {n_values}. "
            "Pass groups= with values of groups."
        )
    raise ValueError(
        f"values must have one entry per group ({n_players}). Got {n_values}."
    )


def _check_fractions(kind, fractions):
    """The fractions in ascending order, as float64."""
    if fractions is None:
        if kind == "addition":
            return np.linspace(0.05, 0.5, 10)
        return np.linspace(0, 0.5, 11)
    fractions = np.sort(check_numbers(fractions, "fractions"))
    if kind == "addition":
        rule = "(0, 1]"
        is_valid = fractions[0] > 0 and fractions[-1] <= 1
    else:
        rule = "[0, 1)"
        is_valid = fractions[0] >= 0 and fractions[-1] < 1
    if not is_valid:
        raise ValueError(
            f"fractions must lie in {rule}. Got {fractions[0]} to {fractions[-1]}."
        )
    return fractions


def _scores_along(refits, seeds, orders_by_curve, n_kept, players, n_jobs):
    """Test scores (n_curves, n_repeats, n_points) of fits on the first of each order.

    Of each order (n_players,), of which a curve has one per repeat, the first `n_kept`
    players are used. `players` has the player of each row, and `seeds` the seeds of
    each repeat. Fits that are the same are done only once.
    """
    fits = {}
    fit_keys = []
    for orders in orders_by_curve:
        for repeat, order in enumerate(orders):
            for n_first in n_kept:
                rows = np.flatnonzero(np.isin(players, order[:n_first]))
                # Without seeds, fits to the same rows are the same in all repeats.
                key = (repeat if seeds[repeat] else 0, rows.tobytes())
                fits.setdefault(key, (seeds[repeat], rows))
                fit_keys.append(key)

    scores = Parallel(n_jobs=n_jobs)(
        delayed(refits.score)(fit_seeds, rows) for fit_seeds, rows in fits.values()
    )
    score_of_fit = dict(zip(fits, scores))
    scores = np.array([score_of_fit[key] for key in fit_keys], dtype=np.float64)
    return scores.reshape(len(orders_by_curve), len(seeds), len(n_kept))
