"""The features of all kinds together."""

from itertools import chain

import numpy as np

from ._additive import Additive
from ._by_size import BySize, SmallestSizes
from ._classes import Counts
from ._neighbors import Neighbors
from ._quadratic import Quadratic, columns_of_rows
from ._sizes import Sizes

KINDS = ("sizes", "counts", "quadratic", "neighbors", "additive")


def make_controls(
    strata,
    *,
    codes=None,
    targets=None,
    components=None,
    points=None,
    class_weights=None,
    groups=None,
    kinds=KINDS,
):
    """Features of the given kinds for which there are data.

    Parameters
    ----------
    strata : skvalue.samplers.SizeStrata
        Strata of sizes of n players. The expectations are those of its importance
        weights: any semivalue.
    codes : ndarray of int of shape (n_rows,), default=None
        Class of every row, 0 to C - 1, passed together with `class_weights`. Kinds:
        "counts", "quadratic".
    targets : ndarray of float of shape (n_rows,), default=None
        Target of every row of a regression; standardised here. Kind: "quadratic".
    components : ndarray of float of shape (n_rows, d), default=None
        Standardised columns of the rows, the most important ones first: about the first
        6 are used. Kind: "quadratic", with `codes` or `targets`.
    points : tuple of (order, matches), default=None
        Of V validation points: the rows by their distance, the nearest first, an int
        array of shape (V, n), and a float array of the same shape: 1 where the row at
        this place has the label of the point and 0 elsewhere, or minus the squared
        difference of their targets. Kind: "neighbors".
    class_weights : ndarray of shape (C,), default=None
        Weight of each class in "counts", such as its frequency among validation points.
    groups : ndarray of int of shape (n_rows,), default=None
        Player of every row, 0 to n - 1. None: every row is a player. With groups there
        are no "counts" and "neighbors", whose expectations are known for rows only.
    kinds : sequence of str, default=KINDS
        Kinds of features, by default "sizes", "counts", "quadratic", "neighbors" and
        "additive"; one without data is left out. The number of "additive"
        features is twice the number of players, that of the others does not depend on
        it.

    Returns
    -------
    controls : Controls
        The features.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.samplers import SizeStrata
    >>> strata = SizeStrata.of(np.full(6, 1 / 6))
    >>> codes, weights = np.array([0, 0, 1, 1, 1, 0]), np.array([0.5, 0.5])
    >>> controls = make_controls(
    ...     strata, codes=codes, class_weights=weights, kinds=["counts"]
    ... )
    >>> coalition = np.array([True, True, False, False, True, False])
    >>> controls.describe(coalition[None]).shape
    (1, 11)
    """
    smallest = SmallestSizes(strata)
    features = {}
    for kind in kinds:
        if kind == "sizes":
            features[kind] = [Sizes(strata)]
        elif kind == "additive":
            features[kind] = [Additive(strata)]
        elif kind == "quadratic" and components is not None:
            phi = columns_of_rows(codes, targets, components)
            if groups is not None:
                phi = _sum_by_group(phi, groups, len(strata.stratum) - 1)
            features[kind] = [Quadratic(strata, phi)]
        elif kind == "counts" and codes is not None and groups is None:
            features[kind] = _with_sizes(Counts, strata, smallest, codes, class_weights)
        elif kind == "neighbors" and points is not None and groups is None:
            order, matches = points
            features[kind] = _with_sizes(Neighbors, strata, smallest, order, matches)
    return Controls(strata, features)


def _sum_by_group(columns, groups, n_groups):
    """Sums over the rows of each group, of shape (n_groups, n_columns)."""
    sums = np.zeros((n_groups, columns.shape[1]))
    np.add.at(sums, groups, columns)
    return sums


def _with_sizes(kind, strata, smallest, *data):
    """Features of a kind in all strata, and by size in the first one."""
    features = kind(strata, *data)
    if smallest.n_strata < 2:
        return [features]
    return [features, BySize(features, kind(smallest, *data), strata.n_strata)]


class Controls:
    """Features of coalitions with known expectations; see `make_controls`.

    Every kind has local features (one vector per coalition) and coefficients that are
    shared by the strata of a band. The column of a feature in a stratum k is
    ``columns(k)``; all other columns are 0 for coalitions of this stratum, so that a
    Gram matrix is cheap by strata::

        x = controls.block(described[labels == k], k)
        gram[np.ix_(controls.columns(k), controls.columns(k))] += x.T @ x

    Nothing is centered here: the caller subtracts any vector of constants per stratum
    (such as the sample means of the features) from features, and its product with beta
    from both expectations. Some columns are constant in a stratum, up to rounding.

    Parameters
    ----------
    strata : skvalue.samplers.SizeStrata
        Strata of sizes.
    features : dict of str to list of objects
        Name of every kind and its features, in tables of `width` columns with the
        methods ``describe(masks, starts, members)``, ``local(described, sizes)`` and
        ``expected(coefs)``. `band` holds the band of each stratum; one whose band is -1
        has none of these features.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of features, in the order of their columns.
    n_players : int
        Number of players n.
    n_strata : int
        Number of strata.
    n_described : int
        Number of columns of a description.
    n_features : int
        Number of features, p.
    """

    def __init__(self, strata, features):
        self.n_strata = strata.n_strata
        self.n_players = len(strata.stratum) - 1
        self.kinds = tuple(features)
        self._tables = list(chain.from_iterable(features.values()))

        # Columns of the description: first the size, then those of each table.
        self.n_described = 1
        self._described_columns = {}
        for table in self._tables:
            start = self.n_described
            self.n_described += table.n_described
            self._described_columns[table] = slice(start, self.n_described)

        # The first column of each table, which has `width` of them in each band.
        self._starts = [0]
        for table in self._tables:
            n_bands = int(table.band.max(initial=0) + 1)
            self._starts.append(self._starts[-1] + n_bands * table.width)
        self.n_features = self._starts[-1]

    def describe(self, masks):
        """Describe coalitions by numbers from which their features follow.

        The number of columns is about 40 plus, with "additive", one for 64 players. A
        row does not depend on the other rows of the call, not even in its last bit.

        Parameters
        ----------
        masks : ndarray of bool of shape (m, n)
            The coalitions, none of them empty.

        Returns
        -------
        described : ndarray of float of shape (m, n_described)
            The first column is the size.
        """
        from .sums_kernels import members_of

        masks = np.ascontiguousarray(masks)
        starts, members = members_of(masks)
        described = np.empty((len(masks), self.n_described))
        described[:, 0] = np.diff(starts)
        for table, columns in self._described_columns.items():
            if table.n_described:
                described[:, columns] = table.describe(masks, starts, members)
        return described

    def columns(self, stratum):
        """Return the columns of the features of a stratum.

        Parameters
        ----------
        stratum : int
            The stratum.

        Returns
        -------
        columns : ndarray of int of shape (n_local,)
            Indices of columns among the n_features; the others are 0 in this stratum.
        """
        columns = [np.zeros(0, np.int64)]
        for table, start in zip(self._tables, self._starts):
            band = table.band[stratum]
            if band >= 0:
                columns.append(start + band * table.width + np.arange(table.width))
        return np.concatenate(columns)

    def block(self, described, stratum):
        """Compute the features of coalitions of one stratum.

        Parameters
        ----------
        described : ndarray of shape (m, n_described)
            From `describe`.
        stratum : int
            The stratum of all these coalitions.

        Returns
        -------
        features : ndarray of shape (m, n_local)
            The columns ``columns(stratum)`` of the features; all others are 0.
        """
        sizes = described[:, 0].astype(np.int64)
        blocks = [described[:, :0]]
        for table in self._tables:
            if table.band[stratum] >= 0:
                # Features by size share the description of those that they are made of.
                describing = table.features if isinstance(table, BySize) else table
                columns = self._described_columns[describing]
                blocks.append(table.local(described[:, columns], sizes))
        return np.concatenate(blocks, axis=1)

    def expected(self, beta):
        """Compute the expectations of linear combinations of the features.

        Parameters
        ----------
        beta : ndarray of shape (n_features, n_fits)
            Coefficients, one column per fit.

        Returns
        -------
        inside, outside : ndarrays of shape (n_strata, n, n_fits)
            ``E[x(S)'beta]`` of a coalition of the stratum with, and without, every
            player, under the importance weights of the strata. 0 where a stratum has no
            such coalition.
        """
        n_fits = beta.shape[1]
        inside = np.zeros((self.n_strata, self.n_players, n_fits))
        outside = np.zeros((self.n_strata, self.n_players, n_fits))
        for table, start, stop in zip(self._tables, self._starts, self._starts[1:]):
            coefs = beta[start:stop].reshape(-1, table.width, n_fits)
            table_inside, table_outside = table.expected(coefs)
            inside += table_inside
            outside += table_outside
        return inside, outside
