"""Soft KNN utilities of a coalition."""

import numpy as np

_KS = 2 ** np.arange(5)


class Neighbors:
    """``g_K(S)``, the mean match of the min(K, s) nearest members, K = 1, 2, 4, 8, 16.

    By stratum, averaged over validation points: the utility of soft-label KNN-Shapley
    (Wang and Jia 2023, "A Note on 'Towards Efficient Data Valuation Based on the
    Shapley Value'"). At a point at which player i has rank p, and for S of size s, the
    row of rank r is among the min(K, s) nearest members with probability

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
        from .neighbors_kernels import rank_weights

        n_players = order.shape[1]
        self.band = np.arange(strata.n_strata)
        self._ks = _KS[max(n_players, 2) > _KS]
        self.width = self.n_described = len(self._ks)
        self._order = np.array(order, dtype=np.int32, order="C")
        self._ranks = np.argsort(self._order, axis=1).astype(np.int32)
        self._matches = np.array(matches, dtype=np.float64, order="C")

        # The weight of the row of rank r if it is nearer than the player, farther, and
        # the player itself, which is no member outside.
        inside, outside = np.sum(strata.side_probabilities, axis=1)
        weights = rank_weights(strata.stratum, inside, outside, self._ks)
        nearer_inside, farther_inside, own_inside, *weights_outside = weights
        nearer_outside, farther_outside = weights_outside
        own_outside = np.zeros_like(nearer_inside)
        self._means = [
            self._expected_matches(nearer_inside, farther_inside, own_inside),
            self._expected_matches(nearer_outside, farther_outside, own_outside),
        ]

    def _expected_matches(self, nearer, farther, own):
        """Expectations of g_K for each player, of shape (n, n_strata, n_ks)."""
        from .neighbors_kernels import add_over_points

        n_players = self._order.shape[1]
        mean = np.zeros((n_players, nearer.shape[1]))
        add_over_points(self._order, self._matches, nearer, farther, own, mean)
        return mean.reshape(n_players, len(self.band), self.width)

    def describe(self, masks, starts, members):
        from .neighbors_kernels import soft_knn

        means = np.empty((len(masks), self.width))
        soft_knn(
            self._order,
            self._ranks,
            self._matches,
            masks,
            starts,
            members,
            self._ks,
            means,
        )
        return means

    def local(self, described, sizes):
        return described

    def expected(self, coefs):
        return [np.einsum("nkc,kcf->knf", mean, coefs) for mean in self._means]
