"""The kernel of the process: how the utilities of two coalitions covary.

Utilities of non-empty coalitions S and T of n players are standardised. With sizes s
and t, members x_i and y_i in {0, 1}, ``h_s = log(s / (n/2))``, ``f_s = exp(-a h_s)``,
``g_s = exp(-b h_s)`` and relevances ``w_i > 0`` of the players,

    ``k(S, T) = 10 + A exp(-(h_s - h_t)^2 / (2 l^2))
    + g_s g_t [B / (n/4) sum_i w_i f_s (x_i - s/n) f_t (y_i - t/n)
    + C prod_i exp(-c w_i (f_s x_i - f_t y_i)^2 / (n/2))]
    + D exp(-2 d h_s) [S = T]``.

The terms are the level of the game and the mean utility of each size, the main effects
of players, interactions of any order, and white noise. With a = 0 the distance of two
coalitions is that of Hamming; with a = 1 it is that of the means of their members, so
that large coalitions resemble each other, as models trained on many rows do. White
noise is part of the game: interactions that no other term explains.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# Prior variance of the level of the game, in units of the variance of utilities.
_LEVEL_VARIANCE = 10.0

# Added to the diagonal of covariance matrices, for rounding.
JITTER = 1e-8

# Mean and standard deviation of the normal priors: of logarithms, except for exponents.
_PRIOR = {
    "size_variance": (0.0, 2.0),  # A
    "size_length": (0.0, 1.0),  # l
    "scale_exponent": (0.0, 0.5),  # b
    "input_exponent": (0.3, 0.4),  # a
    "main_variance": (-1.0, 2.0),  # B
    "product_variance": (-1.0, 2.0),  # C
    "product_rate": (-0.5, 1.0),  # c
    "noise_variance": (-3.0, 3.0),  # D
    "noise_exponent": (0.0, 0.5),  # d
}
N_SHARED = len(_PRIOR)

# A covariance matrix that cannot be factorised has this much less log posterior.
_IMPOSSIBLE = 1e10


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters of a game of n players, see the kernel above.

    `relevance` has an entry for each player.
    """

    size_variance: float
    size_length: float
    scale_exponent: float
    input_exponent: float
    main_variance: float
    product_variance: float
    product_rate: float
    noise_variance: float
    noise_exponent: float
    relevance: np.ndarray

    @classmethod
    def from_vector(cls, vector):
        """From 9 + n numbers: logarithms, except for the exponents."""
        values = {}
        for name, number in zip(_PRIOR, vector):
            is_exponent = name.endswith("exponent")
            values[name] = float(number if is_exponent else np.exp(number))
        return cls(**values, relevance=np.exp(vector[N_SHARED:]))

    @property
    def n(self):
        """Number of players."""
        return len(self.relevance)

    def log_sizes(self, sizes):
        """``h_s``; the empty coalition counts as one of a single player."""
        return np.log(np.maximum(sizes, 1) / (self.n / 2))

    def scales(self, sizes):
        """``g_s``: the standard deviation of effects, by size."""
        return np.exp(-self.scale_exponent * self.log_sizes(sizes))

    def input_scales(self, sizes):
        """``f_s``: what a member counts in the inputs of the kernel, by size."""
        return np.exp(-self.input_exponent * self.log_sizes(sizes))

    def noise(self, sizes):
        """Variance of white noise, by size."""
        exponent = -2 * self.noise_exponent
        return self.noise_variance * np.exp(exponent * self.log_sizes(sizes))

    def of_sizes(self, sizes, other_sizes):
        """Covariances of the mean utilities of sizes, (m, k) for m and k of them."""
        gaps = self.log_sizes(sizes)[:, None] - self.log_sizes(other_sizes)
        return _LEVEL_VARIANCE + _of_gaps(gaps, self)


@dataclass(frozen=True)
class HyperPrior:
    """Independent normal priors of the 9 + n numbers of `Hyper.from_vector`.

    `mean` and `sd` are of shape (9 + n,).
    """

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, n, relevance_sd):
        """For n players, whose log relevances have this standard deviation."""
        shared = np.array(list(_PRIOR.values()))
        return cls(
            mean=np.concatenate([shared[:, 0], np.zeros(n)]),
            sd=np.concatenate([shared[:, 1], np.full(n, relevance_sd)]),
        )


@dataclass(frozen=True)
class _Parts:
    """What the covariance matrix of m coalitions consists of.

    `log_sizes` and `norms` are of shape (m,), `centered` and `inputs` of shape (m, n),
    the others of shape (m, m). `main` and `products` are the two sums in brackets
    without their variances, `inner` the inner products in the distances.
    """

    log_sizes: np.ndarray
    gaps: np.ndarray
    of_gaps: np.ndarray
    scales: np.ndarray
    centered: np.ndarray
    inputs: np.ndarray
    main: np.ndarray
    norms: np.ndarray
    inner: np.ndarray
    products: np.ndarray


def _of_gaps(gaps, hyper):
    """The covariance of sizes without the level, from differences of their logs."""
    return hyper.size_variance * np.exp(-0.5 * (gaps / hyper.size_length) ** 2)


def _parts(masks, hyper):
    """The parts of the covariance matrix of coalitions, (m, n)."""
    n = hyper.n
    members = masks.astype(np.float64)
    sizes = members.sum(axis=1)
    log_sizes = hyper.log_sizes(sizes)
    gaps = log_sizes[:, None] - log_sizes

    # Main effects: products of centred members.
    input_scales = hyper.input_scales(sizes)[:, None]
    centered = (members - sizes[:, None] / n) * input_scales
    main = (centered * hyper.relevance) @ centered.T / (n / 4)

    # Interactions: a function of weighted squared distances.
    inputs = members * input_scales
    norms = inputs**2 @ hyper.relevance / (n / 2)
    inner = (inputs * hyper.relevance) @ inputs.T / (n / 2)
    distances = np.maximum(norms[:, None] + norms - 2 * inner, 0.0)

    scales = hyper.scales(sizes)
    return _Parts(
        log_sizes=log_sizes,
        gaps=gaps,
        of_gaps=_of_gaps(gaps, hyper),
        scales=np.outer(scales, scales),
        centered=centered,
        inputs=inputs,
        main=main,
        norms=norms,
        inner=inner,
        products=np.exp(-hyper.product_rate * distances),
    )


def _assemble(parts, hyper, noise):
    """The covariance matrix of coalitions from its parts, and the effects in it."""
    effects = hyper.main_variance * parts.main + hyper.product_variance * parts.products
    matrix = _LEVEL_VARIANCE + parts.of_gaps + parts.scales * effects
    diagonal = np.diag_indices_from(matrix)
    matrix[diagonal] += noise
    return matrix, effects


def covariance(masks, hyper):
    """Covariance matrix, (m, m), of the utilities of m different coalitions, (m, n)."""
    noise = hyper.noise(masks.sum(axis=1))
    matrix, _ = _assemble(_parts(masks, hyper), hyper, noise)
    return matrix


def negative_log_posterior(vector, masks, z, prior):
    """Minus the log posterior density of hyperparameters, and its gradient.

    Parameters
    ----------
    vector : ndarray of shape (9 + n,)
        The hyperparameters, see `Hyper.from_vector`.
    masks : ndarray of bool of shape (m, n)
        Different coalitions, none of them empty.
    z : ndarray of shape (m,)
        Their standardised utilities.
    prior : HyperPrior
        The prior of the hyperparameters.

    Returns
    -------
    value : float
        Up to a constant.
    gradient : ndarray of shape (9 + n,)
        Its derivatives.
    """
    hyper = Hyper.from_vector(vector)
    n = hyper.n
    parts = _parts(masks, hyper)
    noise = hyper.noise(masks.sum(axis=1))
    matrix, effects = _assemble(parts, hyper, noise + JITTER)
    try:
        factor = cho_factor(matrix, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return _IMPOSSIBLE, np.zeros(len(vector))

    deviations = (vector - prior.mean) / prior.sd
    alpha = cho_solve(factor, z, check_finite=False)
    half_log_determinant = np.log(np.diag(factor[0])).sum()
    value = 0.5 * z @ alpha + half_log_determinant + 0.5 * deviations @ deviations

    # The derivatives by the entries of the matrix, then by what those consist of.
    inverse = cho_solve(factor, np.eye(len(z)), check_finite=False)
    by_matrix = 0.5 * (inverse - np.outer(alpha, alpha))
    by_sizes = by_matrix * parts.of_gaps
    by_effects = by_matrix * parts.scales
    by_log_main = hyper.main_variance * by_effects
    by_log_products = hyper.product_variance * by_effects * parts.products
    by_distance = -hyper.product_rate * by_log_products
    by_log_noise = np.diag(by_matrix) * noise

    # Inputs are scaled by f_s in both sums; a distance is norm + norm - 2 inner.
    log_sums = parts.log_sizes[:, None] + parts.log_sizes
    distance_sums = by_distance.sum(axis=1)
    by_input_exponent = -(by_log_main * parts.main * log_sums).sum()
    by_input_exponent -= 4 * (distance_sums * parts.log_sizes * parts.norms).sum()
    by_input_exponent += 2 * (by_distance * log_sums * parts.inner).sum()

    inputs = parts.inputs
    from_main = ((by_log_main @ parts.centered) * parts.centered).sum(axis=0) / (n / 4)
    from_norms = (inputs**2).T @ distance_sums
    from_inner = ((by_distance @ inputs) * inputs).sum(axis=0)
    from_products = 2 * (from_norms - from_inner) / (n / 2)

    shared = {
        "size_variance": by_sizes.sum(),
        "size_length": (by_sizes * (parts.gaps / hyper.size_length) ** 2).sum(),
        "scale_exponent": -(by_effects * effects * log_sums).sum(),
        "input_exponent": by_input_exponent,
        "main_variance": (by_log_main * parts.main).sum(),
        "product_variance": by_log_products.sum(),
        "product_rate": (from_products * hyper.relevance).sum(),
        "noise_variance": by_log_noise.sum(),
        "noise_exponent": -2 * (by_log_noise * parts.log_sizes).sum(),
    }
    by_shared = [shared[name] for name in _PRIOR]
    by_relevance = hyper.relevance * (from_main + from_products)
    gradient = np.concatenate([by_shared, by_relevance])
    return value, gradient + deviations / prior.sd
