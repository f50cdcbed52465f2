"""Bayesian models of releases, for the mediator."""

from ._gaussian import joint_moments, noisy_gram_loglik
from ._models import (
    PriorModel,
    bind,
    check_prior,
    check_releases,
    check_targets,
    warn_of_few_rows,
)
from ._moments import SecondMoments, inverse_wishart_prior
from ._smc import Stage, anneal, loglik_table, metropolis
from .counts import BetaBernoulli, GammaPoisson
from .gaussian_mean import GaussianMean
from .linear import BayesianLinear
from .logistic import BayesianLogistic, quadratic_coefficients, statistic_moments
from .mediator_model import MAX_MODEL_SIZE, SEPARATORS, MediatorModel
from .stored import model_record, stored_model
