"""
Influence and leave-one-out, against models that are fitted again
=================================================================

Prints the tables of the user guide's page on influence: errors of the first order, of
one Newton step and of two, against the change of the utility when the model is fitted
again without each row; and the CPU time of `LeaveOneOutValuer` by refits over that of
Newton steps. Rows are drawn at random; no data set is needed.
"""

import argparse
import warnings
from time import process_time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skvalue import InfluenceValuer, LeaveOneOutValuer
from skvalue.derivatives import Hessian, evaluate, linear_model, newton_steps

EXACT = {"tol": 1e-10, "max_iter": 10_000, "solver": "newton-cholesky"}
LOGISTIC = LogisticRegression(**EXACT)
# Title -> (estimator, number of classes; 0 is a regression, -1 one with positive
# targets).
MODELS = {
    "Ridge": (Ridge(), 0),
    "RidgeClassifier": (RidgeClassifier(), 2),
    "LogisticRegression": (LOGISTIC, 2),
    "LogisticRegression, 4 classes": (LOGISTIC, 4),
    "LogisticRegression, C=inf": (LogisticRegression(C=np.inf, **EXACT), 2),
    "PoissonRegressor, alpha=0.1": (PoissonRegressor(alpha=0.1, **EXACT), -1),
    "GammaRegressor, alpha=0.1": (GammaRegressor(alpha=0.1, **EXACT), -1),
    "StandardScaler, LogisticRegression": (
        make_pipeline(StandardScaler(), LOGISTIC),
        2,
    ),
    "PolynomialFeatures, LogisticRegression": (
        make_pipeline(PolynomialFeatures(include_bias=False), LOGISTIC),
        2,
    ),
}
# Those with a batched solver come first.
TIMED = {
    "LogisticRegression": (LogisticRegression(), 2, False),
    "LogisticRegression, 3 classes": (LogisticRegression(), 3, False),
    "Ridge": (Ridge(), 0, False),
    "LogisticRegression, sparse rows": (LOGISTIC, 2, True),
    "RidgeClassifier": (RidgeClassifier(), 2, False),
    "PoissonRegressor": (PoissonRegressor(**EXACT), -1, False),
}


def draw(n_classes, n, d, n_points=200):
    """Rows and validation points of a linear model with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n_points, d))
    y = X @ np.r_[1.0, -0.5, np.zeros(d - 2)] + rng.normal(size=len(X))
    if n_classes > 0:
        y = np.digitize(y, np.quantile(y[:n], np.arange(1, n_classes) / n_classes))
    elif n_classes < 0:
        y = np.exp(0.3 * y)
    return (X[:n], y[:n]), {"X_val": X[n:], "y_val": y[n:]}


def one_step(estimator, X, y, X_val, y_val):
    """Decrease of minus the mean loss after one Newton step without each row."""
    model = linear_model(clone(estimator).fit(X, y), X, y)
    steps = newton_steps(
        model,
        Hessian(model, model.weights.mean()),
        model.X,
        model.gradient(),
        model.curvature(),
        model.weights,
    )
    points = model.design(X_val)
    weights = np.full(len(y_val), 1 / len(y_val))

    def utility(theta):
        return evaluate("neg_loss", model, points @ theta, y_val, weights)[1]

    return np.array(
        [utility(model.theta) - utility(model.theta + step.T) for step in steps]
    )


def print_errors(n):
    print(
        f"Largest error over the largest change under {n} refits, {n} rows of 4 "
        f"columns.\n"
    )
    print(f"{'model':40}{'first order':>12}{'one step':>12}{'two steps':>12}")
    for title, (estimator, n_classes) in MODELS.items():
        rows, points = draw(n_classes, n, 4)
        found = [
            InfluenceValuer(estimator, order=k).fit(*rows, **points) for k in (1, 2)
        ]
        exact = []
        for row in range(n):
            rest = np.arange(n) != row
            # The utility of this fit alone is used.
            without = InfluenceValuer(estimator).fit(
                *(part[rest] for part in rows), **points
            )
            exact.append(found[0].utility_ - without.utility_)
        tried = found[0].values_, one_step(estimator, *rows, **points), found[1].values_
        errors = [
            np.abs(values - exact).max() / np.abs(exact).max() for values in tried
        ]
        print(f"{title:40}" + "".join(f"{error:12.1g}" for error in errors))
    print()


def print_times(n):
    print(
        f"CPU time of LeaveOneOutValuer by refits over that of Newton steps, {n} "
        f"rows of 20"
    )
    print("columns; largest difference over the largest value.\n")
    print(f"{'model':40}{'refits by':>14}{'ratio':>8}{'difference':>12}")
    for title, (estimator, n_classes, is_sparse) in TIMED.items():
        (X, y), points = draw(n_classes, n, 20)
        if is_sparse:
            X, points["X_val"] = sparse.csr_array(X), sparse.csr_array(points["X_val"])
        scoring = "neg_log_loss" if isinstance(estimator, LogisticRegression) else None
        values = []
        seconds = []
        for method in ("refit", "newton"):
            valuer = LeaveOneOutValuer(estimator, method=method, scoring=scoring)
            for _ in range(2):  # the first fit compiles
                start = process_time()
                valuer.fit(X, y, **points)
                spent = process_time() - start
            values.append(valuer.values_)
            seconds.append(spent)
        solver = (
            LeaveOneOutValuer(estimator, method="refit")
            .estimate_cost(X, y, **points)
            .solver
        )
        by = "single fits" if solver == "loop" else "batches"
        error = np.abs(values[0] - values[1]).max() / np.abs(values[0]).max()
        print(f"{title:40}{by:>14}{seconds[0] / seconds[1]:8.2g}{error:12.1g}")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=200, help="rows of the table of errors"
    )
    parser.add_argument(
        "--timed", type=int, default=1000, help="rows of the table of times"
    )
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print_errors(args.rows)
    print_times(args.timed)


if __name__ == "__main__":
    main()
