"""Hashes of rows in any container."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy import sparse

from ..neighbors import Rows, as_rows, read_rows
from ._containers import is_frame, is_numeric

_BLOCK = 2**22  # numbers in a block that is read at a time

_START = 0x9E3779B97F4A7C15
_OTHER_START = 0xD1B54A32D192ED03
_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


def hash_rows(X, start=_START):
    """64-bit hash of each row of a float array; equal rows have equal hashes.

    0.0 and -0.0 are equal.

    >>> import numpy as np
    >>> h = hash_rows(np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0]]))
    >>> bool(h[0] == h[1]), bool(h[0] == h[2])
    (True, False)
    """
    if isinstance(X, Rows):
        if X.is_sparse:
            return _hash_sparse(X.read())
        block_size = max(1, _BLOCK // X.shape[1])
        blocks = [hash_rows(block, start) for _, block in X.blocks(block_size)]
        return np.concatenate(blocks)
    hashes = np.full(len(X), start, dtype=np.uint64)
    for column in X.T:
        hashes ^= _as_integers(np.ascontiguousarray(column + 0.0))
        hashes = _mixed(hashes)
    return hashes


def _hash_sparse(X):
    """Row sums of hashes of column and value of the entries of a CSR array.

    The array holds no zeros: a row without entries has the hash 0.
    """
    hashes = X.indices.astype(np.uint64) * np.uint64(_START)
    hashes ^= _as_integers(X.data)
    hashes = _mixed(_mixed(hashes))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _as_integers(values):
    """The bits of float32 or float64 numbers, as integers."""
    integer = np.uint32 if values.dtype == np.float32 else np.uint64
    return values.view(integer).astype(np.uint64)


def _mixed(hashes):
    """One round of mixing the bits of each hash; changes the array."""
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint64(29)
    return hashes


def row_hashes(X):
    """128-bit hash of each row, as 16 bytes; equal rows have equal hashes.

    0.0 and -0.0 are equal.
    """
    if is_numeric(X):
        X = X.reshape(len(X), -1)
    if is_numeric(X) or (isinstance(X, Rows) and not X.is_sparse):
        halves = [hash_rows(X), hash_rows(X, start=_OTHER_START)]
        return np.column_stack(halves).view("S16")[:, 0]
    digests = [
        blake2b(content, digest_size=16).digest() for content in _row_contents(X)
    ]
    return np.array(digests, dtype="S16")


def _row_contents(X):
    """Yield each row of sparse rows, a frame or an array of objects, as bytes."""
    if sparse.issparse(X):
        X = as_rows(X)  # without stored zeros and repeated entries
    X = read_rows(X)
    if sparse.issparse(X):
        columns = X.indices.astype(np.int64)
        for start, stop in pairwise(X.indptr):
            yield columns[start:stop].tobytes() + X.data[start:stop].tobytes()
    elif is_frame(X):
        columns = [np.asarray(X[name], dtype=object).tolist() for name in X.columns]
        for row in zip(*columns):
            yield repr(row).encode()
    else:
        for row in X.reshape(len(X), -1).tolist():
            yield repr(row).encode()
