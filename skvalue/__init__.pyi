"""What `import skvalue` offers: each name is imported at its first use."""

from . import audit as audit
from . import base as base
from . import collaborative as collaborative
from . import datasets as datasets
from . import derivatives as derivatives
from . import exceptions as exceptions
from . import games as games
from . import inspection as inspection
from . import labels as labels
from . import neighbors as neighbors
from . import priarta as priarta
from . import privacy as privacy
from . import rewards as rewards
from . import samplers as samplers
from . import selection as selection
from . import semivalues as semivalues
from . import valuers as valuers
from ._utils.versions import show_versions as show_versions
from .base import BaseInSampleValuer as BaseInSampleValuer
from .base import BaseValuer as BaseValuer
from .collaborative import BayesianSurpriseScorer as BayesianSurpriseScorer
from .collaborative import PredictiveValueScorer as PredictiveValueScorer
from .labels import LabelErrorDetector as LabelErrorDetector
from .priarta import PriArTaScorer as PriArTaScorer
from .selection import ValueFilter as ValueFilter
from .selection import ValueFilteredClassifier as ValueFilteredClassifier
from .selection import ValueFilteredRegressor as ValueFilteredRegressor
from .valuers import BetaShapleyValuer as BetaShapleyValuer
from .valuers import DataBanzhafValuer as DataBanzhafValuer
from .valuers import DataOOBValuer as DataOOBValuer
from .valuers import DataShapleyValuer as DataShapleyValuer
from .valuers import FederatedSemivalueValuer as FederatedSemivalueValuer
from .valuers import GradientSemivalueValuer as GradientSemivalueValuer
from .valuers import InfluenceValuer as InfluenceValuer
from .valuers import InRunShapleyValuer as InRunShapleyValuer
from .valuers import KNNShapleyValuer as KNNShapleyValuer
from .valuers import LayeredShapleyValuer as LayeredShapleyValuer
from .valuers import LeaveOneOutValuer as LeaveOneOutValuer
from .valuers import ScoresValuer as ScoresValuer
from .valuers import SemivalueValuer as SemivalueValuer
from .valuers import TKNNShapleyValuer as TKNNShapleyValuer
from .valuers import UnrolledValuer as UnrolledValuer
from .valuers import game_values as game_values

__version__: str
