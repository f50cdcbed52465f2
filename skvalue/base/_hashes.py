"""Hashes of rows in any container."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy import sparse

from ..neighbors import Rows, read_rows
from ._containers import is_frame, is_numeric

_BLOCK = 2**22  # numbers in a block that is read at a time


def hash_rows(X, start=0x9E3779B97F4A7C15):
    """64-bit hash of each row of a float array; equal rows have equal hashes (also 0.0
    and -0.0).

    >>> import numpy as np
    >>> h = hash_rows(np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0]]))
    >>> bool(h[0] == h[1]), bool(h[0] == h[2])
    (True, False)
    """
    if isinstance(X, Rows):
        if X.is_sparse:
            return _hash_sparse(X.read())
        blocks = [
            hash_rows(block, start)
            for _, block in X.blocks(max(1, _BLOCK // X.shape[1]))
        ]
        return np.concatenate(blocks)
    hashes = np.full(len(X), start, dtype=np.uint64)
    words = np.uint32 if X.dtype == np.float32 else np.uint64
    for column in X.T:
        hashes ^= np.ascontiguousarray(column + 0.0).view(words).astype(np.uint64)
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _hash_sparse(X):
    """Row sums of hashes of column and value of the entries of a CSR array without
    zeros."""
    words = np.uint32 if X.dtype == np.float32 else np.uint64
    hashes = X.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= X.data.view(words).astype(np.uint64)
    for _ in range(2):
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def row_hashes(X):
    """128-bit hash of each row, as 16 bytes; equal rows have equal hashes (also 0.0 and
    -0.0)."""
    if (isinstance(X, Rows) and not X.is_sparse) or is_numeric(X):
        X = X if isinstance(X, Rows) else X.reshape(len(X), -1)
        both = np.column_stack([hash_rows(X), hash_rows(X, start=0xD1B54A32D192ED03)])
        return both.view("S16")[:, 0]
    X = read_rows(X)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.sum_duplicates()
        indices, parts = (
            X.indices.astype(np.int64),
            (slice(*ends) for ends in pairwise(X.indptr)),
        )
        rows = (indices[part].tobytes() + X.data[part].tobytes() for part in parts)
    elif is_frame(X):
        columns = [np.asarray(X[name], dtype=object).tolist() for name in X.columns]
        rows = (repr(row).encode() for row in zip(*columns))
    else:
        rows = (repr(row).encode() for row in X.reshape(len(X), -1).tolist())
    return np.array(
        [blake2b(row, digest_size=16).digest() for row in rows], dtype="S16"
    )
