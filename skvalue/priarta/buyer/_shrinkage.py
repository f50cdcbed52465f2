"""Bayes estimates of sellers' moments, with a prior from the buyer's rows.

In units of the noise, a seller's released mean is the buyer's mean plus a gap plus
standard normal noise. The prior of a gap is normal with covariance ``t (C + floor)``,
where C is the covariance of the buyer's rows: the directions in which sellers differ
from the buyer are those in which the buyer's rows vary. The unknown scale t is
integrated out over a grid of its logarithm and zero, up to gaps of the length of the
radius: if the noise is larger than that, the estimate is the buyer's moment.

Likewise the variance in all, the trace of the covariance, is the buyer's plus a gap.
The covariance is the buyer's, scaled to this trace, plus a gap, with C the covariance
of the outer products of the buyer's rows.
"""

import numpy as np
from sklearn.decomposition import PCA

from ...privacy import smat, svec, svec_index

# Fraction of the mean variance, so that every direction has prior variance.
_FLOOR = 0.02
_MAX_DIRECTIONS = 128
_MAX_ROWS = 2000
_MAX_PRODUCTS = 2**22  # numbers in the outer products of rows for a prior
# Scales t of the grid, in variances of the noise.
_SCALES = np.concatenate([[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)])


class Prior:
    """Normal prior of a gap: principal directions and relative variances.

    Fitted to vectors (n_samples, p), one per row of the buyer; equal ones give an
    isotropic prior. `directions` (p, n) have the variances `variances` (n,), and all
    others `other_variance`.
    """

    def __init__(self, vectors):
        p = vectors.shape[1]
        self.directions = np.empty((p, 0))
        self.variances = np.empty(0)
        self.other_variance = 1.0
        if np.ptp(vectors, axis=0).any():
            n_directions = min(_MAX_DIRECTIONS, *vectors.shape)
            pca = PCA(n_directions, random_state=0).fit(vectors)
            variances = pca.explained_variance_
            other = pca.noise_variance_
            mean = (variances.sum() + other * (p - len(variances))) / p
            self.directions = pca.components_.T
            self.variances = variances / mean + _FLOOR
            self.other_variance = other / mean + _FLOOR

    def estimate(self, gap, max_length):
        """Posterior means (k, p) of gaps that are observed with standard normal noise.

        ``max_length`` (k,) bounds the root mean square length of a gap under the prior.
        """
        p, n = self.directions.shape
        coordinates, weights, kept = self._posterior(gap, max_length)

        # (k, n + 1): the fraction of a gap that its posterior mean keeps.
        fractions = weights.T @ kept
        other_fraction = fractions[:, -1:] if n < p else 0.0
        excess = (fractions[:, :-1] - other_fraction) * coordinates
        return other_fraction * gap + excess @ self.directions.T

    def draw(self, gap, max_length, rng):
        """A draw from the posterior of each of k gaps, as `estimate` takes them."""
        p, n = self.directions.shape
        coordinates, weights, kept = self._posterior(gap, max_length)

        # Of each gap a scale, and then a normal draw, whose variance in units of the
        # noise is the fraction that its mean keeps.
        totals = weights.cumsum(axis=0)
        scales = (rng.random(len(gap)) * totals[-1] > totals).sum(axis=0)
        fractions = kept[np.minimum(scales, len(kept) - 1)]
        noise = rng.standard_normal(gap.shape)
        noise_coordinates = noise @ self.directions
        other_fraction = fractions[:, -1:] if n < p else np.zeros((len(gap), 1))
        draws = other_fraction * gap + np.sqrt(other_fraction) * noise
        excess = (fractions[:, :-1] - other_fraction) * coordinates
        deviations = np.sqrt(fractions[:, :-1]) - np.sqrt(other_fraction)
        excess += deviations * noise_coordinates
        return draws + excess @ self.directions.T

    def _posterior(self, gap, max_length):
        """What the posterior of k gaps is computed from.

        Coordinates (k, n) of the gaps along the directions, the posterior
        probabilities (n_scales, k) of the scales, and the fraction (n_scales, n + 1)
        of a coordinate that its posterior mean keeps, for each scale.
        """
        p, n = self.directions.shape
        coordinates = gap @ self.directions
        other_squares = 0.0
        if n < p:
            other_squares = (gap**2).sum(axis=1) - (coordinates**2).sum(axis=1)
            other_squares = np.maximum(other_squares, 0.0)
        squares = np.column_stack(
            [coordinates**2, np.broadcast_to(other_squares, len(gap))]
        )
        multiplicities = np.append(np.ones(n), p - n)

        # (scales, n + 1) and (scales, k): log-likelihoods up to a constant.
        prior_variances = np.append(self.variances, self.other_variance)
        variances = 1 + _SCALES[:, None] * prior_variances
        loglik = -0.5 * (
            (multiplicities * np.log(variances)).sum(axis=1)[:, None]
            + (1 / variances) @ squares.T
        )
        # The mean variance of an entry is the scale, so p of them have the mean square
        # length t p.
        is_too_long = _SCALES[:, None] * p > max_length**2
        loglik = np.where(is_too_long, -np.inf, loglik)
        weights = np.exp(loglik - loglik.max(axis=0))
        return coordinates, weights / weights.sum(axis=0), 1 - 1 / variances


# Of one number: the prior of the gap of the trace.
_NUMBER_PRIOR = Prior(np.zeros((1, 1)))


def priors_of(rows, seed):
    """Priors of sellers' means and of their covariances (as `svec`).

    They are fitted to the buyer's rows (n, d).
    """
    n, d = rows.shape
    max_rows = max(2, min(_MAX_ROWS, 2 * _MAX_PRODUCTS // (d * (d + 1))))
    centred = rows - rows.mean(axis=0)
    if n > max_rows:
        rng = np.random.default_rng(seed)
        centred = centred[rng.choice(n, max_rows, replace=False)]
    i, j, weights = svec_index(d)
    products = centred[:, i] * centred[:, j] * weights
    return Prior(rows), Prior(products)


def shrink_moments(target, means, moments, noise, priors, radius):
    """Bayes estimates of means (k, d) and covariances (k, d, d) of k sellers.

    They are shrunk towards `target`, the buyer's mean and covariance; `priors` are
    those of the gaps to each, and `radius` bounds the norm of rows. `moments` (k, d, d)
    are noisy second moments, and ``noise`` (k, 3) are positive standard deviations on
    an entry of the mean, on the diagonal of the second moment and on its trace.
    """
    d = means.shape[1]
    target_mean, target_covariance = target
    mean_prior, covariance_prior = priors
    mean_noise, moment_noise, trace_noise = noise.T
    noisy_gap = (means - target_mean) / mean_noise[:, None]
    gap = mean_prior.estimate(noisy_gap, radius / mean_noise)
    means = target_mean + mean_noise[:, None] * gap

    # The noise of the second moment, and of the squared mean that is subtracted from
    # it: of an entry of the diagonal, and of the trace.
    squares = (means**2).sum(axis=1)
    entry_noise = 4 * mean_noise**2 * squares / d + 2 * mean_noise**4
    covariance_noise = np.sqrt(moment_noise**2 + entry_noise)
    variance_noise = np.sqrt(trace_noise**2 + d * entry_noise)

    # The buyer's covariance, scaled to the estimated trace.
    covariances = moments - means[:, :, None] * means[:, None, :]
    target_trace = np.trace(target_covariance)
    traces = np.trace(covariances, axis1=1, axis2=2)
    noisy_gap = (traces - target_trace) / variance_noise
    gap = _NUMBER_PRIOR.estimate(noisy_gap[:, None], radius**2 / variance_noise)
    traces = np.maximum(target_trace + variance_noise * gap[:, 0], 0.0)
    scales = np.ones_like(traces)
    if target_trace > 0:
        scales = traces / target_trace
    targets = scales[:, None, None] * target_covariance

    noisy_gap = svec(covariances - targets) / covariance_noise[:, None]
    gap = covariance_prior.estimate(noisy_gap, radius**2 / covariance_noise)
    return means, targets + smat(covariance_noise[:, None] * gap, d)


def draw_moments(target, mean, moment, noise, priors, radius, n_draws, rng):
    """Draws from the posterior of the mean and the covariance of one seller.

    Arguments are as those of `shrink_moments`, of one seller: ``mean`` (d,), ``moment``
    (d, d) and ``noise`` (3,). Returns means (n_draws, d) and covariances (n_draws, d,
    d). Given a mean, the noise of the second moment is that of the covariance.
    """
    target_mean, target_covariance = target
    mean_prior, covariance_prior = priors
    mean_noise, moment_noise, trace_noise = noise

    def tiled(number):
        return np.full(n_draws, number)

    noisy_gap = np.tile((mean - target_mean) / mean_noise, (n_draws, 1))
    gap = mean_prior.draw(noisy_gap, tiled(radius / mean_noise), rng)
    means = target_mean + mean_noise * gap

    covariances = moment - means[:, :, None] * means[:, None, :]
    target_trace = np.trace(target_covariance)
    traces = np.trace(covariances, axis1=1, axis2=2)
    noisy_gap = (traces - target_trace) / trace_noise
    gap = _NUMBER_PRIOR.draw(noisy_gap[:, None], tiled(radius**2 / trace_noise), rng)
    traces = np.maximum(target_trace + trace_noise * gap[:, 0], 0.0)
    scales = np.ones_like(traces)
    if target_trace > 0:
        scales = traces / target_trace
    targets = scales[:, None, None] * target_covariance

    noisy_gap = svec(covariances - targets) / moment_noise
    gap = covariance_prior.draw(noisy_gap, tiled(radius**2 / moment_noise), rng)
    return means, targets + smat(moment_noise * gap, len(mean))
