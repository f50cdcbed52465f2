"""Networks within the scorer and the buyer's folder, and (slow) the order of
sellers."""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("torch")
pytest.importorskip("kornia")

from skvalue.priarta import (
    BuyerModel,
    GaussianVAE,
    PriArTaScorer,
    SellerRelease,
    SimCLR,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "reproductions" / "priarta_figures.py"


@pytest.fixture(scope="module")
def digits():
    images, y = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8).astype(np.uint8) * 15, y


@pytest.fixture(scope="module")
def scorer(digits):
    X, y = digits
    simclr = SimCLR(projection_dim=16, n_epochs=3, batch_size=128)
    latent = GaussianVAE(4, n_epochs=10, batch_size=128)
    return PriArTaScorer(simclr, latent=latent, random_state=0).fit(X[y < 5])


def test_images_go_through_and_new_classes_are_far(digits, scorer):
    X, y = digits
    moved = np.roll(X[y < 5], 1, axis=2)
    own, copy, new = scorer.transform([X[y < 5], moved, X[y >= 5]])[:, 0]
    assert own < copy < new
    assert own == pytest.approx(0, abs=1e-6)


def test_the_folder_holds_the_networks(digits, scorer, tmp_path):
    X = digits[0][:50]
    scorer.export(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".npz"}
    model = BuyerModel.load(tmp_path)
    np.testing.assert_allclose(
        model.transform(X), scorer.model_.transform(X), atol=1e-5
    )
    assert model.fingerprint == scorer.model_.fingerprint
    summary = SellerRelease(tmp_path, epsilon=0.8).fit(X).summary_
    assert np.isfinite(scorer.score_summaries([summary])).all()
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["representation"]["name"] == "simclr"
    config["representation"]["config"]["output"] = "os.system"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ValueError, match="'output'. must be one of backbone, .* Got 'os.system'"
    ):
        BuyerModel.load(tmp_path)


def test_words_stand_for_networks(digits):
    scorer = PriArTaScorer("simclr", latent="pca")
    assert scorer.get_params()["representation"] == "simclr"
    scorer.set_params(representation=SimCLR(n_epochs=1, projection_dim=4)).fit(
        digits[0][:100]
    )
    assert scorer.model_.n_dimensions == 4
    assert isinstance(scorer.model_.representation.random_state, int | None)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("priarta_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({1: 0.32}, False),  # seller 1 hardly leads
        ({3: 0.45}, False),  # the copy of seller 2 is far from it
        ({6: 0.2}, False),  # a copy of the buyer's rows is far from them
        ({2: 0.06, 3: 0.06}, False),  # seller 2 is nearer than a copy
    ],
)
def test_statements_about_the_order(script, change, holds):
    scores = np.array([0.01, 1.0, 0.3, 0.33, 0.1, 0.08, 0.05, 0.1])
    for seller, score in change.items():
        scores[seller] = score
    assert script.statements(scores)["holds"] is holds


@pytest.mark.parametrize("shape", [(28, 28), (32, 32, 3)])
def test_the_market_is_that_of_the_paper(script, shape):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 60)
    X = rng.integers(0, 256, size=(600, *shape), dtype=np.uint8)
    name = "mnist" if len(shape) == 2 else "cifar10"
    shares = script.MARKETS[name]
    assert [sum(share.values()) for share in shares] == pytest.approx([1] * len(shares))
    assert not set(shares[0]) & set(shares[2])
    assert set(shares[0]) == set(shares[1])
    buyer, sellers, test = script.make_market(X, y, shares, 80, 60, seed=1)
    assert [len(rows) for rows, _ in sellers] == [60] * 8
    assert {rows.dtype for rows, _ in sellers} == {np.dtype(np.uint8)}
    keys = [{row.tobytes() for row in rows} for rows, _ in (buyer, *sellers, test)]
    assert keys[1] <= keys[0]  # seller 0 holds rows of the buyer
    for other in (
        2,
        3,
        9,
    ):  # new and similar classes and the test rows are other images
        assert not keys[0] & keys[other]
    assert not keys[9] & (keys[2] | keys[3])
    for copy, original in ((4, 3), (5, 1), (6, 1), (7, 1), (8, 1)):
        assert len(keys[copy] & keys[original]) < 40
        np.testing.assert_array_equal(sellers[copy - 1][1], sellers[original - 1][1])
    again = script.make_market(X, y, shares, 80, 60, seed=1)[1]
    for (first, _), (second, _) in zip(sellers, again):
        np.testing.assert_array_equal(first, second)


def run_script(script, monkeypatch, capsys, folder, name, shape, words):
    """What the script prints for random images."""
    X = np.random.default_rng(0).integers(0, 256, size=(200, *shape), dtype=np.uint8)
    np.savez(folder / f"{name}.npz", X=X, y=np.repeat(np.arange(10), 20))
    words = f"script --data {folder} --device cpu --n-buyer 40 --n-seller 20 --draws 2 {words}"
    monkeypatch.setattr(sys, "argv", words.split())
    script.main()
    return capsys.readouterr().out


GAINS = re.compile(r"^  \d .{20} [- ]0\.\d{3} \((0\.\d{3})\)$", re.MULTILINE)


def test_gains_are_printed_with_their_errors(script, tmp_path, monkeypatch, capsys):
    words = "--seeds 0 1 --gains-only --classifier-epochs 1"
    printed = run_script(
        script, monkeypatch, capsys, tmp_path, "mnist", (28, 28), words
    )
    by_seed = [
        line.split()[6:] for line in printed.splitlines() if line.startswith("seed")
    ]
    errors = [abs(float(a) - float(b)) / 2 for a, b in zip(*by_seed)]
    assert [float(error) for error in GAINS.findall(printed)] == pytest.approx(
        errors, abs=1.1e-3
    )
    assert len(errors) == 8
    assert "epsilon" not in printed


@pytest.mark.slow
def test_the_script_runs_on_colour_images(script, tmp_path, monkeypatch, capsys):
    """With the network, the augmentations and the classifier that a GPU would run."""
    words = "--cifar --seeds 0 --epochs 1 --private-sizes 20 10 --classifier-epochs 1"
    printed = run_script(
        script, monkeypatch, capsys, tmp_path, "cifar10", (32, 32, 3), words
    )
    for setting in ("no noise", "epsilon 0.8, 20 rows", "epsilon 0.8, secret 10 of 20"):
        assert printed.count(f"  {setting} ") == 1
    assert len(GAINS.findall(printed)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_order_of_sellers_on_mnist(script, seed):
    """All of it without noise and with 2,000 rows; with 500 in nearly every release.

    Of 400 releases with 500 rows 90 to 95 % were in order, by seed: 80 of 100 are with
    a probability of 0.998 or more, and at least four of five seeds in one release each
    with 0.95. Were it 75 %, all five seeds would pass here with one of 1e-4. All noise
    has a seed.
    """
    folder = os.environ.get("SKVALUE_DATA")
    if not folder or not (Path(folder) / "mnist.npz").exists():
        pytest.skip("SKVALUE_DATA names no folder with mnist.npz")
    words = ["--data", folder, "--draws", "100", "--classifier-epochs", "0"]
    with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
        said, _ = script.run_seed(
            file["X"], file["y"], "mnist", seed, script.parse(words)
        )
    assert said["no noise"][0]
    assert said["2000 rows"][1] >= 0.99
    assert said["secret 500 of 2000"][1] >= 0.93
    assert said["500 rows"][1] >= 0.8
