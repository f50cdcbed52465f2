"""`empty_utility="prior"`: class frequencies that the buyer knows are not paid."""

import numpy as np
import pytest

from skvalue import KNNShapleyValuer
from skvalue.semivalues import size_weights
from tests.problems import noisy_line, two_classes, unrelated

PROBLEMS = {
    "two classes": two_classes(0, 12, 9),
    "imbalanced": two_classes(0, 12, 9)._replace(y_val=np.array(["no"] * 8 + ["yes"])),
    "three classes": noisy_line(1, 12, 9, n_classes=3),
}


def frequencies(y_val, weights=None):
    weights = np.ones(len(y_val)) if weights is None else weights
    return (
        np.array([weights[y_val == c].sum() for c in np.unique(y_val)]) / weights.sum()
    )


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize(
    ("semivalue", "k"), [("shapley", 5), ("banzhaf", 1), ((2, 1), 20)]
)
def test_only_the_step_from_the_empty_coalition_changes(problem, utility, semivalue, k):
    problem = PROBLEMS[problem]
    plain = KNNShapleyValuer(k, utility=utility, semivalue=semivalue)
    prior = KNNShapleyValuer(
        k, utility=utility, semivalue=semivalue, empty_utility="prior"
    )
    weights = np.arange(1.0, 10)
    for options in ({}, {"sample_weight_val": weights}, {"groups": np.arange(12) % 3}):
        problem.fit(plain, **options), problem.fit(prior, **options)
        p = frequencies(problem.y_val, options.get("sample_weight_val"))
        assert prior.empty_utility_ == pytest.approx(p @ p, abs=1e-12)
        assert prior.utility_ == plain.utility_
        step = size_weights(semivalue, 12)[0] * (
            prior.empty_utility_ - plain.empty_utility_
        )
        step *= 12 / len(prior.values_)  # rows of a group
        np.testing.assert_allclose(prior.values_, plain.values_ - step, atol=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_sums_without_validation_set_and_of_rows_that_join(problem):
    problem = PROBLEMS[problem]
    X, y = problem.rows
    for cv in ("leave-one-out", 3):
        valuer = KNNShapleyValuer(3, empty_utility="prior", cv=cv).fit(X, y)
        gain = valuer.utility_ - valuer.empty_utility_
        assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)
    problem.fit(valuer)
    more = problem._replace(X=np.vstack([X, X[:1] + 0.1]), y=np.append(y, y[0]))
    whole = more.fit(KNNShapleyValuer(3, empty_utility="prior"))
    joined = valuer.score_samples(more.X[-1:], more.y[-1:])
    assert joined[0] == pytest.approx(whole.values_[-1], abs=1e-12)
    one, rest = (
        problem._replace(X_val=problem.X_val[:4], y_val=problem.y_val[:4]),
        slice(4, None),
    )
    if len(np.unique(one.y_val)) == len(np.unique(problem.y_val)):
        valuer = one.fit(KNNShapleyValuer(3, empty_utility="prior"))
        valuer.add_validation(problem.X_val[rest], problem.y_val[rest])
        at_once = problem.fit(KNNShapleyValuer(3, empty_utility="prior"))
        np.testing.assert_allclose(valuer.values_, at_once.values_, atol=1e-12)


@pytest.mark.parametrize(
    ("valuer", "problem"),
    [
        (KNNShapleyValuer(utility="hard"), two_classes(0)),
        (KNNShapleyValuer(), unrelated(0, n_classes=0)),
    ],
)
def test_refuses(valuer, problem):
    with pytest.raises(ValueError, match="empty_utility must be None"):
        problem.fit(valuer.set_params(empty_utility="prior"))
