"""A party's side: the right statistic, the stated noise, the right words."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.exceptions import (
    NestedReleasesWarning,
    NormalApproximationWarning,
    VoidGuaranteeWarning,
)
from skvalue.privacy import Ledger, SeededNoiseWarning, epsilon_from_mu


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 3))
    return X, X @ [1.0, 0.0, -1.0]


# The checks give LogisticRelease classes that its public parameter does not name.
@parametrize_with_checks([GramRelease()])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_clean_statistics(rows):
    X, y = rows
    short = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True) / 2, 1)
    clipped = np.clip(y, -0.5, 0.5)
    gram = GramRelease(None, x_bound=2, y_bound=0.5).fit(X, y).release_
    np.testing.assert_allclose(gram.statistic[-4:-1], 2**0.5 * clipped @ short)
    assert gram.statistic[-1] == pytest.approx(clipped @ clipped)
    logistic = LogisticRelease(None, x_bound=2, classes=("no", "yes"))
    release = logistic.fit(X, np.where(y > 0, "yes", "no")).release_
    np.testing.assert_allclose(release.statistic[:3], np.where(y > 0, 1, -1) @ short)
    assert MeanRelease(None, lower=-2, upper=4).fit(
        [9, 1, -3.0]
    ).release_.statistic == (3,)
    assert logistic.privacy_ is None


def test_statistics_of_batches_add_up(rows):
    X, y = rows
    for party in (
        GramRelease(None, fit_intercept=True, x_bound=2),
        LogisticRelease(None, fit_intercept=True),
    ):
        target = y > 0 if isinstance(party, LogisticRelease) else y
        whole = party.fit(X, target).release_.vector
        batches = slice(30), slice(30, 80)
        parts = [party.fit(X[rows], target[rows]).release_.vector for rows in batches]
        np.testing.assert_allclose(np.sum(parts, axis=0), whole)


def test_what_privacy_says(rows):
    party = GramRelease(renyi_epsilon=0.1, delta=1e-5).fit(*rows)
    report = party.privacy_
    assert report.epsilon == pytest.approx(
        epsilon_from_mu(np.sqrt(0.1), 1e-5), rel=1e-6
    )
    assert round(report.epsilon, 2) == 1.20
    assert (report.notion, report.relation) == ("central", "replace")
    said = " ".join(str(report).split())
    assert "Renyi divergence of order 2 is at most 0.1" in said
    assert "number of rows, which is released exactly" in said
    assert "running times and error messages" in report.not_protected
    assert report.guarantee.endswith(")-differential privacy")
    assert not hasattr(GramRelease(None).fit(*rows).release_, "rows")


@pytest.mark.parametrize("party", [GramRelease, MeanRelease])
@pytest.mark.parametrize("order", [2, 5])
def test_epsilon_is_that_of_differential_privacy(rows, party, order):
    X = rows if party is GramRelease else (rows[1],)
    for parameters, epsilon in (({}, 1.0), ({"epsilon": 0.5}, 0.5)):
        report = party(renyi_order=order, **parameters).fit(*X).privacy_
        assert report.epsilon == pytest.approx(epsilon, rel=1e-8)
        assert report.epsilon <= epsilon
        assert "the party itself" in report.not_protected[0]
    noise = party(epsilon=0.5, delta=1e-9).fit(*X).release_.noise_scale
    assert noise > 1.2 * party(epsilon=0.5).fit(*X).release_.noise_scale
    assert party(None).fit(*X).release_.noise_scale == 0


def test_noise_is_fresh_and_as_stated(rows):
    clean = GramRelease(None).fit(*rows).release_.vector
    party = GramRelease(renyi_epsilon=0.5)
    releases = [party.fit(*rows).release_ for _ in range(300)]
    noise = np.array([r.vector for r in releases]) - clean
    assert noise.var() == pytest.approx(releases[0].noise_scale ** 2, rel=0.15)
    assert abs(np.corrcoef(noise.T)[0, 1:]).max() < 0.4
    assert len(np.unique(noise)) > 0.9 * noise.size  # on a grid


def test_what_leaves_is_on_a_grid(rows):
    party = GramRelease(renyi_epsilon=0.5)
    with pytest.warns(NestedReleasesWarning):
        high, low = party.path(*rows, renyi_epsilons=[2.0, 0.1])
    added = np.sqrt(low.noise_scale**2 - high.noise_scale**2)
    alone = party.fit(*rows).release_
    for release, scale in (
        (alone, alone.noise_scale),
        (high, high.noise_scale),
        (low, added),
    ):
        grid = 2.0 ** (np.floor(np.log2(scale)) - 20)
        np.testing.assert_array_equal(release.vector % grid, 0)


def test_nothing_private_is_kept(rows):
    X, y = rows
    with pytest.warns(SeededNoiseWarning):
        party = GramRelease(renyi_epsilon=0.2, noise_random_state=3).fit(X, y)
    kept = pickle.dumps(party)
    assert not any(row.tobytes() in kept for row in [*X, y[:3]])
    clean = GramRelease(None).fit(X, y).release_
    for entry in clean.statistic:
        assert np.float64(entry).tobytes() not in kept


def test_seeded_noise_and_bounds_from_the_data_void_the_guarantee(rows):
    with pytest.warns(SeededNoiseWarning):
        seeded = (
            GramRelease(renyi_epsilon=0.2, noise_random_state=1).fit(*rows).privacy_
        )
    assert seeded.guarantee is None
    with pytest.warns(
        VoidGuaranteeWarning, match="x_bound='data' takes the bound from the priv"
    ):
        party = GramRelease(renyi_epsilon=0.2, x_bound="data").fit(*rows)
    assert party.privacy_.guarantee is None
    assert (
        "NO PRIVACY IS GUARANTEED: x_bound was taken from the private rows"
        in " ".join(str(party.privacy_).split())
    )
    assert party.release_.bounds[0] == np.linalg.norm(rows[0], axis=1).max()
    ledger = Ledger(None, "rows", epsilon=10, delta=1e-5)
    with (
        pytest.warns(VoidGuaranteeWarning),
        pytest.raises(
            ValueError, match="ledger must not be charged for a release without"
        ),
    ):
        GramRelease(renyi_epsilon=0.2, y_bound="data", ledger=ledger).fit(*rows)


def test_small_parties_are_warned(rows):
    X, y = rows
    with pytest.warns(
        NormalApproximationWarning, match="This party has 49 rows: with fewer than"
    ):
        GramRelease().fit(X[:49], y[:49])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GramRelease().fit(X[:50], y[:50])
        MeanRelease().fit(y[:5])


def test_messages_show_no_entry(rows):
    X, y = rows
    text = X.astype(str) + "?", y.astype(str) + "?"
    for bad in ((X + 12345j, y), (X, y + 12345j), (text[0], y), (X, text[1])):
        with pytest.raises(ValueError, match="must hold (real )?numbers") as raised:
            GramRelease().fit(*bad)
        assert "12345" not in str(raised.value)
        assert "?" not in str(raised.value)


def test_a_large_delta(rows):
    ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
    party = GramRelease(delta=1 / 50, ledger=ledger)
    with pytest.warns(
        VoidGuaranteeWarning, match="delta=0.02 and n=50, even a release"
    ) as found:
        party.fit(rows[0][:50], rows[1][:50])
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(party).set_params(delta=1 / 51).fit(rows[0][:50], rows[1][:50])
        GramRelease(None, delta=0.5).fit(*rows)


def test_ledger_is_charged_before_noise(rows):
    ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
    party = GramRelease(renyi_epsilon=0.1, ledger=ledger).fit(*rows)
    assert ledger.spent == pytest.approx(party.privacy_.epsilon)
    assert ledger.charges[0].label == "GramRelease"
    with pytest.raises(
        ValueError, match="the release must fit what is left of the budget"
    ):
        clone(party).set_params(renyi_epsilon=0.3).fit(*rows)
    assert ledger.n_charges == 1
    before = dict(vars(party.set_params(renyi_epsilon=0.3)))
    with pytest.raises(
        ValueError, match="the release must fit what is left of the budget"
    ):
        party.fit(np.hstack([rows[0], rows[0]]), rows[1])
    assert vars(party) == before


class TestPath:
    EPSILONS = [0.02, 2.5, 0.1]

    @pytest.mark.parametrize("seed", [0, None])
    def test_noise_is_nested(self, rng, seed):
        X = rng.normal(size=(50, 80))  # one path has thousands of entries
        rows = X, X[:, 0]
        clean = GramRelease(None).fit(*rows).release_.vector
        with pytest.warns(
            NestedReleasesWarning, match="guarantee of the largest epsilon"
        ):
            path = GramRelease(noise_random_state=seed).path(
                *rows, renyi_epsilons=self.EPSILONS
            )
        low, high, middle = (release.vector - clean for release in path)
        scales = [release.noise_scale for release in path]
        np.testing.assert_allclose(
            [low.std(), high.std(), middle.std()], scales, rtol=0.1
        )
        for inner, outer in ((high, middle), (middle, low)):
            correlation = np.corrcoef(outer - inner, inner)[0, 1]
            assert abs(correlation) < 0.1
        assert [release.renyi_epsilon for release in path] == self.EPSILONS

    def test_one_charge_for_all_points(self, rows):
        ledger = Ledger(None, "rows", epsilon=50, delta=1e-5)
        with pytest.warns(NestedReleasesWarning):
            releases = GramRelease(ledger=ledger).path(
                *rows, renyi_epsilons=self.EPSILONS
            )
        assert ledger.n_charges == 1
        assert ledger.charges[0].event == releases[1].event

    @pytest.mark.parametrize("epsilons", [[], [0.1, 0], [np.inf], ["a"], [None]])
    def test_refuses(self, rows, epsilons):
        with pytest.raises(
            ValueError, match="renyi_epsilons must (be|hold) .*above 0.* Got"
        ):
            GramRelease().path(*rows, renyi_epsilons=epsilons)


@pytest.mark.parametrize(
    ("party", "name"),
    [
        (GramRelease(0), "'epsilon'"),
        (GramRelease(renyi_epsilon=0), "'renyi_epsilon'"),
        (
            GramRelease(1.0, renyi_epsilon=1.0),
            "epsilon must not be set where renyi_epsilon",
        ),
        (GramRelease(renyi_order=1), "'renyi_order'"),
        (GramRelease(x_bound=0), "'x_bound'"),
        (LogisticRelease(classes=(1, 1)), "classes must be two different labels"),
        (LogisticRelease(), "y must hold the labels of classes"),
        (MeanRelease(lower=2), "upper must be above lower=2"),
    ],
)
def test_errors(party, name, rows):
    with pytest.raises(ValueError, match=name):
        party.fit(rows[1] if isinstance(party, MeanRelease) else rows[0], rows[1])


def test_numbers_are_checked():
    with pytest.raises(ValueError, match="NaN"):
        MeanRelease().fit([np.nan])
