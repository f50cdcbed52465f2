"""Core sets of fits of Layered Shapley: rows that come later, and several rows together."""

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..._utils.checks import check_numeric_target, label_codes
from ...base import check_rows
from ...samplers import layer_counts
from ._core import CoreSet
from ._designs import Utilities


class CoreQueriesMixin:
    """What `LayeredShapleyValuer` answers from the coalitions of a fit that is not private."""

    def transform(self, X):
        """Value rows: a row of fit has its fitted value, any other that on the stored coalitions.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. One that was in fit has its fitted value. Any other joins the coalitions that fit
            has stored, with every label, which are averaged by the probabilities of the estimator
            fitted on all rows (in a regression, with its prediction).

        Returns
        -------
        values : ndarray of shape (n_rows, 1)
            The values.

        Raises
        ------
        ValueError
            After a private fit, which keeps no coalitions.
        """
        return self.score_samples(X)[:, None]

    def score_samples(self, X, y=None):
        """Value rows whose labels may be known.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, valued as in `transform`.
        y : array-like of shape (n_rows,), default=None
            Their labels or targets.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.

        Raises
        ------
        ValueError
            If y has a label that fit has not seen, or another length than X; or after a private
            fit.
        """
        check_is_fitted(self)
        self._refuse_if_private("Valuing rows that were not in fit")
        X = check_rows(self, X, like=self._X)
        codes = None
        if y is not None:
            if len(y) != len(X):
                raise ValueError(f"y must have one entry a row of X ({len(X)}). Got {len(y)}.")
            if self._n_classes:
                codes = label_codes(np.asarray(y), self.classes_, "y")
            else:
                codes = check_numeric_target(y, "y")
        scores, known = self._seen.lookup(X, codes, self._X, self._y, self._fitted_values())
        new = np.flatnonzero(~known)
        if len(new):
            labels = [(codes[new], 1.0)] if codes is not None else self._guesses(X[new])
            for label, share in labels:
                joined = sum(core.joining(X[new], label) for core in self._cores())
                scores[new] += joined * share * (self._share / len(self._games))
        return scores

    def value_of_group(self, indices, accuracy=None, failure=None):
        """Value of several rows of fit together: the sum of their values.

        All their values are within `accuracy` but for a chance of `failure`, and so is their mean,
        if a value's chance is the so-manieth part of it: the number of coalitions grows as the
        logarithm of the number of rows (Section 3.4 of the paper). What is stored is not evaluated
        again.

        Parameters
        ----------
        indices : array-like of int of shape (w,)
            Rows of fit, or places in `groups_`.
        accuracy, failure : float, default=None
            None takes the parameters of the valuer.

        Returns
        -------
        group : Bunch
            ``value``, ``mean``, ``row_values`` (w,), ``n_evaluations`` (coalitions added).

        Raises
        ------
        ValueError
            If there is no such row; or after a private fit.
        """
        check_is_fitted(self)
        self._refuse_if_private("value_of_group")
        indices = np.unique(np.asarray(indices, dtype=np.int64))
        n = len(self.values_)
        if len(indices) == 0 or indices.min() < 0 or indices.max() >= n:
            raise ValueError(f"indices must be rows of fit, between 0 and {n - 1}. Got {indices}.")
        accuracy = self.accuracy if accuracy is None else accuracy
        failure = (self.failure if failure is None else failure) / len(indices)
        values, asked = self.values_[indices].copy(), 0
        for number, estimate in enumerate(self._estimates):
            players = self._players[number]
            mine = np.flatnonzero(np.isin(players, indices))
            plan = self._plans[number]
            wanted = layer_counts(self._bounds(plan.n)[0], accuracy, failure, self.allocation)
            extra = np.where(plan.enumerated | (plan.counts < 1), 0, wanted - plan.counts)
            utilities = Utilities(self._game(number))
            rng = self._seeds(number)(-1)
            places = np.searchsorted(indices, players[mine])
            for k in np.flatnonzero(extra > 0).tolist():
                count = int(np.ceil(extra[k]))
                more = _fresh_gains(utilities, mine, k, count, rng)
                weight = count / (count + plan.counts[k]) / (plan.n * len(self._estimates))
                values[places] += weight * (more - estimate.layers[k, mine])
            asked += utilities.n_asked
        return Bunch(
            value=float(values.sum()),
            mean=float(values.mean()),
            row_values=values,
            n_evaluations=asked,
        )

    def core_sets(self):
        """Core sets of the fit, one for every game: what `transform` values unseen rows on.

        Returns
        -------
        core_sets : list of skvalue.valuers.CoreSet
            Without rows that are in no coalition. They can be saved, without pickle, and loaded.

        Raises
        ------
        ValueError
            After a private fit.
        """
        check_is_fitted(self)
        self._refuse_if_private("core_sets")
        return [core.pruned() for core in self._cores()]

    def _cores(self):
        if "cores" not in self._lazy:
            self._lazy["cores"] = [self._core(number) for number in range(len(self._estimates))]
        return self._lazy["cores"]

    def _core(self, number):
        rows, judges = self._games[number]
        rows = np.arange(len(self._X)) if rows is None else rows
        estimate, n = self._estimates[number], self._plans[number].n
        groups = None
        if self._groups is not None:
            groups = np.searchsorted(self._players[number], self._groups[rows])
        coalitions = list(estimate.core)
        if self.n_layers is None or self.n_layers >= n:
            full = self._game(number).utility(np.ones((1, n), dtype=bool))
            coalitions.append((np.arange(n)[None], np.ones(1), full))
        return CoreSet(
            self._settings(), self._X[rows], self._y[rows], judges,
            self.classes_ if self._n_classes else None, coalitions, n, self.include_empty, groups,
        )  # fmt: skip

    def _guesses(self, X_new):
        """(labels, share) of rows without labels."""
        classes = self.classes_ if self._n_classes else None
        if "model" not in self._lazy:
            self._lazy["model"] = clone(self._settings().model(classes)).fit(
                self._X, self._y if classes is None else self.classes_[self._y]
            )
        model = self._lazy["model"]
        if classes is None:
            return [(model.predict(X_new), 1.0)]
        if is_classifier(model) and hasattr(model, "predict_proba"):
            shares = model.predict_proba(X_new)
        else:
            shares = (model.predict(X_new)[:, None] == classes).astype(np.float64)
        return [(np.full(len(X_new), c), shares[:, c]) for c in range(len(classes))]


def _fresh_gains(utilities, players, k, count, rng):
    """Mean contributions of some players to so many fresh coalitions of k others each."""
    n = utilities.n
    draws = rng.permuted(np.tile(np.arange(n - 1), (len(players) * count, 1)), axis=1)[:, :k]
    who = np.repeat(players, count)
    others = draws + (draws >= who[:, None])
    gains = utilities.of(np.column_stack([others, who])) - utilities.of(others)
    return gains.reshape(len(players), count).mean(axis=1)
