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
    """What alone keeps an estimator from a batched solver: name -> cure."""
    estimator = training.estimator
    cures = {}
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        estimator = estimator[-1]
        steps = f"the steps before {type(estimator).__name__} in the pipeline"
        cures[steps] = "transform the rows before they are valued"
    if has_solver(estimator) and estimator.get_params().get("class_weight") is not None:
        cures["class_weight"] = "pass sample_weight in place of class_weight"
        estimator = clone(estimator).set_params(class_weight=None)
    if cures and find_solver(replace(training, estimator=estimator), "auto") is None:
        return {}
    return cures


def find_solver(training, batch):
    """The batched solver for a training, or None.

    For torch or device="cuda", raises ImportError if torch is missing, ValueError
    without a solver.
    """
    if batch == "never":
        if training.device == "cuda":
            raise ValueError(
                "device='cuda' needs a batched solver, since single fits do not use "
                "the GPU: batch='auto' or 'torch'. Got batch='never'."
            )
        return None
    if batch == "torch" or training.device == "cuda":
        return _find_torch_solver(training, batch)
    for solver_class in SOLVERS:
        solver = solver_class.build(training)
        if solver is not None:
            return solver
    return None


def _find_torch_solver(training, batch):
    """The solver whose coefficients torch computes."""
    parameter = "batch='torch'" if batch == "torch" else "device='cuda'"
    import_optional("torch", parameter, "torch")
    from .torch import ENGINES

    for solver_class, engine_class in ENGINES.items():
        solver = solver_class.build(training, engine_class)
        if solver is not None:
            return solver
    raise ValueError(
        "batch='torch' and device='cuda' need LogisticRegression, Ridge or "
        "LinearRegression, with parameters, dense data and a scorer that batched "
        f"solvers support. Got {training.estimator!r}."
    )
