"""Data valuation as scikit-learn estimators: values of rows, data sets and parties."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Public name -> module that defines it. Imported at first use, so that `import skvalue` is fast.
_PUBLIC = {
    "BaseInSampleValuer": "skvalue.base",
    "BaseValuer": "skvalue.base",
    "BayesianSurpriseScorer": "skvalue.collaborative",
    "BetaShapleyValuer": "skvalue.valuers",
    "DataBanzhafValuer": "skvalue.valuers",
    "DataOOBValuer": "skvalue.valuers",
    "DataShapleyValuer": "skvalue.valuers",
    "FederatedSemivalueValuer": "skvalue.valuers",
    "GradientSemivalueValuer": "skvalue.valuers",
    "InRunShapleyValuer": "skvalue.valuers",
    "InfluenceValuer": "skvalue.valuers",
    "KNNShapleyValuer": "skvalue.valuers",
    "LabelErrorDetector": "skvalue.review",
    "LayeredShapleyValuer": "skvalue.valuers",
    "LeaveOneOutValuer": "skvalue.valuers",
    "PredictiveValueScorer": "skvalue.collaborative",
    "PriArTaScorer": "skvalue.priarta",
    "ScoresValuer": "skvalue.valuers",
    "SemivalueValuer": "skvalue.valuers",
    "TKNNShapleyValuer": "skvalue.valuers",
    "UnrolledValuer": "skvalue.valuers",
    "ValueFilter": "skvalue.selection",
    "ValueFilteredClassifier": "skvalue.selection",
    "ValueFilteredRegressor": "skvalue.selection",
    "show_versions": "skvalue._utils.versions",
}

__all__ = [
    "BaseInSampleValuer",
    "BaseValuer",
    "BayesianSurpriseScorer",
    "BetaShapleyValuer",
    "DataBanzhafValuer",
    "DataOOBValuer",
    "DataShapleyValuer",
    "FederatedSemivalueValuer",
    "GradientSemivalueValuer",
    "InRunShapleyValuer",
    "InfluenceValuer",
    "KNNShapleyValuer",
    "LabelErrorDetector",
    "LayeredShapleyValuer",
    "LeaveOneOutValuer",
    "PredictiveValueScorer",
    "PriArTaScorer",
    "ScoresValuer",
    "SemivalueValuer",
    "TKNNShapleyValuer",
    "UnrolledValuer",
    "ValueFilter",
    "ValueFilteredClassifier",
    "ValueFilteredRegressor",
    "collaborative",
    "datasets",
    "derivatives",
    "exceptions",
    "games",
    "inspection",
    "neighbors",
    "priarta",
    "privacy",
    "review",
    "rewards",
    "samplers",
    "selection",
    "semivalues",
    "show_versions",
    "valuers",
]


if TYPE_CHECKING:  # what editors and type checkers read in place of `__getattr__`
    from . import (
        collaborative,
        datasets,
        derivatives,
        exceptions,
        games,
        inspection,
        neighbors,
        priarta,
        privacy,
        review,
        rewards,
        samplers,
        selection,
        semivalues,
        valuers,
    )
    from ._utils.versions import show_versions
    from .base import BaseInSampleValuer, BaseValuer
    from .collaborative import BayesianSurpriseScorer, PredictiveValueScorer
    from .priarta import PriArTaScorer
    from .review import LabelErrorDetector
    from .selection import ValueFilter, ValueFilteredClassifier, ValueFilteredRegressor
    from .valuers import (
        BetaShapleyValuer,
        DataBanzhafValuer,
        DataOOBValuer,
        DataShapleyValuer,
        FederatedSemivalueValuer,
        GradientSemivalueValuer,
        InfluenceValuer,
        InRunShapleyValuer,
        KNNShapleyValuer,
        LayeredShapleyValuer,
        LeaveOneOutValuer,
        ScoresValuer,
        SemivalueValuer,
        TKNNShapleyValuer,
        UnrolledValuer,
    )
else:

    def __getattr__(name):
        if name in _PUBLIC:
            return getattr(import_module(_PUBLIC[name]), name)
        if name in __all__:
            return import_module(f"skvalue.{name}")
        raise AttributeError(f"module 'skvalue' has no attribute {name!r}")

    def __dir__():
        return sorted(set(globals()) | set(__all__))
