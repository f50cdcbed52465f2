import copy
import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
from skvalue.datasets import flip_labels
from skvalue.derivatives import LinearGradientModel, newest_weights
from skvalue.exceptions import NoiseExceedsSignalWarning
from skvalue.inspection import noisy_label_auc
from skvalue.privacy import Ledger, SeededNoiseWarning, mu_from_epsilon
from skvalue.semivalues import enumerate_semivalue
from skvalue.valuers.federated_semivalue import (
    coalition_parameters,
    release_updates,
    round_values,
)

SEMIVALUES = ["shapley", "banzhaf", (4, 1), (16, 1), "leave-one-out"]


@pytest.fixture
def parties(rng):
    """Rows of five parties, of which the first has wrong labels; validation points."""
    X = rng.normal(size=(180, 3))
    owner = np.arange(140) % 5
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    y[:140][owner == 0] ^= 1
    return {
        "X": X[:140],
        "y": y[:140],
        "groups": owner,
        "X_val": X[140:],
        "y_val": y[140:],
    }


def bowl(thetas):
    return -((thetas - np.array([1.0, -0.5])) ** 2).sum(axis=1)


def first_parameter(thetas):
    return thetas[:, 0]


def make(**parameters):
    return FederatedSemivalueValuer(
        **{"n_rounds": 4, "burn_in": 0.0, "clip": None, **parameters}
    )


def train(valuer, updates):
    """Add rounds of updates; parameters before every round, and after the last."""
    thetas = [np.zeros(updates.shape[2])]
    for of_round in updates:
        step = valuer.add_round(thetas[-1], of_round)
        thetas.append(thetas[-1] + step)
    return np.array(thetas)


# Functions of arrays ------------------------------------------------------------------


def test_weights_of_recent_updates_are_those_of_the_paper():
    weights = newest_weights("recent", 50)
    assert weights[0] == 1
    np.testing.assert_allclose(weights[1:], 0.75 - 0.7 * np.arange(2, 51) / 50)


def test_defaults_are_those_of_the_paper():
    valuer = FederatedSemivalueValuer(n_rounds=10, epsilon=1.0).start(bowl, 3)
    weights = valuer._fitted.statistic.newest_weights
    np.testing.assert_array_equal(weights, newest_weights("recent", 10))
    n_counted = []
    for _ in range(4):
        valuer.add_round(np.zeros(2), np.ones((3, 2)))
        n_counted.append(len(valuer.round_values_))
    assert n_counted == [0, 0, 1, 2]


def averaging_matrix(fractions):
    """The matrix X of averages W = X A of releases A."""
    X = np.diag(fractions)
    for t in range(1, len(X)):
        X[t] += (1 - fractions[t]) * X[t - 1]
    return X


@pytest.mark.parametrize(
    "fractions", [newest_weights(name, 6) for name in ("recent", "correlated", "iid")]
)
def test_averaging_is_a_matrix_product(rng, fractions):
    released = rng.normal(size=(6, 3, 2))
    valuer = make(n_rounds=6, noise=fractions, noise_multiplier=1.0, clip=1.0)
    valuer.start(bowl, 3)
    averages = []
    for updates in released:
        valuer.add_round(np.zeros(2), updates, released=True)
        averages.append(valuer._fitted.statistic.averages.copy())
    X = averaging_matrix(fractions)
    np.testing.assert_allclose(X.sum(axis=1), 1)
    assert not np.triu(X, 1).any()
    expected = np.einsum("ts,snp->tnp", X, released)
    np.testing.assert_allclose(averages, expected, atol=1e-12)


def test_many_rounds_take_little_memory():
    valuer = make(n_rounds=20_000, noise="recent", clip=1.0, noise_multiplier=1.0)
    tracemalloc.start()
    try:
        valuer.start(bowl, 3)
        assert tracemalloc.get_traced_memory()[1] < 20e6  # not of n_rounds^2 numbers
    finally:
        tracemalloc.stop()


def test_parameters_of_a_coalition_take_the_mean_of_its_updates(rng):
    theta = rng.normal(size=2)
    updates = rng.normal(size=(4, 2))
    masks = rng.random((9, 4)) < 0.5
    masks[0] = False
    thetas = coalition_parameters(theta, updates, masks, 0.3, "mean")
    for mask, of_coalition in zip(masks, thetas):
        step = updates[mask].sum(axis=0) / max(mask.sum(), 1)
        np.testing.assert_allclose(of_coalition, theta + 0.3 * step)
    np.testing.assert_array_equal(thetas[0], theta)


def test_parameters_of_a_coalition_take_the_sum_of_its_updates(rng):
    """One step after the other, as in G-Shapley."""
    theta = rng.normal(size=2)
    updates = rng.normal(size=(4, 2))
    masks = rng.random((9, 4)) < 0.5
    masks[0] = False
    thetas = coalition_parameters(theta, updates, masks, 0.3, "sum")
    for mask, of_coalition in zip(masks, thetas):
        expected = theta.copy()
        for update in updates[mask]:
            expected += 0.3 * update
        np.testing.assert_allclose(of_coalition, expected)
    np.testing.assert_array_equal(thetas[0], theta)


@pytest.mark.parametrize("coalition_step", ["part", "mean", "sum"])
def test_weights_of_a_round_are_copies_of_parties(rng, coalition_step):
    """A party of weight 3 moves the model as three equal parties do."""
    theta = rng.normal(size=2)
    updates = rng.normal(size=(4, 2))
    weights = np.array([1, 3, 2, 1])
    owner = np.repeat(np.arange(4), weights)
    masks = rng.random((9, 4)) < 0.5
    weighted = coalition_parameters(
        theta, updates, masks, 0.3, coalition_step, weights.astype(float)
    )
    # The sum is in units of an average party: of 7 copies, of which 4 are parties.
    rate = 0.3 * 4 / 7 if coalition_step == "sum" else 0.3
    copies = coalition_parameters(
        theta, updates[owner], masks[:, owner], rate, coalition_step
    )
    np.testing.assert_allclose(weighted, copies)


def test_parts_of_parties_add_up_to_the_step_of_all(rng):
    updates = rng.normal(size=(4, 2))
    weights = rng.uniform(0.1, 9.0, size=4)
    parts = coalition_parameters(
        np.zeros(2), updates, np.eye(4, dtype=bool), 0.3, "part", weights
    )
    np.testing.assert_allclose(
        parts.sum(axis=0), 0.3 * np.average(updates, axis=0, weights=weights)
    )


def value_round(updates, semivalue, n_permutations=10_000, **options):
    return round_values(
        bowl,
        np.zeros(2),
        updates,
        0.7,
        semivalue=semivalue,
        n_permutations=n_permutations,
        **{"seed": 0, "number": 0, **options},
    )


def by_enumeration(
    utilities,
    theta,
    updates,
    rate,
    semivalue="shapley",
    coalition_step="part",
    weights=None,
):
    """Values of a round by all coalitions, and the utility of one."""
    n_parties = len(updates)

    def utility(players):
        mask = np.isin(np.arange(n_parties), players)[None]
        thetas = coalition_parameters(
            theta, updates, mask, rate, coalition_step, weights
        )
        return utilities(thetas)[0]

    return enumerate_semivalue(utility, n_parties, semivalue), utility


@pytest.mark.parametrize("weights", [None, [8.0, 30.0, 100.0, 300.0, 800.0]])
@pytest.mark.parametrize("coalition_step", ["part", "mean", "sum"])
@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_values_of_a_round_equal_enumeration(rng, semivalue, coalition_step, weights):
    updates = rng.normal(size=(5, 2))
    if weights is not None:
        weights = np.array(weights)
    result = value_round(
        updates, semivalue, coalition_step=coalition_step, weights=weights
    )
    expected, utility = by_enumeration(
        bowl, np.zeros(2), updates, 0.7, semivalue, coalition_step, weights
    )
    np.testing.assert_allclose(result.values, expected, atol=1e-12)
    assert not result.variances.any()
    np.testing.assert_allclose(result.ends, [utility(()), utility(range(5))])
    assert result.n_evaluations == (7 if semivalue == "leave-one-out" else 32)


@pytest.mark.parametrize("semivalue", SEMIVALUES[:3])
def test_sampled_values_of_a_round_are_within_their_errors(rng, semivalue):
    updates = rng.normal(size=(9, 2))
    exact = value_round(updates, semivalue)
    sampled = value_round(updates, semivalue, n_permutations=44)
    # With the empty coalition and that of all players.
    assert sampled.n_evaluations == 2 + 44 * 8
    differences = np.abs(sampled.values - exact.values)
    assert (differences < 6 * np.sqrt(sampled.variances)).all()
    assert differences.max() > 1e-9
    if semivalue == "shapley":
        before, after = sampled.ends
        assert sampled.values.sum() == pytest.approx(after - before)
    next_round = value_round(updates, semivalue, n_permutations=44, number=1)
    assert not np.array_equal(sampled.values, next_round.values)


def test_one_permutation_still_gives_errors(rng):
    result = value_round(rng.normal(size=(9, 2)), "shapley", n_permutations=1)
    assert np.isfinite(result.variances).all()
    assert result.n_evaluations == 2 + 2 * 2 * 8


def test_values_of_sums_of_a_linear_utility_are_its_gains(rng):
    updates = rng.normal(size=(7, 2))
    gradient = np.array([2.0, -1.0])
    result = round_values(
        lambda thetas: thetas @ gradient,
        np.ones(2),
        updates,
        0.7,
        semivalue="shapley",
        n_permutations=10_000,
        seed=0,
        number=0,
        coalition_step="sum",
    )
    np.testing.assert_allclose(result.values, 0.7 * updates @ gradient)


# Training elsewhere -------------------------------------------------------------------


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_values_of_a_training_elsewhere_are_means_over_rounds(rng, semivalue):
    updates = rng.normal(size=(4, 5, 2))
    valuer = make(semivalue=semivalue, learning_rate=0.7, burn_in=0.5).start(bowl, 5)
    thetas = train(valuer, updates)
    np.testing.assert_allclose(np.diff(thetas, axis=0), 0.7 * updates.mean(axis=1))
    by_round = [
        by_enumeration(bowl, theta, of_round, 0.7, semivalue)[0]
        for theta, of_round in zip(thetas, updates)
    ]
    np.testing.assert_allclose(valuer.round_values_, by_round[2:], atol=1e-12)
    np.testing.assert_allclose(
        valuer.values_, np.mean(by_round[2:], axis=0), atol=1e-12
    )
    if semivalue == "shapley":
        gain = bowl(thetas[4:])[0] - bowl(thetas[2:3])[0]
        assert valuer.values_.sum() == pytest.approx(gain / 2)
        assert valuer.utility_ - valuer.empty_utility_ == pytest.approx(gain / 2)


def test_values_exist_after_every_round_that_counts(rng):
    valuer = make(burn_in=0.25).start(bowl, 3)
    updates = rng.normal(size=(4, 3, 2))
    for t in range(4):
        valuer.add_round(np.zeros(2), updates[t])
        assert len(valuer.round_values_) == t
        assert hasattr(valuer, "values_") == (t > 0)
    np.testing.assert_allclose(valuer.values_, valuer.round_values_.mean(axis=0))


@pytest.mark.parametrize("name", ["values_", "values_error_", "utility_"])
def test_a_training_has_no_values_while_burning_in(name):
    valuer = make(burn_in=0.5).start(bowl, 3)
    valuer.add_round(np.zeros(2), np.ones((3, 2)))
    assert not hasattr(valuer, name)
    valuer.add_round(np.zeros(2), np.ones((3, 2)))
    valuer.add_round(np.zeros(2), np.ones((3, 2)))
    assert np.isfinite(getattr(valuer, name)).all()


def test_an_error_says_how_long_the_burn_in_is():
    valuer = make(burn_in=0.5).start(bowl, 3)
    valuer.add_round(np.zeros(2), np.ones((3, 2)))
    with pytest.raises(
        AttributeError, match="values from round 3 on.*Got 1 rounds so far"
    ):
        _ = valuer.values_


@pytest.mark.parametrize("where", ["fit", "elsewhere"])
def test_values_times_rounds_are_the_gain_of_the_training(rng, parties, where):
    """Without noise nothing burns in."""
    valuer = FederatedSemivalueValuer("logistic", n_rounds=4, learning_rate=0.7)
    if where == "fit":
        valuer.fit(**parties)
        gain = 4 * (valuer.utility_ - valuer.empty_utility_)
        assert len(valuer.round_values_) == 4
        # The means over rounds of utilities before and after telescope.
        last = clone(valuer).set_params(n_rounds=8).fit(**parties)
        gains_by_round = last.round_values_.sum(axis=1)
        assert gains_by_round[:4].sum() == pytest.approx(gain)
    else:
        valuer.start(bowl, 5)
        thetas = train(valuer, rng.normal(size=(4, 5, 2)))
        gain = bowl(thetas[-1:])[0] - bowl(thetas[:1])[0]
    assert 4 * valuer.values_.sum() == pytest.approx(gain)


@pytest.mark.parametrize("parameters", [{"epsilon": 1.0}, {"noise_multiplier": 1.0}])
def test_a_fifth_of_the_rounds_burns_in_with_noise(parameters):
    valuer = FederatedSemivalueValuer(n_rounds=5, **parameters).start(bowl, 3)
    for _ in range(5):
        valuer.add_round(np.zeros(2), np.ones((3, 2)))
    assert len(valuer.round_values_) == 4


# Weights, names and absent parties ----------------------------------------------------


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_weighted_rounds_elsewhere_equal_enumeration(rng, semivalue):
    updates = rng.normal(size=(4, 5, 2))
    weights = np.array([8, 30, 100, 300, 800])
    valuer = make(semivalue=semivalue, learning_rate=0.7).start(bowl, 5)
    theta = np.zeros(2)
    by_round = []
    for of_round in updates:
        values, _ = by_enumeration(
            bowl, theta, of_round, 0.7, semivalue, weights=weights
        )
        by_round.append(values)
        step = valuer.add_round(theta, of_round, weights=weights)
        np.testing.assert_allclose(
            step, 0.7 * np.average(of_round, axis=0, weights=weights)
        )
        theta = theta + step
    np.testing.assert_allclose(valuer.round_values_, by_round, atol=1e-12)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("absent", [["c"], ["a", "e"], ["a", "b", "c", "d"]])
def test_an_absent_party_is_worth_zero_in_the_game_of_the_others(
    rng, semivalue, absent
):
    names = ["a", "b", "c", "d", "e"]
    updates = dict(zip(names, rng.normal(size=(5, 2))))
    weights = dict(zip(names, [8, 30, 100, 300, 800]))
    valuer = make(semivalue=semivalue, n_rounds=1, learning_rate=0.7)
    valuer.start(bowl, names)
    present = [name for name in names if name not in absent]
    # The order of a mapping does not matter.
    shuffled = {name: updates[name] for name in present[::-1]}
    step = valuer.add_round(np.zeros(2), shuffled, weights=weights)
    of_present = np.array([updates[name] for name in present])
    weights_of_present = np.array([weights[name] for name in present])
    np.testing.assert_allclose(
        step, 0.7 * np.average(of_present, axis=0, weights=weights_of_present)
    )
    if len(present) > 1:
        expected, _ = by_enumeration(
            bowl, np.zeros(2), of_present, 0.7, semivalue, weights=weights_of_present
        )
    else:
        expected = bowl(step[None]) - bowl(np.zeros((1, 2)))
    of_party = dict(zip(valuer.parties_, valuer.values_))
    np.testing.assert_allclose([of_party[name] for name in present], expected)
    assert [of_party[name] for name in absent] == [0.0] * len(absent)
    assert not valuer.values_error_.any()


def test_a_party_that_returns_averages_its_own_updates(rng):
    """The weights of the newest update are those of as many updates of the party."""
    sent = rng.normal(size=(4, 3, 2))
    valuer = make(noise="correlated", noise_multiplier=1.0, clip=1.0, n_rounds=4)
    valuer.start(bowl, 3)
    for t, of_round in enumerate(sent):
        updates = dict(enumerate(of_round))
        if t in (0, 2):
            del updates[1]
        step = valuer.add_round(np.zeros(2), updates, released=True)
    expected = [sent[:, 0].mean(axis=0), sent[[1, 3], 1].mean(axis=0)]
    expected.append(sent[:, 2].mean(axis=0))
    np.testing.assert_allclose(step, np.mean(expected, axis=0))


@pytest.mark.parametrize("weights", [None, [1, 1, 1], {"a": 4, "b": 4, "c": 4}])
def test_equal_weights_are_no_weights(rng, weights):
    updates = rng.normal(size=(4, 3, 2))
    valuer = make().start(bowl, ["a", "b", "c"])
    plain = make().start(bowl, 3)
    for of_round in updates:
        valuer.add_round(np.zeros(2), of_round, weights=weights)
        plain.add_round(np.zeros(2), of_round)
    np.testing.assert_allclose(valuer.values_, plain.values_, rtol=1e-12)


def test_updates_are_weighted_after_they_are_clipped(rng):
    updates = rng.normal(size=(2, 2))
    updates *= [[50.0], [0.01]]
    step = make(clip=0.5).start(bowl, 2).add_round(np.zeros(2), updates, weights=[1, 3])
    clipped = 0.5 * updates[0] / np.linalg.norm(updates[0])
    np.testing.assert_allclose(step, (clipped + 3 * updates[1]) / 4)


def test_noise_is_weighted_as_updates_are():
    """The step is linear in the weights, which are applied to what was released."""
    steps = {}
    for weights in ([1, 1, 1], [1, 2, 1], [1, 1, 5], [1, 2, 5]):
        valuer = make(epsilon=1.0, clip=1.0, noise_random_state=0)
        with pytest.warns(SeededNoiseWarning):
            valuer.start(first_parameter, 3)
        step = valuer.add_round(np.zeros(50), np.zeros((3, 50)), weights=weights)
        steps[tuple(weights)] = step * sum(weights)
    second = steps[1, 2, 1] - steps[1, 1, 1]
    third = (steps[1, 1, 5] - steps[1, 1, 1]) / 4
    np.testing.assert_allclose(
        steps[1, 2, 5] - steps[1, 1, 1], second + 4 * third, rtol=1e-9
    )
    scale = 2 * 2 * 1.0 / mu_from_epsilon(1.0, 1e-5)  # of one release of four
    for noise in (second, third):
        # 50 draws: 4 standard errors of a standard deviation.
        assert noise.std() == pytest.approx(scale, rel=0.4)


def test_more_rounds_than_announced_are_refused(rng):
    valuer = make().start(bowl, 3)
    train(valuer, rng.normal(size=(4, 3, 2)))
    with pytest.raises(
        ValueError, match="call start again.*Got round 5 with n_rounds=4"
    ):
        valuer.add_round(np.zeros(2), np.zeros((3, 2)))


def test_start_forgets_former_rounds(rng):
    valuer = make().start(bowl, 3)
    valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    assert valuer.start(bowl, 3) is valuer
    assert len(valuer.round_values_) == 0


def test_a_round_that_fails_leaves_the_former_values(rng):
    failures = []

    def flaky(thetas):
        if failures:
            raise RuntimeError("no utility")
        return bowl(thetas)

    valuer = make().start(flaky, 3)
    valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    values = valuer.values_.copy()
    attributes = vars(valuer).copy()
    failures.append(1)
    with pytest.raises(RuntimeError, match="no utility"):
        valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    np.testing.assert_array_equal(valuer.values_, values)
    assert vars(valuer) == attributes
    failures.clear()
    valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    assert len(valuer.round_values_) == 2
    names = [name for name in vars(valuer) if name.startswith("_")]
    assert set(names) - {"_n_features_out"} == {"_fitted"}


def test_noise_is_what_the_guarantee_needs():
    valuer = make(epsilon=1.0, delta=5e-5, clip=2.0, n_rounds=9).start(bowl, 300)
    assert valuer.privacy_.epsilon == pytest.approx(1.0)
    assert valuer.privacy_.epsilon <= 1.0
    assert valuer.privacy_.notion == "local"
    assert valuer.privacy_.detection_ceiling == pytest.approx(0.583, abs=1e-3)
    draws = [valuer.release(np.zeros(50)) for _ in range(40)]
    scale = 3 * 2 * 2.0 / mu_from_epsilon(1.0, 5e-5)
    # 2,000 draws: 5.3 standard errors of a standard deviation, one in ten million.
    assert np.std(draws) == pytest.approx(scale, rel=5.3 / np.sqrt(4000))


def test_released_updates_are_on_a_grid():
    valuer = make(epsilon=1.0, clip=1.0).start(bowl, 2)
    draw = valuer._fitted.statistic.draw
    factors = np.array([1, 0.5, 0.1])
    widths = 2.0 ** (np.floor(np.log2(draw.scale * factors)) - 20)
    released = release_updates(np.full((3, 50), 0.1), 1.0, draw, factors)
    np.testing.assert_array_equal(released % widths[:, None], 0)
    np.testing.assert_array_equal(valuer.release(np.full(50, 0.1)) % widths[0], 0)


def test_a_private_round_that_fails_counts_as_a_release():
    def flaky(thetas):
        if thetas.any():
            raise RuntimeError("what was released is seen all the same")
        return thetas[:, 0]

    valuer = make(epsilon=1.0, clip=1.0, n_rounds=2, burn_in=0.0).start(flaky, 2)
    valuers = (valuer, copy.deepcopy(valuer))
    for one in valuers:
        with pytest.raises(RuntimeError, match="what was released"):
            one.add_round(np.zeros(1), np.ones((2, 1)))
        assert len(one.round_values_) == 0
    for one in valuers:
        with pytest.raises(
            ValueError, match="call start again.*Got release 3 with n_rounds=2"
        ):
            one.add_round(np.zeros(1), np.ones((2, 1)))


def test_a_private_training_is_not_pickled():
    valuer = make(epsilon=1.0, clip=1.0).start(bowl, 2)
    with pytest.raises(TypeError, match="belongs to the process that started it"):
        pickle.dumps(valuer)


def test_a_training_is_as_private_as_it_started():
    valuer = make(epsilon=1.0, clip=1e-9, n_rounds=1, burn_in=0.0).start(bowl, 2)
    valuer.set_params(clip=1e9, n_rounds=5)
    step = valuer.add_round(np.zeros(2), np.full((2, 2), 1e9))
    assert np.abs(step).max() < 1e-6
    with pytest.raises(
        ValueError, match="call start again.*Got round 2 with n_rounds=1"
    ):
        valuer.add_round(np.zeros(2), np.ones((2, 2)))


def test_every_release_of_a_party_is_charged():
    ledger = Ledger(None, "a party's rows", epsilon=1.0, delta=1e-5)
    party = make(epsilon=1.0, clip=1.0, n_rounds=3, ledger=ledger)
    for _ in range(3):
        party.release(np.zeros(2))
    for valuer in (party, clone(party)):
        with pytest.raises(
            ValueError, match="the release must fit what is left of the budget"
        ):
            valuer.release(np.zeros(2))
    assert ledger.n_charges == 3
    assert ledger.spent == pytest.approx(1.0)


def test_released_updates_are_taken_as_they_are(rng):
    updates = rng.normal(size=(4, 3, 2))
    seeded = {"noise_multiplier": 1.0, "clip": 1.0, "noise_random_state": 3}
    with pytest.warns(SeededNoiseWarning):
        valuer = make(**seeded).start(bowl, 3)
    train(valuer, updates)
    assert valuer.privacy_.guarantee is None
    with pytest.warns(SeededNoiseWarning):
        other = make(**seeded).start(bowl, 3)
    draw = other._fitted.statistic.draw
    for t, of_round in enumerate(updates):
        released = release_updates(of_round, 1.0, draw, stream=(t,))
        other.add_round(np.zeros(2), released, released=True)
        if t == 0:
            np.testing.assert_array_equal(other._fitted.statistic.averages, released)
    np.testing.assert_array_equal(
        other._fitted.statistic.averages, valuer._fitted.statistic.averages
    )


def test_updates_are_clipped(rng):
    valuer = make(clip=0.5).start(bowl, 4)
    updates = rng.normal(size=(4, 2)) * np.array([[9.0], [3.0], [0.1], [0.0]])
    step = valuer.add_round(np.zeros(2), updates)
    clipped = valuer._fitted.statistic.averages
    np.testing.assert_allclose(np.linalg.norm(clipped[:2], axis=1), 0.5)
    np.testing.assert_array_equal(clipped[2:], updates[2:])
    np.testing.assert_allclose(step, clipped.mean(axis=0))


NOT_FINITE = np.array([[np.nan, 1.0], [1.0, 0.0]])


def test_updates_that_are_not_finite_are_refused():
    valuer = make().start(bowl, 2)
    with pytest.raises(
        ValueError, match="updates must be finite. Got one that is not, of party 0"
    ):
        valuer.add_round(np.zeros(2), NOT_FINITE)


def test_private_updates_that_are_not_finite_are_zero():
    # An error would depend on the rows of the party.
    valuer = make(epsilon=1e6, clip=1.0).start(bowl, 2)
    valuer.add_round(np.zeros(2), NOT_FINITE)
    np.testing.assert_allclose(valuer._fitted.statistic.averages[0], 0, atol=0.1)


def test_a_training_is_charged_for_all_rounds_at_once():
    ledger = Ledger(None, "parties", epsilon=1.2, delta=1e-5)
    make(epsilon=1.0, clip=1.0, ledger=ledger).start(bowl, 3)
    assert ledger.charges[0].event.count == 4
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        make(epsilon=1.0, clip=1.0, ledger=ledger).start(bowl, 3)


# Training here ------------------------------------------------------------------------


def unequal(parties):
    """The same rows, of parties of 4 to 76 rows; the first has wrong labels."""
    owner = np.repeat(np.arange(5), [28, 4, 8, 24, 76])
    y = (parties["X"][:, 0] + 0.3 * parties["X"][:, 1] > 0).astype(int)
    y[owner == 0] ^= 1
    return {**parties, "groups": owner, "y": y}


def logistic_gradients(theta, data):
    """Minus the mean gradients of parties, by hand, of rows with a constant."""
    owner = data["groups"]
    X = np.column_stack([data["X"], np.ones(len(data["X"]))])
    residuals = 1 / (1 + np.exp(-X @ theta)) - data["y"]
    gradients = X * residuals[:, None]
    return -np.array([gradients[owner == party].mean(axis=0) for party in range(5)])


@pytest.mark.parametrize("coalition_step", ["part", "mean"])
@pytest.mark.parametrize("step_weights", ["rows", "equal"])
@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_fit_equals_a_plain_loop(parties, semivalue, step_weights, coalition_step):
    parties = unequal(parties)
    weights = np.bincount(parties["groups"])
    if step_weights == "equal":
        weights = np.ones(5)
    valuer = make(
        model="logistic",
        semivalue=semivalue,
        step_weights=step_weights,
        coalition_step=coalition_step,
        standardize=False,
        learning_rate=2.0,
        clip=0.1,
        burn_in=0.25,
    )
    X_val = np.column_stack([parties["X_val"], np.ones(40)])
    signs = 2 * parties["y_val"] - 1

    def utilities(thetas):
        return -np.log1p(np.exp(-signs * (thetas @ X_val.T))).mean(axis=1)

    theta = np.zeros(4)
    by_round = []
    for _ in range(4):
        updates = logistic_gradients(theta, parties)
        updates /= np.maximum(np.linalg.norm(updates, axis=1, keepdims=True) / 0.1, 1)
        values, _ = by_enumeration(
            utilities, theta, updates, 2.0, semivalue, coalition_step, weights
        )
        by_round.append(values)
        theta = theta + 2.0 * np.average(updates, axis=0, weights=weights)
    valuer.fit(**parties)
    np.testing.assert_allclose(
        valuer.values_, np.mean(by_round[1:], axis=0), atol=1e-10
    )
    assert valuer.values_.argmin() == 0
    assert valuer.groups_.tolist() == [0, 1, 2, 3, 4]
    assert not valuer.values_error_.any()


@pytest.mark.parametrize("unit", ["party", "example"])
def test_values_along_public_directions_equal_a_plain_loop(parties, unit):
    X = np.column_stack([parties["X"], np.ones(140)])
    X_val = np.column_stack([parties["X_val"], np.ones(40)])
    y = parties["y"]
    y_val = parties["y_val"]
    owner = parties["groups"]
    clip = 0.1
    _, basis = public_basis(X_val, y_val)

    def utilities(coordinates):
        scores = coordinates @ basis.T @ X_val.T
        return -np.log1p(np.exp((1 - 2 * y_val) * scores)).mean(axis=1)

    def clipped(rows):
        return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True) / clip, 1)

    coordinates = np.zeros(2)
    by_round = []
    for _ in range(4):
        residuals = 1 / (1 + np.exp(-X @ basis @ coordinates)) - y
        rows = -(X @ basis) * residuals[:, None]
        if unit == "example":
            rows = clipped(rows)
        means = np.array([rows[owner == party].mean(axis=0) for party in range(5)])
        updates = clipped(means)
        by_round.append(by_enumeration(utilities, coordinates, updates, 2.0)[0])
        coordinates = coordinates + 2.0 * updates.mean(axis=0)
    valuer = make(
        model="logistic",
        standardize=False,
        learning_rate=2.0,
        clip=clip,
        n_components=2,
        unit=unit,
    ).fit(**parties)
    np.testing.assert_allclose(valuer.round_values_, by_round, rtol=0, atol=1e-10)
    assert valuer.clip_ == clip


@pytest.mark.parametrize(
    ("parameters", "explicit"),
    [
        ({"utility": "accuracy"}, "sum"),
        ({"utility": "neg_loss"}, "part"),
    ],
    ids=["score", "loss"],
)
def test_coalitions_move_by_sums_where_the_utility_is_a_score(
    parties, parameters, explicit
):
    options = {"model": "logistic", "learning_rate": 2.0, **parameters}
    automatic = make(**options).fit(**parties)
    chosen = make(**options, coalition_step=explicit).fit(**parties)
    np.testing.assert_array_equal(automatic.values_, chosen.values_)
    other = {"sum": "part", "part": "sum"}[explicit]
    changed = make(**options, coalition_step=other).fit(**parties)
    assert not np.allclose(changed.values_, chosen.values_)
    gain = chosen.utility_ - chosen.empty_utility_
    assert chosen.values_.sum() == pytest.approx(gain)


@pytest.mark.parametrize("coalition_step", ["auto", "part", "mean", "sum"])
def test_the_model_moves_along_the_mean_whatever_coalitions_do(rng, coalition_step):
    updates = rng.normal(size=(4, 3, 2))
    valuer = make(coalition_step=coalition_step, learning_rate=0.7).start(bowl, 3)
    thetas = train(valuer, updates)
    np.testing.assert_allclose(np.diff(thetas, axis=0), 0.7 * updates.mean(axis=1))


def test_fit_of_sums_equals_a_plain_loop(parties):
    X_val = np.column_stack([parties["X_val"], np.ones(40)])
    is_positive = parties["y_val"] == 1

    def accuracies(thetas):
        return ((thetas @ X_val.T > 0) == is_positive).mean(axis=1)

    theta = np.zeros(4)
    by_round = []
    for _ in range(4):
        updates = logistic_gradients(theta, parties)
        values, _ = by_enumeration(
            accuracies, theta, updates, 2.0, coalition_step="sum"
        )
        by_round.append(values)
        theta = theta + 2.0 * updates.mean(axis=0)
    valuer = make(
        model="logistic", standardize=False, learning_rate=2.0, utility="accuracy"
    )
    valuer.fit(**parties)
    # The start predicts one class of two, or both: not compared.
    np.testing.assert_allclose(
        valuer.round_values_[1:], by_round[1:], rtol=0, atol=1e-12
    )


def test_sums_find_bad_parties_by_the_accuracy():
    """Of 20 parties of handwritten digits, six have wrong labels: see Table 3."""
    X, y = load_digits(return_X_y=True)
    X = X / 4 - 1
    order = np.random.default_rng(2).permutation(len(y))
    rows = order[:640]
    points = order[640:1040]
    owner = np.arange(640) // 32
    is_bad = np.arange(20) < 6
    wrong, _ = flip_labels(y[rows], 1.0, random_state=2)
    labels = np.where(is_bad[owner], wrong, y[rows])
    aurocs = {}
    for coalition_step in ("sum", "mean"):
        valuer = FederatedSemivalueValuer(
            "softmax",
            utility="accuracy",
            coalition_step=coalition_step,
            unit="example",
            clip=1.0,
            n_rounds=20,
            n_permutations=6,
            standardize=False,
            random_state=2,
        )
        valuer.fit(X[rows], labels, groups=owner, X_val=X[points], y_val=y[points])
        aurocs[coalition_step] = noisy_label_auc(valuer.values_, is_bad)
    # 1.0 and .56 in one run.
    assert aurocs["sum"] > 0.97
    assert aurocs["mean"] < aurocs["sum"] - 0.1


def public_basis(X_val, y_val):
    """Gradients of the points at zero, and the first two public directions, by hand.

    These are the mean gradient, and the direction of most of the remainder.
    """
    gradients = X_val * (0.5 - y_val)[:, None]
    mean = gradients.mean(axis=0)
    first = mean / np.linalg.norm(mean)
    remainder = gradients - np.outer(gradients @ first, first)
    second = np.linalg.eigh(remainder.T @ remainder)[1][:, -1]
    return gradients, np.column_stack([first, second])


def test_the_median_clip_is_that_of_what_points_would_send(parties):
    X_val = np.column_stack([parties["X_val"], np.ones(40)])
    gradients, basis = public_basis(X_val, parties["y_val"])
    valuer = make(
        model="logistic",
        standardize=False,
        clip="median",
        n_components=2,
        unit="example",
    ).fit(**parties)
    bound = np.median(np.linalg.norm(gradients @ basis, axis=1))
    assert valuer.clip_ == pytest.approx(bound)


def test_as_many_directions_as_parameters_change_no_value(parties):
    plain, rotated = (
        make(
            model="logistic", learning_rate=1.0, clip=0.1, n_components=n_components
        ).fit(**parties)
        for n_components in (None, 4)
    )
    np.testing.assert_allclose(rotated.values_, plain.values_, atol=1e-12)


def test_every_split_has_directions_of_its_own(parties):
    del parties["X_val"], parties["y_val"]
    valuer = make(
        model="logistic", learning_rate=1.0, clip="median", n_components=1, cv=5
    )
    valuer.fit(**parties)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)
    np.testing.assert_allclose(valuer.round_values_.mean(axis=0), valuer.values_)


def test_noise_along_directions_is_that_of_the_median_clip(parties):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = make(
        model="logistic",
        epsilon=1.0,
        clip="median",
        n_components=1,
        unit="example",
        ledger=ledger,
    ).fit(**parties)
    event = ledger.charges[0].event
    assert valuer.clip_ < 0.7
    assert event.event.sensitivity == 2 * valuer.clip_
    scale = 2 * 2 * valuer.clip_ / mu_from_epsilon(1.0, 1e-5)  # over four rounds
    assert event.event.scale == pytest.approx(scale)
    assert valuer.privacy_.epsilon <= 1.0


def other_rows(parties):
    """The same parties and validation points, with rows that are quite different."""
    return {**parties, "X": 100 * parties["X"], "y": 1 - parties["y"]}


def test_the_median_clip_does_not_depend_on_the_rows(parties):
    valuer = make(model="logistic", clip="median").fit(**parties)
    other = clone(valuer).fit(**other_rows(parties))
    assert other.clip_ == valuer.clip_


@pytest.mark.slow
def test_one_public_direction_finds_more_at_the_same_guarantee():
    aurocs = {None: [], 1: []}  # by the number of components
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(840, 8))
        owner = np.arange(640) % 20
        y = (X.sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
        y[:640][owner < 6] ^= 1
        for n_components in aurocs:
            valuer = FederatedSemivalueValuer(
                "logistic",
                epsilon=1.0,
                unit="example",
                learning_rate=1.0,
                n_rounds=20,
                n_permutations=4,
                n_components=n_components,
                clip="median",
                random_state=seed,
            )
            valuer.fit(X[:640], y[:640], groups=owner, X_val=X[640:], y_val=y[640:])
            auroc = noisy_label_auc(valuer.values_, np.arange(20) < 6)
            aurocs[n_components].append(auroc)
    # 0.99 and 0.76, with standard errors of 0.01 and 0.03.
    assert np.mean(aurocs[1]) > np.mean(aurocs[None]) + 0.05
    assert np.mean(aurocs[1]) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [{"clip": 0.2}, {"clip": "median", "n_components": 2}],
    ids=["all coordinates", "two directions"],
)
def test_a_torch_module_equals_the_built_in_model(parties, parameters):
    torch = pytest.importorskip("torch")

    class Zeros(torch.nn.Linear):
        def reset_parameters(self):
            for parameter in self.parameters():
                torch.nn.init.zeros_(parameter)

    zeros = Zeros(3, 2, dtype=torch.float64)
    zeros.reset_parameters()  # where coordinates start
    built_in, module = (
        make(
            model=model,
            device="cpu",
            standardize=False,
            learning_rate=1.0,
            unit="example",
            **parameters,
        ).fit(**parties)
        for model in ("softmax", zeros)
    )
    np.testing.assert_allclose(module.values_, built_in.values_, atol=1e-12)


def test_noise_on_examples_shrinks_with_the_rows_of_a_party(parties, monkeypatch):
    thetas = []
    utilities = LinearGradientModel.utilities

    def watched(self, of_coalitions):
        thetas.append(np.array(of_coalitions))
        return utilities(self, of_coalitions)

    monkeypatch.setattr(LinearGradientModel, "utilities", watched)
    stds = {}  # of the parameters of all coalitions
    for unit in ("party", "example"):
        valuer = make(
            model="logistic",
            unit=unit,
            epsilon=1.0,
            clip=1.0,
            learning_rate=0.1,
            n_rounds=1,
        )
        thetas.clear()
        for _ in range(40):
            valuer.fit(**parties)
        stds[unit] = np.concatenate(thetas).std()
    # 28 rows a party; 800 numbers of noise each, of which coalitions have means.
    assert stds["party"] / stds["example"] == pytest.approx(28, rel=0.35)


@pytest.mark.parametrize(
    ("unit", "protected"), [("party", "party"), ("example", "row of a party")]
)
def test_the_report_names_the_unit(parties, unit, protected):
    valuer = make(
        model="logistic",
        unit=unit,
        epsilon=1.0,
        clip=1.0,
        learning_rate=0.1,
        n_rounds=1,
    ).fit(**parties)
    assert valuer.privacy_.unit == protected


def test_the_bad_party_has_the_smallest_private_value(parties):
    valuer = make(
        model="logistic",
        unit="example",
        epsilon=8.0,
        clip=1.0,
        n_rounds=10,
        learning_rate=0.5,
        noise_random_state=1,
        random_state=0,
    )
    with pytest.warns(SeededNoiseWarning):
        values = valuer.fit(**parties).values_
    assert values.argmin() == 0


def test_the_automatic_learning_rate_is_a_good_one(parties):
    options = dict(model="logistic", n_rounds=10, random_state=0)
    valuer = make(**options).fit(**parties)
    assert valuer.learning_rate_ >= 0.3
    slow = make(**options, learning_rate=0.001).fit(**parties)
    assert valuer.utility_ > slow.utility_


@pytest.mark.parametrize("unit", ["party", "example"])
def test_the_automatic_learning_rate_grows_as_the_clip_shortens_steps(parties, unit):
    options = dict(model="logistic", n_rounds=10, random_state=0, unit=unit)
    free = make(**options).fit(**parties)
    clipped = make(**options, clip=1e-3).fit(**parties)
    assert clipped.learning_rate_ > 30 * free.learning_rate_
    # Without the larger rates a clip of .001 would leave the model where it starts.
    gain = clipped.utility_ - clipped.empty_utility_
    assert gain > 0.3 * (free.utility_ - free.empty_utility_)
    idle = make(**options, clip=1e3).fit(**parties)
    assert idle.learning_rate_ == free.learning_rate_


@pytest.mark.parametrize("clip", [None, 0.05])
def test_the_automatic_learning_rate_does_not_depend_on_the_rows(parties, clip):
    valuer = make(model="logistic", n_rounds=10, random_state=0, clip=clip)
    valuer.fit(**parties)
    other = clone(valuer).fit(**other_rows(parties))
    assert other.learning_rate_ == valuer.learning_rate_


def test_a_seed_repeats_the_values(parties):
    del parties["groups"]
    valuer = make(
        model="logistic",
        learning_rate=1.0,
        n_permutations=2,
        n_rounds=2,
        random_state=0,
    ).fit(**parties)
    again = clone(valuer).fit(**parties)
    np.testing.assert_array_equal(again.values_, valuer.values_)
    other = clone(valuer).set_params(random_state=1).fit(**parties)
    assert not np.array_equal(other.values_, valuer.values_)


def test_fit_forgets_a_training_that_ran_elsewhere(parties):
    valuer = make(model="logistic", learning_rate=1.0).start(bowl, 3)
    valuer.fit(**parties)
    with pytest.raises(
        NotFittedError, match="has no training: call start before add_round"
    ):
        valuer.add_round(np.zeros(2), np.zeros((3, 2)))


# Errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"noise": [0.5, 0.5, 0.5, 0.5], "epsilon": 1.0, "clip": 1.0},
            "the first of them 1",
        ),
        (
            {"noise": [1.0, 0.5], "epsilon": 1.0, "clip": 1.0},
            "one weight for each of 4",
        ),
        ({"epsilon": 1.0}, "clip must be a number if gradients are private"),
        (
            {"epsilon": 1.0, "clip": 1.0, "noise_multiplier": 1.0},
            "noise_multiplier must be None",
        ),
        (
            {"epsilon": 1.0, "clip": 1.0, "unit": "example"},
            "unit must be 'party' in a training",
        ),
        ({"epsilon": -1.0, "clip": 1.0}, "epsilon must be"),
        ({"delta": 2.0, "clip": 1.0, "epsilon": 1.0}, "delta must be"),
        ({"semivalue": "core"}, "semivalue must be 'shapley'"),
        ({"n_rounds": 0}, "The 'n_rounds' parameter"),
        (
            {"n_components": 2},
            r"n_components must be None \(pass coordinates as parameters",
        ),
        (
            {"clip": "median"},
            "clip must be a number, 'auto' or None in a training that runs elsewhere",
        ),
    ],
)
def test_wrong_parameters_of_a_training_elsewhere_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters).start(bowl, 3)


@pytest.mark.parametrize("parameters", [{"n_components": 2}, {"clip": "median"}])
def test_releases_along_unknown_directions_are_refused(parameters):
    with pytest.raises(
        ValueError, match="in a training that runs elsewhere, whose validation"
    ):
        make(**parameters).release(np.zeros(2))


def test_more_directions_than_there_are_are_refused(parties):
    with pytest.raises(
        ValueError, match="n_components must be at most .* differ, 4. Got 5."
    ):
        make(model="logistic", n_components=5).fit(**parties)


def test_a_utility_that_is_no_function_is_refused():
    with pytest.raises(
        TypeError, match="utility must be a function of parameters. Got 3."
    ):
        make().start(3, 2)


def test_a_training_of_one_party_is_refused():
    with pytest.raises(
        ValueError, match="parties must be at least 2, or names. Got 1."
    ):
        make().start(bowl, 1)


@pytest.mark.parametrize(
    ("parties", "message"),
    [
        ("north", "parties must be an integer of at least 2, or names. Got 'north'"),
        (2.0, "parties must be an integer of at least 2, or names. Got 2.0"),
        (True, "parties must be an integer of at least 2, or names. Got True"),
        (["a"], "parties must be at least two different names"),
        (["a", "b", "a"], "parties must be at least two different names"),
        (["a", 2], "parties must be an integer or strings, their names"),
    ],
)
def test_other_parties_are_refused(parties, message):
    with pytest.raises(ValueError, match=message):
        make().start(bowl, parties)


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({}, "updates must have the update of at least one party"),
        ({"d": np.zeros(2)}, "updates must name parties of the training.*Got 'd'"),
        ({"a": np.zeros(2), "b": np.zeros(3)}, "rows of different lengths"),
        ({"a": np.zeros(3)}, r"updates \(1, 2\). Got \(2,\) and \(1, 3\)"),
        ({"a": ["x", "y"]}, r"updates must be real numbers in shape \(1, 2\)"),
        (
            {"a": None},
            r"updates must be real numbers in shape \(1, 2\)|updates \(1, 2\)",
        ),
    ],
)
def test_updates_by_other_names_or_shapes_are_refused(updates, message):
    valuer = make().start(bowl, ["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        valuer.add_round(np.zeros(2), updates)
    assert len(valuer.round_values_) == 0


@pytest.mark.parametrize(
    "weights",
    [
        [1, 1],
        [1, 1, 0],
        [1, 1, -1],
        [1, 1, np.nan],
        [1, 1, np.inf],
        [1, 1, 1e300],
        [1, 1, "1"],
        [[1, 1, 1]],
        3,
        {"a": 1, "b": 1},
        {"a": 1, "b": 1, "c": None},
    ],
    ids=str,
)
def test_other_weights_are_refused(weights):
    valuer = make().start(bowl, ["a", "b", "c"])
    with pytest.raises(ValueError, match="weights must"):
        valuer.add_round(np.zeros(2), np.zeros((3, 2)), weights=weights)
    assert len(valuer.round_values_) == 0


@pytest.mark.parametrize("entry", [None, np.nan, np.inf, pd.NA, 10**400])
def test_no_update_of_objects_is_refused_under_noise(entry):
    valuer = make(epsilon=1.0, clip=1.0, n_rounds=2).start(bowl, ["a", "b", "c"])
    update = np.array([0.5, entry], dtype=object)
    valuer.add_round(np.zeros(2), {"a": update, "b": [0.0, 1.0]})
    assert valuer.release(update).shape == (2,)


def test_private_values_of_the_burn_in_are_said_to_come():
    valuer = make(epsilon=1.0, clip=1.0, n_rounds=10, burn_in=0.2).start(bowl, 2)
    valuer.add_round(np.zeros(2), np.zeros((2, 2)))
    with pytest.raises(AttributeError, match="has values from round 3 on"):
        _ = valuer.values_


def test_weights_with_equal_steps_are_refused():
    valuer = make(step_weights="equal").start(bowl, 2)
    with pytest.raises(ValueError, match="weights must be None with step_weights"):
        valuer.add_round(np.zeros(2), np.zeros((2, 2)), weights=[1, 2])


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_releases_that_release_cannot_make_are_refused(epsilon, bad):
    valuer = make(epsilon=epsilon, clip=1.0).start(bowl, ["a", "b"])
    updates = np.zeros((2, 2))
    updates[1, 0] = bad
    with pytest.raises(ValueError, match="updates must .* of party 'b'"):
        valuer.add_round(np.zeros(2), updates, released=True)
    # What was refused is no round.
    valuer.add_round(np.zeros(2), {"a": np.zeros(2)}, released=True)


@pytest.mark.parametrize("epsilon", [None, 1.0, 100.0])
def test_releases_of_a_larger_clip_are_refused(epsilon):
    server = make(epsilon=epsilon, clip=1.0).start(first_parameter, 2)
    own = make(epsilon=epsilon, clip=1.0)
    other = make(epsilon=epsilon, clip=100.0)
    long = np.full(50, 50.0)
    server.add_round(
        np.zeros(50), [own.release(long), own.release(long)], released=True
    )
    with pytest.raises(ValueError, match="released with another clip.*of party 1"):
        server.add_round(
            np.zeros(50), [own.release(long), other.release(long)], released=True
        )


def test_a_round_before_start_is_refused():
    with pytest.raises(NotFittedError, match="call start before add_round"):
        make().add_round(np.zeros(2), np.zeros((3, 2)))


def test_updates_of_another_shape_are_refused():
    valuer = make().start(bowl, 3)
    with pytest.raises(
        ValueError, match=r"theta must have shape \(2,\), and updates \(3, 2\)"
    ):
        valuer.add_round(np.zeros(2), np.zeros((2, 2)))


def test_missing_updates_are_refused():
    valuer = make().start(bowl, 3)
    with pytest.raises(
        ValueError, match=r"in shape \(3, 2\), or a mapping from names to updates"
    ):
        valuer.add_round(np.zeros(2), [np.zeros(2), None, np.zeros(2)])


def test_a_utility_of_one_number_for_all_parameters_is_refused():
    valuer = make().start(lambda thetas: 1.0, 3)
    with pytest.raises(
        ValueError, match="utility must return one number for every row"
    ):
        valuer.add_round(np.zeros(2), np.zeros((3, 2)))


# Errors of private values -------------------------------------------------------------


def private_values_error(schedule, weights, **parameters):
    """Stated errors of a linear utility, and those that follow from the noise."""
    n_rounds = 12
    valuer = make(
        noise=schedule,
        n_rounds=n_rounds,
        epsilon=50.0,
        clip=1.0,
        noise_random_state=0,
        **parameters,
    ).start(first_parameter, len(weights))
    theta = np.zeros(2)
    updates = np.tile([0.3, -0.1], (len(weights), 1))
    for _ in range(n_rounds):
        theta = theta + valuer.add_round(theta, updates, weights=weights)

    # A value is the mean over rounds of the averages, times the part in the step.
    newest = newest_weights(schedule, n_rounds)
    averages = np.zeros((n_rounds, n_rounds))
    averages[0, 0] = 1.0
    for t in range(1, n_rounds):
        averages[t] = (1 - newest[t]) * averages[t - 1]
        averages[t, t] += newest[t]
    n_skipped = n_rounds - len(valuer.round_values_)
    of_mean = np.linalg.norm(averages[n_skipped:].mean(axis=0))
    scale = np.sqrt(n_rounds) * 2.0 / mu_from_epsilon(50.0, 1e-5)
    part = np.array(weights) / np.sum(weights)
    return valuer.values_error_, part * of_mean * scale


@pytest.mark.parametrize("burn_in", [0.0, 0.5])
@pytest.mark.parametrize("schedule", ["iid", "correlated", "recent"])
@pytest.mark.parametrize("weights", [[1.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
def test_errors_of_linear_values_are_those_of_the_noise(weights, schedule, burn_in):
    stated, expected = private_values_error(schedule, weights, burn_in=burn_in)
    np.testing.assert_allclose(stated, expected, rtol=0.45)
    assert np.sqrt(np.mean((stated / expected) ** 2)) == pytest.approx(1, abs=0.2)


def test_errors_without_noise_are_those_of_coalitions():
    valuer = make().start(first_parameter, 3)
    valuer.add_round(np.zeros(2), np.eye(3)[:, :2])
    assert not valuer.values_error_.any()


def test_there_is_no_error_before_there_are_values():
    valuer = make(epsilon=1.0, clip=1.0, burn_in=0.5).start(first_parameter, 2)
    valuer.add_round(np.zeros(2), np.eye(2))
    with pytest.raises(AttributeError, match="after the burn-in"):
        _ = valuer.values_error_


def test_a_pickled_fit_has_the_same_errors(parties):
    valuer = make(epsilon=1.0, unit="example", clip=1.0).fit(**parties)
    kept = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(kept.values_error_, valuer.values_error_)


def noise_warnings(run):
    """The warnings of noise that a run issues."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        run()
    return [w for w in record if w.category is NoiseExceedsSignalWarning]


@pytest.mark.parametrize("cls", [FederatedSemivalueValuer, GradientSemivalueValuer])
@pytest.mark.parametrize(
    ("unit", "epsilon", "is_noise"),
    [
        ("party", 1.0, True),
        ("party", 8.0, True),
        ("party", 1e5, False),
        ("example", 0.05, True),
        ("example", 100.0, False),
        ("party", None, False),
    ],
)
def test_noise_that_exceeds_the_signal_is_warned_of(
    cls, unit, epsilon, is_noise, parties
):
    valuer = cls(unit=unit, epsilon=epsilon, random_state=0)
    if epsilon is not None:
        valuer.set_params(noise_random_state=0)
    assert len(noise_warnings(lambda: valuer.fit(**parties))) == is_noise


def many_parties(n_parties, rng):
    """Rows of parties of several sizes, a quarter of which have wrong labels."""
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    owner = n_parties * np.arange(400) ** 2 // 400**2
    y[:400][owner < n_parties / 4] ^= 1
    return {
        "X": X[:400],
        "y": y[:400],
        "groups": owner,
        "X_val": X[400:],
        "y_val": y[400:],
    }


# Parameters of the noise, and of what it changes, of both classes or of one.
NOISE_CASES = [
    (cls, n_parties, parameters)
    for cls in (FederatedSemivalueValuer, GradientSemivalueValuer)
    for n_parties, parameters in [
        (2, {}),
        (8, {}),
        (60, {}),
        (8, {"noise": "correlated", "burn_in": 0.0}),
        (8, {"noise": lambda t, k: 1.0 if t == 1 else 0.3}),
        (8, {"semivalue": "banzhaf"}),
        (8, {"semivalue": "leave-one-out"}),
        (8, {"semivalue": (8, 1)}),
        (8, {"utility": "accuracy"}),
        (8, {"step_weights": "equal"}),
        (8, {"trust": "server", "n_components": 2}),
    ]
] + [
    (FederatedSemivalueValuer, 8, {"noise": "iid"}),
    (FederatedSemivalueValuer, 8, {"coalition_step": "mean"}),
    (FederatedSemivalueValuer, 8, {"coalition_step": "sum"}),
    (GradientSemivalueValuer, 8, {"noise": "optimal", "gradient_variance": 0.1}),
]


def few_steps(cls):
    if cls is FederatedSemivalueValuer:
        return {"n_rounds": 15}
    return {"n_permutations": 30}


@pytest.mark.parametrize(("cls", "n_parties", "parameters"), NOISE_CASES)
@pytest.mark.parametrize(
    ("unit", "epsilon", "is_noise"), [("party", 0.05, True), ("example", 1e4, False)]
)
def test_noise_far_from_the_signal_is_decided_rightly(
    cls, n_parties, parameters, unit, epsilon, is_noise, rng
):
    valuer = cls(
        unit=unit,
        epsilon=epsilon,
        learning_rate=0.3,
        random_state=0,
        noise_random_state=0,
        **few_steps(cls),
    ).set_params(**parameters)
    issued = noise_warnings(lambda: valuer.fit(**many_parties(n_parties, rng)))
    assert len(issued) == is_noise


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "n_parties", "parameters"), NOISE_CASES)
def test_errors_in_the_warning_are_about_those_of_the_values(
    cls, n_parties, parameters, rng
):
    valuer = cls(
        epsilon=30.0,
        learning_rate=0.1,
        random_state=0,
        noise_random_state=0,
        **few_steps(cls),
    ).set_params(**parameters)
    (issued,) = noise_warnings(lambda: valuer.fit(**many_parties(n_parties, rng)))
    stated = float(re.search("that of their errors ([^,]*),", str(issued.message))[1])
    size = np.sqrt(np.mean(valuer.values_error_**2))
    assert size / 2 < stated < 2 * size


@pytest.mark.parametrize("n_parties", [3, 20])
def test_the_decision_takes_few_utilities(n_parties, rng):
    n_evaluated = []

    def utilities(thetas):
        n_evaluated.append(len(thetas))
        return bowl(thetas)

    n_rounds = 100
    valuer = make(epsilon=1.0, clip=1.0, n_rounds=n_rounds, noise_random_state=0)
    valuer.start(utilities, n_parties)
    theta = np.zeros(2)
    for _ in range(n_rounds):
        updates = rng.normal(size=(n_parties, 2))
        theta = theta + valuer.add_round(theta, updates)
    of_decisions = sum(n_evaluated) - valuer.n_evaluations_
    assert 0 < of_decisions < valuer.n_evaluations_


@pytest.mark.parametrize(("epsilon", "is_noise"), [(0.5, True), (1e6, False)])
def test_noise_of_parties_that_are_often_absent_is_decided_rightly(epsilon, is_noise):
    n_rounds = 20
    names = list("abcdefgh")
    valuer = make(
        epsilon=epsilon, clip=1.0, n_rounds=n_rounds, noise_random_state=0
    ).start(bowl, names)
    target = np.array([1.0, -0.5])
    theta = np.zeros(2)
    last = []
    for number in range(n_rounds):
        names_of_round = names[number % 5 : number % 5 + 3]
        updates = dict.fromkeys(names_of_round, 0.3 * (target - theta))
        updates[names_of_round[0]] = -updates[names_of_round[0]]

        def add(theta=theta, updates=updates):
            last.append(valuer.add_round(theta, updates))

        issued = noise_warnings(add)
        theta = theta + last[-1]
    assert len(issued) == is_noise


@pytest.mark.parametrize(("epsilon", "n_warnings"), [(0.1, 2), (1e6, 0), (None, 0)])
def test_a_training_elsewhere_warns_in_its_first_round_and_its_last(
    epsilon, n_warnings
):
    seed = None if epsilon is None else 0
    valuer = make(
        epsilon=epsilon,
        clip=1.0,
        n_rounds=3,
        burn_in=0.4,
        noise_random_state=seed,
    )
    valuer.start(first_parameter, 3)
    updates = np.array([[0.9, 0.0], [0.5, 0.0], [-0.5, 0.0]])
    rounds = []
    for number in range(3):
        issued = noise_warnings(lambda: valuer.add_round(np.zeros(2), updates))
        rounds += [number] * len(issued)
    assert rounds == [1, 2][:n_warnings]


@pytest.mark.parametrize(
    ("epsilon", "n_rounds", "is_hopeless"),
    [(0.5, 20, True), (1.0, 20, True), (1.0, 100, True), (20.0, 20, False)],
)
@pytest.mark.parametrize("seed", range(4))
def test_hopeless_noise_is_warned_of_after_one_round_whatever_it_released(
    epsilon, n_rounds, is_hopeless, seed
):
    valuer = make(epsilon=epsilon, clip=1.0, n_rounds=n_rounds, noise_random_state=seed)
    valuer.start(bowl, 6)
    updates = np.random.default_rng(seed).normal(size=(6, 2))
    issued = noise_warnings(lambda: valuer.add_round(np.zeros(2), updates))
    assert len(issued) == is_hopeless
    if is_hopeless:
        (sentence,) = [str(warning.message) for warning in issued]
        times = float(re.search("will be ([^ ]*) times the clip", sentence)[1])
        scale = float(
            re.search("noise of scale ([0-9.]*[0-9])", valuer.privacy_.noise)[1]
        )
        assert times == pytest.approx(scale / np.sqrt(n_rounds), rel=0.05)


def test_the_automatic_rate_reckons_with_noise(parties):
    def fit(epsilon):
        valuer = FederatedSemivalueValuer(
            epsilon=epsilon,
            random_state=0,
            clip=1.0,
            noise_random_state=None if epsilon is None else 0,
        )
        return valuer.fit(**parties)

    rates = [fit(epsilon).learning_rate_ for epsilon in (0.5, 8.0, 1e6)]
    assert rates[0] < rates[1] < rates[2] <= 3 * fit(None).learning_rate_
    # At the rate without noise, the model is carried away.
    assert fit(8.0).utility_ > -2
    carried = FederatedSemivalueValuer(
        epsilon=8.0,
        random_state=0,
        clip=1.0,
        learning_rate=fit(None).learning_rate_,
        noise_random_state=0,
    )
    assert carried.fit(**parties).utility_ < -2
