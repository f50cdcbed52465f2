"""Semivalues from fewer fits: adjusted ones, several of one fit, and peers."""

import re

import numpy as np
import pytest
from problems import two_classes

from skvalue.semivalues import size_weights, tabulated_semivalue

from .scripts import of


@of("several_semivalues")
def test_several_semivalues_come_from_one_fit(script, monkeypatch, run):
    monkeypatch.setattr(script, "GAMES", {"adult": (*script.GAMES["adult"][:2], 30, 0)})
    monkeypatch.setattr(script, "TARGETS", ["shapley", "banzhaf"])
    data = two_classes(0, 30, 60, noise=0, names=None)
    monkeypatch.setattr(script, "load", lambda name, folder, n: data)
    _, *rows = run("--sets adult --seeds 1 --coalitions 1100").splitlines()
    ratios = [[float(cell) for cell in row.split("|")[3:5]] for row in rows]
    not_adjusted, adjusted = ratios
    assert not_adjusted[0] == pytest.approx(1, abs=0.01)
    assert not_adjusted[1] > 1.5
    assert adjusted[0] < 0.8


class PairGame:
    """A game of single players, pairs and sizes, which counts its evaluations."""

    def __init__(self, rng, n):
        self.n = n
        self.pairs = rng.normal(size=(n, n))
        self.single = rng.normal(size=n)
        self.n_evaluations = 0

    def __call__(self, masks):
        self.n_evaluations += len(masks)
        masks = np.asarray(masks, dtype=float)
        products = np.einsum("mi,ij,mj->m", masks, self.pairs, masks)
        of_size = 2 * np.sqrt(masks.sum(axis=1))
        return masks @ self.single + 0.3 * products + of_size

    def exact(self, semivalue):
        masks = (np.arange(2**self.n)[:, None] >> np.arange(self.n)) % 2 == 1
        return tabulated_semivalue(self(masks), semivalue)


@of("fewer_fits_peers")
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_other_estimators_approach_exact_values(script, semivalue, rng):
    game = PairGame(rng, n=8)
    exact = game.exact(semivalue)
    weights = size_weights(semivalue, game.n)
    peers = script.PEERS if semivalue == "shapley" else script.BANZHAF_PEERS
    for name, peer in peers.items():
        game.n_evaluations = 0
        values = peer(game, weights, 8000, np.random.default_rng(0))
        assert game.n_evaluations <= 8000, name
        np.testing.assert_allclose(values, exact, atol=0.15, err_msg=name)
        of_few = peer(game, weights, 100, np.random.default_rng(0))
        assert np.abs(of_few - exact).mean() > np.abs(values - exact).mean(), name


@of("fewer_fits_peers")
def test_leverage_scores_are_exact_with_all_coalitions(script, rng):
    game = PairGame(rng, n=8)
    values = script.leverage_regression(
        game, size_weights("shapley", 8), 2**8, np.random.default_rng(0)
    )
    np.testing.assert_allclose(values, game.exact("shapley"), atol=1e-10)


@of("fewer_fits")
def test_the_best_estimator_of_shapiq_has_the_least_error(script):
    squares = {
        "True": np.array([1.0]),
        "shapiq SVARM": np.array([1.0, 9.0]),
        "shapiq OddSHAP": np.array([4.0, 4.0]),
        "leverage": np.array([2.0]),
    }
    assert script.best_of_shapiq(squares) == "shapiq OddSHAP"
    assert script.best_of_shapiq({"True": np.array([1.0])}) is None


@of("fewer_fits")
@pytest.mark.parametrize(
    ("semivalue", "slow"), [("shapley", {"SVARM", "kADDSHAP"}), ("banzhaf", {"SVARM"})]
)
def test_slow_estimators_of_shapiq_run_for_few_rows_only(script, semivalue, slow):
    few, many = (
        script.peers_of(script.Case("wine", "logistic", semivalue, n=n), True)
        for n in (100, 200)
    )
    assert few.keys() - many.keys() == slow
    assert "RegressionMSR lightgbm" in many


@of("fewer_fits", pytest.mark.slow)
@pytest.mark.filterwarnings("ignore")
def test_adjusted_values_are_printed_beside_others(script, monkeypatch, run):
    small = script.Case("wine", "naive Bayes", n=40, fits=1100, reference=4000)
    for cases in ("PEER_CASES", "OWN_CASES"):
        monkeypatch.setattr(script, cases, [small])
    printed = run("--replicates 2 --save results.json")
    pattern = r"^wine, naive Bayes +2 +([\d.]+) +([\d.]+)$"
    true, stated = map(float, re.findall(pattern, printed, re.MULTILINE)[0])
    assert 0.2 < stated < 1.1
    assert 0.2 < true < 1.5
    assert "paired kernel" in printed
    # All is in the file by now.
    assert run("--replicates 2 --save results.json") == printed


@of("marginal_contributions", pytest.mark.slow)
def test_contributions_of_one_fit_are_measured(run):
    *_, row, memory = run('--cases "wide 60" --seeds 2').splitlines()
    numbers = re.findall(r"[\d.]+(?:e-\d+)?", row)[1:]
    seconds, error, honest, *_, ratio = map(float, numbers)
    assert min(seconds, error, honest, ratio) > 0
    assert memory.endswith("GB")
