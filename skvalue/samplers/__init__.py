"""Samplers: functions that draw random coalitions from a numpy Generator.

Weights of the drawn coalitions make estimates unbiased for any semivalue, which is given by the
probabilities of sizes of `skvalue.semivalues.size_weights`.
"""

from .layers import (
    ALLOCATIONS,
    all_subsets,
    circle_blocks,
    distinct_subsets,
    layer_counts,
    partitions,
    subset_ranks,
    systematic_counts,
    uniform_subsets,
)
from .permutations import ORDERS, draw_orders, prefix_marginals, prefix_masks
from .subsets import SizeStrata, draw_subsets, neyman_allocation

__all__ = [
    "ALLOCATIONS",
    "ORDERS",
    "SizeStrata",
    "all_subsets",
    "circle_blocks",
    "distinct_subsets",
    "draw_orders",
    "draw_subsets",
    "layer_counts",
    "neyman_allocation",
    "partitions",
    "prefix_marginals",
    "prefix_masks",
    "subset_ranks",
    "systematic_counts",
    "uniform_subsets",
]
