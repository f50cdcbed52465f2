"""Parties who release noisy statistics once, and a mediator who values and rewards them."""

from .displays import CoalitionValueDisplay, PosteriorMarginalsDisplay, PrivacyTradeOffDisplay
from .mediator.posterior import PosteriorClassifier, PosteriorDraws, PosteriorRegressor
from .mediator.reward import RhoShapleyReward
from .mediator.surprise import BayesianSurpriseScorer
from .models.counts import BetaBernoulli, GammaPoisson
from .models.families import GaussianMean
from .models.linear import BayesianLinear
from .models.logistic import BayesianLogistic
from .party.parties import GramRelease, LogisticRelease, MeanRelease
from .party.release import Release
from .simulation import PrivateCollaboration

__all__ = [
    "BayesianLinear",
    "BayesianLogistic",
    "BayesianSurpriseScorer",
    "BetaBernoulli",
    "CoalitionValueDisplay",
    "GammaPoisson",
    "GaussianMean",
    "GramRelease",
    "LogisticRelease",
    "MeanRelease",
    "PosteriorClassifier",
    "PosteriorDraws",
    "PosteriorMarginalsDisplay",
    "PosteriorRegressor",
    "PrivacyTradeOffDisplay",
    "PrivateCollaboration",
    "Release",
    "RhoShapleyReward",
]
