"""The games: what each does with rows in order of distance, for players and for rows
that join.

All games have the same methods. ``tables`` are those of `_tables`, for a number of
players.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...neighbors import exact_distances, make_space, ranks
from ._tables import class_game, target_game, vote_game
from ._values import left_out, value_points


class ClassGame(NamedTuple):
    """The mean fraction of the right label among the nearest rows."""

    n_neighbors: int
    n_classes: int
    utility: str
    semivalue: object
    min_coalition: int
    empty: float  # utility of no rows

    by_distance = (
        False  # whether values depend on the distances, not on their order alone
    )

    def tables(self, class_counts, n):
        """Tables for n players at each point, of the rows with these numbers by
        class."""
        return class_game(n, *self)

    def empty_utility(self, points):
        """Utility of no rows."""
        return self.empty

    def add(self, players, order, points, values, unranked):
        """Add the values at some points to those of all rows; return the utility at
        each point."""
        from ._class_kernels import add_class_values

        utility = np.empty(len(points))
        add_class_values(
            players.tables, *order, players.y, players.class_counts, points.y, points.weights,
            left_out(points), values, unranked, utility,
        )  # fmt: skip
        return utility

    def factors(self, players, X, y):
        """Factors of the terms of rows that join: their labels, or probabilities of the
        classes."""
        if y is not None:
            return np.eye(self.n_classes)[y]
        out = np.empty((len(X), self.n_classes))
        for part, nearest, weights in _nearest(players, X):
            places = (
                self.n_classes * np.arange(len(nearest))[:, None] + players.y[nearest]
            )
            counts = np.bincount(
                places.ravel(), weights.ravel(), len(nearest) * self.n_classes
            )
            out[part] = counts.reshape(-1, self.n_classes)
        return out

    def join(self, players, both, points, factors):
        """Value of each row that joins the players alone, which ``both`` has after
        them."""
        from ._class_kernels import join_class_values

        n_new = len(both) - len(players.y)
        common, by_label = np.zeros(n_new), np.zeros((n_new, self.n_classes))
        absent = left_out(points)
        for part, order in ranks(players.engine, both, points.X, points.self_index):
            join_class_values(
                players.tables, *order, len(players.y), players.y, players.class_counts,
                points.y[part], points.weights[part], absent[part], common, by_label,
            )  # fmt: skip
        return common + (factors * by_label).sum(axis=1)


class TargetGame(NamedTuple):
    """Minus the squared error of the mean target of the nearest rows; values are
    quadratic."""

    n_neighbors: int
    prior: float  # the prediction of no rows
    utility: str
    semivalue: object
    min_coalition: int

    by_distance = False

    def tables(self, class_counts, n):
        """See `ClassGame`, which has the same methods."""
        return target_game(n, self.n_neighbors, *self[2:])

    def empty_utility(self, points):
        """Minus the mean squared error of the prior."""
        return -((points.y - self.prior) ** 2 @ points.weights)

    def add(self, players, order, points, values, unranked):
        """See `ClassGame.add`."""
        from ._target_kernels import add_target_values

        utility, targets = np.empty(len(points)), points.y - self.prior
        add_target_values(
            players.tables, *order, players.y, targets, points.weights, values, utility
        )
        return utility

    def factors(self, players, X, y):
        """Powers of the targets, or moments of the prediction."""
        if y is not None:
            return np.vander(y - self.prior, 3, increasing=True)
        out = np.ones((len(X), 3))
        for part, nearest, weights in _nearest(players, X):
            z = players.y[nearest]
            out[part, 1], out[part, 2] = (
                (weights * z).sum(axis=1),
                (weights * z**2).sum(axis=1),
            )
        return out

    def join(self, players, both, points, factors):
        """See `ClassGame.join`; terms are the coefficients of a polynomial in the
        target."""
        from ._target_kernels import join_target_values

        terms, targets = np.zeros(factors.shape), points.y - self.prior
        for part, order in ranks(players.engine, both, points.X, points.self_index):
            join_target_values(
                players.tables, *order, len(players.y), players.y, targets[part],
                points.weights[part], terms,
            )  # fmt: skip
        return (terms * factors).sum(axis=1)


class VoteGame(NamedTuple):
    """Whether a majority vote of the nearest rows, with or without weights, is
    right."""

    n_neighbors: int
    n_classes: int
    n_bits: int  # of a weight; 0 without weights
    semivalue: object

    by_distance = True

    def tables(self, class_counts, n):
        """See `ClassGame`, which has the same methods."""
        absent = bool(class_counts.sum() > n)
        return vote_game(
            class_counts, self.n_neighbors, self.n_bits, self.semivalue, absent
        )

    def empty_utility(self, points):
        """Utility of no rows."""
        return 1.0 / self.n_classes

    def add(self, players, order, points, values, unranked):
        """See `ClassGame.add`; ``points.X`` are the distances of the players."""
        from ._vote_kernels import add_vote_values

        utility = np.empty(len(points))
        add_vote_values(
            players.tables,
            *order,
            points.X,
            players.y,
            points.y,
            points.weights,
            values,
            utility,
        )
        return utility

    def factors(self, players, X, y):
        """Labels, or fractions of the weight of the nearest rows, ties averaged."""
        if y is not None:
            return np.eye(self.n_classes)[y]
        votes = min(self.n_neighbors, len(players.y))
        out = np.empty((len(X), self.n_classes))
        for line, distances in enumerate(exact_distances(players.space, X)):
            last, nearest = (
                np.partition(distances, votes - 1)[votes - 1],
                distances.min(),
            )
            near, tied = distances < last, distances == last
            weights = near + tied * (votes - near.sum()) / tied.sum()
            if self.n_bits:
                far, ratio = distances > nearest, np.ones(len(distances))
                np.divide(nearest, distances, out=ratio, where=far)
                weights *= np.rint(2**self.n_bits * ratio)
            counts = np.bincount(players.y, weights=weights, minlength=self.n_classes)
            out[line] = counts / weights.sum()
        return out

    def join(self, players, both, points, factors):
        """See `ClassGame.join`.

        Each label is a game of its own, since a new row that is the nearest one changes
        the weights of all others.
        """
        n, terms = len(players.y), np.zeros(factors.shape)
        points = replace(points, X=exact_distances(both, points.X))
        for x, label in np.argwhere(factors):
            y, counts = np.append(players.y, label), players.class_counts.copy()
            counts[label] += 1
            joined = replace(
                players, y=y, class_counts=counts, max_rank=n + 1,
                space=make_space(np.r_[:n, n + x], "precomputed"),
                tables=self.tables(counts, n + 1 - (points.self_index is not None)),
            )  # fmt: skip
            terms[x, label] = value_points(0, joined, points)[1][n]
        return (terms * factors).sum(axis=1)


def _nearest(players, X):
    """Yield places of some rows, and their nearest players with weights: ties share the
    last."""
    votes = min(players.game.n_neighbors, len(players.y))
    for part, order in ranks(players.engine, players.space, X, None, votes):
        width = order.n_ranked.max()
        rows, at, end = order.rows[:, :width], np.arange(width), order.n_ranked[:, None]
        rows = np.where(at < end, rows, 0)  # what follows the ranked rows is not set
        first = rows >= 0
        start = np.maximum.accumulate(np.where(first, at, 0), axis=1)
        after = np.column_stack([np.where(first, at, width)[:, 1:], end])
        stop = np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1]
        weights = np.clip((votes - start) / np.maximum(stop - start, 1), 0, 1) / votes
        yield part, np.where(rows < 0, ~rows, rows), np.where(at < end, weights, 0.0)
