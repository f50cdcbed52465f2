"""Marginal contributions to coalitions of linear regression, where steps are exact."""

import numpy as np

from ....linear import SQUARED, Optimum, UtilityDerivatives, WeightedRows, gram
from ..linear import LeastSquaresSolver
from .steps import MOST_PREDICTIONS, Players, Steps, Work, changes_along_steps, mask_of

# Condition number of a Gram matrix from which steps may be wrong.
_WIDEST = 1e10

# Penalty whose inverse is as good as infinite.
_TINY = 1e-100


class LinearMarginals:
    """Ridge and least-squares regression: steps are exact."""

    exact = True
    scorers = ("neg_mean_squared_error", "r2")

    def __init__(self, solver):
        self.solver = solver
        self.scores = solver.scores

        # A penalty that nearly vanishes beside the rows is none to a Gram matrix.
        is_penalised = solver.penalty > 0
        total = np.square(solver.X[:, is_penalised]).sum()
        smallest = solver.penalty[is_penalised].min(initial=np.inf)
        has_penalty = type(solver) is not LeastSquaresSolver and smallest > _TINY
        self._may_be_singular = not has_penalty or smallest * _WIDEST < total

    def n_drawn(self, n_rows, n_players):
        """Number of players to train for real with a coalition of a given size."""
        if n_rows <= self.n_needed + 1:
            return n_players
        return 0

    @property
    def n_needed(self):
        """Number of rows up to which coefficients may not be unique."""
        if type(self.solver) is LeastSquaresSolver:
            return 2 * self.solver.X.shape[1]
        return -1

    def work(self, n_rows):
        """Operations of models of coalitions of a number of rows."""
        n, p = self.solver.X.shape
        fit = 2000 + 0.01 * n * p**2
        joined = fit
        if n_rows == 0:  # the models are constants
            joined = 100
        return Work(fit=fit, joined=joined, step=50 + p**2)

    def joined(self, S, rows):
        """Utilities (len(rows),) of a coalition of rows S with each of other rows.

        NaN if unknown: of the empty coalition alone they are those of constants.
        """
        if len(S) or not self.solver.fit_intercept:
            return np.full(len(rows), np.nan)
        n_points = len(self.solver.X_val)
        y = self.solver.y[rows]
        tile_size = max(1, MOST_PREDICTIONS // n_points)
        utilities = []
        for first in range(0, len(y), tile_size):
            constants = y[first : first + tile_size, None]
            predictions = np.repeat(constants, n_points, axis=1)
            sizes = np.ones(len(predictions))
            utilities.append(self.scores.of_targets(predictions, sizes))
        return np.concatenate(utilities)

    def has_unique_model(self, S):
        """Whether columns of the rows S are far from dependent, or penalised."""
        if not self._may_be_singular:
            return True
        mask = mask_of(S, len(self.solver.X))
        _, solved = self.solver.engine.coefs(mask, _WIDEST)
        return bool(solved[0])

    def steps(self, S, signs, codes):
        """The utility of a coalition of rows S, and what each player adds to it.

        Parameters
        ----------
        S : ndarray of int
            The rows.
        signs : ndarray of shape (n_players,)
            -1 for the players in the coalition, 1 for the others.
        codes : ndarray of int or None
            Player of every row; None if they are the rows.

        Returns
        -------
        steps : Steps
            The utility and its changes.
        """
        solver = self.solver
        mask = mask_of(S, len(solver.X))
        coefs, _ = solver.engine.coefs(mask, np.inf)
        predictions = coefs @ solver.X_val.T
        utilities = self.scores.of_targets(predictions + solver.shift, mask.sum(axis=1))

        # Derivatives of the utility, and of the squared errors of the coalition.
        scale = 1.0
        if self.scores.name == "r2":
            scale = 1.0 / self.scores.variance
        weights = -2 * scale * self.scores.weights
        errors = predictions[0] + solver.shift - self.scores.y
        gradient = solver.X_val.T @ (weights * errors)
        curvature = gram(solver.X_val, weights[:, None, None])
        hessian = gram(solver.X[S], solver.weights[S][:, None, None])
        hessian = hessian + np.diag(solver.penalty)

        y = (solver.y - solver.shift)[:, None]
        rows = WeightedRows(solver.X, y, solver.weights / 2)  # of half the squares
        optimum = Optimum(coefs, hessian, SQUARED)
        utility = UtilityDerivatives(gradient, curvature)
        players = Players(signs, codes)
        changes, lengths = changes_along_steps(optimum, rows, players, utility)

        # Steps are exact if the coefficients without the player are unique.
        player_of_row = np.arange(len(signs)) if codes is None else codes
        n_rows = np.bincount(player_of_row, solver.weights > 0, len(signs))
        n_left = len(S) + np.minimum(signs, 0) * n_rows
        is_exact = (n_left > self.n_needed) & np.isfinite(lengths)
        return Steps(
            utility=utilities[0],
            changes=np.where(is_exact, changes, 0.0),
            lengths=np.where(is_exact, 0.0, np.inf),
        )
