"""Semivalues from private gradients: what noise is drawn, what is charged, what can be
found."""

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
from skvalue.derivatives import LinearGradientModel, gradient_event
from skvalue.inspection import noisy_label_auc
from skvalue.privacy import (
    Ledger,
    detection_ceiling,
    epsilon_from_mu,
    get_epsilon,
    grid_width,
    mu_from_epsilon,
)

from ...watch import Watch
from .test_gradient_semivalue import drawn_orders, problem, seeded

# Noise --------------------------------------------------------------------------------


@seeded
def test_kinds_of_noise_reach_the_walk(rng):
    X, y, X_val, y_val = problem(rng, 2)

    def values(noise):
        valuer = GradientSemivalueValuer(
            n_permutations=6, noise_multiplier=0.5, noise=noise, burn_in=0.0, learning_rate=0.3,
            noise_random_state=1, random_state=0,
        )  # fmt: skip
        return valuer.fit(X, y, X_val=X_val, y_val=y_val).values_

    iid, averaged, t = values("iid"), values("correlated"), np.arange(1, 7)
    assert np.abs(iid - averaged).max() > 1e-3
    for same in (lambda t, k: 1 / t, 1 / t):
        np.testing.assert_allclose(values(same), averaged, atol=1e-12)
    own = values(lambda t, k: max(t == 1, t / k))
    np.testing.assert_allclose(own, values([1.0, *(t[1:] / 6)]), atol=1e-12)
    assert np.abs(own - averaged).max() > 1e-3


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (
            [1.0, 0.5],
            "noise must have one weight for each of 4 permutations. Got shape",
        ),
        ([0.5, 0.5, 0.5, 0.5], "noise must have finite weights, the first of them 1"),
        (lambda t, k: np.nan, "noise must have finite weights"),
    ],
)
def test_bad_schedules(rng, noise, message):
    X, y, X_val, y_val = problem(rng, 2)
    with pytest.raises(ValueError, match=message):
        GradientSemivalueValuer(n_permutations=4, epsilon=1.0, noise=noise).fit(
            X, y, X_val=X_val, y_val=y_val
        )


# What leaves --------------------------------------------------------------------------


@contextmanager
def watched_walks():
    """The parameters along each walk of built-in models."""
    taken, walk = [], LinearGradientModel.walk

    def watched(self, *args):
        found = walk(self, *args)
        taken.extend(found[0])
        return found

    with patch.object(LinearGradientModel, "walk", watched):
        yield taken


@seeded
def test_what_leaves_is_on_a_grid(rng):
    X, y, X_val, y_val = problem(rng, 2)
    owner = np.arange(24) // 3
    for unit, rows in (("party", 1), ("example", 3)):
        with watched_walks() as taken:
            GradientSemivalueValuer(
                n_permutations=9, learning_rate=1.0, noise_multiplier=1.0, noise="iid", n_jobs=1,
                unit=unit, noise_random_state=0,
            ).fit(X, y, X_val=X_val, y_val=y_val, groups=owner)  # fmt: skip
        steps = np.array(
            [walk[1] for walk in taken]
        )  # from zero, along one release each
        assert len(steps) == 9
        assert not (steps % grid_width(3.0 / rows)).any()


# Privacy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "relation", "sensitivity"),
    [("local", "replace", 2), ("server", "null", 1)],
)
def test_what_is_released_and_charged(rng, trust, relation, sensitivity):
    X, y, X_val, y_val = problem(rng, 2)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=5e-5)
    valuer = GradientSemivalueValuer(
        n_permutations=7,
        clip=np.float32(0.5),
        epsilon=1.0,
        delta=5e-5,
        trust=trust,
        ledger=ledger,
    ).fit(X, y, X_val=X_val, y_val=y_val)
    event = ledger.charges[0].event
    assert event.count == 7
    assert event.event.relation == relation == valuer.privacy_.relation
    assert event.event.sensitivity == 0.5 * sensitivity
    sigma = sensitivity / mu_from_epsilon(1.0, 5e-5)  # 6.71 and 3.356 at these
    assert event.event.scale == pytest.approx(np.sqrt(7) * 0.5 * sigma)
    assert 0.999 < get_epsilon(event, 5e-5) <= 1.0
    ceiling = detection_ceiling(1.0, 5e-5, relation)
    assert valuer.privacy_.detection_ceiling == pytest.approx(ceiling, abs=1e-6)
    assert valuer.privacy_.notion == {"local": "local", "server": "central"}[trust]
    assert "row's own releases to tell whether" in " ".join(
        str(valuer.privacy_).split()
    )
    with pytest.raises(
        ValueError, match="the release must fit what is left of the budget"
    ):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)


def test_a_multiplier_is_labelled_with_its_guarantee(rng):
    X, y, X_val, y_val = problem(rng, 2)
    valuer = GradientSemivalueValuer(
        n_permutations=9, noise_multiplier=8 / 3, delta=5e-5
    )
    report = valuer.fit(X, y, X_val=X_val, y_val=y_val).privacy_
    assert report.epsilon == pytest.approx(epsilon_from_mu(2 / (8 / 3), 5e-5), rel=1e-6)
    assert "noise of scale 8 " in report.noise


SENTENCES = {
    "Who is trusted: no one; each party adds the noise before anything leaves it.":
        lambda trust, **_: trust == "local",
    "from anyone, including the server.": lambda trust, **_: trust == "local",
    "Who is trusted: a trusted curator sees the raw data, or what is computed from them, and":
        lambda trust, **_: trust == "server",
    "the server sees clipped gradients without noise and adds the noise":
        lambda trust, **_: trust == "server",
    "had one row been": lambda unit, groups, **_: not groups,
    "had one party been": lambda unit, groups, **_: groups and unit == "party",
    "had one row of a party been": lambda unit, groups, **_: groups and unit == "example",
    "been replaced by any other:": lambda trust, **_: trust == "local",
    "been blanked out, so that it contributes nothing:": lambda trust, **_: trust == "server",
    "parties as wholes: the unit is one row of a party":
        lambda unit, groups, **_: groups and unit == "example",
    "on the sum of a party's clipped gradients, which is then averaged.":
        lambda unit, groups, **_: groups and unit == "example",
    "numbers released with it are rounded to a millionth of the scale or less": lambda **_: True,
    "the validation points X_val and y_val, which are public":
        lambda elsewhere=False, **_: not elsewhere,
    "of an update, nothing but the output of this valuer is released":
        lambda elsewhere=False, **_: elsewhere,
}  # fmt: skip


@pytest.mark.parametrize("cls", [GradientSemivalueValuer, FederatedSemivalueValuer])
@pytest.mark.parametrize("trust", ["local", "server"])
@pytest.mark.parametrize("unit", ["party", "example"])
@pytest.mark.parametrize("groups", [False, True])
def test_sentences_of_the_report(rng, cls, trust, unit, groups):
    X, y, X_val, y_val = problem(rng, 2)
    owner = np.arange(24) % 6 if groups else None
    valuer = cls(
        epsilon=2.0, delta=1e-6, n_permutations=4, trust=trust, unit=unit, clip=0.5
    )
    valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=owner)
    check_sentences(valuer, trust=trust, unit=unit, groups=groups)


@pytest.mark.parametrize("trust", ["local", "server"])
def test_sentences_of_a_training_elsewhere(trust):
    valuer = FederatedSemivalueValuer(
        epsilon=2.0, delta=1e-6, n_rounds=4, trust=trust, clip=0.5
    )
    valuer.start(lambda thetas: thetas[:, 0], 3)
    check_sentences(valuer, trust=trust, unit="party", groups=True, elsewhere=True)


def check_sentences(valuer, **fit):
    text = " ".join(str(valuer.privacy_).split())
    for sentence, expected in SENTENCES.items():
        assert (sentence in text) == expected(**fit), sentence
    event = valuer._fitted.release.event
    gradients = isinstance(valuer, GradientSemivalueValuer)
    assert event.count == (valuer.n_permutations if gradients else valuer.n_rounds)
    sensitivity = (1 if fit["trust"] == "server" else 2) * 0.5
    assert (
        f"{event.count} times continuous Gaussian noise of scale {event.event.scale:.6g} (L2 "
        f"sensitivity {sensitivity:g})"
    ) in text
    epsilon = get_epsilon(event, 1e-6)
    assert f"at most exp({epsilon:.6g}) times as probable" in text
    assert "under the other, plus 1e-06." in text
    ceiling = detection_ceiling(epsilon, 1e-6, event.relation)
    assert f"area under the ROC curve above {ceiling:.3f}." in text


@seeded
def test_noise_of_a_party_of_several_rows(rng):
    # With unit "example" the mean of B gradients has a Bth of the noise.
    X, y, X_val, y_val = problem(rng, 2, n=40)
    groups = np.repeat([0, 1, 2], [2, 6, 32])
    spreads = {}
    for unit in ("party", "example"):
        valuer = GradientSemivalueValuer(
            n_permutations=200, noise_multiplier=50.0, noise="iid", unit=unit, learning_rate=1.0,
            n_jobs=1, noise_random_state=0, random_state=0,
        )  # fmt: skip
        with watched_walks() as taken:
            valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
        steps = np.diff(np.array(taken), axis=1)
        orders = drawn_orders(0, 3, 200)
        by_party = np.array(
            [step[np.argsort(order)] for step, order in zip(steps, orders)]
        )
        spreads[unit] = by_party.std(axis=(0, 2))
    np.testing.assert_allclose(spreads["party"], 50 * np.sqrt(200), rtol=0.1)
    np.testing.assert_allclose(
        spreads["example"] * [2, 6, 32], 50 * np.sqrt(200), rtol=0.1
    )


def test_private_values_are_public(rng):
    X, y, X_val, y_val = problem(rng, 2)
    valuer = GradientSemivalueValuer(epsilon=1.0, n_permutations=5, random_state=0)
    assert valuer.fit_transform(X, y, X_val=X_val, y_val=y_val).shape == (24, 1)
    copy = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(copy.values_, valuer.values_)
    assert X[0].tobytes() not in pickle.dumps(valuer)
    assert valuer.n_evaluations_ == 25  # the last of five permutations
    fresh = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
    assert not np.array_equal(fresh.values_, valuer.values_)  # noise has no seed


@pytest.mark.parametrize(
    "valuer",
    [
        GradientSemivalueValuer(epsilon=1.0, n_permutations=30),
        FederatedSemivalueValuer(epsilon=1.0, n_rounds=30),
    ],
)
def test_an_interrupted_private_fit_keeps_no_row(valuer, rng):
    X, y, X_val, y_val = problem(rng, 2)
    valuer = clone(valuer).set_callbacks(Watch(interrupt_at=29))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert np.isfinite(valuer.values_).all()
    assert valuer.set_callbacks()._fitted.problem.X is None
    assert X[0].tobytes() not in pickle.dumps(valuer)


def test_classes_of_a_private_fit_come_from_the_validation_set(rng):
    X, y, X_val, y_val = problem(rng, 3)
    for model in ("logistic", "softmax"):
        valuer = GradientSemivalueValuer(model, epsilon=1.0, n_permutations=3)
        few = y_val < 2
        valuer.fit(X, y, X_val=X_val[few], y_val=y_val[few])  # class 2 is another label
        assert valuer.classes_.tolist() == [0, 1]
        assert np.isfinite(valuer.values_).all()


def redrawn(data, n_fits, **params):
    """Fits with the same permutations and other noise; rows are parties."""
    X, y, X_val, y_val = data
    return [
        GradientSemivalueValuer(
            noise_random_state=seed, random_state=0,
            **{"noise_multiplier": 1.0, "learning_rate": 0.1, **params},
        ).fit(X, y, X_val=X_val, y_val=y_val)
        for seed in range(n_fits)
    ]  # fmt: skip


@seeded
@pytest.mark.parametrize(("noise", "burn_in"), [("iid", 0.0), ("correlated", 0.5)])
def test_errors_are_those_of_redrawn_noise(rng, noise, burn_in):
    fits = redrawn(
        problem(rng, 2, n=16, n_val=20),
        50,
        n_permutations=16,
        noise=noise,
        burn_in=burn_in,
    )
    truth = np.var([fit.values_ for fit in fits], axis=0, ddof=1).mean()
    stated = np.mean([fit.values_error_**2 for fit in fits[:4]])
    assert stated == pytest.approx(truth, rel=0.35)


def test_errors_are_computed_at_first_access_and_released(rng):
    X, y, X_val, y_val = problem(rng, 3)
    valuer = GradientSemivalueValuer(
        epsilon=1.0, n_permutations=20, learning_rate=0.1, random_state=0
    )
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert "values_error_" not in dir(valuer)
    errors = valuer.values_error_
    assert errors is valuer.values_error_
    np.testing.assert_allclose(pickle.loads(pickle.dumps(valuer)).values_error_, errors)
    assert valuer.values_for(3, return_error=True) == (valuer.values_[3], errors[3])
    assert (errors > 0).all()


@seeded
def test_errors_of_parties_with_more_rows_are_smaller(rng):
    X, y, X_val, y_val = problem(rng, 2, n=60)
    groups = np.r_[
        np.arange(12), np.repeat(np.arange(12, 18), 8)
    ]  # parties of 1 and of 8 rows
    valuer = GradientSemivalueValuer(
        n_permutations=20, noise_multiplier=1.0, unit="example", learning_rate=0.01,
        noise_random_state=0, random_state=0,
    ).fit(X, y, groups=groups, X_val=X_val, y_val=y_val)  # fmt: skip
    one, eight = valuer.values_error_[:12], valuer.values_error_[12:]
    assert 4 < one.mean() / eight.mean() < 10
    assert np.ptp(one) < 0.5 * one.mean()


@pytest.mark.slow
@seeded
@pytest.mark.parametrize("k", [50, 200])
@pytest.mark.parametrize(
    ("noise", "burn_in"), [("iid", 0.0), ("correlated", 0), ("correlated", 0.8)]
)
def test_errors_hold_on_diabetes(k, noise, burn_in):
    X, y = load_diabetes(return_X_y=True)
    y = (y > np.median(y)).astype(int)
    fits = redrawn(
        (X[:60], y[:60], X[60:], y[60:]), 200, n_permutations=k, noise=noise, burn_in=burn_in,
        model="logistic", learning_rate=0.05,
    )  # fmt: skip
    truth = np.var([fit.values_ for fit in fits], axis=0, ddof=1)
    squares = np.mean([fit.values_error_**2 for fit in fits[:10]], axis=0)
    assert squares.mean() == pytest.approx(truth.mean(), rel=0.15)
    assert (np.abs(np.log2(squares / truth)) < 1).all()


@seeded
@pytest.mark.parametrize("noise", ["iid", "correlated"])
def test_rows_join_the_models_of_a_private_fit(rng, noise):
    X, y, X_val, y_val = problem(rng, 2, n=100, n_val=50)
    y, y_val = (X[:, 0] > 0).astype(int), (X_val[:, 0] > 0).astype(int)
    valuer = GradientSemivalueValuer(
        epsilon=20.0, n_permutations=20, noise=noise, learning_rate=0.01, random_state=0,
        noise_random_state=0,
    )  # fmt: skip
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    right, wrong = valuer.score_samples(X, y), valuer.score_samples(X, 1 - y)
    # Every row is one that joins: its value has no noise of its own.
    assert (right > wrong).mean() > 0.8
    assert not np.isclose(right, valuer.values_).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(valuer)).transform(X)[:, 0],
                                  valuer.score_samples(X))  # fmt: skip
    assert X[0].tobytes() not in pickle.dumps(valuer)


@seeded
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.IncompleteFitWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_early_stop_reports_the_releases_until_then(rng, n_jobs):
    # Steps are taken ahead of the utilities: what was released in them is not in the
    # record.
    X, y, X_val, y_val = problem(rng, 2)
    points, released = dict(X_val=X_val, y_val=y_val), []
    options = dict(
        epsilon=1.0, burn_in=0.0, learning_rate=0.1, random_state=0, n_jobs=n_jobs
    )
    event = gradient_event(40, 1.0, epsilon=1.0, delta=1e-5)
    multiplier = event.event.scale / 40**0.5
    for k, stop in ((40, 9), (9, 10)):
        noise = dict(epsilon=None, noise_multiplier=multiplier * (40 / k) ** 0.5)
        valuer = GradientSemivalueValuer(**{**options, **noise}, n_permutations=k,
                                         noise_random_state=1)  # fmt: skip
        valuer.set_callbacks(Watch(stop_at=stop)).fit(X, y, **points)
        released.append(valuer._fitted.statistic[0].released)
    np.testing.assert_allclose(released[0].weights, released[1].weights)
    np.testing.assert_allclose(released[0].means, released[1].means, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.IncompleteFitWarning")
def test_stopping_early_is_charged_in_full(rng):
    X, y, X_val, y_val = problem(rng, 2)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = GradientSemivalueValuer(
        epsilon=1.0, noise="iid", n_permutations=40, ledger=ledger
    ).set_callbacks(Watch(stop_at=2))
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.n_evaluations_ == 2 * 25
    assert ledger.spent > 0.999
    assert valuer.privacy_.epsilon > 0.999
    assert "warm_start" not in valuer.get_params()  # no going on: a fit is charged anew
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)


# Where it can work --------------------------------------------------------------------


def blobs(seed, n, size=1, n_features=8, n_val=300):
    """Parties of a few rows of two overlapping classes; all labels of some parties are
    flipped."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n * size + n_val)
    X = rng.normal(size=(len(y), n_features)) + np.where(y, 0.6, -0.6)[:, None]
    X, X_val, y, y_val = X[n_val:], X[:n_val], y[n_val:].copy(), y[:n_val]
    owner = np.repeat(np.arange(n), size)
    bad = rng.random(n) < 0.3
    y[bad[owner]] = 1 - y[bad[owner]]
    return X, y, X_val, y_val, owner, bad


def detection(seed, n, size=1, **parameters):
    X, y, X_val, y_val, owner, bad = blobs(seed, n, size)
    valuer = GradientSemivalueValuer("logistic", random_state=seed, **parameters)
    valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=owner)
    return noisy_label_auc(valuer.values_, bad)


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["local", "server"])
@pytest.mark.parametrize("noise", ["iid", "correlated"])
def test_rows_stay_below_the_ceiling(trust, noise):
    # The audit of the whole method: a better detector would refute the guarantee.
    epsilon, delta = 5.0, 5e-5
    found = [
        detection(seed, 400, n_permutations=40, epsilon=epsilon, delta=delta, noise=noise,
                  trust=trust, learning_rate=0.005, burn_in=0.0)
        for seed in range(16)
    ]  # fmt: skip
    ceiling = detection_ceiling(
        epsilon, delta, "replace" if trust == "local" else "null"
    )
    error = np.std(found, ddof=1) / 4
    assert np.mean(found) <= ceiling + 2 * error
    assert np.mean(found) > 0.5 + 3 * error  # it sees what there is to see
    assert detection(0, 400, n_permutations=20) > 0.95  # and all, without noise


@pytest.mark.slow
@seeded
def test_more_permutations_help_where_noise_is_averaged():
    found = {
        (noise, k): np.mean([
            detection(seed, 150, n_permutations=k, noise_multiplier=0.3, noise=noise,
                      learning_rate=0.2, noise_random_state=seed)
            for seed in range(8)
        ])
        for noise in ("iid", "correlated")
        for k in (10, 400)
    }  # fmt: skip
    assert found["correlated", 400] > found["correlated", 10] + 0.02
    assert found["iid", 400] < found["iid", 10] - 0.02
    assert found["correlated", 400] > found["iid", 400] + 0.05


@pytest.mark.slow
def test_data_sets_are_found_while_their_rows_are_protected():
    found = {
        size: np.mean([
            detection(seed, 60, size, n_permutations=60, epsilon=1.0, delta=5e-5, unit="example")
            for seed in range(5)
        ])
        for size in (2, 64)
    }  # fmt: skip
    assert found[64] > 0.99
    assert found[2] < 0.85


@pytest.mark.slow
def test_one_public_direction_finds_more_at_the_same_guarantee():
    whole, along = (
        np.mean([
            detection(seed, 60, 8, n_permutations=60, epsilon=1.0, delta=5e-5, unit="example",
                      **public)
            for seed in range(8)
        ])
        for public in ({}, {"n_components": 1, "clip": "median"})
    )  # fmt: skip
    assert along > whole + 0.05  # 0.87 and 0.67, with standard errors of 0.02 and 0.03
    assert along > 0.75
