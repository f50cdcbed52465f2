"""The designs of Layered Shapley: coalitions by size, which serve many players.

`plan_layers` decides how many coalitions of each size are drawn, `play_layers` draws
and evaluates them; `block_values` does so as private fits release values.
"""

from ._blocks import block_values
from ._designs import LayerEstimate, n_steps, play_layers
from ._plan import LAYER_DESIGNS, N_SHUFFLES, LayerPlan, plan_layers
from ._utilities import Utilities, coalition_masks
