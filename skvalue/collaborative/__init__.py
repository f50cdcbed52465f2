"""Parties who release noisy statistics once, and a mediator who values and rewards them."""

from .counts import BetaBernoulli, GammaPoisson
from .displays import (
    CoalitionValueDisplay,
    PosteriorMarginalsDisplay,
    PrivacyTradeOffDisplay,
)
from .families import GaussianMean
from .linear import BayesianLinear
from .logistic import BayesianLogistic
from .parties import GramRelease, LogisticRelease, MeanRelease
from .posterior import PosteriorClassifier, PosteriorDraws, PosteriorRegressor
from .release import Release
from .reward import RhoShapleyReward
from .simulation import PrivateCollaboration
from .surprise import BayesianSurpriseScorer

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
