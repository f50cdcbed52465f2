"""Data valuation as scikit-learn estimators: values of rows, data sets and parties."""

from importlib import import_module

__version__ = "0.1.dev0"

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
}
_ROOMS = {
    "collaborative",
    "datasets",
    "derivatives",
    "exceptions",
    "games",
    "inspection",
    "neighbors",
    "priarta",
    "privacy",
    "samplers",
    "review",
    "rewards",
    "selection",
    "semivalues",
    "valuers",
}

__all__ = sorted(_PUBLIC) + sorted(_ROOMS)


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _ROOMS:
        return import_module(f"skvalue.{name}")
    raise AttributeError(f"module 'skvalue' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
