"""Audits: tests that detect broken privacy mechanisms.

There are three tests, which take seconds. `search_sensitivity` tries all neighbours on
a small domain, `check_variance` compares drawn noise with its event, and `distinguish`
tries to tell two neighbours apart from results of the mechanism and compares its
success with the whole profile delta(epsilon). It has most power at epsilon = 8; the
constants of a mechanism do not depend on epsilon. A passed audit proves nothing; a
failed one disproves the guarantee, except with probability `fail`.

`membership_inference` is no test of a guarantee: it measures how well the known attack
of the TKNN-Shapley paper tells members from others by values, on average.
"""

from ..._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
