"""Layered Shapley: values from many small coalitions and few large ones."""

from ._blocks import block_layers
from ._bounds import change_bounds, marginal_bounds, suggest_bound
from ._core import CoreSet
from ._designs import Utilities, play
from ._plan import DESIGNS, make_plan
from ._private import participation, plan_release, private_values, secret_value, value_sensitivity
from ._valuer import LayeredShapleyValuer
