"""Simulated parties, their releases, and posteriors and surprises in closed form."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln

from skvalue.collaborative import (
    BayesianLinear,
    BayesianSurpriseScorer,
    GramRelease,
    NoisyStatistic,
)
from skvalue.collaborative.party import unpack_gram
from skvalue.exceptions import NestedReleasesWarning
from skvalue.privacy import SeededNoiseWarning


class NormalInverseGamma(NamedTuple):
    """w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a, b)."""

    mean: np.ndarray
    precision: np.ndarray
    a: float
    b: float


A0 = 20.0
B0 = 0.5
PRECISION = B0 / (A0 - 1) / 0.25  # weights of variance 1/4


def linear_model(**parameters):
    return BayesianLinear(PRECISION, a0=A0, b0=B0, **parameters)


def simulate(seed, counts=(100, 200, 400), n_features=2):
    """Weights and log variance from the prior, and the rows of every party."""
    rng = np.random.default_rng(seed)
    s2 = B0 / rng.gamma(A0)
    w = np.sqrt(s2 / PRECISION) * rng.standard_normal(n_features)
    parties = []
    for count in counts:
        X = np.sqrt(0.15) * rng.standard_normal((count, n_features))
        X *= np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
        y = X @ w + np.sqrt(s2) * rng.standard_normal(count)
        parties.append((X, np.clip(y, -1, 1)))
    return np.append(w, np.log(s2)), parties


def quietly(function, *arguments, **options):
    """Call a function without warnings of seeds and of paths."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", NestedReleasesWarning)
        return function(*arguments, **options)


def release_all(parties, epsilons, seed=7, **options):
    """Releases of parties with these Renyi epsilons, from consecutive seeds."""
    releases = []
    for i, (epsilon, (X, y)) in enumerate(zip(epsilons, parties)):
        party = GramRelease(
            None, renyi_epsilon=epsilon, noise_random_state=seed + i, **options
        )
        releases.append(quietly(party.fit, X, y).release_)
    return releases


def gaussian_kl(mean, variance, prior_mean, prior_variance):
    """Divergence of one normal distribution of one dimension from another."""
    ratio = variance / prior_variance
    return 0.5 * (ratio - 1 - np.log(ratio) + (mean - prior_mean) ** 2 / prior_variance)


def gamma_kl(a, b, prior_a, prior_b):
    """Divergence of the Gamma distribution of shape a and rate b from another one."""
    return (
        (a - prior_a) * digamma(a)
        - gammaln(a)
        + gammaln(prior_a)
        + prior_a * np.log(b / prior_b)
        + a * (prior_b - b) / b
    )


def beta_kl(a, b, prior_a, prior_b):
    """Divergence of Beta(a, b) from Beta(prior_a, prior_b)."""
    return (
        betaln(prior_a, prior_b)
        - betaln(a, b)
        + (a - prior_a) * digamma(a)
        + (b - prior_b) * digamma(b)
        + (prior_a - a + prior_b - b) * digamma(a + b)
    )


def normal_kl(mean, precision, prior_mean, prior_precision):
    """Divergence of one normal distribution of several dimensions from another."""
    shift = mean - prior_mean
    return 0.5 * (
        np.trace(np.linalg.solve(precision, prior_precision))
        - len(shift)
        + np.linalg.slogdet(precision)[1]
        - np.linalg.slogdet(prior_precision)[1]
        + shift @ prior_precision @ shift
    )


def surprise_of(releases, model=None, random_state=0, **options):
    """A fitted `BayesianSurpriseScorer`."""
    if model is None:
        model = linear_model()
    scorer = BayesianSurpriseScorer(model, random_state=random_state, **options)
    return scorer.fit(releases)


class Sampled:
    """A user's model: the four methods of another one, and no base class.

    That of a mean is then sampled, and not integrated on a grid.
    """

    def __init__(self, model):
        self.sample_prior = model.sample_prior
        self.log_prior = model.log_prior
        self.party_loglik = model.party_loglik
        self.predict_logpdf = model.predict_logpdf


def noisy_sum(count, total, epsilon):
    """A release of numbers in [-1, 1]."""
    return NoisyStatistic("gaussian", count, (total,), epsilon, 2.0, (-1.0, 1.0))


def noisy_posterior(model, releases, powers):
    """Mean and variance of the posterior of a `GaussianMean`.

    The likelihoods are raised to powers (..., n_parties).
    """
    counts = np.array([release.n_samples for release in releases], float)
    noise = np.array([release.noise_scale**2 for release in releases])
    sums = [release.statistic[0] for release in releases]
    variances = np.maximum(counts * model.variance + noise, 1e-300)
    weights = np.array(powers) * counts / variances
    precision = 1 / model.prior_variance + weights @ counts
    mean = (model.prior_mean / model.prior_variance + weights @ sums) / precision
    return mean, 1 / precision


def scaled_posterior(model, releases, scale):
    """Mean and variance of the posterior of a `GaussianMean`, of scaled statistics.

    Counts, sums and the standard deviations of the noise are multiplied by the scale.
    """
    precision = 1 / model.prior_variance
    total = model.prior_mean / model.prior_variance
    for release in releases:
        count = scale * release.n_samples
        noise_scale = scale * release.noise_scale
        weight = count / (count * model.variance + noise_scale**2)
        precision += weight * count
        total += weight * scale * release.statistic[0]
    return total / precision, 1 / precision


def exact_table(model, releases):
    """Surprise of all coalitions under a `GaussianMean`, by number."""
    posterior = noisy_posterior(model, releases, every_coalition(len(releases)))
    return gaussian_kl(*posterior, model.prior_mean, model.prior_variance)


def exact_surprise(model, releases, powers):
    """Surprise of exact Gram matrices, raised to powers, under a `BayesianLinear`."""
    prior = NormalInverseGamma(
        model.prior_mean_, model.prior_precision_, model.a0, model.b0
    )
    size = len(prior.mean) + 1
    gram = 0.0
    count = 0.0
    for power, release in zip(powers, releases):
        gram = gram + power * unpack_gram(release.vector, size, release)
        count += power * release.n_samples
    precision = prior.precision + gram[:-1, :-1]
    right = prior.precision @ prior.mean + gram[:-1, -1]
    mean = np.linalg.solve(precision, right)
    residual = gram[-1, -1] + prior.mean @ prior.precision @ prior.mean - mean @ right
    posterior = NormalInverseGamma(
        mean, precision, prior.a + 0.5 * count, prior.b + 0.5 * residual
    )
    return normal_inverse_gamma_kl(posterior, prior)


def normal_inverse_gamma_kl(posterior, prior):
    """Divergence of one normal-inverse-gamma distribution from another."""
    shift = posterior.mean - prior.mean
    ratio = posterior.a / posterior.b
    of_weights = (
        np.trace(np.linalg.solve(posterior.precision, prior.precision))
        - len(shift)
        + np.linalg.slogdet(posterior.precision)[1]
        - np.linalg.slogdet(prior.precision)[1]
        + ratio * shift @ prior.precision @ shift
    )
    of_variance = gamma_kl(posterior.a, posterior.b, prior.a, prior.b)
    return 0.5 * of_weights + of_variance


def every_coalition(n):
    """Powers of the likelihoods of n parties for all coalitions, by number."""
    return np.arange(2**n)[:, None] >> np.arange(n) & 1
