"""Control variates: every exact expectation against the enumeration of all coalitions."""

import numpy as np
import pytest
from scipy.special import comb

from skvalue.estimation.controls import KINDS, make_controls
from skvalue.samplers import SizeStrata
from skvalue.semivalues import size_weights

SEMIVALUES = {"shapley": "shapley", "banzhaf": "banzhaf", "beta": (2, 3), "custom": lambda n: None}
N = 8


def strata_of(semivalue, n=N):
    if semivalue == "custom":  # sizes of weight 0 among others
        q = np.array([0, 1, 0, 3, 2, 0, 1, 0.0])[:n]
        return SizeStrata.of(q / q.sum())
    return SizeStrata.of(size_weights(SEMIVALUES[semivalue], n), semivalue != "banzhaf")


def all_coalitions(strata):
    """Coalitions that are drawn, their strata, and probabilities within the stratum."""
    n = len(strata.stratum) - 1
    masks = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) % 2 == 1
    labels = strata.stratum[masks.sum(axis=1)]
    masks, labels = masks[labels >= 0], labels[labels >= 0]
    sizes = masks.sum(axis=1)
    return masks, labels, strata.probabilities[labels, sizes] / comb(n, sizes)


def enumerated(strata, v):
    """Averages of v (coalitions, n_fits) with the importance weights, by stratum and player."""
    masks, labels, probability = all_coalitions(strata)
    sizes = masks.sum(axis=1)
    sides = []
    for weight, member in ((strata.inside, masks), (strata.outside, ~masks)):
        a = (probability * weight[sizes])[:, None] * member
        mean = np.zeros((strata.n_strata, masks.shape[1], v.shape[1]))
        for k in range(strata.n_strata):
            total = a[labels == k].sum(axis=0)[:, None]
            sums = a[labels == k].T @ v[labels == k]
            mean[k] = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        sides.append(mean)
    return sides


def rows(task, n=N):
    rng = np.random.default_rng(5)
    X, X_val = rng.integers(0, 4, size=(n, 2)) * 1.0, rng.normal(size=(6, 2))  # with ties
    if task == "regression":
        y, y_val = X[:, 0] + rng.normal(size=n), rng.normal(size=6)
        data = dict(targets=y)
    else:
        n_classes = int(task[0])
        y, y_val = np.arange(n) % n_classes, rng.integers(0, n_classes, 6)
        data = dict(codes=y, class_weights=np.bincount(y_val, minlength=n_classes) / 6)
    order = np.argsort(((X_val[:, None] - X) ** 2).sum(axis=2), axis=1, kind="stable")
    near = y[order]
    matches = -((near - y_val[:, None]) ** 2) if task == "regression" else near == y_val[:, None]
    return dict(components=X, points=(order, matches.astype(float)), **data)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("task", ["regression", "1 class", "2 classes", "3 classes", "5 classes"])
def test_expectations_agree_with_enumeration(semivalue, task):
    strata = strata_of(semivalue)
    masks, labels, _ = all_coalitions(strata)
    for kind in KINDS:
        controls = make_controls(strata, **rows(task), kinds=[kind])
        beta = np.random.default_rng(1).normal(size=(controls.n_features, 2))
        x = controls.features(controls.describe(masks), labels)
        for found, expected in zip(controls.expected(beta), enumerated(strata, x @ beta)):
            np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=kind)
