"""A party's side: the statistic, its noise, its guarantee and its errors."""

import json
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

from .parties import quietly


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 3))
    return X, X @ [1.0, 0.0, -1.0]


def text_of(report):
    """The text of a report on one line."""
    return " ".join(str(report).split())


# The checks give LogisticRelease classes that its public parameter does not name.
@parametrize_with_checks(
    [GramRelease()],
    expected_failed_checks=lambda party: {
        "check_dtype_object": "an error would tell of a private row: an object that is "
        "no number makes its row one of zeros"
    },
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


class TestStatistics:
    def test_gram_matrix_is_of_clipped_rows_and_targets(self, rows):
        X, y = rows
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        clipped_X = X / np.maximum(lengths / 2, 1)
        clipped_y = np.clip(y, -0.5, 0.5)
        release = GramRelease(None, x_bound=2, y_bound=0.5).fit(X, y).release_
        np.testing.assert_allclose(
            release.statistic[-4:-1], 2**0.5 * clipped_y @ clipped_X
        )
        assert release.statistic[-1] == pytest.approx(clipped_y @ clipped_y)

    @pytest.mark.parametrize("epsilon", [None, 1.0])
    def test_the_party_is_told_how_many_rows_are_clipped(self, rows, epsilon):
        X, y = rows
        party = GramRelease(epsilon, x_bound=2, y_bound=0.5).fit(X, y)
        assert party.n_clipped_rows_ == (np.linalg.norm(X, axis=1) > 2).sum() > 0
        assert party.n_clipped_targets_ == (np.abs(y) > 0.5).sum() > 0
        party = LogisticRelease(epsilon, x_bound=2).fit(X, y > 0)
        assert party.n_clipped_rows_ == (np.linalg.norm(X, axis=1) > 2).sum()
        party = MeanRelease(epsilon).fit(y)
        assert party.n_clipped_rows_ == (np.abs(y) > 1).sum()

    def test_nothing_that_leaves_the_party_says_how_many_rows_are_clipped(self, rows):
        X, y = rows
        party = GramRelease(noise_random_state=0)
        texts = []
        for factor in (1e-3, 1e3):
            quietly(party.fit, factor * X, y)
            record = json.loads(party.release_.to_json())
            del record["statistic"]
            texts.append([record, str(party.privacy_)])
        assert texts[0] == texts[1]

    @pytest.mark.parametrize("party_class", [GramRelease, LogisticRelease])
    def test_a_public_map_comes_before_clipping(self, rows, party_class):
        X, y = rows
        y = y if party_class is GramRelease else y > 0
        center = np.array([1.0, 0.0, -2.0])
        scale = np.array([2.0, 100.0, 0.5])
        mapped = party_class(None, x_centre=center, x_scale=scale)
        mapped = mapped.fit(center + scale * X, y).release_
        direct = party_class(None).fit(X, y).release_
        np.testing.assert_allclose(mapped.statistic, direct.statistic)
        assert mapped.x_centre == tuple(center)
        assert mapped.x_scale == tuple(scale)
        assert direct.x_scale == ()

    def test_one_number_maps_all_features(self, rows):
        X, y = rows
        release = GramRelease(None, x_scale=2).fit(2 * X, y).release_
        assert release.x_centre == (0.0, 0.0, 0.0)
        assert release.x_scale == (2.0, 2.0, 2.0)
        direct = GramRelease(None).fit(X, y).release_
        np.testing.assert_allclose(release.statistic, direct.statistic)

    @pytest.mark.parametrize(
        ("parameter", "value", "message"),
        [
            ("x_scale", [1.0, 2.0], "x_scale must be a number or have one for each"),
            ("x_scale", [1.0, 0.0, 2.0], "x_scale must be a number strictly between"),
            ("x_scale", -1.0, "x_scale must be a number strictly between"),
            ("x_centre", [1.0, np.nan, 0.0], "x_centre must be a number strictly"),
        ],
    )
    def test_invalid_maps_are_refused(self, rows, parameter, value, message):
        with pytest.raises(ValueError, match=message):
            GramRelease(None, **{parameter: value}).fit(*rows)

    def test_rows_that_a_map_makes_infinite_are_null_rows(self, rows):
        X, y = rows
        X = X.copy()
        X[3] = 1e300
        party = GramRelease(x_scale=1e-40, noise_random_state=0)
        infinite = quietly(party.fit, X, y).release_
        X[3] = np.nan
        missing = quietly(party.fit, X, y).release_
        assert infinite == missing
        X[3] = 1e300
        with pytest.raises(ValueError, match="X must be finite after"):
            clone(party).set_params(epsilon=None).fit(X, y)

    def test_logistic_statistic_is_of_clipped_rows_and_signs(self, rows):
        X, y = rows
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        clipped_X = X / np.maximum(lengths / 2, 1)
        party = LogisticRelease(None, x_bound=2, classes=("no", "yes"))
        party.fit(X, np.where(y > 0, "yes", "no"))
        signs = np.where(y > 0, 1, -1)
        np.testing.assert_allclose(party.release_.statistic[:3], signs @ clipped_X)
        assert party.privacy_ is None

    def test_mean_statistic_is_the_sum_of_clipped_numbers(self):
        party = MeanRelease(None, lower=-2, upper=4)
        assert party.fit([9, 1, -3.0]).release_.statistic == (3,)

    @pytest.mark.parametrize(
        ("family", "numbers", "total", "bounds"),
        [
            ("bernoulli", [0, 1, 1], 2, (0, 1)),
            ("bernoulli", [False, True], 1, (0, 1)),
            ("poisson", [0, 2, 9], 7, (0, 5)),
        ],
    )
    def test_statistic_of_a_family_is_the_sum_of_what_it_has(
        self, family, numbers, total, bounds
    ):
        release = MeanRelease(None, family=family, upper=5).fit(numbers).release_
        assert release.kind == family
        assert release.statistic == (total,)
        assert release.bounds == bounds

    @pytest.mark.parametrize(
        ("family", "numbers"),
        [("bernoulli", [0.5, 7, np.nan, -1]), ("poisson", [0.5, -1, np.inf, np.nan])],
    )
    def test_numbers_outside_a_family_contribute_zero_to_a_private_sum(
        self, family, numbers
    ):
        """A release of a huge epsilon has next to no noise."""
        party = MeanRelease(family=family, upper=5, renyi_epsilon=1e12)
        total = party.fit([*numbers, 1, 1]).release_.statistic[0]
        assert total == pytest.approx(2, abs=1e-3)

    @pytest.mark.parametrize(
        ("family", "numbers", "message"),
        [
            ("bernoulli", [0, 2], "X must hold 0 and 1 for family='bernoulli'"),
            ("poisson", [0, 0.5], "X must hold counts for family='poisson'"),
            ("poisson", [0, -1], "X must hold counts for family='poisson'"),
        ],
    )
    def test_numbers_outside_a_family_are_refused_without_noise(
        self, family, numbers, message
    ):
        with pytest.raises(ValueError, match=message):
            MeanRelease(None, family=family, upper=5).fit(numbers)

    @pytest.mark.parametrize("upper", [1.0, 2.5, -3.0])
    def test_bound_of_counts_must_be_a_count(self, upper):
        with pytest.raises(ValueError, match="upper must be a whole number of at"):
            MeanRelease(family="poisson", upper=upper).fit([0, 1])

    @pytest.mark.parametrize(
        "party",
        [
            GramRelease(None, fit_intercept=True, x_bound=2),
            LogisticRelease(None, fit_intercept=True),
        ],
        ids=["linear", "logistic"],
    )
    def test_statistics_of_batches_add_up(self, rows, party):
        X, y = rows
        if isinstance(party, LogisticRelease):
            y = y > 0
        total = party.fit(X, y).release_.vector
        first = party.fit(X[:30], y[:30]).release_.vector
        second = party.fit(X[30:], y[30:]).release_.vector
        np.testing.assert_allclose(first + second, total)


class TestGuarantee:
    def test_report_states_what_is_protected(self, rows):
        report = GramRelease(renyi_epsilon=0.1, delta=1e-5).fit(*rows).privacy_
        expected = epsilon_from_mu(np.sqrt(0.1), 1e-5)
        assert report.epsilon == pytest.approx(expected, rel=1e-6)
        assert round(report.epsilon, 2) == 1.20
        assert (report.notion, report.relation) == ("central", "replace")
        text = text_of(report)
        assert "Renyi divergence of order 2 is at most 0.1" in text
        assert "number of rows, which is released exactly" in text
        assert "running times and error messages" in report.not_protected
        assert report.guarantee.endswith(")-differential privacy")

    def test_release_has_no_rows(self, rows):
        assert not hasattr(GramRelease(None).fit(*rows).release_, "rows")

    @pytest.mark.parametrize("party_class", [GramRelease, MeanRelease])
    @pytest.mark.parametrize("order", [2, 5])
    @pytest.mark.parametrize(
        ("parameters", "epsilon"), [({}, 1.0), ({"epsilon": 0.5}, 0.5)]
    )
    def test_epsilon_is_that_of_differential_privacy(
        self, rows, party_class, order, parameters, epsilon
    ):
        data = rows if party_class is GramRelease else (rows[1],)
        report = party_class(renyi_order=order, **parameters).fit(*data).privacy_
        assert report.epsilon == pytest.approx(epsilon, rel=1e-8)
        assert report.epsilon <= epsilon
        assert "the party itself" in report.not_protected[0]

    @pytest.mark.parametrize("party_class", [GramRelease, MeanRelease])
    def test_smaller_delta_needs_more_noise(self, rows, party_class):
        data = rows if party_class is GramRelease else (rows[1],)
        loose = party_class(epsilon=0.5).fit(*data).release_
        strict = party_class(epsilon=0.5, delta=1e-9).fit(*data).release_
        assert strict.noise_scale > 1.2 * loose.noise_scale

    @pytest.mark.parametrize("party_class", [GramRelease, MeanRelease])
    def test_epsilon_none_adds_no_noise(self, rows, party_class):
        data = rows if party_class is GramRelease else (rows[1],)
        assert party_class(None).fit(*data).release_.noise_scale == 0

    def test_seeded_noise_voids_the_guarantee(self, rows):
        party = GramRelease(renyi_epsilon=0.2, noise_random_state=1)
        with pytest.warns(SeededNoiseWarning):
            party.fit(*rows)
        assert party.privacy_.guarantee is None

    def test_bound_from_the_data_voids_the_guarantee(self, rows):
        with pytest.warns(
            VoidGuaranteeWarning, match="x_bound='data' takes the bound from the priv"
        ):
            party = GramRelease(renyi_epsilon=0.2, x_bound="data").fit(*rows)
        assert party.privacy_.guarantee is None
        message = "NO PRIVACY IS GUARANTEED: x_bound was taken from the private rows"
        assert message in text_of(party.privacy_)
        assert party.release_.bounds[0] == np.linalg.norm(rows[0], axis=1).max()

    def test_large_delta_is_warned_of_at_the_line_of_the_user(self, rows):
        X = rows[0][:50]
        y = rows[1][:50]
        ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
        with pytest.warns(
            VoidGuaranteeWarning, match="delta=0.02 and n=50, even a release"
        ) as caught:
            GramRelease(delta=1 / 50, ledger=ledger).fit(X, y)
        assert caught[0].filename == __file__

    def test_delta_below_one_over_n_is_not_warned_of(self, rows):
        X = rows[0][:50]
        y = rows[1][:50]
        ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GramRelease(delta=1 / 51, ledger=ledger).fit(X, y)

    def test_delta_without_noise_is_not_warned_of(self, rows):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GramRelease(None, delta=0.5).fit(*rows)


class TestNoise:
    def test_noise_is_fresh_and_of_the_stated_scale(self, rows):
        exact = GramRelease(None).fit(*rows).release_.vector
        party = GramRelease(renyi_epsilon=0.5)
        releases = [party.fit(*rows).release_ for _ in range(300)]
        noise = np.array([release.vector for release in releases]) - exact
        assert noise.var() == pytest.approx(releases[0].noise_scale ** 2, rel=0.15)
        assert abs(np.corrcoef(noise.T)[0, 1:]).max() < 0.4
        # Some numbers are equal, since noise is on a grid.
        assert len(np.unique(noise)) > 0.9 * noise.size

    def test_released_numbers_are_on_a_grid(self, rows):
        party = GramRelease(renyi_epsilon=0.5)
        with pytest.warns(NestedReleasesWarning):
            high, low = party.path(*rows, renyi_epsilons=[2.0, 0.1])
        added_scale = np.sqrt(low.noise_scale**2 - high.noise_scale**2)
        single = party.fit(*rows).release_
        for release, scale in (
            (single, single.noise_scale),
            (high, high.noise_scale),
            (low, added_scale),
        ):
            grid = 2.0 ** (np.floor(np.log2(scale)) - 20)
            np.testing.assert_array_equal(release.vector % grid, 0)

    def test_fitted_party_keeps_neither_rows_nor_the_exact_statistic(self, rows):
        X, y = rows
        with pytest.warns(SeededNoiseWarning):
            party = GramRelease(renyi_epsilon=0.2, noise_random_state=3).fit(X, y)
        pickled = pickle.dumps(party)
        assert not any(row.tobytes() in pickled for row in [*X, y[:3]])
        exact = GramRelease(None).fit(X, y).release_
        for entry in exact.statistic:
            assert np.float64(entry).tobytes() not in pickled


class TestSmallParties:
    def test_party_of_49_rows_is_warned(self, rows):
        X, y = rows
        with pytest.warns(
            NormalApproximationWarning, match="This party has 49 rows: with fewer than"
        ):
            GramRelease().fit(X[:49], y[:49])

    def test_party_of_50_rows_or_of_numbers_is_not_warned(self, rows):
        X, y = rows
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GramRelease().fit(X[:50], y[:50])
            MeanRelease().fit(y[:5])


class TestLedger:
    def test_release_charges_its_epsilon(self, rows):
        ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
        party = GramRelease(renyi_epsilon=0.1, ledger=ledger).fit(*rows)
        assert ledger.spent == pytest.approx(party.privacy_.epsilon)
        assert ledger.charges[0].label == "GramRelease"

    def test_release_over_the_budget_is_refused_and_changes_nothing(self, rows):
        X, y = rows
        ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
        party = GramRelease(renyi_epsilon=0.1, ledger=ledger).fit(X, y)
        message = "the release must fit what is left of the budget"
        with pytest.raises(ValueError, match=message):
            clone(party).set_params(renyi_epsilon=0.3).fit(X, y)
        assert ledger.n_charges == 1

        party.set_params(renyi_epsilon=0.3)
        before = dict(vars(party))
        with pytest.raises(ValueError, match=message):
            party.fit(np.hstack([X, X]), y)
        assert vars(party) == before

    def test_release_without_a_guarantee_is_refused(self, rows):
        ledger = Ledger(None, "rows", epsilon=10, delta=1e-5)
        party = GramRelease(renyi_epsilon=0.2, y_bound="data", ledger=ledger)
        with (
            pytest.warns(VoidGuaranteeWarning),
            pytest.raises(
                ValueError, match="ledger must not be charged for a release without"
            ),
        ):
            party.fit(*rows)


class TestPath:
    EPSILONS = [0.02, 2.5, 0.1]

    @pytest.mark.parametrize("seed", [0, None])
    def test_noise_is_nested(self, rng, seed):
        X = rng.normal(size=(50, 80))  # so that a path has thousands of entries
        y = X[:, 0]
        exact = GramRelease(None).fit(X, y).release_.vector
        party = GramRelease(noise_random_state=seed)
        with pytest.warns(
            NestedReleasesWarning, match="guarantee of the largest epsilon"
        ):
            path = party.path(X, y, renyi_epsilons=self.EPSILONS)
        assert [release.renyi_epsilon for release in path] == self.EPSILONS
        low, high, middle = (release.vector - exact for release in path)
        deviations = [low.std(), high.std(), middle.std()]
        scales = [release.noise_scale for release in path]
        np.testing.assert_allclose(deviations, scales, rtol=0.1)
        for inner, outer in ((high, middle), (middle, low)):
            correlation = np.corrcoef(outer - inner, inner)[0, 1]
            assert abs(correlation) < 0.1

    def test_path_charges_its_largest_epsilon_once(self, rows):
        ledger = Ledger(None, "rows", epsilon=50, delta=1e-5)
        party = GramRelease(ledger=ledger)
        with pytest.warns(NestedReleasesWarning):
            releases = party.path(*rows, renyi_epsilons=self.EPSILONS)
        assert ledger.n_charges == 1
        assert ledger.charges[0].event == releases[1].event

    @pytest.mark.filterwarnings("ignore::skvalue.exceptions.NestedReleasesWarning")
    @pytest.mark.parametrize("party", [GramRelease, LogisticRelease, MeanRelease])
    @pytest.mark.parametrize("entry", [np.nan, np.inf])
    def test_no_row_is_refused_whatever_epsilon_is(self, rows, party, entry):
        X, y = rows
        X = X.copy()
        X[3, 0] = entry
        y = y > 0
        if party is MeanRelease:
            X = X[:, 0]
            y = None
        (release,) = party(epsilon=None).path(X, y, renyi_epsilons=[0.1])
        assert release.n_samples == len(X)

    @pytest.mark.parametrize(
        "epsilons", [[], [0.1, 0], [np.inf], ["a"], [None]], ids=str
    )
    def test_epsilons_that_are_no_positive_numbers_are_refused(self, rows, epsilons):
        with pytest.raises(
            ValueError, match="renyi_epsilons must (be|hold) .*above 0.* Got"
        ):
            GramRelease().path(*rows, renyi_epsilons=epsilons)


class TestErrors:
    def test_error_shows_no_entry_of_the_rows(self, rows):
        X, y = rows
        texts = X.astype(str) + "?", y.astype(str) + "?"
        for bad in ((X + 12345j, y), (X, y + 12345j), (texts[0], y), (X, texts[1])):
            with pytest.raises(ValueError, match="must hold (real )?numbers") as caught:
                GramRelease().fit(*bad)
            assert "12345" not in str(caught.value)
            assert "?" not in str(caught.value)

    @pytest.mark.parametrize(
        ("party", "message"),
        [
            (GramRelease(0), "'epsilon'"),
            (GramRelease(renyi_epsilon=0), "'renyi_epsilon'"),
            (
                GramRelease(1.0, renyi_epsilon=1.0),
                "epsilon must not be set where renyi_epsilon is, since each of them",
            ),
            (GramRelease(renyi_order=1), "'renyi_order'"),
            (GramRelease(x_bound=0), "'x_bound'"),
            (LogisticRelease(classes=(1, 1)), "classes must be two different labels"),
            (LogisticRelease(None), "y must hold the labels of classes"),
        ],
        ids=["epsilon", "renyi", "both", "order", "bound", "classes", "labels"],
    )
    def test_invalid_parameter_is_refused(self, party, message, rows):
        with pytest.raises(ValueError, match=message):
            party.fit(*rows)

    def test_mean_with_an_empty_range_is_refused(self, rows):
        with pytest.raises(ValueError, match="upper must be above lower=2"):
            MeanRelease(lower=2).fit(rows[1])

    def test_mean_of_nan_without_noise_is_refused(self):
        with pytest.raises(ValueError, match="NaN"):
            MeanRelease(None).fit([np.nan])
