"""The mediator's computations: values and rewards."""

from ._controls import _first_crossing as first_crossing
from ._gibbs import _inverse_wishart as inverse_wishart
from ._gibbs import gibbs_draws
from .gain import reward_gain
from .posterior import PosteriorClassifier, PosteriorDraws, PosteriorRegressor
from .predictive import PredictiveValueScorer
from .reward import RhoShapleyReward
from .surprise import BayesianSurpriseScorer
