"""The mediator's computations: values and rewards."""

from ._controls import first_crossing
from .gain import reward_gain
from .named_reward import MAX_REWARD_SIZE, NamedReward
from .party_scores import MAX_SCORES_SIZE, PartyScores
from .posterior import (
    PosteriorClassifier,
    PosteriorDraws,
    PosteriorRegressor,
    check_n_draws,
)
from .predictive import PredictiveValueScorer
from .reward import RhoShapleyReward
from .surprise import BayesianSurpriseScorer
