"""Names of the two maps from a data set to latent rows.

Modules 1 and 2 of PriArTa: a *representation* maps raw rows (images, texts, tables) to
vectors, and a *latent map* maps these to the latent rows, whose moments a seller
releases. Both are objects with `fit` and `transform`, fitted on the buyer's rows only.

The output of `transform` for a row depends only on that row and on the fitted weights:
not on other rows (a network is in evaluation mode, with the buyer's batch statistics),
on random numbers or on the number of rows. The guarantee of a seller's release depends
on this.

A map that can be exported has `to_arrays`, which returns weights by name (letters,
digits, "_" and ".") and a configuration for JSON, and the class method `from_arrays`,
which makes the fitted map of both, which are untrusted, and checks them.
"""

from importlib import import_module

import numpy as np

from ..._utils.optional import import_optional
from ..._utils.sklearn import num_samples

# Name -> "module:class", imported on use. The folder that a buyer exports has only
# these names, so that a seller's machine loads no other code.
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


def class_named(name, names):
    """Class of a name of `REPRESENTATIONS` or `LATENTS`, which is imported."""
    if name in ("simclr", "vae"):
        import_optional("torch", f"The map {name!r}", "torch")
    module, class_name = names[name].split(":")
    return getattr(import_module(module), class_name)


def name_of(fitted, names):
    """Name under which exactly the class of an object is registered, or None."""
    path = f"{type(fitted).__module__}:{type(fitted).__qualname__}"
    for name, registered_path in names.items():
        if registered_path == path:
            return name
    return None


def count_rows(X):
    """Number of rows of an array, a table, a sparse matrix or a list."""
    try:
        return num_samples(X)
    except TypeError:  # whose message names no parameter
        raise TypeError(f"X must have rows. Got {type(X).__name__}.") from None


def unit_of(X, axis=None):
    """Power of two near the largest entries of X, overall or along an axis.

    Division by it is exact, and squares of X / unit neither overflow nor underflow.

    >>> X = np.array([3e200, 4e200])
    >>> print(f"{unit_of(X) * np.linalg.norm(X / unit_of(X)):.3g}")
    5e+200
    """
    _, exponents = np.frexp(np.abs(X).max(axis=axis, initial=0.0))
    return np.exp2(np.clip(exponents, -1000, 1000))


def as_rows(values, n_rows, name):
    """Checked output of a map: (n_rows, n_dimensions) of finite float64 numbers."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != n_rows or rows.shape[1] == 0:
        raise ValueError(
            f"{name} must give an array of shape ({n_rows}, n_dimensions) for "
            f"{n_rows} rows. Got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must give finite numbers. Got NaN or infinity.")
    return rows
