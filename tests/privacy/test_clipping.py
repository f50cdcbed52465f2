"""The norm bound of clipped rows holds in exact arithmetic."""

import numpy as np
import pytest

from skvalue.privacy import clip_rows, clipping_margin


def exact(number):
    """A float as a whole number of smallest subnormals."""
    numerator, denominator = float(number).as_integer_ratio()
    return numerator * (2**1074 // denominator)


def squared_norm(row):
    return sum(exact(entry) ** 2 for entry in row)


def hard_rows(rng, d, max_norm, dtype):
    """Random rows, rows within rounding of the bound, and rows at ends of the dtype."""
    info = np.finfo(dtype)
    row_scales = 10.0 ** rng.uniform(-6, 6, (30, 1))
    random = rng.standard_normal((30, d)) * row_scales * max_norm
    entry_scales = 10.0 ** rng.uniform(-12, 3, (20, d))
    mixed = rng.standard_normal((20, d)) * entry_scales * max_norm
    near = rng.standard_normal((60, d))
    near *= max_norm / np.linalg.norm(near, axis=1, keepdims=True)
    near *= 1 + info.eps * rng.integers(-4 * d - 40, 4, (60, 1))
    even = np.full((1, d), max_norm / d**0.5)
    ends = [
        rng.choice([-1, 1], (3, d)) * float(end) * rng.uniform(0.1, 1, (3, d))
        for end in (info.max, info.tiny, info.smallest_subnormal)
    ]
    X = np.concatenate([random, mixed, near, even, *ends, np.zeros((1, d))])
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    return X[np.isfinite(X).all(axis=1)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("d", "order"), [(1, "C"), (2, "C"), (3, "F"), (17, "C"), (200, "F")]
)
def test_no_clipped_row_is_longer_than_the_bound(d, dtype, order, rng):
    tiny = float(np.finfo(dtype).tiny) * d**0.5
    norms = (1.0, 0.1, 7.3, np.float32(0.3), 1e-6, 1e20, 1.0000001 * tiny)
    for max_norm in norms if d < 100 else norms[::5]:
        X = np.asarray(hard_rows(rng, d, max_norm, dtype), order=order)
        clipped = clip_rows(X, max_norm)
        assert clipped.dtype == dtype
        assert max(map(squared_norm, clipped)) <= exact(max_norm) ** 2
        divisor = dtype(max_norm) if dtype(max_norm) == max_norm else max_norm
        assert max(map(squared_norm, clipped / divisor)) <= exact(1) ** 2
        np.testing.assert_array_equal(clip_rows(clipped, max_norm), clipped)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_long_rows_change_and_they_keep_their_direction(dtype, rng):
    X = rng.standard_normal((200, 6)).astype(dtype)
    norms = np.linalg.norm(X.astype(float), axis=1)
    margin = clipping_margin(6, dtype)
    clipped = clip_rows(X, 2.0)
    is_short = norms < 2 - 2 * margin
    np.testing.assert_array_equal(clipped[is_short], X[is_short])
    is_long = norms > 2
    expected = X[is_long] * (2 / norms[is_long])[:, None]
    np.testing.assert_allclose(clipped[is_long], expected, rtol=2 * margin)
    assert is_long.sum() > 20


def test_without_a_bound_rows_stay():
    X = np.array([[3, 4]])
    np.testing.assert_array_equal(clip_rows(X, None), [[3.0, 4.0]])


def test_margin_is_small_where_rows_are_of_usual_length():
    assert clipping_margin(1000) < 3e-13
    assert clipping_margin(1000, np.float32) < 3e-7
