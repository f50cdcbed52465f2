"""Engines against each other: the same values on random problems and real sets, on any
device."""

import re
import sys

import numpy as np
import pytest
from oracles import check_same
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import APPROXIMATE, ENGINES, get_engine, make_space, ranks

SETS = {
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
}


def slow(*values):
    """A case of a table that is not in the default tier."""
    return pytest.param(*values, marks=pytest.mark.slow)


def close(values, expected, tolerance=1e-6):
    """Equal to 1e-6 of the largest value."""
    np.testing.assert_allclose(
        values, expected, rtol=0, atol=tolerance * np.abs(expected).max()
    )


def random_problem(seed):
    """A valuer and a problem: grids or normal rows, far from the origin or not, any
    precision."""
    rng = np.random.default_rng(seed)
    n, n_points, d = rng.integers(20, 500), rng.integers(1, 40), rng.integers(1, 40)
    X, X_val = rng.normal(size=(n, d)), rng.normal(size=(n_points, d))
    if seed % 3 == 0:
        X, X_val = np.round(X), np.round(X_val)
    if seed % 5 == 0:
        X, X_val = X + 100, X_val + 100
    dtype = [np.float32, np.float64][seed % 2]
    n_classes = int(rng.integers(2, 60 if seed % 7 == 0 else 6))
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    y_val = rng.integers(0, n_classes, n_points)
    metric = ["euclidean", "cosine"][seed // 2 % 2]
    if seed % 4 == 3:
        radius = np.sqrt(2 * d) if metric == "euclidean" else 0.9 if seed % 5 else 1e-4
        valuer = TKNNShapleyValuer(radius, metric=metric)
    else:
        utility = ["soft", "original"][seed % 2]
        valuer = KNNShapleyValuer(
            int(rng.integers(1, 12)), metric=metric, utility=utility
        )
        if seed % 6 == 1:
            y, y_val = y + 0.25, y_val + 0.25
        elif seed % 6 == 2:
            valuer.set_params(max_rank=15)
    if seed % 8 == 5:
        return valuer, (X.astype(dtype), y), {}
    return valuer, (X.astype(dtype), y), dict(X_val=X_val.astype(dtype), y_val=y_val)


@pytest.mark.parametrize("seeds", [range(24), slow(range(24, 200))], ids=str)
def test_engines_agree_on_random_problems(seeds, engines):
    for seed in seeds:
        valuer, rows, points = random_problem(seed)
        # The same numbers in float64, where no order is left open.
        doubles = {
            name: np.asarray(value, np.float64) for name, value in points.items()
        }
        expected = clone(valuer).fit(rows[0].astype(np.float64), rows[1], **doubles)
        for engine in engines:
            other = (
                clone(valuer)
                .set_params(engine=engine, device="cpu")
                .fit(*rows, **points)
            )
            close(other.values_, expected.values_)
            assert other.utility_ == pytest.approx(expected.utility_, abs=1e-6), (
                seed,
                engine,
            )
            assert not other.approximate_


@pytest.mark.parametrize(("name", "dtype"), [*zip(SETS, 2 * [np.float32, np.float64])])
@pytest.mark.parametrize("engine", ["torch", "faiss"], indirect=True)  # next to numba
def test_engines_agree_on_real_sets(name, dtype, engine):
    X, y = SETS[name](return_X_y=True)
    X, y = X[-300:], y[-300:]
    for rows in (X.astype(dtype), StandardScaler().fit_transform(X).astype(dtype)):
        half = len(X) // 2
        order = np.random.default_rng(0).permutation(len(X))
        train, val = order[:half], order[half:]
        for valuer in (
            KNNShapleyValuer(5),
            KNNShapleyValuer(5, metric="cosine"),
            TKNNShapleyValuer(0.1),
            TKNNShapleyValuer(float(np.sqrt(rows.shape[1])), metric="euclidean"),
        ):
            points = dict(X_val=rows[val], y_val=y[val])
            expected = clone(valuer).fit(rows[train], y[train], **points).values_
            valuer.set_params(engine=engine, device="cpu").fit(
                rows[train], y[train], **points
            )
            close(valuer.values_, expected)


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(3), TKNNShapleyValuer(0.3)])
def test_all_else_that_a_valuer_does(valuer, engine, rng):
    X, y = np.round(rng.normal(size=(300, 4))), rng.integers(0, 3, 300)
    new, points = rng.normal(size=(20, 4)), dict(X_val=X[200:], y_val=y[200:])
    other = clone(valuer).set_params(engine=engine, device="cpu")
    for groups in (np.arange(200) % 9, None):
        for fitted in (valuer, other):
            fitted.fit(X[:200], y[:200], groups=groups, **points)
        check_same(other, valuer, new, y[:20], rtol=0, atol=1e-9)


def test_a_search_that_finds_no_end(engine):
    """All rows are as near as the last rank searched: the search goes on, without a
    point."""
    X, y, new = np.ones((50, 2)), np.arange(50) % 2, np.zeros((3, 2))
    points = dict(X_val=new + 0.5, y_val=[0, 1, 1])
    valuer = KNNShapleyValuer(3, engine=engine, device="cpu").fit(X, y, **points)
    expected = KNNShapleyValuer(3).fit(X, y, **points).score_samples(new)
    close(valuer.score_samples(new), expected)


def test_far_out_ties_do_not_depend_on_the_engine(engine, rng):
    # Rows beyond the ranks that are resolved exactly, all of them twice.
    X = np.repeat(rng.normal(size=(3000, 6)).astype(np.float32), 2, axis=0)
    y = np.repeat(rng.integers(0, 2, 3000), 2)
    valuer, X_val = (
        KNNShapleyValuer(5, engine=engine, device="cpu"),
        X[:40] + np.float32(0.1),
    )
    valuer.fit(X, y, X_val=X_val, y_val=y[:40])
    exact = KNNShapleyValuer(5).fit(
        X.astype(float), y, X_val=X_val.astype(float), y_val=y[:40]
    )
    close(valuer.values_, exact.values_, 1e-5)
    np.testing.assert_allclose(
        valuer.values_[::2][:40], valuer.values_[1::2][:40], rtol=1e-9
    )


def test_torch_ignores_lower_precision_allowed_elsewhere(rng):
    torch = pytest.importorskip("torch")
    X = rng.normal(size=(500, 64)).astype(np.float32)
    y = rng.integers(0, 2, 500)
    expected = KNNShapleyValuer(5).fit(X, y).values_
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        close(KNNShapleyValuer(5, engine="torch").fit(X, y).values_, expected)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_inverted_files_find_most_neighbours(metric, rng):
    pytest.importorskip("faiss")
    centres = rng.normal(size=(40, 16)) * 3
    X = (centres[rng.integers(0, 40, 5000)] + rng.normal(size=(5000, 16))).astype(
        np.float32
    )
    Q = (centres[rng.integers(0, 40, 100)] + rng.normal(size=(100, 16))).astype(
        np.float32
    )
    found = []
    for _, (order, _) in ranks(
        get_engine("faiss-ivf"), make_space(X, metric), Q, None, 20
    ):
        found.extend(np.where(order < 0, ~order, order)[:, :20])
    exact = NearestNeighbors(n_neighbors=20, metric=metric, algorithm="brute").fit(X)
    exact = exact.kneighbors(Q, return_distance=False)
    recall = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(found, exact)])
    assert 0.95 < recall <= 1
    y = rng.integers(0, 2, len(X))
    points = dict(X_val=Q, y_val=y[:100])
    valuer = KNNShapleyValuer(5, max_rank=20, metric=metric, engine="faiss-ivf").fit(
        X, y, **points
    )
    exact = KNNShapleyValuer(5, max_rank=20, metric=metric).fit(X, y, **points)
    assert valuer.approximate_
    assert not exact.approximate_
    assert np.corrcoef(valuer.values_, exact.values_)[0, 1] > 0.95
    total = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(total, abs=1e-9)
    assert np.isfinite(valuer.transform(Q[:5])).all()


def test_inverted_files_with_more_ranks_than_the_groups_searched_hold(rng):
    pytest.importorskip("faiss")
    X, y = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    valuer = KNNShapleyValuer(5, max_rank=2500, engine="faiss-ivf")
    valuer.fit(X, y, X_val=X[:9] + 0.1, y_val=y[:9])
    exact = KNNShapleyValuer(5, max_rank=2500).fit(X, y, X_val=X[:9] + 0.1, y_val=y[:9])
    close(valuer.values_, exact.values_)


def test_auto_is_exact():
    assert get_engine("auto").name == "numba"
    assert {"faiss-ivf"} == APPROXIMATE


@pytest.mark.parametrize("name", sorted(set(ENGINES) - {"numba"}))
def test_a_missing_engine_says_how_to_install_it(name, monkeypatch):
    library = "torch" if name == "torch" else "faiss"
    monkeypatch.setitem(sys.modules, library, None)
    for other in ENGINES.values():
        monkeypatch.delitem(sys.modules, other, raising=False)
    message = (
        f"engine={name!r} needs {library}, which is not installed: pip install 'skvalue"
    )
    with pytest.raises(ImportError, match=re.escape(f"{message}[{library}]'")):
        KNNShapleyValuer(1, max_rank=1, engine=name).fit([[0.0], [1.0]], [0, 1])


def test_refused(rng, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("faiss")
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    thin, disk = (
        csr_array(X),
        np.memmap(tmp_path / "rows", X.dtype, "w+", shape=X.shape),
    )
    disk[:] = X
    private = dict(valuer=TKNNShapleyValuer(epsilon=1.0), X_val=X, y_val=y)
    for parameters, rows, target, message in [
        (dict(engine="faiss", metric="manhattan"), X, y, "metric must be"),
        (dict(engine="faiss-ivf"), X, y, "engine is approximate and needs max_rank"),
        (
            dict(engine="faiss-ivf", max_rank=9),
            X,
            y + 0.5,
            "engine is approximate and needs classes",
        ),
        (dict(engine="torch"), thin, y, "engine='torch' does not take sparse X"),
        (dict(engine="faiss"), thin, y, "engine='faiss' does not take sparse X"),
        (dict(engine="faiss"), disk, y, "engine='faiss' takes X in memory"),
        (dict(engine="numba", device="cuda"), X, y, "engine='numba' runs on the CPU"),
        (dict(device="tpu"), X, y, "'device' parameter"),
        (
            dict(engine="faiss"),
            X * 1e25,
            y,
            "X must have squared norms that fit float32",
        ),
        (private, thin, y, "epsilon must be None for sparse X, rows in a file"),
        (private, disk, y, "epsilon must be None for sparse X, rows in a file"),
        (
            private | dict(engine="torch"),
            X,
            y,
            "engine must be 'numba' or 'auto' with epsilon",
        ),
        (
            dict(valuer=TKNNShapleyValuer(), engine="faiss-ivf"),
            X,
            y,
            "'engine' parameter",
        ),
    ]:
        parameters = {"valuer": KNNShapleyValuer(2), **parameters}
        points = {
            name: parameters.pop(name)
            for name in ("X_val", "y_val")
            if name in parameters
        }
        with pytest.raises(ValueError, match=message):
            clone(parameters.pop("valuer")).set_params(**parameters).fit(
                rows, target, **points
            )
    with pytest.raises(ValueError, match="only ranks neighbours"):
        get_engine("faiss-ivf").balls(None, None, 1.0)


@pytest.mark.parametrize("engine", ["auto", "torch", "faiss"])
def test_a_device_that_is_not_there_is_refused(engine, no_gpu):
    pytest.importorskip("faiss")
    with pytest.raises(ValueError, match="device='cuda' needs a .*GPU that .* sees"):
        KNNShapleyValuer(engine=engine, device="cuda").fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("seeds", [range(6), slow(range(6, 50))], ids=str)
def test_a_gpu_agrees_on_random_problems(seeds, gpu):
    for seed in seeds:
        valuer, rows, points = random_problem(seed)
        expected = clone(valuer).fit(*rows, **points)
        other = clone(valuer).set_params(device="cuda").fit(*rows, **points)
        close(other.values_, expected.values_)


@pytest.mark.parametrize("name", ["digits", *map(slow, ["iris", "wine", "cancer"])])
def test_a_gpu_agrees_on_real_sets(name, gpu):
    X, y = SETS[name](return_X_y=True)
    X, y = X[-300:], y[-300:]
    for valuer in (KNNShapleyValuer(5), TKNNShapleyValuer(0.1)):
        expected = valuer.fit(X, y).values_
        close(clone(valuer).set_params(device="cuda").fit(X, y).values_, expected)


class StrictIndex:
    """An index as on a GPU: it searches for few neighbours in few groups, and within no
    range."""

    most_groups = 2048

    def __init__(self, index):
        self.index, self.nlist = index, getattr(index, "nlist", None)

    def search(self, queries, k):
        assert k <= 2048
        if self.nlist:
            assert self.nprobe <= self.most_groups
            self.index.nprobe = self.nprobe
        return self.index.search(queries, k)


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu), "simulated"])
def faiss_gpu(request, monkeypatch):
    """Faiss sees a GPU: a real one, where there is one, and one that is simulated."""
    faiss = pytest.importorskip("faiss")
    if request.param == "cuda":
        if getattr(faiss, "get_num_gpus", lambda: 0)() == 0:
            pytest.skip("faiss sees no GPU")
        return []
    moved = []

    def move(resources, device, index):
        moved.append(StrictIndex(index))
        moved[-1].nprobe = getattr(index, "nprobe", None)
        return moved[-1]

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", move, raising=False)
    return moved


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_faiss_on_a_gpu_agrees(metric, rng, faiss_gpu):
    X, y = rng.normal(size=(3000, 16)), rng.integers(0, 2, 3000)
    points = dict(X_val=X[:100] + 0.01, y_val=y[:100])
    for max_rank in (50, 2100):  # more than a GPU gives go by the CPU
        valuer = KNNShapleyValuer(5, max_rank=max_rank, metric=metric, device="cpu")
        expected = valuer.fit(X, y, **points).values_
        valuer.set_params(engine="faiss", device="cuda")
        close(valuer.fit(X, y, **points).values_, expected)
    valuer = TKNNShapleyValuer("auto", metric=metric)
    expected = valuer.fit(X, y, **points).values_
    valuer.set_params(engine="faiss", device="cuda")
    close(valuer.fit(X, y, **points).values_, expected)


def test_a_gpu_can_search_all_groups(rng, faiss_gpu, monkeypatch):
    """Where the groups nearest to a point hold fewer than `max_rank` rows."""
    engine = type(get_engine("faiss-ivf", "cuda"))
    monkeypatch.setattr(engine, "max_gpu_groups", 20)  # in place of 2048, for few rows
    monkeypatch.setattr(StrictIndex, "most_groups", 20)
    X, y = rng.normal(size=(2300, 4)).astype(np.float32), rng.integers(0, 2, 2300)
    points = dict(X_val=X[:200] + 0.1, y_val=y[:200])
    valuer = KNNShapleyValuer(5, max_rank=2000)
    expected = valuer.fit(X, y, **points).values_
    valuer.set_params(engine="faiss-ivf", device="cuda")
    close(valuer.fit(X, y, **points).values_, expected)
    assert [index.nlist for index in faiss_gpu] in ([], [20])


@pytest.mark.parametrize("regression", [False, True])
def test_new_rows_are_ranked_tile_by_tile(engine, regression, rng, monkeypatch):
    X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600) + 0.5 * regression
    valuer = KNNShapleyValuer(5, engine=engine, device="cpu")
    valuer.fit(X, y, X_val=X[:90] + 0.1, y_val=y[:90])
    new, labels = X[:90] + 0.2, y[:90]
    expected = valuer.score_samples(new, labels), valuer.transform(new)
    working = get_engine(engine, "cpu")
    sizes, one_tile = [], type(working).ranks

    def watched(self, space, points, *args):
        sizes.append(len(points))
        return one_tile(self, space, points, *args)

    monkeypatch.setattr(type(working), "ranks", watched)
    with config_context(working_memory=0.2):
        found = valuer.score_samples(new, labels), valuer.transform(new)
        room = working.rank_tile_size(600, 90, 3, 1, 5)
    assert sum(sizes) >= 90
    assert max(sizes) <= room < 90
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("repeats", [1, 40])
def test_faiss_keeps_to_the_memory(repeats, rng, monkeypatch):
    """Few ranks of many points go together, whatever the number of rows."""
    faiss = pytest.importorskip("faiss")
    engine, sizes = get_engine("faiss", "cpu"), []
    assert engine.rank_tile_size(10**6, 10**4, 8, 1, 50) == 10**4
    search = faiss.IndexFlat.search

    def watched(self, queries, k):
        sizes.append(len(queries) * k)
        return search(self, queries, k)

    monkeypatch.setattr(faiss.IndexFlat, "search", watched)
    X = np.repeat(rng.normal(size=(2000 // repeats, 3)), repeats, axis=0)
    seen, points = [], X[rng.integers(0, 2000, 300)]

    with config_context(working_memory=1):
        space = make_space(X, "euclidean")
        for places, (_, n_ranked) in engine.ranks(space, points, None, 50):
            seen.extend(places)
            assert (n_ranked % repeats == 0).all()  # none of those as near is left out
            assert (n_ranked == (50 if repeats == 1 else 80)).all()
    assert sorted(seen) == list(range(300))
    assert 0 < max(sizes) <= 2**20 // 384


def test_an_approximate_search_on_a_gpu(rng, faiss_gpu):
    X, y = rng.normal(size=(3000, 4)).astype(np.float32), rng.integers(0, 2, 3000)
    points = dict(X_val=X[:30] + 0.01, y_val=y[:30])
    for max_rank in (20, 2500):
        on = {
            device: KNNShapleyValuer(
                5, max_rank=max_rank, engine="faiss-ivf", device=device
            )
            .fit(X, y, **points)
            .values_
            for device in ("cpu", "cuda")
        }
        np.testing.assert_allclose(on["cuda"], on["cpu"], atol=1e-6)
