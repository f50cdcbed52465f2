"""The features of all kinds together."""

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
    kinds : sequence of str, default=("sizes", "counts", "quadratic", "neighbors", "additive")
        Kinds of features; one without data is left out. The number of "additive"
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
    >>> controls = make_controls(strata, codes=codes, class_weights=weights, kinds=["counts"])
    >>> controls.describe(np.array([[True, True, False, False, True, False]])).shape
    (1, 11)
    """
    n, smallest = len(strata.stratum) - 1, SmallestSizes(strata)

    def of_sizes(kind, *data):
        part = kind(strata, *data)
        if smallest.n_strata < 2:
            return [part]
        return [part, BySize(part, kind(smallest, *data), strata.n_strata)]

    made = {}
    for kind in kinds:
        if kind == "sizes":
            made[kind] = [Sizes(strata)]
        elif kind == "additive":
            made[kind] = [Additive(strata)]
        elif kind == "quadratic" and components is not None:
            phi = sums = columns_of_rows(codes, targets, components)
            if groups is not None:
                sums = np.zeros((n, phi.shape[1]))
                np.add.at(sums, groups, phi)
            made[kind] = [Quadratic(strata, sums)]
        elif kind == "counts" and codes is not None and groups is None:
            made[kind] = of_sizes(Counts, codes, class_weights)
        elif kind == "neighbors" and points is not None and groups is None:
            made[kind] = of_sizes(Neighbors, *points)
    return Controls(strata, made)


class Controls:
    """Features of coalitions with known expectations; see `make_controls`.

    Every kind has local features (one vector per coalition) and coefficients that are
    shared by the strata of a band. The column of a feature in a stratum k is
    ``columns(k)``; all other columns are 0 for coalitions of this stratum, so that a
    Gram matrix is cheap by strata::

        x = controls.block(described[labels == k], k)
        gram[np.ix_(controls.columns(k), controls.columns(k))] += x.T @ x

    Nothing is centred here: the caller subtracts any vector of constants per stratum
    (such as the sample means of the features) from features, and its product with beta
    from both expectations. Some columns are constant in a stratum, up to rounding.

    Parameters
    ----------
    strata : skvalue.samplers.SizeStrata
        Strata of sizes.
    kinds : dict of str to list of objects
        Name of every kind and its features, in parts. A stratum whose band is -1 has
        none of a part.

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

    def __init__(self, strata, kinds):
        self.n_strata, self.n_players = strata.n_strata, len(strata.stratum) - 1
        self.kinds = tuple(kinds)
        self._parts = tuple(part for parts in kinds.values() for part in parts)
        self._ends, self._described, self.n_described = [0], {}, 1
        for part in self._parts:
            start, self.n_described = (
                self.n_described,
                self.n_described + part.n_described,
            )
            self._described[part] = slice(start, self.n_described)
            self._ends.append(
                self._ends[-1] + int(part.band.max(initial=0) + 1) * part.width
            )
        self.n_features = self._ends[-1]

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
        for part, own in self._described.items():
            if part.n_described:
                described[:, own] = part.describe(masks, starts, members)
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
        parts = zip(self._parts, self._ends)
        columns = [
            a + p.band[stratum] * p.width + np.arange(p.width)
            for p, a in parts if p.band[stratum] >= 0
        ]  # fmt: skip
        return np.concatenate([np.zeros(0, np.int64), *columns])

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
        blocks = [
            part.local(described[:, self._described[getattr(part, "part", part)]], sizes)
            for part in self._parts if part.band[stratum] >= 0
        ]  # fmt: skip
        return np.concatenate([described[:, :0], *blocks], axis=1)

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
        shape = (self.n_strata, self.n_players, beta.shape[1])
        sums = np.zeros(shape), np.zeros(shape)
        for part, a, b in zip(self._parts, self._ends, self._ends[1:]):
            coefs = beta[a:b].reshape(-1, part.width, beta.shape[1])
            for total, expected in zip(sums, part.expected(coefs)):
                total += expected
        return sums
