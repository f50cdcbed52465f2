"""Manipulations: what a party can do with its rows before it sends them.

They are functions of the rows of all parties and a numpy Generator. `ATTACKS` has those
that `skvalue.inspection.manipulation_gain` plays, by name.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors


class Submission(NamedTuple):
    """The rows of all parties as they are sent, and public points.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    y : ndarray of shape (n_rows,)
        Their labels or targets.
    names : ndarray of int of shape (n_rows,)
        Names of the senders: 0 for the party, negative ones for more names of it, 1 for
        the party whose rows it may have, and larger ones for the others.
    X_val : ndarray of shape (n_points, n_features)
        Public points.
    y_val : ndarray of shape (n_points,) or None
        Their labels or targets, if they have any.
    """

    X: np.ndarray
    y: np.ndarray
    names: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray | None

    @property
    def own_rows(self):
        """Indices of the party's rows."""
        return np.flatnonzero(self.names <= 0)

    def select(self, rows):
        """The submission with these rows only."""
        return self._replace(X=self.X[rows], y=self.y[rows], names=self.names[rows])

    def drop(self, rows):
        """The submission without these rows."""
        return self.select(np.setdiff1d(np.arange(len(self.y)), rows))

    def append(self, X, y, names=0):
        """The submission with more rows, of the party or of more names of it."""
        names = np.append(self.names, np.broadcast_to(names, len(y)))
        return self._replace(
            X=np.vstack([self.X, X]), y=np.append(self.y, y), names=names
        )


def shells(submission, rng, n=4, by_label=False):
    """The rows are divided among several names, at random or in the order of labels."""
    own_rows = rng.permutation(submission.own_rows)
    if by_label:
        own_rows = own_rows[np.argsort(submission.y[own_rows], kind="stable")]
    names = submission.names.copy()
    names[own_rows] = -(np.arange(len(own_rows)) * n // len(own_rows))
    return submission._replace(names=names)


def copies(submission, rng, times=4, spacings=0.0, names=False):
    """All rows are sent several times, under one name or one name each.

    The copies are moved by a number of spacings.
    """
    own_rows = submission.own_rows
    copied_rows = np.tile(own_rows, times - 1)
    X = _moved_rows(submission, copied_rows, spacings, rng)
    names_of_copies = 0
    if names:
        names_of_copies = -np.repeat(np.arange(1, times), len(own_rows))
    return submission.append(X, submission.y[copied_rows], names_of_copies)


def stolen(submission, rng, only=False, spacings=0.0):
    """The rows of another party are sent as well, or only these."""
    rows = np.flatnonzero(submission.names == 1)
    X = _moved_rows(submission, rows, spacings, rng)
    with_stolen = submission.append(X, submission.y[rows])
    if only:
        return with_stolen.drop(submission.own_rows)
    return with_stolen


def validation_points(submission, rng, fraction=0.2):
    """A fraction of the validation points is sent as well."""
    n_points = len(submission.y_val)
    points = rng.permutation(n_points)[: int(fraction * n_points)]
    return submission.append(submission.X_val[points], submission.y_val[points])


def withheld(submission, rng, fraction=0.5):
    """A fraction of the rows is not sent."""
    own_rows = submission.own_rows
    return submission.drop(rng.permutation(own_rows)[: int(fraction * len(own_rows))])


def wrong_labels(submission, rng, fraction=0.2):
    """A fraction of the labels is replaced by another label that occurs."""
    own_rows = submission.own_rows
    rows = rng.permutation(own_rows)[: round(fraction * len(own_rows))]
    labels, codes = np.unique(submission.y, return_inverse=True)
    # A cyclic shift by 1 to C - 1 never gives the true label.
    steps = rng.integers(1, len(labels), len(rows))
    y = submission.y.copy()
    y[rows] = labels[(codes[rows] + steps) % len(labels)]
    return submission._replace(y=y)


def noisy_features(submission, rng, scale=1.0):
    """Noise is added to the features, in units of their standard deviations."""
    own_rows = submission.own_rows
    X = submission.X.copy()
    noise = rng.normal(size=X[own_rows].shape)
    X[own_rows] += scale * submission.X_val.std(axis=0) * noise
    return submission._replace(X=X)


def garbage(submission, rng, besides=False):
    """As many rows of noise are sent, in place of the rows or besides.

    Labels are drawn by their frequencies.
    """
    own_rows = submission.own_rows
    means = submission.X_val.mean(axis=0)
    stds = submission.X_val.std(axis=0)
    X = rng.normal(means, stds, (len(own_rows), submission.X.shape[1]))
    labels = submission.y if submission.y_val is None else submission.y_val
    y = rng.choice(labels, size=len(own_rows))
    with_garbage = submission.append(X, y)
    if besides:
        return with_garbage
    return with_garbage.drop(own_rows)


def _moved_rows(submission, rows, spacings, rng):
    """Rows moved in random directions by a number of spacings of the public points."""
    if not spacings:
        return submission.X[rows]
    steps = rng.normal(size=(len(rows), submission.X.shape[1]))
    norms = np.linalg.norm(steps, axis=1, keepdims=True)
    steps *= spacings * _spacing(submission.X_val) / norms
    return submission.X[rows] + steps


def _spacing(X):
    """Median distance of a row from the nearest other row, zeros left out."""
    distances = NearestNeighbors(n_neighbors=1).fit(X).kneighbors()[0][:, 0]
    is_positive = distances > 0
    if not is_positive.any():
        return 0.0
    return float(np.median(distances[is_positive]))


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
