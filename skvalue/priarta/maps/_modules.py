"""The two replaceable maps from a data set to rows of numbers, their names, and how they travel.

Modules 1 and 2 of PriArTa: a *representation* turns raw rows (images, texts,
tables) into rows of numbers, and a *latent map* turns those into the rows whose moments a seller
releases. Both are objects with `fit` and `transform`; both are fitted on the buyer's rows only.
"""

from importlib import import_module
from typing import Protocol, runtime_checkable

import numpy as np

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
        """Learn from the buyer's rows; a latent map gets a float64 array of two axes."""

    def transform(self, X):
        """Rows of finite float64 numbers, one for each row of X."""


@runtime_checkable
class ExportableMap(Representation, Protocol):
    """A map that a buyer can ship: its weights are arrays and the rest is JSON."""

    def to_arrays(self):
        """Weights by name (letters, digits, "_" and "."), and what JSON can hold; no code."""

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map ready to transform, from an untrusted folder; refuses what does not fit."""


def class_named(name, names):
    """Class that a word of `REPRESENTATIONS` or `LATENTS` stands for, imported now."""
    if name not in names:
        known = ", ".join(sorted(names))
        raise ValueError(f"name must be one of {known}. Got {name!r}.")
    module, word = names[name].split(":")
    return getattr(import_module(module), word)


def name_of(fitted, names):
    """Word under which an object's class, exactly, is registered, or None."""
    where = f"{type(fitted).__module__}:{type(fitted).__qualname__}"
    return next((name for name, target in names.items() if target == where), None)


def count_rows(X):
    """Number of rows of an array, a table, a sparse matrix or a list."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) > 0:
        return int(shape[0])
    if not hasattr(X, "__len__"):
        raise TypeError(f"X must have rows. Got {type(X).__name__}.")
    return len(X)


def unit_of(X, axis=None):
    """Power of two near the largest entries: over it, squares neither overflow nor vanish.

    Dividing by it changes no digit.

    >>> X = np.array([3e200, 4e200])
    >>> print(f"{unit_of(X) * np.linalg.norm(X / unit_of(X)):.3g}")
    5e+200
    """
    return np.exp2(np.clip(np.frexp(np.abs(X).max(axis=axis, initial=0.0))[1], -1000, 1000))


def as_rows(values, n_rows, name):
    """A map's output, checked: finite float64 numbers, n_rows rows of them."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != n_rows or rows.shape[1] == 0:
        raise ValueError(
            f"{name} must give an array of shape ({n_rows}, n_dimensions) for {n_rows} rows. "
            f"Got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must give finite numbers. Got NaN or infinity.")
    return rows
