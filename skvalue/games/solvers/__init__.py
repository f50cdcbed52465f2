"""Batched solvers: estimators that are trained on many coalitions at once."""

from dataclasses import replace

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..._utils.optional import import_optional
from ...linear import SOLVED
from .bayes import BayesSolver
from .centroid import CentroidSolver
from .linear import LeastSquaresSolver, RidgeSolver
from .logistic import LogisticSolver
from .loop import fit_and_score, on_all_rows, score_number, train
from .marginals import MarginalGame
from .neighbors import NeighborsRegressionSolver, NeighborsSolver
from .scoring import check_scorer, empty_utility_of
from .training import Training

SOLVERS = [
    BayesSolver,
    CentroidSolver,
    LeastSquaresSolver,
    LogisticSolver,
    NeighborsRegressionSolver,
    NeighborsSolver,
    RidgeSolver,
]


def has_solver(estimator):
    """Whether a batched solver trains estimators of this type, with some parameters."""
    return any(type(estimator) is solver.estimator for solver in SOLVERS)


def obstacles(training):
    """What keeps an estimator from a batched solver that would train it otherwise: name
    -> cure."""
    estimator, found = training.estimator, {}
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        estimator = estimator[-1]
        steps = f"the steps before {type(estimator).__name__} in the pipeline"
        found[steps] = "transform the rows before they are valued"
    if has_solver(estimator) and estimator.get_params().get("class_weight") is not None:
        found["class_weight"] = "pass sample_weight in place of class_weight"
        estimator = clone(estimator).set_params(class_weight=None)
    if found and find_solver(replace(training, estimator=estimator), "auto") is None:
        return {}
    return found


def find_solver(training, batch):
    """The batched solver for a training, or None.

    For torch or device="cuda", raises ImportError if torch is missing, ValueError
    without a solver.
    """
    if batch == "never":
        if training.device == "cuda":
            raise ValueError(
                "device='cuda' needs a batched solver: batch='auto' or 'torch'. Got batch='never'."
            )
        return None
    engines, by_torch = {}, batch == "torch" or training.device == "cuda"
    if by_torch:
        import_optional(
            "torch", "batch='torch'" if batch == "torch" else "device='cuda'", "torch"
        )
        from .torch import ENGINES as engines
    for solver in engines or SOLVERS:
        if (built := solver.build(training, engines.get(solver))) is not None:
            return built
    if by_torch:
        raise ValueError(
            "batch='torch' and device='cuda' need LogisticRegression, Ridge or LinearRegression, "
            "with parameters, dense data and a scorer that batched solvers support. Got "
            f"{training.estimator!r}."
        )
    return None
