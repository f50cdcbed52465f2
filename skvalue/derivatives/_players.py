"""Models that take one gradient step per party."""

from abc import ABCMeta, abstractmethod

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from ..privacy import grid_width
from . import _kernels
from ._noise import summed_bound

_TILE = 2**15  # outputs evaluated at a time: they stay in the cache of a core

# Parameters of short walks that are taken in one task: else threads wait.
_BUNDLE = 2**16


class GradientModel(metaclass=ABCMeta):
    """A model with the rows of its players and public validation points.

    A walk starts at `start` and takes one step ``theta - learning_rate * w * g`` per
    player, whose weight w is its entry of ``step_weights`` (n_players,); the utilities
    of its parameters are then computed together. Parameters and gradients are flat
    float64 arrays on the CPU, on any device of the model. A model of classes or targets
    has `outputs` too, which value rows that join without a label.
    """

    n_parameters: int
    n_players: int
    step_weights: np.ndarray
    in_threads: bool  # whether walks run in threads

    @abstractmethod
    def start(self, rng):
        """Initial parameters (p,) of a walk; only the generator decides them."""

    @abstractmethod
    def gradients(self, thetas, players):
        """Clipped gradients (b, p) of b players, each at its row of ``thetas`` (b, p).

        With unit "party", the clipped mean gradient of the rows of the player; with
        "example", the mean of their clipped gradients. Gradients that are not finite
        are returned, so that the walk raises an error. In a private fit each row whose
        gradient is not finite counts as zero, and the others of its player as ever: an
        error, or a player of zero, would reveal that row.
        """

    def gradient(self, theta, player):
        """Clipped gradient of the loss of one player, of shape (p,)."""
        return self.gradients(np.asarray(theta)[None], np.array([player]))[0]

    @abstractmethod
    def batch_size(self, n_walks):
        """Numbers of walks, at most `n_walks`, and of their steps, for one `walk`."""

    @abstractmethod
    def walk(self, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1):
        """Take the steps of b walks from ``thetas`` (b, p), along ``orders`` (b, m).

        A step is as long as the rate of its walk in ``rates`` (b,) times the weight of
        its player. ``noise`` of each walk (m, p) or (0, p) has the standard deviations
        ``noise_std`` (n_players,). If steps are along averages of releases, ``past``
        (n_players, p) has the means of the t - 1 previous releases and is updated;
        ``weight`` is that of `newest_weights`.

        Returns the parameters (b, m + 1, p) before the first and after each step, in
        the library of the model; the last ones (b, p); and the first step (b,) at which
        a gradient is not finite (-1: none), from which on the walk is undefined.
        """

    @abstractmethod
    def as_array(self, thetas):
        """Parameters of `walk` as a float64 array on the CPU."""

    @abstractmethod
    def utilities(self, thetas):
        """Mean utilities (T,) of parameters (T, p); higher is better."""


def steps_in_memory(p):
    """Number of steps whose parameters, noise and copies fit into working memory."""
    n_bytes = get_config()["working_memory"] * 2**20
    return max(1, int(n_bytes // (5 * 8 * p)))


def released_bound(clip, unit, counts, n_parameters):
    """The bound to which gradients of private players are clipped.

    With it, what is computed of a player changes by at most twice ``clip``, rounding
    included; ``counts`` are the numbers of rows of the players.
    """
    n_summed = counts.max(initial=1) if unit == "example" else 1
    return summed_bound(float(clip), int(n_summed), n_parameters)


def checked_step_weights(step_weights, n_players):
    """Weights (n_players,) of the steps of players: ones if None."""
    if step_weights is None:
        return np.ones(n_players)
    return np.asarray(step_weights, dtype=np.float64)


def gradients_at(model, theta):
    """Gradients of all players at the same parameters."""
    n = model.n_players
    return model.gradients(np.broadcast_to(theta, (n, len(theta))), np.arange(n))


class LinearGradientModel(GradientModel):
    """Logistic, softmax or linear regression: a `GradientModel` with compiled walks.

    ``players`` is the party of each row, 0 to n_players - 1; ``y`` and ``y_val`` are
    codes of classes (a code above the last class is none of them) or targets;
    ``weights`` sum to one. A constant column is appended. If ``basis`` (n_outputs *
    (n_features + 1), n_components) is given, parameters and gradients are coordinates
    along its orthonormal columns. If ``private``, rows whose gradients are not finite
    count as zero; in walks they do so with noise. ``step_weights`` (n_players,) are
    ones by default.
    """

    in_threads = True

    def __init__(
        self,
        X,
        y,
        players,
        X_val,
        y_val,
        weights,
        *,
        kind,
        n_classes,
        clip,
        unit,
        utility,
        basis=None,
        private=False,
        step_weights=None,
    ):
        self._kind = getattr(_kernels, kind.upper())
        self._n_outputs = n_classes if kind == "softmax" else 1
        self._clip = np.inf if clip is None else float(clip)
        self._per_example = unit == "example"
        self._is_accuracy = utility == "accuracy"
        self._is_private = private

        # Rows in the order of their players, those of player j from bound j on.
        order = np.argsort(players, kind="stable")
        counts = np.bincount(players)
        self.n_players = len(counts)
        self.step_weights = checked_step_weights(step_weights, self.n_players)
        self._bounds = np.concatenate([[0], np.cumsum(counts)])
        self._X = _with_constant(X[order])
        self._y = np.asarray(y[order], dtype=np.float64)
        self.n_parameters = self._n_outputs * self._X.shape[1]

        # Outputs at the validation points are products of parameters with columns.
        points = _with_constant(X_val)
        if kind == "logistic":
            points *= np.where(y_val == 1, 1.0, -1.0)[:, None]
        if basis is not None:
            self.n_parameters = basis.shape[1]
            self._X = _projected(self._X, basis, self._n_outputs)
            points = np.moveaxis(_projected(points, basis, self._n_outputs), 0, 1)
            points = points.reshape(-1, self.n_parameters)
        self._point_columns = np.ascontiguousarray(points.T)
        if private and clip is not None:
            self._clip = released_bound(clip, unit, counts, self.n_parameters)
        self._y_val = y_val.astype(np.float64)
        self._weights = np.asarray(weights, dtype=np.float64)
        self._are_equal = bool((self._weights == self._weights[0]).all())

    def start(self, rng):
        """Zeros."""
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        """Clipped gradients of many players, each at its row of ``thetas``."""
        gradients = np.empty((len(players), self.n_parameters))
        is_finite = _kernels.player_gradients(
            kind=self._kind,
            X=self._X,
            y=self._y,
            bounds=self._bounds,
            clip=self._clip,
            per_example=self._per_example,
            players=np.asarray(players, dtype=np.int64),
            thetas=np.ascontiguousarray(thetas, dtype=np.float64),
            out=gradients,
        )
        if not self._is_private:
            gradients[~is_finite] = np.nan
        return gradients

    def outputs(self, thetas):
        """Outputs of many parameters for the rows of the players."""
        if self._X.ndim == 3:
            return np.einsum("icr,tr->tic", self._X, thetas)
        coefs = thetas.reshape(len(thetas), self._n_outputs, -1)
        return np.einsum("id,tcd->tic", self._X, coefs)

    def batch_size(self, n_walks):
        """Numbers of walks, and of their steps, that are taken in one task."""
        size = max(1, _BUNDLE // (self.n_players * self.n_parameters))
        return min(n_walks, size), steps_in_memory(self.n_parameters)

    def walk(self, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1):
        """Steps along many players, one walk after the other."""
        n_walks, n_steps = orders.shape
        path = np.empty((n_walks, n_steps + 1, self.n_parameters))
        path[:, 0] = thetas
        grids = grid_width(noise_std)
        if past is None:
            past = np.empty((0, self.n_parameters))
        failed_steps = np.empty(n_walks, dtype=np.int64)
        for walk in range(n_walks):
            failed_steps[walk] = _kernels.walk(
                kind=self._kind,
                X=self._X,
                y=self._y,
                bounds=self._bounds,
                clip=self._clip,
                per_example=self._per_example,
                order=orders[walk],
                rates=rates[walk] * self.step_weights,
                noise=noise[walk],
                grids=grids,
                past=past,
                weight=weight,
                t=t,
                thetas=path[walk],
            )
        return path, path[:, -1].copy(), failed_steps

    def as_array(self, thetas):
        """The same."""
        return thetas

    def utilities(self, thetas):
        """Utilities of many parameters on the validation points."""
        n_points = len(self._y_val)
        utilities = np.empty(len(thetas))
        for tile in tiles(len(thetas), max(1, _TILE // (self._n_outputs * n_points))):
            vectors = thetas[tile].reshape(-1, len(self._point_columns))
            outputs = vectors @ self._point_columns
            outputs = outputs.reshape(-1, self._n_outputs, n_points)
            arguments = (self._kind, outputs, self._y_val, self._weights)
            if self._is_accuracy:
                _kernels.accuracy_utilities(*arguments, out=utilities[tile])
            else:
                _kernels.loss_utilities(
                    *arguments, equal=self._are_equal, out=utilities[tile]
                )
        return utilities


def _with_constant(X):
    return np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])


def _projected(X, basis, n_outputs):
    """Rows (n, n_outputs, r) whose products with the r coordinates are the outputs."""
    by_output = basis.reshape(n_outputs, X.shape[1], -1)
    # A warning would tell of a private row. What is not finite counts as zero later.
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.einsum("ia,car->icr", X, by_output, optimize=True)
    return np.ascontiguousarray(rows)  # as compiled loops take them
