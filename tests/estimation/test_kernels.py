"""Compiled loops of control variates by themselves, against plain Python."""

import numpy as np
import pytest
from skvalue.estimation.adjusting.neighbors_kernels import add_over_points, soft_knn
from skvalue.estimation.adjusting.sums_kernels import (
    column_means,
    count_functions,
    members_of,
)

# Around the number of bits of a word.
each_number_of_rows = pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
each_number_of_coalitions = pytest.mark.parametrize("n_masks", [0, 1, 9])
LAYOUTS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every second column": lambda masks: np.repeat(masks, 2, axis=1)[:, ::2],
    "reversed rows": lambda masks: np.ascontiguousarray(masks[::-1])[::-1],
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def some_coalitions(rng, n_masks, n, layout="C order"):
    """Coalitions of few, half and all players; none is empty."""
    masks = rng.random((n_masks, n)) < rng.choice([0.1, 0.5, 1.0], (n_masks, 1))
    masks[:, rng.integers(n)] = True
    return LAYOUTS[layout](masks)


@each_layout
@each_number_of_coalitions
@each_number_of_rows
def test_members_are_those_of_the_masks(n, n_masks, layout, rng):
    masks = some_coalitions(rng, n_masks, n, layout)
    starts, members = members_of(masks)
    assert len(starts) == n_masks + 1
    for mask, start, stop in zip(masks, starts, starts[1:]):
        np.testing.assert_array_equal(members[start:stop], np.flatnonzero(mask))


def test_an_empty_coalition_has_no_members():
    starts, _ = members_of(np.zeros((2, 3), dtype=bool))
    np.testing.assert_array_equal(starts, [0, 0, 0])


@each_number_of_coalitions
@each_number_of_rows
@pytest.mark.parametrize("width", [0, 1, 5])
def test_means_are_those_over_members(n, n_masks, width, rng):
    masks = some_coalitions(rng, n_masks, n)
    phi = rng.normal(size=(n, width))
    phi.flags.writeable = False
    means = np.empty((n_masks, width))
    column_means(*members_of(masks), phi, means)
    for mask, mean in zip(masks, means):
        np.testing.assert_allclose(mean, phi[mask].mean(axis=0), rtol=1e-12, atol=1e-14)


def functions_of(count, size):
    majority = (1 + np.sign(2 * count - size)) / 2
    return np.array([count == 0, count <= 1, count <= 3, majority, np.log(count + 1)])


@each_number_of_coalitions
@each_number_of_rows
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_functions_are_those_of_the_counts_of_classes(n, n_masks, n_classes, rng):
    masks = some_coalitions(rng, n_masks, n)
    codes = rng.integers(0, n_classes, n)
    weights = rng.normal(size=(2, n_classes))
    log = np.log(np.arange(1.0, n + n_classes + 1))
    sums = np.empty((n_masks, 2, 5))
    count_functions(*members_of(masks), codes, weights, log, sums)
    for mask, of_mask in zip(masks, sums):
        size = mask.sum()
        expected = np.zeros((2, 5))
        for code in range(n_classes):
            count = (codes[mask] == code).sum()
            values = functions_of(count, size)
            values[4] -= np.log(size + n_classes)
            expected += weights[:, code, None] * values
        np.testing.assert_allclose(of_mask, expected, rtol=1e-12, atol=1e-13)


@each_layout
@each_number_of_coalitions
@each_number_of_rows
def test_soft_predictions_are_means_over_the_nearest_members(n, n_masks, layout, rng):
    n_points = 3
    ks = np.array([1, 3, 10])
    masks = some_coalitions(rng, n_masks, n, layout)
    order = np.array([rng.permutation(n) for _ in range(n_points)], dtype=np.int32)
    ranks = np.argsort(order, axis=1).astype(np.int32)
    matches = rng.normal(size=(n_points, n))  # by rank
    predictions = np.empty((n_masks, len(ks)))
    soft_knn(order, ranks, matches, masks, *members_of(masks), ks, predictions)
    for mask, of_mask in zip(masks, predictions):
        for k, prediction in zip(ks, of_mask):
            means = [
                matches[v, mask[order[v]]][: min(k, mask.sum())].mean()
                for v in range(n_points)
            ]
            np.testing.assert_allclose(prediction, np.mean(means), rtol=1e-12)


@each_number_of_rows
@pytest.mark.parametrize("n_points", [1, 4])
@pytest.mark.parametrize("width", [0, 1, 4])
def test_expected_utilities_are_sums_over_nearer_and_farther_ranks(
    n, n_points, width, rng
):
    order = np.array([rng.permutation(n) for _ in range(n_points)], dtype=np.int32)
    matches = rng.normal(size=(n_points, n))
    nearer, farther, own = rng.normal(size=(3, n, width))
    sums = np.zeros((n, width))
    add_over_points(order, matches, nearer, farther, own, sums)

    expected = np.zeros((n, width))
    for v in range(n_points):
        for rank in range(n):
            terms = matches[v, :, None] * np.concatenate(
                [nearer[:rank], own[rank : rank + 1], farther[rank + 1 :]]
            )
            expected[order[v, rank]] += terms.sum(axis=0) / n_points
    np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-12)
