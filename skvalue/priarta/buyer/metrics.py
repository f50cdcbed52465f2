"""Distances between data sets, given their means and covariances.

All functions take stacks: means of shape (..., d) and covariances of shape (..., d, d),
with leading axes that broadcast.
"""

import numpy as np

_RESIDUAL_BELOW = (
    1e-4  # fraction of the traces below which a difference of sums cancels
)


def psd_factor(covariance):
    """A factor B such that B B' is the nearest positive semidefinite matrix; (..., d,
    d).

    Eigenvalues below rounding error become zero, since their square roots would not be
    negligible.

    >>> psd_factor([[4.0, 0.0], [0.0, -1.0]]) ** 2
    array([[0., 4.],
           [0., 0.]])
    """
    values, vectors = _eigen(_square(covariance))
    return vectors * np.sqrt(values)[..., None, :]


def _eigen(matrix):
    """Eigenvalues, those below rounding error as zero, and eigenvectors."""
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
    C. Givens, R. Shortt: "A class of Wasserstein metrics for probability distributions", Michigan
    Math. J. 1984; the paper of PriArTa, equation 1. It is computed from singular values of a
    product of factors, or, for small distances, from a residual without cancellation.

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
    """`wasserstein` distance with covariances given by factors B of B B', (..., d,
    d)."""
    cross = np.swapaxes(factor, -1, -2) @ factor_other
    total = (factor**2).sum(axis=(-1, -2)) + (factor_other**2).sum(axis=(-1, -2))
    bures = np.atleast_1d(
        total - 2 * np.linalg.svd(cross, compute_uv=False).sum(axis=-1)
    )
    close = bures <= _RESIDUAL_BELOW * np.atleast_1d(total)
    if close.any():
        shape = bures.shape + factor.shape[-2:]
        first, second = (
            np.broadcast_to(part, shape)[close] for part in (factor, factor_other)
        )
        bures[close] = (_residual(first, second) ** 2).sum(axis=(-1, -2))
    shift = ((mean - mean_other) ** 2).sum(axis=-1)
    return np.sqrt(shift + bures.reshape(np.shape(total)))


def _residual(factor, factor_other):
    """A - B Q with the rotation Q that minimizes its norm, the Bures distance."""
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
    >>> parts = principal_contributions(
    ...     [0.0, 0.0], np.eye(2), [3.0, 0.0], np.diag([1.0, 4.0]), np.eye(2)
    ... )
    >>> parts.round(6) + 0.0
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
    """Jeffreys divergence between Gaussian distributions: the sum of KL in both
    directions.

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
        raise ValueError(f"ridge must be a finite number, not negative. Got {ridge!r}.")
    mean, covariance = _moments(mean, covariance)
    mean_other, covariance_other = _moments(mean_other, covariance_other)
    shift, d, whole, pair = mean - mean_other, mean.shape[-1], True, []
    for matrix in (covariance, covariance_other):
        values, vectors = _eigen(matrix)
        values = (values + ridge)[..., None, :]
        whole = whole & (values > 0).all(axis=(-1, -2))
        inverse = vectors / np.where(values > 0, values, 1.0)
        pair.append(
            [
                part @ np.swapaxes(vectors, -1, -2)
                for part in (vectors * values, inverse)
            ]
        )
    (first, inverse), (second, inverse_other) = pair
    traces = np.einsum("...ij,...ji->...", inverse_other, first)
    traces = traces + np.einsum("...ij,...ji->...", inverse, second)
    distance = np.einsum("...i,...ij,...j->...", shift, inverse + inverse_other, shift)
    divergence = 0.5 * np.maximum(traces - 2 * d + distance, 0.0)
    return np.where(whole, divergence, np.inf)[()]


def _square(matrix):
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(
            f"covariance must be square matrices. Got shape {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("covariance must hold finite numbers. Got NaN or infinity.")
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _moments(mean, covariance):
    covariance = _square(covariance)
    mean = np.asarray(mean, dtype=np.float64)
    if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
        raise ValueError(
            f"mean must have {covariance.shape[-1]} entries, as covariance has rows. Got shape "
            f"{mean.shape}."
        )
    if not np.isfinite(mean).all():
        raise ValueError("mean must hold finite numbers. Got NaN or infinity.")
    return mean, covariance
