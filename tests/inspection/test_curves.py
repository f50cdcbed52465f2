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
from skvalue.inspection import value_removal_curve


@pytest.fixture(scope="module")
def rows():
    """X, y with flipped labels, values, X_test, y_test."""
    X, y = make_classification(
        300, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=0
    )
    X, X_val, X_test = X[:150], X[150:200], X[200:]
    y, y_val, y_test = y[:150], y[150:200], y[200:]
    y, _ = flip_labels(y, 0.2, random_state=0)
    values = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val).values_
    return X, np.where(y, "yes", "no"), values, X_test, np.where(y_test, "yes", "no")


MODEL = LogisticRegression(random_state=0)


def naive_scores(X, y, X_test, y_test, kept):
    return [MODEL.fit(X[rows], y[rows]).score(X_test, y_test) for rows in kept]


@pytest.mark.parametrize("first", ["lowest", "highest"])
def test_removal_refits_on_what_is_left(rows, first):
    X, y, values, X_test, y_test = rows
    order = np.argsort(values if first == "lowest" else -values)
    fractions = [0.4, 0.0, 0.25]
    curve = value_removal_curve(
        MODEL, *rows, first=first, fractions=fractions, n_repeats=2, random_state=0
    )
    assert curve.fractions.tolist() == [0, 0.25, 0.4]
    assert curve.n_rows.tolist() == [150, 150 - 37, 90]
    assert curve.first == first
    kept = [np.sort(order[n:]) for n in (0, 37, 60)]
    expected = naive_scores(X, y, X_test, y_test, kept)
    np.testing.assert_array_equal(curve.scores, [expected, expected])
    assert curve.random_scores.shape == (2, 3)
    assert curve.random_scores[:, 0].tolist() == [expected[0]] * 2
    assert curve.random_scores[0].tolist() != curve.random_scores[1].tolist()


def test_values_beat_random_orders(rows):
    options = {
        "fractions": [0.2],
        "scoring": "neg_log_loss",
        "n_repeats": 3,
        "random_state": 0,
    }
    worst, best = (
        value_removal_curve(MODEL, *rows, first=first, **options)
        for first in ("lowest", "highest")
    )
    assert worst.scores.mean() > worst.random_scores.max() + 0.05
    assert best.scores.mean() < best.random_scores.mean() - 0.02


def test_ties_are_broken_at_random(rows):
    X, y, _, X_test, y_test = rows
    curve = value_removal_curve(
        KNeighborsClassifier(1), X, y, np.zeros(150), X_test, y_test, fractions=[0.5],
        n_repeats=8, baseline=False, random_state=0,
    )  # fmt: skip
    assert len(np.unique(curve.scores)) > 2
    assert curve.random_scores is None


def test_repeats_draw_the_seeds_that_are_not_fixed(rows):
    arguments = [part[:60] for part in rows]
    options = {
        "fractions": [0, 0.3],
        "n_repeats": 4,
        "baseline": False,
        "random_state": 0,
    }
    free = value_removal_curve(RandomForestClassifier(3), *arguments, **options)
    assert (np.ptp(free.scores, axis=0) > 0).all()
    again = value_removal_curve(RandomForestClassifier(3), *arguments, **options)
    np.testing.assert_array_equal(free.scores, again.scores)
    fixed = value_removal_curve(
        RandomForestClassifier(3, random_state=0), *arguments, **options
    )
    assert (np.ptp(fixed.scores, axis=0) == 0).all()


def test_jobs_change_nothing(rows):
    options = {"fractions": [0, 0.3], "n_repeats": 2, "random_state": 0}
    one = value_removal_curve(MODEL, *rows, **options)
    with parallel_config("threading"):
        two = value_removal_curve(MODEL, *rows, n_jobs=2, **options)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.random_scores, two.random_scores)


def test_one_class_predicts_itself():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    options = {"fractions": [0, 0.5, 0.9], "n_repeats": 1, "baseline": False}
    curve = value_removal_curve(LogisticRegression(), X, y, y, X, y, **options)
    assert curve.n_rows.tolist() == [6, 3, 1]
    assert curve.scores.tolist() == [[1.0, 0.5, 0.5]]
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        column = value_removal_curve(
            LogisticRegression(), X, y[:, None], y, X, y, **options
        )
    assert column.scores.tolist() == curve.scores.tolist()


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"])
def test_classes_that_are_gone_keep_a_probability(scoring):
    X, y = np.arange(9.0)[:, None], np.array(list("aaabbbccc"))
    fractions = [0, 0.5, 0.9]  # 3, 2 and 1 classes
    curve = value_removal_curve(
        LogisticRegression(), X, y, -X.ravel(), X, y, fractions=fractions, scoring=scoring,
        n_repeats=1, baseline=False,
    )  # fmt: skip
    options = {"scoring": scoring, "empty_utility": 0.0, "batch": "never"}
    game = ModelGame(LogisticRegression(), X, y, X, y, **options)
    kept = np.arange(9) < curve.n_rows[:, None]
    np.testing.assert_allclose(curve.scores[0], game.utility(kept), rtol=1e-12)
    assert np.isfinite(curve.scores).all()


def test_refuses(rows):
    X, y, values, X_test, y_test = rows
    for fraction in (-0.1, 1.0):
        with pytest.raises(
            ValueError, match=f"fractions must lie in .* Got .*{fraction}"
        ):
            value_removal_curve(MODEL, *rows, fractions=[0.5, fraction])
    with pytest.raises(
        ValueError, match=r"values must have one entry per row of X \(150\)\. Got"
    ):
        value_removal_curve(MODEL, X, y, values[:9], X_test, y_test)
    with pytest.raises(ValueError, match="values contains NaN"):
        value_removal_curve(
            MODEL, X, y, np.where(values > 0, values, np.nan), X_test, y_test
        )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        value_removal_curve(MODEL, X[:9], y, values, X_test, y_test)
    with pytest.raises(ValueError, match="'first' parameter .* must be a str among"):
        value_removal_curve(MODEL, *rows, first="worst")


def test_whole_groups(rows):
    X, y, _, X_test, y_test = rows
    groups = np.array([f"owner {i}" for i in np.arange(150) ** 2 // 2500])  # 9 groups
    names, sizes = np.unique(groups, return_counts=True)
    values = np.random.default_rng(1).permutation(9)
    curve = value_removal_curve(
        MODEL, X, y, values, X_test, y_test, groups=groups, fractions=[0.34, 0.7], n_repeats=2,
        random_state=0,
    )  # fmt: skip
    order = np.argsort(values)
    chosen = [order[count:] for count in (3, 6)]
    assert curve.n_groups.tolist() == [len(some) for some in chosen]
    assert curve.n_rows.tolist() == [sizes[some].sum() for some in chosen]
    kept = [np.flatnonzero(np.isin(groups, names[some])) for some in chosen]
    expected = naive_scores(X, y, X_test, y_test, kept)
    np.testing.assert_array_equal(curve.scores, [expected, expected])
    assert curve.random_scores.shape == (2, 2)
    with pytest.raises(ValueError, match=r"one entry per group \(9\)\. Got 150\.$"):
        value_removal_curve(MODEL, *rows, groups=groups)
    with pytest.raises(
        ValueError, match=r"per row of X \(150\)\. Got 9\. Pass groups= with val"
    ):
        value_removal_curve(MODEL, X, y, values, X_test, y_test)
