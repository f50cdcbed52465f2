"""Products of means over the members of a coalition."""

import numpy as np

_N_COLUMNS = 14  # about as many columns of rows; their products are the features
_MAX_CLASSES = 12
_N_COMPONENTS_OF_MANY_CLASSES = 6
_N_BANDS = 3


def columns_of_rows(codes, targets, components):
    """Functions of the rows whose means over a coalition are multiplied.

    Up to three classes: an indicator of each class and its products with the leading
    components. More: indicators of the 12 most frequent classes, and 6 components.
    Regression: 1, 7 components, the standardised target and its products with them.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,) or None
        Classes; None in a regression.
    targets : ndarray of shape (n_rows,) or None
        Targets of a regression.
    components : ndarray of shape (n_rows, n_components)
        Columns of the rows, the most important ones first.

    Returns
    -------
    columns : ndarray of shape (n_rows, n_columns)
        The functions, at most 18.
    """
    X = np.asarray(components, dtype=np.float64)
    ones = np.ones((len(X), 1))
    if codes is None:
        X = X[:, : _N_COLUMNS // 2]
        residuals = targets - np.mean(targets)
        scale = max(residuals.std(), np.finfo(float).tiny)
        y = residuals[:, None] / scale
        return np.hstack([ones, X, y, X * y])

    class_counts = np.bincount(codes)
    n_classes = len(class_counts)
    if n_classes <= 3:
        X = np.hstack([ones, X[:, : _N_COLUMNS // n_classes - 1]])
        return np.hstack([X * (codes == c)[:, None] for c in range(n_classes)])

    most_frequent = np.argsort(-class_counts, kind="stable")[:_MAX_CLASSES]
    indicators = codes[:, None] == np.sort(most_frequent)
    columns = np.hstack([indicators, X[:, :_N_COMPONENTS_OF_MANY_CLASSES]])
    return columns.astype(np.float64)


class Quadratic:
    """Products ``T_a T_b`` of ``T(S) = (1/s) sum_{j in S} phi_j``, in three bands.

    A description holds T. With B the symmetric matrix of the coefficients, d other
    members than i of n - 1 other players, ``p1 = d / (n-1)`` and ``p2 = d (d-1) /
    ((n-1) (n-2))`` the probabilities that one and that two given others are members,
    ``Phi = sum_j phi_j`` and ``tr = sum_j phi_j'B phi_j``, the expectation of ``s^2
    T'BT`` is

        ``[i in S] (phi_i'B phi_i + 2 p1 (phi_i'B Phi - phi_i'B phi_i)) + p1 (tr -
        phi_i'B phi_i)`` ``+ p2 (Phi'B Phi - 2 phi_i'B Phi + 2 phi_i'B phi_i - tr)``.

    Players may be groups of rows: phi_j is the sum over the rows of the group.

    Parameters
    ----------
    strata : SizeStrata
        Strata of sizes.
    phi : ndarray of shape (n_players, n_columns)
        What is summed over the members.
    """

    def __init__(self, strata, phi):
        n_players = len(strata.stratum) - 1
        n_columns = phi.shape[1]
        self._phi = np.ascontiguousarray(phi)
        self._a, self._b = np.triu_indices(n_columns)
        self.n_described = n_columns
        self.width = len(self._a)

        # About equally many strata share coefficients.
        bands = np.arange(strata.n_strata) * _N_BANDS // max(strata.n_strata, 1)
        self.band = np.minimum(bands, _N_BANDS - 1)

        # Of each side and stratum: E[1 / s^2], E[p1 / s^2] and E[p2 / s^2].
        sizes = np.arange(n_players + 1)
        inside, outside = strata.side_probabilities
        self._inside = _mean_probabilities(inside, sizes, sizes - 1)
        self._outside = _mean_probabilities(outside, sizes, sizes)

    def describe(self, masks, starts, members):
        from .sums_kernels import column_means

        means = np.empty((len(masks), self.n_described))
        column_means(starts, members, self._phi, means)
        return means

    def local(self, described, sizes):
        return described[:, self._a] * described[:, self._b]

    def expected(self, coefs):
        n_players, n_columns = self._phi.shape
        n_fits = coefs.shape[2]
        inside = np.empty((len(self.band), n_players, n_fits))
        outside = np.empty((len(self.band), n_players, n_fits))
        for band, of_band in enumerate(coefs):
            strata = np.flatnonzero(self.band == band)
            for fit in range(n_fits):
                B = np.zeros((n_columns, n_columns))
                B[self._a, self._b] = of_band[:, fit] / 2
                B = B + B.T
                self._write_forms(B, strata, inside[:, :, fit], outside[:, :, fit])
        return inside, outside

    def _write_forms(self, B, strata, inside, outside):
        """Write the expectations of T'BT in some strata, both (n_strata, n_players)."""
        phi = self._phi
        total = phi.sum(axis=0)
        products = phi @ B
        own = (products * phi).sum(axis=1)  # phi_i'B phi_i
        cross = products @ total  # phi_i'B Phi
        others = own.sum() - own  # squares of the others
        pairs = total @ B @ total - 2 * cross + own - others  # two different others
        for k in strata:
            _, p1, p2 = self._outside[k]
            outside[k] = p1 * others + p2 * pairs
            p0, p1, p2 = self._inside[k]
            inside[k] = p1 * others + p2 * pairs
            inside[k] += p0 * own + 2 * p1 * (cross - own)


def _mean_probabilities(probabilities, sizes, n_others):
    """Means over the sizes of each stratum of (1, p1, p2) / s^2, (n_strata, 3).

    From the probabilities (n_strata, n + 1) of sizes, and the numbers d of other
    members at each size.
    """
    n_players = len(sizes) - 1
    p1 = n_others / max(n_players - 1, 1)
    p2 = p1 * (n_others - 1) / max(n_players - 2, 1)
    terms = np.stack([np.ones_like(p1), p1, p2], axis=1)
    return (probabilities / np.maximum(sizes, 1) ** 2) @ terms
