"""Layered Shapley: values from many small coalitions and few large ones."""

from ._bounds import change_bounds, contribution_bounds
from ._core import CoreSet
from ._private import participation, plan_release, secret_value, value_sensitivity
from ._valuer import LayeredShapleyValuer
