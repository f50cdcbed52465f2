"""A Gaussian process over the coalitions of few players, with closed forms.

Its posterior mean and variance of a semivalue are sums over all 2^n coalitions in
closed form, so that each of few evaluations is used for all players and for any
semivalue.
"""

from .blend import (
    MANY_COALITIONS,
    Blend,
    blend_pair_posterior,
    blend_posterior,
    blend_seconds,
    fit_blend,
    left_out_errors,
    rest_weight,
)
from .closed_forms import pair_covariances, prior_variances, utility_covariances
from .design import (
    MAX_COALITIONS,
    MAX_PLAYERS,
    ProcessDesign,
    allocate,
    plan_masses,
    size_masses,
)
from .fit import (
    condition,
    fit_process,
    pair_posterior,
    semivalue_posterior,
)
from .kernel import Hyper, HyperPrior, covariance, negative_log_posterior
from .trees import Leaves, cross_fit
