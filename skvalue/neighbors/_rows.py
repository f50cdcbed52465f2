"""Rows that are read in blocks: a sparse matrix, an array in a file, or Dask's."""

import mmap
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._utils.parallel import tiles

# Bytes of a file that are mapped at a time.
_MAPPED = 2**24


def as_rows(X, dtypes=(np.float64, np.float32)):
    """Convert X to `Rows` if it has to be read in blocks, or return it unchanged.

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
    if not (sparse.issparse(X) or _is_dask(X) or _is_in_file(X)):
        return X
    dtype = np.dtype(X.dtype if X.dtype in dtypes else dtypes[0])
    if sparse.issparse(X):
        X = _canonical(X, dtype)
    return Rows(X, dtype)


def _is_in_file(X):
    """Whether X is an array in a file of the user."""
    mapped = _mapping(X)
    if mapped is None:
        return False
    # Files of joblib pass arrays in memory to worker processes.
    folder = Path(mapped.filename or "").parent.name
    return "joblib_memmapping_folder" not in folder


def _canonical(X, dtype):
    """A CSR array without duplicates and stored zeros; a copy if X has some.

    Its indices have 32 bits where these are enough, so that those of rows and points
    are of one dtype.
    """
    canonical = sparse.csr_array(X, dtype=dtype)
    if not (canonical.has_canonical_format and (canonical.data != 0).all()):
        canonical = canonical.copy()
        canonical.sum_duplicates()
        canonical.eliminate_zeros()
    index_dtype = sparse.get_index_dtype(maxval=max(canonical.nnz, *canonical.shape))
    canonical.indices = canonical.indices.astype(index_dtype, copy=False)
    canonical.indptr = canonical.indptr.astype(index_dtype, copy=False)
    return canonical


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
        second = sparse.csr_array(read_rows(second))
        return Rows(sparse.vstack([first.read(), second], format="csr"), first.dtype)
    return Rows(_StackedRows(first, second), first.dtype)


def blank_rows(rows, is_blank):
    """Replace some rows by zeros, when they are read.

    Parameters
    ----------
    rows : Rows of shape (n, d)
        The rows.
    is_blank : ndarray of bool of shape (n,)
        The rows to replace.

    Returns
    -------
    rows : Rows
        The rows. Those of a file or a Dask array are still read only on request.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from skvalue.neighbors import as_rows, blank_rows
    >>> rows = as_rows(sparse.csr_array([[1.0, 2.0], [3.0, 0.0]]))
    >>> blank_rows(rows, np.array([True, False])).read().toarray().tolist()
    [[0.0, 0.0], [3.0, 0.0]]
    """
    if not is_blank.any():
        return rows
    if rows.is_sparse:
        kept = sparse.csr_array(rows.read())
        kept.data = np.where(np.repeat(is_blank, np.diff(kept.indptr)), 0, kept.data)
        kept.eliminate_zeros()
        return Rows(kept, rows.dtype)
    return Rows(_BlankedRows(rows, is_blank), rows.dtype)


class _BlankedRows:
    """Rows of which some are zeros."""

    def __init__(self, rows, is_blank):
        self._rows = rows
        self._is_blank = is_blank
        self.shape = rows.shape
        self.dtype = rows.dtype

    def __getitem__(self, index):
        rows = self._rows[index].read()
        rows[self._is_blank[index]] = 0
        return rows


class _StackedRows:
    """Two sources, stacked vertically."""

    def __init__(self, first, second):
        self._first = first
        self._second = second
        self.shape = (len(first) + len(second), first.shape[1])

    def __getitem__(self, index):
        index = np.arange(self.shape[0])[index]
        n_first = len(self._first)
        is_second = index >= n_first
        rows = np.empty((len(index), self.shape[1]), dtype=self._first.dtype)
        rows[~is_second] = read_rows(self._first[index[~is_second]])
        rows[is_second] = read_rows(self._second[index[is_second] - n_first])
        return rows


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
        if isinstance(self.index, slice):
            n = self.index.stop - self.index.start
        else:
            n = len(self.index)
        self.shape = (n, source.shape[1])
        self.is_sparse = sparse.issparse(source)

    def __len__(self):
        return self.shape[0]

    @property
    def nbytes(self):
        """Size of a pickle in bytes; 0 for a file, which is not copied."""
        if not self.is_sparse:
            return 0
        return self.source.data.nbytes + self.source.indices.nbytes

    def __getitem__(self, key):
        """The rows of a slice or an index, as a view."""
        is_block = isinstance(key, slice) and key.step in (None, 1)
        if is_block and isinstance(self.index, slice):
            start, stop, _ = key.indices(len(self))
            stop = max(start, stop)
            first = self.index.start
            return Rows(self.source, self.dtype, slice(first + start, first + stop))
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
            rows = self.source[self.index].compute()
            if sparse.issparse(rows):
                rows = rows.toarray()
            return np.ascontiguousarray(rows, self.dtype)

        mapped = _mapping(self.source)
        size = max(1, len(self))
        if mapped is not None:
            size = max(1024, _MAPPED // max(1, abs(self.source.strides[0])))
        rows = np.empty(self.shape, dtype=self.dtype)
        for block in tiles(len(self), size):
            rows[block] = self.source[self[block].index]
            _release_pages(mapped)
        return rows

    def blocks(self, size):
        """Read the rows block by block.

        Parameters
        ----------
        size : int
            Largest number of rows at a time.

        Yields
        ------
        block : slice
            Positions of the rows.
        rows : ndarray or csr_array
            The rows.
        """
        for block in tiles(len(self), size):
            yield block, self[block].read()

    def __getstate__(self):
        state = dict(self.__dict__)
        mapped = _mapping(self.source)
        if mapped is not None and mapped.filename is not None:
            state["source"] = FileArray.of(self.source, mapped)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if isinstance(self.source, FileArray):
            self.source = self.source.open()


class FileArray(NamedTuple):
    """Where an array is in a file."""

    filename: str
    dtype: np.dtype
    # Position of the first entry, in bytes.
    offset: int
    shape: tuple
    strides: tuple

    @classmethod
    def of(cls, array, mapped):
        """That of an array whose memory a `np.memmap` owns."""
        # The mapping begins at the start of a page.
        page_start = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
        mapped_address = np.frombuffer(mapped.base, dtype=np.uint8).ctypes.data
        address = array.__array_interface__["data"][0]
        return cls(
            filename=str(mapped.filename),
            dtype=array.dtype,
            offset=page_start + address - mapped_address,
            shape=array.shape,
            strides=array.strides,
        )

    def open(self):
        """The array, read-only."""
        data = np.memmap(self.filename, dtype=np.uint8, mode="r")
        return np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)


def _mapping(array):
    """The `np.memmap` that owns the memory of an array, or None."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = array.base
    return None


def _release_pages(mapped):
    """Release the pages of a `np.memmap` that were read, or they stay in memory."""
    can_release = mapped is not None and mapped.mode != "c"
    if can_release and hasattr(mmap, "MADV_DONTNEED"):
        mapped.base.madvise(mmap.MADV_DONTNEED)


def _is_dask(X):
    """Whether X is a Dask array, without importing Dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(X, module.Array)
