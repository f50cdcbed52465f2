"""The mediator's computations: values and rewards."""

from ._gibbs import gibbs_draws
from .posterior import PosteriorClassifier, PosteriorDraws, PosteriorRegressor
from .reward import RhoShapleyReward
from .surprise import BayesianSurpriseScorer
