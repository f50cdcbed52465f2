"""Private threshold-KNN-Shapley: counts, bounds, what is kept, and what is refused."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split

from skvalue import TKNNShapleyValuer, ValueFilteredClassifier
from skvalue.privacy import Ledger, calibrate_counts
from skvalue.valuers import public_baseline, suggest_radius
from skvalue.valuers.tknn_shapley import capped_balls, neighbour_values, overlap_bound

pytestmark = pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(460, 6, n_informative=4, n_classes=2, random_state=0)
    return X[60:], y[60:], X[:60], y[:60]


@pytest.fixture(scope="module")
def inside(data):
    """Which rows are in which balls."""
    return pairwise_distances(data[2], data[0], metric="cosine") <= 0.3


def fit(data, radius=0.3, groups=None, weights=None, **parameters):
    X, y, X_val, y_val = data
    valuer = TKNNShapleyValuer(
        radius, **{"epsilon": 1.0, "max_contributions": None, **parameters}
    )
    return valuer.fit(
        X, y, X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=weights
    )  # fmt: skip


def report_of(valuer):
    return str(valuer.privacy_).replace("\n", " ")


RAW = dict(denoise=False)  # smoothing takes most of the time of a small fit


def exact_counts(data, radius=0.3, n_draws=5, **parameters):
    """Counts of own and of other labels: medians of little integer noise."""
    found = [
        fit(data, radius, epsilon=50.0, **RAW, **parameters).counts_
        for _ in range(n_draws)
    ]
    return np.median(found, axis=0)


def same_and_other(counts, y_val):
    """Counts by class as counts of own and of other labels."""
    same = counts[y_val, np.arange(len(y_val))]
    return np.stack([same, counts.sum(axis=0) - same])


# Values and counts --------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "cityblock"])
@pytest.mark.parametrize("denoise", [True, False])
def test_little_noise_gives_the_exact_values(data, metric, denoise):
    radius = {"cosine": 0.6, "euclidean": 3.0, "cityblock": 6.0}[metric]
    exact = fit(data, radius, metric=metric, epsilon=None)
    private = fit(data, radius, metric=metric, epsilon=40.0, denoise=denoise)
    clean = same_and_other(exact.counts_, data[3])
    scale = calibrate_counts(40.0, 1e-5, 60, "add_remove").scale
    assert np.abs(private.counts_ - clean).max() < 5.5 * scale
    assert np.corrcoef(private.values_, exact.values_)[0, 1] > 0.97
    assert private.utility_ == pytest.approx(exact.utility_, abs=0.05)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_almost_no_noise_gives_the_exact_values(semivalue, n_classes):
    X, y = make_classification(
        300,
        6,
        n_informative=4,
        n_classes=n_classes,
        random_state=0,
        n_clusters_per_class=1,
    )
    # A row is in one of five balls at most, and the counts have almost no noise.
    some = [0]
    for i in range(1, 300):
        if len(some) < 5 and overlap_bound(X[[*some, i]], 0.05, "cosine") == 1:
            some.append(i)
    game = np.delete(X, some, 0), np.delete(y, some), X[some], np.arange(5) % n_classes
    little = dict(radius=0.05, epsilon=50.0, semivalue=semivalue)
    exact = fit(game, **little | dict(epsilon=None))
    assert exact.values_.any()
    draws = [fit(game, **RAW, **little).values_ for _ in range(5)]
    np.testing.assert_allclose(np.median(draws, axis=0), exact.values_, atol=1e-12)
    if semivalue == "banzhaf":  # of large balls it is too small next to little noise
        return
    game = X[50:], y[50:], X[:50], y[:50]
    exact = fit(game, epsilon=None, semivalue=semivalue).values_
    # One draw in twenty of any other noise is larger.
    smooth = fit(game, epsilon=50.0, semivalue=semivalue, noise_random_state=0).values_
    assert np.abs(smooth - exact).max() < 0.6 * exact.std()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_all_noise_leaves_the_order_of_the_public_baseline(n_classes):
    X, y = make_classification(
        300,
        8,
        n_informative=6,
        n_classes=n_classes,
        random_state=0,
        n_clusters_per_class=1,
    )
    game = X[50:], y[50:], X[:50], y[:50]
    # Any other noise: with a probability of 0.999.
    private = fit(game, epsilon=1e-6, noise_random_state=0)
    baseline = public_baseline(*game, 0.3)
    np.testing.assert_allclose(private.baseline_, baseline, atol=1e-15)
    for values in (private.values_, private.score_samples(X[50:], y[50:])):
        assert spearmanr(values, baseline)[0] > 0.9
        assert np.abs(values).sum() < 1  # all that there is to be distributed


def test_the_baseline_is_that_of_the_row_and_of_its_group(data):
    weights = np.arange(60.0)
    expected = public_baseline(*data, 0.3, sample_weight_val=weights)
    for groups in (np.arange(400) % 9, None):
        valuer = fit(data, groups=groups, weights=weights)
        of_players = expected if groups is None else np.bincount(groups, expected)
        np.testing.assert_allclose(valuer.baseline_, of_players, atol=1e-14)
        assert valuer.values_error_.shape == valuer.baseline_.shape
    # Capped rows keep only their nearest balls in the baseline, too.
    capped = fit(data, max_contributions=2)
    assert np.abs(capped.baseline_).max() <= 1 / 60


@pytest.mark.parametrize("denoise", [True, False])
def test_errors_shrink_with_the_noise_and_add_up_in_groups(data, denoise):
    errors = [
        np.mean(fit(data, denoise=denoise, epsilon=epsilon).values_error_)
        for epsilon in (0.1, 1.0, 10.0)
    ]
    assert errors[0] > errors[1] > errors[2] > 0
    rows, pairs = (
        fit(data, groups=groups, denoise=denoise, noise_random_state=0).values_error_
        for groups in (None, np.arange(400) // 2)
    )
    # Between those of errors that cancel and of errors that are equal.
    assert (pairs <= rows.reshape(-1, 2).sum(axis=1) + 1e-15).all()
    assert (pairs >= np.abs(np.diff(rows.reshape(-1, 2), axis=1))[:, 0] - 1e-15).all()


def test_the_public_baseline(data, inside):
    X, y, X_val, y_val = data
    signs = np.where(y_val[:, None] == y, 0.5, -0.5)
    expected = (inside * signs).mean(axis=0)
    np.testing.assert_allclose(public_baseline(*data, 0.3), expected, atol=1e-15)
    weights = np.arange(60.0)
    np.testing.assert_allclose(
        public_baseline(*data, 0.3, sample_weight_val=weights),
        weights @ (inside * signs) / weights.sum(),
    )
    with pytest.raises(ValueError, match="X_val must have 6 columns, as X. Got 5"):
        public_baseline(X, y, X_val[:, :5], y_val)


def test_counts_are_of_labels_alike_and_not_and_unknown_labels_are_other(data, inside):
    X, y, X_val, y_val = data
    strange = np.where(np.arange(len(y)) % 7 == 0, 99, y)
    alike = y_val[:, None] == strange
    clean = np.stack([(inside & alike).sum(axis=1), (inside & ~alike).sum(axis=1)])
    draws = [
        fit((X, strange, X_val, y_val), epsilon=50.0, **RAW).counts_ for _ in range(9)
    ]
    scale = calibrate_counts(
        50.0, 1e-5, overlap_bound(X_val, 0.3, "cosine"), "add_remove"
    ).scale
    assert np.abs(np.mean(draws, axis=0) - clean).max() < 5.5 * scale / 9**0.5 < 2.5
    assert np.issubdtype(draws[0].dtype, np.integer)
    for labels in (
        y.astype(str),
        y.astype(str).astype(object),
        [{0: "a", 1: 5}[k] for k in y],
    ):
        fit((X, np.asarray(labels, dtype=object), X_val, y_val), **RAW)
    one_class = fit((X, np.zeros_like(y), X_val, y_val))
    assert np.isfinite(one_class.values_).all()


def test_own_row_is_taken_off_and_new_rows_come_on_top(data, inside):
    X, y, _, y_val = data
    valuer = fit(data, denoise=False)
    same, other = np.maximum(valuer.counts_, 0)
    alike = y_val[:, None] == y
    for extra, values in ((0, valuer.values_), (1, valuer.score_samples(X, y))):
        agree = neighbour_values(np.maximum(same + extra, 1), other, 2)[0]
        differ = neighbour_values(same, np.maximum(other + extra, 1), 2)[1]
        sizes = np.where(alike, agree[:, None], differ[:, None])
        np.testing.assert_allclose(values, (inside * sizes).mean(axis=0), atol=1e-12)
    assert valuer.values_for(3) == valuer.values_[3]
    assert valuer.values_for(3, return_baseline=True, return_error=True) == (
        valuer.values_[3], valuer.baseline_[3], valuer.values_error_[3],
    )  # fmt: skip
    # Without labels, those of the validation points in the ball are used.
    n_near, n_ones = inside.sum(axis=0), (inside & (y_val == 1)[:, None]).sum(axis=0)
    fraction = np.where(n_near > 0, n_ones / np.maximum(n_near, 1), 0.5)
    by_label = [valuer.score_samples(X, np.full(len(X), label)) for label in (0, 1)]
    expected = (1 - fraction) * by_label[0] + fraction * by_label[1]
    np.testing.assert_allclose(valuer.transform(X)[:, 0], expected, atol=1e-12)


def test_groups_and_weights(data, inside):
    groups = np.arange(400) % 9
    rows = fit(data, noise_random_state=0, **RAW)
    grouped = fit(data, groups=groups, noise_random_state=0, **RAW)
    np.testing.assert_allclose(grouped.values_, np.bincount(groups, rows.values_))
    assert "groups as wholes" in report_of(grouped)
    weighted = fit(data, weights=np.eye(60)[0], max_contributions="auto", **RAW)
    assert (weighted.values_[~inside[0]] == 0).all()


# How many balls a row can be in -------------------------------------------------------


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "cityblock"])
def test_no_row_is_in_more_balls_than_the_bound(rng, metric):
    for width in (0.1, 0.5, 2.0):
        centres = np.round(rng.normal(size=(40, 2)) * width, 1) + [1, 0]
        rows = np.concatenate(
            [centres, rng.normal(size=(3000, 2)) * width + [1, 0], [[0, 0]]]
        )
        for radius in (0.0, 0.01, 0.1, 0.4, 1.0, 1.3):
            bound = overlap_bound(centres, radius, metric)
            inside = pairwise_distances(rows, centres, metric=metric) <= radius * (
                1 + 1e-12
            )
            assert inside.sum(axis=1).max() <= bound <= 40
    assert overlap_bound(centres, 0.01, lambda a, b: 0.0) == 40
    far = (
        1e9 + 10 * centres
    )  # scikit-learn's products round, and a row is in many of these balls
    inside = pairwise_distances(far[:1] + 1, far, metric="l2") <= 0.5
    assert 1 < inside.sum() <= overlap_bound(far, 0.5, "l2")


def test_a_row_does_not_move_others_into_balls():
    # Alone, the rows are compared around their mean; with one far away, around the
    # origin, where the float32 product puts those of one number all over on the wrong
    # side of the radius.
    t = np.linspace(1, 2, 1001, dtype=np.float32)
    centres = np.repeat(t[:, None], 384, axis=1) + np.eye(1, 384, dtype=np.float32) / 2
    product = (centres - np.eye(1, 384, dtype=np.float32) / 2) @ centres.T
    wrong = (
        product.diagonal() - (centres.astype(float) ** 2).sum(axis=1) + (t + 0.5) / 2
    )
    row, centre = np.full(384, t[wrong.argmax()]), centres[wrong.argmax()]
    rows = np.tile(row, (400, 1))
    outlier = (-np.sqrt(8 * len(rows)) * row[None]).astype(np.float32)
    centres = np.vstack([centre, -centre, centres[::2] + 100])
    labels = np.arange(len(centres)) % 2
    for X in (rows, np.vstack([rows, outlier])):
        valuer = TKNNShapleyValuer(0.49963, metric="euclidean", epsilon=8.0, **RAW)
        valuer.fit(X, np.zeros(len(X), dtype=int), X_val=centres, y_val=labels)
        assert np.abs(valuer.counts_[:, 0]).max() < 100  # no row is in this ball


def test_columns_far_from_zero_leave_the_bound():
    # Twice the radius apart at 10^9, where squared distances by a product round to
    # hundreds.
    for seed, n, d in ((88, 34, 30), (188, 18, 26)):
        rng = np.random.default_rng(seed)
        near = rng.normal(size=(n, d)) * 0.3 / np.sqrt(d)
        for far in (0.0, rng.normal(size=d) * 1e9):
            bound = overlap_bound(near + far, 0.5, "euclidean")
            assert (
                bound >= (np.linalg.norm(near - near.mean(axis=0), axis=1) <= 0.5).sum()
            )
        far = np.where(
            np.arange(n)[:, None] % 2, 1e9, -1e9
        )  # where no mean is near a point
        assert overlap_bound(near + far, 0.5, "euclidean") >= n // 2


def test_balls_of_no_radius_are_closed():
    angles = np.array([0.0, 2.7e-6, 1.0])
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    row = [[np.cos(1.35e-6), np.sin(1.35e-6)]]
    assert (pairwise_distances(row, centres, metric="cosine") <= 1e-12).sum() == 2
    assert overlap_bound(centres, 0.0, "cosine") == 2


def test_the_bound_is_used_and_a_cap_below_it(data):
    bound = overlap_bound(data[2], 0.02, "cosine")
    assert 1 < bound < 30
    for cap, expected in ((None, bound), (3, 3), (bound + 5, bound)):
        valuer = fit(data, 0.02, max_contributions=cap, **RAW)
        assert f"at most {expected} of" in report_of(valuer)


@pytest.mark.parametrize("radius", [0.02, 0.3, "auto"])
def test_the_cap_that_the_validation_points_choose(data, radius):
    X, y, X_val, y_val = data
    valuer = fit(data, radius, max_contributions="auto", **RAW)
    in_balls = (
        pairwise_distances(X_val, metric="cosine") <= valuer.radius_ + 1e-12
    ).sum(axis=0)
    bound = overlap_bound(X_val, valuer.radius_, "cosine")
    expected = f"at most {min(in_balls.max(), bound)} of"
    assert expected in report_of(valuer)
    others = fit(
        (X[:50] + 3, y[:50], X_val, y_val), radius, max_contributions="auto", **RAW
    )
    assert expected in report_of(others)  # whatever the rows
    assert radius == 0.02 or in_balls.max() < bound


def test_a_cap_that_caps_nothing_leaves_balls_of_no_radius_closed(rng):
    # Rounding leaves parallel rows at cosine distances of about 1e-16.
    X, X_val = (0.1 * rng.integers(-2, 3, (n, 2)) for n in (60, 9))
    y = np.arange(60) % 2
    exact = TKNNShapleyValuer(0.0).fit(X, y, X_val=X_val, y_val=y[:9])
    assert exact.counts_.any()
    # Nine more points of one direction, in which there is no row: a row could be in 18
    # balls.
    X_val = np.concatenate([X_val, np.outer(np.arange(1, 19), [1.0, 3.7])])
    game = X, y, X_val, np.arange(27) % 2
    assert overlap_bound(X_val, 0.0, "cosine") >= 18
    counts = exact_counts(game, 0.0, n_draws=35, max_contributions=17)
    exact = fit(game, 0.0, epsilon=None).counts_
    np.testing.assert_array_equal(counts, same_and_other(exact, game[3]))


@pytest.mark.parametrize(
    "metric", ["cosine", "euclidean", "l2", "correlation", "manhattan"]
)
def test_the_balls_of_a_row_do_not_depend_on_other_rows(metric, rng):
    # Every row is as far from a point as from its mirror image: rounding must not
    # choose.
    for _ in range(10):
        X, X_val = (0.1 * rng.integers(-2, 3, (n, 30)) + 0.3 for n in (60, 20))
        X, X_val[::2] = (X + X[:, ::-1]) / 2, X_val[1::2, ::-1]
        X[7] = 0
        together = np.concatenate(
            [c for _, c in capped_balls(X, X_val, 100.0, metric, 3)]
        )
        for i in (0, 7, 30, 59):
            ((_, alone),) = capped_balls(X[i : i + 1], X_val, 100.0, metric, 3)
            np.testing.assert_array_equal(alone[0], together[i])


def test_capped_rows_count_for_their_nearest_points(data):
    X, y, X_val, y_val = data
    distances = pairwise_distances(X, X_val, metric="cosine")
    expected = np.zeros((2, 60), dtype=int)
    for row, label in zip(distances, y):
        near = [v for v in np.argsort(row, kind="stable")[:4] if row[v] <= 0.3]
        expected[label, near] += 1
    found = exact_counts(data, max_contributions=4)
    np.testing.assert_array_equal(found, same_and_other(expected, y_val))
    capped = fit(data, max_contributions=4, epsilon=50.0, **RAW)
    assert np.isfinite(capped.score_samples(X, y)).all()


# Accounting ---------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["null", "add_remove", "replace"])
def test_the_report_states_the_parameters(data, relation):
    valuer = fit(data, relation=relation, epsilon=0.7, delta=1e-6, **RAW)
    assert valuer.privacy_.epsilon == pytest.approx(0.7, rel=1e-6)
    assert valuer.privacy_.epsilon <= 0.7 * (1 + 1e-9)
    assert valuer.privacy_.relation == relation
    text = report_of(valuer)
    for sentence in (
        "satisfies (0.7, 1e-06)-joint differential privacy",
        "NOT protected: the validation points X_val and y_val",
        "chosen without looking at the rows",
    ):
        assert sentence in text
    assert ("the number of rows;" in text) == (relation != "add_remove")


def test_replacing_costs_noise_for_twice_as_many_counts(data):
    scales = []
    for relation in ("null", "add_remove", "replace"):
        ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
        fit(data, relation=relation, ledger=ledger, **RAW)
        scales.append(ledger.charges[0].event.scale)
    assert scales[0] == scales[1]
    assert scales[2] == pytest.approx(2**0.5 * scales[1], rel=1e-3)


@pytest.mark.filterwarnings("ignore:The rows are chosen by private values")
def test_grid_search_charges_every_candidate(data, tmp_path):
    X, y, X_val, y_val = data
    ledger = Ledger(tmp_path / "budget.sqlite", "rows", epsilon=10.0, delta=1e-5)
    model = ValueFilteredClassifier(
        LogisticRegression(), TKNNShapleyValuer(0.3, epsilon=0.5, ledger=ledger, **RAW)
    )
    search = GridSearchCV(model, {"drop": [0.05, 0.1, 0.2]}, cv=2)
    search.fit(X, y, X_val=X_val, y_val=y_val)
    assert (
        ledger.n_charges == 3 * 2 + 1
    )  # every candidate on every split, and the refit


# What is kept and what is refused -----------------------------------------------------


def contents(value, seen):
    """Everything that an object refers to."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    for part in parts:
        contents(part, seen)


def test_a_notebook_keeps_no_value(data):
    shown = fit(data, groups=np.arange(400) % 7, **RAW)._repr_html_()
    assert ">counts_" in shown
    for name in ("values_", "baseline_", "groups_"):
        assert f">{name}" not in shown
    assert ">values_" in fit(data, epsilon=None)._repr_html_()


def arrays_of(valuer):
    contents(valuer, seen := {})
    return [value for value in seen.values() if isinstance(value, np.ndarray)]


def pieces(values):
    return [values.tobytes(), values[:3].tobytes()]


def test_a_pickle_holds_no_row_count_value_or_seed(data):
    X, y, *_ = data
    seed = 123_456_789
    valuer = fit(data, groups=np.arange(400) // 2, noise_random_state=seed)
    valuer.score_samples(X, y)
    clean = fit(data, epsilon=None).counts_
    kept = pickle.dumps(valuer)
    secrets = {
        "row": [row.tobytes() for row in X],
        "column": [np.ascontiguousarray(column).tobytes() for column in X.T],
        "values": pieces(valuer.values_),
        "baseline": pieces(valuer.baseline_),
        "errors": pieces(valuer.values_error_),
        "clean counts": [count.tobytes() for count in (*clean, clean.sum(axis=0))],
        "seed": [seed.to_bytes(4, "little")],
    }
    for kind, found in secrets.items():
        assert not any(secret in kept for secret in found), kind
    copy = pickle.loads(kept)
    arrays = arrays_of(copy)
    assert arrays
    assert not any(len(X) in array.shape for array in arrays)
    assert not any(array.shape[-1:] == (200,) for array in arrays)  # groups
    for name in ("values_", "groups_", "baseline_", "values_error_"):
        assert not hasattr(copy, name)
        with pytest.raises(
            AttributeError, match=f"{name} of a private fit is for the curator"
        ):
            getattr(copy, name)
    with pytest.raises(
        AttributeError, match="values_ of a private fit is for the curator"
    ):
        copy.values_for(0, return_baseline=True)
    np.testing.assert_array_equal(copy.score_samples(X, y), valuer.score_samples(X, y))
    np.testing.assert_array_equal(copy.counts_, valuer.counts_)
    assert copy.privacy_.guarantee is None  # seeded


def test_a_fitted_valuer_holds_no_row_or_clean_count(data):
    X = data[0]
    valuer = fit(data)
    arrays = arrays_of(valuer)
    assert not any(array.shape[:1] == (len(X),) and array.ndim == 2 for array in arrays)
    mine = [array for array in arrays if array.shape == (len(X),)]
    hidden = (valuer.values_, valuer.baseline_, valuer.values_error_)
    assert all(any(array is one for one in hidden) for array in mine)
    exact = fit(data, epsilon=None).counts_
    for array in arrays:
        if array.shape == (2, 60):
            assert not np.array_equal(array, exact)


def test_an_exact_fit_after_a_private_one_has_all_methods(data):
    X, y, X_val, y_val = data
    valuer = (
        fit(data, **RAW).set_params(epsilon=None).fit(X, y, X_val=X_val, y_val=y_val)
    )
    assert valuer.values_for(2) == valuer.values_[2]
    for name, parameter in (("baseline_", "baseline"), ("values_error_", "error")):
        with pytest.raises(
            AttributeError, match=f"{name} is set by private fits only: pass eps"
        ):
            getattr(valuer, name)
        with pytest.raises(
            ValueError, match=f"This fit of TKNNShapleyValuer has no {name} to ret"
        ):
            valuer.values_for(2, **{f"return_{parameter}": True})
    valuer.add_validation(X_val[:1], y_val[:1])


def test_refusals(data):
    X, y, X_val, y_val = data
    val = dict(X_val=X_val, y_val=y_val)
    private = TKNNShapleyValuer(0.3, epsilon=1.0, **RAW)
    for points, message in (
        ({}, "X_val and y_val must be passed with epsilon"),
        (dict(X_val=X_val, y_val=np.zeros(60)), "y_val must have at least 2 classes"),
        (dict(X_val=X_val, y_val=X_val[:, 0]), "y_val must hold classes"),
    ):
        with pytest.raises(ValueError, match=message):
            private.fit(X, y, **points)
    with pytest.raises(ValueError, match="reader must be 'curator'"):
        private.fit_transform(X, y, **val)
    curator = TKNNShapleyValuer(0.3, epsilon=1.0, reader="curator", **RAW)
    assert curator.fit_transform(X, y, **val).shape == (400, 1)
    for parameters, message in (
        (dict(epsilon=0), "epsilon must be a finite number above 0"),
        (dict(epsilon=-1.0), "epsilon must be a finite number above 0"),
        (
            dict(delta=1e-30),
            "epsilon must be smaller: samplers of integer noise are exact",
        ),
        (dict(delta=0.0), "delta must be strictly between 0 and 1"),
        (dict(delta=1.0), "delta must be strictly between 0 and 1"),
        (
            dict(relation="swap"),
            "The 'relation' parameter of TKNNShapleyValuer must be",
        ),
        (
            dict(max_contributions=0),
            "The 'max_contributions' parameter of TKNNShapleyValuer must",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            fit(data, **parameters)
    fitted = fit(data, **RAW)
    for name, call in {
        "add_validation": lambda: fitted.add_validation(X_val[:1], y_val[:1]),
        "contributions": lambda: fitted.contributions(0),
        "harmful": lambda: fitted.harmful(),
    }.items():
        with pytest.raises(
            ValueError, match=f"{name} needs the rows of fit, which a private fit"
        ):
            call()
    assert not hasattr(fitted, "validation_error_")
    with pytest.raises(ValueError, match="i must be between 0 and 399. Got 400"):
        fitted.values_for(400)


def test_a_radius_from_the_validation_points_is_free(data):
    X, y, X_val, y_val = data
    valuer = fit(data, "auto", **RAW)
    assert valuer.radius_ == suggest_radius(X_val, y_val)
    assert (
        fit((X[:50] + 3, y[:50], X_val, y_val), "auto", **RAW).radius_ == valuer.radius_
    )
    text = report_of(valuer)
    assert (
        "metric and all other parameters were chosen without looking at the rows"
        in text
    )
    assert "radius, metric" not in text


# Worth their noise --------------------------------------------------------------------


def auroc(values, bad):
    return roc_auc_score(bad, -values)


def mislabelled(name):
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        n_classes = int(name)
        X, y = make_classification(
            1200,
            10,
            n_informative=6,
            n_classes=n_classes,
            random_state=4,
            class_sep=1.5,
        )
        X = X + 0.5
    rng = np.random.default_rng(1)
    X, X_val, y, y_val = train_test_split(X, y, test_size=150, random_state=0)
    bad = rng.random(len(y)) < 0.1
    y = np.where(bad, (y + rng.integers(1, y.max() + 1, len(y))) % (y.max() + 1), y)
    return (X, y, X_val, y_val), bad


def sizes_of(game, bad, epsilon, n_draws):
    """L1 error over the L1 norm, error of the sum, AUROC, fraction within 2 errors:
    means."""
    exact = (
        TKNNShapleyValuer().fit(game[0], game[1], X_val=game[2], y_val=game[3]).values_
    )
    found = []
    for _ in range(n_draws):
        private = fit(
            game, "auto", epsilon=epsilon, delta=1e-5, max_contributions="auto"
        )
        off = np.abs(private.values_ - exact)
        found.append([
            off.sum() / np.abs(exact).sum(), abs((private.values_ - exact).sum()),
            auroc(private.values_, bad), np.mean(off <= 2 * private.values_error_),
        ])  # fmt: skip
    return np.mean(found, axis=0), auroc(exact, bad)


SLOW = [
    pytest.param(name, epsilon, 20, (l1, total, 0.02, 0.85), marks=pytest.mark.slow)
    for name in ("2", "3", "digits")
    for epsilon, l1, total in ((0.3, 0.6, 0.25), (1.0, 0.3, 0.15), (4.0, 0.15, 0.05))
]


# Without the factor of the sizes, the L1 error is above 3.
@pytest.mark.parametrize(
    ("name", "epsilon", "n_draws", "limits"),
    [("digits", 1.0, 3, (0.5, 0.15, 0.03, 0.8)), *SLOW],
)
def test_private_values_in_size_order_and_errors(name, epsilon, n_draws, limits):
    game, bad = mislabelled(name)
    (l1, total, area, within), exact = sizes_of(game, bad, epsilon, n_draws)
    assert l1 < limits[0]
    assert total < limits[1]
    assert area > exact - limits[2]
    assert within > limits[3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2", "3", "digits"])
@pytest.mark.parametrize("epsilon", [0.03, 0.1, 0.5, 1.0, 4.0])
def test_never_below_the_lower_of_baseline_and_exact(name, epsilon):
    game, bad = mislabelled(name)
    baseline = auroc(public_baseline(*game, 0.3), bad)
    exact = auroc(fit(game, epsilon=None).values_, bad)
    private = dict(epsilon=epsilon, delta=1e-4, max_contributions="auto")
    found = [auroc(fit(game, **private).values_, bad) for _ in range(20)]
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) >= min(baseline, exact) - 0.004 - 3 * error
    if epsilon >= 1:
        assert np.mean(found) >= exact - 0.01
