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
EACH_PROBLEM = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
WEIGHTS = np.arange(1.0, 10)


def frequencies(y_val, weights=None):
    """Weighted frequencies of the labels of the validation points."""
    if weights is None:
        weights = np.ones(len(y_val))
    sums = np.array([weights[y_val == label].sum() for label in np.unique(y_val)])
    return sums / weights.sum()


@EACH_PROBLEM
@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize(
    ("semivalue", "k"), [("shapley", 5), ("banzhaf", 1), ((2, 1), 20)]
)
@pytest.mark.parametrize(
    "options",
    [{}, {"sample_weight_val": WEIGHTS}, {"groups": np.arange(12) % 3}],
    ids=["plain", "weights", "groups"],
)
def test_only_the_step_from_the_empty_coalition_changes(
    problem, utility, semivalue, k, options
):
    plain = KNNShapleyValuer(k, utility=utility, semivalue=semivalue)
    prior = KNNShapleyValuer(
        k, utility=utility, semivalue=semivalue, empty_utility="prior"
    )
    problem.fit(plain, **options)
    problem.fit(prior, **options)
    p = frequencies(problem.y_val, options.get("sample_weight_val"))
    assert prior.empty_utility_ == pytest.approx(p @ p, abs=1e-12)
    assert prior.utility_ == plain.utility_
    rows_per_player = 12 / len(prior.values_)
    step = prior.empty_utility_ - plain.empty_utility_
    step *= size_weights(semivalue, 12)[0] * rows_per_player
    np.testing.assert_allclose(prior.values_, plain.values_ - step, atol=1e-12)


@EACH_PROBLEM
@pytest.mark.parametrize("cv", ["leave-one-out", 3])
def test_values_of_held_out_rows_are_efficient(problem, cv):
    valuer = KNNShapleyValuer(3, empty_utility="prior", cv=cv).fit(*problem.rows)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


@EACH_PROBLEM
def test_a_row_that_joins_has_its_value_in_the_larger_game(problem):
    X, y = problem.rows
    valuer = problem.fit(KNNShapleyValuer(3, empty_utility="prior"))
    larger = problem._replace(X=np.vstack([X, X[:1] + 0.1]), y=np.append(y, y[0]))
    expected = larger.fit(KNNShapleyValuer(3, empty_utility="prior")).values_[-1]
    scores = valuer.score_samples(larger.X[-1:], larger.y[-1:])
    assert scores[0] == pytest.approx(expected, abs=1e-12)


@EACH_PROBLEM
def test_points_that_are_added_change_the_prior(problem):
    X_val = problem.X_val
    y_val = problem.y_val
    first = problem._replace(X_val=X_val[:4], y_val=y_val[:4])
    valuer = first.fit(KNNShapleyValuer(3, empty_utility="prior"))
    valuer.add_validation(X_val[4:], y_val[4:])
    at_once = problem.fit(KNNShapleyValuer(3, empty_utility="prior"))
    np.testing.assert_allclose(valuer.values_, at_once.values_, atol=1e-12)


@pytest.mark.parametrize(
    ("valuer", "problem"),
    [
        (KNNShapleyValuer(utility="hard"), two_classes(0)),
        (KNNShapleyValuer(), unrelated(0, n_classes=0)),
    ],
    ids=["votes", "regression"],
)
def test_a_prior_of_votes_or_of_a_regression_is_refused(valuer, problem):
    with pytest.raises(ValueError, match="empty_utility must be None"):
        problem.fit(valuer.set_params(empty_utility="prior"))
