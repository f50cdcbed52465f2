"""The buyer's scores of summaries."""

from ._estimates import estimate_summaries
from ._shrinkage import Prior, priors_of, shrink_moments
from .command_line import add_buyer_command
from .metrics import (
    diversity_relevance,
    principal_contributions,
    psd_factor,
    symmetric_kl,
    wasserstein,
)
from .scorer import PriArTaScorer
