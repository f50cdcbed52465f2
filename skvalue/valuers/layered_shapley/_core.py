"""The core set: stored coalitions and their utilities, on which new rows are valued."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone, is_classifier

from ..._utils.parallel import tiles
from ...base import encode_later, is_numeric, n_rows_of, stack_rows
from ...estimation import ENTRIES, coalition_masks
from .._retraining._games import estimator_of
from ._games import game_of, make_game, players_of, with_parameters


@dataclass(frozen=True, eq=False)
class CoreSet:
    """Stored coalitions of a fit with their utilities, on which new rows are valued.

    The value of a row that joins n others is the mean over sizes of its mean marginal
    contribution to the stored coalitions of that size. Their utilities are stored, so
    that models are trained only for coalitions with the new row.

    `LayeredShapleyValuer.core_sets` returns the core sets of a fit.

    Parameters
    ----------
    valuer : LayeredShapleyValuer
        Its parameters are those of the game.
    problem : Problem
        The validated input of the fit.
    split : Split
        The split of the problem: players and validation points.
    coalitions : list of tuples
        (members, weights, utilities) of one size each, of shapes (m, size), (m,) and
        (m,); members are numbers of players of the split.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skvalue import LayeredShapleyValuer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> valuer = LayeredShapleyValuer(max_evaluations=300, random_state=0)
    >>> core = valuer.fit(X[:30], y[:30], X_val=X[30:90], y_val=y[30:90]).core_sets()[0]
    >>> core.score_samples(X[100:103], y[100:103]).shape
    (3,)
    """

    valuer: object
    problem: object
    split: object
    coalitions: list

    def score_samples(self, X, y):
        """Value of each row if it joins the rows of the fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels or targets.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.

        Raises
        ------
        ValueError
            If y has a label that was not in fit.
        """
        rows = self.problem.X
        X = np.asarray(X, dtype=rows.dtype) if is_numeric(rows) else X
        return self.joining(X, encode_later(self.problem, y, is_private=False))

    def joining(self, X_new, y_new):
        """Value of each row that joins, as `score_samples` without checks.

        Parameters
        ----------
        X_new : ndarray of shape (n_rows, n_features)
            The rows.
        y_new : ndarray of shape (n_rows,)
            Codes of their classes, or targets.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.
        """
        problem = self.problem
        X, y = problem.rows(self.split)
        players = players_of(problem, self.split)
        n_old = len(players)
        n_new = len(y_new)
        new_players = n_old + np.arange(n_new)
        groups = None
        if problem.groups is not None:
            codes = np.searchsorted(players, problem.groups[self.split.players])
            groups = np.r_[codes, new_players]
        X = stack_rows(X, X_new)
        y = np.concatenate([y, y_new])
        game = make_game(self.valuer, problem, X, y, self.split.points, groups)

        # Each new row alone, and then with each of the stored coalitions.
        alone = coalition_masks(new_players[:, None], game.n_players)
        values = game.utility(alone) - game.empty_utility
        for members, weights, utilities in self.coalitions:
            for block in tiles(len(members), max(1, ENTRIES // game.n_players)):
                masks = coalition_masks(members[block], game.n_players)
                for i, player in enumerate(new_players):
                    masks[:, player] = True
                    gains = game.utility(masks) - utilities[block]
                    values[i] += weights[block] @ gains
                    masks[:, player] = False
        return values / (n_old + 1)


def core_set(valuer, fitted, number):
    """The core set of one split, created once per fit."""
    key = "core set", number
    if key not in fitted.cache:
        problem = fitted.problem
        split = problem.splits[number]
        coalitions = _join_by_size(fitted.statistic[number])
        n = len(players_of(problem, split))
        if valuer.n_layers is None or valuer.n_layers >= n:
            # The largest coalition that a new row joins: all players.
            all_players = np.ones((1, n), dtype=bool)
            utility = game_of(valuer, problem, split).utility(all_players)
            coalitions.append((np.arange(n)[None], np.ones(1), utility))
        fitted.cache[key] = CoreSet(with_parameters(valuer), problem, split, coalitions)
    return fitted.cache[key]


def _join_by_size(coalitions):
    """One tuple (members, weights, utilities) for each size, in order of size."""
    by_size = {}
    for members, weights, utilities in coalitions:
        size = members.shape[1]
        by_size.setdefault(size, []).append((members, weights, utilities))
    return [tuple(map(np.concatenate, zip(*by_size[size]))) for size in sorted(by_size)]


def joining_values(valuer, fitted, number, X, y):
    """Values of rows that join the core set of one split.

    Without labels, values are averages over labels by the probabilities of the
    estimator fitted on all rows; for regression, the target is its prediction.
    """
    core = core_set(valuer, fitted, number)
    if y is not None:
        return core.joining(X, y)
    return sum(
        core.joining(X, targets) * probabilities
        for targets, probabilities in _predictions(valuer, fitted, X)
    )


def _predictions(valuer, fitted, X):
    """Pairs (codes, probabilities) for rows without labels, by the model of all rows.

    For regression the pair (targets, 1).
    """
    problem = fitted.problem
    if "model" not in fitted.cache:
        model = clone(estimator_of(valuer, problem))
        fitted.cache["model"] = model.fit(problem.X, problem.labels(problem.y))
    model = fitted.cache["model"]
    if problem.classes is None:
        return [(model.predict(X), 1.0)]
    if is_classifier(model) and hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
    else:
        is_predicted = model.predict(X)[:, None] == problem.classes
        probabilities = is_predicted.astype(np.float64)
    n = n_rows_of(X)
    return [(np.full(n, c), probabilities[:, c]) for c in range(problem.n_classes)]
