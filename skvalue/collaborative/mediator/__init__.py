"""What the mediator computes: surprise, values and rewards."""

from ._gibbs import gibbs_draws
from .posterior import PosteriorClassifier, PosteriorDraws, PosteriorRegressor
from .reward import RhoShapleyReward
from .surprise import BayesianSurpriseScorer

__all__ = [
    "BayesianSurpriseScorer",
    "PosteriorClassifier",
    "PosteriorDraws",
    "PosteriorRegressor",
    "RhoShapleyReward",
    "gibbs_draws",
]
