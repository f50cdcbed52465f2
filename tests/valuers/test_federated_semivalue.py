import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skvalue import FederatedSemivalueValuer
from skvalue.derivatives import LinearGradientModel, newest_weights
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
    X, owner = rng.normal(size=(180, 3)), np.arange(140) % 5
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


def make(**parameters):
    return FederatedSemivalueValuer(
        **{"n_rounds": 4, "burn_in": 0.0, "clip": None, **parameters}
    )


def walk(valuer, updates, **options):
    """Feed rounds of updates; parameters before every round, and after the last."""
    theta, path = np.zeros(updates.shape[2]), []
    for some in updates:
        path.append(theta)
        theta = theta + valuer.add_round(theta, some, **options)
    return np.array([*path, theta])


# Functions of arrays ------------------------------------------------------------------


def test_weights_of_the_paper():
    fractions = newest_weights("recent", 50)
    assert fractions[0] == 1
    np.testing.assert_allclose(fractions[1:], 0.75 - 0.7 * np.arange(2, 51) / 50)


def test_defaults_are_those_of_the_paper():
    valuer = FederatedSemivalueValuer(n_rounds=10, epsilon=1.0).start(bowl, 3)
    np.testing.assert_array_equal(
        valuer._fitted.statistic.weights, newest_weights("recent", 10)
    )
    for _ in range(3):
        valuer.add_round(np.zeros(2), np.ones((3, 2)))
    assert np.isnan(valuer.round_values_).all(axis=1).tolist() == [True, True, False]


def averaging_matrix(fractions):
    """X, by which what was sent, A, is averaged: W = X A."""
    X = np.diag(fractions)
    for t in range(1, len(X)):
        X[t] += (1 - fractions[t]) * X[t - 1]
    return X


@pytest.mark.parametrize(
    "fractions", [newest_weights(name, 6) for name in ("recent", "correlated", "iid")]
)
def test_averaging_is_a_matrix_product(rng, fractions):
    released = rng.normal(size=(6, 3, 2))
    valuer = make(n_rounds=6, noise=fractions, noise_multiplier=1.0, clip=1.0).start(
        bowl, 3
    )
    used = []
    for some in released:
        valuer.add_round(np.zeros(2), some, released=True)
        used.append(valuer._fitted.statistic.averages.copy())
    X = averaging_matrix(fractions)
    np.testing.assert_allclose(X.sum(axis=1), 1)
    assert not np.triu(X, 1).any()
    np.testing.assert_allclose(used, np.einsum("ts,snp->tnp", X, released), atol=1e-12)


def test_memory_of_very_many_rounds():
    tracemalloc.start()
    try:
        make(n_rounds=20_000, noise="recent", clip=1.0, noise_multiplier=1.0).start(
            bowl, 3
        )
        assert tracemalloc.get_traced_memory()[1] < 20e6  # not of n_rounds^2 numbers
    finally:
        tracemalloc.stop()


def test_parameters_of_coalitions(rng):
    theta, updates = rng.normal(size=2), rng.normal(size=(4, 2))
    masks = rng.random((9, 4)) < 0.5
    masks[0] = False
    found = coalition_parameters(theta, updates, masks, 0.3)
    for mask, row in zip(masks, found):
        step = updates[mask].sum(axis=0) / max(mask.sum(), 1)
        np.testing.assert_allclose(row, theta + 0.3 * step)
    np.testing.assert_array_equal(found[0], theta)


def value_round(updates, semivalue, n_permutations=10_000, **options):
    return round_values(
        bowl, np.zeros(2), updates, 0.7, semivalue=semivalue, n_permutations=n_permutations,
        **{"seed": 0, "number": 0, **options},
    )  # fmt: skip


def by_enumeration(utilities, theta, updates, rate, semivalue="shapley"):
    """Values of a round of five parties, and the utility of a coalition."""

    def utility(players):
        mask = np.isin(np.arange(5), players)[None]
        return utilities(coalition_parameters(theta, updates, mask, rate))[0]

    return enumerate_semivalue(utility, 5, semivalue), utility


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_values_of_a_round_equal_enumeration(rng, semivalue):
    updates = rng.normal(size=(5, 2))
    values, variances, ends, asked = value_round(updates, semivalue)
    expected, utility = by_enumeration(bowl, np.zeros(2), updates, 0.7, semivalue)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert not variances.any()
    np.testing.assert_allclose(ends, [utility(()), utility(range(5))])
    assert asked == (7 if semivalue == "leave-one-out" else 33)


@pytest.mark.parametrize("semivalue", SEMIVALUES[:3])
def test_sampled_rounds_agree_with_their_errors(rng, semivalue):
    updates = rng.normal(size=(9, 2))
    exact = value_round(updates, semivalue)[0]
    values, variances, ends, asked = value_round(updates, semivalue, n_permutations=44)
    assert asked == 2 + 44 * 8  # with the empty coalition and that of all players
    assert (np.abs(values - exact) < 6 * np.sqrt(variances)).all()
    assert np.abs(values - exact).max() > 1e-9
    if semivalue == "shapley":
        assert values.sum() == pytest.approx(ends[1] - ends[0])
    assert not np.array_equal(
        values, value_round(updates, semivalue, n_permutations=44, number=1)[0]
    )


def test_few_permutations_still_give_errors(rng):
    _, variances, _, asked = value_round(
        rng.normal(size=(9, 2)), "shapley", n_permutations=1
    )
    assert np.isfinite(variances).all()
    assert asked == 2 + 2 * 2 * 8


# Training elsewhere -------------------------------------------------------------------


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_watched_values_are_means_over_rounds(rng, semivalue):
    updates = rng.normal(size=(4, 5, 2))
    valuer = make(semivalue=semivalue, learning_rate=0.7, burn_in=0.5).start(bowl, 5)
    assert np.isnan(valuer.values_).all()
    path = walk(valuer, updates)
    np.testing.assert_allclose(np.diff(path, axis=0), 0.7 * updates.mean(axis=1))
    by_round = [
        by_enumeration(bowl, *at, 0.7, semivalue)[0] for at in zip(path, updates)
    ]  # fmt: skip
    assert np.isnan(valuer.round_values_[:2]).all()
    np.testing.assert_allclose(valuer.round_values_[2:], by_round[2:], atol=1e-12)
    np.testing.assert_allclose(
        valuer.values_, np.mean(by_round[2:], axis=0), atol=1e-12
    )
    if semivalue == "shapley":
        gain = bowl(path[4:])[0] - bowl(path[2:3])[0]
        assert valuer.values_.sum() == pytest.approx(gain / 2)
        assert valuer.utility_ - valuer.empty_utility_ == pytest.approx(gain / 2)


def test_values_are_there_after_every_round(rng):
    valuer = make(burn_in=0.25).start(bowl, 3)
    updates = rng.normal(size=(4, 3, 2))
    for t in range(4):
        valuer.add_round(np.zeros(2), updates[t])
        assert len(valuer.round_values_) == t + 1
        assert np.isnan(valuer.values_).all() == (t == 0)
    np.testing.assert_allclose(valuer.values_, valuer.round_values_[1:].mean(axis=0))
    with pytest.raises(
        ValueError, match="call start again.*Got round 5 with n_rounds=4"
    ):
        valuer.add_round(np.zeros(2), updates[0])
    again = valuer.start(bowl, 3)
    assert again is valuer
    assert len(valuer.round_values_) == 0


def test_a_round_that_fails_leaves_the_former(rng):
    fails = []

    def flaky(thetas):
        if fails:
            raise RuntimeError("no utility")
        return bowl(thetas)

    valuer = make().start(flaky, 3)
    valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    before = valuer.values_.copy(), vars(valuer).copy()
    fails.append(1)
    with pytest.raises(RuntimeError, match="no utility"):
        valuer.add_round(np.zeros(2), rng.normal(size=(3, 2)))
    np.testing.assert_array_equal(valuer.values_, before[0])
    assert vars(valuer) == before[1]
    fails.clear()
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


def test_what_leaves_is_on_a_grid():
    valuer = make(epsilon=1.0, clip=1.0).start(bowl, 2)
    scale = valuer._fitted.release.event.event.scale
    sent = release_updates(
        np.full((3, 50), 0.1),
        1.0,
        valuer._fitted.statistic.draw,
        np.array([1, 0.5, 0.1]),
    )
    grid = 2.0 ** (np.floor(np.log2(scale * np.array([[1], [0.5], [0.1]]))) - 20)
    np.testing.assert_array_equal(sent % grid, 0)
    np.testing.assert_array_equal(valuer.release(np.full(50, 0.1)) % grid[0], 0)


def test_a_round_that_fails_has_released():
    def flaky(thetas):
        if thetas.any():
            raise RuntimeError("what was released is seen all the same")
        return thetas[:, 0]

    valuer = make(epsilon=1.0, clip=1.0, n_rounds=2, burn_in=0.0).start(flaky, 2)
    copied = copy.deepcopy(valuer)
    for one in (valuer, copied):
        with pytest.raises(RuntimeError, match="what was released"):
            one.add_round(np.zeros(1), np.ones((2, 1)))
        assert len(one.round_values_) == 0
    for one in (valuer, copied):
        with pytest.raises(
            ValueError, match="call start again.*Got release 3 with n_rounds=2"
        ):
            one.add_round(np.zeros(1), np.ones((2, 1)))
    with pytest.raises(TypeError, match="belongs to the process that started it"):
        pickle.dumps(make(epsilon=1.0, clip=1.0).start(bowl, 2))


def test_a_training_is_as_private_as_it_started():
    valuer = make(epsilon=1.0, clip=1e-9, n_rounds=1, burn_in=0.0).start(bowl, 2)
    valuer.set_params(clip=1e9, n_rounds=5)
    step = valuer.add_round(np.zeros(2), np.full((2, 2), 1e9))
    assert np.abs(step).max() < 1e-6
    with pytest.raises(
        ValueError, match="call start again.*Got round 2 with n_rounds=1"
    ):
        valuer.add_round(np.zeros(2), np.ones((2, 2)))


def test_every_release_is_charged():
    ledger = Ledger(None, "a party's rows", epsilon=1.0, delta=1e-5)
    for valuer in (
        party := make(epsilon=1.0, clip=1.0, n_rounds=3, ledger=ledger),
        clone(party),
    ):
        for _ in range(3 if valuer is party else 0):
            valuer.release(np.zeros(2))
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
    walk(valuer, updates)
    assert valuer.privacy_.guarantee is None
    with pytest.warns(SeededNoiseWarning):
        other = make(**seeded).start(bowl, 3)
    for t, some in enumerate(updates):
        sent = release_updates(some, 1.0, other._fitted.statistic.draw, stream=(t,))
        other.add_round(valuer._fitted.statistic.averages[0] * 0, sent, released=True)
        if t == 0:
            np.testing.assert_array_equal(other._fitted.statistic.averages, sent)
    np.testing.assert_array_equal(
        other._fitted.statistic.averages, valuer._fitted.statistic.averages
    )


def test_updates_are_clipped(rng):
    valuer = make(clip=0.5).start(bowl, 4)
    updates = rng.normal(size=(4, 2)) * np.array([[9.0], [3.0], [0.1], [0.0]])
    step = valuer.add_round(np.zeros(2), updates)
    norms = np.linalg.norm(valuer._fitted.statistic.averages, axis=1)
    np.testing.assert_allclose(norms[:2], 0.5)
    np.testing.assert_array_equal(valuer._fitted.statistic.averages[2:], updates[2:])
    np.testing.assert_allclose(step, valuer._fitted.statistic.averages.mean(axis=0))


def test_updates_that_are_not_finite():
    updates = np.array([[np.nan, 1.0], [1.0, 0.0]])
    with pytest.raises(
        ValueError, match="updates must be finite. Got one that is not, of party 0"
    ):
        make().start(bowl, 2).add_round(np.zeros(2), updates)
    valuer = make(epsilon=1e6, clip=1.0).start(bowl, 2)
    valuer.add_round(np.zeros(2), updates)  # an error would depend on its rows
    np.testing.assert_allclose(valuer._fitted.statistic.averages[0], 0, atol=0.1)


def test_ledger_is_charged_for_all_rounds_at_once():
    ledger = Ledger(None, "parties", epsilon=1.2, delta=1e-5)
    make(epsilon=1.0, clip=1.0, ledger=ledger).start(bowl, 3)
    assert ledger.charges[0].event.count == 4
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        make(epsilon=1.0, clip=1.0, ledger=ledger).start(bowl, 3)


# Training here ------------------------------------------------------------------------


def logistic_gradients(theta, data):
    """Minus the mean gradients of parties, by hand, of rows with a constant."""
    X = np.column_stack([data["X"], np.ones(len(data["X"]))])
    residuals = 1 / (1 + np.exp(-X @ theta)) - data["y"]
    return -np.array([
        (X[data["groups"] == j] * residuals[data["groups"] == j, None]).mean(axis=0)
        for j in range(5)
    ])  # fmt: skip


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_fit_equals_a_plain_loop(parties, semivalue):
    valuer = make(
        model="logistic", semivalue=semivalue, standardize=False, learning_rate=2.0, clip=0.1,
        burn_in=0.25,
    )  # fmt: skip
    X_val = np.column_stack([parties["X_val"], np.ones(40)])
    signs = 2 * parties["y_val"] - 1

    def utilities(thetas):
        return -np.log1p(np.exp(-signs * (thetas @ X_val.T))).mean(axis=1)

    theta, by_round = np.zeros(4), []
    for _ in range(4):
        updates = logistic_gradients(theta, parties)
        updates /= np.maximum(np.linalg.norm(updates, axis=1, keepdims=True) / 0.1, 1)
        by_round.append(by_enumeration(utilities, theta, updates, 2.0, semivalue)[0])
        theta = theta + 2.0 * updates.mean(axis=0)
    valuer.fit(**parties)
    np.testing.assert_allclose(
        valuer.values_, np.mean(by_round[1:], axis=0), atol=1e-10
    )
    assert valuer.values_.argmin() == 0
    assert valuer.groups_.tolist() == [0, 1, 2, 3, 4]
    assert not valuer.values_error_.any()


@pytest.mark.parametrize("unit", ["party", "example"])
def test_coordinates_of_a_plain_loop(parties, unit):
    X, y, owner = (parties[name] for name in ("X", "y", "groups"))
    X, X_val = (
        np.column_stack([rows, np.ones(len(rows))]) for rows in (X, parties["X_val"])
    )
    y_val, clip = parties["y_val"], 0.1
    # The mean public gradient at zero, and the direction of most of the rest, by hand.
    G = X_val * (0.5 - y_val)[:, None]
    u = G.mean(axis=0) / np.linalg.norm(G.mean(axis=0))
    rest = G - np.outer(G @ u, u)
    basis = np.column_stack([u, np.linalg.eigh(rest.T @ rest)[1][:, -1]])

    def utilities(z):
        return -np.log1p(np.exp((1 - 2 * y_val) * (z @ basis.T @ X_val.T))).mean(axis=1)

    def clipped(rows):
        return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True) / clip, 1)

    z, by_round = np.zeros(2), []
    for _ in range(4):
        residuals = 1 / (1 + np.exp(-X @ basis @ z)) - y
        rows = -(X @ basis) * residuals[:, None]
        rows = clipped(rows) if unit == "example" else rows
        updates = clipped(np.array([rows[owner == j].mean(axis=0) for j in range(5)]))
        by_round.append(by_enumeration(utilities, z, updates, 2.0)[0])
        z = z + 2.0 * updates.mean(axis=0)
    valuer = make(
        model="logistic", standardize=False, learning_rate=2.0, clip=clip, n_components=2, unit=unit
    ).fit(**parties)  # fmt: skip
    np.testing.assert_allclose(valuer.round_values_, by_round, rtol=0, atol=1e-10)
    assert valuer.clip_ == clip
    # The median norm of what the validation points would send.
    auto = make(
        model="logistic",
        standardize=False,
        clip="median",
        n_components=2,
        unit="example",
    )
    bound = np.median(np.linalg.norm(G @ basis, axis=1))
    assert auto.fit(**parties).clip_ == pytest.approx(bound)


def test_all_coordinates_are_the_update(parties):
    options = {"model": "logistic", "learning_rate": 1.0, "clip": 0.1}
    whole, rotated = (
        make(n_components=r, **options).fit(**parties).values_ for r in (None, 4)
    )  # fmt: skip
    np.testing.assert_allclose(rotated, whole, atol=1e-12)
    del parties["X_val"], parties["y_val"]  # every game has directions of its own
    split = make(
        model="logistic", learning_rate=1.0, clip="median", n_components=1, cv=5
    )
    split.fit(**parties)
    assert split.values_.sum() == pytest.approx(split.utility_ - split.empty_utility_)
    np.testing.assert_allclose(split.round_values_.mean(axis=0), split.values_)


def test_noise_of_coordinates_is_that_of_the_clip(parties):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = make(
        model="logistic", epsilon=1.0, clip="median", n_components=1, unit="example", ledger=ledger
    ).fit(**parties)  # fmt: skip
    event = ledger.charges[0].event
    assert valuer.clip_ < 0.7
    assert event.event.sensitivity == 2 * valuer.clip_
    scale = 2 * 2 * valuer.clip_ / mu_from_epsilon(1.0, 1e-5)  # over four rounds
    assert event.event.scale == pytest.approx(scale)
    assert valuer.privacy_.epsilon <= 1.0
    rows = {**parties, "X": 100 * parties["X"], "y": 1 - parties["y"]}
    assert make(model="logistic", clip="median").fit(**rows).clip_ == (
        make(model="logistic", clip="median").fit(**parties).clip_
    )  # no row has a say in it


@pytest.mark.slow
def test_one_public_direction_finds_more_at_the_same_guarantee():
    found = {None: [], 1: []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, owner = rng.normal(size=(840, 8)), np.arange(640) % 20
        y = (X.sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
        y[:640][owner < 6] ^= 1
        for r, scores in found.items():
            valuer = FederatedSemivalueValuer(
                "logistic", epsilon=1.0, unit="example", learning_rate=1.0, n_rounds=20,
                n_permutations=4, n_components=r, clip="median", random_state=seed,
            )  # fmt: skip
            valuer.fit(X[:640], y[:640], groups=owner, X_val=X[640:], y_val=y[640:])
            scores.append(noisy_label_auc(valuer.values_, np.arange(20) < 6))
    # 0.99 and 0.76, with standard errors of 0.01 and 0.03.
    assert np.mean(found[1]) > np.mean(found[None]) + 0.05
    assert np.mean(found[1]) > 0.9


def test_torch_module_equals_the_built_in_model(parties):
    torch = pytest.importorskip("torch")

    class Zeros(torch.nn.Linear):
        def reset_parameters(self):
            for p in self.parameters():
                torch.nn.init.zeros_(p)

    options = {
        "standardize": False,
        "learning_rate": 1.0,
        "clip": 0.2,
        "unit": "example",
    }
    zeros = Zeros(3, 2, dtype=torch.float64)
    zeros.reset_parameters()  # where coordinates start
    for public in ({}, {"n_components": 2, "clip": "median"}):
        values = [
            make(model=model, device="cpu", **{**options, **public})
            .fit(**parties)
            .values_
            for model in ("softmax", zeros)
        ]
        np.testing.assert_allclose(*values, atol=1e-12)


def test_example_level_noise_shrinks_with_the_rows_of_a_party(parties, monkeypatch):
    thetas, utilities = [], LinearGradientModel.utilities

    def watched(self, some):
        thetas.append(np.array(some))
        return utilities(self, some)

    monkeypatch.setattr(LinearGradientModel, "utilities", watched)
    spans = {}
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
        spans[unit] = np.concatenate(
            thetas
        ).std()  # of the parameters of all coalitions
        assert valuer.privacy_.unit == (
            "party" if unit == "party" else "row of a party"
        )
    # 28 rows a party; 800 numbers of noise each, of which coalitions have means.
    assert spans["party"] / spans["example"] == pytest.approx(28, rel=0.35)


def test_private_values_find_the_bad_party(parties):
    valuer = make(
        model="logistic", unit="example", epsilon=8.0, clip=1.0, n_rounds=10, learning_rate=0.5,
        noise_random_state=1, random_state=0,
    )  # fmt: skip
    with pytest.warns(SeededNoiseWarning):
        values = valuer.fit(**parties).values_
    assert values.argmin() == 0


def test_automatic_learning_rate_is_a_good_one(parties):
    options = dict(model="logistic", n_rounds=10, random_state=0)
    valuer = make(**options).fit(**parties)
    assert valuer.learning_rate_ >= 0.3
    slow = make(**options, learning_rate=0.001).fit(**parties)
    assert valuer.utility_ > slow.utility_
    rows = {
        **parties,
        "X": 100 * parties["X"],
        "y": 1 - parties["y"],
    }  # do not matter for it
    assert make(**options).fit(**rows).learning_rate_ == valuer.learning_rate_


def test_same_seed_same_values_other_seed_others(parties):
    rows = {name: part for name, part in parties.items() if name != "groups"}
    options = {
        "model": "logistic",
        "learning_rate": 1.0,
        "n_permutations": 2,
        "n_rounds": 2,
    }
    first, again, other = (
        make(random_state=seed, **options).fit(**rows).values_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


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
def test_parameters_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters).start(bowl, 3)


@pytest.mark.parametrize("parameters", [{"n_components": 2}, {"clip": "median"}])
def test_nothing_is_released_along_directions_that_are_not_known(parameters):
    with pytest.raises(
        ValueError, match="in a training that runs elsewhere, whose validation"
    ):
        make(**parameters).release(np.zeros(2))


def test_more_directions_than_there_are(parties):
    with pytest.raises(
        ValueError, match="n_components must be at most .* differ, 4. Got 5."
    ):
        make(model="logistic", n_components=5).fit(**parties)


def test_wrong_starts():
    with pytest.raises(
        TypeError, match="utility must be a function of parameters. Got 3."
    ):
        make().start(3, 2)
    with pytest.raises(
        ValueError, match="n_parties must be an integer of at least 2. Got 1."
    ):
        make().start(bowl, 1)


def test_wrong_rounds():
    with pytest.raises(NotFittedError, match="call start before add_round"):
        make().add_round(np.zeros(2), np.zeros((3, 2)))
    valuer = make().start(bowl, 3)
    with pytest.raises(
        ValueError, match=r"theta must have shape \(2,\), and updates \(3, 2\)"
    ):
        valuer.add_round(np.zeros(2), np.zeros((2, 2)))
    with pytest.raises(
        ValueError, match=r"in shape \(3, 2\), zeros for parties without an update:"
    ):
        valuer.add_round(np.zeros(2), [np.zeros(2), None, np.zeros(2)])
    valuer = make().start(lambda thetas: 1.0, 3)
    with pytest.raises(
        ValueError, match="utility must return one number for every row"
    ):
        valuer.add_round(np.zeros(2), np.zeros((3, 2)))
