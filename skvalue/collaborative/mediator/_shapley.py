"""Shapley values from the coalitions that sampled orders of the parties pass."""

import numpy as np

__all__ = ["antithetic_orders", "permutation_values", "prefix_masks"]


def antithetic_orders(n, n_permutations, rng):
    """Random orders of n parties, each followed by its reverse."""
    orders = np.array([rng.permutation(n) for _ in range((n_permutations + 1) // 2)])
    return np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n)


def prefix_masks(orders):
    """The different coalitions that orders pass, and for every order where its n prefixes are."""
    n_orders, n = orders.shape
    masks = np.zeros((n_orders, n, n), dtype=bool)
    for k in range(n):
        masks[:, k:, :] |= (orders[:, k, None] == np.arange(n))[:, None, :]
    unique, places = np.unique(
        np.packbits(masks.reshape(-1, n), axis=1), axis=0, return_inverse=True
    )
    masks = np.unpackbits(unique, axis=1, count=n).astype(bool)
    return masks, places.reshape(n_orders, n)


def permutation_values(orders, prefixes):
    """Mean marginal contributions, and their standard errors over pairs of orders.

    ``prefixes`` (n_orders, n) are the values of the first 1, ..., n parties of every order.
    """
    gains = np.diff(prefixes, axis=1, prepend=0.0)
    by_party = np.empty_like(gains)
    np.put_along_axis(by_party, orders, gains, axis=1)
    pairs = by_party.reshape(-1, 2, orders.shape[1]).mean(axis=1)
    errors = np.zeros(orders.shape[1])
    if len(pairs) > 1:
        errors = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return pairs.mean(axis=0), errors
