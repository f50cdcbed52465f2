"""The game of leave-one-out, in which Newton's method starts from the model of all rows."""

import warnings

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from ...derivatives import Hessian, at_optimum, changes_without, linear_model, supports
from ...games import Game, train


class NewtonGame(Game):
    """Models without one player from Newton steps that start at the optimum of all rows.

    The Hessian of the model of all rows serves for all of them. Other coalitions, and those that
    lack a class or have no unique optimum, are retrained. All other models are at their optimum,
    whatever the `tol` of the estimator; transformers, and balanced class weights, are those of all
    rows.

    Parameters
    ----------
    game : ModelGame
        The game of retraining.
    X, y, weights, groups : arrays
        Its rows, labels or targets, weights and groups; the last two may be None.

    Raises
    ------
    ValueError
        If the estimator is not supported, or has no unique optimum.
    """

    _remember = False

    def __init__(self, game, X, y, weights, groups):
        super().__init__(game.n_players, game.empty_utility)
        if weights is not None and not weights.min() > 0:
            raise ValueError(f"sample_weight must be positive. Got {weights.min()}.")
        self.game, self.groups_, self.n_jobs = game, game.groups_, game.n_jobs
        classes = np.unique(y) if is_classifier(game.estimator) else None
        with warnings.catch_warnings():  # the steps below converge, or raise an error
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted, _ = train(game.estimator, X, y, weights, classes, np.arange(len(y)))
        self.model = at_optimum(linear_model(fitted, X, y, weights))
        self.hessian = Hessian(self.model)
        self.solver = "newton, approximate" if moves(game.estimator) else "newton"
        codes = np.arange(len(y)) if groups is None else np.searchsorted(self.groups_, groups)
        order = np.argsort(codes, kind="stable")
        self.rows = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        self.labels = None if classes is None else np.searchsorted(classes, y)

    def _compute(self, masks, n_jobs=None):
        utilities = np.full(len(masks), np.nan)
        failed, one_class = np.zeros((2, len(masks)), dtype=bool)
        missing = (~masks).sum(axis=1)
        for whole in np.flatnonzero(missing == 0):
            utilities[whole] = self._score(self.model.theta)
        single = np.flatnonzero(missing == 1)
        gone = [self.rows[player] for player in (~masks[single]).argmax(axis=1)]
        kept = [self._keeps_all_classes(rows) for rows in gone]
        single, gone = single[kept], [rows for rows, has_all in zip(gone, kept) if has_all]
        steps = changes_without(self.model, self.hessian, gone, True) if gone else ()
        for coalition, step in zip(single, steps):
            utilities[coalition] = self._score(self.model.theta + step.T)
        for coalition in np.flatnonzero(np.isnan(utilities)):
            counts = self.game.n_failed, self.game.n_one_class
            utilities[coalition] = self.game.utility(masks[coalition : coalition + 1])[0]
            failed[coalition] = self.game.n_failed > counts[0]
            one_class[coalition] = self.game.n_one_class > counts[1]
        return utilities, failed, one_class

    def _score(self, theta):
        """Utility of the model with some coefficients; NaN if there is none."""
        try:
            return self.game.score(self.model.fitted(theta))
        except Exception:  # retraining has the same error, and handles it
            return np.nan

    def _keeps_all_classes(self, rows):
        """Whether every class has rows without these."""
        if self.labels is None:
            return True
        totals = np.bincount(self.labels)
        return (totals > np.bincount(self.labels[rows], minlength=len(totals))).all()

    def warn_unbatched(self, stacklevel=2):
        """As in `ModelGame`; no models are trained one by one."""


def moves(estimator):
    """Whether more than coefficients changes without a row: transformers, weights of classes."""
    return isinstance(estimator, Pipeline) or (
        estimator.get_params().get("class_weight") == "balanced"
    )


def newton_game(game, X, y, weights, groups, method):
    """The game to play in place of a game of retraining: the same utilities at a lower cost.

    "auto" is "newton" for single rows and estimators that would be trained one by one, if nothing
    but their coefficients changes.
    """
    if method == "newton":
        return NewtonGame(game, X, y, weights, groups)
    estimator, single = game.estimator, groups is None and game.solver == "loop"
    if method == "refit" or not single or moves(estimator) or not supports(estimator):
        return game
    try:
        return NewtonGame(game, X, y, weights, groups)
    except ValueError:  # no derivatives, or no unique optimum
        return game
