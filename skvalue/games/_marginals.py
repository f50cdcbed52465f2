"""Marginal contributions of all players to a coalition of a game of retraining."""

import numpy as np

from .solvers import make_marginals

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
        self._marginals = make_marginals(game._solver, game._training)
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
