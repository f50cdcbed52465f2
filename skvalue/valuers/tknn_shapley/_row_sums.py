"""Sums over the balls that contain a row: private values, and their standard errors."""

from functools import reduce

import numpy as np

from ..._utils.fixed_point import to_integers, unit_of
from ..._utils.parallel import ordered_map

# Rows whose sums are added to those of their groups at a time.
_ROWS_OF_GROUPS = 2**18


class RowSums:
    """Sums of weights over the balls that contain each row, in one pass over the balls.

    Parameters
    ----------
    weights : list of ndarrays of shape (n_labels, n_points)
        The weights.
    errors : StandardErrors
        The errors of the first weights, which are computed in the same pass.
    n_rows : int
        Number of rows.
    """

    def __init__(self, weights, errors, n_rows):
        self._units = [unit_of(of_labels) for of_labels in weights]
        # (n_labels, n_sums, n_points)
        self._integers = np.stack(
            [
                to_integers(of_labels, unit)
                for of_labels, unit in zip(weights, self._units)
            ],
            axis=1,
        )
        self._errors = errors
        self._sums = np.zeros((len(weights), n_rows))

    def add(self, rows, part, n_jobs):
        """Add the rows of a slice, whose balls are ``part``."""
        blocks = list(part.row_blocks())
        tasks = self._tasks(part, blocks)
        for index, sums, error_sums in ordered_map(
            part.block_sums, tasks, n_jobs, len(blocks), shared=True
        ):
            index = rows.start + index
            for total, line, unit in zip(self._sums, sums, self._units):
                total[index] = line * unit
            self._errors.add(index, error_sums)

    def values(self):
        """The sums, (n_sums, n_rows)."""
        return self._sums

    def _tasks(self, part, blocks):
        """Arguments of ``part.block_sums``: a block, and the weights of its class."""
        code_before = None
        for code, block in blocks:
            if code != code_before:
                error_weights = self._errors.weights(code)
                weights = part.prepared(self._integers[code], error_weights)
                code_before = code
            yield block, weights


class StandardErrors:
    """Standard errors of the players' values, from draws of errors at the points.

    Rows are added block by block. Sums over balls are computed in float32, which is
    enough for an error.

    Parameters
    ----------
    errors : ndarray of shape (n_ways, n_draws, 2, n_points)
        See `NoisyGame.errors`; the way with the larger errors counts.
    points : Points
        The validation points: their labels and weights.
    groups : ndarray of int of shape (n_rows,) or None
        Player of each row; without groups, each row is one.
    n_players : int
        Number of players.
    """

    def __init__(self, errors, points, groups, n_players):
        self._n_ways, self._n_draws = errors.shape[:2]
        # Products of float32 neither overflow nor vanish.
        self._scale = max(np.abs(errors * points.weights).max(initial=0.0), 1e-300)
        weights = errors * points.weights / self._scale
        weights = weights.astype(np.float32)
        weights = weights.reshape(self._n_ways * self._n_draws, 2, len(points))
        self._same = weights[:, 0]
        self._other = weights[:, 1]
        self._labels = points.y
        self._groups = groups
        if groups is None:
            self._mean_squares = np.zeros(n_players)
        else:
            self._totals = np.zeros((len(weights), n_players))
            # Groups and sums of rows, (n, n_weights), that are not in the totals yet,
            # and the number of these rows.
            self._waiting = []
            self._n_waiting = 0

    def weights(self, code):
        """Errors at the points for rows of a label, (n_ways * n_draws, n_points)."""
        return np.where(self._labels == code, self._same, self._other)

    def add(self, rows, sums):
        """Add sums of these weights for some rows, (n_rows, n_ways * n_draws)."""
        if self._groups is None:
            self._mean_squares[rows] = self._largest_mean_square(sums)
            return
        self._waiting.append((self._groups[rows], sums))
        self._n_waiting += len(rows)
        if self._n_waiting >= _ROWS_OF_GROUPS:
            self._add_waiting()

    def values(self):
        """The standard errors, (n_players,)."""
        if self._groups is None:
            errors = np.sqrt(self._mean_squares)
            errors *= self._scale
            return errors
        self._add_waiting()
        return self._scale * np.sqrt(self._largest_mean_square(self._totals.T))

    def _add_waiting(self):
        """Add the sums of the rows that wait to those of their groups."""
        if not self._waiting:
            return
        groups, sums = zip(*self._waiting)
        groups = np.concatenate(groups)
        sums = np.concatenate(sums)
        for total, line in zip(self._totals, sums.T):
            total += np.bincount(groups, line, minlength=len(total))
        self._waiting = []
        self._n_waiting = 0

    def _largest_mean_square(self, sums):
        """Mean squares over the draws, of the way where they are larger, (n,).

        ``sums`` are of shape (n, n_ways * n_draws).
        """
        squares = np.square(sums).reshape(-1, self._n_draws)
        means = squares @ np.full(self._n_draws, 1 / self._n_draws, squares.dtype)
        # Faster than the maximum of an axis of length 1 or 2.
        return reduce(np.maximum, means.reshape(-1, self._n_ways).T)
