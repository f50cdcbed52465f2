"""The games: what each does with rows in order of distance.

All games have the same methods, for players and for rows that join them. ``tables``
are those of `_tables`, for a number of players.
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
    # Utility of no rows.
    empty: float

    # Whether values depend on the distances, and not on their order alone.
    uses_distances = False

    def tables(self, class_counts, n):
        """Tables for n players at each point; ``class_counts`` rows of each class."""
        return class_game(
            n,
            self.n_neighbors,
            self.n_classes,
            utility=self.utility,
            semivalue=self.semivalue,
            min_coalition=self.min_coalition,
            empty=self.empty,
        )

    def empty_utility(self, points):
        """Utility of no rows."""
        return self.empty

    def add(self, players, order, points, values, unranked):
        """Add the values at points to those of all rows.

        Returns the utility at each point.
        """
        from ._class_kernels import add_class_values

        utility = np.empty(len(points))
        add_class_values(
            players.tables,
            order.rows,
            order.n_ranked,
            labels=players.y,
            class_counts=players.class_counts,
            codes=points.y,
            weights=points.weights,
            left_out=left_out(points),
            values=values,
            rest=unranked,
            utility=utility,
        )
        return utility

    def factors(self, players, X, y):
        """Factors of the terms of rows that join, (n_rows, n_classes).

        These are the labels, or without them the fractions of each class among the
        nearest players.
        """
        if y is not None:
            return np.eye(self.n_classes)[y]
        fractions = np.empty((len(X), self.n_classes))
        for places, nearest, weights in _nearest(players, X):
            lines = np.arange(len(nearest))[:, None]
            cells = self.n_classes * lines + players.y[nearest]
            counts = np.bincount(
                cells.ravel(), weights.ravel(), len(nearest) * self.n_classes
            )
            fractions[places] = counts.reshape(-1, self.n_classes)
        return fractions

    def join(self, players, space, points, factors):
        """Value of each row that joins the players alone.

        ``space`` holds the players, and then these rows.
        """
        from ._class_kernels import join_class_values

        n_new = len(space) - len(players.y)
        common = np.zeros(n_new)
        by_label = np.zeros((n_new, self.n_classes))
        absent = left_out(points)
        blocks = ranks(players.engine, space, points.X, points.self_index)
        for places, order in blocks:
            join_class_values(
                players.tables,
                order.rows,
                order.n_ranked,
                n_players=len(players.y),
                labels=players.y,
                class_counts=players.class_counts,
                codes=points.y[places],
                weights=points.weights[places],
                left_out=absent[places],
                rest=common,
                extra=by_label,
            )
        return common + (factors * by_label).sum(axis=1)


class TargetGame(NamedTuple):
    """Minus the squared error of the mean target of the nearest rows.

    Values are quadratic in the target of the row. It has the methods of `ClassGame`.
    """

    n_neighbors: int
    # The prediction of no rows; all targets are relative to it.
    prior: float
    utility: str
    semivalue: object
    min_coalition: int

    uses_distances = False

    def tables(self, class_counts, n):
        """See `ClassGame.tables`."""
        return target_game(
            n, self.n_neighbors, self.utility, self.semivalue, self.min_coalition
        )

    def empty_utility(self, points):
        """Minus the mean squared error of the prior."""
        return -((points.y - self.prior) ** 2 @ points.weights)

    def add(self, players, order, points, values, unranked):
        """See `ClassGame.add`."""
        from ._target_kernels import add_target_values

        utility = np.empty(len(points))
        add_target_values(
            players.tables,
            order.rows,
            order.n_ranked,
            targets=players.y,
            point_targets=points.y - self.prior,
            weights=points.weights,
            values=values,
            utility=utility,
        )
        return utility

    def factors(self, players, X, y):
        """Powers of the targets, or else moments of the nearest, (n_rows, 3)."""
        if y is not None:
            return np.vander(y - self.prior, 3, increasing=True)
        moments = np.ones((len(X), 3))
        for places, nearest, weights in _nearest(players, X):
            targets = players.y[nearest]
            moments[places, 1] = (weights * targets).sum(axis=1)
            moments[places, 2] = (weights * targets**2).sum(axis=1)
        return moments

    def join(self, players, space, points, factors):
        """See `ClassGame.join`; terms are the coefficients of a polynomial."""
        from ._target_kernels import join_target_values

        terms = np.zeros(factors.shape)
        point_targets = points.y - self.prior
        blocks = ranks(players.engine, space, points.X, points.self_index)
        for places, order in blocks:
            join_target_values(
                players.tables,
                order.rows,
                order.n_ranked,
                n_players=len(players.y),
                targets=players.y,
                point_targets=point_targets[places],
                weights=points.weights[places],
                out=terms,
            )
        return (terms * factors).sum(axis=1)


class VoteGame(NamedTuple):
    """Whether a majority vote of the nearest rows is right.

    It has the methods of `ClassGame`.
    """

    n_neighbors: int
    n_classes: int
    # Of a weight; 0 without weights.
    n_bits: int
    semivalue: object

    uses_distances = True

    def tables(self, class_counts, n):
        """See `ClassGame.tables`."""
        is_left_out = bool(class_counts.sum() > n)
        return vote_game(
            class_counts, self.n_neighbors, self.n_bits, self.semivalue, is_left_out
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
            order.rows,
            order.n_ranked,
            distances=points.X,
            labels=players.y,
            codes=points.y,
            weights=points.weights,
            values=values,
            utility=utility,
        )
        return utility

    def factors(self, players, X, y):
        """Labels, or without them fractions of the weight of the nearest players.

        Of shape (n_rows, n_classes). Players that are tied at the last rank share what
        is left.
        """
        if y is not None:
            return np.eye(self.n_classes)[y]
        votes = min(self.n_neighbors, len(players.y))
        fractions = np.empty((len(X), self.n_classes))
        for line, distances in enumerate(exact_distances(players.space, X)):
            last = np.partition(distances, votes - 1)[votes - 1]
            is_nearer = distances < last
            is_tied = distances == last
            weights = is_nearer + is_tied * (votes - is_nearer.sum()) / is_tied.sum()

            if self.n_bits:
                nearest = distances.min()
                ratios = np.ones(len(distances))
                np.divide(nearest, distances, out=ratios, where=distances > nearest)
                weights *= np.rint(2**self.n_bits * ratios)

            counts = np.bincount(players.y, weights=weights, minlength=self.n_classes)
            fractions[line] = counts / weights.sum()
        return fractions

    def join(self, players, space, points, factors):
        """See `ClassGame.join`.

        Each label is a game of its own, since a new row that is the nearest one changes
        the weights of all others.
        """
        n = len(players.y)
        n_at_points = n + 1
        if points.self_index is not None:
            # A point is one of the players, and does not play at itself.
            n_at_points = n
        terms = np.zeros(factors.shape)
        points = replace(points, X=exact_distances(space, points.X))
        for line, label in np.argwhere(factors):
            class_counts = players.class_counts.copy()
            class_counts[label] += 1
            with_row = replace(
                players,
                space=make_space(np.r_[:n, n + line], "precomputed"),
                y=np.append(players.y, label),
                class_counts=class_counts,
                tables=self.tables(class_counts, n_at_points),
                max_rank=n + 1,
            )
            _, values, _ = value_points(0, with_row, points)
            terms[line, label] = values[n]
        return (terms * factors).sum(axis=1)


def _nearest(players, X):
    """Yield positions of rows, their nearest players, and the weights of these.

    The weights of a row have sum 1; players that are tied at the last rank share what
    is left.
    """
    votes = min(players.game.n_neighbors, len(players.y))
    for places, order in ranks(players.engine, players.space, X, None, votes):
        width = order.n_ranked.max()
        rank = np.arange(width)
        n_ranked = order.n_ranked[:, None]
        is_ranked = rank < n_ranked
        # What follows the ranked rows is not set.
        rows = np.where(is_ranked, order.rows[:, :width], 0)

        # The ranks at which the run of tied players of each rank starts and stops.
        is_first = rows >= 0
        start = np.maximum.accumulate(np.where(is_first, rank, 0), axis=1)
        later_start = np.where(is_first, rank, width)[:, 1:]
        stop = np.column_stack([later_start, n_ranked])
        stop = np.minimum.accumulate(stop[:, ::-1], axis=1)[:, ::-1]

        # The players of a run have the votes that nearer ones leave, in equal parts.
        weights = np.clip((votes - start) / np.maximum(stop - start, 1), 0, 1) / votes
        weights = np.where(is_ranked, weights, 0.0)
        yield places, np.where(rows < 0, ~rows, rows), weights
