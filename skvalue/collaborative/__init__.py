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
from .models import BayesianLinear, BayesianLogistic, GaussianMean
from .party import GramRelease, LogisticRelease, MeanRelease, NoisyStatistic

__all__ = [
    "BayesianLinear",
    "BayesianLogistic",
    "BayesianSurpriseScorer",
    "CoalitionValueDisplay",
    "GaussianMean",
    "GramRelease",
    "LogisticRelease",
    "MeanRelease",
    "NoisyStatistic",
    "PosteriorClassifier",
    "PosteriorDraws",
    "PosteriorMarginalsDisplay",
    "PosteriorRegressor",
    "PredictiveValueScorer",
    "PrivacyTradeOffDisplay",
    "RhoShapleyReward",
    "reward_gain",
]
