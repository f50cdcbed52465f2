"""Values from ranks: of the players at some validation points, and of rows that join."""

from dataclasses import replace

import numpy as np

from ...base import Part
from ...neighbors import Order, exact_distances, make_space, ranks


def value_part(split, engine, space, y, points, game, class_counts, max_rank):
    """The `Part` of a tile of points of a split."""
    values, unranked, utility = value_points(engine, space, y, points, game, class_counts, max_rank)
    if max_rank < game.n:
        values += unranked[-1] + unranked[y]
    return Part(split, values, utility)


def value_points(engine, space, y, points, game, class_counts, max_rank):
    """Values of all rows, summed over a tile of points with weights, and the utility at each.

    The second array is for rows that are not ranked: one entry per class, and one for all classes.
    """
    values, unranked = np.zeros(len(y)), np.zeros(len(class_counts) + 1)
    utility = np.empty(len(points))
    left_out = _left_out(points)
    for part, order, distances in _ranked(engine, space, points, game, max_rank):
        utility[part] = _add_values(
            game, order, y, class_counts, points.y[part], points.weights[part], left_out[part],
            values, unranked, distances,
        )  # fmt: skip
    return values, unranked, utility


def each_point(engine, space, y, points, game, class_counts, max_rank):
    """Yield each point of a tile with the values of all rows at it."""
    left_out, one = _left_out(points), np.ones(1)
    places = np.arange(len(points))
    for part, order, distances in _ranked(engine, space, points, game, max_rank):
        for line, v in enumerate(places[part]):
            values, unranked = np.zeros(len(y)), np.zeros(len(class_counts) + 1)
            here = slice(line, line + 1)
            some = Order(order.rows[here], order.n_ranked[here])
            _add_values(
                game, some, y, class_counts, points.y[v : v + 1], one, left_out[v : v + 1], values,
                unranked, None if distances is None else distances[here],
            )  # fmt: skip
            if order.n_ranked[line] < game.n:
                values += unranked[-1] + unranked[y]
            yield v, values


def point_moments(groups, n_players, *games):
    """Sums over a tile of points of ``weight**2 * value`` and of ``weight**2 * value**2``.

    ``games``: arguments of `each_point` for each output; the value is the mean over them.
    """
    moments, weights = np.zeros((2, n_players)), games[0][3].weights
    for found in zip(*(each_point(*game) for game in games)):
        v, values = found[0][0], sum(values for _, values in found) / len(found)
        if groups is not None:
            values = np.bincount(groups, weights=values, minlength=n_players)
        square = weights[v] ** 2
        moments[0] += square * values
        moments[1] += square * values**2
    return moments


def point_values(players, engine, space, y, points, *game):
    """Total value of some rows at each point of a tile."""
    found = np.empty(len(points))
    for v, values in each_point(engine, space, y, points, *game):
        found[v] = values[players].sum()
    return found


def _left_out(points):
    return np.full(len(points), -1) if points.self_index is None else points.self_index


def _ranked(engine, space, points, game, max_rank):
    """As `ranks` of an engine, with distances for the game of a majority vote."""
    if not hasattr(game, "scale"):
        for part, order in engine.ranks(space, points.X, points.self_index, max_rank):
            yield part, order, None
        return
    distances = exact_distances(space, points.X)
    space, points = make_space(np.arange(len(space)), "precomputed"), replace(points, X=distances)
    for part, order in engine.ranks(space, points.X, points.self_index, max_rank):
        yield part, order, distances[part]


def _add_values(
    game, order, y, class_counts, codes, weights, left_out, values, unranked, distances
):
    """Add values at some points with labels or targets ``codes``; return the utility at each."""
    utility = np.empty(len(codes))
    if distances is not None:
        from ._vote_kernels import add_vote_values

        add_vote_values(game, *order, distances, y, codes, weights, values, utility)
    elif len(class_counts):
        from ._class_kernels import add_class_values

        add_class_values(
            game, *order, y, class_counts, codes, weights, left_out, values, unranked, utility
        )
    else:
        from ._target_kernels import add_target_values

        add_target_values(game, *order, y, codes, weights, values, utility)
    return utility


# Rows that join ---------------------------------------------------------------------------------


def join_classes(engine, both, y, points, game, n_classes):
    """Value of each new row in a game with one more row: a common term, and a term per label.

    ``both``: the players, of classes y, then the new rows.
    """
    from ._class_kernels import join_class_values

    n_new = len(both) - len(y)
    left_out, counts = _left_out(points), np.bincount(y, minlength=n_classes)
    common, by_label = np.zeros(n_new), np.zeros((n_new, n_classes))
    for part, order in ranks(engine, both, points.X, points.self_index):
        join_class_values(
            game, *order, len(y), y, counts, points.y[part], points.weights[part], left_out[part],
            common, by_label,
        )  # fmt: skip
    return common, by_label


def join_targets(engine, both, y, points, game):
    """Value of each new row as a polynomial in its target: (n_new, 3) coefficients."""
    from ._target_kernels import join_target_values

    terms = np.zeros((len(both) - len(y), 3))
    for part, order in ranks(engine, both, points.X, points.self_index):
        join_target_values(game, *order, len(y), y, points.y[part], points.weights[part], terms)
    return terms


def join_votes(engine, both, y, points, make_game, labels):
    """Value of each new row in the game of a majority vote, for each of its labels.

    ``labels``: (n_new, n_labels). Each is a game of its own, since a new row that is the nearest
    one changes the weights of all others. ``make_game`` returns its tables from the classes.
    """
    n, scores = len(y), np.empty(labels.shape)
    points = replace(points, X=exact_distances(both, points.X))
    for (x, j), label in np.ndenumerate(labels):
        space, joined = make_space(np.r_[:n, n + x], "precomputed"), np.append(y, label)
        game, counts = make_game(joined)
        scores[x, j] = value_points(engine, space, joined, points, game, counts, n + 1)[0][n]
    return scores


def vote_fractions(space, y, X_new, votes, n_bits, n_classes):
    """Fraction of the weight of the nearest ``votes`` rows, ties averaged, that each class has."""
    out = np.empty((len(X_new), n_classes))
    for line, distances in enumerate(exact_distances(space, X_new)):
        last, nearest = np.partition(distances, votes - 1)[votes - 1], distances.min()
        tied = distances == last
        weights = (distances < last) + tied * (votes - (distances < last).sum()) / tied.sum()
        if n_bits:
            ratio = np.divide(nearest, distances, out=np.ones(len(y)), where=distances > nearest)
            weights *= np.rint(2**n_bits * ratio)
        out[line] = np.bincount(y, weights=weights, minlength=n_classes) / weights.sum()
    return out


def predict_at(engine, space, y, X_new, votes, n_classes):
    """Prediction of the model at new rows: class probabilities, or mean and mean square."""
    from ._class_kernels import neighbour_fractions
    from ._target_kernels import neighbour_moments

    count = neighbour_fractions if n_classes else neighbour_moments
    out = np.zeros((len(X_new), n_classes or 2))
    for part, order in ranks(engine, space, X_new, None, votes):
        some = np.zeros((len(part), out.shape[1]))
        count(*order, votes, y, some)
        out[part] = some
    return out
