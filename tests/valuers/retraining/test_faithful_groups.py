"""`group_values="faithful"`: parts of a group have exactly its value."""

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    SemivalueValuer,
)
from tests.cases import one_of_each
from tests.problems import noisy_line, two_classes, unrelated

# Four parties; the first one has its rows under five names.
OWNER = np.arange(60) % 4
SHELLS = np.where(OWNER == 0, 10 + np.arange(60) % 5, OWNER)

IMBALANCED = two_classes(3, 60, 40)._replace(
    y=np.repeat(["yes", "no"], [4, 56]), y_val=np.repeat(["yes", "no"], [4, 36])
)
PROBLEMS = {
    "two classes": two_classes(0, 60, 40),
    "noisy": two_classes(1, 60, 40, noise=3.0),
    "three classes": noisy_line(2, 60, 40, n_classes=3),
    "imbalanced": IMBALANCED,
    "regression": noisy_line(4, 60, 40),
}
OPTIONS = {"group_values": "faithful", "random_state": 0}
FEW = {"max_evaluations": 300, **OPTIONS}
ROUNDS = {"n_rounds": 3, **OPTIONS}
VALUERS = {
    "shapley": DataShapleyValuer(**FEW),
    "adjusted": DataShapleyValuer(max_evaluations=1200, adjust=True, **OPTIONS),
    "banzhaf": DataBanzhafValuer(**FEW),
    "beta": BetaShapleyValuer(alpha=4, **FEW),
    "semivalue": SemivalueValuer(sampler="subsets", **FEW),
    "gradient": GradientSemivalueValuer(n_permutations=5, **OPTIONS),
    "federated": FederatedSemivalueValuer(n_permutations=4, **ROUNDS),
    "federated banzhaf": FederatedSemivalueValuer(
        semivalue="banzhaf", n_permutations=4, **ROUNDS
    ),
    "federated leave-one-out": FederatedSemivalueValuer(
        semivalue="leave-one-out", **ROUNDS
    ),
}
IGNORE_WARNINGS = pytest.mark.filterwarnings("ignore::UserWarning")


def gain_by_shells(valuer, problem):
    """Value of a party as five names, less its value as one."""
    value = problem.fit(valuer, groups=OWNER).values_[0]
    problem.fit(valuer, groups=SHELLS)
    return valuer.values_[valuer.groups_ >= 10].sum() - value


@IGNORE_WARNINGS
@pytest.mark.parametrize(("valuer", "problem"), one_of_each([*VALUERS], [*PROBLEMS]))
def test_shells_gain_nothing(valuer, problem):
    assert abs(gain_by_shells(clone(VALUERS[valuer]), PROBLEMS[problem])) < 1e-12


@IGNORE_WARNINGS
@pytest.mark.parametrize("valuer", ["shapley", "gradient", "federated"])
def test_shells_change_the_value_of_players(valuer):
    valuer = clone(VALUERS[valuer]).set_params(group_values="players")
    if "step_weights" in valuer.get_params():
        valuer.set_params(step_weights="equal")
    assert abs(gain_by_shells(valuer, PROBLEMS["two classes"])) > 1e-4


@IGNORE_WARNINGS
@pytest.mark.parametrize("valuer", ["gradient", "federated"])
def test_shells_gain_little_if_steps_are_weighted_by_rows(valuer):
    problem = PROBLEMS["two classes"]
    by_rows = clone(VALUERS[valuer]).set_params(group_values="players")
    by_rows.set_params(n_permutations=100, learning_rate=0.1)
    equal = clone(by_rows).set_params(step_weights="equal")
    gain = abs(gain_by_shells(by_rows, problem))
    assert gain < 0.3 * abs(gain_by_shells(equal, problem))


@IGNORE_WARNINGS
@pytest.mark.parametrize("valuer", VALUERS)
def test_without_groups_it_changes_nothing(valuer):
    problem = PROBLEMS["two classes"]
    faithful = problem.fit(clone(VALUERS[valuer]))
    players = problem.fit(clone(VALUERS[valuer]).set_params(group_values="players"))
    np.testing.assert_array_equal(faithful.values_, players.values_)


@IGNORE_WARNINGS
@pytest.mark.parametrize("valuer", ["shapley", "gradient", "federated"])
def test_with_splits_values_sum_to_the_gain(valuer):
    valuer = clone(VALUERS[valuer]).set_params(cv=4)
    valuer.fit(*PROBLEMS["two classes"].rows, groups=OWNER)
    assert valuer.values_.shape == valuer.values_error_.shape == (4,)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


# Ten rows of four groups, whose values can be enumerated.
TEN = two_classes(0, 10, 40)
OWNER_OF_TEN = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])


@pytest.fixture(scope="module")
def enumerated():
    """The game of rows."""
    return TEN.fit(DataShapleyValuer(sampler="exact"))


@pytest.fixture(scope="module")
def exact_values(enumerated):
    """Sums of the values of rows."""
    return np.bincount(OWNER_OF_TEN, enumerated.values_)


@pytest.fixture(params=[False, True], ids=["plain", "adjusted"])
def estimate(request):
    valuer = DataShapleyValuer(
        sampler="stratified", adjust=request.param, max_evaluations=2000, **OPTIONS
    )
    return TEN.fit(valuer, groups=OWNER_OF_TEN)


def test_exact_values_are_sums_of_those_of_rows(exact_values):
    valuer = DataShapleyValuer(sampler="exact", group_values="faithful")
    TEN.fit(valuer, groups=OWNER_OF_TEN)
    np.testing.assert_allclose(valuer.values_, exact_values, atol=1e-12)
    assert (valuer.values_error_ == 0).all()


def test_estimates_are_within_their_errors(estimate, exact_values):
    errors = np.abs(estimate.values_ - exact_values)
    assert (errors < 4 * estimate.values_error_).all()


def test_the_covariance_holds_the_squared_errors(estimate):
    variances = np.diag(estimate.values_covariance_)
    np.testing.assert_allclose(variances, estimate.values_error_**2)


def test_intervals_are_as_wide_as_their_level_needs(estimate):
    low, high = estimate.confidence_interval().T
    assert (high - low > 2 * 1.9 * estimate.values_error_).all()


def test_another_semivalue_is_within_its_errors(estimate, enumerated):
    beta = estimate.reweight((2, 1))
    exact = np.bincount(OWNER_OF_TEN, enumerated.reweight((2, 1)).values_)
    assert (np.abs(beta.values_ - exact) < 4 * beta.values_error_).all()


def test_merged_estimates_have_smaller_errors(estimate, exact_values):
    errors = estimate.values_error_
    other = clone(estimate).set_params(random_state=1)
    estimate.merge(TEN.fit(other, groups=OWNER_OF_TEN))
    assert (estimate.values_error_ < 0.8 * errors).all()
    deviations = np.abs(estimate.values_ - exact_values)
    assert (deviations < 4 * estimate.values_error_).all()


def test_another_order_of_the_rows_has_the_same_values_within_errors():
    problem = two_classes(0, 60, 60)
    order = np.random.default_rng(0).permutation(60)
    valuer = DataShapleyValuer(max_evaluations=2000, **OPTIONS)
    values = problem.fit(valuer, groups=OWNER).values_
    valuer.fit(
        problem.X[order], problem.y[order], groups=OWNER[order], **problem.points
    )
    errors = np.sqrt(2) * valuer.values_error_
    assert (np.abs(valuer.values_ - values) < 4 * errors).all()


def test_tol_is_that_of_groups():
    valuer = DataShapleyValuer(tol=0.02, **OPTIONS)
    unrelated(0, 40, 40).fit(valuer, groups=OWNER[:40])
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 0.02


@pytest.mark.parametrize(
    ("valuer", "message"),
    [
        (
            DataShapleyValuer(sampler="permutation"),
            "needs sampler='stratified' or 'subsets'",
        ),
        (DataShapleyValuer(truncation=0.1), "needs sampler='stratified' or 'subsets'"),
        (
            GradientSemivalueValuer(epsilon=1.0),
            "must be 'players' if gradients are private",
        ),
        (
            FederatedSemivalueValuer(epsilon=1.0),
            "must be 'players' if gradients are private",
        ),
    ],
    ids=["permutations", "truncation", "private gradients", "private rounds"],
)
def test_faithful_values_without_random_subsets_are_refused(valuer, message):
    valuer.set_params(group_values="faithful")
    with pytest.raises(ValueError, match=f"group_values.* {message}"):
        two_classes(0).fit(valuer, groups=OWNER[:40])


def test_faithful_values_of_a_training_elsewhere_are_refused():
    valuer = FederatedSemivalueValuer(group_values="faithful")
    with pytest.raises(
        ValueError, match="group_values must be 'players' in a training"
    ):
        valuer.start(lambda t: t[:, 0], parties=3)


@pytest.mark.slow
@IGNORE_WARNINGS
@pytest.mark.parametrize(
    "problem", ["two classes", "noisy", "three classes", "imbalanced"]
)
@pytest.mark.parametrize(
    "valuer", ["shapley", "adjusted", "banzhaf", "gradient", "federated"]
)
def test_errors_are_those_over_seeds(valuer, problem):
    valuer = clone(VALUERS[valuer])
    if hasattr(valuer, "learning_rate"):  # "auto" depends on the seed
        valuer.set_params(learning_rate=0.3)
    values = []
    errors = []
    for seed in range(40):
        PROBLEMS[problem].fit(valuer.set_params(random_state=seed), groups=OWNER)
        values.append(valuer.values_)
        errors.append(valuer.values_error_)
    variance = np.var(values, axis=0, ddof=1).mean()
    assert 0.75 < np.sqrt(np.mean(np.square(errors)) / variance) < 1.3
