"""Subsets of one size: the list of them, and the rank of each in it."""

from math import comb

import numpy as np
import pytest

from skvalue.samplers import all_subsets, subset_ranks


@pytest.mark.parametrize(
    ("n", "size"),
    [(1, 0), (1, 1), (5, 3), (12, 6), (30, 2), (70, 69), (70, 68), (100, 98), (150, 1)],
)
def test_ranks_are_the_places_in_the_list_of_all_subsets(n, size):
    subsets = all_subsets(n, size)
    assert len(subsets) == comb(n, size)
    np.testing.assert_array_equal(subset_ranks(subsets), np.arange(len(subsets)))
