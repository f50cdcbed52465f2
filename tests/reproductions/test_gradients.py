"""Figures and tables of values from gradients, private and in-run."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from problems import two_classes
from sklearn.base import BaseEstimator

from skvalue import GradientSemivalueValuer

from .scripts import ROOT, of, save_images, table_rows

# Figures ------------------------------------------------------------------------------


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
        Recorder(),
        [[0.0]],
        [0],
        n_permutations=[2, 4],
        noises={"a": {"noise": "x"}, "b": {}},
        n_repeats=3,
        random_state=0,
    )
    assert len(Recorder.calls) == 12
    # A seed for each repeat, for all its points.
    seeds = {call["random_state"] for call in Recorder.calls if call["noise"] == "x"}
    assert len(seeds) == 3
    np.testing.assert_allclose(curves.uncertainty["a"], [[0.06, 0.24]] * 3)
    np.testing.assert_allclose(curves.mean_value["b"], 0.75)


@of("gradient_figures")
def test_noise_makes_values_worse_with_more_permutations_unless_averaged(script, rng):
    problem = two_classes(rng, 40, 80, d=2, noise=0, names=None)
    valuer = GradientSemivalueValuer(
        "logistic", learning_rate=0.05, noise_multiplier=2.0
    )
    curves = script.uncertainty_curve(
        valuer,
        *problem.rows,
        **problem.points,
        n_permutations=[20, 320],
        random_state=0,
        noises={"iid": {"noise": "iid"}, "averaged": {"noise": "correlated"}},
    )
    iid = curves.mean_value["iid"][0]
    averaged = curves.mean_value["averaged"][0]
    assert iid[1] < 4 * iid[0] < 0
    assert abs(averaged[1]) < abs(iid[1]) / 10


@of("gradient_figures")
def test_noise_alone_sets_the_distance(script):
    # Clean gradients do not vary. What remains is the noise, of variance
    # k sigma^2 p / t after t of k releases.
    k = 64
    p = 50

    def closeness(**options):
        return script.release_closeness(
            k,
            gradient_sd=0.0,
            n_parties=400,
            n_parameters=p,
            noise_multiplier=2.0,
            random_state=0,
            **options,
        )

    averaged = closeness()
    expected = 2.0 * np.sqrt(k / np.arange(1, k + 1)) * np.sqrt(p)
    np.testing.assert_allclose(averaged.distance, expected, rtol=0.03)
    iid = closeness(noise="iid")
    np.testing.assert_allclose(iid.distance, 2.0 * np.sqrt(k * p), rtol=0.03)
    assert averaged.cosine[-1] > 3 * np.abs(iid.cosine).mean()


@of("gradient_figures")
def test_the_best_mean_is_best_where_gradients_vary(script):
    distances = {}
    for name in script.NOISES:
        closeness = script.release_closeness(
            100,
            noise=name,
            noise_multiplier=0.02,
            gradient_sd=0.2,
            n_parties=400,
            random_state=0,
        )
        distances[name] = closeness.distance[-30:].mean()
    assert distances["optimal"] < min(distances["iid"], distances["correlated"])


@of("gradient_figures")
def test_closeness_is_that_of_the_page(script):
    """Of 200 releases the distance of the running mean falls from 6.3 to 0.49."""
    closeness = script.release_closeness(
        200, noise="correlated", noise_multiplier=0.1, random_state=0
    )
    assert closeness.distance[0] == pytest.approx(6.303, abs=5e-4)
    assert closeness.distance[-1] == pytest.approx(0.488, abs=5e-4)


@of("rank_fidelity")
@pytest.mark.slow
def test_ranks_of_private_values_are_those_of_the_page(run):
    printed = run("--draws 4 --methods TKNN 'Layered, all values'")
    tknn, layered = table_rows(printed, "| TKNN") + table_rows(printed, "| Layered")
    assert tknn[-1] == "0.817, 0.90"
    assert layered[-1] == "0.991, 0.93"
    for cells, published in ((tknn, 0.986), (layered, 0.992)):
        correlation = float(cells[2].split(",")[0])
        assert correlation == pytest.approx(published, abs=0.03)


@of("gradient_figures")
def test_the_table_of_figures_is_printed(script, run):
    printed = run("--permutations 20")
    assert [printed.count(f"\n| {name} ") for name in script.NOISES] == [2, 2, 2]


@of("gradient_figures")
def test_figures_are_drawn(script):
    figure = pytest.importorskip("matplotlib.figure").Figure()
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


# Tables -------------------------------------------------------------------------------


@of("gradient_tables")
def test_errors_over_permutations_are_too_small_where_noise_is_averaged(script, rng):
    X = rng.normal(size=(60, 2))
    y = np.arange(60) % 2

    def stated(noise, n_permutations):
        valuer = GradientSemivalueValuer(
            n_permutations=n_permutations,
            noise=noise,
            noise_multiplier=1.0,
            burn_in=0.0,
            learning_rate=0.1,
        )
        return script.stated_by_permutations(valuer, X[:20], y[:20], X[20:], y[20:])

    assert stated("iid", 160) > stated("iid", 10)
    assert stated("correlated", 160) < stated("correlated", 10) / 4


@of("gradient_parties")
@pytest.mark.parametrize("retaken", [False, True])
def test_a_direction_that_is_retaken_finds_bad_parties_too(script, rng, retaken):
    X = rng.normal(size=(140, 3))
    y = rng.integers(0, 2, 140)
    X[:, 0] += 4 * y
    owner = np.arange(100) // 10
    y[:30] = 1 - y[:30]
    values = script.values_along(
        X[:100], y[:100], owner, X[100:], y[100:], 10, 0.1, 0.01, 0, retaken
    )
    assert values[:3].max() < values[3:].min()


@of("gradient_parties", pytest.mark.slow)  # trains a network for each of 25 settings
def test_gradient_parties_print_published_and_measured_figures(run, tmp_path):
    save_images(tmp_path, "mnist", 1, 28, 400)
    small = "--parties 10 --size 5 --permutations 4 --repeats 1 --round-permutations 4"
    printed = run(f"--data . --parts sets federated --sets mnist --rate 1 {small}")
    sets, by_sums, by_means, loss = table_rows(printed, "| mnist")
    assert sets[:4] == ["mnist", "10", "5", "4"]
    assert by_sums[:6] == ["mnist", "accuracy", "sum", "10", "5", "4"]
    assert by_means[1:3] == ["accuracy", "mean"]
    assert loss[1:3] == ["neg_loss", "mean"]
    assert sets[-1] == "0.290, 0.170 (B=8)"
    assert by_sums[-1] == loss[-1] == "0.195, 0.081"
    for cells in (sets[4:8], by_sums[6:13], by_means[6:13], loss[6:13]):
        aurocs = np.array(cells, dtype=float)
        assert ((aurocs >= 0) & (aurocs <= 1)).all()
    assert float(loss[6]) > 0.8  # no noise


@of("gradient_parties", pytest.mark.slow)
def test_sums_of_updates_find_bad_parties_as_on_the_page(run):
    data = Path(os.environ.get("SKVALUE_DATA", "."))
    if not (data / "mnist.npz").is_file():
        pytest.skip("needs mnist.npz in the folder SKVALUE_DATA")
    page = ROOT / "doc" / "user_guide" / "reproduction_gradients.rst"
    (cell,) = re.findall(
        r"^accuracy, sum +([\d.]+)", page.read_text(encoding="utf-8"), re.M
    )
    options = "--sets mnist --networks linear --round-permutations 16"
    options += " --utilities accuracy --steps sum --noises 'no DP' --draws 0"
    printed = run(f"--data {data} --parts federated {options}")
    (found,) = re.findall(r"no DP, rate [\d.]+: ([\d.]+)", printed)
    assert float(found) == pytest.approx(float(cell), abs=0.01)


@of("gradient_parties")
def test_too_few_images_for_the_parties_are_refused(run, tmp_path):
    save_images(tmp_path, "mnist", 1, 28, 400)
    message = "mnist must have 40 x 32 rows for parties and 200 for validation. Got 400"
    assert message in run("--data . --parts sets --sets mnist")


@of("gradient_networks")
def test_resnets_take_the_parameters_of_torchvision(script, tmp_path):
    torch = pytest.importorskip("torch")
    network = script.resnet(script.BLOCKS["resnet18"])
    # That of torchvision has 1,000 classes.
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    assert n_parameters == 11_689_512 - 990 * 513

    # The same parameters, plus one, by the names of torchvision.
    weights = {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}
    blocks = [f"layer{i}.{j}" for i in range(1, 5) for j in range(2)]
    layers = ["conv1", "bn1", "relu", "maxpool", *blocks, "avgpool", "flatten", "fc"]
    for key, value in network.state_dict().items():
        i, _, parameter = key.partition(".")
        layer = layers[int(i)]
        if layer != "fc":
            weights[f"{layer}.{parameter}"] = value + 1
    assert {"layer2.0.downsample.1.running_var", "layer4.1.conv2.weight"} < set(weights)
    torch.save(weights, tmp_path / "resnet18.pth")

    save_images(tmp_path, "cifar10", 3, 32, 40)
    source = script.Source(tmp_path, weights=tmp_path / "resnet18.pth")
    X, y = source.load("resnet18")
    tail = source.network("resnet18")
    assert len(X) == len(y) == 20
    for key, value in network[-4:-1].state_dict().items():
        np.testing.assert_array_equal(tail.state_dict()[key], value + 1)
    trained = [key for key, value in tail.named_parameters() if value.requires_grad]
    assert trained == ["11.conv1.weight", "11.conv2.weight", "14.weight", "14.bias"]


@of("in_run_tables")
def test_private_in_run_values_approach_those_without_noise(script, monkeypatch, run):
    rows = two_classes(0, 400, 0, d=4, noise=0, names=None).rows
    monkeypatch.setattr(script, "load", lambda name, folder: rows)
    printed = run("--sets adult --sizes 150 --epsilons 100 --draws 1 --steps 2")
    last_line = printed.splitlines()[-1]
    exact, private, *_ = map(float, last_line.replace("|", " ").split()[4:])
    assert exact > 0.6
    assert private == pytest.approx(exact, abs=0.05)


@of("party_sizes")
def test_small_data_sets_are_worth_little_if_steps_are_weighted(run):
    printed = run("--draws 1 --sets normal")
    ((_, *cells),) = table_rows(printed, "| gradients, rows   ")[:1]
    assert float(cells[0]) < 2
    assert cells[5] == "1"


@of("party_sizes", pytest.mark.slow)
def test_sizes_are_ranked_as_by_retraining(run):
    printed = run("--draws 10")
    n_ranked = {}
    for values in ("gradients, rows ", "gradients, equal", "federated, rows "):
        rows = table_rows(printed, f"| {values}")
        n_ranked[values] = [int(cells[6]) for cells in rows if len(cells) > 6]
    # Normal columns, and digits.
    assert min(n_ranked["gradients, rows "]) >= 9
    assert n_ranked["federated, rows "][0] >= 9
    assert n_ranked["federated, rows "][1] >= 7
    assert max(n_ranked["gradients, equal"]) <= 5
