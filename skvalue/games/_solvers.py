"""Which estimators are trained on many coalitions at once."""

from ._bayes import BayesSolver
from ._centroid import CentroidSolver
from ._linear import LeastSquaresSolver, RidgeSolver
from ._logistic import LogisticSolver
from ._neighbors import NeighborsRegressionSolver, NeighborsSolver

SOLVERS = [
    BayesSolver,
    CentroidSolver,
    LeastSquaresSolver,
    LogisticSolver,
    NeighborsRegressionSolver,
    NeighborsSolver,
    RidgeSolver,
]


def find_solver(game):
    """The batched solver for the estimator, data and scorer of a `ModelGame`, or None."""
    built = (solver.build(game) for solver in SOLVERS)
    return next((solver for solver in built if solver is not None), None)
