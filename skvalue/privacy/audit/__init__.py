"""Audits: tests that a broken privacy mechanism fails.

Three layers, all seconds. `search_sensitivity` tries every neighbour on a small domain;
`check_variance` compares drawn noise with what its event states; `distinguish` plays the game that
differential privacy bounds, and compares with the whole profile delta(epsilon). Play it at epsilon
= 8, where it has most power: the constants of a mechanism do not depend on epsilon. A passed audit
proves nothing; a failed one disproves the guarantee but for a chance of `fail`.
`membership_inference` measures what one known attack achieves on average, and is no test.
"""

from ._distinguish import DistinguishReport, distinguish, distinguish_scores
from ._membership import MembershipReport, membership_inference
from ._sensitivity import SensitivityReport, search_sensitivity
from ._variance import VarianceReport, check_variance

__all__ = [
    "DistinguishReport",
    "MembershipReport",
    "SensitivityReport",
    "VarianceReport",
    "check_variance",
    "distinguish",
    "distinguish_scores",
    "membership_inference",
    "search_sensitivity",
]
