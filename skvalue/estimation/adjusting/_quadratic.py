"""Products of means over the members of a coalition."""

import numpy as np

_COLUMNS = 14  # about as many columns of rows; their products are the features
_MOST_CLASSES = 12
_BANDS = 3


def columns_of_rows(codes, targets, components):
    """Functions of the rows whose means over a coalition are multiplied, of shape
    (n_rows, c).

    Up to three classes: an indicator of each class and its products with the leading
    components. More: indicators of the 12 most frequent classes, and 6 components.
    Regression: 1, 7 components, the standardised target and its products with them. At
    most 18 columns.
    """
    X = np.asarray(components, dtype=np.float64)
    one = np.ones((len(X), 1))
    if codes is None:
        X, y = X[:, : _COLUMNS // 2], targets - np.mean(targets)
        y = y[:, None] / max(y.std(), np.finfo(float).tiny)
        return np.c_[one, X, y, X * y]
    counts = np.bincount(codes)
    if len(counts) <= 3:
        X = X[:, : _COLUMNS // len(counts) - 1]
        return np.concatenate(
            [np.c_[one, X] * (codes == c)[:, None] for c in range(len(counts))], 1
        )
    kept = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    return np.c_[codes[:, None] == np.sort(kept), X[:, :6]].astype(np.float64)


class Quadratic:
    """Products ``T_a T_b`` of ``T(S) = (1/s) sum_{j in S} phi_j``, in three bands of
    strata.

    A description holds T. With B the symmetric matrix of the coefficients, d other
    members than i of n - 1 other players, ``p1 = d / (n-1)`` and ``p2 = d (d-1) /
    ((n-1) (n-2))`` the probabilities that one and that two given others are members,
    ``Phi = sum_j phi_j`` and ``tr = sum_j phi_j'B phi_j``, the expectation of ``s^2
    T'BT`` is

        ``[i in S] (phi_i'B phi_i + 2 p1 (phi_i'B Phi - phi_i'B phi_i)) + p1 (tr -
        phi_i'B phi_i)`` ``+ p2 (Phi'B Phi - 2 phi_i'B Phi + 2 phi_i'B phi_i - tr)``.

    Players may be groups of rows: phi_j is the sum over the rows of the group.
    """

    def __init__(self, strata, phi):
        n, n_strata, c = len(strata.stratum) - 1, strata.n_strata, phi.shape[1]
        self._phi, (self._a, self._b) = np.ascontiguousarray(phi), np.triu_indices(c)
        self.n_described, self.width = c, len(self._a)
        # About equally many strata share coefficients.
        self.band = np.minimum(
            np.arange(n_strata) * _BANDS // max(n_strata, 1), _BANDS - 1
        )
        # Of each side and stratum: E[1 / s^2], E[p1 / s^2] and E[p2 / s^2].
        s, self._means = np.arange(n + 1), []
        for p, drawn in zip(strata.side_probabilities, (s - 1, s)):
            one = drawn / max(n - 1, 1)
            two = one * (drawn - 1) / max(n - 2, 1)
            self._means.append(
                (p / np.maximum(s, 1) ** 2) @ np.stack([one**0, one, two], axis=1)
            )

    def describe(self, masks, starts, members):
        from .sums_kernels import column_means

        means = np.empty((len(masks), self.n_described))
        column_means(starts, members, self._phi, means)
        return means

    def local(self, described, sizes):
        return described[:, self._a] * described[:, self._b]

    def expected(self, coefs):
        phi, total = self._phi, self._phi.sum(axis=0)
        n, c = phi.shape
        shape = (len(self.band), n, coefs.shape[2])
        inside, outside = np.empty(shape), np.empty(shape)
        for band, coef in enumerate(coefs):
            for fit in range(coefs.shape[2]):
                B = np.zeros((c, c))
                B[self._a, self._b] = coef[:, fit] / 2
                B = B + B.T
                each = phi @ B
                own, cross = (each * phi).sum(axis=1), each @ total
                rest = own.sum() - own  # squares of the others
                pairs = (
                    total @ B @ total - 2 * cross + own - rest
                )  # two different others
                for k in np.flatnonzero(self.band == band):
                    for side, means in zip((inside, outside), self._means):
                        side[k, :, fit] = means[k, 1] * rest + means[k, 2] * pairs
                    with_own = self._means[0][k]
                    inside[k, :, fit] += with_own[0] * own + 2 * with_own[1] * (
                        cross - own
                    )
        return inside, outside
