"""Containers that scikit-learn does not take: converted, or refused."""

import sys

import numpy as np
from scipy import sparse

from ..exceptions import ParameterError
from .optional import import_optional
from .sklearn import array_of_namespace

_LARGEST_INDEX = np.iinfo(np.int32).max


def known_rows(X, name="X"):
    """Rows in a container that scikit-learn takes.

    Tables of pyarrow become pandas frames, and lazy frames of polars are collected.
    Indices of sparse rows are of 32 bits if they fit: many estimators refuse others.
    All else is returned as it is. A column of records or lists in a frame with types
    is refused by its name.

    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 1.0]])
    >>> X.indices = X.indices.astype("int64")
    >>> known_rows(X).indices.dtype.name
    'int32'
    """
    if sparse.issparse(X):
        return _with_short_indices(X)
    library = type(X).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(X, "to_pandas") and hasattr(X, "schema"):
        import_optional("pandas", "a table of pyarrow")
        types = sys.modules["pyarrow"].types
        nested = [field.name for field in X.schema if types.is_nested(field.type)]
        _refuse_nested(nested, name)
        return X.to_pandas()
    if library == "polars" and hasattr(X, "collect_schema"):
        if hasattr(X, "collect"):
            X = X.collect()
        schema = X.schema
        _refuse_nested([key for key in schema if schema[key].is_nested()], name)
        return X
    if library == "pandas" and hasattr(X, "dtypes") and np.ndim(X) == 2:
        dtypes = zip(X.columns, X.dtypes)
        _refuse_nested([key for key, dtype in dtypes if _is_nested(dtype)], name)
    return X


def as_numpy(values):
    """An array of another library, such as a tensor of torch, as one of numpy.

    scikit-learn leaves such arrays as they are with ``array_api_dispatch=True``, and
    estimators that do not compute with them fail. All else is returned as it is.

    >>> as_numpy([0.5]), as_numpy(np.array([0.5]))
    ([0.5], array([0.5]))
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype == torch.bfloat16:  # numpy has no such type
            values = values.float()
        return values.to_dense().numpy()
    if isinstance(values, (np.ndarray, np.generic)):
        return values
    if hasattr(values, "__array_namespace__") and not hasattr(values, "dask"):
        return array_of_namespace(values)
    return values


def pandas_rows(X):
    """A frame of polars as one of pandas, if this and pyarrow are installed."""
    if type(X).__module__.partition(".")[0] != "polars" or not hasattr(X, "to_pandas"):
        return X
    try:
        return X.to_pandas()
    except ImportError:
        return X


def _with_short_indices(X):
    """A sparse matrix whose indices are of 32 bits, if they fit; it shares its data."""
    if X.format not in ("csr", "csc", "bsr") or X.indices.dtype != np.int64:
        return X
    if max(*X.shape, X.nnz) > _LARGEST_INDEX:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)


def _is_nested(dtype):
    """Whether a type of pandas is one of Arrow's records or lists."""
    arrow_type = getattr(dtype, "pyarrow_dtype", None)
    if arrow_type is None:
        return False
    return sys.modules["pyarrow"].types.is_nested(arrow_type)


def _refuse_nested(columns, name):
    """Refuse columns of records or lists."""
    if columns:
        raise ParameterError(
            name,
            "must have one entry in each field. Got records or lists in the column "
            f"{columns[0]!r}: split it into columns, or leave it out.",
        )
