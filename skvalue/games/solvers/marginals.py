"""Marginal contributions of all players to a coalition of a game of retraining."""

import numpy as np

from ...linear import (
    LOGISTIC,
    SOFTMAX,
    SOLVED,
    SQUARED,
    gram,
    group_changes,
    group_steps,
    row_steps,
    third_derivatives,
    utility_changes,
)
from .linear import CompiledForm, LeastSquaresSolver
from .logistic import MAX_STEPS, TOLERANCE, CompiledNewton

_FEWEST, _PER_COLUMN = (
    8,
    1.4,
)  # rows, and rows per column, from which on a step is taken
_LONGEST = 1.0  # squared length from which on a step is not taken
_DRAWN = 16  # fewest players trained for real
MOST_PREDICTIONS = 2_000_000  # most predictions at once
MOST_COEFFICIENTS = 32  # of which steps of accuracy use third derivatives
_PIECE = 2**24  # most entries of the masks made at once


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
        self.game, self._codes = game, game._codes
        self._marginals = _models_of(game._solver, game._training)
        self.counts = np.zeros(3, dtype=np.int64)
        self.exact, self.n_players = self._marginals.exact, game.n_players
        self.smooth = game._solver.scores.name != "accuracy"
        weights = game._training.sample_weight
        n_rows = len(game._training.y)
        self._weighted = np.ones(n_rows, dtype=bool) if weights is None else weights > 0
        n_drawn = self._marginals.n_drawn if n_drawn is None else n_drawn
        rows = np.arange(self.n_players + 1) * (n_rows / self.n_players)
        drawn = [np.inf if r == 0 else n_drawn(r, self.n_players) for r in rows]
        self.n_trained = np.minimum(drawn, self.n_players).astype(np.int64)

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
        players = np.arange(self.n_players) if players is None else players
        changes, base = np.full(len(players), np.nan), self.utilities(mask[None])[0]
        if self._codes is None:
            places = np.flatnonzero(~mask[players] & self._weighted[players])
            S, marginals = np.flatnonzero(mask & self._weighted), self._marginals
            rows = players[places]
            found = marginals.joined(S, rows)
            changes[places] = np.nan if found is None else found - base
        left, step = np.flatnonzero(np.isnan(changes)), max(1, _PIECE // self.n_players)
        for first in range(0, len(left), step):
            places = left[first : first + step]
            masks = np.repeat(mask[None], len(places), axis=0)
            masks[np.arange(len(places)), players[places]] ^= True
            changes[places] = self.utilities(masks) - base
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
        of_row = mask if self._codes is None else mask[self._codes]
        S = np.flatnonzero(of_row & self._weighted)
        signs = np.where(mask, -1.0, 1.0)
        utility, changes, lengths = self._marginals.steps(S, signs, self._codes)
        own = np.arange(len(of_row)) if self._codes is None else self._codes
        sizes = np.bincount(own, self._weighted, self.n_players)
        alone = mask & (sizes == len(S))
        changes[alone], lengths[alone] = self.game.empty_utility - utility, 0.0
        changes[sizes == 0], lengths[sizes == 0] = 0.0, 0.0
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
        rows = len(self._weighted) / self.n_players
        fit, joined, step = self._marginals.work(size * rows)
        count = self.n_trained[size]
        if count == self.n_players:
            return fit + count * (joined if self._codes is None else fit), fit
        return fit * (1 + count) + len(self._weighted) * step, fit

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
        utilities, some = (
            np.full(len(masks), self.game.empty_utility),
            masks.any(axis=1),
        )
        if some.any():
            utilities[some], failed, *one_class = self.game._compute(
                masks[some], n_jobs=1
            )
            self.counts += len(failed), failed.sum(), np.sum(one_class)
        return utilities


def _models_of(solver, training):
    """The marginal contributions of a batched solver.

    Raises ValueError if it is another solver or another scorer.
    """
    kinds = {CompiledNewton: LogisticMarginals, CompiledForm: LinearMarginals}
    kind = kinds.get(type(getattr(solver, "engine", None)))
    if kind is None:
        raise ValueError(
            "sampler='marginals' needs LogisticRegression, Ridge or LinearRegression, with the "
            "parameters, dense data and a scorer that batched solvers on the CPU support. Got "
            f"{training.estimator!r}."
        )
    if solver.scores.name not in kind.scorers:
        raise ValueError(
            f"sampler='marginals' needs scoring to be {' or '.join(map(repr, kind.scorers))} with "
            f"{training.estimator!r}. Got {training.scoring!r}."
        )
    solver.prepare()
    return kind(solver)


class LinearMarginals:
    """Ridge and least-squares regression: steps are exact."""

    exact = True
    scorers = ("neg_mean_squared_error", "r2")

    def __init__(self, solver):
        self.solver, self.scores = solver, solver.scores

    def n_drawn(self, n_rows, n_players):
        """Number of players to train for real with a coalition of a given size."""
        return n_players if n_rows <= self.n_needed + 1 else 0

    @property
    def n_needed(self):
        """Number of rows up to which coefficients may not be unique."""
        return (
            2 * self.solver.X.shape[1]
            if type(self.solver) is LeastSquaresSolver
            else -1
        )

    def work(self, n_rows):
        """Operations of a fit on ``n_rows`` rows, of one with a row more, and of a
        row's step."""
        n, p = self.solver.X.shape
        fit = 2000 + 0.01 * n * p**2
        return fit, fit if n_rows else 100, 50 + p**2

    def joined(self, S, rows):
        """Utilities of a coalition of rows S with each of other rows; None if
        unknown."""
        if len(S) or not self.solver.fit_intercept:
            return None
        X_val, y = self.solver.X_val, self.solver.y[rows]
        step = max(1, MOST_PREDICTIONS // len(X_val))
        parts = [
            np.repeat(y[first : first + step, None], len(X_val), axis=1)
            for first in range(0, len(y), step)
        ]
        return np.concatenate(
            [self.scores.of_targets(p, np.ones(len(p))) for p in parts]
        )

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
        utility : float
            The utility.
        changes : ndarray of shape (n_players,)
            Its changes by a player that joins or leaves.
        lengths : ndarray of shape (n_players,)
            Squared lengths of the steps; infinite where there is none, and 0 if they
            are exact.
        """
        solver, mask = self.solver, np.zeros((1, len(self.solver.X)), dtype=bool)
        mask[0, S] = True
        coefs, _ = solver.engine.coefs(mask, np.inf)
        y = (solver.y - solver.shift)[:, None]
        predictions = coefs @ solver.X_val.T
        utility = self.scores.of_targets(predictions + solver.shift, mask.sum(axis=1))[
            0
        ]
        scale = 1.0 / self.scores.variance if self.scores.name == "r2" else 1.0
        weights = -2 * scale * self.scores.weights
        left = predictions[0] + solver.shift - self.scores.y
        gradient = solver.X_val.T @ (weights * left)
        bend = gram(solver.X_val, weights[:, None, None])
        hessian = gram(solver.X[S], solver.weights[S][:, None, None]) + np.diag(
            solver.penalty
        )
        changes, lengths = _changes(
            (solver.X, y, solver.weights / 2),  # the Hessian is of half the squares
            coefs,
            hessian,
            gradient,
            bend,
            signs,
            SQUARED,
            codes,
        )
        players = np.arange(len(signs)) if codes is None else codes
        left = len(S) + np.minimum(signs, 0) * np.bincount(
            players, solver.weights > 0, len(signs)
        )
        known = (left > self.n_needed) & np.isfinite(lengths)
        return utility, np.where(known, changes, 0.0), np.where(known, 0.0, np.inf)


class LogisticMarginals:
    """Logistic regression with two and more classes."""

    exact = False
    scorers = ("neg_log_loss", "neg_brier_score", "accuracy")

    def __init__(self, solver):
        self.solver, self.scores = solver, solver.scores

    def n_drawn(self, n_rows, n_players):
        """As that of `LinearMarginals`: the fewer, the shorter the steps are."""
        n_columns = self.solver.X.shape[1] * max(1, self.solver.n_classes - 1)
        if n_rows < max(_FEWEST, _PER_COLUMN * n_columns):
            return n_players
        return _DRAWN + 2 * n_players * (n_columns / n_rows) ** 2

    def work(self, n_rows):
        """As that of `LinearMarginals`; measured on data of 6 to 55 columns."""
        p = self.solver.X.shape[1] * max(1, self.solver.n_classes - 1)
        return 4000 + 3 * n_rows * p, 1000 + (n_rows + p) * p, 50 + p**2

    def joined(self, S, rows):
        """Utilities of a coalition of rows S with each of other rows; NaN where not
        converged."""
        solver, utilities = self.solver, np.full(len(rows), np.nan)
        counts = np.bincount(solver.y[S], minlength=solver.n_classes)
        present, own = np.flatnonzero(counts), None
        if len(present) > 1:
            own = self._fit(S, present)
        for c in np.unique(solver.y[rows]):
            places = np.flatnonzero(solver.y[rows] == c)
            more, classes = (
                counts + (np.arange(len(counts)) == c),
                np.union1d(present, c),
            )
            if len(classes) == 1:
                utilities[places] = self._utilities(None, more[None])[0]
                continue
            warm = own is not None and len(classes) == len(present)
            size = max(1, MOST_PREDICTIONS // (len(solver.X_val) * len(classes)))
            for first in range(0, len(places), size):
                some = places[first : first + size]
                coefs = self._train(S, rows[some], classes, own if warm else None)
                converged = np.isfinite(coefs).all(axis=(1, 2))
                coefs = np.where(converged[:, None, None], coefs, 0.0)
                found = self._utilities(coefs, np.tile(more, (len(some), 1)), classes)
                utilities[some] = np.where(converged, found, np.nan)
        return utilities

    def _rows_of(self, classes):
        """Rows of the solver's coefficients that the models of some classes have."""
        return classes[len(classes) == 2 :] - (self.solver.n_classes == 2)

    def _fit(self, S, classes):
        """Coefficients (K, p) of a coalition of the given classes and the Hessian; or
        None."""
        solver, mask = self.solver, np.zeros((1, len(self.solver.X)), dtype=bool)
        mask[0, S] = True
        X, w = solver.X[S], solver.weights[S]
        coefs, status = solver.engine.solve(mask, solver.counts(mask))
        if status[0] != SOLVED:
            return None
        coefs = coefs[0, self._rows_of(classes)]
        loss = _loss(classes)
        y = np.searchsorted(classes, solver.y[S])
        curve = loss.curvature(X @ coefs.T, y)
        hessian = gram(X, w[:, None, None] * curve) + np.diag(
            np.tile(solver.penalty, len(coefs))
        )
        top = np.abs(np.diag(hessian)).max()
        hessian[np.diag_indices_from(hessian)] += 1e-12 * top
        if len(coefs) > 1:  # shifts of all classes, which no step makes
            for a in np.flatnonzero(solver.penalty == 0):
                shifted = np.arange(len(coefs)) * X.shape[1] + a
                hessian[np.ix_(shifted, shifted)] += top / len(coefs)
        return coefs, hessian

    def _train(self, S, rows, classes, own):
        """Coefficients (n, K, p) of S with each of some rows; NaN where not
        converged."""
        from ...linear.joining_kernels import join

        solver, (k, p) = (
            self.solver,
            (len(self._rows_of(classes)), self.solver.X.shape[1]),
        )
        coefs, inverse = np.zeros((k, p)), np.zeros((k * p, k * p))
        if own is not None:
            coefs, inverse = own[0], np.linalg.inv(own[1])
        codes, out = (
            np.searchsorted(classes, solver.y).astype(float),
            np.empty((len(rows), k, p)),
        )
        join(
            solver.X[S], codes[S], solver.weights[S], solver.scale, solver.penalty, coefs, inverse,
            own is not None, solver.X[rows], codes[rows], solver.weights[rows], TOLERANCE,
            MAX_STEPS, out,
        )  # fmt: skip
        return out

    def _utilities(self, coefs, counts, classes=None):
        """Utilities of models of coefficients (m, K, p) of some classes, of rows by
        class.

        Those of one class have no coefficients: None.
        """
        solver, sizes = self.solver, counts.sum(axis=1)
        every = np.zeros((len(counts), solver.n_vectors, solver.X.shape[1]))
        if coefs is not None:
            every[:, self._rows_of(classes)] = coefs
            if (
                self.scores.name == "neg_log_loss"
                and self.scores.equal
                and solver.n_classes == 2
            ):
                from ...linear.joining_kernels import mean_log_losses

                losses = np.empty(len(coefs))
                margins = coefs[:, 0] @ solver.X_val.T
                mean_log_losses(margins, 2.0 * self.scores.y - 1, losses)
                return -losses
        return solver.score(every, counts, sizes)

    def steps(self, S, signs, codes):
        """As `LinearMarginals.steps`; no step where a class comes or goes, or steps are
        long."""
        solver = self.solver
        n_classes, players = (
            solver.n_classes,
            np.arange(len(solver.X)) if codes is None else codes,
        )
        weighted = solver.weights > 0
        of_player = np.zeros((len(signs), n_classes), dtype=np.int64)
        np.add.at(of_player, (players[weighted], solver.y[weighted]), 1)
        counts = np.bincount(solver.y[S], minlength=n_classes)
        after = counts + signs[:, None].astype(np.int64) * of_player
        known = ((after > 0) == (counts > 0)).all(axis=1)
        classes = np.flatnonzero(counts)
        lengths = np.where(known, 0.0, np.inf)
        own = self._fit(S, classes) if len(classes) > 1 else None
        if len(classes) > 1 and own is None:
            return np.nan, np.zeros(len(signs)), np.full(len(signs), np.inf)
        coefs = None if own is None else own[0][None]
        utility, changes = (
            self._utilities(coefs, counts[None], classes)[0],
            np.zeros(len(signs)),
        )
        if len(classes) < n_classes:  # probabilities depend on the number of rows
            sizes = after.sum(axis=1)
            for size in np.unique(sizes[known]):
                other = np.minimum(counts, 1)
                other[counts.argmax()] += size - len(classes)
                here = known & (sizes == size)
                changes[here] = (
                    self._utilities(coefs, other[None], classes)[0] - utility
                )
        if own is not None:
            steps, long = self._changes(S, own, classes, counts, signs, codes)
            changes, lengths = (
                changes + np.where(known, steps, 0.0),
                np.maximum(lengths, long),
            )
        near = np.isfinite(changes) & (lengths >= 0) & (lengths < _LONGEST)
        lengths = np.where(near, lengths, np.inf)
        return utility, np.where(np.isfinite(lengths), changes, 0.0), lengths

    def _changes(self, S, own, classes, counts, signs, codes):
        """Changes of the utility along steps, and their lengths."""
        solver, (theta, hessian), loss = self.solver, own, _loss(classes)
        X, w = solver.X[S], solver.weights[S]
        known = np.isin(solver.y, classes)
        y = np.searchsorted(classes, np.where(known, solver.y, classes[0]))
        rows = solver.X, y, np.where(known, solver.weights, 0.0)
        if self.scores.name == "accuracy":
            third = (
                third_derivatives(X, w, X @ theta.T, loss)
                if len(hessian) <= MOST_COEFFICIENTS
                else None
            )
            parts = rows, theta, hessian, third
            return self._accuracy_changes(*parts, classes, counts, signs, codes)
        gradient, bend = self._utility_derivatives(theta, classes, counts)
        along = np.linalg.solve(hessian, gradient).reshape(theta.shape)
        bend = bend - gram(
            X, w[:, None, None] * loss.curvature_derivative(X @ theta.T, X @ along.T)
        )
        return _changes(rows, theta, hessian, gradient, bend, signs, loss, codes)

    def _accuracy_changes(
        self, rows, theta, hessian, third, classes, counts, signs, codes
    ):
        """Changes of the accuracy along steps, computed from all predictions, and their
        lengths."""
        loss, lengths, changes = (
            _loss(classes),
            np.full(len(signs), np.inf),
            np.zeros(len(signs)),
        )

        def scores(steps):
            coefs = theta + steps.reshape(-1, *theta.shape)
            return self._utilities(coefs, np.tile(counts, (len(steps), 1)), classes)

        own, inverse = scores(np.zeros((1, len(hessian)))), np.linalg.inv(hessian)
        size = max(
            1,
            MOST_PREDICTIONS
            // (len(self.solver.X_val) * len(theta) + len(hessian) ** 2),
        )
        with np.errstate(all="ignore"):
            if codes is not None:
                steps, lengths = group_steps(*rows, theta, hessian, signs, loss, codes)
            for first in range(0, len(signs), size):
                part = slice(first, first + size)
                if codes is None:
                    some = [array[part] for array in rows]
                    newton, d, lengths[part] = row_steps(
                        *some, theta, inverse, signs[part], loss
                    )
                else:
                    newton = d = steps[part]
                if third is not None:
                    squares = (newton[:, :, None] * newton[:, None]).reshape(len(d), -1)
                    d = d - 0.5 * squares @ third.reshape(-1, len(hessian)) @ inverse
                changes[part] = scores(d) - own
            # As many predictions are wrong as squared lengths are large: errors are
            # their roots.
            return changes, np.sqrt(lengths)

    def _utility_derivatives(self, theta, classes, counts):
        """First and second derivatives of the utility by the coefficients."""
        solver, loss = self.solver, _loss(classes)
        here = np.isin(self.scores.y, classes)
        X, w = solver.X_val[here], self.scores.weights[here]
        z, y = X @ theta.T, np.searchsorted(classes, self.scores.y[here])
        if self.scores.name == "neg_log_loss":
            first, second = -loss.gradient(z, y), -loss.curvature(z, y)
        else:
            # Brier: of all classes, those that the coalition lacks have known
            # probabilities.
            X, w, y = solver.X_val, self.scores.weights, self.scores.y
            z = X @ theta.T
            scale = (counts.sum() + len(classes)) / (counts.sum() + solver.n_classes)
            targets = (y[:, None] == classes).astype(float)
            curve = loss.curvature(z, y)
            if loss is LOGISTIC:
                off = (
                    2 * scale * loss.inverse_link(z)
                    - scale
                    + targets[:, :1]
                    - targets[:, 1:]
                )
                off = off if solver.n_classes > 2 else off / 2
            else:
                off = scale * loss.inverse_link(z) - targets
            first = -2 * scale * np.einsum("nkl,nl->nk", curve, off)
            twice = 2 if loss is LOGISTIC and solver.n_classes > 2 else 1
            second = (
                -2
                * scale
                * (twice * scale * curve @ curve + loss.curvature_derivative(z, off))
            )
        gradient = ((w[:, None] * first).T @ X).ravel()
        return gradient, gram(X, w[:, None, None] * second)


def _loss(classes):
    return LOGISTIC if len(classes) == 2 else SOFTMAX


def _changes(rows, theta, hessian, gradient, bend, signs, loss, codes):
    """Changes of the utility and lengths of steps, of rows or of groups."""
    try:
        if codes is not None:
            return group_changes(
                *rows, theta, hessian, gradient, bend, signs, loss, codes
            )
        inverse = np.linalg.inv(hessian)
        return utility_changes(*rows, theta, inverse, gradient, bend, signs, loss)
    except np.linalg.LinAlgError:
        return np.zeros(len(signs)), np.full(len(signs), np.inf)
