"""Distances between data sets that are known by their means and covariances.

All functions take stacks: a mean of shape (..., d) and a covariance of shape (..., d, d), whose
leading axes are broadcast.
"""

import numpy as np

_RESIDUAL_BELOW = 1e-4  # share of the traces below which a difference of sums has lost its digits


def psd_factor(covariance):
    """A factor B with B B' the nearest positive semidefinite matrix.

    Eigenvalues that rounding cannot tell from zero are zero: their square roots would be a hundred
    million times as large as themselves.

    Parameters
    ----------
    covariance : array-like of shape (..., d, d)
        Symmetric matrices; negative eigenvalues (as noise makes them) become zero.

    Returns
    -------
    factor : ndarray of shape (..., d, d)
        Eigenvectors times square roots of eigenvalues.

    Raises
    ------
    ValueError
        If the matrices are not square, or hold NaN or infinity.

    Examples
    --------
    >>> psd_factor([[4.0, 0.0], [0.0, -1.0]]) ** 2
    array([[0., 4.],
           [0., 0.]])
    """
    values, vectors = np.linalg.eigh(_square(covariance))
    largest = np.abs(values).max(axis=-1, keepdims=True)
    rounding = values.shape[-1] * np.finfo(float).eps * largest
    return vectors * np.sqrt(np.where(values > rounding, values, 0.0))[..., None, :]


def wasserstein(mean, covariance, mean_other, covariance_other):
    """2-Wasserstein distance of Gaussian distributions.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance, of any rank; what is negative is cut off.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Those of the other.

    Returns
    -------
    distance : ndarray of shape (...)
        In the units of the data.

    Raises
    ------
    ValueError
        If shapes do not fit, or NaN or infinity is among the numbers.

    References
    ----------
    C. Givens, R. Shortt: "A class of Wasserstein metrics for probability distributions", Michigan
    Math. J. 1984; the paper of PriArTa, equation 1. Sums of singular values of a product of factors
    are used, and where the distance is small its residual, so that no digits are lost.

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
    """`wasserstein` of covariances that are given by factors.

    Parameters
    ----------
    mean, mean_other : ndarray of shape (..., d)
        Means.
    factor, factor_other : ndarray of shape (..., d, d)
        B of a covariance B B'.

    Returns
    -------
    distance : ndarray of shape (...)
        The distances.
    """
    cross = np.swapaxes(factor, -1, -2) @ factor_other
    total = (factor**2).sum(axis=(-1, -2)) + (factor_other**2).sum(axis=(-1, -2))
    bures = np.atleast_1d(total - 2 * np.linalg.svd(cross, compute_uv=False).sum(axis=-1))
    close = bures <= _RESIDUAL_BELOW * np.atleast_1d(total)
    if close.any():
        shape = bures.shape + factor.shape[-2:]
        first, second = (np.broadcast_to(part, shape)[close] for part in (factor, factor_other))
        bures[close] = (_residual(first, second) ** 2).sum(axis=(-1, -2))
    shift = ((mean - mean_other) ** 2).sum(axis=-1)
    return np.sqrt(shift + bures.reshape(np.shape(total)))


def _residual(factor, factor_other):
    """A - B Q with the rotation Q that makes it smallest: its squared norm is the distance's."""
    left, _, right = np.linalg.svd(np.swapaxes(factor, -1, -2) @ factor_other)
    return factor - factor_other @ np.swapaxes(left @ right, -1, -2)


def principal_contributions(mean, covariance, mean_other, covariance_other, axes):
    """Squared Wasserstein distance, divided among directions.

    The optimal transport moves a point by x - T(x); its mean square along each of orthonormal
    directions is what that direction contributes.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Those of the other.
    axes : array-like of shape (d, d)
        Orthonormal directions, one a row.

    Returns
    -------
    contributions : ndarray of shape (..., 2, d)
        Of the shift of the mean, and of the change of spread; not negative. They sum to the
        squared distance.

    Raises
    ------
    ValueError
        If shapes do not fit, or NaN or infinity is among the numbers.

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
    """Jeffreys divergence of Gaussian distributions: KL one way plus KL the other way.

    Parameters
    ----------
    mean : array-like of shape (..., d)
        Mean of one distribution.
    covariance : array-like of shape (..., d, d)
        Its covariance; what is negative is cut off.
    mean_other, covariance_other : array-like of shape (..., d), (..., d, d)
        Those of the other.
    ridge : float, default=0.0
        Added to every eigenvalue of both; without it the divergence is infinite where a covariance
        has no full rank.

    Returns
    -------
    divergence : ndarray of shape (...)
        In nats.

    Raises
    ------
    ValueError
        If shapes do not fit, ridge is negative, or NaN or infinity is among the numbers.

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
    d = mean.shape[-1]
    first, second, whole = [], [], True
    for matrix, places in ((covariance, first), (covariance_other, second)):
        values, vectors = np.linalg.eigh(matrix)
        rounding = d * np.finfo(float).eps * np.abs(values).max(axis=-1, keepdims=True)
        values = np.where(values > rounding, values, 0.0) + ridge
        whole = whole & (values > 0).all(axis=-1)
        safe = np.where(values > 0, values, 1.0)
        scaled = np.swapaxes(vectors, -1, -2)
        places += [
            (vectors * values[..., None, :]) @ scaled,
            (vectors / safe[..., None, :]) @ scaled,
        ]
    traces = sum(
        np.einsum("...ij,...ji->...", inverse, matrix)
        for inverse, matrix in ((second[1], first[0]), (first[1], second[0]))
    )
    shift = mean - mean_other
    distance = np.einsum("...i,...ij,...j->...", shift, first[1] + second[1], shift)
    divergence = 0.5 * np.maximum(traces - 2 * d + distance, 0.0)
    return np.where(whole, divergence, np.inf)[()]


def diversity_relevance(covariance, covariance_other, *, threshold=0.01):
    """Diversity and relevance of a seller's data for a buyer, a baseline without means.

    Along the buyer's principal directions u of variance v the seller's data have w, the length of
    S u, S being their covariance. Diversity is the geometric mean of ``|v - w| / max(v, w)`` over
    the directions, relevance that of ``min(v, w) / max(v, w)``.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        The buyer's.
    covariance_other : array-like of shape (..., d, d)
        The sellers'.
    threshold : float, default=0.01
        Directions in which the buyer has less than this share of its largest variance are left out.

    Returns
    -------
    diversity, relevance : ndarray of shape (...)
        In [0, 1]; they sum to at most 1.

    Raises
    ------
    ValueError
        If shapes do not fit, threshold is outside [0, 1), or the buyer's data do not vary.

    References
    ----------
    M. Mohammadi Amiri, F. Berdoz, R. Raskar: "Fundamentals of Task-Agnostic Data Valuation", AAAI
    2023.

    Examples
    --------
    >>> import numpy as np
    >>> diversity, relevance = diversity_relevance(np.eye(2), np.diag([1.0, 0.25]))
    >>> float(diversity), float(relevance)
    (0.0, 0.5)
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold must be in [0, 1). Got {threshold!r}.")
    covariance, covariance_other = _square(covariance), _square(covariance_other)
    if covariance.shape != covariance_other.shape[-2:]:
        raise ValueError(
            "covariance_other must hold matrices of the shape of covariance "
            f"{covariance.shape}. Got {covariance_other.shape}."
        )
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(threshold, values.size * np.finfo(float).eps) * values.max()
    if not kept.any() or values.max() <= 0:
        raise ValueError("covariance must have a positive eigenvalue. Got none.")
    buyer = values[kept]
    seller = np.linalg.norm(covariance_other @ vectors[:, kept], axis=-2)
    larger = np.maximum(buyer, seller)
    with np.errstate(divide="ignore"):
        diversity = np.exp(np.log(np.abs(buyer - seller) / larger).mean(axis=-1))
        relevance = np.exp(np.log(np.minimum(buyer, seller) / larger).mean(axis=-1))
    return diversity, relevance


def min_max(scores):
    """Scores on the scale from 0, the least of them, to 1, the largest.

    Parameters
    ----------
    scores : array-like
        Finite numbers.

    Returns
    -------
    scaled : ndarray
        In the shape of `scores`; zeros where all are equal.

    Examples
    --------
    >>> min_max([1.0, 2.0, 5.0])
    array([0.  , 0.25, 1.  ])
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.size == 0:
        return scores
    span = scores.max() - scores.min()
    return (scores - scores.min()) / (span if span > 0 else 1.0)


def _square(matrix):
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(f"covariance must be square matrices. Got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError("covariance must hold finite numbers. Got NaN or infinity.")
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _moments(mean, covariance):
    covariance = _square(covariance)
    mean = np.asarray(mean, dtype=np.float64)
    if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
        raise ValueError(
            f"mean must have {covariance.shape[-1]} entries, as the covariance has rows. Got shape "
            f"{mean.shape}."
        )
    if not np.isfinite(mean).all():
        raise ValueError("mean must hold finite numbers. Got NaN or infinity.")
    return mean, covariance
