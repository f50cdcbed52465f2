"""A private seller's own radius, and what the scores of such sellers are worth."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

from skvalue.priarta import PriArTaScorer, SellerRelease, wasserstein
from skvalue.priarta.seller import (
    N_RADIUS_COUNTS,
    half_surplus,
    own_radii,
    own_radius,
    radius_log_probabilities,
    release_sensitivity,
    statistic_sensitivity,
    surplus_sensitivity,
    surplus_weight,
)
from skvalue.privacy import Ledger, SeededNoiseWarning, get_epsilon

from .markets import quietly, ten_distributions, ten_sellers

RELATIONS = ["replace", "null", "add_remove"]


def fitted(rng, n=1000, d=3, rows=None, **parameters):
    rows = rng.normal(size=(n, d)) if rows is None else rows
    return PriArTaScorer(mean_weight=0.6, **parameters).fit(rows)


@pytest.fixture
def model(rng):
    return fitted(rng).model_


def silent(size, stream):
    """A source of noise that is zero."""
    return np.zeros(size)


silent.scale = 1e-9


class TestOwnRadius:
    def test_model_has_the_norms_of_the_buyer(self, rng):
        rows = rng.normal(size=(500, 3))
        model = fitted(rng, rows=rows).model_
        norms = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
        assert model.max_norm == pytest.approx(np.quantile(norms, 0.95))
        assert model.median_norm == pytest.approx(np.median(norms))

    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 7.7, 50.0, 63.0, 1e4])
    def test_without_noise_is_that_of_the_median(self, rng, model, relation, scale):
        norms = scale * model.median_norm * np.linspace(0.9, 1.1, 51)
        radius = own_radius(norms, model, relation, silent)
        # A cell of the search is 1/64 of 7 octaves; the radius is that of its middle.
        median = np.clip(scale, 0.5, 64.0) * model.median_norm
        expected = 1.1 * model.max_norm / model.median_norm * median
        assert abs(np.log2(radius / expected)) <= 7 / 64 / 2 * (1 + 1e-9)

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_null_rows_do_not_move_it(self, model, relation):
        norms = model.median_norm * np.linspace(1, 9, 21)
        with_null = np.concatenate([norms, np.full(400, np.nan)])
        assert own_radius(norms, model, relation, silent) == own_radius(
            with_null, model, relation, silent
        )

    def test_has_the_stated_probabilities(self, rng, model):
        norms = model.median_norm * rng.lognormal(1.0, 0.5, 40)
        scale = 15.0

        def draw(size, stream):
            return scale * rng.standard_normal(size)

        draw.scale = scale
        n = 4000
        found = Counter(own_radius(norms, model, "replace", draw) for _ in range(n))
        logs = radius_log_probabilities(norms, model, "replace", scale)
        assert np.exp(logs).sum() == pytest.approx(1.0)
        frequencies = [found[radius] / n for radius in own_radii(model)]
        np.testing.assert_allclose(frequencies, np.exp(logs), atol=0.04)

    def test_is_released_and_one_of_the_model(self, rng):
        scorer = fitted(rng, epsilon=0.8)
        X = 5 * rng.normal(size=(2000, 3))
        summary = scorer.summarize([X])[0]
        assert summary.max_norm in own_radii(scorer.model_)
        # That of rows like the buyer's, times 5.
        expected = 1.1 * 5 * scorer.max_norm_
        assert summary.max_norm == pytest.approx(expected, rel=0.15)

    def test_equal_rows_give_all_sellers_one_radius(self, rng):
        scorer = fitted(rng, rows=np.ones((100, 3)), epsilon=0.8)
        assert not scorer.model_.has_own_radius
        summary = scorer.summarize([rng.normal(size=(50, 3))])[0]
        assert summary.max_norm == scorer.model_.max_norm

    @pytest.mark.parametrize("scale", [1e-40, 1e40])
    def test_does_not_depend_on_the_unit(self, rng, scale):
        rows = rng.normal(size=(2, 300, 3))

        def radius(unit):
            scorer = fitted(rng, rows=unit * rows[0])
            seller = SellerRelease(scorer.model_, noise_random_state=1)
            return quietly(seller.fit, 4 * unit * rows[1]).summary_.max_norm / unit

        assert radius(scale) == pytest.approx(radius(1.0))


class TestAccounting:
    def changes(self, relation):
        """Changes of the surplus by a row near, far or null, in every pair."""
        norms = np.array([0.5, 2.0, np.nan])  # around a threshold of 1
        others = np.array([0.3, 0.7, 3.0])
        before = [half_surplus(np.append(others, norm), 1.0) for norm in norms]
        if relation == "replace":
            after = before
        elif relation == "null":
            after = before[-1:]
        else:
            after = [half_surplus(others, 1.0)]
        return [abs(a - b) for a in before for b in after]

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_a_row_moves_a_count_by_its_sensitivity(self, relation):
        assert max(self.changes(relation)) == surplus_sensitivity(relation)

    @pytest.mark.parametrize("weight", [0.3, 0.6, 1.2])
    @pytest.mark.parametrize("relation", RELATIONS)
    def test_squares_of_all_vectors_are_that_of_the_release(self, weight, relation):
        counts = surplus_weight(weight, relation) * surplus_sensitivity(relation)
        moments = statistic_sensitivity(weight, relation)
        total = release_sensitivity(weight, relation, N_RADIUS_COUNTS)
        assert N_RADIUS_COUNTS * counts**2 + moments**2 == pytest.approx(total**2)
        assert N_RADIUS_COUNTS * counts**2 == pytest.approx(0.2 * total**2)
        assert release_sensitivity(weight, relation, 0) == moments

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_one_charge_is_all_that_was_released(self, rng, model, relation):
        ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
        seller = SellerRelease(model, 0.8, relation=relation, ledger=ledger)
        summary = seller.fit(rng.normal(size=(200, 3))).summary_
        (charge,) = ledger.charges
        assert charge.event == summary.event
        assert ledger.spent == pytest.approx(0.8)
        assert get_epsilon(summary.event, 1e-5) == pytest.approx(0.8)
        sensitivity = release_sensitivity(0.6, relation, N_RADIUS_COUNTS)
        assert summary.event.sensitivity == sensitivity

    def test_summary_without_its_counts_claims_too_much_noise(self, rng):
        scorer = fitted(rng, epsilon=0.8)
        (summary,) = scorer.summarize([rng.normal(size=(200, 3))])
        without = replace(summary, n_radius_counts=0)
        assert get_epsilon(without.event, 1e-5) < 0.8
        with pytest.raises(ValueError, match="max_norm that the buyer's model allows"):
            scorer.score_summaries([without])

    def test_refused_release_draws_no_noise(self, rng, model):
        ledger = Ledger(None, "rows", epsilon=0.5, delta=1e-5)
        seller = SellerRelease(model, 0.8, ledger=ledger)
        with pytest.raises(ValueError, match="must fit what is left of the budget"):
            seller.fit(rng.normal(size=(200, 3)))
        assert ledger.n_charges == 0

    def test_seller_knows_how_many_rows_were_clipped(self, rng, model):
        X = rng.normal(size=(300, 3))
        X[:7] *= 1e6
        seller = SellerRelease(model, 50.0, noise_random_state=0)
        quietly(seller.fit, X)
        norms = np.linalg.norm(model.transform(X), axis=1)
        expected = (norms > seller.summary_.max_norm).sum()
        assert seller.n_clipped_rows_ == expected >= 7


# What scores are worth ----------------------------------------------------------------


def private_market(d, n_draws, n=500, errors=False):
    """Scores, distances of samples and of distributions, and errors, (draws, 10)."""
    rng = np.random.default_rng(5)
    buyer = rng.normal(size=(1000, d))
    scorer = PriArTaScorer(epsilon=0.8, delta=1e-5).fit(buyer)
    own = buyer.mean(axis=0), np.cov(buyer.T)
    distances = [wasserstein(*own, *moments) for moments in ten_distributions(d)]
    scores = []
    of_samples = []
    stated = []
    for draw in range(n_draws):
        sellers = ten_sellers(rng, n, d)
        scorer.set_params(noise_random_state=100 * draw)
        summaries = quietly(scorer.summarize, sellers)
        scores.append(scorer.score_summaries(summaries)[:, 0])
        of_samples.append(
            [wasserstein(*own, X.mean(axis=0), np.cov(X.T)) for X in sellers]
        )
        if errors:
            stated.append(scorer.score_errors(summaries))
    return map(np.array, (scores, of_samples, distances, stated))


def rank_correlation(d, n_draws):
    """Mean of Spearman's correlation with the distances of the samples, and error."""
    scores, of_samples, _, _ = private_market(d, n_draws)
    draws = [spearmanr(a, b).statistic for a, b in zip(scores, of_samples)]
    return np.mean(draws), np.std(draws, ddof=1) / np.sqrt(n_draws)


@pytest.mark.parametrize("d", [2, 8])
def test_private_scores_keep_the_order_of_sellers(d):
    mean, error = rank_correlation(d, n_draws=10)
    assert mean + 2 * error >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("d", "least"), [(2, 0.99), (8, 0.99), (32, 0.98), (64, 0.93)])
def test_private_scores_of_fifty_draws_keep_the_order_of_sellers(d, least):
    mean, _ = rank_correlation(d, n_draws=50)
    assert mean >= least


def rms(values, axis=None):
    return np.sqrt(np.mean(np.square(values), axis=axis))


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 8, 32, 64])
def test_stated_errors_are_those_of_the_scores(d):
    """Distances of the distributions are estimated; errors are pooled over sellers."""
    scores, _, distances, stated = private_market(d, n_draws=40, errors=True)
    ratios = rms(scores - distances, axis=0) / rms(stated, axis=0)
    assert 1 / 1.3 <= rms(ratios) <= 1.3


HEAVY = {
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(-1, 1, size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "t with 3 degrees": lambda rng, size: rng.standard_t(3, size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
}


@pytest.mark.parametrize("d", [2, 16])
@pytest.mark.parametrize("name", HEAVY)
def test_a_seller_whose_rows_are_like_the_buyers_does_not_feel_clipping(name, d):
    """At a large epsilon, clipping to the 95 % norm alone would exceed the floor."""
    rng = np.random.default_rng(3)
    draw = HEAVY[name]
    scorer = fitted(rng, rows=draw(rng, (4000, d)), epsilon=8.0)
    summaries = scorer.summarize([draw(rng, (4000, d)) for _ in range(12)])
    scores = scorer.score_summaries(summaries)[:, 0]
    # Rows with heavy tails vary more than normal ones, of which floors are simulated.
    limit = 3 if name in ("t with 3 degrees", "lognormal") else 1.5
    assert np.median(scores / scorer.noise_floor(summaries)) <= limit


def test_error_of_a_copy_with_heavy_tails_is_not_that_of_clipping_the_buyer():
    rng = np.random.default_rng(4)
    X = rng.standard_t(3, (2000, 4))
    scorer = fitted(rng, rows=X, epsilon=0.8)
    summaries = scorer.summarize([X] * 5)
    floors = scorer.noise_floor(summaries)
    assert (scorer.score_errors(summaries) < floors).all()


def test_scores_tend_to_the_exact_ones_with_epsilon(rng):
    """For sellers of any spread: clipping takes little of their distance."""
    buyer = rng.normal(size=(2000, 4))
    sellers = [k * rng.normal(size=(4000, 4)) for k in (0.5, 1.5, 3, 10)]
    exact = fitted(rng, rows=buyer).transform(sellers)
    errors = []
    for epsilon in (0.5, 2.0, 100.0):
        scorer = fitted(rng, rows=buyer, epsilon=epsilon)
        releases = [scorer.transform(sellers) for _ in range(8)]
        errors.append(np.max(np.abs(np.divide(releases, exact) - 1), axis=1).mean())
    assert errors[-1] < 0.05
    assert all(a > 0.5 * b for a, b in pairwise(errors))


def test_noise_of_a_seed_can_be_repeated(rng, model):
    X = rng.normal(size=(100, 3))
    with pytest.warns(SeededNoiseWarning):
        first = SellerRelease(model, noise_random_state=3).fit(X).summary_
    second = quietly(SellerRelease(model, noise_random_state=3).fit, X).summary_
    assert first.to_json() == second.to_json()
