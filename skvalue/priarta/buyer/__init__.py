"""The buyer's scores of summaries."""

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
