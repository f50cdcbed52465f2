"""The contract of a per-row valuer, once."""

from abc import abstractmethod

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_target_scale, label_codes
from ._old_in_sample import BaseInSampleValuer
from ._old_inference import InferenceMixin
from ._old_judges import Progress, with_one_plan
from ._old_private import codes_or_other
from ._old_updates import UpdatesMixin
from ._rows import check_rows

__all__ = ["BaseInSampleValuer", "BaseValuer"]


class BaseValuer(InferenceMixin, UpdatesMixin, BaseInSampleValuer):
    """Base class of valuers that value any row, in fit or not.

    A method writes `_value`, the values of one game with clean arrays in hand, and, where it can
    value a row that was not in fit, `_value_joining`. Everything a user meets (validation set,
    cross-validation, groups, callbacks, metadata routing, `set_output`) is here.
    """

    _plan = None  # what a fit decides once, see `with_one_plan`

    # What a method writes -------------------------------------------------------------------

    @abstractmethod
    def _value(self, X, y, judges, n_classes, progress):
        """Values of the rows of one game.

        Parameters
        ----------
        X, y : ndarrays
            The players; y holds codes of classes or targets.
        judges : Judges
            The validation points.
        n_classes : int
            Number of classes; 0 for a regression.
        progress : Progress
            Wraps the parts of the computation, see `Progress.follow`.

        Returns
        -------
        values : ndarray of shape (n_players,)
            Sums over the judges done of weight times value.
        utility : ndarray of shape (n_done,)
            Utility of all players at each judge done.
        empty_utility : float
            Mean utility of the empty coalition.
        """

    def _value_joining(self, game, X, y, judges, n_classes, X_new, y_new):
        """Values of new rows, each joining game number ``game`` alone.

        ``y_new`` None averages over labels.
        """
        raise NotImplementedError

    def _judge_moments(self, X, y, judges, n_classes, groups):
        """Sums over judges of squared weight times value, and times squared value.

        One entry a player, or a group where ``groups`` (codes) is not None.
        """
        raise NotImplementedError

    def _judge_values(self, game, X, y, judges, n_classes, rows):
        """Value of the players ``rows`` together at each judge of game number ``game``."""
        raise NotImplementedError

    def _n_steps(self, n_players, n_judges, n_features):
        """Steps of one call of `_value`, for progress bars."""
        return 1

    # What a user calls ----------------------------------------------------------------------

    def transform(self, X):
        """Value rows: a row of fit has its fitted value, any other the one it would have.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. One that was in fit has its fitted value (the mean, if it was there more than
            once; with groups, its group's). Any other has the value it would have if it joined,
            averaged over labels by the method's own class probabilities.

        Returns
        -------
        values : ndarray of shape (n_rows, 1)
            The values.
        """
        return self.score_samples(X)[:, None]

    def score_samples(self, X, y=None):
        """Value rows whose labels may be known.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, valued as in `transform`.
        y : array-like of shape (n_rows,), default=None
            Their labels or targets. None averages over labels.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.

        Raises
        ------
        ValueError
            If y has a label that fit has not seen, or another length than X.
        """
        check_is_fitted(self)
        private = self._fitted_privately()
        like = self._games[0][1].X
        X = check_rows(self, X, like=like)
        codes = None
        if y is not None:
            if len(y) != len(X):
                raise ValueError(f"y must have one entry a row of X ({len(X)}). Got {len(y)}.")
            if private:
                codes = codes_or_other(np.asarray(y), self.classes_)
            elif self._n_classes:
                codes = label_codes(np.asarray(y), self.classes_, "y")
            else:
                codes = check_target_scale(y, "y")
        if private:
            return self._score_released(X, codes)
        scores, known = self._seen.lookup(X, codes, self._X, self._y, self._fitted_values())
        new = np.flatnonzero(~known)
        if len(new):
            joined = np.zeros(len(new))
            y_new = None if codes is None else codes[new]
            for game, (rows, judges) in enumerate(self._games):
                players = (self._X, self._y) if rows is None else (self._X[rows], self._y[rows])
                joined += self._value_joining(
                    game, *players, judges, self._n_classes, X[new], y_new
                )
            scores[new] = joined * (self._share / len(self._games))
        return scores

    # Plumbing -------------------------------------------------------------------------------

    def _set_values(self, row_values):
        self._row_values = self.values_ = row_values
        if self._groups is not None:
            self.values_ = np.bincount(self._groups, weights=row_values)

    @with_one_plan
    def _play(self, games, X, y, groups):
        n_steps = sum(
            self._n_steps(len(X) if rows is None else len(rows), len(judges.y), X.shape[1])
            for rows, judges in games
        )
        progress = Progress(self, n_steps)
        values = np.zeros(len(X))
        played = 0
        utility = empty = 0.0
        for number, (rows, judges) in enumerate(games):
            players = (X, y) if rows is None else (X[rows], y[rows])
            part, utilities, empty_utility = self._value(
                *players, judges, self._n_classes, progress
            )
            if not len(utilities):  # stopped before anybody judged
                del games[number:]
                break
            weights = judges.weights[: len(utilities)]
            total = (weights.sum() or 1.0) if len(utilities) < len(judges.y) else 1.0
            values[slice(None) if rows is None else rows] += part / total
            utility += utilities @ weights / total
            empty += empty_utility
            played += 1
            games[number] = rows, judges.first(len(utilities))
            if progress.over:
                del games[number + 1 :]
                break
        if not played:
            if progress.interrupted:
                raise KeyboardInterrupt
            raise RuntimeError(
                "The fit was stopped by a callback before there was a value to keep."
            )
        return games, values / played, utility / played, empty / played, progress
