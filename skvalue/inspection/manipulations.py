"""What a party can do with its rows before it sends them: functions of rows and a
Generator.

`ATTACKS` has those that `skvalue.inspection.manipulation_gain` plays, by name.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors


class Sent(NamedTuple):
    """The rows of all parties as they are sent, and public points, of which y may be
    None."""

    X: np.ndarray
    y: np.ndarray
    # Names of the senders: 0 for the party, negative ones for more names of it, 1 for
    # the party whose rows it may have, and larger ones for the others.
    names: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray | None

    @property
    def own(self):
        """Positions of the party's rows."""
        return np.flatnonzero(self.names <= 0)

    def kept(self, rows):
        """These rows only."""
        return self._replace(X=self.X[rows], y=self.y[rows], names=self.names[rows])

    def plus(self, X, y, names=0):
        """More rows, of the party or of names of its own."""
        names = np.append(self.names, np.broadcast_to(names, len(y)))
        return self._replace(
            X=np.vstack([self.X, X]), y=np.append(self.y, y), names=names
        )


def _spacing(X):
    """Median distance of a row from the nearest other row, zeros left out."""
    distances = NearestNeighbors(n_neighbors=1).fit(X).kneighbors()[0][:, 0]
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 0.0


def _moved(sent, rows, spacings, rng):
    """Rows moved in random directions by a number of spacings of the public points."""
    if not spacings:
        return sent.X[rows]
    steps = rng.normal(size=(len(rows), sent.X.shape[1]))
    steps *= (
        spacings * _spacing(sent.X_val) / np.linalg.norm(steps, axis=1, keepdims=True)
    )
    return sent.X[rows] + steps


def shells(sent, rng, n=4, by_label=False):
    """The rows divided among several names, at random or in the order of their
    labels."""
    names, own = sent.names.copy(), rng.permutation(sent.own)
    if by_label:
        own = own[np.argsort(sent.y[own], kind="stable")]
    names[own] = -(np.arange(len(own)) * n // len(own))
    return sent._replace(names=names)


def copies(sent, rng, times=4, spacings=0.0, names=False):
    """All rows several times, under one name or one name each; the copies are moved."""
    own = sent.own
    more = -np.repeat(np.arange(1, times), len(own)) if names else 0
    again = np.tile(own, times - 1)
    return sent.plus(_moved(sent, again, spacings, rng), sent.y[again], more)


def stolen(sent, rng, only=False, spacings=0.0):
    """The rows of another party as well, or only these."""
    rows = np.flatnonzero(sent.names == 1)
    found = sent.plus(_moved(sent, rows, spacings, rng), sent.y[rows])
    return (
        found.kept(np.setdiff1d(np.arange(len(found.y)), sent.own)) if only else found
    )


def validation_points(sent, rng, fraction=0.2):
    """Some of the validation points as well."""
    some = rng.permutation(len(sent.y_val))[: int(fraction * len(sent.y_val))]
    return sent.plus(sent.X_val[some], sent.y_val[some])


def withheld(sent, rng, fraction=0.5):
    """A part of the rows is not sent."""
    drop = rng.permutation(sent.own)[: int(fraction * len(sent.own))]
    return sent.kept(np.setdiff1d(np.arange(len(sent.y)), drop))


def wrong_labels(sent, rng, fraction=0.2):
    """A part of the labels is replaced by another label that occurs."""
    y, own = sent.y.copy(), sent.own
    labels, codes = np.unique(sent.y, return_inverse=True)
    some = rng.permutation(own)[: round(fraction * len(own))]
    y[some] = labels[
        (codes[some] + rng.integers(1, len(labels), len(some))) % len(labels)
    ]
    return sent._replace(y=y)


def noisy_features(sent, rng, scale=1.0):
    """Noise is added to the features, in units of their standard deviations."""
    X, own = sent.X.copy(), sent.own
    X[own] += scale * sent.X_val.std(axis=0) * rng.normal(size=X[own].shape)
    return sent._replace(X=X)


def garbage(sent, rng, besides=False):
    """As many rows of noise, with labels by their frequencies, in place of the rows or
    besides."""
    n = len(sent.own)
    X = rng.normal(
        sent.X_val.mean(axis=0), sent.X_val.std(axis=0), (n, sent.X.shape[1])
    )
    y = rng.choice(sent.y if sent.y_val is None else sent.y_val, size=n)
    found = sent.plus(X, y)
    return (
        found
        if besides
        else found.kept(np.setdiff1d(np.arange(len(found.y)), sent.own))
    )


ATTACKS = {
    "4 names, at random": shells,
    "4 names, by label": partial(shells, by_label=True),
    "rows 4 times": copies,
    "rows 4 times, moved": partial(copies, spacings=1.0),
    "rows under 4 names": partial(copies, names=True),
    "rows under 4 names, moved": partial(copies, spacings=1.0, names=True),
    "also another's rows": stolen,
    "only another's rows": partial(stolen, only=True),
    "also validation points": validation_points,
    "half withheld": withheld,
    "20 % of labels wrong": wrong_labels,
    "noise in features": noisy_features,
    "garbage only": garbage,
    "garbage besides": partial(garbage, besides=True),
}
