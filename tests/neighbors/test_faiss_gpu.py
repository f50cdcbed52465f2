"""The FAISS engine on a GPU: on a real one where there is one, and simulated."""

import os
from importlib import metadata

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

faiss = pytest.importorskip("faiss")
pytest.importorskip("torch")

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import (
    get_engine,
    make_space,
    ranks,
    release_gpu_memory,
)
from skvalue.privacy import SeededNoiseWarning

from ..conftest import simulate_a_gpu
from ..problems import Problem

METRICS = pytest.mark.parametrize("metric", ["euclidean", "cosine"])
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.NoiseExceedsSignalWarning"),
]


@pytest.fixture
def card(monkeypatch):
    """What FAISS does on the simulated card."""
    simulate_a_gpu(monkeypatch)
    from .. import simulated_faiss

    release_gpu_memory()
    yield simulated_faiss.install(monkeypatch)
    release_gpu_memory()


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu), "simulated"])
def any_card(request):
    """A real card, or the simulated one."""
    if request.param == "simulated":
        return request.getfixturevalue("card")
    if getattr(faiss, "get_num_gpus", lambda: 0)() == 0:
        pytest.skip("faiss sees no GPU")
    return None


@pytest.fixture
def many_rows(rng):
    X = rng.normal(size=(1500, 16)).astype(np.float32).round(1)
    # Copies, and rows at equal distances.
    X[700:900] = X[:200]
    y = rng.integers(0, 3, len(X))
    return Problem(X, y, X[:60] + np.float32(0.05), y[:60])


def check_close(values, expected):
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def fit_on_card(valuer, problem):
    return problem.fit(clone(valuer).set_params(engine="faiss", device="cuda"))


# Values -------------------------------------------------------------------------------

VALUERS = {
    "all ranks": KNNShapleyValuer(5),
    "few ranks": KNNShapleyValuer(5, max_rank=50),
    "more ranks than a search returns": KNNShapleyValuer(5, max_rank=1400),
    "balls": TKNNShapleyValuer(3.0),
    "balls of the rule": TKNNShapleyValuer("auto"),
}


@METRICS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", VALUERS)
def test_values_are_those_of_the_cpu(name, dtype, metric, many_rows, any_card):
    valuer = clone(VALUERS[name]).set_params(metric=metric)
    if metric == "cosine" and name == "balls":
        valuer.set_params(radius=0.6)
    problem = many_rows._replace(
        X=many_rows.X.astype(dtype), X_val=many_rows.X_val.astype(dtype)
    )
    expected = problem.fit(clone(valuer).set_params(device="cpu")).values_
    check_close(fit_on_card(valuer, problem).values_, expected)


@pytest.mark.parametrize("name", VALUERS)
def test_values_without_validation_points_are_those_of_the_cpu(
    name, many_rows, any_card
):
    """Each row is left out at itself."""
    X = many_rows.X[:400]
    y = many_rows.y[:400]
    valuer = clone(VALUERS[name])
    if valuer.get_params().get("max_rank") == 1400:
        valuer.set_params(max_rank=300)
    expected = clone(valuer).fit(X, y).values_
    on_card = clone(valuer).set_params(engine="faiss", device="cuda").fit(X, y)
    check_close(on_card.values_, expected)


@pytest.mark.parametrize("name", ["all ranks", "balls"])
def test_groups_and_new_rows_are_valued_as_on_the_cpu(name, many_rows, any_card):
    valuer = clone(VALUERS[name])
    groups = np.arange(len(many_rows.y)) % 7
    new = many_rows.X[:20] + np.float32(0.3)
    expected = many_rows.fit(clone(valuer), groups=groups)
    on_card = many_rows.fit(
        clone(valuer).set_params(engine="faiss", device="cuda"), groups=groups
    )
    check_close(on_card.values_, expected.values_)
    check_close(on_card.score_samples(new), expected.score_samples(new))


@METRICS
@pytest.mark.parametrize("d", [64, pytest.param(4096, marks=pytest.mark.slow)])
def test_near_ties_of_many_columns_are_resolved(d, metric, rng, card):
    """Where the sums of a card round most: columns that are never negative."""
    n_rows = 300
    X = np.maximum(rng.normal(size=(n_rows, d)), 0).astype(np.float32)
    # Rows that differ in the last digit of one column.
    X[1::2] = X[::2]
    X[1::2, 0] = np.nextafter(X[::2, 0], np.float32(9))
    points = np.maximum(rng.normal(size=(12, d)), 0).astype(np.float32)
    space = make_space(X, metric)

    orders = {}
    for engine in (get_engine("native"), get_engine("faiss", "cuda")):
        order = np.empty((len(points), n_rows), dtype=int)
        for places, block in ranks(engine, make_space(X, metric), points):
            order[places] = np.where(block.rows < 0, ~block.rows, block.rows)
        orders[engine.name] = order

    exact = X.astype(np.float64)
    q = points.astype(np.float64)
    if space.metric == "cosine":
        keys = (
            -(q / np.linalg.norm(q, axis=1)[:, None])
            @ (exact / np.linalg.norm(exact, axis=1)[:, None]).T
        )
    else:
        keys = ((q[:, None] - exact) ** 2).sum(axis=2)
    for order in orders.values():
        sorted_keys = np.take_along_axis(keys, order, axis=1)
        # Of float64, not of float32.
        assert (np.diff(sorted_keys, axis=1) >= -1e-12 * np.abs(keys).max()).all()


def test_the_tolerance_covers_the_sums_of_a_card(rng, card):
    """That of the page on GPUs; of products of all sizes, against float64."""
    from ..simulated_faiss import card_products

    eps = np.finfo(np.float32).eps
    for d in (8, 128, 1024, 4096):
        X = np.maximum(rng.normal(size=(100, d)), 0).astype(np.float32)
        X /= np.linalg.norm(X, axis=1)[:, None]
        exact = X[:20].astype(np.float64) @ X.T.astype(np.float64)
        error = np.abs(card_products(X[:20], X) - exact).max()
        assert error < eps * (8 + np.sqrt(d)) / 2


@pytest.mark.parametrize("engine", ["torch", "faiss"])
@pytest.mark.parametrize(
    "options",
    [{}, {"max_contributions": 3}, {"sampling_rate": 0.2, "denoise": False}],
    ids=["all balls", "capped", "sampled"],
)
def test_private_counts_are_those_of_the_cpu(engine, options, many_rows, card):
    """To the bit, with equal noise."""
    options = {"denoise": True, "max_contributions": None, **options}
    valuer = TKNNShapleyValuer(
        3.0,
        metric="euclidean",
        epsilon=1.0,
        delta=1e-5,
        noise_random_state=0,
        **options,
    )
    with pytest.warns(SeededNoiseWarning):
        on_cpu = many_rows.fit(clone(valuer).set_params(engine="native"))
    with pytest.warns(SeededNoiseWarning):
        on_card = many_rows.fit(clone(valuer).set_params(engine=engine, device="cuda"))

    np.testing.assert_array_equal(on_card.counts_, on_cpu.counts_)
    assert on_card.engine_ == engine
    new = many_rows.X[:5] + np.float32(0.2)
    check_close(on_card.score_samples(new), on_cpu.score_samples(new))


SIZES = [1e-140, 1e-60, 1e-25, 1e-22, 1e-19, 1e-15]
SIZES += [1e15, 1e18, 1e19, 1e25, 1e39, 1e140]


@METRICS
@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", ["all ranks", "few ranks", "balls"])
def test_float64_rows_have_the_values_of_the_cpu_or_do_not_fit_float32(
    name, device, metric, rng, card
):
    """Of any size: those that FAISS cannot compute with in float32 are refused."""
    X = rng.normal(size=(80, 3))
    problem = Problem(X, rng.integers(0, 2, 80), X[:9] + 0.3, rng.integers(0, 2, 9))
    valuer = clone(VALUERS[name]).set_params(metric=metric)
    of_size = {size: (X * size, problem.X_val * size, size) for size in SIZES}
    one_row = X.copy()
    one_row[3] *= 1e25
    one_point = problem.X_val.copy()
    one_point[3] *= 1e25
    of_size["one row"] = one_row, problem.X_val, 1.0
    of_size["one point"] = X, one_point, 1.0

    refused = {}
    for size, (rows, points, unit) in of_size.items():
        scaled = problem._replace(X=rows, X_val=points)
        if name == "balls":
            valuer.set_params(radius=0.5 if metric == "cosine" else 1.2 * unit)
        expected = scaled.fit(clone(valuer)).values_
        try:
            fitted = clone(valuer).set_params(engine="faiss", device=device)
            values = scaled.fit(fitted).values_
        except ValueError as error:
            refused[size] = str(error)
            continue
        check_close(values, expected)

    for message in refused.values():
        assert "must have squared norms that fit float32" in message
    if metric == "cosine":
        assert refused == {}
    else:
        assert {1e19, 1e25, 1e39, 1e140, "one row", "one point"} <= set(refused)
        assert not {1e-15, 1e15} & set(refused)


# What is done on the card -------------------------------------------------------------


@pytest.mark.parametrize("name", VALUERS)
def test_the_work_is_done_on_the_card(name, many_rows, card):
    fit_on_card(VALUERS[name], many_rows)
    n_rows = len(many_rows.X)
    n_points = len(many_rows.X_val)

    assert len(card.temporary) == 1
    n_pairs = sum(n * m for n, m in card.products)
    if name == "few ranks":
        # But for points whose last rank is tied with many rows.
        assert sum(n for n, _ in card.searches) >= n_points
        assert n_pairs < n_rows * n_points / 4
    else:
        assert n_pairs >= n_rows * n_points


def value_without_points(valuer, problem):
    """By the valuer's `cv`."""
    return valuer.fit(problem.X, problem.y)


def value_with_points(valuer, problem):
    return problem.fit(valuer)


def value_groups(valuer, problem):
    return problem.fit(valuer, groups=np.arange(len(problem.y)) % 7)


NATIVE = ("native", "cpu")

# A valuer, how it is called, and whether the values of new rows are looked at.
CALLS = {
    "TKNN": (TKNNShapleyValuer("auto"), None),
    "TKNN, leave-one-out": (TKNNShapleyValuer("auto"), value_without_points),
    "TKNN, cv": (TKNNShapleyValuer("auto", cv=2), value_without_points),
    "TKNN, groups": (TKNNShapleyValuer("auto"), value_groups),
    "private TKNN": (TKNNShapleyValuer("auto", epsilon=1.0), None),
    "private TKNN, groups": (TKNNShapleyValuer("auto", epsilon=1.0), value_groups),
    "KNN": (KNNShapleyValuer(5), None),
    "KNN, leave-one-out": (KNNShapleyValuer(5), value_without_points),
    "KNN, cv": (KNNShapleyValuer(5, cv=2), value_without_points),
    "KNN, groups": (KNNShapleyValuer(5), value_groups),
    "KNN, max_rank": (KNNShapleyValuer(5, max_rank=20), None),
    "KNN, max_rank, cv": (KNNShapleyValuer(5, max_rank=20, cv=2), value_without_points),
    "KNN, max_rank, groups": (KNNShapleyValuer(5, max_rank=20), value_groups),
}


@METRICS
@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize("d", [24, pytest.param(4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_goes_to_the_card(name, d, metric, rng, card):
    """Fits and values of new rows, with ties, copies and rows that differ in a digit.

    Counts and values of TKNN are those of the CPU to the bit, and so are ranks: values
    of KNN are sums of the same terms, in another order where the card adds them.
    """
    X = np.maximum(rng.normal(size=(240, d)), 0).astype(np.float32)
    X[100:140] = X[:40]
    X[140:180] = X[:40]
    X[140:180, 0] = np.nextafter(X[:40, 0], np.float32(9))
    y = rng.integers(0, 3, len(X))
    problem = Problem(X, y, X[:30] + np.float32(0.01), y[:30])
    new = X[:6] * np.float32(1.25)
    valuer, call = CALLS[name]
    valuer = clone(valuer).set_params(metric=metric)
    if valuer.get_params().get("epsilon"):
        valuer.set_params(noise_random_state=0)

    def fitted(**engine):
        valuer_there = clone(valuer).set_params(**engine)
        if call is None:
            return problem.fit(valuer_there)
        return call(valuer_there, problem)

    on_cpu = fitted()
    on_card = fitted(engine="faiss", device="cuda")
    n_of_fit = len(card.products) + len(card.searches)
    assert n_of_fit > 0
    values_of_new = on_card.score_samples(new)
    assert len(card.products) + len(card.searches) > n_of_fit
    assert len(card.temporary) == 1

    if isinstance(valuer, TKNNShapleyValuer):
        np.testing.assert_array_equal(on_card.counts_, on_cpu.counts_)
        assert on_card.utility_ == on_cpu.utility_
        np.testing.assert_array_equal(on_card.values_, on_cpu.values_)
    scale = np.abs(on_cpu.values_).max()
    np.testing.assert_allclose(on_card.values_, on_cpu.values_, atol=1e-14 * scale)
    expected = on_cpu.score_samples(new)
    # The CPU adds those of KNN.
    np.testing.assert_array_equal(values_of_new, expected)


@METRICS
@pytest.mark.parametrize(
    ("n_rows", "max_rank", "d"),
    [
        (240, None, 24),
        (240, 20, 24),
        (240, None, 512),
        (240, 20, 512),
        pytest.param(240, None, 4096, marks=pytest.mark.slow),
        pytest.param(240, 20, 4096, marks=pytest.mark.slow),
        (4096, None, 16),
        (6000, 1024, 16),
    ],
)
def test_ranks_are_those_of_the_cpu_to_the_bit(n_rows, max_rank, d, metric, rng, card):
    """With ties between copies, and rows that differ in one digit."""
    X = np.maximum(rng.normal(size=(n_rows, d)), 0).astype(np.float32)
    X[100:140] = X[:40]
    X[140:180] = X[:40]
    X[140:180, 0] = np.nextafter(X[:40, 0], np.float32(9))
    points = X[:30] + np.float32(0.01)
    sets = []
    for engine in (get_engine("native"), get_engine("faiss", "cuda")):
        of_engine = {}
        blocks = ranks(engine, make_space(X, metric), points, max_rank=max_rank)
        for places, order in blocks:
            for place, rows, n_ranked in zip(places, order.rows, order.n_ranked):
                # Tied rows are in any order: the first of a run is not negative.
                run = np.cumsum(rows[:n_ranked] >= 0)
                numbers = np.where(rows < 0, ~rows, rows)[:n_ranked]
                of_engine[place] = sorted(zip(run.tolist(), numbers.tolist()))
        sets.append(of_engine)
    assert sets[0] == sets[1]
    assert len(sets[0]) == len(points)


@pytest.mark.parametrize("name", VALUERS)
def test_the_engine_and_the_device_are_said(name, many_rows, card):
    on_card = fit_on_card(VALUERS[name], many_rows)
    on_cpu = many_rows.fit(clone(VALUERS[name]))

    assert (on_card.engine_, on_card.device_) == (
        "faiss",
        get_engine("torch", "cuda").device,
    )
    assert (on_cpu.engine_, on_cpu.device_) == ("native", "cpu")


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "engine", [{}, {"engine": "faiss", "device": "cuda"}], ids=["auto", "card"]
)
def test_the_log_says_engine_and_device(name, engine, rng, card, caplog):
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = rng.integers(0, 2, 60)
    problem = Problem(X, y, X[:10] + np.float32(0.1), y[:10])
    valuer, call = CALLS[name]
    valuer = clone(valuer).set_params(**engine)
    if call is None:
        call = value_with_points

    with caplog.at_level("INFO", logger="skvalue"):
        call(valuer, problem)
        valuer.score_samples(X[:2] + 1)
    said = "engine {!r} on device {!r}.".format(
        *(("faiss", get_engine("torch", "cuda").device) if engine else NATIVE)
    )
    name = type(valuer).__name__
    assert caplog.messages == [f"{name}.fit: {said}", f"{name}.score_samples: {said}"]


def test_the_log_is_silent_of_estimated_costs(many_rows, caplog):
    with caplog.at_level("INFO", logger="skvalue"):
        KNNShapleyValuer(5).estimate_cost(
            many_rows.X, many_rows.y, X_val=many_rows.X_val, y_val=many_rows.y_val
        )
    assert caplog.messages == []


# engine="auto" ------------------------------------------------------------------------


@pytest.mark.parametrize("name", VALUERS)
def test_auto_is_torch_on_the_card_that_is_asked_for(name, many_rows, card):
    on_card = many_rows.fit(clone(VALUERS[name]).set_params(device="cuda"))
    assert (on_card.engine_, on_card.device_) == (
        "torch",
        get_engine("torch", "cuda").device,
    )


@pytest.fixture
def large_problems_on_the_card(monkeypatch):
    """As if a card had been measured: from a million multiplications it is faster."""
    monkeypatch.setattr("skvalue._utils.measured.GPU_FROM", 10**6)


LARGE = (700, 100, 16)
SMALL = (600, 100, 16)


@pytest.mark.parametrize("cls", [KNNShapleyValuer, TKNNShapleyValuer])
@pytest.mark.parametrize(
    ("size", "engine"), [(LARGE, "torch"), (SMALL, "native")], ids=["large", "small"]
)
def test_auto_is_the_card_for_large_problems(
    cls, size, engine, rng, card, large_problems_on_the_card
):
    n_rows, n_points, d = size
    X = rng.normal(size=(n_rows, d)).astype(np.float32)
    y = rng.integers(0, 2, n_rows)
    problem = Problem(X, y, X[:n_points], y[:n_points])
    valuer = problem.fit(cls())
    assert valuer.engine_ == engine
    on_cpu = problem.fit(cls(device="cpu"))
    assert on_cpu.engine_ == "native"
    check_close(valuer.values_, on_cpu.values_)
    new = X[:3] + 1
    check_close(valuer.score_samples(new), on_cpu.score_samples(new))
    cost = cls().estimate_cost(X, y, X_val=problem.X_val, y_val=problem.y_val)
    assert cost.solver == engine


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize(
    "valuer",
    [
        TKNNShapleyValuer(0.5, epsilon=1.0, noise_random_state=0),
        KNNShapleyValuer(metric="manhattan"),
        KNNShapleyValuer(utility="hard"),
        KNNShapleyValuer(engine="native"),
    ],
    ids=["private", "another metric", "votes", "engine by name"],
)
def test_auto_is_the_cpu_for_what_a_card_does_not_gain(
    valuer, rng, card, large_problems_on_the_card
):
    n_rows, n_points, d = LARGE
    X = rng.normal(size=(n_rows, d)).astype(np.float32)
    y = rng.integers(0, 2, n_rows)
    problem = Problem(X, y, X[:n_points], y[:n_points])
    assert problem.fit(clone(valuer)).engine_ == "native"


def test_auto_is_the_cpu_without_a_card(rng, large_problems_on_the_card, no_gpu):
    n_rows, n_points, d = LARGE
    X = rng.normal(size=(n_rows, d)).astype(np.float32)
    y = rng.integers(0, 2, n_rows)
    problem = Problem(X, y, X[:n_points], y[:n_points])
    assert problem.fit(KNNShapleyValuer()).engine_ == "native"


def test_resources_are_made_once_for_all_splits_and_calls(many_rows, card):
    with config_context(working_memory=64):
        valuer = KNNShapleyValuer(5, cv=3, engine="faiss", device="cuda")
        valuer.fit(many_rows.X, many_rows.y)
        valuer.score_samples(many_rows.X[:3] + 1)
        fit_on_card(TKNNShapleyValuer(3.0), many_rows)

    assert card.temporary == [64 * 2**20]


def test_released_memory_is_allocated_again(many_rows, card):
    fit_on_card(KNNShapleyValuer(5), many_rows)
    release_gpu_memory()
    fit_on_card(KNNShapleyValuer(5), many_rows)

    assert len(card.temporary) == 2


@pytest.mark.parametrize("name", ["all ranks", "balls"])
def test_rows_are_copied_to_the_card_once(name, many_rows, card, monkeypatch):
    engine = type(get_engine("faiss", "cuda"))
    sizes = []
    to_device = engine.to_device

    def watched(self, array):
        sizes.append(np.asarray(array).size)
        return to_device(self, array)

    monkeypatch.setattr(engine, "to_device", watched)
    fit_on_card(VALUERS[name], many_rows)
    assert sizes.count(many_rows.X.size) == 1


@pytest.mark.parametrize("name", VALUERS)
def test_tiles_are_halved_where_memory_is_short(name, many_rows, card):
    expected = many_rows.fit(clone(VALUERS[name])).values_
    valuer = clone(VALUERS[name]).set_params(engine="faiss", device="cuda")
    get_engine("faiss", "cuda")
    card.out_of_memory = 2
    check_close(many_rows.fit(valuer).values_, expected)
    assert card.out_of_memory == 0


@pytest.mark.parametrize("name", ["all ranks", "few ranks", "balls"])
def test_too_little_memory_is_refused(name, many_rows, card):
    card.out_of_memory = 1000
    with pytest.raises(MemoryError, match="device='cuda' has too little free memory"):
        fit_on_card(VALUERS[name], many_rows)


def test_a_forked_process_is_refused(many_rows, card, monkeypatch):
    fit_on_card(KNNShapleyValuer(5), many_rows)
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    with pytest.raises(RuntimeError, match="forked process cannot use the GPU"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


# Refusals -----------------------------------------------------------------------------


def set_wheels(monkeypatch, *names):
    """Let these packages be the ones that install faiss."""
    version = metadata.version

    def watched(name):
        if name in names:
            return "1.15.1"
        if name.startswith("faiss"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", watched)


@pytest.mark.parametrize(
    ("wheel", "capability", "is_refused"),
    [
        ("faiss-gpu-cu12", (9, 0), True),
        ("faiss-gpu-cu12", (12, 0), True),
        ("faiss-gpu-cu12", (8, 9), False),
        ("faiss-gpu-cu12", (6, 1), True),
        ("faiss-gpu", (9, 0), False),
        ("faiss-gpu", (12, 0), False),
        ("faiss-gpu", (6, 1), True),
    ],
)
def test_a_card_that_the_wheel_has_no_code_for_is_refused(
    wheel, capability, is_refused, many_rows, card, monkeypatch
):
    import torch

    set_wheels(monkeypatch, wheel)
    module = type(torch.get_device_module("simulated"))
    monkeypatch.setattr(module, "get_device_capability", lambda self: capability)
    if not is_refused:
        fit_on_card(KNNShapleyValuer(5), many_rows)
        return
    major, minor = capability
    with pytest.raises(ValueError, match=rf"{wheel} has code .* Got {major}\.{minor}"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


def test_two_packages_of_faiss_are_refused(many_rows, card, monkeypatch):
    set_wheels(monkeypatch, "faiss-cpu", "faiss-gpu")
    with pytest.raises(ImportError, match="Got faiss-cpu and faiss-gpu"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


def test_an_unknown_build_that_ends_its_process_is_refused(
    many_rows, card, monkeypatch
):
    """The trial is a process of its own, which has no card here."""
    set_wheels(monkeypatch)
    with pytest.raises(ValueError, match="build of FAISS does not run on this card"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


def test_a_build_for_cpus_is_refused(many_rows, monkeypatch):
    simulate_a_gpu(monkeypatch)
    if hasattr(faiss, "StandardGpuResources"):
        pytest.skip("this faiss is built for GPUs")
    with pytest.raises(ValueError, match="needs a build of FAISS for GPUs"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


def test_tensor_float_32_is_refused(many_rows, card, monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    with pytest.raises(ValueError, match="NVIDIA_TF32_OVERRIDE must not be 1"):
        fit_on_card(KNNShapleyValuer(5), many_rows)


# The approximate engine ---------------------------------------------------------------


@pytest.fixture
def of_two_classes(rng):
    X = rng.normal(size=(2300, 4)).astype(np.float32)
    y = rng.integers(0, 2, 2300)
    return Problem(X, y, X[:200] + 0.1, y[:200])


def test_a_gpu_can_search_all_groups(of_two_classes, card, monkeypatch):
    """Where the groups nearest to a point hold fewer than `max_rank` rows."""
    from .. import simulated_faiss

    # In place of 2048, for few rows.
    engine = type(get_engine("faiss-ivf", "cuda"))
    monkeypatch.setattr(engine, "max_gpu_groups", 20)
    monkeypatch.setattr(simulated_faiss.StrictIndex, "max_groups", 20)
    valuer = KNNShapleyValuer(5, max_rank=2000)
    expected = of_two_classes.fit(clone(valuer)).values_
    valuer.set_params(engine="faiss-ivf", device="cuda")
    check_close(of_two_classes.fit(valuer).values_, expected)
    assert [index.nlist for index in card.indices] == [20]


def test_an_approximate_search_on_a_gpu_is_that_on_the_cpu(of_two_classes, any_card):
    valuer = KNNShapleyValuer(5, max_rank=20, engine="faiss-ivf")
    on_cpu = of_two_classes.fit(clone(valuer).set_params(device="cpu")).values_
    on_gpu = of_two_classes.fit(clone(valuer).set_params(device="cuda")).values_
    np.testing.assert_allclose(on_gpu, on_cpu, atol=1e-6)


def test_more_approximate_ranks_than_a_gpu_gives_are_refused(of_two_classes, card):
    """They do not go to the CPU."""
    valuer = KNNShapleyValuer(5, max_rank=2100, engine="faiss-ivf", device="cuda")
    with pytest.raises(ValueError, match="max_rank must be at most 2046"):
        of_two_classes.fit(valuer)
