"""Batched solvers: estimators that are trained on many coalitions at once."""

from .bayes import BayesSolver
from .centroid import CentroidSolver
from .linear import LeastSquaresSolver, RidgeSolver
from .logistic import LogisticSolver
from .loop import fit_and_score, train
from .neighbors import NeighborsRegressionSolver, NeighborsSolver
from .scoring import check_scorer, empty_utility_of
from .status import SOLVED
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


def find_solver(training, batch):
    """The batched solver for a training, or None.

    For torch or device="cuda", raises ImportError if torch is missing, ValueError without a solver.
    """
    if batch == "never":
        if training.device == "cuda":
            raise ValueError(
                "device='cuda' needs a batched solver: batch='auto' or 'torch'. Got batch='never'."
            )
        return None
    by_torch = batch == "torch" or training.device == "cuda"
    built = (solver.build(training) for solver in (_torch_solvers() if by_torch else SOLVERS))
    solver = next((solver for solver in built if solver is not None), None)
    if by_torch and solver is None:
        raise ValueError(
            "batch='torch' and device='cuda' need LogisticRegression, Ridge or LinearRegression, "
            "with parameters, dense data and a scorer that batched solvers support. Got "
            f"{training.estimator!r}."
        )
    return solver


def _torch_solvers():
    try:
        from .torch import SOLVERS as solvers
    except ImportError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "batch='torch' and device='cuda' need torch, which is not installed: "
            "pip install 'skvalue[torch]'",
            name="torch",
        ) from error
    return solvers
