"""Kullback-Leibler divergences estimated from draws by nearest-neighbor distances."""

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln


def _whiten(draws, *others):
    mean = draws.mean(axis=0)
    factor = np.linalg.cholesky(np.cov(draws.T).reshape(2 * (draws.shape[1],)))
    white = [np.linalg.solve(factor, (x - mean).T).T for x in (draws, *others)]
    return white, np.log(np.diag(factor)).sum()


def entropy(draws, k=4):
    """Kozachenko-Leonenko estimate of differential entropy from draws (n, d), after whitening."""
    (white,), log_scale = _whiten(draws)
    n, d = white.shape
    distances = cKDTree(white).query(white, k=k + 1)[0][:, k]
    log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1)
    logs = np.log(np.maximum(distances, 1e-300))
    return digamma(n) - digamma(k) + log_ball + d * logs.mean() + log_scale


def one_sample_divergence(draws, log_prior, k=4):
    """Divergence from a prior, given its log density at the draws."""
    return -entropy(draws, k) - np.mean(log_prior)


def two_sample_divergence(draws, prior_draws, k=4):
    """Divergence from a prior, given draws from it (Wang, Kulkarni and Verdu, 2009)."""
    (white, prior), _ = _whiten(draws, prior_draws)
    n, d = white.shape
    among_draws = cKDTree(white).query(white, k=k + 1)[0][:, k]
    to_prior = cKDTree(prior).query(white, k=[k])[0][:, 0]
    ratio = np.mean(np.log(np.maximum(to_prior, 1e-300)) - np.log(np.maximum(among_draws, 1e-300)))
    return d * ratio + np.log(len(prior) / (n - 1))
