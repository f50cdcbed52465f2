"""What rows are worth that join a KNN game, from their ranks among the players."""

import numpy as np

from ..._utils.parallel import tiles


def _rank_all(engine, space, Q, own, max_rank, consume):
    """`rank_values` of an engine for any number of judges, as many at a time as it takes."""
    size = engine.rank_tile_size(len(space), len(Q), Q.shape[1], 1, max_rank)
    for tile in tiles(len(Q), size):

        def consume_part(part, order, n_ranked, start=tile.start):
            consume(slice(start + part.start, start + part.stop), order, n_ranked)

        some = None if own is None else own[tile]
        engine.rank_values(space, Q[tile], some, max_rank, consume_part)


def join_classes(engine, both, y, judges, game, n_classes):
    """What new rows are worth in a game of one row more: for all of a row's labels, and by label.

    Parameters
    ----------
    engine : module or object
        An exact engine, see `skvalue.neighbors`.
    both : Space
        The players, then the new rows.
    y : ndarray of shape (n,)
        Classes of the players.
    judges : Judges
        Who judges.
    game : ClassGame
        Tables of the game of one player more.
    n_classes : int
        Number of classes.

    Returns
    -------
    rest : ndarray of shape (n_new,)
        Part of the value that every label has.
    extra : ndarray of shape (n_new, n_classes)
        What a label adds.
    """
    from ._class_kernels import join_class_values

    n_new = len(both) - len(y)
    own = np.full(len(judges.y), -1) if judges.own is None else judges.own
    counts = np.bincount(y, minlength=n_classes)
    rest, extra = np.zeros(n_new), np.zeros((n_new, n_classes))

    def consume(part, order, n_ranked):
        join_class_values(
            game, order, n_ranked, len(y), y, counts, judges.y[part], judges.weights[part],
            own[part], rest, extra,
        )  # fmt: skip

    _rank_all(engine, both, judges.X, judges.own, len(both), consume)
    return rest, extra


def join_targets(engine, both, y, judges, game):
    """What new rows are worth as a polynomial in their targets: (n_new, 3) coefficients."""
    from ._target_kernels import join_target_values

    judges = judges.centred()
    terms = np.zeros((len(both) - len(y), 3))

    def consume(part, order, n_ranked):
        join_target_values(
            game, order, n_ranked, len(y), y, judges.y[part], judges.weights[part], terms
        )

    _rank_all(engine, both, judges.X, judges.own, len(both), consume)
    return terms


def shares_at(engine, space, y, X_new, votes, n_classes):
    """What the model predicts at new rows: class shares, or mean and mean square."""
    from ._class_kernels import neighbour_shares
    from ._target_kernels import neighbour_moments

    count = neighbour_shares if n_classes else neighbour_moments
    out = np.zeros((len(X_new), n_classes or 2))

    def consume(part, order, n_ranked):
        count(order, n_ranked, votes, y, out[part])

    _rank_all(engine, space, X_new, None, votes, consume)
    return out
