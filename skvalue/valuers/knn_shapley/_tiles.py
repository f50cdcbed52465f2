"""One tile of judges of KNN-Shapley: from an engine's ranks to sums of values."""

from importlib import import_module
from types import ModuleType

import numpy as np


def _adder(game, y, class_counts, judges):
    """Function that adds the values of some ranked judges to arrays."""
    if not len(class_counts):
        from ._target_kernels import add_target_values

        def add(part, order, n_ranked, weights, values, rest, utility):
            add_target_values(game, order, n_ranked, y, judges.y[part], weights, values, utility)

        return add

    from ._class_kernels import add_class_values

    own = np.full(len(judges.y), -1) if judges.own is None else judges.own

    def add(part, order, n_ranked, weights, values, rest, utility):
        add_class_values(
            game, order, n_ranked, y, class_counts, judges.y[part], weights, own[part], values,
            rest, utility,
        )  # fmt: skip

    return add


class Ranks:
    """`rank_values` of an engine for some players, called with a tile of judges.

    Parameters
    ----------
    engine : module or object
        The engine; a module is pickled by its name.
    space : Space
        The players.
    """

    def __init__(self, engine, space):
        self.engine, self.space = engine, space

    def __len__(self):
        return len(self.space)

    def __call__(self, Q, own, max_rank, consume):
        """Rank the players for some judges, see `skvalue.neighbors`."""
        return self.engine.rank_values(self.space, Q, own, max_rank, consume)

    def __sizeof__(self):
        return self.space.__sizeof__()

    def __getstate__(self):
        engine = self.engine
        return (engine.__name__ if isinstance(engine, ModuleType) else engine), self.space

    def __setstate__(self, state):
        engine, self.space = state
        self.engine = import_module(engine) if isinstance(engine, str) else engine


def value_tile(rank, judges, game, y, class_counts, max_rank):
    """Values and utilities of one tile of judges; values of unranked rows apart, by class.

    ``rank(Q, own, max_rank, consume)`` is `rank_values`; what it returns comes last.
    """
    if len(class_counts) and max_rank >= game.n and hasattr(rank, "engine"):
        on_device = getattr(rank.engine, "class_values", None)
        if on_device is not None:  # orders stay there
            values, utility = on_device(
                rank.space, judges.X, judges.own, game, y, class_counts, judges.y, judges.weights
            )
            return values, np.zeros(len(class_counts) + 1), utility, None
    values = np.zeros(len(y))
    utility = np.empty(len(judges.y))
    rest = np.zeros(len(class_counts) + 1)
    add = _adder(game, y, class_counts, judges)

    def consume(part, order, n_ranked):
        add(part, order, n_ranked, judges.weights[part], values, rest, utility[part])

    kept = rank(judges.X, judges.own, max_rank, consume)
    return values, rest, utility, kept


def _each_judge(use, rank, judges, game, y, class_counts, max_rank):
    """Call ``use(v, values)`` with the values of all rows at every judge of a tile."""
    values, rest, utility = np.empty(len(y)), np.empty(len(class_counts) + 1), np.empty(1)
    add = _adder(game, y, class_counts, judges)

    def consume(part, order, n_ranked):
        for line in range(len(order)):
            v = part.start + line
            values[:] = rest[:] = 0
            one = slice(line, line + 1)
            add(slice(v, v + 1), order[one], n_ranked[one], np.ones(1), values, rest, utility)
            if n_ranked[line] < game.n:
                values[:] += rest[-1] + rest[y]
            use(v, values)

    rank(judges.X, judges.own, max_rank, consume)


def moment_tile(groups, n_out, rank, judges, *game):
    """Sums over a tile of judges of squared weight times value, and times squared value."""
    sums = np.zeros((2, n_out))

    def use(v, values):
        if groups is not None:
            values = np.bincount(groups, weights=values, minlength=n_out)
        square = judges.weights[v] ** 2
        sums[0] += square * values
        sums[1] += square * values**2

    _each_judge(use, rank, judges, *game)
    return sums


def row_tile(rows, rank, judges, *game):
    """Value of some rows together at every judge of a tile."""
    out = np.empty(len(judges.y))

    def use(v, values):
        out[v] = values[rows].sum()

    _each_judge(use, rank, judges, *game)
    return out
