"""Models that are walked through parties, one gradient step a party."""

from typing import Protocol, runtime_checkable

import numpy as np

from .._utils.parallel import tiles
from ..privacy import grid_width

__all__ = ["GradientModel", "LinearGradientModel", "gradients_at"]

_TILE = 2**17  # outputs that are judged at a time, about a megabyte
_FEW = 16  # parameters whose products with test points need no BLAS


@runtime_checkable
class GradientModel(Protocol):
    """A model, the rows of its players and its public test points, ready to be walked.

    A walk starts at `initial`, takes one step ``theta - learning_rate * g`` a player, and asks for
    the utilities of all parameters on the way at once. Parameters and gradients are flat float64
    arrays on the CPU, whatever the model computes on.

    Attributes
    ----------
    n_parameters : int
        Number of trained parameters, p.
    n_players : int
        Number of parties.
    """

    n_parameters: int
    n_players: int

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

    def gradient(self, theta, player):
        """Clipped gradient of a player's loss.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            Where.
        player : int
            Whose.

        Returns
        -------
        gradient : ndarray of shape (p,)
            With unit "party", the mean gradient of the player's rows, clipped; with "example", the
            mean of its rows' clipped gradients. A norm of at most ``clip`` (unless that is None).
            What is not finite is handed on, and the walk refuses it, with the player's name; in a
            private fit it is zero, since an error would tell of the rows.
        """

    def utilities(self, thetas):
        """Utilities of many parameters on the public test points.

        Parameters
        ----------
        thetas : ndarray of shape (T, p)
            The parameters; T is what `working_memory` allows.

        Returns
        -------
        utilities : ndarray of shape (T,)
            Means over the test points; higher is better.
        """


def gradients_at(model, theta):
    """Gradients of all players at the same parameters, at once where a model can."""
    n = model.n_players
    if hasattr(model, "gradients"):
        return model.gradients(np.broadcast_to(theta, (n, len(theta))), np.arange(n))
    return np.array([model.gradient(theta, j) for j in range(n)])


class LinearGradientModel:
    """Logistic, softmax or linear regression: a `GradientModel` with compiled walks.

    Rows, test points and targets as it gets them; a constant column is appended here. The loss is
    the log-loss, or the squared error.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        Codes of classes (of another number: no class that there is), or targets.
    players : ndarray of int of shape (n_samples,)
        The party that holds each row, 0 to n_players - 1.
    X_val, y_val, weights : ndarrays
        Test points, codes or targets, and weights that sum to one.
    kind : {"logistic", "softmax", "linear"}
        The model; "logistic" has one output, for two classes.
    n_classes : int
        Number of classes; 0 for a regression.
    clip : float or None
        Bound of the norm of a gradient.
    unit : {"party", "example"}
        Whether the mean of a party's gradients is clipped, or each of them.
    utility : {"neg_loss", "accuracy"}
        What judges.
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
        self._kind = {
            "logistic": kernels.LOGISTIC,
            "softmax": kernels.SOFTMAX,
            "linear": kernels.LINEAR,
        }[kind]
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

    def gradient(self, theta, player):
        """Clipped gradient of a player's loss."""
        out = np.empty(self.n_parameters)
        finite = self._kernels.player_gradient(
            self._kind, self._X, self._y, *self._bounds[player : player + 2], theta[None], 0,
            self._clip, self._per_example, np.empty(self._n_outputs), out,
        )  # fmt: skip
        return out if finite else np.full_like(out, np.nan)

    def walk(self, order, rate, noise, scales, noise_std, past, shares, t, thetas):
        """Steps through players at once, see `skvalue.gradients._walk.walk_steps`."""
        return self._kernels.walk(
            self._kind, self._X, self._y, self._bounds, self._clip, self._per_example, order, rate,
            noise, scales, grid_width(scales * noise_std), past, shares, t, thetas,
        )  # fmt: skip

    def utilities(self, thetas):
        """Utilities of many parameters on the test points."""
        m = len(self._y_test)
        out = np.empty(len(thetas))
        if self._few:
            self._kernels.logistic_utilities(thetas, self._test, self._weights, self._equal, out)
            return out
        for part in tiles(len(thetas), max(1, _TILE // (self._n_outputs * m))):
            some = thetas[part]
            outputs = some.reshape(-1, len(self._test)) @ self._test
            outputs = outputs.reshape(len(some), self._n_outputs, m)
            if self._accuracy:
                self._kernels.accuracy_utilities(
                    self._kind, outputs, self._y_test, self._weights, out[part]
                )
            else:
                self._kernels.loss_utilities(
                    self._kind, outputs, self._y_test, self._weights, self._equal, out[part]
                )
        return out


def _with_constant(X):
    return np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])


def _seen_along(X, basis, n_outputs):
    """Rows, as many as outputs, whose products with coordinates are outputs: (n, outputs, r)."""
    return np.einsum("ia,car->icr", X, basis.reshape(n_outputs, X.shape[1], -1), optimize=True)
