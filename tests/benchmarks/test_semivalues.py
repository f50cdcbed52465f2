"""Semivalues by retraining: against a peer, samplers side by side, and overhead.

    pytest tests/benchmarks/test_semivalues.py -m bench -s

The peer lives in an environment of its own: see test_neighbors.py.
"""

from time import perf_counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skvalue import SemivalueValuer, game_values
from skvalue.games import ModelGame
from skvalue.samplers import ORDERS

from .compare import learnable

pytestmark = pytest.mark.bench

DATA = """
import time
import numpy as np
from sklearn.linear_model import LogisticRegression
rng = np.random.default_rng(0)
n, d = 300, 20
X, w = rng.standard_normal((n + 500, d)), rng.standard_normal(d)
y = (X @ w + 2 * rng.standard_normal(n + 500) > 0).astype(int)
"""
PEER = """
from pydvl.valuation.dataset import Dataset
from pydvl.valuation.methods.shapley import ShapleyValuation
from pydvl.valuation.samplers import PermutationSampler
from pydvl.valuation.scorers import SupervisedScorer
from pydvl.valuation.stopping import MinUpdates
from pydvl.valuation.utility import ModelUtility
train, test = Dataset(X[:n], y[:n]), Dataset(X[n:], y[n:])
scorer = SupervisedScorer("accuracy", test, default=0.5)
utility = ModelUtility(LogisticRegression(), scorer, show_warnings=False)
sampler = PermutationSampler(seed=0)
method = ShapleyValuation(utility, sampler, is_done=MinUpdates(12), progress=False)
t = time.perf_counter()
method.fit(train)
print(time.perf_counter() - t, np.mean(method.result.variances) / 12)
"""
OURS = """
from skvalue import DataShapleyValuer
data = dict(X_val=X[n:], y_val=y[n:])
first = DataShapleyValuer(max_evaluations=2000, n_jobs=1, random_state=1)
first.fit(X[:n], y[:n], **data)
valuer = DataShapleyValuer(max_evaluations=20_000, n_jobs=1, random_state=0)
t = time.perf_counter()
valuer.fit(X[:n], y[:n], **data)
print(time.perf_counter() - t, np.mean(valuer.values_error_**2))
"""


def test_data_shapley_is_30_times_as_fast_as_pydvl(against_a_peer):
    # Variances decrease as one over time, so that time times variance compares at any
    # precision.
    ratio = against_a_peer(
        "pyDVL 0.10 over Data Shapley, n=300, d=20, seconds times variance, one thread",
        "SKVALUE_PEERS_PYTHON",
        common=DATA,
        peer=PEER,
        skvalue=OURS,
    )
    assert ratio >= 30


def test_default_samplers_have_the_smallest_errors(capsys):
    data = learnable(200, 10)

    def error(semivalue, sampler):
        """Root mean square standard error of 20,000 coalitions."""
        valuer = SemivalueValuer(
            semivalue=semivalue,
            sampler=sampler,
            max_evaluations=20_000,
            random_state=0,
        )
        valuer.fit(**data)
        rms = np.sqrt(np.mean(valuer.values_error_**2))
        return rms * np.sqrt(valuer.n_evaluations_ / 20_000)

    errors = {}
    for semivalue in ("shapley", "banzhaf", (4, 1)):
        for sampler in (*ORDERS, "subsets", "stratified"):
            errors[semivalue, sampler] = error(semivalue, sampler)
    with capsys.disabled():
        print(
            "\nstandard error (root mean square) with 20,000 coalitions, n=200, d=10:"
        )
        for key, value in errors.items():
            print(*key, f"{value:.5f}")
    for semivalue in ("shapley", (4, 1)):
        of_orders = min(errors[semivalue, sampler] for sampler in ORDERS)
        assert errors[semivalue, "stratified"] < of_orders
    assert errors["banzhaf", "subsets"] < 1.1 * errors["banzhaf", "stratified"]


@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_overhead_over_the_fits_is_below_a_tenth(sampler, capsys, monkeypatch):
    data = learnable(200, 10)
    fit_seconds = []
    utility = ModelGame.utility

    def timed_utility(self, masks):
        start = perf_counter()
        utilities = utility(self, masks)
        fit_seconds.append(perf_counter() - start)
        return utilities

    monkeypatch.setattr(ModelGame, "utility", timed_utility)
    valuer = SemivalueValuer(
        LogisticRegression(),
        batch="never",
        sampler=sampler,
        max_evaluations=3000,
        n_jobs=1,
    )
    start = perf_counter()
    valuer.fit(**data)
    overhead = (perf_counter() - start) / sum(fit_seconds) - 1
    with capsys.disabled():
        print(
            f"\n{sampler}: overhead over {valuer.n_evaluations_} fits: {overhead:.1%}"
        )
    assert overhead < 0.1


@pytest.mark.parametrize(("n_coalitions", "limit"), [(1000, 1.5), (2000, 2.6)])
def test_the_process_takes_as_long_as_a_few_hundred_inverses(
    ratio, n_coalitions, limit
):
    # Of matrices of 400 coalitions: hyperparameters are fitted to as many, and each
    # step of that takes an inverse.
    worth = np.linspace(0.05, 0.3, 14)
    distances = np.subtract.outer(np.arange(400), np.arange(400))
    matrix = np.eye(400) + np.exp(-(distances**2))

    def estimate():
        game_values(
            lambda masks: np.tanh(masks @ worth),
            14,
            sampler="process",
            max_evaluations=n_coalitions,
            random_state=0,
        )

    def invert():
        for _ in range(400):
            np.linalg.inv(matrix)

    with threadpool_limits(1):
        ratio(f"process, {n_coalitions} coalitions", estimate, invert, limit, rounds=3)
