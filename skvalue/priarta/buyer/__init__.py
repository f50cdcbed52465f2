"""What the buyer computes."""

from ._estimates import estimate_summaries
from ._shrinkage import Prior, priors_of, shrink_moments
from .metrics import (
    diversity_relevance,
    min_max,
    principal_contributions,
    psd_factor,
    symmetric_kl,
    wasserstein,
)
from .scorer import PriArTaScorer

__all__ = [
    "PriArTaScorer",
    "Prior",
    "diversity_relevance",
    "estimate_summaries",
    "min_max",
    "principal_contributions",
    "priors_of",
    "psd_factor",
    "shrink_moments",
    "symmetric_kl",
    "wasserstein",
]
