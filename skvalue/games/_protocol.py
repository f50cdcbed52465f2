"""The interface of games: players, and the utility of any coalition of them."""

from abc import ABC, abstractmethod
from hashlib import blake2b
from time import perf_counter

import numpy as np

from ..exceptions import FailedCoalitionsWarning, ImpreciseValuesWarning

_MANY_FAILED = 0.1  # fraction of the coalitions above which there is a warning

_LARGEST_UTILITY = 1e150  # squares of larger ones, of which errors are made, overflow

# Squares of smaller values, of which errors are made, lose digits or are zero.
_SMALLEST_VALUE = 1e-150

# What ends a measurement of the cost of a coalition.
_MAX_SECONDS = 0.05
_MAX_COALITIONS = 2000


class Game(ABC):
    """Base class of coalitional games of `n_players` players.

    A subclass implements `_compute`. This class validates coalitions, handles the empty
    coalition, keeps the latest utilities and counts evaluations.

    Parameters
    ----------
    n_players : int
        Number of players.
    empty_utility : float
        Utility of the empty coalition.
    cache_size : int, default=100_000
        Number of utilities kept in memory, the latest ones; 0 for none.

    Attributes
    ----------
    n_players : int
        Number of players.
    empty_utility : float
        Utility of the empty coalition, which is never computed.
    solver : str
        How utilities are computed: "function", "loop", or the name of a batched solver.
    n_evaluations : int
        Number of utilities computed; those read from memory and the empty coalition do
        not count.
    n_failed : int
        Number of coalitions among them that could not be trained or scored.
    n_one_class : int
        Number of coalitions among them that have one class, which their model predicts.
    """

    solver = "function"
    # Whether a utility does not depend, bitwise, on the other coalitions of the call.
    # Only then is it kept in memory; otherwise results would depend on where a
    # computation was resumed.
    _remember = True

    def __init__(self, n_players, empty_utility, cache_size=100_000):
        self.n_players = int(n_players)
        self.empty_utility = float(empty_utility)
        if not abs(self.empty_utility) <= _LARGEST_UTILITY:
            raise ValueError(
                "empty_utility must be finite, and at most 1e150 in absolute value. "
                f"Got {self.empty_utility!r}."
            )
        self._failed_utility = self.empty_utility
        self.cache_size = cache_size
        self.n_evaluations = 0
        self.n_failed = 0
        self.n_one_class = 0
        self._memo = {}

    @abstractmethod
    def _compute(self, masks, n_jobs=None):
        """Compute the utilities of coalitions, none of them empty.

        Parameters
        ----------
        masks : ndarray of bool of shape (m, n_players)
            The coalitions.
        n_jobs : int or None
            Number of workers instead of that of the game.

        Returns
        -------
        utilities : ndarray of shape (m,)
            Their utilities.
        failed : ndarray of bool of shape (m,)
            True for coalitions that could not be trained or scored.
        one_class : ndarray of bool of shape (m,)
            True for coalitions of one class; a game without classes may leave this
            array out.
        """

    def utility(self, masks):
        """Utilities of coalitions.

        Parameters
        ----------
        masks : ndarray of bool of shape (m, n_players)
            One coalition per row: True for the players in it.

        Returns
        -------
        utilities : ndarray of shape (m,)
            Their utilities.

        Raises
        ------
        ValueError
            If the masks are not boolean, the number of columns is not `n_players`, or a
            utility is not finite, or above 1e150 in absolute value.
        """
        masks = np.asarray(masks)
        if masks.dtype != bool or masks.ndim != 2 or masks.shape[1] != self.n_players:
            raise ValueError(
                f"masks must be a bool array of shape (m, {self.n_players}), a row for "
                f"each coalition. Got shape {masks.shape} of {masks.dtype}."
            )
        utilities = np.full(len(masks), self.empty_utility)
        nonempty = np.flatnonzero(masks.any(axis=1))
        if self._remember and self.cache_size:
            utilities[nonempty] = self._recall(masks[nonempty])
        elif len(nonempty):
            utilities[nonempty] = self._count(*self._compute(masks[nonempty]))
        is_bounded = np.abs(utilities) <= _LARGEST_UTILITY
        if not is_bounded.all():
            first = np.flatnonzero(~is_bounded)[0]
            raise ValueError(
                "Utilities must be finite, and at most 1e150 in absolute value, for "
                f"their squares to be finite. Got {utilities[first]} for a coalition "
                f"of {masks[first].sum()} players."
            )
        return utilities

    def evaluation_cost(self, size=None, nested=False):
        """Measure the time of one coalition.

        Parameters
        ----------
        size : int, default=None
            Number of players in the coalitions measured; None is half of all players.
        nested : bool, default=False
            Whether they are prefixes of one permutation, around that size, for which
            batched solvers may be faster; otherwise they are drawn independently.

        Returns
        -------
        seconds : float
            Mean seconds per coalition for one worker. The coalitions measured are not
            counted in `n_evaluations`.

        Raises
        ------
        ValueError
            If there is no coalition of that size.
        """
        if size is None:
            size = max(1, self.n_players // 2)
        if not 1 <= size <= self.n_players:
            raise ValueError(
                f"size must be between 1 and {self.n_players}. Got {size}."
            )
        # The first call is not timed: it takes imports, and the first use of memory.
        self._compute(self._draw(1, size, nested), n_jobs=1)
        count = 3
        while True:
            masks = self._draw(count, size, nested)
            start = perf_counter()
            self._compute(masks, n_jobs=1)
            seconds = perf_counter() - start
            if seconds > _MAX_SECONDS or count > _MAX_COALITIONS:
                return seconds / count
            count *= 4

    def _draw(self, count, size, nested):
        """Coalitions of about one size, independent or prefixes of one permutation."""
        rng = np.random.default_rng(0)
        n_prefixes = min(count, self.n_players) if nested else 1
        n_orders = -(-count // n_prefixes)
        smallest = max(1, min(size - n_prefixes // 2, self.n_players - n_prefixes + 1))
        players = np.tile(np.arange(self.n_players), (n_orders, 1))
        places = rng.permuted(players, axis=1).repeat(n_prefixes, axis=0)[:count]
        sizes = smallest + np.arange(count) % n_prefixes
        return places < sizes[:, None]

    def _count(self, utilities, failed, one_class=False):
        """Count evaluations; returns the utilities."""
        self.n_evaluations += len(utilities)
        self.n_failed += int(np.count_nonzero(failed))
        self.n_one_class += int(np.count_nonzero(one_class))
        return utilities

    def _recall(self, masks):
        """Utilities from memory; those not in memory are computed, once each."""
        keys = [_key(packed) for packed in np.packbits(masks, axis=1)]
        missing = {
            key: place for place, key in enumerate(keys) if key not in self._memo
        }
        if missing:
            places = list(missing.values())
            computed = self._count(*self._compute(masks[places]))
            self._memo.update(zip(missing, computed.tolist()))
        utilities = np.array([self._memo[key] for key in keys])

        # The oldest come first.
        for _ in range(len(self._memo) - self.cache_size):
            del self._memo[next(iter(self._memo))]
        return utilities


def failed_warnings(games):
    """The warning, in a list, if more than a tenth of all coalitions failed."""
    n_failed = sum(game.n_failed for game in games)
    n_evaluations = sum(game.n_evaluations for game in games)
    if n_failed <= _MANY_FAILED * n_evaluations:
        return []
    utilities = {f"{game._failed_utility:.6g}" for game in games if game.n_failed}
    message = (
        f"{n_failed} of {n_evaluations} coalitions could not be trained or scored: "
        f"each of them has utility {' or '.join(sorted(utilities))}."
    )
    return [(message, FailedCoalitionsWarning)]


def underflow_warnings(values):
    """The warning, in a list, if the squares of all values are too small for errors."""
    largest = np.abs(values).max(initial=0.0)
    if largest == 0 or largest >= _SMALLEST_VALUE:
        return []
    message = (
        f"The largest value is {largest:.2g} in absolute value: the squares of such "
        "utilities, of which errors are made, are zero. Multiply utilities by a "
        "constant, or use their logarithms."
    )
    return [(message, ImpreciseValuesWarning)]


def _key(packed):
    """A key of at most 16 bytes for a coalition: its bits, or a hash of them."""
    bits = packed.tobytes()
    if len(bits) <= 16:
        return bits
    return blake2b(bits, digest_size=16).digest()


class FunctionGame(Game):
    """A game given by a function of coalitions.

    Parameters
    ----------
    function : callable
        ``function(masks)`` returns the utilities of the m coalitions of a bool array of
        shape (m, n_players).
    n_players : int
        Number of players.
    empty_utility : float, default=None
        Utility of the empty coalition; None computes it with `function`.
    cache_size : int, default=100_000
        Number of utilities kept in memory; 0 for none.

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
            empty_utility = self._call(np.zeros((1, n_players), dtype=bool))[0]
        super().__init__(n_players, empty_utility, cache_size)

    def _call(self, masks):
        utilities = self.function(masks)
        if np.ma.is_masked(utilities) or np.iscomplexobj(utilities):
            kind = "masked" if np.ma.is_masked(utilities) else "complex"
            raise ValueError(
                f"A utility must be a real number, of every coalition. Got {kind} ones."
            )
        utilities = np.asarray(utilities, dtype=np.float64)
        if utilities.shape != (len(masks),):
            raise ValueError(
                "The function of coalitions gets a bool array with a row for each of m "
                "coalitions, and must return one utility per coalition: shape "
                f"({len(masks)},). Got {utilities.shape}."
            )
        return utilities

    def _compute(self, masks, n_jobs=None):
        return self._call(masks), np.zeros(len(masks), dtype=bool)
