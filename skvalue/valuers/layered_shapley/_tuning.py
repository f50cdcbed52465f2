"""What public rows predict of private values, and how a private fit is tuned."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.stats import rankdata

from ...base import stack_rows
from ...estimation import Utilities
from ...samplers import uniform_subsets
from ._games import make_game, with_parameters

# Fewest validation points from which anything is predicted.
MIN_POINTS = 50

# Validation points that are used, and rows of each third of them that play.
_MAX_POINTS = 750
_MAX_PLAYERS = 100

# Labels of private rows may be wrong where those of public points are not. Errors allow
# for up to three in ten: the mean square of a bias that grows with the fraction of
# wrong labels, over fractions from 0 to .3, is that of .3 / sqrt(3).
WRONG_FRACTION = 0.3 / np.sqrt(3)

# Candidates of "auto".
PENALTIES = (1.0, 0.1, 0.01)
DEPTHS = (1, 2, 3, 5, 10, 20)

# Fractions of the best weight that are tried for the order of the values.
_FRACTIONS = (1.0, 0.75, 0.5, 0.25, 0.0)


@dataclass(frozen=True)
class PublicGame:
    """Layers of public rows, each third of the validation points valued on the others.

    There are m rows of all thirds, and K layers.
    """

    # Layer 0, (m,).
    free: np.ndarray
    # Layers 1, ..., K in coalitions of other public rows, (K, m).
    public: np.ndarray
    # Layers 1, ..., K among the rows of their third, (K, m).
    own: np.ndarray
    # Of all rows of a third, the mean over thirds.
    utility: float

    def values(self, n_layers):
        """Sums of layers 0, ..., n_layers of public rows, (m,)."""
        return self.free + self.own[:n_layers].sum(axis=0)

    def predicted(self, n_layers):
        """Sums of layers 0, ..., n_layers in coalitions of other public rows, (m,)."""
        return self.free + self.public[:n_layers].sum(axis=0)


@dataclass(frozen=True)
class Shrinkage:
    """How a noisy value is shrunk towards a prediction from public rows.

    This is post-processing. A value x that is its prediction plus an error of variance
    ``spread**2`` is best estimated with the weight spread^2 / (spread^2 + noise^2), and
    no worse than by the prediction with a smaller one. A row is predicted to be worth
    as much as it is among public rows, or, with `constant`, as much as any row. Where
    labels of private rows are wrong, the error of the prediction is ``doubt``.
    """

    # Of the noisy value; the prediction has the rest.
    weight: float = 1.0
    spread: float = 0.0
    # Standard deviation.
    noise: float = 0.0
    constant: float | None = None
    # Root mean square error of the prediction of rows with `WRONG_FRACTION`.
    doubt: float = 0.0

    @property
    def error(self):
        """Standard error of a value that is shrunk."""
        of_noise = self.weight * self.noise
        of_prediction = (1 - self.weight) * self.doubt
        return float(np.hypot(of_noise, of_prediction))

    def of(self, noisy, predicted):
        """Values from noisy ones."""
        return predicted + self.weight * (noisy - predicted)


def mean_gains(utilities, players, pool, n_layers, seed, n_coalitions=80):
    """Mean contributions of players to coalitions of 1, ..., n_layers rows of a pool.

    The coalitions are the same for all players; those that hold the player are left
    out. There are ``n_coalitions`` over their size, and at least 10. Of shape
    (n_layers, n_players).
    """
    means = np.zeros((n_layers, len(players)))
    for k in range(1, n_layers + 1):
        count = max(10, n_coalitions // k)
        rng = np.random.default_rng((*seed, k))
        sets = pool[uniform_subsets(rng, len(pool), k, count)]
        bases, joined = utilities.joined_by_each(sets, np.tile(players, (count, 1)))
        is_outside = ~(sets[:, :, None] == players).any(axis=1)
        gains = ((joined - bases[:, None]) * is_outside).sum(axis=0)
        means[k - 1] = gains / np.maximum(is_outside.sum(axis=0), 1)
    return means


def public_layers(valuer, problem, X, y, points, n_layers):
    """Layers 1, ..., n_layers of rows in coalitions of public rows, (n_layers, n_rows).

    Each half of the points gives the coalitions, which are evaluated on the other half.
    The layers of a row depend on this row and on the points only; the seed is fixed.
    """
    n_rows = len(y)
    layers = np.zeros((n_layers, n_rows))
    halves = np.array_split(np.random.default_rng(0).permutation(len(points.y)), 2)
    for number in (0, 1):
        pool = points[halves[number]]
        held_out = points[halves[1 - number]]
        X_all = stack_rows(X, pool.X)
        y_all = np.concatenate([y, pool.y])
        utilities = Utilities(make_game(valuer, problem, X_all, y_all, held_out))
        depth = min(n_layers, len(pool))
        positions = np.arange(len(y_all))
        gains = mean_gains(
            utilities, positions[:n_rows], positions[n_rows:], depth, (0, number)
        )
        layers[:depth] += gains / 2
    return layers


def play_public(valuer, problem, n_layers, wrong_fraction=0.0):
    """The `PublicGame` of the validation points; its seed is fixed.

    In each third, the labels of a fraction of the rows are made wrong, as those of
    private rows may be. They are valued among these rows, and predicted by the others,
    whose labels are right.
    """
    points = problem.splits[0].points
    order = np.random.default_rng(0).permutation(len(points.y))[:_MAX_POINTS]
    thirds = np.array_split(order, 3)
    depth = min(n_layers, len(thirds[-1]) - 2)
    free = []
    public = []
    own = []
    full_utilities = []
    for number, third in enumerate(thirds):
        pool = points[third]
        if wrong_fraction:
            rng = np.random.default_rng((2, number))
            is_wrong = rng.random(len(third)) < wrong_fraction
            pool = replace(pool, y=np.where(is_wrong, 1 - pool.y, pool.y))
        others = [other for other in thirds if other is not third]
        held_out = points[np.concatenate(others)]
        game = make_game(valuer, problem, pool.X, pool.y, held_out)
        utilities = Utilities(game)
        rows = np.arange(len(third))
        players = rows[:_MAX_PLAYERS]
        free.append(utilities.of(players[:, None]) - game.empty_utility)
        own.append(
            mean_gains(utilities, players, rows, depth, (1, number), n_coalitions=160)
        )
        X = pool[players].X
        y = pool[players].y
        public.append(public_layers(valuer, problem, X, y, held_out, depth))
        full_utilities.append(utilities.full)
    return PublicGame(
        free=np.concatenate(free),
        public=np.concatenate(public, axis=1),
        own=np.concatenate(own, axis=1),
        utility=float(np.mean(full_utilities)),
    )


def shrinkage(public_game, n, n_layers, noise, knows_row=True, wrong_game=None):
    """The `Shrinkage` of values of n rows under noise of a standard deviation.

    ``knows_row``: whether a value may be predicted from its own row; else, it is by a
    constant. The weight is at most the best one for the mean squared error, and within
    that it is the best for the order of the values. ``wrong_game`` is the `PublicGame`
    with wrong labels, from which the doubt follows.
    """
    values = public_game.values(n_layers) / n
    if knows_row:
        constant = None
        predicted = public_game.predicted(n_layers) / n
    else:
        constant = float(values.mean())
        predicted = np.full(len(values), constant)
    errors = values - predicted
    variance = (errors**2).mean()
    best = variance / (variance + noise**2)
    weight = best * _best_fraction(predicted, errors, best, noise)
    spread = float(np.sqrt(variance))

    doubt = spread
    if wrong_game is not None:
        wrong_values = wrong_game.values(n_layers) / n
        if knows_row:
            predicted = wrong_game.predicted(n_layers) / n
        doubt = float(np.sqrt(np.mean((wrong_values - predicted) ** 2)))
    return Shrinkage(float(weight), spread, noise, constant, max(spread, doubt))


def _best_fraction(predicted, errors, weight, noise):
    """Fraction of a weight whose values agree most in rank with the true ones.

    In a simulation with a fixed seed.
    """
    rng = np.random.default_rng(0)
    draws = rng.laplace(0, noise / np.sqrt(2), (20, len(errors)))
    true_ranks = rankdata(predicted + errors) - (len(errors) + 1) / 2

    def agreement(fraction):
        values = predicted + fraction * weight * (errors + draws)
        return (rankdata(values, axis=1) @ true_ranks).mean()

    return max(_FRACTIONS, key=agreement)


def choose_layers(valuer, problem, noise_of):
    """Penalty and number of layers whose private values agree most with the best ones.

    The expected correlation, over public rows, of a private value at epsilon with the
    value of all layers at the penalty of the highest utility.

    Parameters
    ----------
    valuer : object
        With the parameters of `LayeredShapleyValuer`; `l2` and `n_layers` are numbers
        or "auto".
    problem : Problem
        Its validation points are used, and of its rows their number alone.
    noise_of : callable
        ``noise_of(l2, n_layers)``: standard deviation of the noise.

    Returns
    -------
    l2 : float
        The penalty.
    n_layers : int
        The number of layers.
    """
    n = len(problem.X)
    n_third = min(len(problem.splits[0].points), _MAX_POINTS) // 3
    penalties = PENALTIES if valuer.l2 == "auto" else (valuer.l2,)
    depths = (valuer.n_layers,)
    if valuer.n_layers == "auto":
        largest = min(n, n_third) - 2
        depths = tuple(depth for depth in DEPTHS if depth <= largest)

    public_games = {
        l2: play_public(with_parameters(valuer, l2=l2), problem, max(depths))
        for l2 in penalties
    }
    best = max(public_games.values(), key=lambda public_game: public_game.utility)
    target = best.values(max(depths)) / n
    target = target - target.mean()

    def agreement(candidate):
        l2, depth = candidate
        public_game = public_games[l2]
        noise = noise_of(l2, depth)
        shrunk = shrinkage(public_game, n, depth, noise)
        values = shrunk.of(
            public_game.values(depth) / n, public_game.predicted(depth) / n
        )
        variance = values.var() + (shrunk.weight * noise) ** 2
        return values @ target / np.sqrt(variance * (target @ target))

    return max(product(penalties, depths), key=agreement)
