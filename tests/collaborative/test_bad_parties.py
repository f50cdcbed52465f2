"""Parties whose releases contradict those of others: their values, and the work.

Posteriors of coalitions with and without them are far from each other.
"""

from time import process_time

import numpy as np
import pytest
from scipy.special import logsumexp

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    GramRelease,
    LogisticRelease,
)
from skvalue.privacy import clip_rows

from .parties import exact_surprise, quietly

pytestmark = pytest.mark.filterwarnings(
    "ignore::skvalue.exceptions.PriorOutweighsWarning"
)
FACTS = {"n_rows": 1000, "n_features": 3, "epsilon": 1.0}


def linear_rows(n_rows, n_features, rng, sign=1):
    X = rng.normal(size=(n_rows, n_features)) / (1.5 * np.sqrt(n_features))
    w = np.linspace(0.8, -0.4, n_features)
    return X, sign * (X @ w + 0.2 * rng.normal(size=n_rows))


def linear_releases(n_parties, n_flipped, *, n_rows, n_features, epsilon, seed=0):
    """Releases of parties, of which the first ones have targets of the wrong sign."""
    rng = np.random.default_rng(seed)
    releases = []
    for i in range(n_parties):
        sign = -1 if i < n_flipped else 1
        X, y = linear_rows(n_rows, n_features, rng, sign)
        party = GramRelease(epsilon, noise_random_state=i)
        releases.append(quietly(party.fit, X, y).release_)
    return releases


def logistic_releases(n_parties, n_flipped, *, n_rows, n_features, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    releases = []
    for i in range(n_parties):
        X, y = linear_rows(n_rows, n_features, rng)
        labels = (y > 0).astype(int)
        if i < n_flipped:
            labels = 1 - labels
        party = LogisticRelease(epsilon, noise_random_state=i)
        releases.append(quietly(party.fit, X, labels).release_)
    return releases


def coalitions(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)


class Quadrature:
    """Surprises and gains of all coalitions of a model of one weight and a variance.

    The grid covers all posteriors; the prior is a density, in closed form.
    """

    def __init__(self, releases, X_val, y_val):
        model = BayesianLinear().bind(releases)
        w = np.linspace(-1.5, 1.5, 301)
        log_s2 = np.linspace(-6.0, 1.0, 141)
        phi = np.stack(np.meshgrid(w, log_s2, indexing="ij"), axis=-1).reshape(-1, 2)
        cell = np.log((w[1] - w[0]) * (log_s2[1] - log_s2[0]))
        log_prior = model.log_prior(phi) + cell
        loglik = np.column_stack([model.party_loglik(phi, r) for r in releases])
        densities = np.exp(model.predict_logpdf(phi, X_val, y_val))

        self.surprises = []
        self.log_means = []
        for mask in coalitions(len(releases))[1:]:
            row = loglik @ mask
            log_evidence = logsumexp(row + log_prior)
            weights = np.exp(row + log_prior - log_evidence)
            edges = np.abs(phi[:, 0]) > 1.4
            edges |= np.abs(phi[:, 1] + 2.5) > 3.4
            assert weights[edges].sum() < 1e-4
            self.surprises.append(weights @ row - log_evidence)
            self.log_means.append(np.log(weights @ densities).mean())


@pytest.fixture(scope="module")
def points():
    return linear_rows(60, 1, np.random.default_rng(5))


@pytest.fixture(scope="module", params=[0.3, 1.0])
def releases(request):
    return linear_releases(4, 1, n_rows=1000, n_features=1, epsilon=request.param)


class TestValues:
    def test_surprises_are_those_of_quadrature(self, releases, points):
        expected = Quadrature(releases, *points).surprises
        scorer = BayesianSurpriseScorer(BayesianLinear(), random_state=0).fit(releases)
        gaps = scorer.coalition_values_[1:] - expected
        assert np.all(np.abs(gaps) < 5 * scorer.coalition_computation_error_[1:])
        assert np.abs(gaps).max() < 0.2

    def test_gains_are_those_of_quadrature(self, releases, points):
        """Up to the density under the prior, which all coalitions share."""
        X_val, y_val = points
        expected = Quadrature(releases, clip_rows(X_val, 1.0), y_val).log_means
        expected = np.array(expected)
        scorer = PredictiveValueScorer(BayesianLinear(), random_state=0)
        scorer.fit(releases, X_val=X_val, y_val=y_val)
        values = scorer.coalition_values_[1:]
        gaps = (values - values.mean()) - (expected - expected.mean())
        assert np.all(np.abs(gaps) < 5 * scorer.coalition_computation_error_[1:])
        assert np.median(np.abs(gaps)) < 0.01

    def test_surprises_without_noise_are_in_closed_form(self):
        releases = linear_releases(4, 2, n_rows=500, n_features=3, epsilon=None)
        scorer = BayesianSurpriseScorer(BayesianLinear(), random_state=0).fit(releases)
        expected = [
            exact_surprise(scorer.model_, releases, mask) for mask in coalitions(4)
        ]
        gaps = (scorer.coalition_values_ - expected)[1:]
        assert np.all(np.abs(gaps) < 5 * scorer.coalition_computation_error_[1:])
        assert np.abs(gaps).max() < 0.2

    def test_every_coalition_has_effective_draws(self):
        releases = linear_releases(5, 2, **FACTS)
        scorer = BayesianSurpriseScorer(BayesianLinear(), random_state=0).fit(releases)
        assert scorer.ess_.min() > 95


class CountsLinear(BayesianLinear):
    """Counts the parameters at which likelihoods are computed, in all copies."""

    n_likelihoods = 0

    def party_loglik(self, phi, release):
        type(self).n_likelihoods += len(phi)
        return super().party_loglik(phi, release)


class CountsLogistic(BayesianLogistic):
    n_likelihoods = 0

    def party_loglik(self, phi, release):
        type(self).n_likelihoods += len(phi)
        return super().party_loglik(phi, release)


def n_likelihoods(model, releases):
    """Likelihoods of parties at parameters that a fit computes."""
    type(model).n_likelihoods = 0
    BayesianSurpriseScorer(model, random_state=0).fit(releases)
    return type(model).n_likelihoods


class TestWork:
    """Likelihoods that are computed, whose number is the same on every machine."""

    @pytest.mark.parametrize(
        ("model", "make_releases", "n_parties", "n_flipped", "limit"),
        [
            (CountsLinear(), linear_releases, 5, 1, 1.5),
            pytest.param(
                *(CountsLogistic(), logistic_releases, 6, 1, 1.5),
                marks=pytest.mark.slow,
            ),
            pytest.param(
                *(CountsLinear(), linear_releases, 12, 1, 1.5), marks=pytest.mark.slow
            ),
            pytest.param(
                *(CountsLinear(), linear_releases, 12, 3, 1.75), marks=pytest.mark.slow
            ),
            pytest.param(
                *(CountsLogistic(), logistic_releases, 12, 1, 1.5),
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_of_bad_parties_is_little_more(
        self, model, make_releases, n_parties, n_flipped, limit
    ):
        honest = n_likelihoods(model, make_releases(n_parties, 0, **FACTS))
        bad = n_likelihoods(model, make_releases(n_parties, n_flipped, **FACTS))
        assert bad < limit * honest

    @pytest.mark.slow
    def test_time_of_bad_parties_is_little_more(self):
        """The predictions of particles of no weight take no time."""
        X_val, y_val = linear_rows(1000, 3, np.random.default_rng(5))
        seconds = []
        for n_flipped in (0, 3):
            releases = linear_releases(12, n_flipped, **FACTS)
            scorer = PredictiveValueScorer(BayesianLinear(), random_state=0)
            start = process_time()
            scorer.fit(releases, X_val=X_val, y_val=y_val)
            seconds.append(process_time() - start)
        honest, bad = seconds
        assert bad < 1.6 * honest

    def test_of_honest_parties_is_a_few_draws_of_each_posterior(self):
        releases = linear_releases(6, 0, **FACTS)
        scorer = BayesianSurpriseScorer(CountsLinear(), n_particles=400)
        CountsLinear.n_likelihoods = 0
        scorer.set_params(random_state=0).fit(releases)
        # Seven posteriors, and as many draws on the way to them and from the prior.
        assert CountsLinear.n_likelihoods < 6 * 400 * 7 * 3
