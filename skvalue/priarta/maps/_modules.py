"""The two replaceable maps from a data set to rows of numbers, their names, and how they travel.

Modules 1 and 2 of PriArTa: a *representation* turns raw rows (images, texts,
tables) into rows of numbers, and a *latent map* turns those into the rows whose moments a seller
releases. Both are objects with `fit` and `transform`; both are fitted on the buyer's rows only.
"""

from importlib import import_module
from typing import Protocol, runtime_checkable

import numpy as np

__all__ = [
    "LATENTS",
    "NETWORKS",
    "REPRESENTATIONS",
    "ExportableMap",
    "Representation",
    "class_named",
    "count_rows",
    "unit_of",
]

# Name -> "module:class", imported when a user asks for it. A folder that a buyer exports names its
# maps by these words, so a seller's machine loads no other code than this.
REPRESENTATIONS = {
    "identity": "skvalue.priarta.maps.linear:Identity",
    "pca": "skvalue.priarta.maps.linear:PrincipalComponents",
    "simclr": "skvalue.priarta.maps.simclr:SimCLR",
}
LATENTS = {
    "gaussian": "skvalue.priarta.maps.linear:Identity",
    "pca": "skvalue.priarta.maps.linear:PrincipalComponents",
    "vae": "skvalue.priarta.maps.vae:GaussianVAE",
}
NETWORKS = {"simclr", "vae"}


@runtime_checkable
class Representation(Protocol):
    """What a representation or a latent map must do.

    `transform` works row by row: what it makes of a row depends on that row and on the buyer's
    fitted weights, never on the other rows of the call (a network is in evaluation mode, batch
    norms use the buyer's statistics), on no random numbers and not on the size of the call. The
    guarantee of a seller's release rests on this.
    """

    def fit(self, X):
        """Learn from the buyer's rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows; for a latent map a float64 array of shape (n_samples, n_features).

        Returns
        -------
        self : object
            The fitted map.
        """

    def transform(self, X):
        """Rows of numbers, one for each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows as in `fit`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            Finite float64 numbers.
        """


@runtime_checkable
class ExportableMap(Representation, Protocol):
    """A map that a buyer can ship: its weights are arrays and the rest is JSON."""

    def to_arrays(self):
        """Weights, and what rebuilds the object around them.

        Returns
        -------
        arrays : dict of str to ndarray
            Weights by name. Names are words of letters, digits, "_" and ".".
        config : dict
            What JSON can hold: parameters and shapes; no code.
        """

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map ready to transform, from an untrusted folder.

        Parameters
        ----------
        arrays : dict of str to ndarray
            As `to_arrays` gave them.
        config : dict
            As `to_arrays` gave it.

        Returns
        -------
        map : object
            A map whose `transform` gives what the exported one gives.

        Raises
        ------
        ValueError
            If names, shapes or values do not fit together.
        """


def class_named(name, names):
    """Class that a word stands for.

    Parameters
    ----------
    name : str
        A key of `names`.
    names : dict of str to str
        `REPRESENTATIONS` or `LATENTS`.

    Returns
    -------
    cls : type
        The class, imported now.

    Raises
    ------
    ValueError
        If the word stands for nothing.
    ImportError
        If the class needs a package that is not installed.
    """
    if name not in names:
        known = ", ".join(sorted(names))
        raise ValueError(f"name must be one of {known}. Got {name!r}.")
    module, word = names[name].split(":")
    return getattr(import_module(module), word)


def name_of(fitted, names):
    """Word under which an object's class is registered, or None.

    Parameters
    ----------
    fitted : object
        A map.
    names : dict of str to str
        `REPRESENTATIONS` or `LATENTS`.

    Returns
    -------
    name : str or None
        The first word whose class is exactly the object's.
    """
    where = f"{type(fitted).__module__}:{type(fitted).__qualname__}"
    return next((name for name, target in names.items() if target == where), None)


def count_rows(X):
    """Number of rows of an array, a table, a sparse matrix or a list.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Rows.

    Returns
    -------
    n_rows : int
        Their number.

    Raises
    ------
    TypeError
        If X has no rows.
    """
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) > 0:
        return int(shape[0])
    if not hasattr(X, "__len__"):
        raise TypeError(f"X must have rows. Got {type(X).__name__}.")
    return len(X)


def unit_of(X, axis=None):
    """Power of two near the largest entries: over it, squares neither overflow nor vanish.

    Parameters
    ----------
    X : ndarray
        Numbers.
    axis : int or None
        As of `numpy.max`.

    Returns
    -------
    unit : float or ndarray
        Dividing by it changes no digit.

    Examples
    --------
    >>> X = np.array([3e200, 4e200])
    >>> print(f"{unit_of(X) * np.linalg.norm(X / unit_of(X)):.3g}")
    5e+200
    """
    return np.exp2(np.clip(np.frexp(np.abs(X).max(axis=axis, initial=0.0))[1], -1000, 1000))


def as_rows(values, n_rows, name):
    """A map's output, checked.

    Parameters
    ----------
    values : array-like
        What `transform` gave.
    n_rows : int
        Number of rows that it was given.
    name : str
        What to call it in an error.

    Returns
    -------
    rows : ndarray of shape (n_rows, n_dimensions)
        Finite float64 numbers.

    Raises
    ------
    ValueError
        If the shape is another or a number is not finite.
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != n_rows or rows.shape[1] == 0:
        raise ValueError(
            f"{name} must give an array of shape ({n_rows}, n_dimensions) for {n_rows} rows. "
            f"Got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must give finite numbers. Got NaN or infinity.")
    return rows
