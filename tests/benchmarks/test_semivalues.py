"""Semivalues by retraining: against a peer at the same precision, samplers side by
side, overhead.

    pytest tests/benchmarks/test_semivalues.py -m bench -s

The peer lives in an environment of its own: see test_neighbors.py.
"""

from time import perf_counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skvalue import SemivalueValuer
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
DataShapleyValuer(max_evaluations=2000, n_jobs=1, random_state=1).fit(X[:n], y[:n], **data)
valuer = DataShapleyValuer(max_evaluations=20_000, n_jobs=1, random_state=0)
t = time.perf_counter()
valuer.fit(X[:n], y[:n], **data)
print(time.perf_counter() - t, np.mean(valuer.values_error_**2))
"""


def test_data_shapley_against_pydvl(against_a_peer):
    # Variances fall as one over time, so that time times variance compares at any
    # precision.
    what = (
        "pyDVL 0.10 over Data Shapley, n=300, d=20, seconds times variance, one thread"
    )
    assert against_a_peer(what, "SKVALUE_PEERS_PYTHON", DATA, PEER, OURS) >= 30


def test_samplers_side_by_side(capsys):
    data = learnable(200, 10)
    table = {}
    for semivalue in ("shapley", "banzhaf", (4, 1)):
        for sampler in (*ORDERS, "subsets", "stratified"):
            valuer = SemivalueValuer(
                semivalue=semivalue,
                sampler=sampler,
                max_evaluations=20_000,
                random_state=0,
            )
            valuer.fit(**data)
            error = np.sqrt(np.mean(valuer.values_error_**2))
            table[semivalue, sampler] = error * np.sqrt(valuer.n_evaluations_ / 20_000)
    with capsys.disabled():
        print(
            "\nstandard error (root mean square) with 20,000 coalitions, n=200, d=10:"
        )
        for key, error in table.items():
            print(*key, f"{error:.5f}")
    for semivalue in ("shapley", (4, 1)):
        rest = min(table[semivalue, sampler] for sampler in ORDERS)
        assert table[semivalue, "stratified"] < rest
    assert table["banzhaf", "subsets"] < 1.1 * table["banzhaf", "stratified"]


@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_overhead_over_the_fits(sampler, capsys, monkeypatch):
    data = learnable(200, 10)
    spent = []
    utility = ModelGame.utility

    def timed(self, masks):
        start = perf_counter()
        result = utility(self, masks)
        spent.append(perf_counter() - start)
        return result

    monkeypatch.setattr(ModelGame, "utility", timed)
    valuer = SemivalueValuer(
        LogisticRegression(),
        batch="never",
        sampler=sampler,
        max_evaluations=3000,
        n_jobs=1,
    )
    start = perf_counter()
    valuer.fit(**data)
    overhead = (perf_counter() - start) / sum(spent) - 1
    with capsys.disabled():
        print(
            f"\n{sampler}: overhead over {valuer.n_evaluations_} fits: {overhead:.1%}"
        )
    assert overhead < 0.1
