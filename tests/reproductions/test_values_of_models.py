"""What a row does to a model: unrolled values, influence, and uses of values."""

from argparse import Namespace

import numpy as np
import pytest
from problems import two_classes

from .scripts import keep, of


@of("unrolled_lds")
def test_unrolled_values_predict_small_removals(run, tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y = np.arange(300) % 10
    means = rng.integers(0, 255, size=(10, 28, 28))
    X = means[y] + rng.normal(0, 60, size=(300, 28, 28))
    np.savez(
        tmp_path / "mnist.npz",
        X=X.clip(0, 255).astype(np.uint8),
        y=y,
        split=(np.arange(300) >= 200).astype(int),
    )
    small = "--rows 200 --points 100 --hidden 8 --epochs 3 --batch-size 40 --subsets 12"
    *_, row, sizes = run(f"{small} --memory --activations SiLU --data .").splitlines()
    assert float(row.split("|")[2]) > 0.9  # 5 % removed
    assert sizes.startswith("1,666 parameters, 15 steps")


@of("influence_figures", pytest.mark.slow)
def test_newton_steps_have_smaller_errors_than_influence(script, monkeypatch, run):
    for table in ("MODELS", "TIMED"):
        keep(monkeypatch, script, table, ["RidgeClassifier"])
    printed = run("--rows 40 --timed 30")
    rows = [row for row in printed.splitlines() if row.startswith("RidgeClassifier")]
    influence, one_step, two_steps = map(float, rows[0].split()[1:])
    assert influence > 0.1 > 1e-6 > max(one_step, two_steps)
    assert float(rows[1].split()[-1]) < 1e-6


@of("which_value")
def test_uses_of_values_are_compared(script, monkeypatch, run, tmp_path):
    X, y = two_classes(0, 300, 0, noise=0, names=None).rows
    np.savez(tmp_path / "toy.npz", X=X, y=y == 1)
    keep(
        monkeypatch, script, "METHODS", ["threshold KNN-Shapley", "influence, logistic"]
    )
    keep(monkeypatch, script, "MODELS", ["logistic", "neighbours"])
    printed = run("--data . --sets toy --rows 80 --points 60 --subsets 8")
    rows = [row.split("|")[1:-1] for row in printed.splitlines() if "KNN-" in row]
    of_set, of_mean = rows
    assert of_set == of_mean
    assert float(of_set[3]) > 0.6  # AUROC


@of("private_methods")
def test_private_values_of_parties_approach_those_without_noise(script, monkeypatch):
    monkeypatch.setattr(script, "EPSILONS", (0.1, 1e4))
    options = Namespace(methods=["PriArTa", "federated"], draws=1)
    of_parties = script.measure_parties(options)
    assert list(of_parties) == ["PriArTa", "federated"]
    assert of_parties["PriArTa"][1] > 0.9


@of("private_methods")
@pytest.mark.parametrize("name", ["by_tknn", "by_in_run"])
def test_private_values_of_rows_approach_those_without_noise(name, script, rng):
    X = rng.normal(size=(60, 3))
    y = np.arange(60) % 2
    rows = X[:40], y[:40], {"X_val": X[40:], "y_val": y[40:]}
    method = getattr(script, name)
    noisy, exact = method(rows, [1e4, None])
    assert np.corrcoef(noisy, exact)[0, 1] > 0.9
