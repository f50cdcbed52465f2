"""What public rows predict of private values, and how a private fit is tuned on
them."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ...base import stack_rows
from ...estimation import Utilities
from ...samplers import uniform_subsets
from ._games import make_game, with_parameters

LEAST = 50  # fewest validation points from which anything is predicted
_MOST, _PLAYERS = (
    750,
    100,
)  # validation points that are used, and rows of each third that play
PENALTIES, DEPTHS = (1.0, 0.1, 0.01), (1, 2, 3, 5, 10, 20)  # candidates of "auto"


@dataclass(frozen=True)
class PublicGame:
    """Layers of public rows, each third of the validation points valued on the
    others."""

    free: np.ndarray  # (m,): layer 0
    public: np.ndarray  # (K, m): layers 1, ..., K in coalitions of other public rows
    own: np.ndarray  # (K, m): layers 1, ..., K among the rows of their third
    utility: float  # of all rows of a third, the mean over thirds

    def values(self, n_layers):
        """Sums of layers 0, ..., n_layers of public rows, (m,)."""
        return self.free + self.own[:n_layers].sum(axis=0)

    def predicted(self, n_layers):
        """Sums of layers 0, ..., n_layers in coalitions of other public rows, (m,)."""
        return self.free + self.public[:n_layers].sum(axis=0)


@dataclass(frozen=True)
class Shrinkage:
    """How a noisy value is shrunk towards a prediction from public rows;
    post-processing.

    A value x that is its prediction plus an error of variance ``spread**2`` is best
    estimated with the weight spread^2 / (spread^2 + noise^2), and no worse than by the
    prediction with a smaller one. A row is predicted to be worth as much as it is among
    public rows, or, with `constant`, as much as any row.
    """

    weight: float = 1.0  # of the noisy value; that of the prediction is the rest
    spread: float = 0.0
    noise: float = 0.0  # standard deviation
    constant: float | None = None

    @property
    def error(self):
        """Standard error of a value that is shrunk."""
        return float(
            np.hypot(self.weight * self.noise, (1 - self.weight) * self.spread)
        )

    def of(self, noisy, predicted):
        """Values from noisy ones."""
        return predicted + self.weight * (noisy - predicted)


def mean_gains(utilities, players, pool, n_layers, seed, most=80):
    """Mean contributions of players to coalitions of 1, ..., n_layers rows of a pool,
    by size.

    The coalitions are the same for all players; those that hold the player are left
    out.
    """
    found = np.zeros((n_layers, len(players)))
    for k in range(1, n_layers + 1):
        count = max(10, most // k)
        sets = pool[
            uniform_subsets(np.random.default_rng((*seed, k)), len(pool), k, count)
        ]
        bases, joined = utilities.joined_by_each(sets, np.tile(players, (count, 1)))
        without = ~(sets[:, :, None] == players).any(axis=1)
        gains = ((joined - bases[:, None]) * without).sum(axis=0)
        found[k - 1] = gains / np.maximum(without.sum(axis=0), 1)
    return found


def public_layers(valuer, problem, X, y, points, n_layers):
    """Layers 1, ..., n_layers of rows in coalitions of public rows, (n_layers, n_rows).

    Each half of the points gives the coalitions, which are evaluated on the other half.
    The layers of a row depend on this row and on the points only; the seed is fixed.
    """
    found, m = np.zeros((n_layers, len(y))), len(y)
    halves = np.array_split(np.random.default_rng(0).permutation(len(points.y)), 2)
    for number, (pool, others) in enumerate((halves, halves[::-1])):
        known = points[pool]
        X_all, y_all = stack_rows(X, known.X), np.concatenate([y, known.y])
        game = make_game(valuer, problem, X_all, y_all, points[others])
        depth = min(n_layers, len(pool))
        rows = np.arange(m + len(pool))
        gains = mean_gains(Utilities(game), rows[:m], rows[m:], depth, (0, number))
        found[:depth] += gains / 2
    return found


def play_public(valuer, problem, n_layers):
    """The `PublicGame` of the validation points, which are public; its seed is
    fixed."""
    points = problem.splits[0].points
    thirds = np.array_split(
        np.random.default_rng(0).permutation(len(points.y))[:_MOST], 3
    )
    depth = min(n_layers, len(thirds[-1]) - 2)
    free, public, own, utilities = [], [], [], []
    for number, third in enumerate(thirds):
        pool = points[third]
        held_out = points[
            np.concatenate([part for part in thirds if part is not third])
        ]
        game = make_game(valuer, problem, pool.X, pool.y, held_out)
        utilities.append(played := Utilities(game))
        rows, players = np.arange(len(third)), np.arange(min(_PLAYERS, len(third)))
        free.append(played.of(players[:, None]) - game.empty_utility)
        own.append(mean_gains(played, players, rows, depth, (1, number), most=160))
        X, y = pool[players].X, pool.y[players]
        public.append(public_layers(valuer, problem, X, y, held_out, depth))
    full = float(np.mean([played.full for played in utilities]))
    parts = (
        np.concatenate(free),
        np.concatenate(public, axis=1),
        np.concatenate(own, axis=1),
    )
    return PublicGame(*parts, full)


def shrinkage(public_game, n, n_layers, noise, knows_row=True):
    """The `Shrinkage` of values of n rows under noise of a standard deviation.

    ``knows_row``: whether a value may be predicted from its own row; else, it is by a
    constant. The weight is at most the best one for the mean squared error, and within
    that it is the best for the order of the values.
    """
    values = public_game.values(n_layers) / n
    constant = None if knows_row else float(values.mean())
    predicted = (
        public_game.predicted(n_layers) / n
        if knows_row
        else np.full(len(values), constant)
    )
    variance = ((values - predicted) ** 2).mean()
    best = variance / (variance + noise**2)
    weight = best * _best_fraction(predicted, values - predicted, best, noise)
    return Shrinkage(float(weight), float(np.sqrt(variance)), noise, constant)


def _best_fraction(predicted, error, weight, noise):
    """Fraction of a weight whose values agree most in rank with the true ones, in a
    simulation."""
    draws = np.random.default_rng(0).laplace(0, noise / np.sqrt(2), (20, len(error)))
    truth = rankdata(predicted + error) - (len(error) + 1) / 2

    def agreement(fraction):
        return (
            rankdata(predicted + fraction * weight * (error + draws), axis=1) @ truth
        ).mean()

    return max((1.0, 0.75, 0.5, 0.25, 0.0), key=agreement)


def choose_layers(valuer, problem, noise_of):
    """Penalty and number of layers whose private values agree most with those of the
    best model.

    Expected correlations, over public rows, of a private value at epsilon with the
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
    n, size = len(problem.X), min(len(problem.splits[0].points), _MOST) // 3
    most = min(n, size) - 2
    penalties = PENALTIES if valuer.l2 == "auto" else (valuer.l2,)
    depths = (valuer.n_layers,)
    if valuer.n_layers == "auto":
        depths = tuple(depth for depth in DEPTHS if depth <= most)
    found = {
        l2: play_public(with_parameters(valuer, l2=l2), problem, max(depths))
        for l2 in penalties
    }
    best = max(found.values(), key=lambda public_game: public_game.utility)
    target = best.values(max(depths)) / n
    target = target - target.mean()

    def agreement(candidate):
        l2, depth = candidate
        public_game, noise = found[l2], noise_of(l2, depth)
        shrunk = shrinkage(public_game, n, depth, noise)
        values = shrunk.of(
            public_game.values(depth) / n, public_game.predicted(depth) / n
        )
        variance = values.var() + (shrunk.weight * noise) ** 2
        return values @ target / np.sqrt(variance * (target @ target))

    return max(((l2, depth) for l2 in penalties for depth in depths), key=agreement)
