"""What only redoes a paper's figures: plain functions of examples/reproductions/."""

import importlib
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skvalue import GradientSemivalueValuer, KNNShapleyValuer
from skvalue.games import ModelGame
from skvalue.priarta import PriArTaScorer
from skvalue.privacy import get_epsilon
from skvalue.semivalues import size_weights, tabulated_semivalue

ROOT = Path(__file__).resolve().parents[1]
REPRODUCTIONS = ROOT / "examples" / "reproductions"


@pytest.fixture
def script(request, monkeypatch):
    monkeypatch.syspath_prepend(REPRODUCTIONS)
    return importlib.import_module(request.param)


def of(name):
    return pytest.mark.parametrize("script", [name], indirect=True, ids=[name])


# Membership inference ----------------------------------------------------------------------------


@of("private_tknn_tables")
def test_membership_uses_both_distributions(script, rng):
    # With line 6 as printed there would be no OUT values: a value that only the presence of the
    # row lowers could not be seen. Here it is seen without error.
    X, y = rng.normal(size=(200, 2)), np.zeros(200)

    def score(X, y, X_new, y_new):
        there = np.array([(row == X).all(axis=1).any() for row in X_new])
        return 1.0 - 0.5 * there + 0.01 * np.cos(np.arange(len(X_new)) + X.sum())

    statistics, members = script.membership_inference(score, X, y, 40, 32, 0)
    assert members.sum() == 20
    assert statistics[members].min() > statistics[~members].max()


@of("private_tknn_tables")
def test_membership_of_values_that_tell_nothing(script, rng):
    X, y = rng.normal(size=(200, 2)), np.zeros(200)
    aurocs = []
    for seed in range(40):
        statistics, members = script.membership_inference(
            lambda X, y, X_new, y_new: rng.normal(size=len(X_new)), X, y, 40, 8, seed
        )
        aurocs.append((statistics[members][:, None] > statistics[~members]).mean())
    assert abs(np.mean(aurocs) - 0.5) < 5 * np.std(aurocs) / 40**0.5


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


@pytest.mark.slow
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
    assert len({tuple(row[1:]) for row in tables[:4]}) == 4  # each part does something
    assert len(tables[4]) == 6


@of("private_tknn_sizes")
def test_sets_without_a_folder_are_fetched(script, monkeypatch, capsys):
    asked, rng = [], np.random.default_rng(0)

    def fetched(name, **options):
        asked.append((name, options))
        y = np.repeat(["tested_negative", "tested_positive"], 60)
        X = np.hstack([(y == "tested_positive")[:, None], rng.normal(size=(120, 2))])
        return X, y

    monkeypatch.setattr(script, "fetch_openml", fetched)
    monkeypatch.setattr(script, "fetch_covtype", lambda return_X_y: fetched("covertype"))
    sets = ["--sets", "pima", "mnist", "covertype", "agnews_minilm"]
    monkeypatch.setattr("sys.argv", ["sizes", *sets, "--epsilons", "3", "--seeds", "1"])
    monkeypatch.setattr(script, "print_sizes", lambda games, *_: print(*games))
    monkeypatch.setattr(script, "print_detection", lambda games, _: print(len(games)))
    script.main()
    assert "\npima mnist covertype\n" in capsys.readouterr().out  # no vectors of texts
    assert [name for name, _ in asked] == ["diabetes", "mnist_784", "covertype"]
    options = {"version": 1, "as_frame": False, "parser": "liac-arff", "return_X_y": True}
    assert asked[0][1] == options  # which needs no pandas


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


SLOW_ERRATA = ["T4", "T5", "T6"]  # their accountant takes seconds


def shown(script, labels):
    return {label: "\n".join(script.ERRATA[label]()) for label in labels}


@of("errata")
def test_errata_are_on_the_page(script):
    page = (ROOT / "doc" / "user_guide" / "errata.rst").read_text(encoding="utf-8")
    assert re.findall(r"^([A-Z]\d+)\. ", page, re.MULTILINE) == list(script.ERRATA)
    for label in script.ERRATA:
        assert f"``errata.py {label}``" in page, label
    for name in re.findall(r"``(?:tests/)?([a-z_/]+\.py)[ A-Z0-9]*``", page):
        assert list(ROOT.glob(f"tests/**/{name}")) or list(ROOT.glob(f"examples/**/{name}")), name


@of("errata")
def test_errata_are_shown(script):
    printed = shown(script, [label for label in script.ERRATA if label not in SLOW_ERRATA])
    for label, figures in {
        "T1": ["1.098 for three", "0.879 for two"], "T2": ["325 of 325"],
        "T3": ["3 for an added row", "1 for an added row, 2 for a replaced"],
        "T8": ["0.66", "4.38"], "T9": ["'out': 0", "'out': 32"],
        "T10": ["printed [1.0, -0.5], enumerated [0.5, -0.5], ours [0.5, -0.5]"],
        "L2": ["0.186, stated 0.05", "0.006, stated 0.05"], "L3": ["0.0119"],
        "L5": ["probability 19; scale 0.601"], "L6": ["0.091", "0.182"],
        "L7": ["100 rows: 0.401 at C = 1, 0.005 at C = 1/k, stated 0.02"], "L8": ["4.59", "6.89"],
        "L9": ["accuracy 0\n", "accuracy 1"], "L10": ["0.026"],
        "G2": ["first weight 0.502, variance 0.293"], "G3": ["delta 5e-5: 2.19"],
        "G5": ["36 times", "100 times"], "S2": ["1.20 exactly"],
        "S4": ["with logarithms: 0, without: 3"], "P1": ["41.2"], "P2": ["4.0000 found"],
    }.items():  # fmt: skip
        for figure in figures:
            assert figure in printed[label], (label, figure)
    assert all(float(line.split()[3]) == float(line.split()[6]) for line in script.G4())
    assert min(float(v) for v in re.findall(r"neighbour.*: ([\d.e-]+);", printed["T7"])) > 0


@of("errata")
@pytest.mark.slow
def test_errata_of_samples(script):
    printed = shown(script, SLOW_ERRATA)
    for label, figures in {
        "T4": ["add_remove: epsilon 1.83", "replace: epsilon 2.84"],
        "T5": ["each: epsilon 0.91", "all: epsilon 138"],
        "T6": ["37.3 without samples, 44.9 at rate 0.1, 114.4 at rate 0.01"],
    }.items():
        for figure in figures:
            assert figure in printed[label], (label, figure)


@of("errata")
def test_errata_by_label(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["errata.py", "L10", "S3"])
    script.main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["L10", "S3"]
    monkeypatch.setattr("sys.argv", ["errata.py", "Z1"])
    with pytest.raises(SystemExit):
        script.main()
    assert "LABEL must be one of T1, T2" in capsys.readouterr().err


# Layered Shapley, PriArTa -----------------------------------------------------------------------


@of("layered_figures")
def test_the_published_scale_of_layered_values(script):
    inflated = script.published_scale(100, 1.0, bound=0.5)
    assert inflated == pytest.approx(0.601, abs=5e-4)
    clamped = script.published_scale(100, 1.0, bound=0.5, clamp=True)
    assert inflated / clamped == pytest.approx(11.6, 0.01)
    assert clamped == pytest.approx(0.0518, abs=5e-5)


@of("layered_private")
def test_private_layered_values_beside_what_is_free(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "SETS", {"synthetic": (60, 80)})
    monkeypatch.setattr(script, "PENALTIES", (1.0,))
    monkeypatch.setattr(script, "DEPTHS", (3,))
    script.print_cells(["synthetic"], None, n_draws=3)
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split()[:3] == ["synthetic", "1", "3"]
    predicted, summed, private = map(float, rows[2].split()[3:6])
    assert min(predicted, private) < 0.5 < summed  # 60 rows: the noise is larger than layer 0
    assert private < 0.5 * summed
    assert rows[3].startswith("Worst: ")


@of("layered_budgets")
@pytest.mark.filterwarnings("ignore:The values are based on")
def test_layered_values_at_equal_budgets(script, monkeypatch, capsys, rng, tmp_path):
    X = rng.normal(size=(100, 3))
    np.savez(tmp_path / "phoneme.npz", X=X, y=X[:, 0] + rng.normal(size=100) > 0)
    monkeypatch.setattr(script, "N_VAL", 40)
    utility = ModelGame.utility
    script.print_budgets(tmp_path, n=20, budget=300, reference=3000, seeds=2)
    script.print_defaults(tmp_path, n=20)
    assert ModelGame.utility is utility
    printed = capsys.readouterr().out
    rows = [row.rsplit(maxsplit=6) for row in printed.splitlines()[3:6]]
    assert [row[0] for row in rows] == list(script.METHODS)
    assert rows[0][4:] == ["1.00"] * 3
    n_rows = np.array([float(row[2]) for row in rows])
    assert n_rows[2] < n_rows[1] < 300 * 20  # "bound" prefers small coalitions
    assert "Default fits, 20 rows" in printed


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


# Several semivalues ------------------------------------------------------------------------------


@of("several_semivalues")
def test_several_semivalues_from_one_fit(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "GAMES", {"adult": (*script.GAMES["adult"][:2], 30, 0)})
    monkeypatch.setattr(script, "TARGETS", ["shapley", "banzhaf"])
    X = np.random.default_rng(0).normal(size=(90, 3))
    data = X[:30], X[:30, 0] > 0, X[30:], X[30:, 0] > 0
    monkeypatch.setattr(script, "load", lambda name, folder, n: data)
    script.main(["--sets", "adult", "--seeds", "1", "--coalitions", "1100"])
    _, *rows = capsys.readouterr().out.splitlines()
    plain, adjusted = ([float(cell) for cell in row.split("|")[3:5]] for row in rows)
    assert plain[0] == pytest.approx(1, abs=0.01)
    assert plain[1] > 1.5
    assert adjusted[0] < 0.8


# In-run values ------------------------------------------------------------------------------------


@of("in_run_tables")
def test_figures_of_in_run_values(script, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    monkeypatch.setattr(script, "load", lambda name, folder: (X, (X[:, 0] > 0).astype(int)))
    script.main(
        ["--sets", "adult", "--sizes", "150", "--epsilons", "100", "--draws", "1", "--steps", "2"]
    )
    line = capsys.readouterr().out.splitlines()[-1]
    none, private, *_ = map(float, line.replace("|", " ").split()[4:])
    assert none > 0.6
    assert private == pytest.approx(none, abs=0.05)


# Unrolled values --------------------------------------------------------------------------------


@of("unrolled_lds")
def test_unrolled_values_predict_small_removals(script, tmp_path, capsys):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y, means = np.arange(300) % 10, rng.integers(0, 255, size=(10, 28, 28))
    X = (means[y] + rng.normal(0, 60, size=(300, 28, 28))).clip(0, 255).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X=X, y=y, split=(np.arange(300) >= 200).astype(int))
    small = "--rows 200 --points 100 --hidden 8 --epochs 3 --batch-size 40 --subsets 12"
    script.main([*small.split(), "--memory", "--activations", "SiLU", "--data", str(tmp_path)])
    *_, row, sizes = capsys.readouterr().out.splitlines()
    assert float(row.split("|")[2]) > 0.9  # 5 % removed
    assert sizes.startswith("1,666 parameters, 15 steps")


# Label errors -----------------------------------------------------------------------------------


@of("label_errors")
def test_noise_of_every_kind_has_its_rate(script, rng):
    clean = rng.dirichlet([1.0, 1.0, 1.0], 300)
    y = np.arange(300) % 3
    for kind in script.KINDS:
        wrong = script.add_noise(y, kind, 0.1, clean, rng) != y
        assert abs(wrong.sum() - 30) <= 2
    assert script.precision_at_number(-wrong.astype(float), wrong) == 1


@of("label_errors")
def test_a_run_prints_its_tables(script, capsys):
    (key, *data), *_ = script.runs_of("wine", None, 0, 120, [0.1], ["symmetric"])
    runs = {key: script.one_run(key, *data, ["ranking", "rules"], False)}
    script.print_suggestions(runs)
    script.print_ranking(runs, "one")
    script.print_rules(runs, "one")
    printed = capsys.readouterr().out
    precisions = re.findall(r"^(?:Label|KNN)\w+ +([\d.]+) ", printed, re.M)
    assert len(precisions) == 4
    assert min(map(float, precisions)) > 0.6
    assert "fdr 0.1, confidence 0.95" in printed


# Audits -----------------------------------------------------------------------------------------


@of("audit_cost")
def test_an_audit_is_timed(script, capsys):
    pytest.importorskip("jinja2")
    script.main(["--rows", "150"])
    said = capsys.readouterr().out
    assert float(re.search(r"^ratio: ([\d.]+)$", said, re.MULTILINE)[1]) > 0
    assert 0 < float(re.search(r"^page: ([\d.]+) MB$", said, re.MULTILINE)[1]) < 1


# Cost -------------------------------------------------------------------------------------------


@of("cost_curve")
def test_curves_of_cost(script, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    names = ["KNN", "TKNN, epsilon=1", "influence"]
    monkeypatch.setattr(script, "METHODS", {name: script.METHODS[name] for name in names})
    save, picture = tmp_path / "cost.json", tmp_path / "cost.png"
    files = ["--save", str(save), "--draw", str(picture)]
    script.main(["--sizes", "40", "80", "--points", "10", "20", *files])
    curves = json.loads(save.read_text())
    assert [cell[:2] for cell in curves["KNN"]] == [[40, 10], [40, 20], [80, 10], [80, 20]]
    assert [cell[3] for cell in curves["KNN"]] == [400, 800, 800, 1600]
    assert [cell[3] for cell in curves["influence"]] == [40, 40, 80, 80]
    assert all(cell[2] > 0 for found in curves.values() for cell in found)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(table) == 8
    assert picture.stat().st_size > 10_000
    script.main(["--sizes", "60", "--points", "10", "--methods", "KNN", *files])
    merged = json.loads(save.read_text())
    assert [cell[0] for cell in merged["KNN"]] == [40, 40, 60, 80, 80]
    assert merged["influence"] == curves["influence"]
    capsys.readouterr()
    script.main(["--methods", "KNN", "--max-seconds", "1e-9", "--save", str(save)])
    assert json.loads(save.read_text()) == merged  # a limit that no fit keeps


# Influence --------------------------------------------------------------------------------------


@of("influence_figures")
def test_errors_of_influence(script, monkeypatch, capsys):
    for name in ("MODELS", "TIMED"):
        few = {k: v for k, v in getattr(script, name).items() if k == "RidgeClassifier"}
        monkeypatch.setattr(script, name, few)
    script.main(["--rows", "40", "--timed", "30"])
    rows = [r for r in capsys.readouterr().out.splitlines() if r.startswith("RidgeClassifier")]
    first, one, two = map(float, rows[0].split()[1:])
    assert first > 0.1 > 1e-6 > max(one, two)
    assert float(rows[1].split()[-1]) < 1e-6


@of("which_value")
def test_values_and_their_uses(script, monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    np.savez(tmp_path / "toy.npz", X=X, y=X[:, 0] > 0)
    names = ["threshold KNN-Shapley", "influence, logistic"]
    monkeypatch.setattr(script, "METHODS", {name: script.METHODS[name] for name in names})
    models = {name: script.MODELS[name] for name in ("logistic", "neighbours")}
    monkeypatch.setattr(script, "MODELS", models)
    small = ["--rows", "80", "--points", "60", "--subsets", "8"]
    script.main(["--data", str(tmp_path), "--sets", "toy", *small])
    rows = [r.split("|")[1:-1] for r in capsys.readouterr().out.splitlines() if "KNN-" in r]
    assert len(rows) == 2  # of the set, and of the mean
    assert rows[0] == rows[1]
    assert float(rows[0][3]) > 0.6  # AUROC


@of("other_libraries_influence")
def test_influence_beside_other_libraries(script, monkeypatch, capsys):
    def start(name, python, folder):  # in this process
        return script.work(name, Path(folder)) if name == "skvalue" else "ModuleNotFoundError: no"

    monkeypatch.setattr(script, "start", start)
    script.main(["--rows", "40", "--columns", "2", "--points", "10", "--subsets", "5"])
    ours, *others = capsys.readouterr().out.splitlines()[-4:]
    assert ours.split()[0] == "skvalue"
    assert ours.split()[2] == "0e+00"
    assert [line.split(".")[0] for line in others] == [
        f"{name}: left out" for name in ("pyinfluence", "pydvl", "dattri")
    ]


# Adjusted semivalues ------------------------------------------------------------------------------


@of("fewer_fits_peers")
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_other_estimators_find_exact_values(script, semivalue, rng):
    n = 8
    pairs, single = rng.normal(size=(n, n)), rng.normal(size=n)

    def game(masks):
        masks = np.asarray(masks, dtype=float)
        products = np.einsum("mi,ij,mj->m", masks, pairs, masks)
        return masks @ single + 0.3 * products + 2 * np.sqrt(masks.sum(axis=1))

    table = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    exact = tabulated_semivalue(game(table), semivalue)
    q = size_weights(semivalue, n)
    peers = script.PEERS if semivalue == "shapley" else script.BANZHAF_PEERS
    asked = []

    def counted(masks):
        asked.append(len(masks))
        return game(masks)

    for name, peer in peers.items():
        asked.clear()
        found = peer(counted, q, 8000, np.random.default_rng(0))
        assert sum(asked) <= 8000, name
        np.testing.assert_allclose(found, exact, atol=0.15, err_msg=name)
        few = peer(game, q, 100, np.random.default_rng(0))
        assert np.abs(few - exact).mean() > np.abs(found - exact).mean(), name
    if semivalue == "shapley":  # all coalitions are there, once each
        found = script.leverage_regression(game, q, 2**n, np.random.default_rng(0))
        np.testing.assert_allclose(found, exact, atol=1e-10)


@of("fewer_fits")
@pytest.mark.filterwarnings("ignore")
def test_adjusted_values_beside_others(script, monkeypatch, capsys, tmp_path):
    small = script.Case("wine", "naive Bayes", n=40, fits=1100, reference=4000)
    monkeypatch.setattr(script, "PEER_CASES", [small])
    monkeypatch.setattr(script, "OWN_CASES", [small])
    script.main(["--replicates", "2", "--save", str(tmp_path / "results.json")])
    printed = capsys.readouterr().out
    true, stated = map(
        float, re.findall(r"^wine, naive Bayes +2 +([\d.]+) +([\d.]+)$", printed, re.M)[0]
    )
    assert 0.2 < stated < 1.1
    assert 0.2 < true < 1.5
    assert "paired kernel" in printed
    script.main(["--replicates", "2", "--save", str(tmp_path / "results.json")])
    assert capsys.readouterr().out == printed  # all that is needed is in the file


# Costs of the neighbour methods -----------------------------------------------------------------


@of("neighbor_costs")
def test_the_tables_of_costs_are_printed(script, capsys):
    script.print_truncation([600], 5, 1)
    script.print_threads(300, 70, 1)
    said = capsys.readouterr().out
    found = re.findall(r"e-\d\d: (\d+), ([\d.e+-]+), ([\d.e+-]+); ", said)
    ranks, bounds, errors = np.array(found, dtype=float).T
    assert len(ranks) == 6
    assert (errors <= bounds).all()
    assert ranks.min() < 20 < ranks.max()
    assert len(re.findall(r"^T?KNN: [\d.]+ \[", said, re.MULTILINE)) == 2


@pytest.mark.slow
@of("neighbor_costs")
def test_processes_are_timed_in_turn(script, capsys):
    script.print_leave_one_out(None, ["wine"], 150, None, 1)
    said = capsys.readouterr().out
    assert len(re.findall(r"^wine, 150, 13: skvalue.* [\d.]+ \[", said, re.MULTILINE)) == 2
