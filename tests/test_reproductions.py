"""What only redoes a paper's figures: plain functions of examples/reproductions/."""

import importlib
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skvalue import GradientSemivalueValuer, KNNShapleyValuer
from skvalue.priarta import PriArTaScorer
from skvalue.privacy import get_epsilon

ROOT = Path(__file__).resolve().parents[1]
REPRODUCTIONS = ROOT / "examples" / "reproductions"


@pytest.fixture
def script(request, monkeypatch):
    monkeypatch.syspath_prepend(REPRODUCTIONS)
    return importlib.import_module(request.param)


def of(name):
    return pytest.mark.parametrize("script", [name], indirect=True, ids=[name])


# DP-KNN-Shapley ---------------------------------------------------------------------------------


def values_by_rank(match, k):
    n = len(match)
    steps = [0.0, 0.0] + [1 / (j * (j - 1)) for j in range(2, n + 1)]
    return np.array([
        match[r - 1] / max(r, k) - sum(match[j - 1] * steps[j] for j in range(max(r, k) + 1, n + 1))
        for r in range(1, n + 1)
    ])  # fmt: skip


@of("private_knn")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_row_changes_others_by_more_than_the_sensitivities(k, script):
    one = joint = 0.0
    for n in range(1, 7):
        for match in product((0, 1), repeat=n):
            before = values_by_rank(match, k)
            for place, new in product(range(n + 1), (0, 1)):
                after = values_by_rank((*match[:place], new, *match[place:]), k)
                change = np.delete(after, place) - before
                one = max(one, np.abs(change).max())
                joint = max(joint, np.linalg.norm(change))
    assert one == pytest.approx(script.value_sensitivity(k))
    assert 0.8 * script.joint_sensitivity(k) < joint <= script.joint_sensitivity(k)


@of("private_knn")
def test_joint_sensitivity_is_its_sum(script):
    for k in (1, 4, 50, 1000, 1001, 3000):
        r = np.arange(k + 1.0, 1e6)
        total = 1 / (k * (k + 1) ** 2) + (1 / (r * (r + 1)) ** 2).sum()
        assert total <= script.joint_sensitivity(k) ** 2 <= 1.01 * total


@of("private_knn")
def test_noise_is_on_the_values_of_the_original_game(script, rng):
    X, X_val = rng.normal(size=(40, 3)), rng.normal(size=(12, 3))
    data = X, rng.integers(0, 3, 40), X_val, np.arange(12) % 3
    valuer = KNNShapleyValuer(4, metric="cosine", utility="original")
    exact = valuer.fit(*data[:2], X_val=data[2], y_val=data[3]).values_
    np.testing.assert_allclose(script.sampled_values(*data, 4, 1.0), exact, atol=1e-12)
    assert not np.allclose(script.sampled_values(*data, 4, 0.5), exact)
    settings = {"n_neighbors": 4, "delta": 1e-5}
    little = script.noisy_knn_values(*data, epsilon=1e4, **settings)
    np.testing.assert_allclose(little, exact, atol=0.01)
    noise = script.value_noise(1.0, 1e-5, 4)
    assert (noise.sensitivity, get_epsilon(noise, 1e-5)) == (0.05, pytest.approx(1.0))
    draws = [script.noisy_knn_values(*data, epsilon=1.0, **settings) - exact for _ in range(50)]
    assert np.std(draws) == pytest.approx(noise.scale, rel=0.1)  # four standard errors
    draws = script.noisy_knn_values(*data, epsilon=1.0, sampling_rate=0.1, **settings)
    assert np.abs(draws).max() < 6 * noise.scale


# Private TKNN -----------------------------------------------------------------------------------


@of("private_tknn_sizes")
def test_sizes_of_private_values(script, monkeypatch, capsys):
    small = ["--sets", "wine", "--epsilons", "3", "--seeds", "1", "--draws", "1"]
    parts = ["--without", "smoothing", "the factor", "truncation"]
    monkeypatch.setattr("sys.argv", ["private_tknn_sizes.py", *small, *parts])
    script.main()
    printed = capsys.readouterr().out.splitlines()
    tables = [line.split("|")[1:-1] for line in printed if line.startswith("| mean")]
    sizes = np.array([row[1:] for row in tables[:4]], dtype=float)
    assert (sizes[:, 0] < 0.6 * sizes[:, 1]).all()  # nearer to the exact values than the baseline
    assert len({row[1] for row in tables[:4]}) == 4  # each part does something
    assert len(tables[4]) == 6


# Private gradients ------------------------------------------------------------------------------


class Recorder(BaseEstimator):
    """Values that are what is asked of it."""

    calls: list = []

    def __init__(self, random_state=None, n_permutations=1, noise=""):
        self.random_state = random_state
        self.n_permutations = n_permutations
        self.noise = noise

    def fit(self, X, y):
        self.calls.append(self.get_params())
        self.values_ = np.array([0.5, 1.0])
        self.values_error_ = np.full(2, 0.1 * self.n_permutations)
        return self


@of("gradient_figures")
def test_uncertainty_fits_every_point(script):
    Recorder.calls.clear()
    curves = script.uncertainty_curve(
        Recorder(), [[0.0]], [0], n_permutations=[2, 4], noises={"a": {"noise": "x"}, "b": {}},
        n_repeats=3, random_state=0,
    )  # fmt: skip
    assert len(Recorder.calls) == 12
    assert {call["noise"] for call in Recorder.calls} == {"x", ""}
    seeds = [call["random_state"] for call in Recorder.calls if call["noise"] == "x"]
    assert len(set(seeds)) == 3  # one a repeat, the same for all points
    np.testing.assert_allclose(curves.uncertainty["a"], [[0.06, 0.24]] * 3)
    np.testing.assert_allclose(curves.mean_value["b"], 0.75)


@of("gradient_figures")
def test_noise_makes_values_worse_with_more_permutations_unless_averaged(script, rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    curves = script.uncertainty_curve(
        GradientSemivalueValuer("logistic", learning_rate=0.05, noise_multiplier=2.0),
        X[:40], y[:40], X_val=X[40:], y_val=y[40:], n_permutations=[20, 320], random_state=0,
        noises={"iid": {"noise": "iid"}, "averaged": {"noise": "correlated"}},
    )  # fmt: skip
    iid, averaged = (curves.mean_value[name][0] for name in ("iid", "averaged"))
    assert iid[1] < 4 * iid[0] < 0
    assert abs(averaged[1]) < abs(iid[1]) / 10


@of("gradient_figures")
def test_noise_alone_sets_the_distance(script):
    # Clean gradients do not vary: what is left is the noise, of variance k sigma^2 p / t.
    k, p = 64, 50
    settings = dict(n_parties=400, n_parameters=p, noise_multiplier=2.0, random_state=0)
    found = script.release_closeness(k, gradient_sd=0.0, **settings)
    expected = 2.0 * np.sqrt(k / np.arange(1, k + 1)) * np.sqrt(p)
    np.testing.assert_allclose(found.distance, expected, rtol=0.03)
    iid = script.release_closeness(k, noise="iid", gradient_sd=0.0, **settings)
    np.testing.assert_allclose(iid.distance, 2.0 * np.sqrt(k * p), rtol=0.03)
    assert found.cosine[-1] > 3 * np.abs(iid.cosine).mean()


@of("gradient_figures")
def test_the_best_mean_is_best_where_gradients_vary(script):
    options = {"noise_multiplier": 0.02, "gradient_sd": 0.2, "n_parties": 400, "random_state": 0}
    last = {
        name: script.release_closeness(100, noise=name, **options).distance[-30:].mean()
        for name in script.NOISES
    }
    assert last["optimal"] < min(last["iid"], last["correlated"])


@of("gradient_figures")
def test_figures_are_printed_and_drawn(script, monkeypatch, capsys):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    monkeypatch.setattr("sys.argv", ["gradient_figures.py", "--permutations", "20"])
    script.main()
    printed = capsys.readouterr().out
    assert [printed.count(f"\n| {name} ") for name in script.NOISES] == [2, 2, 2]
    closeness = {name: script.release_closeness(10, noise=name) for name in ("iid", "optimal")}
    script.plot_closeness(figure.add_subplot(), closeness, "distance")
    numbers = {"one": np.array([[1.0, 4.0], [3.0, 8.0]])}
    curves = script.Bunch(n_permutations=[10, 20], uncertainty=numbers, mean_value=numbers)
    script.plot_uncertainty(figure.add_subplot(), curves)
    distances, uncertainty = (ax.lines[0].get_ydata() for ax in figure.axes)
    np.testing.assert_array_equal(distances, closeness["iid"].distance)
    np.testing.assert_allclose(uncertainty, [2.0, 6.0])


@of("gradient_tables")
def test_errors_over_permutations_are_too_small_where_noise_is_averaged(script, rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    data = X[:20], y[:20], X[20:], y[20:]
    stated = [
        script.stated_by_permutations(
            GradientSemivalueValuer(
                n_permutations=k, noise=noise, noise_multiplier=1.0, burn_in=0.0, learning_rate=0.1
            ),
            *data,
        )
        for noise in ("iid", "correlated") for k in (10, 160)
    ]  # fmt: skip
    assert stated[1] > stated[0]
    assert stated[3] < stated[2] / 4


@of("gradient_parties")
def test_a_direction_that_is_retaken_finds_bad_parties_too(script, rng):
    X, y = rng.normal(size=(140, 3)), rng.integers(0, 2, 140)
    X[:, 0] += 4 * y
    owner = np.arange(100) // 10
    y[:30] = 1 - y[:30]
    for retaken in (False, True):
        values = script.values_along(
            X[:100], y[:100], owner, X[100:], y[100:], 10, 0.1, 0.01, 0, retaken
        )
        assert values[:3].max() < values[3:].min(), retaken


# Errata -----------------------------------------------------------------------------------------


@of("errata")
def test_errata_are_on_the_page(script, capsys):
    script.main()
    printed = capsys.readouterr().out
    page = (ROOT / "doc" / "user_guide" / "errata.rst").read_text(encoding="utf-8")
    for line in printed.splitlines():
        assert f"\n{line.split()[0]}. " in page, line
    for figure in ("1.098 for three", "0.879 for two", "delta 5e-5: 2.19", "1.20 exactly", "41.2"):
        assert figure in printed
    for name in re.findall(r"``(?:tests/)?([a-z_/]+\.py)``", page):
        assert list(ROOT.glob(f"tests/**/{name}")) or list(ROOT.glob(f"examples/**/{name}")), name


# Layered Shapley, PriArTa -----------------------------------------------------------------------


@of("layered_figures")
def test_the_published_scale_of_layered_values(script):
    inflated = script.published_scale(100, 1.0, bound=0.5)
    assert inflated == pytest.approx(0.601, abs=5e-4)
    clamped = script.published_scale(100, 1.0, bound=0.5, clamp=True)
    assert inflated / clamped == pytest.approx(11.6, 0.01)
    assert clamped == pytest.approx(0.0518, abs=5e-5)


@of("priarta_mechanisms")
def test_the_published_noise_on_rows_hardly_moves_distances(script, rng):
    buyer, seller = script.rows(rng, 2000, 4), script.rows(rng, 2000, 4, 0.3)
    scorer = PriArTaScorer(max_norm=1.0, mean_weight=0.6).fit(buyer)
    found = [script.published_score(scorer.model_, buyer, seller) for _ in range(5)]
    np.testing.assert_allclose(found, scorer.transform([seller])[0, 0], atol=0.01)
    scale = script.paper_scale(0.8, 1e-5, 2000, 1.0)
    rows = scorer.model_.transform(seller)
    noisy = rows + scale * rng.normal(size=rows.shape)
    assert 0 < np.linalg.norm(noisy.mean(axis=0) - rows.mean(axis=0)) < 0.01


# Imbalance ---------------------------------------------------------------------------------------


@of("imbalance")
@pytest.mark.slow
def test_remedies_for_imbalance_cost_nothing_on_clean_labels(script, monkeypatch, capsys):
    sizes = {"rules": (0.05, "negative"), "n_train": 1000}
    results = [script.measure("creditcard", None, 0.0, seed, **sizes) for seed in range(3)]
    means = script.print_table("creditcard", 0.0, results)
    assert means["KNN", 0.05][0] > 0.9
    assert means["KNN", 0.05][1] < -0.05
    costs = script.largest_costs({"creditcard": means})
    assert len(costs) == 7 * 3
    for (remedy, model), (cost, *where) in costs.items():
        if model == "LR" or remedy == "KNN, both":
            assert cost <= 0.01, (remedy, model, where)
    _, areas = script.measure("creditcard", None, 0.05, 0, **sizes)
    assert areas["KNN"][0] > 0.9
    assert min(areas["KNN, balanced"][1:]) > min(areas["KNN"][1:])
    monkeypatch.setattr("sys.argv", ["imbalance.py", "--sets", "adult", "--seeds", "1"])
    script.main()
    assert "adult: no adult.npz in --data=None: left out" in capsys.readouterr().out
