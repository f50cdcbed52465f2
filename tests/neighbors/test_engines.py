"""Engines have the same values, on random problems and real sets, on any device."""

import re
import sys

import numpy as np
import pytest
from oracles import check_same
from problems import Problem
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


def check_close(values, expected, tolerance=1e-6):
    """Equal to a fraction of the largest value."""
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=atol)


def as_float64(problem):
    """The same numbers in float64, where no order is left open."""
    X = problem.X.astype(np.float64)
    X_val = problem.X_val
    if X_val is not None:
        X_val = X_val.astype(np.float64)
    return problem._replace(X=X, X_val=X_val)


# Engines on the CPU -------------------------------------------------------------------


def random_problem(seed):
    """A valuer and a problem: grids or normal rows, anywhere, in any precision."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 500)
    n_points = rng.integers(1, 40)
    d = rng.integers(1, 40)
    X = rng.normal(size=(n, d))
    X_val = rng.normal(size=(n_points, d))
    if seed % 3 == 0:
        X = np.round(X)
        X_val = np.round(X_val)
    if seed % 5 == 0:
        X = X + 100
        X_val = X_val + 100
    dtype = [np.float32, np.float64][seed % 2]
    n_classes = int(rng.integers(2, 60 if seed % 7 == 0 else 6))
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    y_val = rng.integers(0, n_classes, n_points)

    metric = ["euclidean", "cosine"][seed // 2 % 2]
    if seed % 4 == 3:
        if metric == "euclidean":
            radius = np.sqrt(2 * d)
        else:
            radius = 0.9 if seed % 5 else 1e-4
        valuer = TKNNShapleyValuer(radius, metric=metric)
    else:
        utility = ["soft", "original"][seed % 2]
        n_neighbors = int(rng.integers(1, 12))
        valuer = KNNShapleyValuer(n_neighbors, metric=metric, utility=utility)
        if seed % 6 == 1:
            y = y + 0.25
            y_val = y_val + 0.25
        elif seed % 6 == 2:
            valuer.set_params(max_rank=15)
    if seed % 8 == 5:
        return valuer, Problem(X.astype(dtype), y, None, None)
    return valuer, Problem(X.astype(dtype), y, X_val.astype(dtype), y_val)


@pytest.mark.parametrize("seeds", [range(24), slow(range(24, 200))], ids=str)
def test_engines_agree_on_random_problems(seeds, engines):
    for seed in seeds:
        valuer, problem = random_problem(seed)
        expected = as_float64(problem).fit(clone(valuer))
        utility = pytest.approx(expected.utility_, abs=1e-6)
        for engine in engines:
            other = clone(valuer).set_params(engine=engine, device="cpu")
            problem.fit(other)
            check_close(other.values_, expected.values_)
            assert other.utility_ == utility, (seed, engine)
            assert not other.approximate_


@pytest.mark.parametrize(("name", "dtype"), [*zip(SETS, 2 * [np.float32, np.float64])])
# The CPU engine is what they are compared with.
@pytest.mark.parametrize("engine", ["torch", "faiss"], indirect=True)
@pytest.mark.parametrize("is_scaled", [False, True])
def test_engines_agree_on_real_sets(name, dtype, engine, is_scaled):
    X, y = SETS[name](return_X_y=True)
    X = X[-300:]
    y = y[-300:]
    if is_scaled:
        X = StandardScaler().fit_transform(X)
    X = X.astype(dtype)
    order = np.random.default_rng(0).permutation(len(X))
    train, val = np.split(order, [len(X) // 2])
    problem = Problem(X[train], y[train], X[val], y[val])
    for valuer in (
        KNNShapleyValuer(5),
        KNNShapleyValuer(5, metric="cosine"),
        TKNNShapleyValuer(0.1),
        TKNNShapleyValuer(float(np.sqrt(X.shape[1])), metric="euclidean"),
    ):
        expected = problem.fit(clone(valuer)).values_
        values = problem.fit(valuer.set_params(engine=engine, device="cpu")).values_
        check_close(values, expected)


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(3), TKNNShapleyValuer(0.3)])
@pytest.mark.parametrize("groups", [None, np.arange(200) % 9], ids=["rows", "groups"])
def test_engines_agree_after_the_fit(valuer, groups, engine, rng):
    X = np.round(rng.normal(size=(300, 4)))
    y = rng.integers(0, 3, 300)
    new = rng.normal(size=(20, 4))
    problem = Problem(X[:200], y[:200], X[200:], y[200:])
    expected = problem.fit(clone(valuer), groups=groups)
    other = clone(valuer).set_params(engine=engine, device="cpu")
    problem.fit(other, groups=groups)
    check_same(other, expected, new, y[:20], rtol=0, atol=1e-9)


def test_new_rows_as_far_as_all_others_are_ranked(engine):
    """All rows are as near as the last rank searched: the search takes all of them."""
    X = np.ones((50, 2))
    y = np.arange(50) % 2
    new = np.zeros((3, 2))
    problem = Problem(X, y, new + 0.5, [0, 1, 1])
    valuer = problem.fit(KNNShapleyValuer(3, engine=engine, device="cpu"))
    expected = problem.fit(KNNShapleyValuer(3)).score_samples(new)
    check_close(valuer.score_samples(new), expected)


def test_far_out_ties_do_not_depend_on_the_engine(engine, rng):
    # Rows beyond the ranks that are resolved exactly, all of them twice.
    X = np.repeat(rng.normal(size=(3000, 6)).astype(np.float32), 2, axis=0)
    y = np.repeat(rng.integers(0, 2, 3000), 2)
    problem = Problem(X, y, X[:40] + np.float32(0.1), y[:40])
    values = problem.fit(KNNShapleyValuer(5, engine=engine, device="cpu")).values_
    exact = as_float64(problem).fit(KNNShapleyValuer(5)).values_
    check_close(values, exact, 1e-5)
    np.testing.assert_allclose(values[::2][:40], values[1::2][:40], rtol=1e-9)


def test_torch_ignores_lower_precision_allowed_elsewhere(rng):
    torch = pytest.importorskip("torch")
    X = rng.normal(size=(500, 64)).astype(np.float32)
    y = rng.integers(0, 2, 500)
    expected = KNNShapleyValuer(5).fit(X, y).values_
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        values = KNNShapleyValuer(5, engine="torch").fit(X, y).values_
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    check_close(values, expected)


@pytest.mark.parametrize("regression", [False, True])
def test_new_rows_are_ranked_tile_by_tile(engine, regression, rng, monkeypatch):
    X = rng.normal(size=(600, 3))
    y = rng.integers(0, 2, 600) + 0.5 * regression
    valuer = KNNShapleyValuer(5, engine=engine, device="cpu")
    valuer.fit(X, y, X_val=X[:90] + 0.1, y_val=y[:90])
    new = X[:90] + 0.2
    expected_scores = valuer.score_samples(new, y[:90])
    expected_means = valuer.transform(new)
    sizes = []
    engine = get_engine(engine, "cpu")
    rank_one_tile = type(engine).ranks

    def watched(self, space, points, *args):
        sizes.append(len(points))
        return rank_one_tile(self, space, points, *args)

    monkeypatch.setattr(type(engine), "ranks", watched)
    with config_context(working_memory=0.2):
        scores = valuer.score_samples(new, y[:90])
        means = valuer.transform(new)
        room = engine.rank_tile_size(600, 90, 3, 1, 5)
    assert sum(sizes) >= 90
    assert max(sizes) <= room < 90
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(means, expected_means, rtol=0, atol=1e-12)


# Approximate search -------------------------------------------------------------------


@pytest.fixture
def crowded_problem(rng):
    """Rows around 40 centres, and points around the same."""
    pytest.importorskip("faiss")
    centres = rng.normal(size=(40, 16)) * 3

    def draw(n):
        X = centres[rng.integers(0, 40, n)] + rng.normal(size=(n, 16))
        return X.astype(np.float32)

    X = draw(5000)
    Q = draw(100)
    y = rng.integers(0, 2, len(X))
    return Problem(X, y, Q, y[:100])


METRICS = pytest.mark.parametrize("metric", ["euclidean", "cosine"])


@METRICS
def test_inverted_files_find_most_neighbours(metric, crowded_problem):
    X, _, Q, _ = crowded_problem
    space = make_space(X, metric)
    rows = []
    for _, order in ranks(get_engine("faiss-ivf"), space, Q, None, 20):
        block = order.rows[:, :20]
        rows.extend(np.where(block < 0, ~block, block))
    search = NearestNeighbors(n_neighbors=20, metric=metric, algorithm="brute").fit(X)
    exact = search.kneighbors(Q, return_distance=False)
    recalls = [len(set(a) & set(b)) / 20 for a, b in zip(rows, exact)]
    assert 0.95 < np.mean(recalls) <= 1


@METRICS
def test_values_by_inverted_files_are_close_to_exact_ones(metric, crowded_problem):
    valuer = KNNShapleyValuer(5, max_rank=20, metric=metric)
    exact = crowded_problem.fit(clone(valuer))
    approximate = crowded_problem.fit(valuer.set_params(engine="faiss-ivf"))
    assert approximate.approximate_
    assert not exact.approximate_
    assert np.corrcoef(approximate.values_, exact.values_)[0, 1] > 0.95


@METRICS
def test_values_by_inverted_files_are_efficient(metric, crowded_problem):
    valuer = KNNShapleyValuer(5, max_rank=20, metric=metric, engine="faiss-ivf")
    crowded_problem.fit(valuer)
    total = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(total, abs=1e-9)
    assert np.isfinite(valuer.transform(crowded_problem.X_val[:5])).all()


def test_inverted_files_with_more_ranks_than_the_groups_searched_hold(rng):
    pytest.importorskip("faiss")
    X = rng.normal(size=(3000, 3))
    y = rng.integers(0, 2, 3000)
    problem = Problem(X, y, X[:9] + 0.1, y[:9])
    valuer = KNNShapleyValuer(5, max_rank=2500)
    exact = problem.fit(clone(valuer)).values_
    values = problem.fit(valuer.set_params(engine="faiss-ivf")).values_
    check_close(values, exact)


@pytest.mark.parametrize("repeats", [1, 40])
def test_faiss_keeps_to_the_memory(repeats, rng, monkeypatch):
    faiss = pytest.importorskip("faiss")
    engine = get_engine("faiss", "cpu")
    sizes = []
    search = faiss.IndexFlat.search

    def watched(self, queries, k):
        sizes.append(len(queries) * k)
        return search(self, queries, k)

    monkeypatch.setattr(faiss.IndexFlat, "search", watched)
    X = np.repeat(rng.normal(size=(2000 // repeats, 3)), repeats, axis=0)
    points = X[rng.integers(0, 2000, 300)]
    ranked_points = []
    with config_context(working_memory=1):
        space = make_space(X, "euclidean")
        for places, order in engine.ranks(space, points, None, 50):
            ranked_points.extend(places)
            # No copy of a ranked row is left out.
            assert (order.n_ranked % repeats == 0).all()
            assert (order.n_ranked == (50 if repeats == 1 else 80)).all()
    assert sorted(ranked_points) == list(range(300))
    assert 0 < max(sizes) <= 2**20 // 384


def test_few_ranks_of_many_points_are_one_search_of_faiss():
    """Whatever the number of rows."""
    pytest.importorskip("faiss")
    engine = get_engine("faiss", "cpu")
    assert engine.rank_tile_size(10**6, 10**4, 8, 1, 50) == 10**4


# What is refused ----------------------------------------------------------------------


def test_auto_is_an_exact_engine():
    assert get_engine("auto").name == "native"
    assert {"faiss-ivf"} == APPROXIMATE


@pytest.mark.parametrize("name", sorted(set(ENGINES) - {"native"}))
def test_a_missing_engine_says_how_to_install_it(name, monkeypatch):
    library = "torch" if name == "torch" else "faiss"
    monkeypatch.setitem(sys.modules, library, None)
    for module in ENGINES.values():
        monkeypatch.delitem(sys.modules, module, raising=False)
    message = (
        f"engine={name!r} needs {library}, which is not installed: "
        f"pip install 'skvalue[{library}]'"
    )
    with pytest.raises(ImportError, match=re.escape(message)):
        KNNShapleyValuer(1, max_rank=1, engine=name).fit([[0.0], [1.0]], [0, 1])


@pytest.fixture
def rows_in(rng, tmp_path):
    """Rows in memory, sparse, in a file, and too large for float32."""
    pytest.importorskip("torch")
    pytest.importorskip("faiss")
    X = rng.normal(size=(30, 3))
    disk = np.memmap(tmp_path / "rows", X.dtype, "w+", shape=X.shape)
    disk[:] = X
    return {"memory": X, "sparse": csr_array(X), "file": disk, "large": X * 1e25}


LABELS = np.arange(30) % 2


@pytest.mark.parametrize(
    ("parameters", "place", "message"),
    [
        (dict(engine="faiss", metric="manhattan"), "memory", "metric must be"),
        (
            dict(engine="faiss-ivf"),
            "memory",
            "engine is approximate and needs max_rank",
        ),
        (dict(engine="torch"), "sparse", "engine='torch' does not take sparse X"),
        (dict(engine="faiss"), "sparse", "engine='faiss' does not take sparse X"),
        (dict(engine="faiss"), "file", "engine='faiss' takes X in memory"),
        (
            dict(engine="native", device="cuda"),
            "memory",
            "engine='native' runs on the CPU",
        ),
        (dict(device="tpu"), "memory", "'device' parameter"),
        (
            dict(engine="faiss"),
            "large",
            "X must have squared norms that fit float32",
        ),
    ],
    ids=str,
)
def test_an_engine_that_does_not_fit_the_rows_is_refused(
    parameters, place, message, rows_in
):
    valuer = KNNShapleyValuer(2, **parameters)
    with pytest.raises(ValueError, match=message):
        valuer.fit(rows_in[place], LABELS)


def test_an_approximate_engine_of_a_regression_is_refused(rows_in):
    valuer = KNNShapleyValuer(2, engine="faiss-ivf", max_rank=9)
    with pytest.raises(ValueError, match="engine is approximate and needs classes"):
        valuer.fit(rows_in["memory"], LABELS + 0.5)


def test_counts_of_an_approximate_engine_are_refused(rows_in):
    with pytest.raises(ValueError, match="'engine' parameter"):
        TKNNShapleyValuer(engine="faiss-ivf").fit(rows_in["memory"], LABELS)
    with pytest.raises(ValueError, match="only ranks neighbours"):
        get_engine("faiss-ivf").balls(None, None, 1.0)


@pytest.mark.parametrize("engine", ["auto", "torch", "faiss"])
def test_a_device_that_is_not_there_is_refused(engine, no_gpu):
    pytest.importorskip("faiss")
    valuer = KNNShapleyValuer(engine=engine, device="cuda")
    with pytest.raises(ValueError, match="device='cuda' needs a .*GPU that .* sees"):
        valuer.fit(np.eye(4), [0, 1, 0, 1])


# GPUs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(6), slow(range(6, 50))], ids=str)
def test_a_gpu_agrees_on_random_problems(seeds, gpu):
    for seed in seeds:
        valuer, problem = random_problem(seed)
        expected = problem.fit(clone(valuer)).values_
        values = problem.fit(clone(valuer).set_params(device="cuda")).values_
        check_close(values, expected)


@pytest.mark.parametrize("name", ["digits", *map(slow, ["iris", "wine", "cancer"])])
@pytest.mark.parametrize("valuer", [KNNShapleyValuer(5), TKNNShapleyValuer(0.1)])
def test_a_gpu_agrees_on_real_sets(name, valuer, gpu):
    X, y = SETS[name](return_X_y=True)
    X = X[-300:]
    y = y[-300:]
    expected = clone(valuer).fit(X, y).values_
    check_close(clone(valuer).set_params(device="cuda").fit(X, y).values_, expected)
