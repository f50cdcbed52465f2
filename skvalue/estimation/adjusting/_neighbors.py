"""Soft KNN utilities of a coalition."""

import numpy as np

_KS = 2 ** np.arange(5)


class Neighbors:
    """``g_K(S)``, the mean match of the min(K, s) nearest members, K = 1, 2, 4, 8, 16,
    by stratum.

    Averaged over validation points: the utility of soft-label KNN-Shapley (Wang and Jia
    2023, "A Note on 'Towards Efficient Data Valuation Based on the Shapley Value'"). At
    a point at which player i has rank p, and for S of size s, the row of rank r is
    among the min(K, s) nearest members with probability

        ``(s-1)/(n-1) H(K-1; n-2, r-1, s-2)``,  i in S, r < p
        ``H(K-1; n-1, r-1, s-1)``,  i in S, r = p
        ``(s-1)/(n-1) H(K-2; n-2, r-2, s-2)``,  i in S, r > p
        ``s/(n-1) H(K-1; n-2, r-1, s-1)``,  i not in S, r < p; with r-2 where r > p

    with the distribution function H(x; population, nearer rows, members drawn) of the
    hypergeometric distribution. Averaged over the sizes of a stratum, these depend on r
    and on the order of r and p only: one prefix and one suffix sum per point give the
    expectations of all players, in O(V n) for each stratum and K. They are kept (80
    n_strata bytes per player); making them takes four times as much memory.
    """

    def __init__(self, strata, order, matches):
        from .neighbors_kernels import add_over_points, rank_weights

        n = order.shape[1]
        self.band = np.arange(strata.n_strata)
        self._ks = _KS[max(n, 2) > _KS]
        self.width = self.n_described = len(self._ks)
        self._order = np.array(order, dtype=np.int32, order="C")
        self._ranks = np.argsort(self._order, axis=1).astype(np.int32)
        self._matches = np.array(matches, dtype=np.float64, order="C")
        inside, outside = np.sum(strata.side_probabilities, axis=1)
        weights = rank_weights(strata.stratum, inside, outside, self._ks)
        self._means = []
        for nearer, farther, own in (
            weights[:3],
            (*weights[3:], np.zeros_like(weights[0])),
        ):
            mean = np.zeros((n, weights.shape[2]))
            add_over_points(self._order, self._matches, nearer, farther, own, mean)
            self._means.append(mean.reshape(n, strata.n_strata, self.width))

    def describe(self, masks, starts, members):
        from .neighbors_kernels import soft_knn

        out = np.empty((len(masks), self.width))
        soft_knn(
            self._order,
            self._ranks,
            self._matches,
            masks,
            starts,
            members,
            self._ks,
            out,
        )
        return out

    def local(self, described, sizes):
        return described

    def expected(self, coefs):
        return [np.einsum("nkc,kcf->knf", mean, coefs) for mean in self._means]
