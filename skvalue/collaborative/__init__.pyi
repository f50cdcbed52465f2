"""Parties that release noisy statistics, and a mediator that values them."""

from .command_line import add_party_command as add_party_command
from .displays import CoalitionValueDisplay as CoalitionValueDisplay
from .displays import PosteriorMarginalsDisplay as PosteriorMarginalsDisplay
from .displays import PrivacyTradeOffDisplay as PrivacyTradeOffDisplay
from .mediator import BayesianSurpriseScorer as BayesianSurpriseScorer
from .mediator import NamedReward as NamedReward
from .mediator import PartyScores as PartyScores
from .mediator import PosteriorClassifier as PosteriorClassifier
from .mediator import PosteriorDraws as PosteriorDraws
from .mediator import PosteriorRegressor as PosteriorRegressor
from .mediator import PredictiveValueScorer as PredictiveValueScorer
from .mediator import RhoShapleyReward as RhoShapleyReward
from .mediator import reward_gain as reward_gain
from .models import BayesianLinear as BayesianLinear
from .models import BayesianLogistic as BayesianLogistic
from .models import BetaBernoulli as BetaBernoulli
from .models import GammaPoisson as GammaPoisson
from .models import GaussianMean as GaussianMean
from .models import MediatorModel as MediatorModel
from .party import GramRelease as GramRelease
from .party import LogisticRelease as LogisticRelease
from .party import MeanRelease as MeanRelease
from .party import NamedRelease as NamedRelease
from .party import NoisyStatistic as NoisyStatistic
