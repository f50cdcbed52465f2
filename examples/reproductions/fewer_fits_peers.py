"""
Estimators of semivalues that draw coalitions of their own: functions of a game
===============================================================================

Every function takes a game (masks of coalitions -> utilities less the utility of the
empty coalition), the probabilities q of sizes of the semivalue
(`skvalue.semivalues.size_weights`), the number of fits and a random number generator,
and returns the values. PEERS and BANZHAF_PEERS name them; SHAPIQ and BANZHAF_SHAPIQ do
the same with the samplers of shapiq, which must be installed.
"""

from math import comb

import numpy as np


def subsets(rng, sizes, n):
    """A mask for every size, uniform among the coalitions of that size."""
    return (
        rng.random((len(sizes), n)).argsort(axis=1).argsort(axis=1)
        < np.asarray(sizes)[:, None]
    )


def fit_efficient(masks, gains, gain, weights=1.0):
    """Least squares of gains on membership, with coefficients that sum to the gain of
    all."""
    n = masks.shape[1]
    sizes = masks.sum(axis=1)
    root = np.sqrt(weights) * np.ones(len(masks))
    left = (masks - sizes[:, None] / n) * root[:, None]
    right = (gains - gain * sizes / n) * root
    return np.linalg.lstsq(left, right, rcond=None)[0] + gain / n


def gain_of_all(game, n):
    return float(game(np.ones((1, n), dtype=bool))[0])


def kernel_regression(game, q, m, rng):
    """Paired KernelSHAP: Covert and Lee (2021), constrained least squares with paired
    samples.

    Sizes have the probabilities of the Shapley kernel, ~ 1 / (s (n - s)): rows count
    equally.
    """
    n = len(q)
    size = np.arange(1, len(q))
    weights = 1 / (size * (n - size))
    sizes = rng.choice(size, (m - 1) // 2, p=weights / weights.sum())
    masks = subsets(rng, sizes, n)
    masks = np.concatenate([masks, ~masks])
    return fit_efficient(masks, game(masks), gain_of_all(game, n))


def different_subsets(rng, count, size, n):
    """Different coalitions of a size, `count` of them; of n / 2 players, no two are
    complements."""
    found = np.zeros((0, n), dtype=bool)
    while len(found) < count:
        masks = subsets(rng, np.full(count, size), n)
        masks = masks ^ (~masks[:, :1] if 2 * size == n else False)
        found = np.concatenate([found, masks])
        found = found[
            np.sort(np.unique(np.packbits(found, axis=1), axis=0, return_index=True)[1])
        ]
    return found[:count]


def leverage_regression(game, q, m, rng):
    """Leverage SHAP: Musco and Witter (2025), algorithms 1 and 2, with fixed counts of
    each size.

    Leverage scores are 1 / C(n, s), lemma 3.2: all sizes are equally likely, except
    that no coalition is drawn twice (equation 12), and a pair is a coalition and its
    complement.
    """
    n = len(q)
    pairs = (m - 2) // 2
    size = np.arange(1, n // 2 + 1)
    number = np.array([comb(n, s) / (1 + (2 * s == n)) for s in size])  # of pairs
    share = np.where(2 * size == n, 0.5, 1.0)
    low = 0.0
    high = float(m)
    for _ in range(200):
        most = (low + high) / 2
        low, high = (
            (most, high)
            if np.minimum(number, most * share).sum() < pairs
            else (low, most)
        )
    expected = np.minimum(number, high * share)
    counts = np.floor(expected).astype(int)
    rest = np.argsort(counts - expected, kind="stable")[
        : max(0, min(pairs, int(number.sum())) - counts.sum())
    ]
    counts[rest] += 1
    masks = np.concatenate(
        [different_subsets(rng, c, s, n) for c, s in zip(counts, size) if c]
    )
    masks = np.concatenate([masks, ~masks])
    sizes = masks.sum(axis=1)
    weights = 1 / (sizes * (n - sizes) * np.bincount(sizes, minlength=n)[sizes])
    return fit_efficient(masks, game(masks), gain_of_all(game, n), weights)


def one_sample_fits_all(game, q, m, rng):
    """One-sample-fits-all, tuned for the semivalue: Li and Yu (2024), OFA-S.

    Coalitions of 1 and n - 1 players are enumerated; other sizes are drawn in
    proportion to ``sqrt(q[s-1]^2 / s + q[s]^2 / (n - s))``, for the Shapley value as in
    OFA-A. A player that is in no coalition of a size gets the mean of that size.
    """
    n = len(q)
    one = np.eye(len(q), dtype=bool)
    size = np.arange(2, n - 1)
    weights = np.sqrt(q[size - 1] ** 2 / size + q[size] ** 2 / (n - size))
    sizes = rng.choice(size, m - 2 * n - 1, p=weights / weights.sum())
    masks = subsets(rng, sizes, n)
    gains = game(masks)
    single = game(one)
    without = game(~one)
    # Means of the coalitions of each size, with and without every player.
    inside, outside = np.zeros((2, n + 1, n))
    for s in np.unique(sizes):
        rows = masks[sizes == s].astype(float)
        u = gains[sizes == s]
        for means, member in ((inside, rows), (outside, 1 - rows)):
            seen = member.sum(axis=0)
            means[s] = np.where(seen > 0, u @ member / np.maximum(seen, 1), u.mean())
    inside[1], outside[n - 1] = single, without
    outside[1] = (single.sum() - single) / (n - 1)
    inside[n - 1] = (without.sum() - without) / (n - 1)
    inside[n] = gain_of_all(game, n)
    return q @ inside[1:] - q @ outside[:-1]


def regression_adjusted(game, q, m, rng, folds=10):
    """Regression-adjusted sample reuse: Witter, Liu and Musco (2025), with a linear
    surrogate.

    Values of a linear fit to the other folds, plus estimates from its residuals in the
    fold, each residual weighted by the semivalue over the probability of its coalition.
    """
    n = len(q)
    half = (m - 1) // 2
    gain = gain_of_all(game, len(q))
    banzhaf = not np.allclose(q, 1 / n)
    if banzhaf:
        masks = rng.random((half, n)) < 0.5
        coalitions = np.concatenate([masks, ~masks])
        signs = 2.0 * (2.0 * coalitions - 1)
    else:
        masks = subsets(rng, rng.integers(1, n, half), n)
        coalitions = np.concatenate([masks, ~masks])
        sizes = coalitions.sum(axis=1)[:, None]
        signs = np.where(coalitions, 1 / sizes, -1 / (n - sizes)) * (n - 1)
    gains = game(coalitions)
    fold = np.tile(rng.permutation(half) % folds, 2)
    values = np.zeros(n)
    for f in range(folds):
        train = fold != f
        test = fold == f
        if banzhaf:
            slopes = fit_banzhaf(coalitions[train], gains[train])
            constant = gains[train].mean() - slopes.sum() / 2
        else:
            s = coalitions[train].sum(axis=1)
            weights = 1 / (s * (n - s))
            slopes = fit_efficient(coalitions[train], gains[train], gain, weights)
            constant = 0.0
        residual = gains[test] - coalitions[test] @ slopes - constant
        values += (slopes + residual @ signs[test] / test.sum()) / folds
    return values


def sample_reuse(game, q, m, rng):
    """Maximum sample reuse: Wang and Jia (2023). Mean gains with less without."""
    masks = (rng.random((m, len(q))) < 0.5).astype(float)
    gains = game(masks.astype(bool))
    return gains @ masks / masks.sum(axis=0) - gains @ (1 - masks) / (1 - masks).sum(
        axis=0
    )


def fit_banzhaf(masks, gains):
    """Slopes of least squares of gains on membership, coded as 1/2 and -1/2."""
    return np.linalg.lstsq(masks - 0.5, gains - gains.mean(), rcond=None)[0]


def banzhaf_regression(game, q, m, rng):
    """Kernel Banzhaf: Liu, Witter, Korn, Alrashed, Paparas, Musco and Freire (2024),
    pairs."""
    masks = rng.random((m // 2, len(q))) < 0.5
    masks = np.concatenate([masks, ~masks])
    return fit_banzhaf(masks, game(masks))


def of_shapiq(name, **options):
    """A sampler of shapiq as a function like those above."""

    def values(game, q, m, rng):
        from shapiq import approximator

        make = getattr(approximator, name)
        sampler = make(len(q), random_state=int(rng.integers(2**31)), **options)

        def played(coalitions):
            return game(np.atleast_2d(np.asarray(coalitions, dtype=bool)))

        found = sampler.approximate(m, played)
        return np.asarray(found.get_n_order_values(1), dtype=float)

    return values


PEERS = {
    "paired kernel": kernel_regression,
    "leverage": leverage_regression,
    "one-sample": one_sample_fits_all,
    "regression-adjusted": regression_adjusted,
}
BANZHAF_PEERS = {
    "sample reuse": sample_reuse,
    "Kernel Banzhaf": banzhaf_regression,
    "one-sample": one_sample_fits_all,
    "regression-adjusted": regression_adjusted,
}
SHAPIQ = {
    "KernelSHAP": of_shapiq("KernelSHAP", pairing_trick=True),
    "UnbiasedKernelSHAP": of_shapiq("UnbiasedKernelSHAP", pairing_trick=True),
    "LeverageSHAP": of_shapiq("LeverageSHAP"),
    "SVARM": of_shapiq("SVARM"),
    "SHAPIQ": of_shapiq("SHAPIQ", index="SV", max_order=1, pairing_trick=True),
    "PermutationSamplingSV": of_shapiq("PermutationSamplingSV"),
    "StratifiedSamplingSV": of_shapiq("StratifiedSamplingSV"),
    "OwenSamplingSV": of_shapiq("OwenSamplingSV", n_anchor_points=10),
    "kADDSHAP": of_shapiq("kADDSHAP", max_order=2),
    "PolySHAP": of_shapiq("PolySHAP", max_terms=1000, pairing_trick=True),
    "OddSHAP": of_shapiq("OddSHAP"),
    "ProxySHAP": of_shapiq("ProxySHAP", index="SV", max_order=1),
    "RegressionMSR xgboost": of_shapiq("RegressionMSR", index="SV"),
    "RegressionMSR lightgbm": of_shapiq(
        "RegressionMSR", index="SV", proxy_model="lightgbm"
    ),
    "RegressionMSR linear": of_shapiq(
        "RegressionMSR", index="SV", proxy_model="linear"
    ),
    "RegressionMSR 5 folds": of_shapiq("RegressionMSR", index="SV", k_folds=5),
}
BANZHAF_SHAPIQ = {
    "SVARM": of_shapiq("SVARM", index="BV"),
    "SHAPIQ": of_shapiq("SHAPIQ", index="BV", max_order=1, pairing_trick=True),
    "RegressionFBII": of_shapiq("RegressionFBII", max_order=1, pairing_trick=True),
    "ProxySHAP": of_shapiq("ProxySHAP", index="BV", max_order=1),
    "RegressionMSR xgboost": of_shapiq("RegressionMSR", index="BV"),
    "RegressionMSR lightgbm": of_shapiq(
        "RegressionMSR", index="BV", proxy_model="lightgbm"
    ),
    "RegressionMSR linear": of_shapiq(
        "RegressionMSR", index="BV", proxy_model="linear"
    ),
    "RegressionMSR 5 folds": of_shapiq("RegressionMSR", index="BV", k_folds=5),
}
