"""Posteriors of many exact statistics, in closed form or by a normal approximation.

Arrays have one row for each of B posteriors: the number of rows behind a statistic (B,)
and the statistic, their sum (B, m). Every class has the divergences (B,) of its
posteriors from the prior, and the log predictive densities (B, V) of V points.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import betaln, digamma, expit, gammaln

from ...privacy import svec_index

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_PREDICTION_NODES, _PREDICTION_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_PREDICTION_WEIGHTS = _PREDICTION_WEIGHTS / _PREDICTION_WEIGHTS.sum()
_MAX_NEWTON_STEPS = 30
_MIN_VARIANCE = 1e-12  # of the logit
_MIN_PROBABILITY = 1e-300


class ExactPosteriors(ABC):
    """Posteriors of B exact statistics."""

    @abstractmethod
    def divergences(self):
        """Kullback-Leibler divergences (B,) from the prior."""

    @abstractmethod
    def log_densities(self, X, y):
        """Log predictive densities (B, V) of targets y (V,) at rows X (V, p)."""


class NormalMeans(ExactPosteriors):
    """Posteriors of the mean of normal numbers of known variance."""

    def __init__(self, model, counts, sums):
        self.model = model
        precision = 1 / model.prior_variance + counts / model.variance
        total = model.prior_mean / model.prior_variance + sums / model.variance
        self.variances = 1 / precision
        self.means = total / precision

    def divergences(self):
        model = self.model
        ratio = self.variances / model.prior_variance
        shift = self.means - model.prior_mean
        return 0.5 * (ratio - 1 - np.log(ratio) + shift**2 / model.prior_variance)

    def log_densities(self, X, y):
        variances = (self.variances + self.model.variance)[:, None]
        squares = (y - self.means[:, None]) ** 2 / variances
        return -0.5 * (squares + np.log(2 * np.pi * variances))


class BetaProbabilities(ExactPosteriors):
    """Posteriors of the probability of ones, which are Beta distributions."""

    def __init__(self, model, counts, sums):
        self.model = model
        self.a = model.a + sums
        self.b = model.b + counts - sums

    def divergences(self):
        prior_a = self.model.a
        prior_b = self.model.b
        a = self.a
        b = self.b
        return (
            betaln(prior_a, prior_b)
            - betaln(a, b)
            + (a - prior_a) * digamma(a)
            + (b - prior_b) * digamma(b)
            + (prior_a - a + prior_b - b) * digamma(a + b)
        )

    def log_densities(self, X, y):
        totals = self.a + self.b
        log_ones = np.log(self.a / totals)[:, None]
        log_zeros = np.log(self.b / totals)[:, None]
        return np.where(np.asarray(y) == 1, log_ones, log_zeros)


class GammaRates(ExactPosteriors):
    """Posteriors of the rate of counts, which are Gamma distributions."""

    def __init__(self, model, counts, sums):
        self.model = model
        self.a = model.a + sums
        self.b = model.b + counts

    def divergences(self):
        prior_a = self.model.a
        prior_b = self.model.b
        a = self.a
        b = self.b
        return (
            (a - prior_a) * digamma(a)
            - gammaln(a)
            + gammaln(prior_a)
            + prior_a * np.log(b / prior_b)
            + a * (prior_b - b) / b
        )

    def log_densities(self, X, y):
        # Negative binomial.
        y = np.asarray(y, dtype=float)
        a = self.a[:, None]
        b = self.b[:, None]
        log_binomial = gammaln(a + y) - gammaln(a) - gammaln(y + 1)
        return log_binomial + a * np.log(b / (b + 1)) - y * np.log(b + 1)


class NormalInverseGammas(ExactPosteriors):
    """Posteriors of weights and variance of a linear regression.

    w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a, b). `grams` (B, p + 1,
    p + 1) are the sums of u u', u = ([1,] x, y).
    """

    def __init__(self, model, counts, grams):
        self.model = model
        prior_mean = model.prior_mean_
        prior_precision = model.prior_precision_
        self.precisions = prior_precision + grams[:, :-1, :-1]
        right = prior_precision @ prior_mean + grams[:, :-1, -1]
        self.means = np.linalg.solve(self.precisions, right[:, :, None])[:, :, 0]
        self.a = model.a0 + 0.5 * counts
        prior_square = prior_mean @ prior_precision @ prior_mean
        explained = np.sum(self.means * right, axis=1)
        residuals = grams[:, -1, -1] + prior_square - explained
        self.b = model.b0 + 0.5 * np.maximum(residuals, 0.0)

    def divergences(self):
        model = self.model
        prior_precision = model.prior_precision_
        shift = self.means - model.prior_mean_
        ratio = self.a / self.b
        covariances = np.linalg.inv(self.precisions)
        of_weights = (
            np.sum(covariances * prior_precision, axis=(1, 2))
            - shift.shape[1]
            + np.linalg.slogdet(self.precisions)[1]
            - np.linalg.slogdet(prior_precision)[1]
            + ratio * np.sum((shift @ prior_precision) * shift, axis=1)
        )
        of_variance = (
            (self.a - model.a0) * digamma(self.a)
            - gammaln(self.a)
            + gammaln(model.a0)
            + model.a0 * np.log(self.b / model.b0)
            + self.a * (model.b0 - self.b) / self.b
        )
        return 0.5 * of_weights + of_variance

    def log_densities(self, X, y):
        # Student's t distributions with 2 a degrees of freedom.
        u = _with_constant(X, self.model.intercept_)
        spread = _quadratic_forms(np.linalg.inv(self.precisions), u)
        squares = (self.b / self.a)[:, None] * (1 + spread)
        residuals = y - self.means @ u.T
        a = self.a[:, None]
        return (
            gammaln(a + 0.5)
            - gammaln(a)
            - 0.5 * np.log(2 * np.pi * a * squares)
            - (a + 0.5) * np.log1p(residuals**2 / (2 * a * squares))
        )


class NormalLogistics(ExactPosteriors):
    """Posteriors of the weights of a logistic regression, approximated as normal.

    `sums_yu` (B, p) and `sums_uu` (B, p, p) are the sums of y u and u u', u = ([1,] x).
    The log-likelihood is ``w' sums_yu / 2 - count E[log(2 cosh(w'u / 2))]``, where u is
    normal with the moments of the rows. Its mode is found by Newton's method.
    """

    def __init__(self, model, counts, sums_yu, sums_uu):
        self.model = model
        n_posteriors, size = sums_yu.shape
        safe_counts = np.maximum(counts, 1.0)
        second_moments = sums_uu / safe_counts[:, None, None]
        u_means = np.zeros((n_posteriors, size))
        if model.intercept_:
            u_means = second_moments[:, 0].copy()
        covariances = second_moments - u_means[:, :, None] * u_means[:, None, :]

        weights = np.broadcast_to(model.prior_mean_, (n_posteriors, size)).copy()
        for _ in range(_MAX_NEWTON_STEPS):
            gradients, hessians = self._derivatives(weights, u_means, covariances)
            shift = weights - model.prior_mean_
            gradients = 0.5 * sums_yu - counts[:, None] * gradients
            gradients -= shift @ model.prior_precision_
            precisions = model.prior_precision_ + counts[:, None, None] * hessians
            step = np.linalg.solve(precisions, gradients[:, :, None])[:, :, 0]

            # Long steps of the logit are shortened: far from the mode the curvature of
            # the likelihood vanishes.
            length = np.sqrt(np.sum((step @ model.prior_precision_) * step, axis=1))
            longest = 2.0
            step *= np.minimum(1.0, longest / np.maximum(length, 1e-300))[:, None]
            weights += step
            if np.abs(step).max(initial=0.0) < 1e-5:
                break
        self.weights = weights
        self.precisions = precisions

    @staticmethod
    def _derivatives(weights, u_means, covariances):
        """Gradients (B, p) and Hessians (B, p, p) of E[log(2 cosh(w'u / 2))]."""
        products = np.einsum("bij,bj->bi", covariances, weights)
        variances = np.sum(products * weights, axis=1)
        variances = np.maximum(variances, _MIN_VARIANCE)
        directions = products / np.sqrt(variances)[:, None]
        means = np.sum(u_means * weights, axis=1)
        logits = means[:, None] + np.sqrt(variances)[:, None] * _NODES
        half_tanh = 0.5 * np.tanh(0.5 * logits)
        slopes = 0.25 - half_tanh**2

        # Given the logit, of which d is the standardized value, u is normal with mean
        # u_mean + direction d.
        f0 = half_tanh @ _NODE_WEIGHTS
        f1 = half_tanh @ (_NODE_WEIGHTS * _NODES)
        gradients = f0[:, None] * u_means + f1[:, None] * directions
        s0 = slopes @ _NODE_WEIGHTS
        s1 = slopes @ (_NODE_WEIGHTS * _NODES)
        s2 = slopes @ (_NODE_WEIGHTS * _NODES**2)
        mean_squares = u_means[:, :, None] * u_means[:, None, :]
        crosses = u_means[:, :, None] * directions[:, None, :]
        crosses = crosses + np.swapaxes(crosses, 1, 2)
        squares = directions[:, :, None] * directions[:, None, :]
        hessians = s0[:, None, None] * (covariances + mean_squares)
        hessians += s1[:, None, None] * crosses
        hessians += (s2 - s0)[:, None, None] * squares
        return gradients, hessians

    def divergences(self):
        prior_precision = self.model.prior_precision_
        shift = self.weights - self.model.prior_mean_
        covariances = np.linalg.inv(self.precisions)
        return 0.5 * (
            np.sum(covariances * prior_precision, axis=(1, 2))
            - shift.shape[1]
            + np.linalg.slogdet(self.precisions)[1]
            - np.linalg.slogdet(prior_precision)[1]
            + np.sum((shift @ prior_precision) * shift, axis=1)
        )

    def log_densities(self, X, y):
        u = _with_constant(X, self.model.intercept_)
        signs = np.where(np.asarray(y) == self.model.classes_[1], 1.0, -1.0)
        variances = _quadratic_forms(np.linalg.inv(self.precisions), u)
        deviations = np.sqrt(np.maximum(variances, 0.0))
        means = signs * (self.weights @ u.T)
        probabilities = np.zeros(means.shape)
        for node, weight in zip(_PREDICTION_NODES, _PREDICTION_WEIGHTS):
            probabilities += weight * expit(means + node * deviations)
        return np.log(np.maximum(probabilities, _MIN_PROBABILITY))


def _with_constant(X, intercept):
    """Rows (V, p), with a column of ones in front if there is an intercept."""
    if not intercept:
        return X
    return np.column_stack([np.ones(len(X)), X])


def _quadratic_forms(matrices, rows):
    """The numbers u' M u (B, V) of symmetric matrices (B, p, p) and rows u (V, p)."""
    i, j, weights = svec_index(rows.shape[1])
    products = weights**2 * rows[:, i] * rows[:, j]
    return matrices[:, i, j] @ products.T
