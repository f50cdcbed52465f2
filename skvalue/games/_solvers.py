"""Which estimators are trained on many coalitions at once."""

from ._logistic import LogisticSolver

SOLVERS = [LogisticSolver]


def find_solver(game):
    """The batched solver for the estimator, data and scorer of a `ModelGame`, or None."""
    for solver in SOLVERS:
        built = solver.build(game)
        if built is not None:
            return built
    return None
