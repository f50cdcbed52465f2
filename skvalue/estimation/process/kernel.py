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
from scipy.linalg.blas import dsymm, dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

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
        without_level = np.exp(-0.5 * (gaps / self.size_length) ** 2)
        return _LEVEL_VARIANCE + self.size_variance * without_level


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
class _Members:
    """Coalitions, as the kernel takes them.

    `sizes` and `log_sizes` are of shape (m,), the others of shape (m, n): `is_size` has
    a one for the size of a coalition, `inputs` are ``f_s x_i``, and `effects` ``g_s f_s
    (x_i - s/n)``.
    """

    sizes: np.ndarray
    log_sizes: np.ndarray
    is_size: np.ndarray
    inputs: np.ndarray
    effects: np.ndarray

    @classmethod
    def of(cls, masks, hyper):
        """Of coalitions, (m, n)."""
        n = hyper.n
        sizes = masks.sum(axis=1)
        all_sizes = np.arange(1, n + 1)
        input_scales = hyper.input_scales(sizes)[:, None]
        scales = hyper.scales(sizes)[:, None]
        centered = masks - sizes[:, None] / n
        return cls(
            sizes=sizes,
            log_sizes=hyper.log_sizes(sizes),
            is_size=(sizes[:, None] == all_sizes).astype(np.float64),
            inputs=input_scales * masks,
            effects=scales * input_scales * centered,
        )


def _weights_of_effects(hyper):
    """What a main effect of each player counts in the covariance, (n,)."""
    return hyper.main_variance * hyper.relevance / (hyper.n / 4)


def _rates(hyper):
    """What the distance of each player's inputs counts in the products, (n,)."""
    return hyper.product_rate * hyper.relevance / (hyper.n / 2)


def _sizes_and_main(members, hyper):
    """The terms of sizes and of main effects in the covariance matrix, (m, m).

    Both are products of matrices with a few columns.
    """
    all_sizes = np.arange(1, hyper.n + 1)
    of_size = hyper.of_sizes(members.sizes, all_sizes)
    weighted = members.effects * _weights_of_effects(hyper)
    left = np.hstack([of_size, weighted])
    right = np.hstack([members.is_size, members.effects])
    return left @ right.T


def _products(members, hyper):
    """The term of interactions in the covariance matrix, (m, m).

    Its logarithm is a product of matrices with a few columns: distances are norms less
    twice inner products.
    """
    rates = _rates(hyper)
    inputs = members.inputs
    log_scales = np.log(hyper.scales(members.sizes))
    levels = 0.5 * np.log(hyper.product_variance) + log_scales - inputs**2 @ rates
    ones = np.ones(len(inputs))
    left = np.column_stack([2 * rates * inputs, levels, ones])
    right = np.column_stack([inputs, ones, levels])
    logs = left @ right.T
    return np.exp(logs, out=logs)


def covariance(masks, hyper):
    """Covariance matrix, (m, m), of the utilities of m different coalitions, (m, n)."""
    matrix = noiseless_covariance(masks, hyper)
    matrix[np.diag_indices_from(matrix)] += hyper.noise(masks.sum(axis=1))
    return matrix


def noiseless_covariance(masks, hyper):
    """As `covariance`, without the white noise."""
    members = _Members.of(masks, hyper)
    matrix = _products(members, hyper)
    matrix += _sizes_and_main(members, hyper)
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
    members = _Members.of(masks, hyper)
    noise = hyper.noise(members.sizes)
    products = _products(members, hyper)
    matrix = _sizes_and_main(members, hyper)
    matrix += products
    matrix[np.diag_indices_from(matrix)] += noise + JITTER

    # LAPACK works in place, in the lower triangle of columns that are contiguous.
    factor, info = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return _IMPOSSIBLE, np.zeros(len(vector))
    alpha, _ = dpotrs(factor, z, lower=1)
    half_log_determinant = np.log(np.diag(factor)).sum()
    deviations = (vector - prior.mean) / prior.sd
    value = 0.5 * z @ alpha + half_log_determinant + 0.5 * deviations @ deviations

    # The derivatives by the entries of the matrix: half of its inverse less alpha
    # alpha'. They are symmetric, and only their lower triangle is there.
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    by_matrix = dsyr(-1.0, alpha, lower=1, a=inverse, overwrite_a=1)
    by_matrix *= 0.5
    by_noise = np.diag(by_matrix) * noise

    # What they add up to with each size, and with the main effects of each player.
    columns = np.hstack([members.is_size, members.effects])
    sums = dsymm(1.0, by_matrix, columns, lower=1)
    n = hyper.n
    by_pair_of_sizes = members.is_size.T @ sums[:, :n]
    by_main = _weights_of_effects(hyper) * members.effects * sums[:, n:]

    # The same of interactions: of each coalition, and by the inputs of each player.
    by_matrix *= products.T
    inputs = members.inputs
    columns = np.column_stack([np.ones(len(z)), inputs])
    sums = dsymm(1.0, by_matrix, columns, lower=1)
    by_products = sums[:, 0]
    by_moves = inputs * (by_products[:, None] * inputs - sums[:, 1:]) * _rates(hyper)

    # Scales are powers of sizes, as inputs are: derivatives by exponents are sums of
    # the others times log sizes.
    log_sizes = members.log_sizes
    all_sizes = np.arange(1, n + 1)
    gaps = hyper.log_sizes(all_sizes)[:, None] - hyper.log_sizes(all_sizes)
    without_level = hyper.of_sizes(all_sizes, all_sizes) - _LEVEL_VARIANCE
    by_sizes = by_pair_of_sizes * without_level
    by_main_of_coalition = by_main.sum(axis=1)
    by_effects = by_main_of_coalition + by_products
    by_inputs = 2 * by_moves.sum(axis=1) - by_main_of_coalition
    of_players = by_main.sum(axis=0) - 2 * by_moves.sum(axis=0)

    shared = {
        "size_variance": by_sizes.sum(),
        "size_length": (by_sizes * (gaps / hyper.size_length) ** 2).sum(),
        "scale_exponent": -2 * log_sizes @ by_effects,
        "input_exponent": 2 * log_sizes @ by_inputs,
        "main_variance": by_main.sum(),
        "product_variance": by_products.sum(),
        "product_rate": -2 * by_moves.sum(),
        "noise_variance": by_noise.sum(),
        "noise_exponent": -2 * log_sizes @ by_noise,
    }
    by_shared = [shared[name] for name in _PRIOR]
    gradient = np.concatenate([by_shared, of_players])
    return value, gradient + deviations / prior.sd
