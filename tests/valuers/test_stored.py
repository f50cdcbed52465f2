"""store_neighbors: changes of the data equal a refit, and measure no old pair again."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import KFold

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import IncompleteFitWarning
from skvalue.neighbors import Space, _stored
from skvalue.neighbors.kernels import merge as _merge_kernels

CASES = {
    "knn": KNNShapleyValuer(3),
    "knn original": KNNShapleyValuer(4, utility="original"),
    "knn cosine": KNNShapleyValuer(3, metric="cosine"),
    "knn manhattan": KNNShapleyValuer(3, metric="manhattan"),
    "knn max_rank": KNNShapleyValuer(3, max_rank=10),
    "knn regression": KNNShapleyValuer(3, task="regression"),
    "knn regression original": KNNShapleyValuer(3, task="regression", utility="original"),
    "tknn": TKNNShapleyValuer(1.5, metric="euclidean"),
    "tknn cosine": TKNNShapleyValuer(0.4),
    "tknn manhattan": TKNNShapleyValuer(2.0, metric="manhattan"),
    "tknn banzhaf": TKNNShapleyValuer(1.5, metric="euclidean", semivalue="banzhaf"),
    "tknn auto": TKNNShapleyValuer("auto", metric="euclidean"),
}
DATA = {  # scale of the noise, place, precision; no noise is a grid full of ties and duplicates
    "float64": (1.0, 0.0, np.float64),
    "float32": (1.0, 0.0, np.float32),
    "far": (1.0, 1e3, np.float64),
    "far float32": (1.0, 1e3, np.float32),
    "grid": (0.0, 0.5, np.float64),
    "far grid float32": (0.0, 1e3, np.float32),
}


def make(rng, n, noise, place, dtype):
    X = rng.integers(-2, 3, (n, 2)) + noise * rng.normal(size=(n, 2)) + place
    return X.astype(dtype), rng.integers(0, 3, n)


def nbytes(valuer, n_players, n_judges):
    """The formulas of the docstrings."""
    if isinstance(valuer, TKNNShapleyValuer):
        return n_players * -(-n_judges // 8) + 8 * n_judges
    pair = 8 if valuer._X.dtype == np.float32 and valuer.metric != "manhattan" else 12
    return n_judges * ((n_players + n_players // 16) * pair + 8)


def assert_same(ours, refit, X_new):
    names = ["values_", "utility_", "empty_utility_"]
    if ours._explicit:
        names.append("validation_error_")
    for name in names:
        np.testing.assert_allclose(
            getattr(ours, name), getattr(refit, name), rtol=1e-12, atol=1e-14, err_msg=name
        )
    split, other = (valuer.contributions(0).contributions for valuer in (ours, refit))
    np.testing.assert_allclose(split, other, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.transform(X_new), refit.transform(X_new), rtol=1e-12)
    if hasattr(ours, "counts_"):
        np.testing.assert_array_equal(ours.counts_, refit.counts_)


@pytest.fixture
def measured(monkeypatch):
    """Pairs of rows and judges that the engine has measured."""
    pairs = []
    rank, ball, product = _stored.rank_values, _stored.ball_values, _stored.RankChange.new_keys

    def counting_rank(space, Q, *args):
        pairs.append(len(space) * len(Q))
        return rank(space, Q, *args)

    def counting_ball(space, strips, Q, *args):
        pairs.append(len(space) * len(Q))
        return ball(space, strips, Q, *args)

    def counting_keys(change, Q):
        keys, rows = product(change, Q)
        pairs.append(keys.size)
        return keys, rows

    monkeypatch.setattr(_stored, "rank_values", counting_rank)
    monkeypatch.setattr(_stored, "ball_values", counting_ball)
    monkeypatch.setattr(_stored.RankChange, "new_keys", counting_keys)

    def read():
        total = sum(pairs)
        pairs.clear()
        return total

    return read


@pytest.mark.parametrize("extra", ["plain", "groups and weights"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", CASES)
def test_changes_equal_a_refit(name, data, extra, rng, measured):
    plain = clone(CASES[name]).set_params(n_jobs=2)
    X, y = make(rng, 90, *DATA[data])
    X_val, y_val = make(rng, 37, *DATA[data])
    X_new, _ = make(rng, 5, *DATA[data])
    y[:3] = 0, 1, 2
    if "regression" not in name:
        y[70:75] = 3  # a fourth class, which comes and goes again
    groups, weights = np.arange(90) % 7, rng.random(37) + 0.1
    if extra == "plain":
        groups = weights = None

    def part(array, index):
        return None if array is None else array[index]

    def refit(rows, points, valuer=plain):
        return clone(valuer).fit(
            X[rows], y[rows], X_val=X_val[points], y_val=y_val[points],
            groups=part(groups, rows), sample_weight_val=part(weights, points),
        )  # fmt: skip

    rows, points = np.arange(70), np.arange(20)
    ours = refit(rows, points, clone(plain).set_params(store_neighbors=True))
    assert measured() == 70 * 20
    assert ours.neighbors_nbytes_ == nbytes(ours, 70, 20)
    assert_same(ours, refit(rows, points), X_new)

    ours.add_rows(X[70:], y[70:], groups=part(groups, slice(70, None)))
    assert measured() == 20 * 20
    rows = np.arange(90)
    assert ours.neighbors_nbytes_ == nbytes(ours, 90, 20)  # 20 rows are more than there was room
    assert_same(ours, refit(rows, points), X_new)

    ours.remove_rows(np.arange(65, 80))
    assert measured() == 0
    rows = np.delete(rows, np.arange(65, 80))
    assert_same(ours, refit(rows, points), X_new)

    ours = pickle.loads(pickle.dumps(ours))
    ours.add_validation(X_val[20:], y_val[20:], sample_weight_val=part(weights, slice(20, None)))
    assert measured() == 75 * 17
    points = np.arange(37)
    if "auto" not in name:  # add_validation keeps the radius
        assert_same(ours, refit(rows, points), X_new)

    ours.add_rows(X[65:66], y[65:66], groups=part(groups, slice(65, 66)))
    if "auto" not in name:
        assert measured() == 37
    rows = np.append(rows, 65)
    assert_same(ours, refit(rows, points), X_new)


@pytest.mark.parametrize("data", ["float64", "grid", "far float32"])
@pytest.mark.parametrize("name", [name for name in CASES if "auto" not in name])
def test_rows_that_judge_each_other(name, data, rng, measured):
    plain = clone(CASES[name]).set_params(n_jobs=2)
    X, y = make(rng, 90, *DATA[data])
    y[:3] = 0, 1, 2
    ours = clone(plain).set_params(store_neighbors=True).fit(X[:70], y[:70])
    assert measured() == 70 * 70
    is_tknn = name.startswith("tknn")
    assert ours.neighbors_nbytes_ == nbytes(ours, 70 if is_tknn else 69, 70)
    ours.add_rows(X[70:], y[70:])
    assert measured() == 20 * 70 + 90 * 20
    assert_same(ours, clone(plain).fit(X, y), X[:3] + 0.1)
    stay = np.ones(90, dtype=bool)
    for gone in ([4], np.arange(60, 80), np.arange(5, 50)):  # at last most of a tile's judges
        ours.remove_rows(np.isin(np.flatnonzero(stay), gone))
        stay[gone] = False
        assert measured() == 0
        assert_same(ours, clone(plain).fit(X[stay], y[stay]), X[:3] + 0.1)
    ours.add_rows(X[:2], y[:2])
    both = np.r_[X[stay], X[:2]], np.r_[y[stay], y[:2]]
    assert_same(ours, clone(plain).fit(*both), X[:3] + 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("head", "error"), [(1024, 1e-15), (40, 1 / 40**2)])
def test_near_ties_are_settled_as_in_a_refit(metric, dtype, head, error, rng, monkeypatch):
    # Rows so close that a product cannot order them. Behind the head its rounding may, which is not
    # that of a refit; a swap there moves a value by less than 1 / head**2.
    for module in ("_stored", "_numba"):
        monkeypatch.setattr(f"skvalue.neighbors.{module}.rank_head", lambda n: head)
    X = np.repeat(rng.normal(size=(20, 6)) + 1, 12, axis=0)
    X[::2] *= 1 + np.finfo(dtype).eps * rng.integers(0, 4, (120, 6))
    X, y = X.astype(dtype)[rng.permutation(240)], rng.integers(0, 2, 240)
    judges = {"X_val": X[::11] + dtype(0.25), "y_val": y[::11]}
    plain = KNNShapleyValuer(3, metric=metric)
    ours = clone(plain).set_params(store_neighbors=True).fit(X[:150], y[:150], **judges)
    for first, last in ((10, 180), (20, 210), (30, 240)):
        ours.add_rows(X[last - 30 : last], y[last - 30 : last]).remove_rows(np.arange(10))
        refit = clone(plain).fit(X[first:last], y[first:last], **judges)
        np.testing.assert_allclose(ours.values_, refit.values_, rtol=1e-12, atol=error)


def test_a_changed_line_is_the_line_of_a_new_ranking(rng):
    # Line by line, on keys with ties: what is merged and dropped is what would be sorted.
    X, Q = rng.integers(0, 4, (300, 3)).astype(float), rng.integers(0, 4, (9, 3)).astype(float)
    store = _stored.FirstRanks(Space(X[:250], "euclidean")).rank(Q, None, 250, lambda *_: None)
    assert (np.diff(store.keys[:, :250]) >= 0).all()
    stay = np.arange(250) % 9 > 0
    everybody, orders = np.r_[X[:250][stay], X[250:]], []
    change = _stored.RankChange(_stored.Frame.of(Space(X[:250], "euclidean")), stay, everybody)
    changed = _stored.ChangedRanks(store, np.arange(9), change)
    lines = changed.rank(
        Q, None, 999, lambda part, order, n: orders.append(order[:, : n[0]].copy())
    )
    n = len(everybody)
    assert lines.size == n
    distances = ((Q[:, None] - everybody) ** 2).sum(axis=2)
    for v, order in enumerate(np.concatenate(orders)):
        rows = np.where(order < 0, ~order, order)
        assert sorted(rows) == list(range(n)) == sorted(lines.rows[v, :n])
        sorted_distances = distances[v, rows]
        assert (np.diff(sorted_distances) >= 0).all()
        np.testing.assert_array_equal(order[1:] < 0, np.diff(sorted_distances) == 0)


def test_keys_in_any_order_ascend(rng):
    for n in (0, 1, 50, 3000):
        keys, rows = rng.normal(size=n), np.arange(n, dtype=np.int32)
        expected = np.argsort(keys)
        _merge_kernels._ascend(keys, rows)
        np.testing.assert_array_equal(rows, expected)
        assert (np.diff(keys) >= 0).all()


def test_rows_that_go_last_leave_what_is_behind_the_line():
    # The line of those that stay is full before the last one is dropped.
    keys, rows = np.arange(5.0), np.arange(5, dtype=np.int32)
    out_keys, out_rows = np.full(3, -7.0), np.full(3, -7, np.int32)
    place = np.array([0, -1, 1, -1, -1], np.int32)
    assert _merge_kernels._drop(keys, rows, 5, place, out_keys[:2], out_rows[:2]) == 2
    assert out_keys.tolist() == [0, 2, -7]
    assert out_rows.tolist() == [0, 1, -7]


def test_rows_that_move_away_are_ranked_around_another_center(rng):
    # Keys around the old center would have lost their digits.
    near, far = (rng.normal(size=(60, 3)).astype(np.float32) + place for place in (0, 2000))
    y = np.arange(60) % 2
    valuer = KNNShapleyValuer(store_neighbors=True).fit(near, y, X_val=far[:9], y_val=y[:9])
    valuer.add_rows(far, y)
    assert valuer._stores[0].frame.center is not None
    valuer.remove_rows(np.arange(60))
    refit = KNNShapleyValuer().fit(far, y, X_val=far[:9], y_val=y[:9])
    np.testing.assert_allclose(valuer.values_, refit.values_, rtol=1e-12)


@pytest.mark.parametrize("name", ["knn", "tknn"])
def test_worker_processes_return_what_they_changed(name, rng):
    X, y = make(rng, 60, *DATA["float64"])
    X_val, y_val = make(rng, 300, *DATA["float64"])
    valuer = clone(CASES[name]).set_params(store_neighbors=True, n_jobs=None)
    with parallel_config("loky", n_jobs=2):
        valuer.fit(X[:50], y[:50], X_val=X_val, y_val=y_val)
        valuer.add_rows(X[50:55], y[50:55]).add_rows(X[55:], y[55:]).remove_rows([3])
    stay = np.delete(np.arange(60), 3)
    assert_same(valuer, clone(CASES[name]).fit(X[stay], y[stay], X_val=X_val, y_val=y_val), X[:3])


@pytest.mark.parametrize("name", ["knn", "tknn"])
def test_changed_parameters_measure_anew(name, rng, measured):
    X, y = make(rng, 30, *DATA["float64"])
    fit = {"X_val": X[:9] + 0.1, "y_val": y[:9]}
    valuer = clone(CASES[name]).set_params(store_neighbors=True).fit(X[:25], y[:25], **fit)
    params = {"metric": "manhattan"} if name == "knn" else {"radius": 0.7}
    measured()
    valuer.set_params(**params).add_rows(X[25:], y[25:])
    assert measured() == 30 * 9
    assert_same(valuer, clone(valuer).set_params(store_neighbors=False).fit(X, y, **fit), X[:3])
    valuer.set_params(store_neighbors=False).remove_rows([0])
    assert valuer.neighbors_nbytes_ == 0
    valuer.set_params(store_neighbors=True).remove_rows([0])
    assert valuer.neighbors_nbytes_ > 0
    valuer.remove_rows([0])
    assert_same(valuer, clone(valuer).fit(X[3:], y[3:], **fit), X[:3] + 1)


class Stop:
    """A callback that stops after the first tile."""

    def setup(self, estimator, context):
        self.expected, self.seen = context.max_subtasks, 0

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.seen += context.parent is not None
        return context.parent is not None and self.stops


@pytest.mark.parametrize("name", ["knn", "tknn"])
def test_a_change_that_is_stopped_leaves_nothing_half_changed(name, rng):
    X, y = make(rng, 60, *DATA["float64"])
    X_val, y_val = make(rng, 700, *DATA["float64"])
    callback = Stop()
    callback.stops = False
    valuer = clone(CASES[name]).set_params(store_neighbors=True, n_jobs=2)
    valuer.set_callbacks(callback).fit(X[:50], y[:50], X_val=X_val, y_val=y_val)
    valuer.add_rows(X[50:52], y[50:52])
    assert callback.seen == callback.expected > 1  # a step a tile
    callback.stops = True
    with pytest.warns(IncompleteFitWarning):
        valuer.add_rows(X[52:55], y[52:55])
    assert valuer.neighbors_nbytes_ == 0
    done = len(valuer.contributions(0).contributions)
    assert 0 < done < 700
    callback.stops = False
    valuer.add_rows(X[55:], y[55:])
    refit = clone(CASES[name]).fit(X, y, X_val=X_val[:done], y_val=y_val[:done])
    assert_same(valuer, refit, X[:3] + 1)


class Fails(Stop):
    """A callback with an error after the first tile."""

    def on_fit_task_end(self, estimator, context):
        raise MemoryError


@pytest.mark.parametrize("name", ["knn", "tknn"])
def test_a_change_that_fails_is_none(name, rng):
    X, y = make(rng, 60, *DATA["float64"])
    X_val, y_val = make(rng, 700, *DATA["float64"])
    valuer = clone(CASES[name]).set_params(store_neighbors=True)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(MemoryError):
        valuer.set_callbacks(Fails()).remove_rows(np.arange(20))
    refit = clone(CASES[name]).fit(X, y, X_val=X_val, y_val=y_val)
    assert_same(valuer.set_callbacks(), refit, X[:3] + 1)
    valuer.remove_rows(np.arange(5))
    refit.fit(X[5:], y[5:], X_val=X_val, y_val=y_val)
    assert_same(valuer, refit, X[:3] + 1)


@pytest.mark.parametrize("name", ["knn", "tknn"])
def test_refusals(name, rng, monkeypatch):
    X, y = make(rng, 30, *DATA["float64"])
    valuer = clone(CASES[name]).set_params(store_neighbors=True, cv=KFold(3))
    with pytest.raises(ValueError, match="store_neighbors=True needs X_val and y_val, or cv='leav"):
        valuer.fit(X, y)
    with pytest.raises(ValueError, match="needs engine='numba' or 'auto'. Got engine='abacus'"):
        clone(valuer).set_params(engine="abacus")._prepare_stores(X)
    valuer.fit(X, y, X_val=X[:9], y_val=y[:9])
    values, kept = valuer.values_.copy(), valuer.neighbors_nbytes_
    with pytest.raises(ValueError, match="y must have one entry a row of X"):
        valuer.add_rows(X[:2], y[:1])
    assert valuer.neighbors_nbytes_ == kept  # nothing is lost
    np.testing.assert_array_equal(valuer.values_, values)
    with pytest.raises(ValueError, match="store_neighbors"):
        clone(valuer).set_params(store_neighbors="yes").fit(X, y)
    monkeypatch.setattr("skvalue.valuers._stored._memory", lambda: kept - 1)
    with pytest.raises(MemoryError, match=f"would keep {kept:,} bytes for 30 rows and 9 val"):
        clone(valuer).fit(X, y, X_val=X[:9], y_val=y[:9])
    assert clone(CASES[name]).fit(X, y).neighbors_nbytes_ == 0


def test_private_fits_store_nothing(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    valuer = TKNNShapleyValuer(epsilon=1.0, store_neighbors=True)
    with pytest.raises(ValueError, match="store_neighbors must be False with epsilon"):
        valuer.fit(X, y, X_val=X[:4], y_val=y[:4])
