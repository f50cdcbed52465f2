"""Networks within the scorer and the buyer's folder, and the order of sellers."""

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
    """A scorer of images of the digits 0 to 4."""
    X, y = digits
    simclr = SimCLR(projection_dim=16, n_epochs=3, batch_size=128, random_state=0)
    latent = GaussianVAE(4, n_epochs=10, batch_size=128, random_state=0)
    return PriArTaScorer(simclr, latent=latent, random_state=0).fit(X[y < 5])


class TestScorer:
    def test_new_classes_are_farther_than_moved_copies(self, digits, scorer):
        X, y = digits
        moved = np.roll(X[y < 5], 1, axis=2)
        same, copy, new = scorer.transform([X[y < 5], moved, X[y >= 5]])[:, 0]
        assert same < copy < new
        assert same == pytest.approx(0, abs=1e-6)

    def test_maps_of_parameters_are_fitted(self, digits):
        scorer = PriArTaScorer("simclr", latent="pca")
        assert scorer.get_params()["representation"] == "simclr"
        scorer.set_params(representation=SimCLR(n_epochs=1, projection_dim=4))
        scorer.fit(digits[0][:100])
        assert scorer.model_.n_dimensions == 4
        assert isinstance(scorer.model_.representation.random_state, int | None)


class TestFolder:
    @pytest.fixture
    def folder(self, scorer, tmp_path):
        scorer.export(tmp_path)
        return tmp_path

    def test_holds_json_and_arrays(self, folder):
        assert {path.suffix for path in folder.iterdir()} == {".json", ".npz"}

    def test_gives_the_same_model(self, digits, scorer, folder):
        X = digits[0][:50]
        model = BuyerModel.load(folder)
        np.testing.assert_allclose(
            model.transform(X), scorer.model_.transform(X), atol=1e-5
        )
        assert model.fingerprint == scorer.model_.fingerprint

    def test_is_all_that_a_seller_needs(self, digits, scorer, folder):
        summary = SellerRelease(folder, epsilon=0.8).fit(digits[0][:50]).summary_
        assert np.isfinite(scorer.score_summaries([summary])).all()

    def test_with_another_output_is_refused(self, folder):
        path = folder / "config.json"
        config = json.loads(path.read_text())
        assert config["representation"]["name"] == "simclr"
        config["representation"]["config"]["output"] = "os.system"
        path.write_text(json.dumps(config))
        with pytest.raises(
            ValueError, match="'output'. must be one of backbone, .* Got 'os.system'"
        ):
            BuyerModel.load(folder)


# The script that redoes the figures ---------------------------------------------------


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
        ({1: 0.32}, False),
        ({3: 0.45}, False),
        ({6: 0.2}, False),
        ({2: 0.06, 3: 0.06}, False),
    ],
    ids=[
        "as in the paper",
        "seller 1 hardly leads",
        "the copy of seller 2 is far from it",
        "a copy of the buyer's rows is far from them",
        "seller 2 is nearer than a copy",
    ],
)
def test_statements_about_the_order_hold_for_it_alone(script, change, holds):
    scores = np.array([0.01, 1.0, 0.3, 0.33, 0.1, 0.08, 0.05, 0.1])
    for seller, score in change.items():
        scores[seller] = score
    assert script.statements(scores)["holds"] is holds


SHAPES = {"mnist": (28, 28), "cifar10": (32, 32, 3)}


@pytest.mark.parametrize("name", SHAPES)
class TestMarket:
    """The market of the paper, of random images."""

    @pytest.fixture
    def fractions(self, script, name):
        return script.MARKETS[name]

    @pytest.fixture
    def make_market(self, script, name, fractions):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(10), 60)
        X = rng.integers(0, 256, size=(600, *SHAPES[name]), dtype=np.uint8)
        return lambda: script.make_market(X, y, fractions, 80, 60, seed=1)

    def test_fractions_of_classes_are_those_of_the_paper(self, fractions):
        totals = [sum(of_seller.values()) for of_seller in fractions]
        assert totals == pytest.approx([1] * len(fractions))
        assert not set(fractions[0]) & set(fractions[2])
        assert set(fractions[0]) == set(fractions[1])

    def test_sellers_have_new_and_copied_images(self, make_market):
        buyer, sellers, test = make_market()
        assert [len(rows) for rows, _ in sellers] == [60] * 8
        assert {rows.dtype for rows, _ in sellers} == {np.dtype(np.uint8)}
        images = [
            {row.tobytes() for row in rows} for rows, _ in (buyer, *sellers, test)
        ]
        # Seller 0 has rows of the buyer.
        assert images[1] <= images[0]
        # New and similar classes and the test rows are other images.
        for other in (2, 3, 9):
            assert not images[0] & images[other]
        assert not images[9] & (images[2] | images[3])
        # Copies are moved images with the same labels.
        for copy, original in ((4, 3), (5, 1), (6, 1), (7, 1), (8, 1)):
            assert len(images[copy] & images[original]) < 40
            np.testing.assert_array_equal(
                sellers[copy - 1][1], sellers[original - 1][1]
            )

    def test_depends_on_the_seed_alone(self, make_market):
        _, first_sellers, _ = make_market()
        _, second_sellers, _ = make_market()
        for (first, _), (second, _) in zip(first_sellers, second_sellers):
            np.testing.assert_array_equal(first, second)


class ScriptRun:
    """Runs the script on random images."""

    def __init__(self, script, monkeypatch, capsys, folder):
        self.script = script
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        self.folder = folder

    def output(self, name, arguments):
        """What the script prints."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 256, size=(200, *SHAPES[name]), dtype=np.uint8)
        np.savez(self.folder / f"{name}.npz", X=X, y=np.repeat(np.arange(10), 20))
        common = "--device cpu --n-buyer 40 --n-seller 20 --draws 2"
        command = f"script --data {self.folder} {common} {arguments}"
        self.monkeypatch.setattr(sys, "argv", command.split())
        self.script.main()
        return self.capsys.readouterr().out


@pytest.fixture
def script_run(script, monkeypatch, capsys, tmp_path):
    return ScriptRun(script, monkeypatch, capsys, tmp_path)


GAINS = re.compile(r"^  \d .{20} [- ]0\.\d{3} \((0\.\d{3})\)$", re.MULTILINE)


def test_gains_are_printed_with_their_standard_errors(script_run):
    output = script_run.output(
        "mnist", "--seeds 0 1 --gains-only --classifier-epochs 1"
    )
    first, second = (
        line.split()[6:] for line in output.splitlines() if line.startswith("seed")
    )
    expected = [abs(float(a) - float(b)) / 2 for a, b in zip(first, second)]
    errors = [float(error) for error in GAINS.findall(output)]
    assert errors == pytest.approx(expected, abs=1.1e-3)
    assert len(errors) == 8
    assert "epsilon" not in output


@pytest.mark.slow
def test_script_runs_on_colour_images(script_run):
    """With the network, the augmentations and the classifier that a GPU would run."""
    output = script_run.output(
        "cifar10",
        "--cifar --seeds 0 --epochs 1 --private-sizes 20 10 --classifier-epochs 1",
    )
    for setting in ("no noise", "epsilon 0.8, 20 rows", "epsilon 0.8, secret 10 of 20"):
        assert output.count(f"  {setting} ") == 1
    assert len(GAINS.findall(output)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_order_of_sellers_on_mnist_is_that_of_the_paper(script, seed):
    """All of it without noise and with 2,000 rows; with 500 in nearly every release.

    Of 400 releases with 500 rows 90 to 95 % were in order, by seed: 80 of 100 are with
    a probability of 0.998 or more, and at least four of five seeds in one release each
    with 0.95. Were it 75 %, all five seeds would pass here with one of 1e-4. All noise
    has a seed.
    """
    folder = os.environ.get("SKVALUE_DATA")
    if not folder or not (Path(folder) / "mnist.npz").exists():
        pytest.skip("SKVALUE_DATA names no folder with mnist.npz")
    options = script.parse(
        ["--data", folder, "--draws", "100", "--classifier-epochs", "0"]
    )
    with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
        fractions, _ = script.run_seed(file["X"], file["y"], "mnist", seed, options)
    assert fractions["no noise"][0]
    assert fractions["2000 rows"][1] >= 0.99
    assert fractions["secret 500 of 2000"][1] >= 0.93
    assert fractions["500 rows"][1] >= 0.8
