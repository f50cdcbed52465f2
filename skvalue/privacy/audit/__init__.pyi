"""Audits: tests that detect broken privacy mechanisms."""

from ._distinguish import DistinguishReport as DistinguishReport
from ._distinguish import distinguish as distinguish
from ._distinguish import distinguish_scores as distinguish_scores
from ._membership import MembershipReport as MembershipReport
from ._membership import membership_inference as membership_inference
from ._sensitivity import SensitivityReport as SensitivityReport
from ._sensitivity import search_sensitivity as search_sensitivity
from ._variance import VarianceReport as VarianceReport
from ._variance import check_variance as check_variance
