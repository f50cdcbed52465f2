"""Distances between data sets, given their means and covariances.

All functions take stacks: means of shape (..., d) and covariances of shape (..., d, d),
with leading axes that broadcast.
"""

import numpy as np

# Fraction of the traces below which a difference of sums cancels.
_CANCELLATION = 1e-4


def psd_factor(covariance):
    """A factor B (..., d, d) of the nearest positive semidefinite matrix B B'.

    Eigenvalues below rounding error become zero, since their square roots would not be
    negligible.

    >>> psd_factor([[4.0, 0.0], [0.0, -1.0]]) ** 2
    array([[0., 4.],
           [0., 0.]])
    """
    values, vectors = _eigen(_square(covariance))
    return vectors * np.sqrt(values)[..., None, :]


def _eigen(matrix):
    """Eigenvalues (..., d), those below rounding error as zero, and eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    rounding = values.shape[-1] * np.finfo(float).eps * largest
    return np.where(values > rounding, values, 0.0), vectors


def wasserstein(mean, covariance, mean_other, covariance_other):
    """2-Wasserstein distance between Gaussian distributions.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance, of any rank; negative eigenvalues become zero.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Mean and covariance of the other distribution.

    Returns
    -------
    distance : ndarray of shape (...)
        Distances, in the units of the data.

    Raises
    ------
    ValueError
        If shapes do not match, or there is NaN or infinity.

    References
    ----------
    C. Givens, R. Shortt: "A class of Wasserstein metrics for probability
    distributions", Michigan Math. J. 1984; the paper of PriArTa, equation 1. It is
    computed from singular values of a product of factors, or, for small distances, from
    a residual without cancellation.

    Examples
    --------
    >>> import numpy as np
    >>> wasserstein([0.0, 0.0], np.eye(2), [3.0, 0.0], np.diag([1.0, 0.0])).round(6)
    np.float64(3.162278)
    """
    mean, covariance = _moments(mean, covariance)
    mean_other, covariance_other = _moments(mean_other, covariance_other)
    return factored_wasserstein(
        mean, psd_factor(covariance), mean_other, psd_factor(covariance_other)
    )


def factored_wasserstein(mean, factor, mean_other, factor_other):
    """`wasserstein` distance, with covariances B B' given by factors B (..., d, d)."""
    cross = np.swapaxes(factor, -1, -2) @ factor_other
    total = (factor**2).sum(axis=(-1, -2)) + (factor_other**2).sum(axis=(-1, -2))
    fidelity = np.linalg.svd(cross, compute_uv=False).sum(axis=-1)
    bures = np.atleast_1d(total - 2 * fidelity)

    # Small differences cancel, and are computed from residuals.
    is_small = bures <= _CANCELLATION * np.atleast_1d(total)
    if is_small.any():
        shape = bures.shape + factor.shape[-2:]
        residual = _residual(
            np.broadcast_to(factor, shape)[is_small],
            np.broadcast_to(factor_other, shape)[is_small],
        )
        bures[is_small] = (residual**2).sum(axis=(-1, -2))
    shift = ((mean - mean_other) ** 2).sum(axis=-1)
    return np.sqrt(shift + bures.reshape(np.shape(total)))


def _residual(factor, factor_other):
    """A - B Q (..., d, d), for the rotation Q that minimizes its norm.

    The norm is the Bures distance of A A' and B B'.
    """
    left, _, right = np.linalg.svd(np.swapaxes(factor, -1, -2) @ factor_other)
    return factor - factor_other @ np.swapaxes(left @ right, -1, -2)


def principal_contributions(mean, covariance, mean_other, covariance_other, axes):
    """Squared 2-Wasserstein distance by direction.

    The contribution of a direction is the mean squared displacement x - T(x) along it,
    where T is the optimal transport map.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Mean and covariance of the other distribution.
    axes : array-like of shape (d, d)
        Orthonormal directions, one per row.

    Returns
    -------
    contributions : ndarray of shape (..., 2, d)
        Contributions of the shift of the mean and of the change of the covariance. They
        are not negative and sum to the squared distance.

    Raises
    ------
    ValueError
        If shapes do not match, or there is NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> contributions = principal_contributions(
    ...     [0.0, 0.0], np.eye(2), [3.0, 0.0], np.diag([1.0, 4.0]), np.eye(2)
    ... )
    >>> contributions.round(6) + 0.0
    array([[9., 0.],
           [0., 1.]])
    """
    mean, covariance = _moments(mean, covariance)
    mean_other, covariance_other = _moments(mean_other, covariance_other)
    axes = np.asarray(axes, dtype=np.float64)
    moved = axes @ _residual(psd_factor(covariance), psd_factor(covariance_other))
    bures = (moved**2).sum(axis=-1)
    shift = ((mean - mean_other) @ axes.T) ** 2
    return np.stack(np.broadcast_arrays(shift, bures), axis=-2)


def symmetric_kl(mean, covariance, mean_other, covariance_other, *, ridge=0.0):
    """Jeffreys divergence between Gaussian distributions.

    It is the sum of the Kullback-Leibler divergences in both directions.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance; negative eigenvalues become zero.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Mean and covariance of the other distribution.
    ridge : float, default=0.0
        Number added to every eigenvalue of both covariances; without it, the divergence
        is infinite if one of them is singular.

    Returns
    -------
    divergence : ndarray of shape (...)
        Divergences, in nats.

    Raises
    ------
    ValueError
        If shapes do not match, `ridge` is negative, or there is NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> symmetric_kl([0.0], [[1.0]], [1.0], [[1.0]])
    np.float64(1.0)
    """
    if not 0 <= ridge < np.inf:
        raise ValueError(
            "ridge must be a finite number, and not negative, since it is added to "
            f"eigenvalues. Got {ridge!r}."
        )
    mean, covariance = _moments(mean, covariance)
    mean_other, covariance_other = _moments(mean_other, covariance_other)
    matrix, inverse, is_regular = _ridged(covariance, ridge)
    matrix_other, inverse_other, is_regular_other = _ridged(covariance_other, ridge)
    d = mean.shape[-1]
    shift = mean - mean_other
    traces = np.einsum("...ij,...ji->...", inverse_other, matrix)
    traces = traces + np.einsum("...ij,...ji->...", inverse, matrix_other)
    distance = np.einsum("...i,...ij,...j->...", shift, inverse + inverse_other, shift)
    divergence = 0.5 * np.maximum(traces - 2 * d + distance, 0.0)
    return np.where(is_regular & is_regular_other, divergence, np.inf)[()]


def _ridged(covariance, ridge):
    """A covariance (..., d, d) plus ridge, its inverse, and whether it is regular."""
    values, vectors = _eigen(covariance)
    values = (values + ridge)[..., None, :]
    is_regular = (values > 0).all(axis=(-1, -2))
    transposed = np.swapaxes(vectors, -1, -2)
    matrix = (vectors * values) @ transposed
    inverse = (vectors / np.where(values > 0, values, 1.0)) @ transposed
    return matrix, inverse, is_regular


def diversity_relevance(covariance, covariance_other, *, threshold=0.01):
    """Diversity and relevance of a seller's data for a buyer, by covariances alone.

    Let u be a principal direction of the buyer with variance v, and w the norm of S u,
    where S is the seller's covariance. Diversity is the geometric mean of ``|v - w| /
    max(v, w)`` over the directions, relevance that of ``min(v, w) / max(v, w)``. They
    are the baselines of the paper of PriArTa. A shift of the mean changes neither, and
    a single direction in which both variances are equal makes diversity zero.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of the buyer's rows.
    covariance_other : array-like of shape (..., d, d)
        Covariances of the sellers' rows.
    threshold : float, default=0.01
        Directions with a variance below this fraction of the buyer's largest are left
        out.

    Returns
    -------
    diversity, relevance : ndarray of shape (...)
        Numbers in [0, 1] that sum to at most 1.

    Raises
    ------
    ValueError
        If shapes do not match, `threshold` is outside [0, 1), the buyer's covariance is
        zero, or there is NaN or infinity.

    References
    ----------
    M. Mohammadi Amiri, F. Berdoz, R. Raskar: "Fundamentals of Task-Agnostic Data
    Valuation", AAAI 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.priarta import diversity_relevance
    >>> diversity, relevance = diversity_relevance(np.eye(2), np.diag([0.5, 0.25]))
    >>> float(diversity.round(3)), float(relevance.round(3))
    (0.612, 0.354)
    """
    if not 0 <= threshold < 1:
        raise ValueError(
            "threshold must be in [0, 1), since it is a fraction of the largest "
            f"variance. Got {threshold!r}."
        )
    covariance = _square(covariance)
    covariance_other = _square(covariance_other)
    if covariance.shape != covariance_other.shape[-2:]:
        raise ValueError(
            "covariance_other must hold matrices of the shape of covariance, "
            f"{covariance.shape}. Got {covariance_other.shape}."
        )
    values, vectors = _eigen(covariance)
    if values.max() <= 0:
        raise ValueError(
            "covariance must have a positive eigenvalue: there is no direction to "
            "compare. Got none."
        )
    is_active = values > threshold * values.max()
    buyer = values[is_active]
    seller = np.linalg.norm(covariance_other @ vectors[:, is_active], axis=-2)
    larger = np.maximum(buyer, seller)
    with np.errstate(divide="ignore"):
        log_gaps = np.log(np.abs(buyer - seller) / larger)
        log_ratios = np.log(np.minimum(buyer, seller) / larger)
    return np.exp(log_gaps.mean(axis=-1)), np.exp(log_ratios.mean(axis=-1))


def _square(matrix):
    """Square matrices (..., d, d) of finite numbers, made symmetric."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(
            f"covariance must be square matrices. Got shape {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("covariance must hold finite numbers. Got NaN or infinity.")
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _moments(mean, covariance):
    """Means (..., d) and covariances (..., d, d), checked."""
    covariance = _square(covariance)
    mean = np.asarray(mean, dtype=np.float64)
    if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
        raise ValueError(
            f"mean must have {covariance.shape[-1]} entries, as covariance has rows. "
            f"Got shape {mean.shape}."
        )
    if not np.isfinite(mean).all():
        raise ValueError("mean must hold finite numbers. Got NaN or infinity.")
    return mean, covariance
