"""Rows that are read in blocks: a sparse matrix, an array in a file, or a Dask
array."""

import mmap
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from .._utils.parallel import tiles

_MAPPED = 2**24  # bytes of a file that are mapped at a time


def _mapping(array):
    """The `np.memmap` that owns the memory of an array, or None."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = array.base
    return None


def _is_dask(X):
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(X, module.Array)


def as_rows(X, dtypes=(np.float64, np.float32)):
    """Convert X to `Rows` if it has to be read in blocks; return anything else
    unchanged.

    Parameters
    ----------
    X : array-like
        Sparse matrices, `np.memmap` (and views of one) and Dask arrays are converted to
        `Rows`.
    dtypes : tuple of dtypes
        Dtypes that are kept; any other is converted to the first of them, block by
        block.

    Returns
    -------
    X : Rows or array-like
        The rows.

    Examples
    --------
    >>> from scipy import sparse
    >>> from skvalue.neighbors import as_rows
    >>> rows = as_rows(sparse.csr_array([[0, 1], [2, 0]]))
    >>> rows.shape, rows.is_sparse, as_rows([[0, 1], [2, 0]])
    ((2, 2), True, [[0, 1], [2, 0]])
    """
    mapped = _mapping(X)
    folder = "" if mapped is None else Path(mapped.filename or "").parent.name
    # Files of joblib pass arrays in memory to worker processes.
    in_file = mapped is not None and "joblib_memmapping_folder" not in folder
    if not (sparse.issparse(X) or _is_dask(X) or in_file):
        return X
    dtype = np.dtype(X.dtype if X.dtype in dtypes else dtypes[0])
    if sparse.issparse(X):
        canonical = sparse.csr_array(X, dtype=dtype)
        if not canonical.has_canonical_format or (canonical.data == 0).any():
            canonical = canonical.copy()
            canonical.sum_duplicates()
            canonical.eliminate_zeros()
        X = canonical
    return Rows(X, dtype)


def read_rows(X):
    """Read rows into memory.

    Parameters
    ----------
    X : ndarray or Rows of shape (n, d)
        The rows.

    Returns
    -------
    X : ndarray or csr_array of shape (n, d)
        The rows; CSR if they are sparse.

    Examples
    --------
    >>> from scipy import sparse
    >>> from skvalue.neighbors import as_rows, read_rows
    >>> read_rows(as_rows(sparse.csr_array([[0, 1], [2, 0]]))).toarray().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    return X.read() if isinstance(X, Rows) else X


def concatenate_rows(first, second):
    """Stack two sets of rows vertically.

    Parameters
    ----------
    first, second : ndarrays or Rows
        The rows. The result has the type of the first; `Rows` of a file or a Dask array
        are still read only on request.

    Returns
    -------
    both : ndarray or Rows
        The rows of the first, then those of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import concatenate_rows
    >>> concatenate_rows(np.zeros((2, 3)), np.ones((1, 3))).shape
    (3, 3)
    """
    if not isinstance(first, Rows):
        return np.concatenate([first, read_rows(second)])
    if first.is_sparse:
        both = sparse.vstack(
            [first.read(), sparse.csr_array(read_rows(second))], format="csr"
        )
        return Rows(both, first.dtype)
    return Rows(_StackedRows(first, second), first.dtype)


class _StackedRows:
    """Two sources, stacked vertically."""

    def __init__(self, first, second):
        self.parts = first, second
        self.shape = (len(first) + len(second), first.shape[1])

    def __getitem__(self, index):
        first, second = self.parts
        index = np.arange(self.shape[0])[index]
        below = index >= len(first)
        out = np.empty((len(index), self.shape[1]), dtype=first.dtype)
        out[~below] = read_rows(first[index[~below]])
        out[below] = read_rows(second[index[below] - len(first)])
        return out


class Rows:
    """Rows of a sparse matrix, a file or a Dask array.

    Indexing returns a view; nothing is copied until the rows are read. A pickled view
    of a file holds the name of the file and the position in it.

    Parameters
    ----------
    source : csr_array, ndarray, Dask array or two of them stacked
        Where the rows are stored.
    dtype : dtype
        Dtype of the rows that are read.
    index : slice or ndarray of int, default=None
        Rows of the source; all of them by default.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from skvalue.neighbors import as_rows
    >>> rows = as_rows(csr_array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]]))
    >>> len(rows[1:]), rows[[2]].read().toarray().tolist()
    (2, [[0.0, 3.0]])
    """

    ndim = 2

    def __init__(self, source, dtype, index=None):
        self.source = source
        self.dtype = np.dtype(dtype)
        self.index = slice(0, source.shape[0]) if index is None else index
        n = (
            self.index.stop - self.index.start
            if isinstance(self.index, slice)
            else len(self.index)
        )
        self.shape = (n, source.shape[1])
        self.is_sparse = sparse.issparse(source)

    def __len__(self):
        return self.shape[0]

    @property
    def nbytes(self):
        """Size of a pickle in bytes: that of a sparse source; 0 for a file, which is
        not copied."""
        return (
            self.source.data.nbytes + self.source.indices.nbytes
            if self.is_sparse
            else 0
        )

    def __getitem__(self, key):
        """Some of the rows, as a view."""
        if (
            isinstance(key, slice)
            and isinstance(self.index, slice)
            and key.step in (None, 1)
        ):
            start, stop, _ = key.indices(len(self))
            first = self.index.start
            return Rows(
                self.source, self.dtype, slice(first + start, first + max(start, stop))
            )
        index = self.index
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop)
        return Rows(self.source, self.dtype, index[key])

    def __array__(self, dtype=None, copy=None):
        raise TypeError("These rows are read block by block: use read().")

    def read(self):
        """Read the rows into memory.

        Returns
        -------
        rows : ndarray or csr_array of shape (n, d)
            The rows.
        """
        if self.is_sparse:
            return self.source[self.index]
        if _is_dask(self.source):
            part = self.source[self.index].compute()
            return np.ascontiguousarray(
                part.toarray() if sparse.issparse(part) else part, self.dtype
            )
        out = np.empty(self.shape, dtype=self.dtype)
        mapped = _mapping(self.source)
        step = max(1, len(self))
        if mapped is not None:
            step = max(1024, _MAPPED // max(1, abs(self.source.strides[0])))
        for part in tiles(len(self), step):
            out[part] = self.source[self[part].index]
            if (
                mapped is not None
                and mapped.mode != "c"
                and hasattr(mmap, "MADV_DONTNEED")
            ):
                mapped.base.madvise(
                    mmap.MADV_DONTNEED
                )  # else the pages read stay in memory
        return out

    def blocks(self, size):
        """Read the rows part by part.

        Parameters
        ----------
        size : int
            Largest number of rows at a time.

        Yields
        ------
        part : slice
            Positions of the rows.
        rows : ndarray or csr_array
            The rows.
        """
        for part in tiles(len(self), size):
            yield part, self[part].read()

    def __getstate__(self):
        state = dict(self.__dict__)
        mapped = _mapping(self.source)
        if mapped is not None and mapped.filename is not None:
            array, start = (
                self.source,
                mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY,
            )
            first = np.frombuffer(mapped.base, dtype=np.uint8).ctypes.data
            place = start + array.__array_interface__["data"][0] - first
            state["source"] = (
                str(mapped.filename),
                array.dtype,
                place,
                array.shape,
                array.strides,
            )
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if isinstance(self.source, tuple):
            name, dtype, place, shape, strides = self.source
            whole = np.memmap(name, dtype=np.uint8, mode="r")
            self.source = np.ndarray(shape, dtype, whole, place, strides)
