"""Valuers of rows, one file or folder per method."""

from .beta_shapley import BetaShapleyValuer
from .data_banzhaf import DataBanzhafValuer
from .data_oob import DataOOBValuer
from .data_shapley import DataShapleyValuer
from .federated_semivalue import FederatedSemivalueValuer
from .gradient_semivalue import GradientSemivalueValuer
from .in_run_shapley import InRunShapleyValuer
from .influence import InfluenceValuer
from .knn_shapley import KNNShapleyValuer
from .layered_shapley import CoreSet, LayeredShapleyValuer
from .leave_one_out import LeaveOneOutValuer
from .scores import ScoresValuer
from .semivalue import SemivalueValuer
from .tknn_shapley import TKNNShapleyValuer, public_baseline, suggest_radius
from .unrolled import UnrolledValuer

__all__ = [
    "BetaShapleyValuer",
    "CoreSet",
    "DataBanzhafValuer",
    "DataOOBValuer",
    "DataShapleyValuer",
    "FederatedSemivalueValuer",
    "GradientSemivalueValuer",
    "InRunShapleyValuer",
    "InfluenceValuer",
    "KNNShapleyValuer",
    "LayeredShapleyValuer",
    "LeaveOneOutValuer",
    "ScoresValuer",
    "SemivalueValuer",
    "TKNNShapleyValuer",
    "UnrolledValuer",
    "public_baseline",
    "suggest_radius",
]
