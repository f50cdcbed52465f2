"""The posterior of the counts in balls, given noisy ones.

It uses released counts, public validation points and the scale of the noise only, so
it costs no privacy. Counts in balls near each other are similar, and their scale is
unknown. They are drawn from the posterior under this prior:

- the number of rows in a ball is a Gaussian process ``tau b + s g(v)`` over the points
  v, with b standard normal and the covariance of g ``exp(-distance / radius)``; tau and
  s <= tau are log-uniform from 1 to a million;
- the fraction of these rows whose label is not that of the point is ``a + b m(v)``,
  where m(v) is the fraction of other labels among the public points near v, plus a
  Gaussian process over the points with the same label. Whether a = 0 (no wrong labels),
  and how large the process is, follow from the marginal likelihood, so that clean
  labels give counts near zero, and not half the noise;
- counts are not negative, and those of one label at most those of all.
"""

import numpy as np

from ._smoothing import (
    N_DRAWS,
    NUGGET,
    Basis,
    positive_draws,
    posterior_draws,
    smoothing_basis,
)

# Fractions of rows with another label: the constant, and the multiple of the fraction
# among the public points near.
_CONSTANT = np.array(
    [0, 0.005, 0.015, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65]
)
_MULTIPLE = np.array([0, 1 / 3, 2 / 3, 1])

# Widths of "near", in radii.
_WIDTHS = (1, 0.5, 0.25)

# Standard deviations of the process.
_PROCESS = np.array([0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])

# Points of the labels' frequencies that are added to those near a point.
_PSEUDO = 0.25

# Variance of counts of rows drawn at random, in variances of independent rows.
_SPREAD = 6


class CountModel:
    """The posterior of the counts in balls around public points.

    ``noisy`` (2, n_validation) are the released counts of rows with and without the
    label of each point, ``noise`` is the standard deviation of their noise, and
    ``labels`` are those of the points; the other parameters are as in
    `public_geometry`.
    """

    def __init__(self, noisy, noise, labels, distances, landmarks, reach):
        self._noise = noise
        self._basis = smoothing_basis(distances, landmarks, reach)
        totals = self._total_draws(noisy, np.random.default_rng(0))
        self._mean = np.maximum(totals.mean(axis=0), 1.0)

        # The process of the other labels, among points of the same label.
        self._scale = np.sqrt(np.mean(self._mean**2))
        weights = self._mean / self._scale
        near = np.exp(-distances / max(reach, 1e-12))
        is_same = labels[:, None] == labels[landmarks]
        kernel = near * is_same * weights[:, None] * weights[landmarks]
        self._process = Basis(kernel, landmarks)

        # All candidates of the fraction of other labels, (n_candidates, n_validation).
        others = _other_fractions(labels, near, landmarks)
        grid = _CONSTANT[:, None, None, None] + _MULTIPLE[:, None, None] * others
        self._fractions = np.minimum(grid, 1).reshape(-1, len(near))

    def draws(self, noisy, rng, n_draws=N_DRAWS):
        """Draws of the counts with and without the labels.

        Of shape (2, n_draws, n_validation).
        """
        # The counts with the label minus those without it, whose noise and that of the
        # totals are independent.
        with_label, without_label = noisy
        gap = np.subtract(with_label, without_label, dtype=float)
        totals = self._total_draws(noisy, rng, n_draws)
        unit_variances = self._scale**2 * self._process.weights
        spread, candidate = self._draw_parameters(gap, totals, unit_variances, rng)
        expected = totals * self._fractions[candidate]

        # Given a total, the other count is (total - gap) / 2 with the noise of half the
        # gap. Draws from the prior are corrected by their residuals from the data
        # (Matheron's rule).
        vectors = self._process.vectors
        variance = spread[:, None] * unit_variances
        noise = self._noise**2 / 2
        field, error = rng.standard_normal((2, n_draws, len(unit_variances)))
        field = np.sqrt(variance) * field
        residual = (totals - gap) / 2 - expected
        inside = residual @ vectors
        field += (
            variance * (inside - field - np.sqrt(noise) * error) / (variance + noise)
        )

        # What the basis leaves out of the residual.
        nugget = spread[:, None] * self._scale**2 * NUGGET
        outside = residual - inside @ vectors.T
        other = expected + field @ vectors.T + nugget / (nugget + noise) * outside
        other = np.clip(other, 0, totals)
        return np.stack([totals - other, other])

    def _total_draws(self, noisy, rng, n_draws=N_DRAWS):
        """Draws of the numbers of rows in the balls, (n_draws, n_validation)."""
        totals = np.sum(noisy, axis=0, dtype=float)
        noise = np.sqrt(2) * self._noise
        return positive_draws(posterior_draws(totals, self._basis, noise, rng, n_draws))

    def _draw_parameters(self, gap, totals, unit_variances, rng):
        """Draws of the variance of the process, and of the candidate of the fraction.

        By their likelihoods, given the gap of both counts (n_validation,) and draws of
        the totals; ``unit_variances`` are those of the process in its basis if its
        variance is 1. Each of shape (n_draws,).
        """
        average = self._fractions @ self._mean / self._mean.sum()
        # Which rows are in the data is random, too.
        smallest = _SPREAD * average * np.maximum(1 - average, 0) / self._mean.mean()
        variances = _PROCESS[:, None] ** 2 + smallest

        residual = (self._mean - gap) / 2 - self._mean * self._fractions
        squares = (residual @ self._process.vectors) ** 2
        noise = self._noise**2 / 2 + totals.var(axis=0).mean() / 4
        log_likelihoods = []
        for variance in variances:
            total = variance[:, None] * unit_variances + noise
            log_likelihood = -0.5 * (squares / total + np.log(total)).sum(axis=1)
            log_likelihoods.append(log_likelihood)
        log_likelihoods = np.array(log_likelihoods)

        # Draws at even levels of the distribution vary less than independent ones.
        n_draws = len(totals)
        likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
        cumulative = np.cumsum(likelihoods)
        levels = (rng.permutation(n_draws) + 0.5) / n_draws * cumulative[-1]
        cells = np.searchsorted(cumulative, levels)
        line, candidate = np.unravel_index(cells, log_likelihoods.shape)
        return variances[line, candidate], candidate


def _other_fractions(labels, near, landmarks):
    """Fraction of other labels among the public points near each.

    For each width of "near", of shape (n_widths, n_validation).
    """
    is_other = labels[:, None] != labels[landmarks]
    prior = np.mean(labels[:, None] != labels, axis=1)
    fractions = []
    for width in _WIDTHS:
        weights = near ** (1 / width)
        # Not the point itself.
        weights[landmarks, np.arange(len(landmarks))] = 0
        total = (weights * is_other).sum(axis=1) + _PSEUDO * prior
        fractions.append(total / (weights.sum(axis=1) + _PSEUDO))
    return np.array(fractions)
