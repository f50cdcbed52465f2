"""Samplers: random coalitions from a numpy Generator, and nothing else.

What a sampler draws has weights that make its estimate unbiased for any semivalue; they come in as
the chances of sizes of `skvalue.semivalues.size_weights`.
"""

from .permutations import ORDERS, draw_orders, prefix_marginals, prefix_masks
from .subsets import SizeStrata, draw_subsets, neyman_allocation

__all__ = [
    "ORDERS",
    "SizeStrata",
    "draw_orders",
    "draw_subsets",
    "neyman_allocation",
    "prefix_marginals",
    "prefix_masks",
]
