"""The exact valuers of the package, for tests of what all of them keep."""

import pytest
from problems import on_a_grid
from sklearn.base import clone

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

TORCH = {"engine": "torch", "device": "cpu"}
FAISS = {"engine": "faiss", "device": "cpu"}
# Name -> (valuer, number of classes; 0 is a regression).
EXACT = {
    "knn": (KNNShapleyValuer(5), 3),
    "knn-original": (KNNShapleyValuer(3, utility="original", metric="cosine"), 2),
    "knn-manhattan": (KNNShapleyValuer(2, metric="manhattan"), 4),
    "knn-regression": (KNNShapleyValuer(4), 0),
    "knn-regression-original": (KNNShapleyValuer(4, utility="original"), 0),
    "tknn": (TKNNShapleyValuer(0.3), 2),
    "tknn-euclidean": (TKNNShapleyValuer(1.5, metric="euclidean"), 3),
}
OTHER_ENGINES = {
    "knn-torch": (KNNShapleyValuer(5, **TORCH), 3),
    "knn-regression-torch": (KNNShapleyValuer(4, metric="manhattan", **TORCH), 0),
    "tknn-torch": (TKNNShapleyValuer(0.3, **TORCH), 2),
    "knn-faiss": (KNNShapleyValuer(5, metric="cosine", **FAISS), 3),
    "tknn-faiss": (TKNNShapleyValuer(1.5, metric="euclidean", **FAISS), 3),
}
ALL = EXACT | OTHER_ENGINES
OF_CLASSES = [name for name, (_, n_classes) in EXACT.items() if n_classes]

each_exact = pytest.mark.parametrize("name", EXACT)
each_exact_and_engine = pytest.mark.parametrize("name", ALL)
each_of_classes = pytest.mark.parametrize("name", OF_CLASSES)


def problem(name, rng, **sizes):
    """An unfitted valuer and rows for it."""
    valuer, n_classes = ALL[name]
    if valuer.engine != "auto":
        pytest.importorskip(valuer.engine)
    return clone(valuer), on_a_grid(rng, n_classes=n_classes, **sizes)
