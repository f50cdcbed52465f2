"""What only redoes figures of papers: the scripts of examples/reproductions/."""

import importlib
import json
import re
import shlex
from argparse import Namespace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from problems import two_classes
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification

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


def of(name, *marks):
    param = pytest.param(name, marks=marks, id=name)
    return pytest.mark.parametrize("script", [param], indirect=True)


@pytest.fixture
def run(script, monkeypatch, tmp_path, capsys):
    """What a script prints, run in this process from a folder of its own; or its
    error."""

    def call(arguments=""):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(
            "sys.argv", [f"{script.__name__}.py", *shlex.split(arguments)]
        )
        try:
            script.main()
        except SystemExit as error:
            return f"{capsys.readouterr().err}\n{error.code}"
        return capsys.readouterr().out

    return call


def table_rows(printed, start):
    """Cells of the lines of a markdown table that start with these characters."""
    lines = [line for line in printed.splitlines() if line.startswith(start)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def first_number(cell):
    return float(cell.split()[0])


@pytest.fixture(scope="module")
def two_blobs():
    """Two classes of unequal size, apart from each other; every row is unique."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [1800, 1200])
    return rng.normal(size=(3000, 3)) + 2 * y[:, None], y


@pytest.fixture
def wind(two_blobs, tmp_path):
    np.savez(tmp_path / "wind.npz", X=two_blobs[0], y=two_blobs[1])


REFUSALS = [
    (
        "tknn_tables",
        "--data nowhere",
        "must hold an npz file of 2dplanes, cpu, phoneme, wind, mnist",
    ),
    ("agnews_embeddings", "--data nowhere", "must hold agnews_minilm.npz"),
    (
        "priarta_markets",
        "--data nowhere",
        "must hold agnews_minilm.npz or adult.npz. Got nowhere",
    ),
    ("private_tknn_tables", "--repeats 0", "--repeats must be at least 1. Got 0"),
    (
        "private_tknn_tables",
        "--targets 5",
        "--targets must be even and at least 2. Got 5",
    ),
    ("private_tknn_tables", "--shadows 1", "--shadows must be at least 2. Got 1"),
    ("private_tknn_tables", "--epsilons 2", "--epsilons must be some or none of"),
    (
        "private_tknn_tables",
        "--validation 3",
        "--validation must be even and at least 2. Got 3",
    ),
    (
        "retraining_baselines",
        "--data . --coalitions 2000",
        "--coalitions must be above 2000",
    ),
    ("errata", "Z1", "LABEL must be one of T1, T2"),
    (
        "other_libraries",
        "--with pydvl",
        "--with must be NAME=PYTHON, NAME one of skvalue, pydvl,",
    ),
    ("other_libraries", "--with pydvl=/no/python", "Got 'pydvl=/no/python'."),
    (
        "other_libraries",
        "--sizes 300",
        "--sizes must be pairs N,M of whole numbers. Got 300.",
    ),
]


@pytest.mark.usefixtures("wind")
@pytest.mark.parametrize(
    ("script", "arguments", "message"), REFUSALS, indirect=["script"]
)
def test_refusals(run, arguments, message):
    assert message in " ".join(run(arguments).split())


# Private KNN --------------------------------------------------------------------------


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


@of("private_knn", pytest.mark.slow)
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
    draws = [
        script.noisy_knn_values(*data, epsilon=1.0, **settings) - exact
        for _ in range(50)
    ]
    assert np.std(draws) == pytest.approx(noise.scale, rel=0.1)  # four standard errors
    draws = script.noisy_knn_values(*data, epsilon=1.0, sampling_rate=0.1, **settings)
    assert np.abs(draws).max() < 6 * noise.scale


# TKNN ---------------------------------------------------------------------------------


@of("tknn_tables")
@pytest.mark.usefixtures("wind")
def test_tables_of_tknn(run):
    printed = run("--data . --tables 9 11 --sets cpu wind --seeds 2")
    assert "| cpu" not in printed
    (_, *comparison), *rows = table_rows(printed, "| wind")
    assert (comparison[0], comparison[3]) == ("0.889", "0.896")
    for cell in (1, 2, 4, 5):
        assert 0.9 < first_number(comparison[cell]) <= 1
    ways = {row[1]: np.array(row[2:], dtype=float) for row in rows}
    assert list(ways) == ["published", "authors' way", "clean, mean", "clean, sd"]
    assert ways["published"][[0, 4, 8]].tolist() == [0.875, 0.888, 0.775]
    assert ways["authors' way"][4] == float(comparison[1])  # tau = -0.5 in both tables
    assert f"{ways['clean, mean'][4]:.3f} ({ways['clean, sd'][4]:.3f})" == comparison[2]


@of("tknn_tables")
@pytest.mark.parametrize("task", ["mislabel", "features"])
@pytest.mark.parametrize("way", ["authors", "clean"])
def test_only_the_authors_preparation_uses_rows_twice(script, two_blobs, way, task):
    if way == "authors":
        X, y, X_val, y_val, noisy = script.authors_game(*two_blobs, task)
    else:
        X, y, X_val, y_val, noisy = script.clean_game(*two_blobs, task, seed=0)
        assert y_val.sum() == 100
    assert (X.shape, X_val.shape, noisy.sum()) == ((2000, 3), (200, 3), 200)
    true_y = y if task == "features" else np.where(noisy, 1 - y, y)
    assert true_y.sum() == 1000
    rows = np.vstack([X, X_val])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    copies = len(rows) - len(np.unique(rows.round(9), axis=0))
    assert copies > 50 if way == "authors" else copies == 0


@of("private_tknn_tables")
def test_published_figures_are_complete(script):
    tables = importlib.import_module("tknn_tables")
    few = [name for name in tables.PUBLISHED if name not in tables.EMBEDDED]
    for name, by_table in tables.PUBLISHED.items():
        assert (
            list(by_table)
            == list(tables.TABLES)[: 2 if name in tables.EMBEDDED else None]
        )
        for table in by_table:
            expected = 2 if table < 11 else len(tables.TABLES[table][2])
            assert len(tables.published(name, table)) == expected
    assert list(script.ATTACKS) == few
    assert list(script.TABLE_8) == list(tables.PUBLISHED)
    for name, by_part in script.TABLE_8.items():
        for printed in by_part.values():  # images and texts: no DP-KNN with samples
            assert [len(by_epsilon) for by_epsilon in printed] == [3] * (
                3 if name in few else 2
            )
    for by_epsilon in script.ATTACKS.values():
        assert [len(printed.split()) for printed in by_epsilon.values()] == [9, 9, 9]


@pytest.fixture
def mnist(tmp_path, rng):
    y = rng.integers(0, 3, 330)
    X = (np.eye(9)[y] * 40 + rng.normal(100, 10, size=(330, 9))).reshape(330, 3, 3)
    np.savez(tmp_path / "mnist.npz", X=X, y=y)
    return tmp_path


@of("tknn_tables")
def test_images_are_prepared_in_their_own_way(script, mnist, run):
    game = script.game("mnist", mnist, "mislabel", 0)
    assert [len(array) for array in game] == [300, 300, 30, 30, 300]
    assert game[4].sum() == 30
    np.testing.assert_allclose(np.linalg.norm(game[0], axis=1), 1, rtol=1e-5)
    printed = run("--data . --tables 9 11 --seeds 2")
    ((_, *cells),) = table_rows(printed, "| mnist")  # Table 11 has no images
    assert (cells[0], cells[1], cells[3], cells[4]) == ("0.962", "-", "0.974", "-")
    assert first_number(cells[2]) > 0.8


@of("private_tknn_tables")
@pytest.mark.usefixtures("mnist")
def test_private_table_of_images(run):
    printed = run("--data . --parts mislabel --epsilons 1.0 --repeats 1 --samples")
    ((_, *cells),) = table_rows(printed, "| mnist")
    assert (cells[1], cells[5], cells[7]) == ("0.958 (0.002)", "0.495 (0.005)", "-")


@of("private_tknn_tables", pytest.mark.slow)
@pytest.mark.usefixtures("wind")
def test_private_tables_of_tknn(run):
    small = "--epsilons 0.5 --repeats 2 --targets 20 --shadows 2"
    printed = run(f"--data . --sets cpu wind {small}")
    assert "| cpu" not in printed
    label = "(preprocessing unaccounted: features were scaled with the private rows)"
    assert printed.count(label) == 3
    wrong, noisy, exact, private = table_rows(printed, "| wind")
    assert (wrong[1:3], wrong[6]) == (["0.5", "0.883 (0.002)"], "0.511 (0.021)")
    assert (noisy[1:3], noisy[6]) == (["0.5", "0.668 (0.055)"], "0.554 (0.282)")
    for cell in (3, 4, 5):  # private, without any budget, exact
        assert 0.9 < first_number(wrong[cell]) <= 1
    for row in (wrong, noisy):
        assert all(0 < first_number(cell) <= 1 for cell in row[3:6] + row[7:])
    assert exact[1:4] == ["-0.5", "exact values", "0.585 (Table 4)"]
    assert private[1:4] == ["-0.5", "epsilon 0.5", "0.530 (Table 5)"]
    assert all(0 <= float(row[4]) <= 1 for row in (exact, private))


@of("private_tknn_tables")
def test_the_attacker_of_exact_values_sees_a_copy_join(script):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) + 1, np.arange(40) % 2
    points = {"X_val": X[:6] + 0.1, "y_val": y[:6]}
    valuer = script.tknn(np.inf)
    rows = np.arange(40)[:, None]
    score = script.value_exact_copies(X, y, *points.values(), valuer.radius)
    found = score(rows[6:], y[6:], rows[4:8], y[4:8])
    for row, value in zip(range(4, 8), found):
        joined = np.append(np.arange(6, 40), row)
        alone = valuer.fit(X[joined], y[joined], **points).values_[-1]
        assert value == pytest.approx(alone, abs=1e-12)
        if row >= 6:  # two copies are worth less each than one
            assert abs(value) < abs(valuer.fit(X[6:], y[6:], **points).values_[row - 6])


@of("private_tknn_tables")
def test_membership_uses_both_distributions(script, rng):
    # With line 6 as printed there would be no OUT values: a value that only the
    # presence of the row lowers could not be seen. Here it is seen without error.
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


@of("private_tknn_sizes")
def test_sizes_of_private_values(run):
    small = "--sets wine --epsilons 3 --seeds 1 --draws 1"
    printed = run(f"{small} --without smoothing 'the factor' truncation").splitlines()
    tables = [line.split("|")[1:-1] for line in printed if line.startswith("| mean")]
    sizes = np.array([row[1:] for row in tables[:4]], dtype=float)
    assert (
        sizes[:, 0] < 0.6 * sizes[:, 1]
    ).all()  # nearer to the exact values than the baseline
    assert (
        len({tuple(row[1:]) for row in tables[:4]}) == 4
    )  # each component does something
    assert len(tables[4]) == 6


@of("agnews_embeddings")
def test_agnews_reproduction(run, tmp_path, rng):
    y = rng.integers(0, 4, 900)
    X = np.eye(8)[y] + 0.3 * rng.normal(size=(900, 8))
    lines = "\n".join(f"text {i}" for i in range(900)).encode()
    np.savez(
        tmp_path / "agnews_minilm.npz",
        X=X,
        y=y,
        text=np.frombuffer(lines, dtype=np.uint8),
    )
    printed = run("--data .")
    for method in ("KNN, K = 5", "TKNN, radius chosen"):
        assert float(re.search(rf"^\| {method} \| ([\d.]+) \|", printed, re.M)[1]) > 0.9
    assert "given" in printed


@of("retraining_baselines", pytest.mark.slow)
@pytest.mark.usefixtures("wind")
def test_retraining_baselines(run):
    small = "--tasks mislabel --seeds 2 --coalitions 2100 --trees 40"
    rows = table_rows(run(f"--data . --sets cpu wind {small}"), "| wind")
    assert [row[1] for row in rows] == ["published", "authors' way", "clean (sd)"]
    assert rows[0][2:] == ["0.469", "0.456", "0.512", "", ""]
    assert all(0.3 < first_number(cell) <= 1 for cell in rows[1][2:] + rows[2][2:])
    assert float(rows[1][6]) > 0.9  # Data-OOB on two blobs


# Private gradients --------------------------------------------------------------------


class Recorder(BaseEstimator):
    """Values whose errors are a function of the parameters; it keeps its calls."""

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
    seeds = [call["random_state"] for call in Recorder.calls if call["noise"] == "x"]
    assert (len(Recorder.calls), len(set(seeds))) == (
        12,
        3,
    )  # a seed a repeat, for all points
    np.testing.assert_allclose(curves.uncertainty["a"], [[0.06, 0.24]] * 3)
    np.testing.assert_allclose(curves.mean_value["b"], 0.75)


@of("gradient_figures")
def test_noise_makes_values_worse_with_more_permutations_unless_averaged(script, rng):
    problem = two_classes(rng, 40, 80, d=2, noise=0, names=None)
    curves = script.uncertainty_curve(
        GradientSemivalueValuer("logistic", learning_rate=0.05, noise_multiplier=2.0),
        *problem.rows, **problem.points, n_permutations=[20, 320], random_state=0,
        noises={"iid": {"noise": "iid"}, "averaged": {"noise": "correlated"}},
    )  # fmt: skip
    iid, averaged = (curves.mean_value[name][0] for name in ("iid", "averaged"))
    assert iid[1] < 4 * iid[0] < 0
    assert abs(averaged[1]) < abs(iid[1]) / 10


@of("gradient_figures")
def test_noise_alone_sets_the_distance(script):
    # Clean gradients do not vary: what is left is the noise, of variance k sigma^2 p /
    # t.
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
    options = {
        "noise_multiplier": 0.02,
        "gradient_sd": 0.2,
        "n_parties": 400,
        "random_state": 0,
    }
    last = {
        name: script.release_closeness(100, noise=name, **options).distance[-30:].mean()
        for name in script.NOISES
    }
    assert last["optimal"] < min(last["iid"], last["correlated"])


@of("gradient_figures")
def test_figures_are_printed_and_drawn(script, run):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    printed = run("--permutations 20")
    assert [printed.count(f"\n| {name} ") for name in script.NOISES] == [2, 2, 2]
    closeness = {
        name: script.release_closeness(10, noise=name) for name in ("iid", "optimal")
    }
    script.plot_closeness(figure.add_subplot(), closeness, "distance")
    numbers = {"one": np.array([[1.0, 4.0], [3.0, 8.0]])}
    curves = script.Bunch(
        n_permutations=[10, 20], uncertainty=numbers, mean_value=numbers
    )
    script.plot_uncertainty(figure.add_subplot(), curves)
    distances, uncertainty = (ax.lines[0].get_ydata() for ax in figure.axes)
    np.testing.assert_array_equal(distances, closeness["iid"].distance)
    np.testing.assert_allclose(uncertainty, [2.0, 6.0])


@of("gradient_tables")
def test_errors_over_permutations_are_too_small_where_noise_is_averaged(script, rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    settings = {"noise_multiplier": 1.0, "burn_in": 0.0, "learning_rate": 0.1}
    stated = [
        script.stated_by_permutations(
            GradientSemivalueValuer(n_permutations=k, noise=noise, **settings),
            X[:20], y[:20], X[20:], y[20:],
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


def images(folder, name, channels, side, n):
    """Ten classes of noise, each brighter in rows of its own."""
    rng, y = np.random.default_rng(0), np.arange(n) % 10
    X = rng.integers(0, 100, size=(n, side, side, channels)).astype(np.uint8)
    for label in range(10):
        X[y == label, 2 * label : 2 * label + 3] += 150
    np.savez(folder / f"{name}.npz", X=X, y=y)


@of("gradient_parties", pytest.mark.slow)  # trains a network for each of ten settings
def test_gradient_parties_print_published_and_measured_figures(run, tmp_path):
    images(tmp_path, "mnist", 1, 28, 400)
    small = "--parties 10 --size 5 --permutations 4 --repeats 1 --round-permutations 4"
    printed = run(f"--data . --parts sets federated --sets mnist {small}")
    mnist, accuracy, loss = table_rows(printed, "| mnist")
    assert mnist[:4] == ["mnist", "10", "5", "4"]
    assert accuracy[:5] == ["mnist", "accuracy", "10", "5", "4"]
    assert mnist[-1] == "0.290, 0.170 (B=8)"
    assert accuracy[-1] == loss[-1] == "0.195, 0.081"
    for aurocs in (mnist[4:8], accuracy[5:9], loss[5:9]):
        aurocs = np.array(aurocs, dtype=float)
        assert ((aurocs >= 0) & (aurocs <= 1)).all()
    assert float(loss[5]) > 0.8  # no noise
    refused = run("--data . --parts sets --sets mnist")
    assert (
        "mnist must have 40 x 32 rows for parties and 200 for validation. Got 400"
        in refused
    )


@of("gradient_networks")
def test_resnets_take_the_parameters_of_torchvision(script, tmp_path):
    torch = pytest.importorskip("torch")
    network = script.resnet(script.BLOCKS["resnet18"])
    assert (
        sum(p.numel() for p in network.parameters()) == 11_689_512 - 990 * 513
    )  # 1,000 classes
    theirs = {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}
    blocks = [f"layer{i}.{j}" for i in range(1, 5) for j in range(2)]
    places = ["conv1", "bn1", "relu", "maxpool", *blocks, "avgpool", "flatten", "fc"]
    for key, value in network.state_dict().items():
        place, _, rest = key.partition(".")
        if places[int(place)] != "fc":
            theirs[f"{places[int(place)]}.{rest}"] = value + 1
    assert {"layer2.0.downsample.1.running_var", "layer4.1.conv2.weight"} < set(theirs)
    torch.save(theirs, tmp_path / "resnet18.pth")
    images(tmp_path, "cifar10", 3, 32, 40)
    given = script.Source(tmp_path, weights=tmp_path / "resnet18.pth")
    X, y = given.load("resnet18")
    tail = given.network("resnet18")
    assert len(X) == len(y) == 20
    for key, value in network[-4:-1].state_dict().items():
        np.testing.assert_array_equal(tail.state_dict()[key], value + 1)
    trained = [key for key, value in tail.named_parameters() if value.requires_grad]
    assert trained == ["11.conv1.weight", "11.conv2.weight", "14.weight", "14.bias"]


# Errata -------------------------------------------------------------------------------

FIGURES = {
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
}  # fmt: skip
SLOW_FIGURES = {  # their accountant takes seconds
    "T4": ["add_remove: epsilon 1.83", "replace: epsilon 2.84"],
    "T5": ["each: epsilon 0.91", "all: epsilon 138"],
    "T6": ["37.3 without samples, 44.9 at rate 0.1, 114.4 at rate 0.01"],
}


@of("errata")
def test_errata_are_on_the_page(script):
    page = (ROOT / "doc" / "user_guide" / "errata.rst").read_text(encoding="utf-8")
    assert re.findall(r"^([A-Z]\d+)\. ", page, re.MULTILINE) == list(script.ERRATA)
    for label in script.ERRATA:
        assert f"``errata.py {label}``" in page, label
    for name in re.findall(r"``(?:tests/)?([a-z_/]+\.py)[ A-Z0-9]*``", page):
        assert list(ROOT.glob(f"tests/**/{name}")) or list(
            ROOT.glob(f"examples/**/{name}")
        ), name


@of("errata")
@pytest.mark.parametrize(
    "figures",
    [FIGURES, pytest.param(SLOW_FIGURES, marks=pytest.mark.slow)],
    ids=["quick", "slow"],
)
def test_errata_are_shown(script, figures):
    for label, expected in figures.items():
        printed = "\n".join(script.ERRATA[label]())
        assert all(figure in printed for figure in expected), label


@of("errata")
def test_errata_of_other_forms(script, run):
    for label in set(script.ERRATA) - set(FIGURES) - set(SLOW_FIGURES):
        assert list(script.ERRATA[label]())
    assert all(float(line.split()[3]) == float(line.split()[6]) for line in script.G4())
    found = re.findall(r"neighbour.*: ([\d.e-]+);", "\n".join(script.ERRATA["T7"]()))
    assert min(map(float, found)) > 0
    assert [line.split()[0] for line in run("L10 S3").splitlines()] == ["L10", "S3"]


# Layers and PriArTa -------------------------------------------------------------------


@of("layered_figures")
def test_the_published_scale_of_layered_values(script):
    inflated = script.published_scale(100, 1.0, bound=0.5)
    assert inflated == pytest.approx(0.601, abs=5e-4)
    clamped = script.published_scale(100, 1.0, bound=0.5, clamp=True)
    assert inflated / clamped == pytest.approx(11.6, 0.01)
    assert clamped == pytest.approx(0.0518, abs=5e-5)


@of("layered_private")
def test_private_layered_values_beside_what_is_free(script, monkeypatch, capsys):
    for name, value in {
        "SETS": {"synthetic": (60, 80)},
        "PENALTIES": (1.0,),
        "DEPTHS": (3,),
    }.items():
        monkeypatch.setattr(script, name, value)
    script.print_cells(["synthetic"], None, n_draws=3)
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split()[:3] == ["synthetic", "1", "3"]
    predicted, summed, private = map(float, rows[2].split()[3:6])
    assert (
        min(predicted, private) < 0.5 < summed
    )  # 60 rows: the noise is larger than layer 0
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


@of("priarta_mechanisms")
def test_priarta_mechanisms_print_errors(run):
    printed = run("--repeats 2 --dimensions 4")
    found = re.findall(r"^n = +\d+: +([\d.]+)$", printed, re.M)
    assert found == ["3.4", "9.0", "13.9", "41.2"]
    rows = re.findall(r"^(.*\S)((?: +[\d.]+){3})$", printed, re.MULTILINE)
    errors = {name: np.array(found.split(), float) for name, found in rows}
    assert len(errors) == 4
    assert (errors["on the moments (default)"] < errors["on every row (local)"]).all()


@of("priarta_markets")
def test_priarta_markets_print_scores_and_gains(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 4
    np.savez(
        tmp_path / "agnews_minilm.npz",
        X=rng.normal(size=(3000, 12)) + 3 * np.eye(12)[y],
        y=y,
    )
    pattern = r"^\d [a-z0-9 ]+? +\d+ +([\d.]+) +([\d.]+) \([\d.]+\) +[\d.]+ +([\d.]+) ([+-][\d.]+)$"
    found = re.findall(pattern, run("--data . --releases 2"), re.MULTILINE)
    exact, private, floor, gain = np.array(found, dtype=float).T
    assert len(exact) == 6
    assert exact[3] == 0  # the copy
    assert private[3] < floor[3] < private[0]
    assert gain[0] > 0.2 > gain[3]


# Imbalance, several semivalues, in-run and unrolled values ----------------------------------------


@of("imbalance", pytest.mark.slow)
def test_remedies_for_imbalance_cost_nothing_on_clean_labels(script, run):
    sizes = {"rules": (0.05, "negative"), "n_train": 1000}
    results = [
        script.measure("creditcard", None, 0.0, seed, **sizes) for seed in range(3)
    ]
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
    assert "adult: no adult.npz in --data=None: left out" in run(
        "--sets adult --seeds 1"
    )


@of("markets")
def test_exact_copies_are_not_paid_under_the_quotient(script, run):
    printed = run("--sets digits adult --parts copies faithful --draws 1")
    assert printed.count("holds") == 4
    assert "FAILS" not in printed
    assert "adult: no adult.npz in --data=None: left out" in printed


@of("markets", pytest.mark.slow)
def test_rules_of_markets_hold_on_digits(script, run):
    printed = run("--sets digits --parts twins garbage error --draws 1")
    assert printed.count("holds") == 7
    assert "FAILS" not in printed


@of("several_semivalues")
def test_several_semivalues_from_one_fit(script, monkeypatch, run):
    monkeypatch.setattr(script, "GAMES", {"adult": (*script.GAMES["adult"][:2], 30, 0)})
    monkeypatch.setattr(script, "TARGETS", ["shapley", "banzhaf"])
    data = two_classes(0, 30, 60, noise=0, names=None)
    monkeypatch.setattr(script, "load", lambda name, folder, n: data)
    _, *rows = run("--sets adult --seeds 1 --coalitions 1100").splitlines()
    plain, adjusted = ([float(cell) for cell in row.split("|")[3:5]] for row in rows)
    assert plain[0] == pytest.approx(1, abs=0.01)
    assert plain[1] > 1.5
    assert adjusted[0] < 0.8


@of("in_run_tables")
def test_figures_of_in_run_values(script, monkeypatch, run):
    rows = two_classes(0, 400, 0, d=4, noise=0, names=None).rows
    monkeypatch.setattr(script, "load", lambda name, folder: rows)
    line = run(
        "--sets adult --sizes 150 --epsilons 100 --draws 1 --steps 2"
    ).splitlines()[-1]
    none, private, *_ = map(float, line.replace("|", " ").split()[4:])
    assert none > 0.6
    assert private == pytest.approx(none, abs=0.05)


@of("unrolled_lds")
def test_unrolled_values_predict_small_removals(run, tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y, means = np.arange(300) % 10, rng.integers(0, 255, size=(10, 28, 28))
    X = (means[y] + rng.normal(0, 60, size=(300, 28, 28))).clip(0, 255).astype(np.uint8)
    np.savez(
        tmp_path / "mnist.npz", X=X, y=y, split=(np.arange(300) >= 200).astype(int)
    )
    small = "--rows 200 --points 100 --hidden 8 --epochs 3 --batch-size 40 --subsets 12"
    *_, row, sizes = run(f"{small} --memory --activations SiLU --data .").splitlines()
    assert float(row.split("|")[2]) > 0.9  # 5 % removed
    assert sizes.startswith("1,666 parameters, 15 steps")


# Label errors, influence and costs ----------------------------------------------------


@of("label_errors")
def test_noise_of_every_kind_has_its_rate(script, rng):
    clean = rng.dirichlet([1.0, 1.0, 1.0], 300)
    y = np.arange(300) % 3
    for kind in script.KINDS:
        wrong = script.add_noise(y, kind, 0.1, clean, rng) != y
        assert abs(wrong.sum() - 30) <= 2
    assert script.precision_at_number(-wrong.astype(float), wrong) == 1


@of("label_errors", pytest.mark.slow)
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


@of("label_errors_confidence", pytest.mark.slow)
def test_lists_named_with_confidence(script, monkeypatch, run):
    monkeypatch.setattr(script, "SETTINGS", [(200, 60, 2, 50)])
    above, named = map(float, re.findall(r"(?:in|draws,) (\d+\.\d+)", run()))
    assert above <= 0.08
    assert named > 1


@of("table_duplicates")
def test_equal_rows_of_a_folder(script, run, tmp_path):
    numbers = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    lines = [
        "{},{},{},red,{}\n".format(*row, "yes" if row[0] > 0 else "no")
        for row in numbers
    ]
    (tmp_path / "t.csv").write_text(
        "a,b,c,colour,label\n" + "".join([*lines, *lines[:5]])
    )
    printed = run(str(tmp_path))
    assert "t.csv: 5 equal (copies), 0 similar pairs" in printed
    assert "{'copies': 1}; 0 groups of rows that are not equal" in printed


@of("influence_figures", pytest.mark.slow)
def test_errors_of_influence(script, monkeypatch, run):
    for name in ("MODELS", "TIMED"):
        few = {k: v for k, v in getattr(script, name).items() if k == "RidgeClassifier"}
        monkeypatch.setattr(script, name, few)
    printed = run("--rows 40 --timed 30")
    rows = [row for row in printed.splitlines() if row.startswith("RidgeClassifier")]
    first, one, two = map(float, rows[0].split()[1:])
    assert first > 0.1 > 1e-6 > max(one, two)
    assert float(rows[1].split()[-1]) < 1e-6


@of("which_value")
def test_values_and_their_uses(script, monkeypatch, run, tmp_path):
    X, y = two_classes(0, 300, 0, noise=0, names=None).rows
    np.savez(tmp_path / "toy.npz", X=X, y=y == 1)
    for table, names in {
        "METHODS": ("threshold KNN-Shapley", "influence, logistic"),
        "MODELS": ("logistic", "neighbours"),
    }.items():
        monkeypatch.setattr(
            script, table, {n: getattr(script, table)[n] for n in names}
        )
    printed = run("--data . --sets toy --rows 80 --points 60 --subsets 8")
    rows = [row.split("|")[1:-1] for row in printed.splitlines() if "KNN-" in row]
    assert len(rows) == 2  # of the set, and of the mean
    assert rows[0] == rows[1]
    assert float(rows[0][3]) > 0.6  # AUROC


@of("audit_cost", pytest.mark.slow)
def test_an_audit_is_timed(run):
    pytest.importorskip("jinja2")
    printed = run("--rows 150")
    assert float(re.search(r"^ratio: ([\d.]+)$", printed, re.MULTILINE)[1]) > 0
    assert 0 < float(re.search(r"^page: ([\d.]+) MB$", printed, re.MULTILINE)[1]) < 1


@of("review_queue", pytest.mark.slow)
def test_reviews_with_a_queue_are_measured(script, monkeypatch, run):
    pytest.importorskip("pandas")
    monkeypatch.setattr(script, "RATES", (0.2,))
    monkeypatch.setattr(script, "N_ROWS", 200)
    lines = run("--sets breast wind").splitlines()
    assert lines[0].split()[:4] == ["random", "left", "at", "stop"]
    random, left = map(float, lines[-2].split()[1:3])
    assert left < 0.25 < 0.5 < random


@of("review_queue", pytest.mark.slow)
def test_few_wrong_labels_are_left_by_a_review(script, monkeypatch):
    """Digits, tumours and made tables, of which some have classes that overlap."""
    pd = pytest.importorskip("pandas")
    made = {
        f"made {k}": partial(
            make_classification, 600, 8 + k, n_informative=4, n_redundant=k, n_classes=2 + k % 2,
            n_clusters_per_class=1, class_sep=0.8 + 0.1 * k, flip_y=0.0, random_state=k,
        )
        for k in range(5)
    }  # fmt: skip
    made = {name: lambda return_X_y, make=make: make() for name, make in made.items()}
    monkeypatch.setattr(script, "IN_MEMORY", script.IN_MEMORY | made)
    found = pd.DataFrame(
        [r for name in script.IN_MEMORY for r in script.measure(name, ".", 0)]
    )
    mean = found.groupby("rate").mean(numeric_only=True)
    assert (mean["left"] <= [0.22, 0.24, 0.34]).all()
    assert (mean["at stop"] <= [0.25, 0.2, 0.2]).all()
    assert (mean["random"] > 0.8).all()
    assert found["wrong"].sum() <= 0.1 * found["changed"].sum()


@of("table_checks", pytest.mark.slow)
def test_checks_of_tables_are_measured(run):
    pytest.importorskip("pandas")
    printed = run("--sets wine breast --parts together")
    assert "clean tables: question" in printed
    found = dict(line.rsplit(maxsplit=1) for line in printed.splitlines()[-8:])
    for kind in ("spelling", "missing labels", "id", "leak", "equal rows"):
        assert float(found[kind]) == 1, kind
    rules = "spellings duplicates ids missing orders far"
    printed = run(
        f"--sets wine breast --parts rules cells private --rules {rules} --runs 20"
    )
    found = re.findall(r"^rule (.*?): ([\d.]+) of", printed, re.MULTILINE)
    for kind, rate in found:
        if kind in ("spelling: case", "id: 1 to n", "order: sorted by label"):
            assert float(rate) == 1, kind
        assert "alarm" not in kind or float(rate) < 0.1, kind
    area, precision = re.search(
        r"2 tables: area (.*), average precision (.*)", printed
    ).groups()
    assert float(area) > 0.94
    assert float(precision) > 0.65
    assert (
        min(map(float, re.findall(r": (\S+) of the counts of 20 runs", printed))) > 0.95
    )
    assert re.findall(r"the audit (\w+)", printed) == ["passes", "fails"]


@of("cost_curve", pytest.mark.slow)
def test_curves_of_cost(script, monkeypatch, run, tmp_path):
    pytest.importorskip("matplotlib")
    names = ["KNN", "TKNN, epsilon=1", "influence"]
    monkeypatch.setattr(
        script, "METHODS", {name: script.METHODS[name] for name in names}
    )
    printed = run("--sizes 40 80 --points 10 20 --save cost.json --draw cost.png")
    curves = json.loads(Path("cost.json").read_text())
    assert [cell[:2] for cell in curves["KNN"]] == [
        [40, 10],
        [40, 20],
        [80, 10],
        [80, 20],
    ]
    assert [cell[3] for cell in curves["KNN"]] == [400, 800, 800, 1600]
    assert [cell[3] for cell in curves["influence"]] == [40, 40, 80, 80]
    assert all(cell[2] > 0 for found in curves.values() for cell in found)
    assert len([line for line in printed.splitlines() if line.startswith("| ")]) == 8
    assert Path("cost.png").stat().st_size > 10_000
    run("--sizes 60 --points 10 --methods KNN --save cost.json")
    merged = json.loads(Path("cost.json").read_text())
    assert [cell[0] for cell in merged["KNN"]] == [40, 40, 60, 80, 80]
    assert merged["influence"] == curves["influence"]
    run("--methods KNN --max-seconds 1e-9 --save cost.json")
    assert (
        json.loads(Path("cost.json").read_text()) == merged
    )  # a limit that no fit keeps


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


@of("neighbor_costs", pytest.mark.slow)
def test_processes_are_timed_in_turn(script, capsys):
    script.print_leave_one_out(None, ["wine"], 150, None, 1)
    said = capsys.readouterr().out
    assert (
        len(re.findall(r"^wine, 150, 13: skvalue.* [\d.]+ \[", said, re.MULTILINE)) == 2
    )


# Adjusted semivalues ------------------------------------------------------------------


@of("fewer_fits_peers")
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_other_estimators_find_exact_values(script, semivalue, rng):
    n = 8
    pairs, single = rng.normal(size=(n, n)), rng.normal(size=n)
    asked = []

    def game(masks):
        asked.append(len(masks))
        masks = np.asarray(masks, dtype=float)
        products = np.einsum("mi,ij,mj->m", masks, pairs, masks)
        return masks @ single + 0.3 * products + 2 * np.sqrt(masks.sum(axis=1))

    table = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    exact = tabulated_semivalue(game(table), semivalue)
    q = size_weights(semivalue, n)
    for name, peer in (
        script.PEERS if semivalue == "shapley" else script.BANZHAF_PEERS
    ).items():
        asked.clear()
        found = peer(game, q, 8000, np.random.default_rng(0))
        assert sum(asked) <= 8000, name
        np.testing.assert_allclose(found, exact, atol=0.15, err_msg=name)
        few = peer(game, q, 100, np.random.default_rng(0))
        assert np.abs(few - exact).mean() > np.abs(found - exact).mean(), name
    if semivalue == "shapley":  # all coalitions are there, once each
        found = script.leverage_regression(game, q, 2**n, np.random.default_rng(0))
        np.testing.assert_allclose(found, exact, atol=1e-10)


@of("fewer_fits", pytest.mark.slow)
@pytest.mark.filterwarnings("ignore")
def test_adjusted_values_beside_others(script, monkeypatch, run):
    small = script.Case("wine", "naive Bayes", n=40, fits=1100, reference=4000)
    for cases in ("PEER_CASES", "OWN_CASES"):
        monkeypatch.setattr(script, cases, [small])
    printed = run("--replicates 2 --save results.json")
    pattern = r"^wine, naive Bayes +2 +([\d.]+) +([\d.]+)$"
    true, stated = map(float, re.findall(pattern, printed, re.M)[0])
    assert 0.2 < stated < 1.1
    assert 0.2 < true < 1.5
    assert "paired kernel" in printed
    assert run("--replicates 2 --save results.json") == printed  # all is in the file


@of("marginal_contributions", pytest.mark.slow)
def test_contributions_from_one_fit(run):
    *_, printed, memory = run('--cases "wide 60" --seeds 2').splitlines()
    seconds, error, honest, *_, ratio = [
        float(x) for x in re.findall(r"[\d.]+(?:e-\d+)?", printed)[1:]
    ]
    assert min(seconds, error, honest, ratio) > 0
    assert memory.endswith("GB")


# Other libraries ----------------------------------------------------------------------


def printed_rows(printed, name="skvalue"):
    """Rows of a library after its version."""
    rows = [re.split("  +", line.strip()) for line in printed.splitlines()]
    return [row for row in rows if row[0] == name][1:]


@of("other_libraries")
def test_other_libraries_compare_skvalue_with_exact_values(
    script, monkeypatch, run, tmp_path
):
    """Any library that is not there is left out by a line; skvalue is here."""
    worker, start = importlib.import_module("other_libraries_worker"), "start"

    def here(self, name):
        return worker.main(name, self.folder / "jobs.json")

    monkeypatch.setattr(script.Libraries, start, here)
    monkeypatch.setattr(script, "SETTINGS", {})
    monkeypatch.setattr(script, "NEIGHBOURS", [1, 20])
    sizes = "--games 1 --balls 60 --sizes 300,20 --limit 200"
    arguments = (
        f"--only skvalue datascope --parts games balls speed {sizes} --results results"
    )
    printed = run(arguments)
    assert re.search("datascope: not installed in .*; left out.", printed)
    rows = printed_rows(printed)
    games, balls, speed = rows[:4], rows[4:6], rows[6:]
    assert [row[1] for row in games] == [
        "original",
        "soft",
        "original, leave-one-out",
        "ball",
    ]
    assert all(row[2] == "yes" and max(map(float, row[3:])) < 1e-14 for row in games)
    assert [row[1] for row in balls] == ["60", "60"]
    assert all(float(row[3]) < 1e-14 and row[4] == "100.0%" for row in balls)
    assert [row[1] for row in speed] == ["K = 10", "K = 1", "leave-one-out"]
    assert all(row[3] == "1.0" and float(row[7]) < 1e-13 for row in speed)
    assert all(float(row[2]) > 0 and float(row[5]) > 0.6 for row in speed)
    monkeypatch.setattr(
        script.Libraries, start, None
    )  # what is on disk is not done again
    assert run(arguments) == printed


@of("other_libraries")
def test_skvalue_does_what_users_of_other_libraries_expect(script):
    expectations = importlib.import_module("other_libraries_expectations").EXPECTATIONS
    assert {name: list(tried) for name, tried in expectations.items()} == dict.fromkeys(
        script.METHODS, script.WANTED
    )
    assert [ask() for ask in expectations["skvalue"].values()] == ["yes"] * 6


@of("other_libraries")
def test_other_libraries_are_stopped(run):
    rows = printed_rows(run("--only skvalue --parts balls --balls 30 --limit 0.01"))
    assert [row[3] for row in rows] == ["> 0.01 s"] * 2


@of("other_libraries", pytest.mark.slow)
def test_other_libraries_number_exceptions(script, monkeypatch, tmp_path, run):
    """A library that is found but cannot be imported is reported, not fatal."""
    monkeypatch.setattr(script, "WANTED", ["sparse"])
    monkeypatch.setattr(script.Libraries, "environment", lambda *_: {"PYTHONPATH": "."})
    (tmp_path / "pydvl-0.10.dist-info").mkdir()
    (tmp_path / "pydvl-0.10.dist-info" / "METADATA").write_text(
        "Name: pydvl\nVersion: 0.10\n"
    )
    printed = run("--only pydvl --parts users")
    assert re.search("^ *pydvl +0.10", printed, re.M)
    assert "[1] ModuleNotFoundError: No module named 'pydvl'" in printed
    assert "ModuleNotFoundError [1]" in printed


@of("other_libraries")
def test_the_exact_values_of_other_libraries_agree(script):
    X, y, X_val, y_val = script.draw(7, 3, 2, seed=0)
    for k in (1, 3, 9):
        found = script.exact_knn_values(X, y, X_val, y_val, k)
        expected = script.game_values(("original", k), X, y, X_val, y_val)
        np.testing.assert_allclose(found, expected, atol=1e-14)
        found = script.exact_knn_values(X, y, X, y, k, itself=True)
        expected = script.values_by_each_other(("original", k), X, y)
        np.testing.assert_allclose(found, expected, atol=1e-14)
    by_formula, held = script.exact_ball_values(X, y, X_val, y_val, 1.2)
    assert 1 < held.max() < 7
    by_enumeration = script.game_values(("ball", 1.2), X, y, X_val, y_val)
    np.testing.assert_allclose(by_formula, by_enumeration, atol=1e-14)


@of("other_libraries_influence")
def test_influence_beside_other_libraries(script, monkeypatch, run):
    def start(name, python, folder):  # in this process
        return (
            script.work(name, Path(folder))
            if name == "skvalue"
            else "ModuleNotFoundError: no"
        )

    monkeypatch.setattr(script, "start", start)
    ours, *others = run("--rows 40 --columns 2 --points 10 --subsets 5").splitlines()[
        -4:
    ]
    assert (ours.split()[0], ours.split()[2]) == ("skvalue", "0e+00")
    names = ("pyinfluence", "pydvl", "dattri")
    assert [line.split(".")[0] for line in others] == [
        f"{name}: left out" for name in names
    ]


@of("table_checks_peers")
def test_reports_of_peers_are_counted(script, monkeypatch, run, tmp_path):
    """A process of its own is replaced by a call, as above."""
    worker = importlib.import_module("table_checks_worker")
    reports = iter(
        [[("leak", ["x"], [])], [("id", ["case"], []), ("equal rows", [], range(6))]]
    )
    monkeypatch.setitem(worker.BY, "skvalue", lambda frame: next(reports))

    def here(self, name):
        worker.main(name, self.folder / "jobs.json", run=worker.run)

    monkeypatch.setattr(script.Libraries, "start", here)
    printed = run("--only skvalue --sets wine")
    found = dict(re.findall(r"^([a-z ,:]+?)  +([\d.]+)$", printed, re.M))
    assert found["column that numbers the rows"] == "1.00"
    assert found["column filled in later"] == found["missing labels"] == "0.00"
    assert found["twelve rows entered twice"] == "0.25"
    assert found["as they are: reports a table"] == "1.0"


@of("private_methods")
def test_private_methods_approach_values_without_noise(
    script, monkeypatch, tmp_path, rng
):
    monkeypatch.setattr(script, "EPSILONS", (0.1, 1e4))
    of_parties = script.measure_parties(
        Namespace(methods=["PriArTa", "federated"], draws=1)
    )
    assert list(of_parties) == ["PriArTa", "federated"]
    assert of_parties["PriArTa"][1] > 0.9
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    rows = X[:40], y[:40], {"X_val": X[40:], "y_val": y[40:]}
    for method in (script.by_tknn, script.by_in_run):
        noisy, exact = method(rows, [1e4, None])
        assert np.corrcoef(noisy, exact)[0, 1] > 0.9


@of("batched_games")
def test_batches_and_loop_train_the_same_models(run):
    printed = run("--cases centroid 'naive Bayes' --coalitions 8 --pairs 1")
    for name in ("centroid", "naive Bayes"):
        (line,) = [line for line in printed.splitlines() if line.startswith(name)]
        assert line.endswith("100.0%")


@of("sampler_times", pytest.mark.slow)
def test_errors_of_samplers_are_saved(script, run, tmp_path):
    run(
        "--games 'ridge, R2, 200 rows' --rows 40 --budgets 10 100 --seeds 3 --save times.json"
    )
    (curves,) = json.loads((tmp_path / "times.json").read_text())["curves"].values()
    assert list(curves) == list(script.SAMPLERS)
    few, many = curves["stratified"]
    assert many[1] < few[1]
