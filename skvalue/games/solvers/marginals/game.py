"""The marginal contributions of all players to a coalition of a game of retraining."""

import numpy as np

from ..linear import CompiledForm
from ..logistic import CompiledNewton
from .linear import LinearMarginals
from .logistic import LogisticMarginals

_MAX_MASK_ENTRIES = 2**24  # of the masks in memory at once


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
