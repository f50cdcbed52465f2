import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from skvalue import KNNShapleyValuer
from skvalue.datasets import flip_labels
from skvalue.games import ModelGame
from skvalue.inspection import value_addition_curve, value_removal_curve


@pytest.fixture(scope="module")
def rows():
    """X, y with flipped labels, values, X_test, y_test."""
    X, y = make_classification(
        300, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=0
    )
    X_train = X[:150]
    y_train, _ = flip_labels(y[:150], 0.2, random_state=0)
    valuer = KNNShapleyValuer()
    valuer.fit(X_train, y_train, X_val=X[150:200], y_val=y[150:200])
    y_train = np.where(y_train, "yes", "no")
    y_test = np.where(y[200:], "yes", "no")
    return X_train, y_train, valuer.values_, X[200:], y_test


MODEL = LogisticRegression(random_state=0)


def scores_of_fits(X, y, X_test, y_test, rows_by_fit):
    """Scores of the model fitted on the rows of each fit."""
    return [MODEL.fit(X[rows], y[rows]).score(X_test, y_test) for rows in rows_by_fit]


@pytest.mark.parametrize("first", ["lowest", "highest"])
def test_scores_are_those_of_fits_on_the_remaining_rows(rows, first):
    X, y, values, X_test, y_test = rows
    order = np.argsort(values if first == "lowest" else -values)
    curve = value_removal_curve(
        MODEL,
        *rows,
        first=first,
        fractions=[0.4, 0.0, 0.25],
        n_repeats=2,
        random_state=0,
    )
    assert curve.fractions.tolist() == [0, 0.25, 0.4]
    assert curve.n_rows.tolist() == [150, 150 - 37, 90]
    assert curve.first == first
    rows_by_fit = [np.sort(order[n_removed:]) for n_removed in (0, 37, 60)]
    expected = scores_of_fits(X, y, X_test, y_test, rows_by_fit)
    np.testing.assert_array_equal(curve.scores, [expected, expected])
    assert curve.random_scores.shape == (2, 3)
    assert curve.random_scores[:, 0].tolist() == [expected[0]] * 2
    assert curve.random_scores[0].tolist() != curve.random_scores[1].tolist()


@pytest.mark.parametrize("first", ["lowest", "highest"])
def test_scores_of_added_rows_are_those_of_fits_on_them(rows, first):
    X, y, values, X_test, y_test = rows
    order = np.argsort(values if first == "lowest" else -values)
    curve = value_addition_curve(
        MODEL,
        *rows,
        first=first,
        fractions=[0.4, 1.0, 0.25],
        n_repeats=2,
        random_state=0,
    )
    assert curve.fractions.tolist() == [0.25, 0.4, 1.0]
    assert curve.n_rows.tolist() == [37, 60, 150]
    assert (curve.kind, curve.first) == ("addition", first)
    rows_by_fit = [np.sort(order[:n_added]) for n_added in (37, 60, 150)]
    expected = scores_of_fits(X, y, X_test, y_test, rows_by_fit)
    np.testing.assert_array_equal(curve.scores, [expected, expected])
    assert curve.random_scores[:, -1].tolist() == [expected[-1]] * 2


def test_rows_added_last_are_those_removed_first(rows):
    options = {"n_repeats": 1, "random_state": 0, "baseline": False}
    added = value_addition_curve(
        MODEL, *rows, first="highest", fractions=[0.6, 0.8], **options
    )
    removed = value_removal_curve(
        MODEL, *rows, first="lowest", fractions=[0.2, 0.4], **options
    )
    np.testing.assert_array_equal(added.n_rows, removed.n_rows[::-1])
    np.testing.assert_array_equal(added.scores, removed.scores[:, ::-1])


def test_added_rows_of_low_values_are_worse_than_random_ones(rows):
    curve = value_addition_curve(
        MODEL, *rows, first="lowest", fractions=[0.2], n_repeats=3, random_state=0
    )
    assert curve.scores.mean() < curve.random_scores.mean() - 0.1


def test_at_least_one_group_is_added(rows):
    X, y, _, X_test, y_test = rows
    curve = value_addition_curve(
        MODEL,
        X,
        y,
        np.arange(9.0),
        X_test,
        y_test,
        groups=GROUPS,
        fractions=[1e-6, 1],
        n_repeats=1,
        baseline=False,
    )
    assert curve.n_groups.tolist() == [1, 9]
    assert curve.n_rows[1] == len(y)


@pytest.mark.parametrize("fraction", [0.0, 1.1])
def test_fractions_of_added_rows_outside_their_range_are_refused(rows, fraction):
    with pytest.raises(ValueError, match=r"fractions must lie in \(0, 1\]"):
        value_addition_curve(MODEL, *rows, fractions=[0.5, fraction])


def test_values_beat_random_orders(rows):
    options = {
        "fractions": [0.2],
        "scoring": "neg_log_loss",
        "n_repeats": 3,
        "random_state": 0,
    }
    lowest = value_removal_curve(MODEL, *rows, first="lowest", **options)
    highest = value_removal_curve(MODEL, *rows, first="highest", **options)
    assert lowest.scores.mean() > lowest.random_scores.max() + 0.05
    assert highest.scores.mean() < highest.random_scores.mean() - 0.02


def test_ties_are_broken_at_random(rows):
    X, y, _, X_test, y_test = rows
    curve = value_removal_curve(
        KNeighborsClassifier(1),
        X,
        y,
        np.zeros(150),
        X_test,
        y_test,
        fractions=[0.5],
        n_repeats=8,
        baseline=False,
        random_state=0,
    )
    assert len(np.unique(curve.scores)) > 2
    assert curve.random_scores is None


def test_repeats_draw_the_seeds_that_are_not_fixed(rows):
    data = [array[:60] for array in rows]
    options = {
        "fractions": [0, 0.3],
        "n_repeats": 4,
        "baseline": False,
        "random_state": 0,
    }
    forest = RandomForestClassifier(3)
    curve = value_removal_curve(forest, *data, **options)
    assert (np.ptp(curve.scores, axis=0) > 0).all()
    again = value_removal_curve(forest, *data, **options)
    np.testing.assert_array_equal(curve.scores, again.scores)
    forest = RandomForestClassifier(3, random_state=0)
    fixed = value_removal_curve(forest, *data, **options)
    assert (np.ptp(fixed.scores, axis=0) == 0).all()


def test_n_jobs_changes_nothing(rows):
    options = {"fractions": [0, 0.3], "n_repeats": 2, "random_state": 0}
    alone = value_removal_curve(MODEL, *rows, **options)
    with parallel_config("threading"):
        parallel = value_removal_curve(MODEL, *rows, n_jobs=2, **options)
    np.testing.assert_array_equal(alone.scores, parallel.scores)
    np.testing.assert_array_equal(alone.random_scores, parallel.random_scores)


def test_one_class_predicts_itself():
    X = np.arange(6.0)[:, None]
    y = np.array([0, 0, 0, 1, 1, 1])
    options = {"fractions": [0, 0.5, 0.9], "n_repeats": 1, "baseline": False}
    curve = value_removal_curve(LogisticRegression(), X, y, y, X, y, **options)
    assert curve.n_rows.tolist() == [6, 3, 1]
    assert curve.scores.tolist() == [[1.0, 0.5, 0.5]]


def test_labels_may_be_a_column():
    X = np.arange(6.0)[:, None]
    y = np.array([0, 0, 0, 1, 1, 1])
    options = {"fractions": [0, 0.5, 0.9], "n_repeats": 1, "baseline": False}
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        curve = value_removal_curve(
            LogisticRegression(), X, y[:, None], y, X, y, **options
        )
    assert curve.scores.tolist() == [[1.0, 0.5, 0.5]]


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"])
def test_classes_that_are_gone_keep_a_probability(scoring):
    X = np.arange(9.0)[:, None]
    y = np.array(list("aaabbbccc"))
    # The remaining rows have 3, 2 and 1 classes.
    fractions = [0, 0.5, 0.9]
    curve = value_removal_curve(
        LogisticRegression(),
        X,
        y,
        -X.ravel(),
        X,
        y,
        fractions=fractions,
        scoring=scoring,
        n_repeats=1,
        baseline=False,
    )
    options = {"scoring": scoring, "empty_utility": 0.0, "batch": "never"}
    game = ModelGame(LogisticRegression(), X, y, X, y, **options)
    kept = np.arange(9) < curve.n_rows[:, None]
    np.testing.assert_allclose(curve.scores[0], game.utility(kept), rtol=1e-12)
    assert np.isfinite(curve.scores).all()


@pytest.mark.parametrize("fraction", [-0.1, 1.0])
def test_fractions_outside_their_range_are_refused(rows, fraction):
    message = f"fractions must lie in .* Got .*{fraction}"
    with pytest.raises(ValueError, match=message):
        value_removal_curve(MODEL, *rows, fractions=[0.5, fraction])


def test_too_few_values_are_refused(rows):
    X, y, values, X_test, y_test = rows
    message = r"values must have one entry per row of X \(150\)\. Got"
    with pytest.raises(ValueError, match=message):
        value_removal_curve(MODEL, X, y, values[:9], X_test, y_test)


def test_missing_values_are_refused(rows):
    X, y, values, X_test, y_test = rows
    values = np.where(values > 0, values, np.nan)
    with pytest.raises(ValueError, match="values contains NaN"):
        value_removal_curve(MODEL, X, y, values, X_test, y_test)


def test_rows_and_labels_of_different_lengths_are_refused(rows):
    X, y, values, X_test, y_test = rows
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        value_removal_curve(MODEL, X[:9], y, values, X_test, y_test)


def test_an_unknown_order_is_refused(rows):
    with pytest.raises(ValueError, match="'first' parameter .* must be a str among"):
        value_removal_curve(MODEL, *rows, first="worst")


# Nine groups.
GROUPS = np.array([f"owner {i}" for i in np.arange(150) ** 2 // 2500])


def test_groups_are_removed_as_a_whole(rows):
    X, y, _, X_test, y_test = rows
    names, sizes = np.unique(GROUPS, return_counts=True)
    values = np.random.default_rng(1).permutation(9)
    curve = value_removal_curve(
        MODEL,
        X,
        y,
        values,
        X_test,
        y_test,
        groups=GROUPS,
        fractions=[0.34, 0.7],
        n_repeats=2,
        random_state=0,
    )
    order = np.argsort(values)
    kept_groups = [order[3:], order[6:]]
    assert curve.n_groups.tolist() == [6, 3]
    assert curve.n_rows.tolist() == [sizes[groups].sum() for groups in kept_groups]
    rows_by_fit = [
        np.flatnonzero(np.isin(GROUPS, names[groups])) for groups in kept_groups
    ]
    expected = scores_of_fits(X, y, X_test, y_test, rows_by_fit)
    np.testing.assert_array_equal(curve.scores, [expected, expected])
    assert curve.random_scores.shape == (2, 2)


def test_values_of_rows_are_refused_with_groups(rows):
    with pytest.raises(ValueError, match=r"one entry per group \(9\)\. Got 150\.$"):
        value_removal_curve(MODEL, *rows, groups=GROUPS)


def test_values_of_groups_are_refused_without_groups(rows):
    X, y, _, X_test, y_test = rows
    message = r"per row of X \(150\)\. Got 9\. Pass groups= with values of groups"
    with pytest.raises(ValueError, match=message):
        value_removal_curve(MODEL, X, y, np.arange(9), X_test, y_test)
