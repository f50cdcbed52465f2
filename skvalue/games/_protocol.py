"""What a game is: players, and the utility of any coalition of them."""

import warnings
from abc import ABC, abstractmethod
from hashlib import blake2b
from time import perf_counter

import numpy as np

from ..exceptions import FailedCoalitionsWarning

_MANY_FAILED = 0.1
_LONG_ENOUGH, _ENOUGH = 0.05, 2000  # seconds and coalitions of a measurement


class Game(ABC):
    """A coalitional game: `utility` of any coalition of `n_players` players.

    A game writes `_compute`. The base checks coalitions, knows the empty one, remembers utilities
    and counts.

    Parameters
    ----------
    n_players : int
        Number of players.
    empty_utility : float
        Utility of the empty coalition.
    cache_size : int, default=100_000
        Utilities that are remembered, the latest ones; 0 for none.

    Attributes
    ----------
    n_players : int
        Number of players.
    empty_utility : float
        Utility of the empty coalition, which is never computed.
    solver : str
        What computes utilities: "function", "loop", or the name of a batched solver.
    n_evaluations : int
        Utilities computed so far; those remembered, and the empty coalition, do not count.
    n_failed : int
        Coalitions among them that could not be trained, or hold one class.
    """

    solver = "function"
    # Whether a utility has the same bits whatever is computed with it: only then may it be
    # remembered, or the bits of a long computation would depend on where it was resumed.
    _remember = True

    def __init__(self, n_players, empty_utility, cache_size=100_000):
        self.n_players = int(n_players)
        self.empty_utility = float(empty_utility)
        if not np.isfinite(self.empty_utility):
            raise ValueError(f"empty_utility must be finite. Got {empty_utility!r}.")
        self.cache_size = cache_size
        self.n_evaluations = 0
        self.n_failed = 0
        self._memo = {}

    @abstractmethod
    def _compute(self, masks, n_jobs=None):
        """Compute the utilities of coalitions, none of them empty.

        Parameters
        ----------
        masks : ndarray of bool of shape (m, n_players)
            The coalitions.
        n_jobs : int or None
            Workers in place of the game's own number.

        Returns
        -------
        utilities : ndarray of shape (m,)
            Their utilities.
        failed : ndarray of bool of shape (m,)
            Those that could not be trained, or hold one class.
        """

    def utility(self, masks):
        """Utilities of coalitions.

        Parameters
        ----------
        masks : ndarray of bool of shape (m, n_players)
            One coalition a row: True where the player is in it.

        Returns
        -------
        utilities : ndarray of shape (m,)
            Their utilities.

        Raises
        ------
        ValueError
            If the masks are not boolean or have another number of columns.
        """
        masks = np.asarray(masks)
        if masks.dtype != bool or masks.ndim != 2 or masks.shape[1] != self.n_players:
            raise ValueError(
                f"masks must be a bool array of shape (m, {self.n_players}). Got shape "
                f"{masks.shape} of {masks.dtype}."
            )
        utilities = np.full(len(masks), self.empty_utility)
        asked = np.flatnonzero(masks.any(axis=1))
        if self._remember and self.cache_size:
            utilities[asked] = self._recall(masks[asked])
        elif len(asked):
            utilities[asked] = self._count(*self._compute(masks[asked]))
        return utilities

    def evaluation_cost(self, size=None, n_coalitions=None, nested=False):
        """Measure what one coalition costs.

        Parameters
        ----------
        size : int, default=None
            Players in the coalitions measured; None is half of them.
        n_coalitions : int, default=None
            Coalitions measured; None takes as many as make the overhead of a call small.
        nested : bool, default=False
            Whether they are prefixes of one order, around that size, which batched solvers may
            have cheaper; else they are drawn one by one.

        Returns
        -------
        seconds : float
            Mean seconds a coalition takes one worker. Nothing is counted or remembered.

        Raises
        ------
        ValueError
            If there is no coalition of that size.
        """
        size = max(1, self.n_players // 2) if size is None else size
        if not 1 <= size <= self.n_players:
            raise ValueError(f"size must be between 1 and {self.n_players}. Got {size}.")
        count = 3 if n_coalitions is None else n_coalitions
        self._compute(self._draw(1, size, nested), n_jobs=1)  # compiles, imports
        while True:
            masks = self._draw(count, size, nested)
            start = perf_counter()
            self._compute(masks, n_jobs=1)
            seconds = perf_counter() - start
            if n_coalitions is not None or seconds > _LONG_ENOUGH or count > _ENOUGH:
                return seconds / count
            count *= 4

    def _draw(self, count, size, nested):
        """Coalitions of about a size, prefixes of one order or not."""
        rng = np.random.default_rng(0)
        length = min(count, self.n_players) if nested else 1
        first = max(1, min(size - length // 2, self.n_players - length + 1))
        orders = np.tile(np.arange(self.n_players), (-(-count // length), 1))
        places = rng.permuted(orders, axis=1).repeat(length, axis=0)[:count]
        return places < (first + np.arange(count) % length)[:, None]

    def warn_failed(self, stacklevel=2):
        """Warn if more than a tenth of the coalitions computed could not be trained.

        Parameters
        ----------
        stacklevel : int, default=2
            As in `warnings.warn`; 2 is the line that calls this method.

        Warns
        -----
        FailedCoalitionsWarning
            Names how many, and what their utility is.
        """
        if self.n_failed > _MANY_FAILED * self.n_evaluations:
            warnings.warn(
                f"{self.n_failed} of {self.n_evaluations} coalitions could not be trained or hold "
                f"one class. {self._failed_rule()}",
                FailedCoalitionsWarning,
                stacklevel=stacklevel,
            )

    def _failed_rule(self):
        """What utility coalitions have that failed."""
        return ""

    def _count(self, utilities, failed):
        self.n_evaluations += len(utilities)
        self.n_failed += int(np.count_nonzero(failed))
        return utilities

    def _recall(self, masks):
        """Utilities from the memo, the missing ones computed, each once."""
        keys = [_key(row) for row in np.packbits(masks, axis=1)]
        missing = {key: place for place, key in enumerate(keys) if key not in self._memo}
        if missing:
            found = self._count(*self._compute(masks[list(missing.values())]))
            self._memo.update(zip(missing, found.tolist()))
        utilities = np.array([self._memo[key] for key in keys])
        for _ in range(len(self._memo) - self.cache_size):
            del self._memo[next(iter(self._memo))]
        return utilities


def _key(packed):
    """Bytes that tell a coalition from all others, never many."""
    data = packed.tobytes()
    return data if len(data) <= 16 else blake2b(data, digest_size=16).digest()


class FunctionGame(Game):
    """A game given by a function of coalitions.

    Parameters
    ----------
    function : callable
        ``function(masks)`` gives the utilities of the rows of a bool array of shape
        (m, n_players).
    n_players : int
        Number of players.
    empty_utility : float, default=None
        Utility of the empty coalition; None asks the function.
    cache_size : int, default=100_000
        Utilities that are remembered; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.games import FunctionGame
    >>> costs = np.array([1.0, 2.0, 4.0])
    >>> airport = FunctionGame(lambda masks: (masks * costs).max(axis=1), 3)
    >>> airport.utility(np.array([[True, False, False], [True, True, False]])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, function, n_players, empty_utility=None, cache_size=100_000):
        self.function = function
        if empty_utility is None:
            empty_utility = self._ask(np.zeros((1, n_players), dtype=bool))[0]
        super().__init__(n_players, empty_utility, cache_size)

    def _ask(self, masks):
        utilities = np.asarray(self.function(masks), dtype=np.float64)
        if utilities.shape != (len(masks),):
            raise ValueError(
                f"function must give one utility a coalition: shape ({len(masks)},). Got "
                f"{utilities.shape}."
            )
        return utilities

    def _compute(self, masks, n_jobs=None):
        utilities = self._ask(masks)
        if not np.isfinite(utilities).all():
            worst = int(np.flatnonzero(~np.isfinite(utilities))[0])
            raise ValueError(
                f"function must give finite utilities. Got {utilities[worst]} for a coalition of "
                f"{masks[worst].sum()} players."
            )
        return utilities, np.zeros(len(masks), dtype=bool)
