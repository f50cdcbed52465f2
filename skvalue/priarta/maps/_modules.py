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
which makes the fitted map of both, which are untrusted, and checks them. A map can have
`transform_alone`, which is `transform` of each row by itself: the same bits whatever
other rows there are. Others are called for one row at a time where rows are private.
"""

from importlib import import_module
from numbers import Real

import numpy as np

from ..._utils.optional import import_optional
from ..._utils.private_entries import objects_of, private_entries
from ..._utils.sklearn import is_pandas_na, num_samples, safe_indexing

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


def n_entries_of(fitted_map):
    """Number of entries of a row that a map takes, or None if it does not say it."""
    if hasattr(fitted_map, "mean_"):
        return len(fitted_map.mean_)
    return getattr(fitted_map, "n_features_in_", None)


def map_alone(fitted_map, X, is_null, name, n_dimensions=None):
    """Output (n_rows, n_dimensions) of a map, for each row of X by itself.

    X is without null rows, see `without_null_rows`. Rows that are null, or not finite
    after the map, are zeros; ``is_null`` (n_rows,) is updated. A row that the map
    refuses is null, too, and one for which it gives another number of entries.

    n_dimensions : int, entries that the map must give a row; None if it is not known
    """
    n_rows = len(is_null)
    holds_numbers = hasattr(X, "tocsr") or np.asarray(X).dtype.kind in "buif"
    if holds_numbers and hasattr(fitted_map, "transform_alone"):
        values = np.array(fitted_map.transform_alone(X), dtype=np.float64)
    else:
        values = _map_row_by_row(fitted_map, X, is_null, n_dimensions)
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise ValueError(
            f"{name} must give an array of shape ({n_rows}, n_dimensions) for "
            f"{n_rows} rows. Got shape {values.shape}."
        )
    is_null |= ~np.isfinite(values).all(axis=1)
    values[is_null] = 0.0
    return values


def without_null_rows(X, is_null, takes_numbers):
    """X with zeros in rows that are null or not finite, where X holds numbers.

    Its container and types do not depend on whether there are such rows: a frame of
    numbers is one of float64, of the same columns, since a map may ask for these.

    takes_numbers : bool, whether the map is one of numbers: then a row with an object
        that is none is null. Other maps may encode objects, and what is missing among
        them.
    """
    if hasattr(X, "tocsr"):
        return X
    if isinstance(X, (list, tuple)):
        X = objects_of(X)
    kinds = "buifO" if takes_numbers else "buif"
    if not set(kinds).issuperset(_kinds_of(X)):
        return X
    numbers = private_entries(np.asarray(X))
    is_null |= ~np.isfinite(numbers.reshape(len(is_null), -1)).all(axis=1)
    if is_null.any():
        numbers = numbers.copy()
        numbers[is_null] = 0
    library = type(X).__module__.partition(".")[0]
    if library == "pandas" and hasattr(X, "columns"):
        return type(X)(numbers, index=X.index, columns=X.columns)
    if library == "polars" and hasattr(X, "columns"):
        return type(X)(numbers, schema=X.columns)
    return numbers


def _kinds_of(X):
    """The kinds of the types of the columns of a frame of pandas, or that of an array.

    Nullable numbers become an array of objects, but their types are of numbers.
    """
    if type(X).__module__.partition(".")[0] != "pandas":
        return {np.asarray(X).dtype.kind}
    dtypes = X.dtypes if np.ndim(X) > 1 else [X.dtype]
    return {dtype.kind for dtype in dtypes}


def _map_row_by_row(fitted_map, X, is_null, n_dimensions):
    """Output of a map that is called for each row; rows that it refuses are null."""
    n_rows = len(is_null)
    values = None
    zeros = None
    if isinstance(X, np.ndarray) and X.dtype.kind in "buif":
        zeros = np.zeros((1, *X.shape[1:]), dtype=X.dtype)
    elif hasattr(fitted_map, "transform_alone"):  # a map of numbers
        zeros = np.zeros((1, *np.shape(X)[1:]))
    if zeros is not None:
        # What a map says of a row of zeros does not depend on private rows.
        values = np.zeros((n_rows, *np.shape(fitted_map.transform(zeros))[1:]))
    elif n_dimensions is not None:
        values = np.zeros((n_rows, n_dimensions))
    refusal = None
    for i in range(n_rows):
        row = safe_indexing(X, [i])  # a copy, whose shape is that of all others
        if isinstance(row, np.ndarray) and row.dtype == object:
            row = _as_numbers(row)
        try:
            (value,) = np.asarray(fitted_map.transform(row), dtype=np.float64)
        except Exception as error:  # of a map of any kind
            refusal = error
            is_null[i] = True
            continue
        if values is None:
            values = np.zeros((n_rows, *value.shape))
        if value.shape != values.shape[1:]:
            is_null[i] = True
            continue
        values[i] = value
    if values is None:
        raise refusal
    return values


def _as_numbers(row):
    """A row (1, ...) of objects as float64 if all of them are numbers or missing.

    Other rows are left to a map that may encode their texts.
    """
    for entry in row.ravel():
        is_missing = entry is None or is_pandas_na(entry)
        if not (is_missing or isinstance(entry, Real)):
            return row
    return private_entries(row)


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
