"""A seller's release: its sensitivity, its noise, and what it says about itself."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from skvalue.exceptions import VoidGuaranteeWarning
from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.buyer import estimate_summaries
from skvalue.priarta.seller import (
    COUNT_WEIGHT,
    MAX_ROWS,
    moment_statistic,
    statistic_sensitivity,
)
from skvalue.privacy import Ledger, clip_rows, get_epsilon, grid_width

from .markets import fitted, gaussian_rows, quietly, released


@pytest.fixture
def scorer(rng):
    return fitted(rng)


class TestSensitivity:
    @pytest.mark.parametrize(
        ("relation", "weight"),
        [
            ("replace", 0.3),
            ("replace", 0.6),
            ("replace", 0.9),
            ("replace", 1.2),
            ("replace", 1.4),
            ("replace", 2.0),
            ("null", 0.6),
            ("add_remove", 0.6),
        ],
    )
    def test_is_attained_by_the_most_distant_rows(self, relation, weight, rng):
        others = gaussian_rows(rng, 5, 3)

        def in_ball(z):
            return z / max(1.0, np.linalg.norm(z))

        def minus_change(z):
            rows = {"replace": [in_ball(z[3:])], "null": [np.zeros(3)]}
            with_row = np.vstack([others, in_ball(z[:3])])
            neighbour = np.vstack([others, *rows.get(relation, [])])
            change = moment_statistic(with_row, weight, relation)
            change = change - moment_statistic(neighbour, weight, relation)
            return -np.linalg.norm(change)

        search = partial(
            minimize, minus_change, method="Nelder-Mead", options={"maxiter": 800}
        )
        distance = max(-search(rng.normal(size=6) * 2).fun for _ in range(4))
        sensitivity = statistic_sensitivity(weight, relation)
        assert 0.99 * sensitivity <= distance <= sensitivity

    @pytest.mark.parametrize("weight", [0.3, 0.6, 1.0])
    def test_of_both_moments_needs_less_noise_than_two_releases(self, weight):
        # With f and 1 - f of the squared budget, noise is 2 / sqrt f and sqrt 2 / sqrt
        # (1 - f). Here the noise on the second moment is the same.
        sensitivity = statistic_sensitivity(weight, "replace")
        fraction = 1 - 2 / sensitivity**2
        assert sensitivity / weight < 0.8 * 2 / np.sqrt(fraction)


class TestRoundingOfSums:
    """One row may change how a sum is rounded; the sensitivity allows for it."""

    EXACT = {"null": 0.6**2 + 2, "add_remove": 0.6**2 + 2 + COUNT_WEIGHT**2}

    @pytest.mark.parametrize("n_rows", [1, 256, 257, 3000])
    def test_is_less_than_half_of_its_part_of_the_margin(self, n_rows, rng):
        rows = rng.uniform(-0.5, 1, size=(n_rows, 2)) / np.sqrt(2)
        first, second = ([Fraction(x) for x in column] for column in rows.T)
        weight = Fraction(0.6)
        products = [
            sum(x * x for x in first),
            sum(x * y for x, y in zip(first, second)) * Fraction(2**0.5),
            sum(y * y for y in second),
        ]
        expected = [
            weight * sum(first),
            weight * sum(second),
            *products,
            products[0] + products[2],
        ]
        computed = moment_statistic(rows, 0.6, "null")
        errors = [float(Fraction(x) - y) for x, y in zip(computed, expected)]
        sensitivity = statistic_sensitivity(0.6, "null")
        margin = sensitivity - math.sqrt(self.EXACT["null"])
        assert np.linalg.norm(errors) <= margin / 2 * n_rows / MAX_ROWS

    @pytest.mark.parametrize("relation", EXACT)
    def test_neighbours_may_exceed_the_exact_sensitivity_by_it(self, relation):
        sensitivity = Fraction(statistic_sensitivity(0.6, relation))
        excess = []
        for n_rows in range(200_000, 200_040):
            rows = np.tile([[0.7071067811865475, 0.7071067811865475]], (n_rows, 1))
            rows[-1] = 1.0, 0.0
            neighbour = rows[:-1]
            if relation == "null":  # the row is one of zeros
                neighbour = rows.copy()
                neighbour[-1] = 0.0
            statistic = moment_statistic(rows, 0.6, relation)
            changes = zip(statistic, moment_statistic(neighbour, 0.6, relation))
            # In exact arithmetic of the computed numbers.
            square = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in changes)
            assert square <= sensitivity**2
            excess.append(float(square) / self.EXACT[relation] - 1)
        assert max(excess) > 1e-12

    def test_no_number_of_rows_changes_the_noise(self):
        """It may be private."""
        model = PriArTaScorer(max_norm=1.0).fit([[0.0], [1.0], [2.0]]).model_
        scales = set()
        for n_rows in (2, 3, 3000):
            seller = SellerRelease(model, epsilon=1.0, relation="add_remove")
            summary = seller.fit(np.zeros((n_rows, 1))).summary_
            scales.add(summary.noise_scale)
        assert len(scales) == 1


class TestGuarantee:
    @pytest.mark.parametrize(
        ("parameters", "epsilon"),
        [
            ({"relation": "replace"}, 0.8),
            ({"relation": "null"}, 0.8),
            ({"relation": "add_remove"}, 0.8),
            ({"epsilon": 3.0, "delta": 1e-7}, 3.0),
            ({"epsilon": 1e-8}, 1e-8),
        ],
        ids=str,
    )
    def test_epsilon_is_spent_and_stated(self, parameters, epsilon, rng, scorer):
        seller = SellerRelease(scorer.model_, **parameters)
        seller.fit(gaussian_rows(rng, 200, 3))
        summary = seller.summary_
        report = seller.privacy_
        spent = get_epsilon(summary.event, summary.delta)
        assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-9) + 1e-12
        assert report.epsilon == pytest.approx(epsilon, rel=1e-6)
        assert f"({epsilon:g}, {summary.delta:g})" in summary.guarantee
        relation = parameters.get("relation", "replace")
        assert report.relation == summary.relation == relation
        assert report.notion == "central"
        assert "the buyer's data" in " ".join(str(report).split())
        assert "running times and error messages" in report.not_protected

    def test_seeded_noise_voids_it(self, rng, scorer):
        seller = released(scorer, gaussian_rows(rng, 100, 3), 5)
        assert seller.summary_.seeded
        assert seller.summary_.guarantee is seller.privacy_.guarantee is None

    def test_large_delta_is_warned_of_at_the_line_of_the_user(self, rng, scorer):
        X = gaussian_rows(rng, 50, 3)
        with pytest.warns(
            VoidGuaranteeWarning, match="delta=0.02 and n=50, even a release"
        ) as caught:
            SellerRelease(scorer.model_, delta=0.02).fit(X)
        assert caught[0].filename == __file__

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.8, 0.019), (None, 0.5)])
    def test_delta_that_promises_nothing_less_is_not_warned_of(
        self, rng, scorer, epsilon, delta
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seller = SellerRelease(scorer.model_, epsilon, delta=delta)
            seller.fit(gaussian_rows(rng, 50, 3))


class TestNoise:
    @pytest.mark.parametrize("relation", ["replace", "null"])
    def test_has_the_stated_scale(self, rng, relation):
        scorer = fitted(rng, max_norm=2.0)
        X = gaussian_rows(rng, 300, 3)
        exact = SellerRelease(scorer.model_, None).fit(X).summary_
        summaries = [
            released(scorer, X, seed, relation=relation).summary_ for seed in range(80)
        ]
        stated = summaries[0].noise
        on_mean = np.array([summary.mean - exact.mean for summary in summaries])
        assert on_mean.std() == pytest.approx(stated.mean, rel=0.15)
        on_moment = np.array([summary.moment - exact.moment for summary in summaries])
        on_diagonal = on_moment[:, [0, 2, 5]]
        on_trace = on_diagonal.sum(axis=1)
        assert on_trace.std() == pytest.approx(stated.trace, rel=0.25)
        without_trace = on_diagonal - on_trace[:, None] / 3
        # Of three directions two are left.
        expected = np.sqrt(2 / 3) * stated.moment
        assert without_trace.std() == pytest.approx(expected, rel=0.15)
        off_diagonal = on_moment[:, [1, 3, 4]]
        assert off_diagonal.std() == pytest.approx(stated.moment / np.sqrt(2), rel=0.15)

    @pytest.mark.parametrize("relation", ["replace", "null"])
    def test_released_numbers_are_on_a_grid(self, rng, scorer, relation):
        seller = SellerRelease(scorer.model_, relation=relation)
        summary = seller.fit(gaussian_rows(rng, 300, 3)).summary_
        sums = summary.mean * summary.mean_weight * 300
        steps = sums / grid_width(summary.noise_scale)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)

    def test_covariances_are_unbiased(self, rng, scorer):
        X = gaussian_rows(rng, 4000, 3, 0.2)
        X -= X.mean(axis=0)
        expected = np.cov(clip_rows(scorer.model_.transform(X), 1.0).T)
        summaries = [
            released(scorer, X, seed, epsilon=20.0).summary_ for seed in range(100)
        ]
        buyer = scorer._buyer
        own = buyer.moments_for(1.0)
        estimates = estimate_summaries(buyer, own, summaries, shrink=False)
        covariances = estimates.covariance
        error = covariances.std(axis=0) / np.sqrt(len(summaries))
        assert (np.abs(covariances.mean(axis=0) - expected) < 5 * error).all()
        # Without the correction for the noise in the mean the diagonal would be off by
        # this:
        assert summaries[0].noise.mean ** 2 > 0

    def test_on_a_private_number_of_rows_has_the_stated_scale(self, rng, scorer):
        X = gaussian_rows(rng, 500, 3)
        summaries = [
            released(scorer, X, seed, relation="add_remove").summary_
            for seed in range(80)
        ]
        counts = [summary.n_samples for summary in summaries]
        scale = summaries[0].noise_scale / COUNT_WEIGHT
        assert np.mean(counts) == pytest.approx(500, abs=5 * scale / 80**0.5)
        assert np.std(counts) == pytest.approx(scale, rel=0.2)

    def test_on_a_small_private_number_of_rows_gives_a_valid_summary(self, rng, scorer):
        X = gaussian_rows(rng, 3, 3)
        summaries = [
            released(scorer, X, seed, relation="add_remove").summary_
            for seed in range(60)
        ]
        assert min(summary.n_samples for summary in summaries) == 2
        assert all(np.isfinite(scorer.score_summaries(summaries)))

    def test_depends_on_the_seed_and_is_fresh_without_one(self, rng, scorer):
        X = gaussian_rows(rng, 100, 3)

        def seeded():
            return released(scorer, X, 5).summary_.to_json()

        def unseeded():
            return SellerRelease(scorer.model_).fit(X).summary_.to_json()

        assert seeded() == seeded()
        assert unseeded() != unseeded()

    def test_scale_does_not_depend_on_the_rows(self, rng, scorer):
        first = released(scorer, gaussian_rows(rng, 100, 3), 5).summary_
        second = released(scorer, gaussian_rows(rng, 100, 3), 5).summary_
        assert second.noise_scale == first.noise_scale


class TestMoments:
    def test_without_noise_are_those_of_the_rows(self, rng, scorer):
        X = gaussian_rows(rng, 60, 3, 0.4)
        summary = SellerRelease(scorer.model_, None).fit(X).summary_
        buyer = scorer._buyer
        estimates = estimate_summaries(buyer, buyer.exact, [summary], shrink=False)
        rows = scorer.model_.transform(X)
        assert estimates.mean[0] == pytest.approx(rows.mean(axis=0))
        assert estimates.covariance[0] == pytest.approx(np.cov(rows.T))
        assert summary.max_norm is summary.noise is None

    def test_huge_rows_are_clipped_and_do_not_overflow(self, scorer):
        X = np.array([[1e200, 0, 0], [0, -1e160, 0], [0.1, 0, 0]])
        seller = released(scorer, X, epsilon=1e3)
        assert seller.n_clipped_rows_ == 2
        expected = [1 / 3, -1 / 3, 0] - scorer.model_.centre / 3
        assert seller.summary_.mean == pytest.approx(expected, abs=0.1)


class TestLedger:
    def test_release_charges_its_epsilon(self, rng, scorer):
        ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
        seller = SellerRelease(scorer.model_, 0.8, ledger=ledger)
        seller.fit(gaussian_rows(rng, 100, 3))
        assert ledger.spent == pytest.approx(0.8)
        assert [charge.label for charge in ledger.charges] == ["SellerRelease"]

    def test_release_over_the_budget_is_refused(self, rng, scorer):
        X = gaussian_rows(rng, 100, 3)
        ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
        SellerRelease(scorer.model_, 0.8, ledger=ledger).fit(X)
        seller = SellerRelease(scorer.model_, 0.8, ledger=ledger)
        with pytest.raises(
            ValueError, match="the release must fit what is left of the budget"
        ):
            seller.fit(X)
        assert not hasattr(seller, "summary_")
        assert ledger.n_charges == 1

    def test_release_without_noise_is_not_charged(self, rng, scorer):
        ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
        seller = SellerRelease(scorer.model_, None, ledger=ledger)
        seller.fit(gaussian_rows(rng, 100, 3))
        assert ledger.n_charges == 0


def rows_without_numbers(rng, kind):
    X = gaussian_rows(rng, 50, 3)
    if kind == "complex":
        return X + 12345j
    return np.full(X.shape, "12345?")


class TestErrors:
    @pytest.mark.parametrize("kind", ["complex", "text"])
    def test_error_shows_no_entry_of_the_rows(self, rng, scorer, kind):
        X = rows_without_numbers(rng, kind)
        seller = SellerRelease(scorer.model_, epsilon=None)
        with pytest.raises(ValueError, match="X must hold (real )?numbers") as caught:
            seller.fit(X)
        assert "12345" not in str(caught.value)

    @pytest.mark.parametrize("kind", ["complex", "text"])
    def test_private_rows_without_numbers_are_null(self, rng, scorer, kind):
        """An error would tell that one of the rows of a list is no number."""
        X = rows_without_numbers(rng, kind)
        seller = SellerRelease(scorer.model_).fit(X)
        assert seller.n_null_rows_ == len(X)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"epsilon": -1.0}, "'epsilon' parameter of SellerRelease"),
            ({"relation": "near"}, "'relation' parameter of SellerRelease"),
        ],
        ids=["epsilon", "relation"],
    )
    def test_invalid_parameter_is_refused(self, scorer, parameters, message):
        seller = SellerRelease(scorer.model_, **parameters)
        with pytest.raises(ValueError, match=message):
            seller.fit(np.ones((100, 3)))

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.zeros((5, 2)), "X must have 3 columns, as the buyer's rows. Got 2"),
            (np.zeros((1, 3)), "X must have at least 2 rows"),
        ],
        ids=["columns", "one row"],
    )
    def test_invalid_rows_are_refused(self, scorer, X, message):
        with pytest.raises(ValueError, match=message):
            SellerRelease(scorer.model_).fit(X)


def test_fitted_seller_has_a_summary_a_report_and_numbers_of_rows_alone(rng, scorer):
    seller = SellerRelease(scorer.model_)
    quietly(seller.fit, gaussian_rows(rng, 100, 3))
    attributes = {name for name in vars(seller) if name.endswith("_")}
    assert attributes == {"summary_", "privacy_", "n_null_rows_", "n_clipped_rows_"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(seller.summary_).to_json() == seller.summary_.to_json()
