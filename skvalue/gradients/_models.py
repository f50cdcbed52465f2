"""Models that are walked through parties, one gradient step a party."""

from abc import ABCMeta, abstractmethod

import numpy as np

from .._utils.parallel import tiles
from ..privacy import grid_width

_TILE = 2**17  # outputs that are evaluated at a time, about a megabyte
_FEW = 16  # parameters whose products with validation points need no BLAS


class GradientModel(metaclass=ABCMeta):
    """A model, the rows of its players and its public validation points, ready to be walked.

    A walk starts at `initial`, takes one step ``theta - learning_rate * g`` a player, and asks for
    the utilities of all parameters on the way at once. Parameters and gradients are flat float64
    arrays on the CPU, whatever the model computes on.

    Attributes
    ----------
    n_parameters : int
        Number of trained parameters, p.
    n_players : int
        Number of parties.
    walk : callable or None
        A loop over many steps that threads may share, as `skvalue.gradients.walk_steps` without
        ``model`` and ``clip``; None: steps are taken one by one, in Python.
    walk_together : callable or None
        ``walk_together(orders, rate, noise, noise_std, thetas)``: a step of many walks at a time,
        see `skvalue.gradients._torch_walks`; None: one walk after the other. A model that has it
        has ``batch_size(n_walks)``, too: how many walks, and how many of their steps, go together.
    """

    n_parameters: int
    n_players: int
    walk = walk_together = None

    @abstractmethod
    def initial(self, rng):
        """Parameters that a walk starts from.

        Parameters
        ----------
        rng : numpy.random.Generator
            The permutation's own generator; the same state gives the same parameters. It depends
            on no row.

        Returns
        -------
        theta : ndarray of shape (p,)
            The parameters.
        """

    @abstractmethod
    def gradients(self, thetas, players):
        """Clipped gradients of the losses of many players, each at parameters of its own.

        Parameters
        ----------
        thetas : ndarray of shape (b, p)
            The parameters.
        players : ndarray of int of shape (b,)
            The players.

        Returns
        -------
        gradients : ndarray of shape (b, p)
            With unit "party", the mean gradient of the player's rows, clipped; with "example", the
            mean of its rows' clipped gradients. A norm of at most ``clip`` (unless that is None).
            What is not finite is handed on, and the walk refuses it, with the player's name; in a
            private fit it is zero, since an error would tell of the rows.
        """

    def gradient(self, theta, player):
        """Clipped gradient of one player's loss, of shape (p,)."""
        return self.gradients(np.asarray(theta)[None], np.array([player]))[0]

    @abstractmethod
    def utilities(self, thetas):
        """Utilities of many parameters on the public validation points.

        Parameters
        ----------
        thetas : ndarray of shape (T, p)
            The parameters; T is what `working_memory` allows.

        Returns
        -------
        utilities : ndarray of shape (T,)
            Means over the validation points; higher is better.
        """


def gradients_at(model, theta):
    """Gradients of all players at the same parameters."""
    n = model.n_players
    return model.gradients(np.broadcast_to(theta, (n, len(theta))), np.arange(n))


class LinearGradientModel(GradientModel):
    """Logistic, softmax or linear regression: a `GradientModel` with compiled walks.

    Rows, validation points and targets as it gets them; a constant column is appended here. The
    loss is the log-loss, or the squared error.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        Codes of classes (of another number: no class that there is), or targets.
    players : ndarray of int of shape (n_samples,)
        The party that holds each row, 0 to n_players - 1.
    X_val, y_val, weights : ndarrays
        Validation points, codes or targets, and weights that sum to one.
    kind : {"logistic", "softmax", "linear"}
        The model; "logistic" has one output, for two classes.
    n_classes : int
        Number of classes; 0 for a regression.
    clip : float or None
        Bound of the norm of a gradient.
    unit : {"party", "example"}
        Whether the mean of a party's gradients is clipped, or each of them.
    utility : {"neg_loss", "accuracy"}
        Utility of parameters.
    basis : ndarray of shape (n_outputs * (n_features + 1), n_components), default=None
        Orthonormal directions from zero, in which parameters are coordinates, and gradients; None
        is all.
    """

    def __init__(
        self, X, y, players, X_val, y_val, weights, *, kind, n_classes, clip, unit, utility,
        basis=None,
    ):  # fmt: skip
        from . import _kernels as kernels

        self._kernels = kernels
        self._kind = getattr(kernels, kind.upper())
        rows, counts = np.argsort(players, kind="stable"), np.bincount(players)
        self._bounds = np.concatenate([[0], np.cumsum(counts)])
        self._X = _with_constant(X[rows])
        self._y = np.asarray(y[rows], dtype=np.float64)
        test = _with_constant(X_val)
        if kind == "logistic":
            test *= np.where(y_val == 1, 1.0, -1.0)[:, None]
        self._n_outputs = n_classes if kind == "softmax" else 1
        self.n_parameters = self._n_outputs * self._X.shape[1]
        if basis is not None:
            self.n_parameters = basis.shape[1]
            self._X = _seen_along(self._X, basis, self._n_outputs)
            test = np.moveaxis(_seen_along(test, basis, self._n_outputs), 0, 1)
            test = test.reshape(-1, self.n_parameters)
        self._test = np.ascontiguousarray(test.T)
        self._y_test = y_val.astype(np.float64)
        self._weights = np.asarray(weights, dtype=np.float64)
        self._equal = bool((self._weights == self._weights[0]).all())
        self._clip, self._per_example = np.inf if clip is None else float(clip), unit == "example"
        self._accuracy = utility == "accuracy"
        self._few = kind == "logistic" and not self._accuracy and self.n_parameters <= _FEW
        self.n_players = len(counts)

    def initial(self, rng):
        """Zeros: a prediction that prefers nothing."""
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        """Clipped gradients of the losses of many players, each at parameters of its own."""
        thetas = np.ascontiguousarray(thetas, dtype=np.float64)
        out = np.empty((len(players), self.n_parameters))
        for s, player in enumerate(players):
            finite = self._kernels.player_gradient(
                self._kind, self._X, self._y, *self._bounds[player : player + 2], thetas, s,
                self._clip, self._per_example, np.empty(self._n_outputs), out[s],
            )  # fmt: skip
            if not finite:
                out[s] = np.nan
        return out

    def walk(self, order, rate, noise, noise_std, past, fractions, t, thetas):
        """Steps through players at once, see `skvalue.gradients.walk_steps`."""
        return self._kernels.walk(
            self._kind, self._X, self._y, self._bounds, self._clip, self._per_example, order, rate,
            noise, grid_width(noise_std), past, fractions, t, thetas,
        )  # fmt: skip

    def utilities(self, thetas):
        """Utilities of many parameters on the validation points."""
        m = len(self._y_test)
        out = np.empty(len(thetas))
        if self._few:
            self._kernels.logistic_utilities(thetas, self._test, self._weights, self._equal, out)
            return out
        for part in tiles(len(thetas), max(1, _TILE // (self._n_outputs * m))):
            some = thetas[part]
            outputs = some.reshape(-1, len(self._test)) @ self._test
            outputs = outputs.reshape(len(some), self._n_outputs, m)
            args = self._kind, outputs, self._y_test, self._weights
            if self._accuracy:
                self._kernels.accuracy_utilities(*args, out[part])
            else:
                self._kernels.loss_utilities(*args, self._equal, out[part])
        return out


def _with_constant(X):
    return np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])


def _seen_along(X, basis, n_outputs):
    """Rows, as many as outputs, whose products with coordinates are outputs: (n, outputs, r)."""
    return np.einsum("ia,car->icr", X, basis.reshape(n_outputs, X.shape[1], -1), optimize=True)
