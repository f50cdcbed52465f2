"""Samplers: functions that draw random coalitions from a numpy Generator."""

from .layers import ALLOCATIONS as ALLOCATIONS
from .layers import all_subsets as all_subsets
from .layers import circle_blocks as circle_blocks
from .layers import distinct_subsets as distinct_subsets
from .layers import layer_counts as layer_counts
from .layers import partitions as partitions
from .layers import subset_ranks as subset_ranks
from .layers import systematic_counts as systematic_counts
from .layers import uniform_subsets as uniform_subsets
from .permutations import ORDERS as ORDERS
from .permutations import draw_orders as draw_orders
from .permutations import marginal_masks as marginal_masks
from .permutations import prefix_marginals as prefix_marginals
from .permutations import prefix_masks as prefix_masks
from .subsets import SizeStrata as SizeStrata
from .subsets import draw_distinct as draw_distinct
from .subsets import draw_subsets as draw_subsets
from .subsets import neyman_allocation as neyman_allocation
