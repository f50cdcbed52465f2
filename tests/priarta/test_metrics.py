"""Closed forms against independent implementations, also where covariances have no full
rank."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

from skvalue.priarta import principal_contributions, symmetric_kl, wasserstein
from skvalue.priarta.buyer import psd_factor


def covariance(rng, d, rank):
    factor = rng.normal(size=(d, rank))
    return factor @ factor.T


def by_sqrtm(m1, S1, m2, S2):
    root = sqrtm(S1)
    cross = sqrtm(root @ S2 @ root)
    square = (
        np.sum((m1 - m2) ** 2) + np.trace(S1) + np.trace(S2) - 2 * np.trace(cross).real
    )
    return np.sqrt(max(square, 0.0))


def by_mpmath(m1, F1, m2, F2):
    """From factors, in 40 digits: the singular values of F1' F2."""
    with mpmath.workdps(40):
        A, B = mpmath.matrix(F1.tolist()), mpmath.matrix(F2.tolist())
        nuclear = mpmath.fsum(mpmath.svd_r(A.T * B, compute_uv=False))
        shift = mpmath.fsum(
            (mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(m1, m2)
        )
        traces = mpmath.fsum(x**2 for x in A) + mpmath.fsum(x**2 for x in B)
        return float(mpmath.sqrt(max(shift + traces - 2 * nuclear, mpmath.mpf(0))))


@pytest.mark.parametrize("d", [1, 2, 7, 20])
def test_wasserstein_equals_matrix_roots(rng, d):
    S1, S2 = (covariance(rng, d, d + 3) for _ in range(2))
    m1, m2 = rng.normal(size=(2, d))
    assert wasserstein(m1, S1, m2, S2) == pytest.approx(
        by_sqrtm(m1, S1, m2, S2), abs=1e-8
    )


@pytest.mark.parametrize("ranks", [(6, 2), (2, 6), (1, 1), (3, 3), (4, 6)])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_wasserstein_without_full_rank(rng, ranks, scale):
    F1, F2 = (scale * rng.normal(size=(6, rank)) for rank in ranks)
    m1, m2 = scale * rng.normal(size=(2, 6))
    found = wasserstein(m1, F1 @ F1.T, m2, F2 @ F2.T)
    assert found == pytest.approx(by_mpmath(m1, F1, m2, F2), abs=1e-8)


@pytest.mark.parametrize("step", [0.0, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("rank", [3, 5])
def test_wasserstein_keeps_digits_where_it_is_small(rng, step, rank):
    # A difference of traces would be wrong by the square root of the rounding error,
    # 1e-8.
    F1 = rng.normal(size=(5, rank))
    F2 = F1 + step * rng.normal(size=(5, rank))
    m = np.zeros(5)
    found, true = wasserstein(m, F1 @ F1.T, m, F2 @ F2.T), by_mpmath(m, F1, m, F2)
    assert found == pytest.approx(true, rel=1e-6, abs=1e-8)


def test_wasserstein_of_points_and_one_axis():
    assert (
        wasserstein([0.0, 0.0], np.zeros((2, 2)), [3.0, 4.0], np.zeros((2, 2))) == 5.0
    )
    assert wasserstein([0.0], [[4.0]], [0.0], [[9.0]]) == pytest.approx(1.0)


def test_wasserstein_of_stacks(rng):
    stack = np.array([covariance(rng, 4, r) for r in (2, 3, 4, 4)]).reshape(2, 2, 4, 4)
    means = rng.normal(size=(2, 2, 4))
    S, m = covariance(rng, 4, 4), np.zeros(4)
    found = wasserstein(m, S, means, stack)
    assert found.shape == (2, 2)
    for place in np.ndindex(2, 2):
        assert found[place] == pytest.approx(
            wasserstein(m, S, means[place], stack[place])
        )
    assert wasserstein(means, stack, m, S) == pytest.approx(found)


def test_contributions_sum_to_the_square(rng):
    S1, S2 = covariance(rng, 5, 3), covariance(rng, 5, 4)
    m1, m2 = rng.normal(size=(2, 5))
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0].T
    parts = principal_contributions(m1, S1, m2, S2, axes)
    assert parts.shape == (2, 5)
    assert parts.min() >= 0
    assert parts.sum() == pytest.approx(wasserstein(m1, S1, m2, S2) ** 2, rel=1e-9)
    assert parts[0] == pytest.approx((axes @ (m1 - m2)) ** 2)
    # Commuting covariances: each axis has the distance of its own standard deviations.
    S1, S2 = np.diag([1.0, 4.0]), np.diag([9.0, 0.0])
    parts = principal_contributions([0, 0], S1, [0, 0], S2, np.eye(2))
    assert parts[1] == pytest.approx([4.0, 4.0])


def test_symmetric_kl_is_that_of_the_densities(rng):
    S1, S2 = covariance(rng, 2, 5), covariance(rng, 2, 5)
    m1, m2 = rng.normal(size=(2, 2))
    p, q = multivariate_normal(m1, S1), multivariate_normal(m2, S2)
    x, y = (each.rvs(200_000, random_state=1) for each in (p, q))
    by_draws = np.mean(p.logpdf(x) - q.logpdf(x)) + np.mean(q.logpdf(y) - p.logpdf(y))
    assert symmetric_kl(m1, S1, m2, S2) == pytest.approx(by_draws, rel=0.03)
    assert symmetric_kl(m2, S2, m1, S1) == pytest.approx(symmetric_kl(m1, S1, m2, S2))
    assert symmetric_kl(m1, S1, m1, S1) == pytest.approx(0, abs=1e-12)


def test_symmetric_kl_without_full_rank():
    flat = np.diag([1.0, 0.0])
    assert symmetric_kl([0, 0], flat, [0, 0], np.eye(2)) == np.inf
    found = symmetric_kl([0, 0], flat, [0, 0], np.eye(2), ridge=0.5)
    assert found == pytest.approx(0.5 * (0.5 / 1.5 + 1.5 / 0.5 + 2) - 2)


def test_factor_is_the_nearest(rng):
    noisy = np.diag([2.0, -1.0, 0.0])
    factor = psd_factor(noisy)
    assert factor @ factor.T == pytest.approx(np.diag([2.0, 0.0, 0.0]))
    for _ in range(50):
        other = covariance(rng, 3, 3) * rng.uniform(0, 1)
        assert np.linalg.norm(other - noisy) >= 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: psd_factor(np.ones((2, 3))),
            "covariance must be square matrices. Got shape",
        ),
        (
            lambda: psd_factor([[np.nan]]),
            "covariance must hold finite numbers. Got NaN",
        ),
        (lambda: wasserstein([0, 0], [[1]], [0], [[1]]), "mean must have 1 entries"),
        (
            lambda: wasserstein([np.inf], [[1]], [0], [[1]]),
            "mean must hold finite numbers",
        ),
        (
            lambda: symmetric_kl([0], [[1]], [0], [[1]], ridge=-1),
            "ridge must be a finite number",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
