"""Equal and nearly equal rows, whose labels should agree."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.spatial import cKDTree
from scipy.stats import poisson
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Bunch

from .._utils.containers import known_rows
from .._utils.row_groups import by_first_row
from .._utils.sklearn import in_arrays
from .._utils.table_columns import columns_of, identifies
from ..base import hash_rows, is_numeric, row_hashes, stack_rows

# Largest distance of a near pair, as a fraction of the median distance of a row from
# its nearest row.
_NEAR_FRACTION = 0.2

# Vectors of more columns are projected on this number of columns.
_MAX_DIMENSIONS = 64

# Numbers may be one, typed or rounded twice, if they differ by less than this fraction
# of the range between the quantiles of 5 % and 95 % of their column.
_SAME_FRACTION = 0.003

# Smallest range of a column, as a fraction of its largest absolute number.
_MIN_RANGE = 1e-12

# Numbers are rounded to multiples of 1e-307 at least, which are no denormal ones.
_MIN_EXPONENT = -307

# Smallest ratio of the distances of the second nearest row and of the nearest one, for
# a row of a similar pair.
_ISOLATION = 5.0

# Similar pairs are looked for if at least 3 columns of numbers have more than 20
# distinct entries.
_MIN_MEASURED_COLUMNS = 3
_MAX_DISTINCT_OF_CODES = 20

# Level of the test that coincidence makes fewer similar pairs.
_TEST_LEVEL = 0.05

# If more than this fraction of the rows differ from another one in a single entry,
# coincidence may make equal rows.
_COARSE_FRACTION = 0.05

# Rows of more columns are compared as a whole.
_MAX_COLUMNS = 100

NO_PAIRS = np.zeros((0, 2), dtype=np.intp)


def find_duplicates(X, vectors=None):
    """Find equal and nearly equal rows, and say whether coincidence may have made them.

    Columns that number the rows are left out. Entries are equal if texts are without
    case and outer spaces, and numbers are to six digits. If rows that differ from
    another one in a single entry are as many as rows that equal an earlier one, or more
    than 5 % of all, then the columns are so coarse that equal rows may be different
    cases.

    Parameters
    ----------
    X : data frame, list of str, array or sparse matrix of shape (n_samples, n_features)
        The rows.
    vectors : array or sparse matrix of shape (n_samples, n_components), default=None
        Vectors of the rows for the distances of ``near``, which is empty without them.

    Returns
    -------
    duplicates : Bunch
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
    >>> rows = [["Yes", 3.0], ["no", 1.5], ["yes ", 3.0], ["no", 2.0]]
    >>> duplicates = find_duplicates(np.array(rows, dtype=object))
    >>> duplicates.codes.tolist(), duplicates.verdict
    ([0, 1, 0, 2], 'perhaps coincidence')
    """
    comparison = _compare_rows(known_rows(X))
    return Bunch(
        codes=comparison.codes,
        verdict=_verdict(comparison),
        similar=comparison.similar,
        near=_near_pairs(comparison.codes, vectors),
    )


def match_rows(X, others):
    """Find the rows of one table that another one has, too.

    Rows are compared as in :func:`find_duplicates`; columns that number the rows of X
    are left out.

    Parameters
    ----------
    X : data frame, list of str, array or sparse matrix of shape (n_samples, n_features)
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
    n_rows = X.shape[0] if issparse(X) else len(X)
    tables = []
    for table in (X, others):
        if not hasattr(table, "shape"):
            table = np.array(table, dtype=object)
        tables.append(table)
    comparison = _compare_rows(stack_rows(*tables), n_rows)
    codes = comparison.codes
    return codes[:n_rows], codes[n_rows:], comparison.similar


class _Comparison(NamedTuple):
    """Equal and nearly equal rows of a table.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Numbers of the groups of equal rows, in the order of their first rows.
    hashes : ndarray of uint64 of shape (n_rows, n_columns) or None
        Hashes of the entries; that of several columns is their sum. None if rows are
        compared as a whole.
    similar : ndarray of int of shape (n_pairs, 2)
        Pairs of nearly equal rows.
    """

    codes: np.ndarray
    hashes: np.ndarray | None
    similar: np.ndarray


def _compare_rows(X, n_identified=None):
    """Compare the rows of a table, or of many columns as a whole.

    Columns that identify the first `n_identified` rows (None: all rows) are left out.
    """
    if not hasattr(X, "columns"):
        X = X if issparse(X) else np.asarray(X)
        X = X[:, None] if X.ndim == 1 else X
        if issparse(X) or X.ndim > 2 or X.shape[1] > _MAX_COLUMNS:
            return _compare_as_whole(X)

    columns = columns_of(X)
    first_rows = slice(n_identified)
    compared = [column for column in columns if not identifies(column.take(first_rows))]
    # A table of identifiers alone is compared by them.
    columns = compared or columns
    hashes = _hash_levels([_levels(column) for column in columns])
    codes = by_first_row(np.unique(hashes.sum(axis=1), return_inverse=True)[1])
    return _Comparison(codes, hashes, _similar_pairs(columns, hashes, codes))


def _compare_as_whole(X):
    """Compare rows by one hash of all entries; none are nearly equal."""
    if is_numeric(X):
        hashes_of_rows = hash_rows(_round(X.reshape(len(X), -1)))
    else:
        hashes_of_rows = row_hashes(X)
    codes = by_first_row(np.unique(hashes_of_rows, return_inverse=True)[1])
    return _Comparison(codes, None, NO_PAIRS)


def _levels(column):
    """Codes of the entries of a column; equal for entries that count as equal."""
    entries = column.entries
    if column.kind == "category":
        plain = [entry.strip().casefold() for entry in entries]
        entries = np.array(plain, dtype=object)
    elif column.kind == "number":
        entries = _round(entries)
    return np.unique(entries, return_inverse=True)[1]


def _round(numbers):
    """The numbers to six digits."""
    has_size = np.isfinite(numbers) & (numbers != 0)
    sizes = np.abs(np.where(has_size, numbers, 1.0))
    exponents = np.maximum(np.floor(np.log10(sizes)) - 5, _MIN_EXPONENT)
    units = 10.0**exponents
    # Adding zero makes -0 a 0.
    return np.round(numbers / units) * units + 0.0


def _hash_levels(levels_by_column):
    """Hashes (n_rows, n_columns) of the entries; that of several is their sum."""
    rng = np.random.default_rng(0)
    n_rows = len(levels_by_column[0])
    hashes = np.empty((n_rows, len(levels_by_column)), dtype=np.uint64)
    for j, levels in enumerate(levels_by_column):
        hash_of_level = rng.integers(
            2**63, size=levels.max(initial=-1) + 1, dtype=np.uint64
        )
        hashes[:, j] = hash_of_level[levels]
    return hashes


def _verdict(comparison):
    """Whether coincidence may have made equal rows.

    It may if many rows differ from another one in a single entry.
    """
    _, first_rows = np.unique(comparison.codes, return_index=True)
    n_distinct = len(first_rows)
    n_repeated = len(comparison.codes) - n_distinct
    if not n_repeated:
        return "none"
    if comparison.hashes is None:
        return "copies"

    hashes_of_rows = comparison.hashes.sum(axis=1)
    differs_in_one = np.zeros(n_distinct, dtype=bool)
    for hashes_of_column in comparison.hashes.T:
        without_column = (hashes_of_rows - hashes_of_column)[first_rows]
        _, groups, counts = np.unique(
            without_column, return_inverse=True, return_counts=True
        )
        differs_in_one |= counts[groups] > 1
    n_near = differs_in_one.sum()
    if n_near >= n_repeated or n_near > _COARSE_FRACTION * n_distinct:
        return "perhaps coincidence"
    return "copies"


def _similar_pairs(columns, hashes, codes):
    """Pairs (n_pairs, 2) of rows with equal texts, and numbers that may be equal.

    Their differences may be of typing or rounding: both rows are each other's nearest,
    and much farther from all others.
    """
    is_measured = np.array([_is_measured(column) for column in columns])
    _, first_rows = np.unique(codes, return_index=True)
    n_distinct = len(first_rows)
    if is_measured.sum() < _MIN_MEASURED_COLUMNS or n_distinct < 3:
        return NO_PAIRS

    numbers = [columns[j].entries for j in np.flatnonzero(is_measured)]
    table = np.column_stack(numbers)
    low, high = np.nanquantile(table, [0.05, 0.95], axis=0)

    # Where nearly all numbers of a column are one, any other is far from it.
    smallest_range = _MIN_RANGE * np.nanmax(np.abs(table), axis=0)
    ranges = np.maximum(high - low, np.maximum(smallest_range, 1e-300))

    # A missing number is equal to another one, and far from all that are there.
    points = np.nan_to_num(table / ranges, nan=-9.0)
    points = points[first_rows]
    texts = hashes[:, ~is_measured].sum(axis=1)[first_rows]

    # Columns are the row itself, its nearest and its second nearest row. Without a row
    # within the bound, the distance is infinite and the index n_distinct.
    distances, neighbors = cKDTree(points).query(
        points, 3, p=np.inf, distance_upper_bound=_SAME_FRACTION * _ISOLATION
    )
    nearest = np.minimum(neighbors[:, 1], n_distinct - 1)
    distance = distances[:, 1]
    second_distance = distances[:, 2]

    rows = np.arange(n_distinct)
    is_pair = (distance < _SAME_FRACTION) & (distance > 0)
    is_pair &= second_distance >= _ISOLATION * distance
    is_pair &= neighbors[nearest, 1] == rows
    is_pair &= rows < nearest
    is_pair &= texts == texts[nearest]
    pairs = np.flatnonzero(is_pair)

    # How many pairs coincidence makes is estimated from those at up to `_ISOLATION`
    # times the distance: their number grows as the volume of a ball of that radius.
    is_farther = (distance >= _SAME_FRACTION) & np.isfinite(distance)
    n_expected = is_farther.sum() / 2 / (_ISOLATION ** is_measured.sum() - 1)
    if poisson.sf(len(pairs) - 1, n_expected) > _TEST_LEVEL:
        return NO_PAIRS
    return np.column_stack([first_rows[pairs], first_rows[nearest[pairs]]])


def _is_measured(column):
    """Whether a column has measurements, and not a few codes."""
    if column.kind != "number":
        return False
    return len(np.unique(column.entries)) > _MAX_DISTINCT_OF_CODES


@in_arrays
def _near_pairs(codes, vectors):
    """Pairs of different rows that are each other's nearest, at a short distance."""
    _, first_rows = np.unique(codes, return_index=True)
    if vectors is None or len(first_rows) < 3:
        return NO_PAIRS
    vectors = vectors[first_rows]
    if vectors.shape[1] > _MAX_DIMENSIONS:
        projection = TruncatedSVD(_MAX_DIMENSIONS, random_state=0)
        vectors = projection.fit_transform(vectors)
    distances, neighbors = NearestNeighbors(n_neighbors=1).fit(vectors).kneighbors()
    nearest = neighbors[:, 0]
    distance = distances[:, 0]
    rows = np.arange(len(nearest))
    is_near = distance < _NEAR_FRACTION * np.median(distance)
    is_near &= (nearest[nearest] == rows) & (rows < nearest)
    pairs = np.flatnonzero(is_near)
    return first_rows[np.column_stack([pairs, nearest[pairs]])]
