"""The core set: stored coalitions and their utilities, on which new rows are valued."""

import json
from dataclasses import replace

import numpy as np

from ..._utils.parallel import tiles
from ...base import is_numeric, rows_at, stack_rows
from ._designs import ENTRIES, coalition_masks
from ._settings import GameSettings


class CoreSet:
    """Stored coalitions of a fit with their utilities, on which new rows are valued.

    The value of a row that joins n others is the mean over sizes of its mean marginal contribution
    to the stored coalitions of that size. Their utilities are stored, so that models are trained
    only for coalitions with the new row.

    `LayeredShapleyValuer.core_sets` returns the core sets of a fit.

    Parameters
    ----------
    settings : GameSettings
        Parameters of the game.
    X : array-like of shape (n_rows, n_features)
        The rows of the coalitions.
    y : ndarray of shape (n_rows,)
        Codes of their classes, or targets.
    X_val : array-like of shape (n_validation, n_features)
        The validation points.
    y_val : ndarray of shape (n_validation,)
        Codes of their classes, or targets.
    classes : ndarray or None
        The classes; None for regression.
    coalitions : list of tuples
        (members, weights, utilities) of one size each, of shapes (m, size), (m,) and (m,); members
        are numbers of players.
    n_players : int
        Number n of players in the fit.
    groups : ndarray of int of shape (n_rows,), default=None
        The player of each row; None: each row is a player.
    sample_weight_val : ndarray of shape (n_validation,), default=None
        Weights of the validation points, for the mean utility; None: equal weights.

    Attributes
    ----------
    n_coalitions : int
        Number of stored coalitions.

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

    def __init__(
        self, settings, X, y, X_val, y_val, classes, coalitions, n_players, groups=None,
        sample_weight_val=None,
    ):  # fmt: skip
        self.settings, self.X, self.y, self.X_val, self.y_val = settings, X, y, X_val, y_val
        self.classes, self.n_players = classes, n_players
        self.groups = np.arange(len(y)) if groups is None else groups
        n_val = len(y_val)
        equal = np.full(n_val, 1.0 / n_val)
        self.sample_weight_val = equal if sample_weight_val is None else sample_weight_val
        by_size = {}
        for members, weights, utilities in coalitions:
            by_size.setdefault(members.shape[1], []).append((members, weights, utilities))
        self.coalitions = [
            tuple(np.concatenate(part) for part in zip(*parts))
            for _, parts in sorted(by_size.items())
        ]

    @property
    def n_coalitions(self):
        """Number of stored coalitions."""
        return sum(len(members) for members, _, _ in self.coalitions)

    def pruned(self):
        """Remove the rows that are not in any stored coalition.

        Returns
        -------
        core : CoreSet
            The core set.
        """
        used = np.zeros(int(self.groups.max()) + 1, dtype=bool)
        for members, _, _ in self.coalitions:
            used[members] = True
        if used.all():
            return self
        number, kept = np.cumsum(used) - 1, used[self.groups]
        coalitions = [(number[members], *rest) for members, *rest in self.coalitions]
        return CoreSet(
            self.settings, rows_at(self.X, np.flatnonzero(kept)), self.y[kept], self.X_val,
            self.y_val, self.classes, coalitions, self.n_players,
            number[self.groups[kept]], self.sample_weight_val,
        )  # fmt: skip

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
        X, y = np.asarray(X, dtype=self.X.dtype) if is_numeric(self.X) else X, np.asarray(y)
        if self.classes is not None:
            unseen = np.setdiff1d(y, self.classes)
            if len(unseen):
                raise ValueError(
                    "y must hold only labels that the fit has seen. Got unseen labels: "
                    f"{', '.join(map(repr, unseen.tolist()[:5]))}."
                )
            y = np.searchsorted(self.classes, y)
        return self.joining(X, y)

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
        n_old, n_new = int(self.groups.max()) + 1, len(y_new)
        groups = np.r_[self.groups, n_old + np.arange(n_new)]
        rows_play = len(np.unique(groups)) == len(groups)
        game = self.settings.game(
            stack_rows(self.X, X_new), np.concatenate([self.y, y_new]), self.X_val,
            self.y_val, self.sample_weight_val, self.classes, None if rows_play else groups,
        )  # fmt: skip
        if rows_play:  # then players are rows, in the order of the rows
            place = np.empty(n_old, dtype=np.int64)
            place[self.groups] = np.arange(len(self.groups))
        else:
            place = np.arange(n_old)
        values = np.zeros(n_new)
        alone = coalition_masks(n_old + np.arange(n_new)[:, None], game.n_players)
        values += game.utility(alone) - game.empty_utility
        for members, weights, known in self.coalitions:
            for part in tiles(len(members), max(1, ENTRIES // game.n_players)):
                masks = coalition_masks(place[members[part]], game.n_players)
                for new in range(n_new):
                    masks[:, n_old + new] = True
                    values[new] += weights[part] @ (game.utility(masks) - known[part])
                    masks[:, n_old + new] = False
        return values / (self.n_players + 1)

    def save(self, path):
        """Write the core set to a file of plain arrays (npz).

        Parameters
        ----------
        path : str or path-like
            The file.

        Raises
        ------
        ValueError
            If a setting cannot be written without pickle, such as a callable scorer, or rows that
            are not arrays of numbers.
        """
        if not (is_numeric(self.X) and is_numeric(self.X_val)):
            raise ValueError(
                "save needs rows that are arrays of numbers: transform them before they are valued."
            )
        arrays = {
            "settings": np.array(json.dumps(self.settings.plain())),
            "X": self.X, "y": self.y, "groups": self.groups,
            "X_val": self.X_val, "y_val": self.y_val, "weights_val": self.sample_weight_val,
            "classes": np.zeros(0) if self.classes is None else np.array(self.classes.tolist()),
            "n_players": np.array(self.n_players),
        }  # fmt: skip
        for members, weights, utilities in self.coalitions:
            k = members.shape[1]
            arrays |= {f"m{k}": members, f"w{k}": weights, f"u{k}": utilities}
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path, estimator=None, n_jobs=None):
        """Read a file written by `save`; nothing is unpickled.

        Parameters
        ----------
        path : str or path-like
            The file.
        estimator : estimator, default=None
            The estimator of the fit, if it had one: it is not stored in the file.
        n_jobs : int, default=None
            As in `LayeredShapleyValuer`.

        Returns
        -------
        core : CoreSet
            The core set.

        Raises
        ------
        ValueError
            If the estimator is not the one named in the file.
        """
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        record = json.loads(str(arrays["settings"]))
        given = None if estimator is None else repr(estimator)
        if record["estimator"] != given:
            raise ValueError(
                f"estimator must be that of the fit, {record['estimator']}. Got {given}."
            )
        settings = replace(GameSettings(**record), estimator=estimator, n_jobs=n_jobs)
        sizes = sorted(int(name[1:]) for name in arrays if name[1:].isdigit() and name[0] == "m")
        coalitions = [(arrays[f"m{k}"], arrays[f"w{k}"], arrays[f"u{k}"]) for k in sizes]
        classes = arrays["classes"] if len(arrays["classes"]) else None
        return cls(
            settings, arrays["X"], arrays["y"], arrays["X_val"], arrays["y_val"], classes,
            coalitions, int(arrays["n_players"]), arrays["groups"], arrays["weights_val"],
        )  # fmt: skip
