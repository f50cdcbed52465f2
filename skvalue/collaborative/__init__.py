"""Parties that release one noisy statistic each, and a mediator that values and rewards them."""

from .displays import CoalitionValueDisplay, PosteriorMarginalsDisplay, PrivacyTradeOffDisplay
from .mediator import (
    BayesianSurpriseScorer,
    PosteriorClassifier,
    PosteriorDraws,
    PosteriorRegressor,
    PredictiveValueScorer,
    RhoShapleyReward,
    reward_gain,
)
from .models import BayesianLinear, BayesianLogistic, BetaBernoulli, GammaPoisson, GaussianMean
from .party import GramRelease, LogisticRelease, MeanRelease, Release
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
    "PredictiveValueScorer",
    "PrivacyTradeOffDisplay",
    "PrivateCollaboration",
    "Release",
    "RhoShapleyReward",
    "reward_gain",
]
