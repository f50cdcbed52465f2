"""Bayesian models of releases, for the mediator."""

from ._gaussian import joint_moments, noisy_gram_loglik, second_moments_loglik
from ._models import check_prior, check_releases, warn_of_few_rows
from ._moments import (
    SecondMoments,
    fourth_moments,
    inverse_wishart_prior,
    plugin_second_moments,
    posterior_second_moments,
)
from ._nig import NIG, gamma_kl, nig_kl, nig_log_density, nig_sample, nig_update
from ._smc import anneal, loglik_table, metropolis
from .counts import BetaBernoulli, GammaPoisson
from .families import GaussianMean
from .linear import BayesianLinear
from .logistic import BayesianLogistic, statistic_moments
