"""Equal and nearly equal rows, whose labels should agree."""

import numpy as np
from scipy.sparse import issparse
from scipy.spatial import cKDTree
from scipy.stats import poisson
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Bunch

from .._utils.row_groups import by_first_row
from .._utils.table_columns import columns_of, identifies
from ..base import hash_rows, is_numeric, row_hashes, stack_rows

_NEAR = 0.2  # of the median distance from the nearest row: held out together
_WIDE = 64  # columns, above which distances are between projections
_SAME = 0.003  # of the 5-95 % range of a column: numbers that may be one, typed or rounded twice
_APART = (
    5.0  # times farther than its nearest is the second nearest row of a similar pair
)
_COARSE = (
    0.05  # fraction of rows that differ in one entry, above which coincidence copies
)
_MOST = 100  # columns that are compared one by one
_LEVEL = 0.05  # of the test that coincidence makes fewer similar pairs
NO_PAIRS = np.zeros((0, 2), dtype=np.intp)
_NUMBERS, _DISTINCT = (
    3,
    20,
)  # columns of numbers, of more entries than this, of a similar pair


def find_duplicates(X, vectors=None):
    """Find equal rows, say whether coincidence may have made them, and find nearly
    equal ones.

    Columns that number the rows are left out. Entries are equal if texts are without
    case and outer spaces, and numbers are to six digits. If rows that differ from
    another one in a single entry are as many as rows that equal an earlier one, or more
    than 5 % of all, then the columns are so coarse that equal rows may be different
    cases.

    Parameters
    ----------
    X : data frame, list of str, or array or sparse matrix of shape (n_samples, n_features)
        The rows.
    vectors : array or sparse matrix of shape (n_samples, n_components), default=None
        Vectors of the rows for the distances of ``near``, which is empty without them.

    Returns
    -------
    found : Bunch
        ``codes``, ndarray of shape (n_samples,): equal for equal rows; ``verdict``:
        "none", "copies" or "perhaps coincidence"; ``similar``, ndarray of shape
        (n_pairs, 2): rows each of which is the other's nearest row, five times nearer
        than the next, with equal texts and, in at least three columns of numbers,
        differences below 0.3 % of the range of 90 % of the rows, if there are more such
        pairs than coincidence makes; ``near``, ndarray of shape (n_near, 2): rows each
        of which is the other's nearest row at a distance below 0.2 times the median
        distance from the nearest row.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import find_duplicates
    >>> X = np.array([["Yes", 3.0], ["no", 1.5], ["yes ", 3.0], ["no", 2.0]], dtype=object)
    >>> found = find_duplicates(X)
    >>> found.codes.tolist(), found.verdict
    ([0, 1, 0, 2], 'perhaps coincidence')
    """
    codes, hashes, similar = _compare(X)
    verdict = _verdict(codes, hashes)
    return Bunch(
        codes=codes, verdict=verdict, similar=similar, near=_near_pairs(codes, vectors)
    )


def match_rows(X, others):
    """Find the rows of one table that another one has, too.

    Rows are compared as in :func:`find_duplicates`; columns that number the rows of X
    are left out.

    Parameters
    ----------
    X : data frame, list of str, or array or sparse matrix of shape (n_samples, n_features)
        The rows.
    others : of the type of X, of shape (n_others, n_features)
        The other rows.

    Returns
    -------
    codes : ndarray of int of shape (n_samples,)
        Codes of the rows of X, equal for equal rows.
    other_codes : ndarray of int of shape (n_others,)
        Codes of the other rows: that of a row of X, if they equal it.
    pairs : ndarray of int of shape (n_pairs, 2)
        Nearly equal rows, as ``similar`` of :func:`find_duplicates`; the other rows are
        numbered after those of X.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import match_rows
    >>> X = np.array([["a", 1.0], ["b", 2.0]], dtype=object)
    >>> codes, other_codes, pairs = match_rows(X, X[1:])
    >>> codes.tolist(), other_codes.tolist(), len(pairs)
    ([0, 1], [1], 0)
    """
    n, parts = len(X) if not issparse(X) else X.shape[0], (X, others)
    rows = stack_rows(
        *(p if hasattr(p, "shape") else np.array(p, dtype=object) for p in parts)
    )
    codes, _, similar = _compare(rows, n)
    return codes[:n], codes[n:], similar


def _compare(X, n=None):
    """Numbers of the groups of equal rows, hashes of their entries, and nearly equal
    pairs.

    Columns that identify the first n rows (None: all rows) are left out. There are no
    hashes if rows have too many columns, and are compared as wholes.
    """
    if not hasattr(X, "columns"):
        X = X if issparse(X) else np.asarray(X)
        X = X[:, None] if X.ndim == 1 else X
        if issparse(X) or X.ndim > 2 or X.shape[1] > _MOST:
            whole = (
                hash_rows(_rounded(X.reshape(len(X), -1)))
                if is_numeric(X)
                else row_hashes(X)
            )
            codes = np.unique(whole, return_inverse=True)[1]
            return by_first_row(codes), None, NO_PAIRS
    columns = columns_of(X)
    columns = [c for c in columns if not identifies(c.take(slice(n)))] or columns
    hashes = _hashes(np.column_stack([_levels(column) for column in columns]))
    codes = by_first_row(np.unique(hashes.sum(axis=1), return_inverse=True)[1])
    return codes, hashes, _nearly_equal(columns, hashes, codes)


def _levels(column):
    """Codes of the entries of a column: numbers to six digits, texts without case and
    spaces."""
    entries = column.entries
    if column.kind == "category":
        entries = np.array(
            [entry.strip().casefold() for entry in entries], dtype=object
        )
    elif column.kind == "number":
        entries = _rounded(entries)
    return np.unique(entries, return_inverse=True)[1]


def _rounded(numbers):
    size = np.abs(np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0))
    unit = 10.0 ** (np.floor(np.log10(size)) - 5)
    return np.round(numbers / unit) * unit + 0.0


def _hashes(levels):
    """A hash of each entry; that of a row, or of some of its columns, is their sum."""
    rng, hashes = np.random.default_rng(0), np.empty(levels.shape, dtype=np.uint64)
    for j, column in enumerate(levels.T):
        hashes[:, j] = rng.integers(2**63, size=column.max() + 1, dtype=np.uint64)[
            column
        ]
    return hashes


def _verdict(codes, hashes):
    """Whether coincidence may have made equal rows, by those that differ in a single
    entry."""
    first = np.unique(codes, return_index=True)[1]
    n_equal = len(codes) - len(first)
    if not n_equal:
        return "none"
    if hashes is None:
        return "copies"
    whole, differ_in_one = hashes.sum(axis=1), np.zeros(len(first), dtype=bool)
    for column in hashes.T:
        rest = (whole - column)[first]
        _, others, counts = np.unique(rest, return_inverse=True, return_counts=True)
        differ_in_one |= counts[others] > 1
    n_near = differ_in_one.sum()
    coincidence = n_near >= n_equal or n_near > _COARSE * len(first)
    return "perhaps coincidence" if coincidence else "copies"


def _nearly_equal(columns, hashes, codes):
    """Pairs of rows with equal texts, and numbers whose differences may be of
    typing."""
    is_number = np.array(
        [
            column.kind == "number" and len(np.unique(column.entries)) > _DISTINCT
            for column in columns
        ]
    )
    first = np.unique(codes, return_index=True)[1]
    if is_number.sum() < _NUMBERS or len(first) < 3:
        return NO_PAIRS
    table = np.column_stack([columns[j].entries for j in np.flatnonzero(is_number)])
    low, high = np.nanquantile(table, [0.05, 0.95], axis=0)
    points = np.nan_to_num(table / np.maximum(high - low, 1e-300), nan=-9.0)[first]
    texts = hashes[:, ~is_number].sum(axis=1)
    distances, nearest = cKDTree(points).query(
        points, 3, p=np.inf, distance_upper_bound=_SAME * _APART
    )
    rows, other = np.arange(len(first)), np.minimum(nearest[:, 1], len(first) - 1)
    near, next_one = distances[:, 1], distances[:, 2]
    pair = (
        (near < _SAME)
        & (near > 0)
        & (next_one >= _APART * near)
        & (nearest[other, 1] == rows)
    )
    pair = np.flatnonzero(pair & (rows < other) & (texts[first] == texts[first[other]]))
    between = np.sum(
        (near >= _SAME) & np.isfinite(near)
    )  # by coincidence, up to 5 times farther
    by_coincidence = between / 2 / (_APART ** is_number.sum() - 1)
    if poisson.sf(len(pair) - 1, by_coincidence) > _LEVEL:
        return NO_PAIRS
    return np.column_stack([first[pair], first[other[pair]]])


def _near_pairs(codes, vectors):
    """Pairs of different rows that are each other's nearest, at a short distance."""
    first = np.unique(codes, return_index=True)[1]
    if vectors is None or len(first) < 3:
        return NO_PAIRS
    vectors = vectors[first]
    if vectors.shape[1] > _WIDE:
        vectors = TruncatedSVD(_WIDE, random_state=0).fit_transform(vectors)
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(vectors).kneighbors()
    distances, nearest = distances[:, 0], nearest[:, 0]
    rows = np.arange(len(nearest))
    near = (nearest[nearest] == rows) & (distances < _NEAR * np.median(distances))
    near = np.flatnonzero(near & (rows < nearest))
    return first[np.column_stack([near, nearest[near]])]
