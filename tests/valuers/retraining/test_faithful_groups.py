"""`group_values="faithful"`: parts of a group have exactly its value."""

import numpy as np
import pytest

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

OWNER = np.arange(60) % 4
SHELLS = np.where(OWNER == 0, 10 + np.arange(60) % 5, OWNER)
PROBLEMS = {
    "two classes": two_classes(0, 60, 40),
    "noisy": two_classes(1, 60, 40, noise=3.0),
    "three classes": noisy_line(2, 60, 40, n_classes=3),
    "imbalanced": two_classes(3, 60, 40)._replace(
        y=np.r_[["yes"] * 4, ["no"] * 56], y_val=np.r_[["yes"] * 4, ["no"] * 36]
    ),
    "regression": noisy_line(4, 60, 40),
}
FEW = dict(max_evaluations=300, random_state=0)
RETRAINING = {
    "shapley": DataShapleyValuer(**FEW),
    "adjusted": DataShapleyValuer(max_evaluations=1200, adjust=True, random_state=0),
    "banzhaf": DataBanzhafValuer(**FEW),
    "beta": BetaShapleyValuer(alpha=4, **FEW),
    "semivalue": SemivalueValuer(sampler="subsets", **FEW),
}
GRADIENTS = {
    "gradient": GradientSemivalueValuer(n_permutations=5, random_state=0),
    "federated": FederatedSemivalueValuer(n_rounds=3, n_permutations=4, random_state=0),
    "federated banzhaf": FederatedSemivalueValuer(
        semivalue="banzhaf", n_rounds=3, n_permutations=4, random_state=0
    ),
    "federated leave-one-out": FederatedSemivalueValuer(
        semivalue="leave-one-out", n_rounds=3, random_state=0
    ),
}
VALUERS = RETRAINING | GRADIENTS
for valuer in VALUERS.values():
    valuer.set_params(group_values="faithful")


def gain(valuer, problem, cv=False, **options):
    """Value of a party as five names, less its value as one; and the fit of one
    name."""
    fits = []
    for groups in (OWNER, SHELLS):
        if cv:
            valuer.fit(*problem.rows, groups=groups, **options)
        else:
            problem.fit(valuer, groups=groups, **options)
        fits.append((valuer.groups_, valuer.values_))
    (_, one), (names, many) = fits
    return many[names >= 10].sum() - one[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("valuer", "problem"), one_of_each([*VALUERS], [*PROBLEMS]))
def test_shells_gain_nothing(valuer, problem):
    assert abs(gain(VALUERS[valuer], PROBLEMS[problem])) < 1e-12


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("valuer", ["shapley", "gradient", "federated"])
def test_as_players_shells_change_the_value(valuer):
    players = VALUERS[valuer].__class__(**VALUERS[valuer].get_params())
    players.set_params(group_values="players")
    assert abs(gain(players, PROBLEMS["two classes"])) > 1e-4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("valuer", VALUERS)
def test_without_groups_it_changes_nothing(valuer):
    problem, found = PROBLEMS["two classes"], []
    for how in ("faithful", "players"):
        valuer_ = VALUERS[valuer].__class__(**VALUERS[valuer].get_params())
        found.append(problem.fit(valuer_.set_params(group_values=how)).values_)
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("valuer", ["shapley", "gradient", "federated"])
def test_with_splits_values_sum_to_the_utility(valuer):
    valuer = VALUERS[valuer].__class__(**VALUERS[valuer].get_params()).set_params(cv=4)
    valuer.fit(*PROBLEMS["two classes"].rows, groups=OWNER)
    assert valuer.values_.shape == valuer.values_error_.shape == (4,)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_, abs=1e-12
    )


@pytest.mark.parametrize("adjust", [False, True])
def test_exact_values_are_met_by_estimates(adjust):
    problem = two_classes(0, 10, 40)
    owner = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    rows = problem.fit(DataShapleyValuer(sampler="exact")).values_
    exact = DataShapleyValuer(sampler="exact", group_values="faithful")
    problem.fit(exact, groups=owner)
    np.testing.assert_allclose(exact.values_, np.bincount(owner, rows), atol=1e-12)
    assert (exact.values_error_ == 0).all()
    valuer = DataShapleyValuer(
        sampler="stratified", group_values="faithful", adjust=adjust, max_evaluations=2000,
        random_state=0,
    )  # fmt: skip
    problem.fit(valuer, groups=owner)
    errors = valuer.values_error_
    np.testing.assert_allclose(np.diag(valuer.values_covariance_), errors**2)
    assert (np.abs(valuer.values_ - exact.values_) < 4 * errors).all()
    interval = valuer.confidence_interval()
    assert (np.diff(interval)[:, 0] > 2 * 1.9 * errors).all()
    beta = valuer.reweight((2, 1))
    truth = np.bincount(
        owner, problem.fit(DataShapleyValuer(sampler="exact")).reweight((2, 1)).values_
    )
    assert (np.abs(beta.values_ - truth) < 4 * beta.values_error_).all()
    other = DataShapleyValuer(**valuer.get_params()).set_params(random_state=1)
    valuer.merge(problem.fit(other, groups=owner))
    assert (valuer.values_error_ < 0.8 * errors).all()
    assert (np.abs(valuer.values_ - exact.values_) < 4 * valuer.values_error_).all()


def test_another_order_of_the_rows():
    problem, owner = two_classes(0, 60, 60), OWNER
    order = np.random.default_rng(0).permutation(60)
    valuer = DataShapleyValuer(
        group_values="faithful", max_evaluations=2000, random_state=0
    )
    one = problem.fit(valuer, groups=owner).values_
    valuer.fit(
        problem.X[order], problem.y[order], groups=owner[order], **problem.points
    )
    error = np.sqrt(2) * valuer.values_error_
    assert (np.abs(valuer.values_ - one) < 4 * error).all()


def test_tol_is_that_of_groups():
    problem = unrelated(0, 40, 40)
    valuer = DataShapleyValuer(group_values="faithful", tol=0.02, random_state=0)
    problem.fit(valuer, groups=OWNER[:40])
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
)
def test_refuses(valuer, message):
    with pytest.raises(ValueError, match=f"group_values.* {message}"):
        two_classes(0).fit(
            valuer.set_params(group_values="faithful"), groups=OWNER[:40]
        )


def test_a_training_elsewhere_has_no_rows():
    with pytest.raises(
        ValueError, match="group_values must be 'players' in a training"
    ):
        FederatedSemivalueValuer(group_values="faithful").start(
            lambda t: t[:, 0], n_parties=3
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "problem", ["two classes", "noisy", "three classes", "imbalanced"]
)
@pytest.mark.parametrize(
    "valuer", ["shapley", "adjusted", "banzhaf", "gradient", "federated"]
)
def test_errors_are_those_over_seeds(valuer, problem):
    found, valuer = [], VALUERS[valuer].__class__(**VALUERS[valuer].get_params())
    if hasattr(valuer, "learning_rate"):  # "auto" depends on the seed
        valuer.set_params(learning_rate=0.3)
    for seed in range(40):
        PROBLEMS[problem].fit(valuer.set_params(random_state=seed), groups=OWNER)
        found.append((valuer.values_, valuer.values_error_))
    values, errors = map(np.array, zip(*found))
    ratio = np.sqrt((errors**2).mean(axis=0).mean() / values.var(axis=0, ddof=1).mean())
    assert 0.75 < ratio < 1.3
