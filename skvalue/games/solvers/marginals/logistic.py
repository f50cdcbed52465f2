"""Marginal contributions to coalitions of logistic regression, by steps of Newton."""

from typing import NamedTuple

import numpy as np

from ....linear import (
    LOGISTIC,
    SOFTMAX,
    SOLVED,
    Optimum,
    UtilityDerivatives,
    WeightedRows,
    gram,
    group_steps,
    row_steps,
    third_derivatives,
)
from ....linear.joining_kernels import join, mean_log_losses
from ..logistic import MAX_STEPS, TOLERANCE
from .steps import (
    MOST_PREDICTIONS,
    Players,
    Steps,
    Work,
    changes_along_steps,
    mask_of,
)

# Steps are taken from the models of this many rows, in all and per column, unless they
# are longer than a squared length.
_MIN_ROWS = 8
_MIN_ROWS_PER_COLUMN = 1.4
_MAX_LENGTH = 1.0

_MIN_TRAINED = 16  # players trained for real
MOST_COEFFICIENTS = 32  # of which steps of accuracy use third derivatives


class _Coalition(NamedTuple):
    """Rows of a coalition, their numbers by class, and the classes that it has."""

    rows: np.ndarray
    counts: np.ndarray
    classes: np.ndarray

    @property
    def loss(self):
        """The loss of the model."""
        return LOGISTIC if len(self.classes) == 2 else SOFTMAX


class LogisticMarginals:
    """Logistic regression with two and more classes."""

    exact = False
    scorers = ("neg_log_loss", "neg_brier_score", "accuracy")

    def __init__(self, solver):
        self.solver = solver
        self.scores = solver.scores

    def n_drawn(self, n_rows, n_players):
        """As that of `LinearMarginals`: the fewer, the shorter the steps are."""
        n_columns = self._n_columns
        if n_rows < max(_MIN_ROWS, _MIN_ROWS_PER_COLUMN * n_columns):
            return n_players
        return _MIN_TRAINED + 2 * n_players * (n_columns / n_rows) ** 2

    def work(self, n_rows):
        """As that of `LinearMarginals`; measured on data of 6 to 55 columns."""
        p = self._n_columns
        return Work(
            fit=4000 + 3 * n_rows * p,
            joined=1000 + (n_rows + p) * p,
            step=50 + p**2,
        )

    @property
    def _n_columns(self):
        """Number of coefficients that are free."""
        return self.solver.X.shape[1] * max(1, self.solver.n_classes - 1)

    def joined(self, S, rows):
        """Utilities (len(rows),) of a coalition of rows S with each of other rows.

        NaN where training did not converge.
        """
        solver = self.solver
        coalition = self._coalition(S)
        optimum = self._fit(coalition) if len(coalition.classes) > 1 else None
        utilities = np.full(len(rows), np.nan)
        labels = solver.y[rows]
        for label in np.unique(labels):
            places = np.flatnonzero(labels == label)
            counts = coalition.counts + (np.arange(solver.n_classes) == label)
            classes = np.union1d(coalition.classes, label)
            if len(classes) == 1:
                utilities[places] = self._utilities(None, counts[None])[0]
                continue

            # The model of the coalition is a start if no class is new.
            is_new = len(classes) > len(coalition.classes)
            start = None if is_new else optimum
            n_predictions = len(solver.X_val) * len(classes)
            tile_size = max(1, MOST_PREDICTIONS // n_predictions)
            for first in range(0, len(places), tile_size):
                tile = places[first : first + tile_size]
                coefs = self._train(coalition, rows[tile], classes, start)
                converged = np.isfinite(coefs).all(axis=(1, 2))
                coefs = np.where(converged[:, None, None], coefs, 0.0)
                of_tile = self._utilities(
                    coefs, np.tile(counts, (len(tile), 1)), classes
                )
                utilities[tile] = np.where(converged, of_tile, np.nan)
        return utilities

    def has_unique_model(self, S):
        """Whether there is a penalty: always."""
        return True

    def steps(self, S, signs, codes):
        """As `LinearMarginals.steps`.

        There is no step where a class comes or goes, or where it would be long.
        """
        solver = self.solver
        n_players = len(signs)
        coalition = self._coalition(S)
        classes = coalition.classes
        optimum = self._fit(coalition) if len(classes) > 1 else None
        if len(classes) > 1 and optimum is None:
            no_steps = np.full(n_players, np.inf)
            return Steps(np.nan, np.zeros(n_players), no_steps)

        # Numbers of rows by class after each player has joined or left.
        counts = self._counts_by_player(n_players, codes)
        counts_after = coalition.counts + signs[:, None].astype(np.int64) * counts
        same_classes = (counts_after > 0) == (coalition.counts > 0)
        keeps_classes = same_classes.all(axis=1)

        coefs = None if optimum is None else optimum.theta[None]
        utility = self._utilities(coefs, coalition.counts[None], classes)[0]
        changes = np.zeros(n_players)
        lengths = np.where(keeps_classes, 0.0, np.inf)
        if len(classes) < solver.n_classes:
            # Probabilities of the classes that it lacks depend on the number of rows,
            # whatever the numbers by class are.
            sizes = counts_after.sum(axis=1)
            for size in np.unique(sizes[keeps_classes]):
                counts_of_size = np.minimum(coalition.counts, 1)
                counts_of_size[coalition.counts.argmax()] += size - len(classes)
                of_size = self._utilities(coefs, counts_of_size[None], classes)[0]
                changes[keeps_classes & (sizes == size)] = of_size - utility
        if optimum is not None:
            players = Players(signs, codes)
            step_changes, step_lengths = self._changes(coalition, optimum, players)
            changes = changes + np.where(keeps_classes, step_changes, 0.0)
            lengths = np.maximum(lengths, step_lengths)

        is_short = (lengths >= 0) & (lengths < _MAX_LENGTH)
        lengths = np.where(np.isfinite(changes) & is_short, lengths, np.inf)
        changes = np.where(np.isfinite(lengths), changes, 0.0)
        return Steps(utility, changes, lengths)

    # Models of coalitions -------------------------------------------------------------

    def _coalition(self, S):
        """The coalition of rows S."""
        counts = np.bincount(self.solver.y[S], minlength=self.solver.n_classes)
        return _Coalition(S, counts, np.flatnonzero(counts))

    def _counts_by_player(self, n_players, codes):
        """Numbers of rows of positive weight by player and class."""
        solver = self.solver
        player_of_row = np.arange(len(solver.X)) if codes is None else codes
        is_weighted = solver.weights > 0
        counts = np.zeros((n_players, solver.n_classes), dtype=np.int64)
        np.add.at(counts, (player_of_row[is_weighted], solver.y[is_weighted]), 1)
        return counts

    def _vectors_of(self, classes):
        """Which of the solver's vectors of coefficients the models of classes have.

        The first of two classes has none, be they two of more classes or all.
        """
        return classes[len(classes) == 2 :] - (self.solver.n_classes == 2)

    def _fit(self, coalition):
        """The optimum of a coalition of two or more classes; None if not converged."""
        solver = self.solver
        S = coalition.rows
        X = solver.X[S]
        mask = mask_of(S, len(solver.X))
        coefs, status = solver.engine.solve(mask, solver.counts(mask))
        if status[0] != SOLVED:
            return None

        coefs = coefs[0, self._vectors_of(coalition.classes)]
        n_vectors = len(coefs)
        y = np.searchsorted(coalition.classes, solver.y[S])
        curvature = coalition.loss.curvature(X @ coefs.T, y)
        hessian = gram(X, solver.weights[S][:, None, None] * curvature)
        hessian = hessian + np.diag(np.tile(solver.penalty, n_vectors))

        # So that it can be inverted: no step shifts all classes by the same amount.
        largest = np.abs(np.diag(hessian)).max()
        hessian[np.diag_indices_from(hessian)] += 1e-12 * largest
        if n_vectors > 1:
            for column in np.flatnonzero(solver.penalty == 0):
                shifted = np.arange(n_vectors) * X.shape[1] + column
                hessian[np.ix_(shifted, shifted)] += largest / n_vectors
        return Optimum(coefs, hessian, coalition.loss)

    def _train(self, coalition, rows, classes, start):
        """Coefficients (len(rows), K, p) with each row; NaN where not converged.

        Training starts from an optimum ``start`` of the coalition, or from 0 if it is
        None.
        """
        solver = self.solver
        S = coalition.rows
        n_vectors = len(self._vectors_of(classes))
        p = solver.X.shape[1]
        coef = np.zeros((n_vectors, p))
        inverse = np.zeros((n_vectors * p, n_vectors * p))
        if start is not None:
            coef = start.theta
            inverse = start.inverse

        codes = np.searchsorted(classes, solver.y).astype(float)
        coefs = np.empty((len(rows), n_vectors, p))
        join(
            own=solver.X[S],
            own_y=codes[S],
            own_w=solver.weights[S],
            scale=solver.scale,
            penalty=solver.penalty,
            coef=coef,
            inverse=inverse,
            warm=start is not None,
            X=solver.X[rows],
            y=codes[rows],
            w=solver.weights[rows],
            tolerance=TOLERANCE,
            max_steps=MAX_STEPS,
            coefs=coefs,
        )
        return coefs

    def _utilities(self, coefs, counts, classes=None):
        """Utilities (m,) of models of the same classes.

        From their coefficients (m, K, p), and numbers of rows by class (m, n_classes).
        Models of one class have no coefficients: None.
        """
        solver = self.solver
        vectors = np.zeros((len(counts), solver.n_vectors, solver.X.shape[1]))
        if coefs is not None:
            is_mean_loss = self.scores.name == "neg_log_loss" and self.scores.equal
            if is_mean_loss and solver.n_classes == 2:
                return -self._mean_log_losses(coefs)
            vectors[:, self._vectors_of(classes)] = coefs
        return solver.score(vectors, counts, counts.sum(axis=1))

    def _mean_log_losses(self, coefs):
        """Mean losses (m,) of models of two classes, coefficients (m, 1, p)."""
        losses = np.empty(len(coefs))
        margins = coefs[:, 0] @ self.solver.X_val.T
        mean_log_losses(margins, 2.0 * self.scores.y - 1, losses)
        return losses

    # Changes along steps --------------------------------------------------------------

    def _changes(self, coalition, optimum, players):
        """Changes of the utility along steps, and their lengths, both (n_players,)."""
        solver = self.solver
        loss = coalition.loss
        classes = coalition.classes

        # Rows of classes that the coalition lacks have no step.
        has_class = np.isin(solver.y, classes)
        y = np.searchsorted(classes, np.where(has_class, solver.y, classes[0]))
        rows = WeightedRows(solver.X, y, np.where(has_class, solver.weights, 0.0))
        if self.scores.name == "accuracy":
            return self._accuracy_changes(coalition, optimum, rows, players)

        # To second order, the curvature of the utility is less the third derivatives of
        # the losses along H^-1 g.
        coefs = optimum.theta
        gradient, curvature = self._utility_derivatives(coalition, coefs)
        along = np.linalg.solve(optimum.hessian, gradient).reshape(coefs.shape)
        X = solver.X[coalition.rows]
        w = solver.weights[coalition.rows]
        third = loss.curvature_derivative(X @ coefs.T, X @ along.T)
        curvature = curvature - gram(X, w[:, None, None] * third)
        utility = UtilityDerivatives(gradient, curvature)
        return changes_along_steps(optimum, rows, players, utility)

    def _accuracy_changes(self, coalition, optimum, rows, players):
        """Changes of the accuracy along steps, from all predictions, and lengths."""
        solver = self.solver
        coefs = optimum.theta
        inverse = optimum.inverse
        n_coefs = coefs.size
        signs, codes = players
        third = None
        if n_coefs <= MOST_COEFFICIENTS:
            X = solver.X[coalition.rows]
            weights = solver.weights[coalition.rows]
            third = third_derivatives(X, weights, X @ coefs.T, optimum.loss)

        def utilities_after(steps):
            moved = coefs + steps.reshape(-1, *coefs.shape)
            counts = np.tile(coalition.counts, (len(steps), 1))
            return self._utilities(moved, counts, coalition.classes)

        utility = utilities_after(np.zeros((1, n_coefs)))
        changes = np.zeros(len(signs))
        lengths = np.full(len(signs), np.inf)
        n_entries = len(solver.X_val) * len(coefs) + n_coefs**2
        tile_size = max(1, MOST_PREDICTIONS // n_entries)
        with np.errstate(all="ignore"):
            if codes is not None:
                newton_steps, lengths = group_steps(optimum, rows, codes, signs)
            for first in range(0, len(signs), tile_size):
                tile = slice(first, first + tile_size)
                if codes is None:
                    of_tile = WeightedRows(*(array[tile] for array in rows))
                    newton, steps, lengths[tile] = row_steps(
                        optimum, of_tile, signs[tile]
                    )
                else:
                    newton = steps = newton_steps[tile]
                if third is not None:
                    squares = newton[:, :, None] * newton[:, None]
                    squares = squares.reshape(len(steps), -1)
                    along_squares = squares @ third.reshape(-1, n_coefs)
                    steps = steps - 0.5 * (along_squares @ inverse)
                changes[tile] = utilities_after(steps) - utility

            # The number of wrong predictions is proportional to the squared length, and
            # the error of their mean, as signs differ, to its root.
            return changes, np.sqrt(lengths)

    def _utility_derivatives(self, coalition, coefs):
        """Gradient (K p,) and Hessian (K p, K p) of the utility in the coefficients."""
        solver = self.solver
        classes = coalition.classes
        if self.scores.name == "neg_log_loss":
            # The probabilities of classes that the coalition lacks do not change.
            points = np.isin(self.scores.y, classes)
            X = solver.X_val[points]
            w = self.scores.weights[points]
            z = X @ coefs.T
            y = np.searchsorted(classes, self.scores.y[points])
            first = -coalition.loss.gradient(z, y)
            second = -coalition.loss.curvature(z, y)
        else:
            X = solver.X_val
            w = self.scores.weights
            first, second = self._brier_derivatives(coalition, X @ coefs.T)
        gradient = ((w[:, None] * first).T @ X).ravel()
        return gradient, gram(X, w[:, None, None] * second)

    def _brier_derivatives(self, coalition, z):
        """Derivatives (n, K) and (n, K, K) of minus Brier scores in decisions z (n, K).

        The classes that the coalition lacks have known probabilities, so that those of
        its classes add up to a scale.
        """
        y = self.scores.y
        loss = coalition.loss
        classes = coalition.classes
        n_rows = coalition.counts.sum()
        n_classes = self.solver.n_classes
        scale = (n_rows + len(classes)) / (n_rows + n_classes)
        targets = (y[:, None] == classes).astype(float)
        curvature = loss.curvature(z, y)

        # Of two classes the one decision moves both probabilities; with no other class
        # scikit-learn's score counts one of them.
        if loss is LOGISTIC:
            errors = 2 * scale * loss.inverse_link(z) - scale
            errors = errors + targets[:, :1] - targets[:, 1:]
            if n_classes == 2:
                errors = errors / 2
        else:
            errors = scale * loss.inverse_link(z) - targets
        n_moved = 2 if loss is LOGISTIC and n_classes > 2 else 1
        first = -2 * scale * np.einsum("nkl,nl->nk", curvature, errors)
        squares = n_moved * scale * curvature @ curvature
        second = -2 * scale * (squares + loss.curvature_derivative(z, errors))
        return first, second
