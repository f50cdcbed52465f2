"""The core set: stored coalitions and their utilities, on which rows that come later are valued."""

import json
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from ...base._old_judges import Judges
from ...games import ModelGame, StableLogisticGame

__all__ = ["CoreSet", "GameSettings", "suggest_bound"]

_ENTRIES = 2**24  # of the masks that are made at once
_PLAIN = (str, float, int, type(None))


@dataclass(frozen=True)
class GameSettings:
    """How a game is made of rows and judges; the names are those of `LayeredShapleyValuer`."""

    estimator: object = None
    l2: float | None = None
    max_norm: float = 1.0
    fit_intercept: bool = True
    scoring: object = None
    empty_utility: float | None = None
    error_score: object = "empty"
    batch: str = "auto"
    memory: object = None
    n_jobs: int | None = None

    def game(self, X, y, judges, classes, groups=None):
        """The game of rows X with codes or targets y; ``classes`` is None in a regression."""
        if self.l2 is not None:
            codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
            return StableLogisticGame(
                X, y, judges.X, judges.y, l2=self.l2, max_norm=self.max_norm,
                fit_intercept=self.fit_intercept, sample_weight_val=judges.weights, groups=codes,
                n_jobs=self.n_jobs,
            )  # fmt: skip
        labels, labels_val = (y, judges.y) if classes is None else (classes[y], classes[judges.y])
        return ModelGame(
            self.model(classes), X, labels, judges.X, labels_val, scoring=self.scoring,
            error_score=self.error_score, empty_utility=self.empty_utility,
            sample_weight_val=judges.weights, groups=groups, batch=self.batch, random_state=0,
            memory=self.memory, n_jobs=self.n_jobs,
        )  # fmt: skip

    def model(self, classes):
        """The estimator that coalitions train, or one like that of the proved utility."""
        if self.estimator is not None:
            return self.estimator
        return Ridge() if classes is None else LogisticRegression()

    def plain(self):
        """The settings that the values depend on, fit for JSON; an estimator by its name."""
        names = ("l2", "max_norm", "fit_intercept", "scoring", "empty_utility", "error_score")
        record = {name: getattr(self, name) for name in names}
        for name, value in record.items():
            if not isinstance(value, _PLAIN):
                raise ValueError(f"{name} must be a string or a number to be saved. Got {value!r}.")
        return {**record, "estimator": None if self.estimator is None else repr(self.estimator)}


def suggest_bound(
    estimator, X, y, X_val, y_val, *, scoring=None, empty_utility=None, n_orders=20, random_state=0
):
    """Estimate the constant c of Layered Shapley from public data.

    The largest k times what a row adds to k others, over all prefixes of some random orders. It is
    a guess: no more than a part of all coalitions is seen.

    Parameters
    ----------
    estimator : estimator
        The model.
    X, y : array-likes of shapes (n_samples, n_features) and (n_samples,)
        Public rows like those to be valued, and their labels or targets.
    X_val, y_val : array-likes
        Validation points.
    scoring : str or callable, default=None
        Scorer of the utility; None takes the estimator's own score.
    empty_utility : float, default=None
        Utility of nobody, as in `LayeredShapleyValuer`.
    n_orders : int, default=20
        Number of orders.
    random_state : int, default=0
        Their seed.

    Returns
    -------
    bound : float
        For the parameter `bound`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bound = suggest_bound(LogisticRegression(C=1e-4), X[:40], y[:40], X[40:90], y[40:90])
    >>> 0 < bound < 40
    True
    """
    game = ModelGame(
        estimator, X, y, X_val, y_val, scoring=scoring, empty_utility=empty_utility, random_state=0
    )
    n, rng = game.n_players, np.random.default_rng(random_state)
    places = rng.permuted(np.tile(np.arange(n), (n_orders, 1)), axis=1)
    masks = places[:, None, :] < np.arange(1, n + 1)[:, None]
    utilities = game.utility(masks.reshape(-1, n)).reshape(n_orders, n)
    return float((np.arange(1, n) * np.abs(np.diff(utilities, axis=1))).max(initial=0.0))


class CoreSet:
    """Coalitions of rows with their utilities: what a new row is worth among the rows of a fit.

    A row that joins n others has the mean over sizes of its mean marginal contribution to stored
    coalitions of that size, whose utilities are known: only coalitions with the new row are
    trained. The rows in no stored coalition are not kept.

    `LayeredShapleyValuer.core_sets` makes core sets of a fit.

    Parameters
    ----------
    settings : GameSettings
        How the game is made.
    X : ndarray of shape (n_rows, n_features)
        The rows that the coalitions are made of.
    y : ndarray of shape (n_rows,)
        Codes of their classes, or targets.
    judges : Judges
        The validation points.
    classes : ndarray or None
        The classes; None in a regression.
    coalitions : list of tuples
        (members, weights, utilities) of one size each: int arrays (m, size) of players, (m,), (m,).
    n_players : int
        Number n of players in the fit.
    include_empty : bool, default=True
        Whether the empty coalition counts.
    groups : ndarray of int of shape (n_rows,), default=None
        The player that each row belongs to; None: each row is one.

    Attributes
    ----------
    n_coalitions : int
        Number of coalitions stored.

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
        self, settings, X, y, judges, classes, coalitions, n_players, include_empty=True,
        groups=None,
    ):  # fmt: skip
        self.settings, self.X, self.y, self.judges = settings, X, y, judges
        self.classes, self.n_players, self.include_empty = classes, n_players, include_empty
        self.groups = np.arange(len(X)) if groups is None else groups
        by_size = {}
        for members, weights, utilities in coalitions:
            by_size.setdefault(members.shape[1], []).append((members, weights, utilities))
        self.coalitions = [
            tuple(np.concatenate(part) for part in zip(*parts))
            for _, parts in sorted(by_size.items())
        ]

    @property
    def n_coalitions(self):
        """Number of coalitions stored."""
        return sum(len(members) for members, _, _ in self.coalitions)

    def pruned(self):
        """The same core set without rows that are in no coalition.

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
            self.settings, self.X[kept], self.y[kept], self.judges, self.classes, coalitions,
            self.n_players, self.include_empty, number[self.groups[kept]],
        )  # fmt: skip

    def score_samples(self, X, y):
        """Value of every row as one that joins the rows of the fit.

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
            If y has a label that the fit has not seen.
        """
        X, y = np.asarray(X, dtype=self.X.dtype), np.asarray(y)
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
        """Value of every row that joins, from rows that are checked and labels that are codes.

        `score_samples` checks, and takes labels themselves.

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
        n_old, n_new = int(self.groups.max()) + 1, len(X_new)
        groups = np.r_[self.groups, n_old + np.arange(n_new)]
        alone = len(np.unique(groups)) == len(groups)
        game = self.settings.game(
            np.concatenate([self.X, X_new]), np.concatenate([self.y, y_new]), self.judges,
            self.classes, None if alone else groups,
        )  # fmt: skip
        if alone:  # players are rows then, in the order of the rows
            place = np.empty(n_old, dtype=np.int64)
            place[self.groups] = np.arange(len(self.groups))
        else:
            place = np.arange(n_old)
        values = np.zeros(n_new)
        if self.include_empty:
            singles = np.eye(game.n_players, dtype=bool)[n_old:]
            values += game.utility(singles) - game.empty_utility
        for members, weights, utilities in self.coalitions:
            step = max(1, _ENTRIES // game.n_players)
            for start in range(0, len(members), step):
                some = slice(start, start + step)
                masks = np.zeros((len(members[some]), game.n_players), dtype=bool)
                np.put_along_axis(masks, place[members[some]], True, axis=1)
                for new in range(n_new):
                    masks[:, n_old + new] = True
                    values[new] += weights[some] @ (game.utility(masks) - utilities[some])
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
            If a setting cannot be written without pickle, such as a scorer of your own.
        """
        arrays = {
            "settings": np.array(json.dumps(self.settings.plain())),
            "X": self.X, "y": self.y, "groups": self.groups,
            "X_val": self.judges.X, "y_val": self.judges.y, "weights_val": self.judges.weights,
            "classes": np.zeros(0) if self.classes is None else np.array(self.classes.tolist()),
            "numbers": np.array([self.n_players, self.include_empty, self.judges.prior]),
        }  # fmt: skip
        for members, weights, utilities in self.coalitions:
            k = members.shape[1]
            arrays |= {f"m{k}": members, f"w{k}": weights, f"u{k}": utilities}
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path, estimator=None, n_jobs=None):
        """Read what `save` wrote; nothing is unpickled.

        Parameters
        ----------
        path : str or path-like
            The file.
        estimator : estimator, default=None
            The estimator of the fit, where there was one: it is not in the file.
        n_jobs : int, default=None
            As in `LayeredShapleyValuer`.

        Returns
        -------
        core : CoreSet
            The core set.

        Raises
        ------
        ValueError
            If the estimator is not the one that the file names.
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
        n_players, include_empty, prior = arrays["numbers"]
        y_val = arrays["y_val"]
        judges = Judges(
            arrays["X_val"], y_val, arrays["weights_val"], np.arange(len(y_val)), prior=float(prior)
        )
        sizes = sorted(int(name[1:]) for name in arrays if name[1:].isdigit() and name[0] == "m")
        coalitions = [(arrays[f"m{k}"], arrays[f"w{k}"], arrays[f"u{k}"]) for k in sizes]
        classes = arrays["classes"] if len(arrays["classes"]) else None
        return cls(
            settings, arrays["X"], arrays["y"], judges, classes, coalitions, int(n_players),
            bool(include_empty), arrays["groups"],
        )  # fmt: skip
