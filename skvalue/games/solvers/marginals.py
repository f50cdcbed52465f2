"""Marginal contributions of all players to a coalition of a game of retraining."""

from typing import NamedTuple

import numpy as np

from ...linear import (
    LOGISTIC,
    SOFTMAX,
    SOLVED,
    SQUARED,
    Optimum,
    UtilityDerivatives,
    WeightedRows,
    gram,
    group_changes,
    group_steps,
    row_steps,
    third_derivatives,
    utility_changes,
)
from ...linear.joining_kernels import join, mean_log_losses
from .linear import CompiledForm, LeastSquaresSolver
from .logistic import MAX_STEPS, TOLERANCE, CompiledNewton

# Steps are taken from the models of this many rows, in all and per column, unless they
# are longer than a squared length.
_MIN_ROWS = 8
_MIN_ROWS_PER_COLUMN = 1.4
_MAX_LENGTH = 1.0

# Condition number of a Gram matrix from which steps may be wrong.
_WIDEST = 1e10

# Penalty whose inverse is as good as infinite.
_TINY = 1e-100

_MIN_TRAINED = 16  # players trained for real
_MAX_MASK_ENTRIES = 2**24  # of the masks in memory at once
MOST_PREDICTIONS = 2_000_000  # most predictions at once
MOST_COEFFICIENTS = 32  # of which steps of accuracy use third derivatives


class MarginalGame:
    """What every player of a game of retraining adds to a coalition.

    For a player outside, the utility with it minus that of the coalition; for one
    inside, the utility of the coalition minus that without it. The coalition is trained
    once: one step from its model, to second order, gives the contributions of all
    players, see `steps`. `trained` are those of models trained for real.

    Parameters
    ----------
    game : ModelGame
        The game, whose models a batched solver on the CPU trains.
    n_drawn : callable, default=None
        Number of players that are trained for real, for each size of a coalition; None
        is a rule for the kind of model.

    Attributes
    ----------
    exact : bool
        Whether steps are exact, as for squared losses.
    smooth : bool
        Whether the utility has derivatives, which the accuracy has not.
    n_trained : ndarray of int of shape (n_players + 1,)
        For coalitions of each number of players, of how many players the contributions
        are to be trained: all, if the coalitions are too small for steps, and none, if
        steps are exact.
    counts : ndarray of int of shape (3,)
        Numbers of models trained for real, of those that failed, and of those of one
        class.

    Raises
    ------
    ValueError
        If the estimator or the scorer has no steps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.games import MarginalGame, ModelGame
    >>> X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0.0, 1.0, 1.0, 3.0])
    >>> game = MarginalGame(ModelGame(Ridge(), X, y, X_val=X, y_val=y))
    >>> coalition = np.array([True, True, False, True])
    >>> contributions, _ = game.steps(coalition)
    >>> bool(np.allclose(contributions, game.trained(coalition)))
    True
    """

    def __init__(self, game, n_drawn=None):
        self.game = game
        self._codes = game._codes  # player of every row; None if they are the rows
        self._models = _models_of(game._solver, game._training)
        self.counts = np.zeros(3, dtype=np.int64)
        self.exact = self._models.exact
        self.n_players = game.n_players
        self.smooth = game._solver.scores.name != "accuracy"

        n_rows = len(game._training.y)
        weights = game._training.sample_weight
        self._is_weighted = np.ones(n_rows, dtype=bool)
        if weights is not None:
            self._is_weighted = weights > 0

        if n_drawn is None:
            n_drawn = self._models.n_drawn
        n_trained = [np.inf]
        for n_members in range(1, self.n_players + 1):
            rows = n_members * (n_rows / self.n_players)  # on average
            n_trained.append(n_drawn(rows, self.n_players))
        self.n_trained = np.minimum(n_trained, self.n_players).astype(np.int64)

    def trained(self, mask, players=None):
        """Contributions to a coalition by training with or without each player.

        Parameters
        ----------
        mask : ndarray of bool of shape (n_players,)
            The coalition.
        players : ndarray of int, default=None
            The players; None is all.

        Returns
        -------
        contributions : ndarray of shape (n_players,) or (len(players),)
            What they add.
        """
        if players is None:
            players = np.arange(self.n_players)
        utility = self.utilities(mask[None])[0]
        changes = np.full(len(players), np.nan)

        # Rows that join start from the model of the coalition.
        if self._codes is None:
            S = np.flatnonzero(mask & self._is_weighted)
            joins = ~mask[players] & self._is_weighted[players]
            places = np.flatnonzero(joins)
            changes[places] = self._models.joined(S, players[places]) - utility

        # All others, and those that did not converge, are trained as coalitions.
        unknown = np.flatnonzero(np.isnan(changes))
        tile_size = max(1, _MAX_MASK_ENTRIES // self.n_players)
        for first in range(0, len(unknown), tile_size):
            places = unknown[first : first + tile_size]
            masks = np.repeat(mask[None], len(places), axis=0)
            masks[np.arange(len(places)), players[places]] ^= True
            changes[places] = self.utilities(masks) - utility
        return np.where(mask[players], -changes, changes)

    def steps(self, mask):
        """Contributions to a coalition by one step each.

        Parameters
        ----------
        mask : ndarray of bool of shape (n_players,)
            The coalition.

        Returns
        -------
        contributions : ndarray of shape (n_players,)
            What all players add, to second order.
        lengths : ndarray of shape (n_players,)
            Squared lengths of the steps, in the metric of the Hessian plus a sixteenth
            of that of the player's decision, if it is a row; for the accuracy, their
            roots. Infinite, and the contribution 0, where there is no step: where a
            class comes or goes, or it is too long.
        """
        if self._codes is None:
            players = np.arange(len(mask))
            row_mask = mask
        else:
            players = self._codes
            row_mask = mask[self._codes]
        S = np.flatnonzero(row_mask & self._is_weighted)
        if not self._models.has_unique_model(S):
            return self.trained(mask), np.zeros(self.n_players)
        signs = np.where(mask, -1.0, 1.0)
        utility, changes, lengths = self._models.steps(S, signs, self._codes)

        # Without its only player a coalition is empty. A player without rows of
        # positive weight changes nothing.
        n_rows = np.bincount(players, self._is_weighted, self.n_players)
        is_alone = mask & (n_rows == len(S))
        changes[is_alone] = self.game.empty_utility - utility
        lengths[is_alone] = 0.0
        changes[n_rows == 0] = 0.0
        lengths[n_rows == 0] = 0.0
        return signs * changes, lengths

    def work(self, size):
        """Operations, about, of the contributions to a coalition, and of its fit.

        Parameters
        ----------
        size : int
            Number of its players.

        Returns
        -------
        contributions, fit : float
            The operations, of which some ten thousand take a tenth of a millisecond.
        """
        n_rows = len(self._is_weighted)
        fit, joined, step = self._models.work(size * (n_rows / self.n_players))
        n_trained = self.n_trained[size]
        if n_trained == self.n_players:
            with_player = joined if self._codes is None else fit
            return fit + n_trained * with_player, fit
        return fit * (1 + n_trained) + n_rows * step, fit

    def utilities(self, masks):
        """Compute utilities in this thread.

        Parameters
        ----------
        masks : ndarray of shape (n_coalitions, n_players)
            Boolean masks of coalitions.

        Returns
        -------
        utilities : ndarray of shape (n_coalitions,)
            Utility of each coalition.
        """
        utilities = np.full(len(masks), self.game.empty_utility)
        has_players = masks.any(axis=1)
        if has_players.any():
            computed, failed, *one_class = self.game._compute(
                masks[has_players], n_jobs=1
            )
            utilities[has_players] = computed
            self.counts += len(failed), failed.sum(), np.sum(one_class)
        return utilities


class Steps(NamedTuple):
    """What each player changes in the utility of a coalition, along a step.

    Parameters
    ----------
    utility : float
        The utility.
    changes : ndarray of shape (n_players,)
        Its changes by a player that joins or leaves.
    lengths : ndarray of shape (n_players,)
        Squared lengths of the steps; infinite where there is none, and 0 if they are
        exact.
    """

    utility: float
    changes: np.ndarray
    lengths: np.ndarray


class Work(NamedTuple):
    """Operations of a fit, of one with a row more, and of a row's step."""

    fit: float
    joined: float
    step: float


class _Players(NamedTuple):
    """Who joins or leaves: signs (n_players,), 1 or -1, and the player of every row.

    The codes of players are None if they are the rows.
    """

    signs: np.ndarray
    codes: np.ndarray | None


def _models_of(solver, training):
    """The marginal contributions to coalitions of the models of a batched solver.

    Raises ValueError if it is another solver or another scorer, or R2 is not defined.
    """
    kinds = {CompiledNewton: LogisticMarginals, CompiledForm: LinearMarginals}
    kind = kinds.get(type(getattr(solver, "engine", None)))
    if kind is None:
        raise ValueError(
            "sampler='marginals' needs LogisticRegression, Ridge or LinearRegression, "
            "from whose derivatives contributions follow, with the parameters, dense "
            "data and a scorer that batched solvers on the CPU support. Got "
            f"{training.estimator!r}."
        )
    if solver.scores.name not in kind.scorers:
        scorers = " or ".join(map(repr, kind.scorers))
        raise ValueError(
            f"sampler='marginals' needs scoring to be {scorers} with "
            f"{training.estimator!r}, scores whose changes along a step are known. Got "
            f"{training.scoring!r}."
        )
    if solver.scores.name == "r2" and not solver.scores.variance > 0:
        raise ValueError(
            "sampler='marginals' needs y_val of at least two values at points with "
            "weight where scoring is 'r2', which divides by their variance. Got one."
        )
    solver.prepare()
    return kind(solver)


# Linear regression --------------------------------------------------------------------


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
        return n_players if n_rows <= self.n_needed + 1 else 0

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
        return Work(fit=fit, joined=fit if n_rows else 100, step=50 + p**2)

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
        mask = _mask_of(S, len(self.solver.X))
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
        mask = _mask_of(S, len(solver.X))
        coefs, _ = solver.engine.coefs(mask, np.inf)
        predictions = coefs @ solver.X_val.T
        utilities = self.scores.of_targets(predictions + solver.shift, mask.sum(axis=1))

        # Derivatives of the utility, and of the squared errors of the coalition.
        scale = 1.0 / self.scores.variance if self.scores.name == "r2" else 1.0
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
        players = _Players(signs, codes)
        changes, lengths = _changes_along_steps(optimum, rows, players, utility)

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


# Logistic regression ------------------------------------------------------------------


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
            players = _Players(signs, codes)
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
        mask = _mask_of(S, len(solver.X))
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
        return _changes_along_steps(optimum, rows, players, utility)

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


def _mask_of(S, n_rows):
    """Mask (1, n_rows) of the rows S."""
    mask = np.zeros((1, n_rows), dtype=bool)
    mask[0, S] = True
    return mask


def _changes_along_steps(optimum, rows, players, utility):
    """Changes of the utility and squared lengths of steps, of rows or of groups."""
    signs, codes = players
    try:
        if codes is not None:
            return group_changes(optimum, rows, codes, signs, utility)
        return utility_changes(optimum, rows, signs, utility)
    except np.linalg.LinAlgError:
        return np.zeros(len(signs)), np.full(len(signs), np.inf)
