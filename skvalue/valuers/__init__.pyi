"""Valuers of rows, one file or folder per method."""

from .any_game import GameValues as GameValues
from .any_game import game_values as game_values
from .beta_shapley import BetaShapleyValuer as BetaShapleyValuer
from .data_banzhaf import DataBanzhafValuer as DataBanzhafValuer
from .data_oob import DataOOBValuer as DataOOBValuer
from .data_shapley import DataShapleyValuer as DataShapleyValuer
from .federated_semivalue import FederatedRound as FederatedRound
from .federated_semivalue import FederatedSemivalueValuer as FederatedSemivalueValuer
from .federated_semivalue import FederatedUpdate as FederatedUpdate
from .gradient_semivalue import GradientSemivalueValuer as GradientSemivalueValuer
from .in_run_shapley import InRunShapleyValuer as InRunShapleyValuer
from .influence import InfluenceValuer as InfluenceValuer
from .knn_shapley import KNNShapleyValuer as KNNShapleyValuer
from .layered_shapley import CoreSet as CoreSet
from .layered_shapley import LayeredShapleyValuer as LayeredShapleyValuer
from .leave_one_out import LeaveOneOutValuer as LeaveOneOutValuer
from .scores import ScoresValuer as ScoresValuer
from .semivalue import SemivalueValuer as SemivalueValuer
from .tknn_shapley import TKNNShapleyValuer as TKNNShapleyValuer
from .tknn_shapley import public_baseline as public_baseline
from .tknn_shapley import suggest_radius as suggest_radius
from .unrolled import UnrolledValuer as UnrolledValuer
