"""A game of logistic regression in which a bound on the effect of a row is proved."""

from math import hypot, log, sqrt

import numpy as np
from scipy.special import expit, lambertw

from .._utils.parallel import ordered_map, tiles
from ..linear.dual_kernels import dual_tile
from ..linear.stable_kernels import primal_tile
from ..privacy import clip_rows
from ._protocol import Game

_STEEPEST = float(lambertw(np.exp(-1)).real)  # largest t sigmoid(-t)
_TOLERANCE = 1e-11  # of the solvers, relative to the size of gradients
_MAX_STEPS = 200
_TILE = 256  # coalitions


def weight_norm(l2):
    """Largest norm of the coefficients of a model, without the error of the solver.

    >>> round(weight_norm(1.0), 4)
    0.5277
    """
    return sqrt(_STEEPEST / l2)


def stability(l2, max_norm, fit_intercept=True):
    """Constants of the game: norm of rows, slope of the loss, solvers' tolerance.

    The coefficients w of a model minimise ``mean log(1 + exp(-y w.x)) + l2 / 2 |w|^2``,
    so that ``l2 |w|^2`` is the mean of ``m sigmoid(-m)`` over the margins m of its
    rows, at most .2785.

    Parameters
    ----------
    l2 : float
        Penalty.
    max_norm : float
        Norm to which rows are clipped.
    fit_intercept : bool, default=True
        Whether rows get a constant entry 1, whose coefficient is penalised too.

    Returns
    -------
    kappa, slope, tolerance : float
        Norm of rows with the constant; Lipschitz constant of the loss on the attainable
        margins; norm of the gradient at which the solvers stop.

    References
    ----------
    O. Bousquet, A. Elisseeff: "Stability and Generalization", JMLR 2002, with the
    Lipschitz constant of the loss on the attainable coefficients instead of 1.

    Examples
    --------
    >>> kappa, slope, _ = stability(1.0, 1.0, fit_intercept=False)
    >>> kappa, round(slope, 4)
    (1.0, 0.6289)
    """
    kappa = hypot(max_norm, 1.0) if fit_intercept else float(max_norm)
    tolerance = _TOLERANCE * kappa * (1 + kappa * weight_norm(l2))
    radius = weight_norm(l2) + tolerance / l2
    return kappa, float(expit(kappa * radius)), tolerance


def validation_bounds(signed, weights, l2, max_norm, fit_intercept=True):
    """Bounds of the slope and the curvature of the mean loss of the validation points.

    The gradient at any attainable w is the mean of ``-sigmoid(-m) u`` over validation
    points with signed rows u and margins m = w.u, and sigmoid(-m) differs from 1/2 by
    at most ``a = sigmoid(R |u|) - 1/2``. So its norm is at most ``|mean u| / 2`` plus
    the square root of the largest eigenvalue of the mean of ``a^2 u u'`` (Jensen). The
    Hessian is at most the mean of ``u u' / 4``.

    Parameters
    ----------
    signed : ndarray of shape (n_validation, n_features)
        Clipped validation points with their constant, times the sign of their class.
    weights : ndarray of shape (n_validation,)
        Their weights, of sum 1.
    l2, max_norm, fit_intercept : float, float, bool
        As in `stability`.

    Returns
    -------
    slope, curvature : float
        Bounds of the norms of the gradient and of the Hessian, at most those of any
        points.

    Examples
    --------
    >>> points, weights = np.eye(2), np.full(2, 0.5)
    >>> slope, _ = validation_bounds(points, weights, 1.0, 1.0, fit_intercept=False)
    >>> round(float(slope), 3)  # 0.629 for points that are all alike
    0.445
    """
    kappa, steepest, tolerance = stability(l2, max_norm, fit_intercept)
    radius = weight_norm(l2) + tolerance / l2
    rows = signed * np.sqrt(weights)[:, None]
    spread = expit(np.linalg.norm(signed, axis=1) * radius) - 0.5
    slope = np.linalg.norm(weights @ signed) / 2
    slope = slope + np.linalg.norm(rows * spread[:, None], 2)
    curvature = np.linalg.norm(rows, 2) ** 2 / 4
    margin = 1 + 1e-9  # for rounding
    return min(kappa * steepest, slope * margin), min(kappa**2 / 4, curvature * margin)


class StableLogisticGame(Game):
    """Logistic regression of two classes; the utility is minus the model's mean loss.

    With ``loss="training"`` it is minus the minimum of the objective on the coalition's
    own rows, which a row that joins k others changes by at most ``ln(1 + exp(kappa
    |w|)) / (k + 1)``.

    The model of k rows minimises ``mean log(1 + exp(-y w.x)) + l2 / 2 |w|^2`` over
    these rows: it is `LogisticRegression` with ``C = 1 / (l2 k)`` on rows with a
    constant column, whose coefficient is penalised too. Rows and validation points are
    clipped to a norm. Coalitions of one class need no special rule, the empty coalition
    has w = 0, and replacing one of k rows changes the utility by at most ``2 (kappa
    L)^2 / (l2 k) + 2 kappa L tol / l2``, see `stability`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of int of shape (n_samples,)
        Codes of their classes, 0 or 1; a row with any other code is replaced by zeros.
    X_val, y_val : ndarrays
        Validation points and codes of their classes.
    l2 : float, default=1.0
        Penalty.
    max_norm : float, default=1.0
        Norm to which rows and validation points are clipped, before the constant is
        added.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    sample_weight_val : ndarray of shape (n_validation,), default=None
        Weights of the validation points.
    groups : ndarray of int of shape (n_samples,), default=None
        Codes of groups; the players then are the groups.
    loss : {"validation", "training"}, default="validation"
        Whether the loss is that of the validation points, or the objective of the
        training.
    n_jobs : int, default=None
        Number of threads; None means that of a matrix product.

    Attributes
    ----------
    n_players : int
        Number of rows or groups.
    empty_utility : float
        Utility of the empty coalition, -ln 2.
    solver : str
        "stable logistic".
    n_evaluations, n_failed : int
        Number of utilities computed; none of them fails.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [0.2], [0.9]]), np.array([0, 1, 0, 1])
    >>> game = StableLogisticGame(X, y, X, y)
    >>> coalitions = [[True, True, True, True], [True, False, False, False]]
    >>> game.utility(coalitions).round(3).tolist()
    [-0.654, -0.713]
    """

    solver = "stable logistic"
    _remember = False

    def __init__(
        self,
        X,
        y,
        X_val,
        y_val,
        *,
        l2=1.0,
        max_norm=1.0,
        fit_intercept=True,
        sample_weight_val=None,
        groups=None,
        loss="validation",
        n_jobs=None,
    ):
        self.l2 = float(l2)
        self.loss = loss
        self.n_jobs = n_jobs
        self.kappa, _, self.tolerance = stability(l2, max_norm, fit_intercept)
        self._codes = groups
        self._intercept = bool(fit_intercept)
        self._max_norm = float(max_norm)

        # Rows of neither class are zero, and have no gradient.
        Z = self._clipped(X)
        self._Z = np.ascontiguousarray(np.where((y <= 1)[:, None], Z, 0.0))
        self._t = (np.asarray(y) == 1).astype(np.float64)

        signs = np.where(np.asarray(y_val) == 1, 1.0, -1.0)
        Z_val = self._clipped(X_val)
        self._signed_val = np.ascontiguousarray((Z_val * signs[:, None]).T)
        if sample_weight_val is None:
            sample_weight_val = np.ones(len(Z_val))
        self._weights = sample_weight_val / sample_weight_val.sum()

        n_players = len(Z) if groups is None else int(groups.max()) + 1
        super().__init__(n_players, -log(2), 0)

    def _clipped(self, X):
        """Rows, clipped to the norm, with their constant."""
        Z = clip_rows(X, self._max_norm)
        if self._intercept:
            return np.column_stack([Z, np.ones(len(Z))])
        return Z

    def _compute(self, masks, n_jobs=None):
        tasks = [(masks[tile],) for tile in tiles(len(masks), _TILE)]
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        utilities = np.concatenate(list(ordered_map(self._tile, tasks, n_jobs)))
        return utilities, np.zeros(len(masks), dtype=bool)

    def _tile(self, masks):
        """Utilities of a tile of coalitions."""
        if self._codes is not None:
            masks = masks[:, self._codes]
        coefs = self._coefs(masks)
        if self.loss == "training":
            sizes = masks.sum(axis=1)
            margins = coefs @ self._Z.T * (2 * self._t - 1)
            losses = np.log1p(np.exp(-margins))
            penalties = self.l2 / 2 * (coefs**2).sum(axis=1)
            return -(losses * masks).sum(axis=1) / sizes - penalties
        margins = coefs @ self._signed_val
        return -np.log1p(np.exp(-margins)) @ self._weights

    def _coefs(self, masks):
        """Coefficients (m, p) of coalitions of rows."""
        p = self._Z.shape[1]
        sizes = masks.sum(axis=1)
        c = 1.0 / (self.l2 * sizes)
        rtol = self.tolerance / self.kappa
        coefs = np.empty((len(masks), p))
        solved = np.empty(len(masks), dtype=bool)

        # The dual has an unknown for each row, the primal one for each column.
        is_few = sizes <= p
        coefs[is_few], solved[is_few] = dual_tile(
            X=self._Z,
            t=self._t,
            masks=masks[is_few],
            c=c[is_few],
            free=False,
            rtol=rtol,
            max_steps=_MAX_STEPS,
        )
        coefs[~is_few], solved[~is_few] = primal_tile(
            X=self._Z,
            t=self._t,
            masks=masks[~is_few],
            c=c[~is_few],
            rtol=rtol,
            kappa=self.kappa,
            max_steps=_MAX_STEPS,
        )
        if not solved.all():
            raise RuntimeError(
                "A model did not converge to the tolerance, on which the bound of the "
                "effect of a row relies: l2 and max_norm are too extreme. Got "
                f"l2={self.l2:g}, norm of rows {self.kappa:g}."
            )
        return coefs

    def validation_bounds(self):
        """Bounds of the slope and curvature of the utility, from validation points.

        Returns
        -------
        slope, curvature : float
            See `skvalue.games.validation_bounds`.
        """
        return validation_bounds(
            self._signed_val.T, self._weights, self.l2, self._max_norm, self._intercept
        )
