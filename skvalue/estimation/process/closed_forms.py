"""Covariances of the utilities of coalitions with semivalues, in closed form.

A semivalue is linear in the game: ``phi_i = sum_S W_i(S) v(S)`` with ``W_i(S) =
p[s-1]`` for coalitions with player i and ``-p[s]`` for those without, and ``p[k] = q[k]
/ binom(n - 1, k)``. So is the interaction of two players, whose weights are ``p2[s-2]``
for coalitions with both, ``-p2[s-1]`` with one and ``p2[s]`` with none of them. With
the kernel k of `kernel.py`, the sums ``c_i(T) = sum_S W_i(S) k(S, T)`` and
``sum_S W_i(S) c_i(S)`` over all 2^n coalitions have closed forms, for any q:

- the term of sizes depends on i by no more than its weight;
- a main effect of size s is a game ``a_s (x_j - s/n)``, whose values are the same for
  all other players;
- white noise adds one coalition;
- the sum of the product over the coalitions of a size is a coefficient of a polynomial
  ``prod_j (e_j(0) + z e_j(1))``. Products without a player are those of the players
  before it times those after it: all terms are positive, so that nothing cancels, as
  it would by a division.

The empty coalition is no part of the process: its utility is often far from the others.
"""

from itertools import combinations
from math import comb

import numpy as np

_ENTRIES = 2**22  # of the polynomials in memory at once


def semivalue_weights(q):
    """Weights of one coalition of each size 0..n with, and without, a player.

    Two arrays of shape (n + 1,); those without are subtracted.
    """
    n = len(q)
    p = q / np.array([comb(n - 1, k) for k in range(n)], dtype=np.float64)
    return np.append(0.0, p), np.append(p, 0.0)


def pair_weights(q):
    """Weights of one coalition of each size 0..n with both, one and none of a pair.

    ``q``, (n - 1,), are the probabilities of the sizes of the coalition that the pair
    joins. Three arrays of shape (n + 1,); the second is subtracted.
    """
    n = len(q) + 1
    p = q / np.array([comb(n - 2, k) for k in range(n - 1)], dtype=np.float64)
    both = np.concatenate([[0.0, 0.0], p])
    one = np.concatenate([[0.0], p, [0.0]])
    none = np.concatenate([p, [0.0, 0.0]])
    return both, one, none


def mean_squared_weights(q):
    """Mean squares of the weights of a coalition of each size in values, (n + 1,)."""
    n = len(q)
    joined, left = semivalue_weights(q)
    sizes = np.arange(n + 1)
    return sizes / n * joined**2 + (n - sizes) / n * left**2


def mean_squared_pair_weights(q):
    """As `mean_squared_weights`, in the interactions of pairs."""
    n = len(q) + 1
    sizes = np.arange(n + 1)
    both, one, none = pair_weights(q)
    # Of the pairs of n players, those with both, one and none in a coalition.
    with_both = sizes * (sizes - 1)
    with_one = 2 * sizes * (n - sizes)
    with_none = (n - sizes) * (n - sizes - 1)
    squares = with_both * both**2 + with_one * one**2 + with_none * none**2
    return squares / (n * (n - 1))


def utility_weights(masks, q):
    """Weights of the utilities of coalitions in the semivalues, both (m, n)."""
    joined, left = semivalue_weights(q)
    sizes = masks.sum(axis=1)
    return np.where(masks, joined[sizes][:, None], -left[sizes][:, None])


def utility_pair_weights(masks, q):
    """As `utility_weights`, in the interactions of pairs, (m, n (n - 1) / 2)."""
    both, one, none = pair_weights(q)
    first, second = np.array(list(combinations(range(masks.shape[1]), 2))).T
    n_members = masks[:, first].astype(np.int64) + masks[:, second]
    sizes = masks.sum(axis=1)
    return np.stack([none, -one, both])[n_members, sizes[:, None]]


# Semivalues ---------------------------------------------------------------------------


def utility_covariances(masks, hyper, q):
    """Covariances of utilities with semivalues.

    Parameters
    ----------
    masks : ndarray of bool of shape (m, n)
        Coalitions, none of them empty.
    hyper : Hyper
        The hyperparameters.
    q : ndarray of shape (n,)
        Probabilities of sizes, see `skvalue.semivalues.size_weights`.

    Returns
    -------
    covariances : ndarray of shape (m, n)
        One for each coalition and player.
    """
    n = hyper.n
    sizes = masks.sum(axis=1)
    joined, left = semivalue_weights(q)

    # Mean utilities of sizes: the same for all players.
    all_sizes = np.arange(1, n + 1)
    differences = np.append(0.0, q) - np.append(q, 0.0)
    of_sizes = hyper.of_sizes(sizes, all_sizes) @ differences[1:]
    covariances = np.repeat(of_sizes[:, None], n, axis=1)

    # Main effects: a value of the player's own effect, another of all other effects.
    own, other = _main_values(hyper, q)
    effects = hyper.relevance * (masks - sizes[:, None] / n)
    values = other * effects.sum(axis=1, keepdims=True) + (own - other) * effects
    scales = hyper.scales(sizes) * hyper.input_scales(sizes)
    covariances += hyper.main_variance / (n / 4) * scales[:, None] * values

    # White noise: of the coalition itself.
    covariances += hyper.noise(sizes)[:, None] * utility_weights(masks, q)

    # Interactions, in tiles of coalitions.
    for tile in _tiles(len(masks), n):
        covariances[tile] += _product_covariances(masks[tile], hyper, joined, left)
    return covariances


def prior_variances(hyper, q):
    """Variances of the semivalues before any utility is known, (n,)."""
    n = hyper.n
    sizes = np.arange(1, n + 1)
    joined, left = semivalue_weights(q)

    differences = (np.append(0.0, q) - np.append(q, 0.0))[1:]
    variances = np.full(n, differences @ hyper.of_sizes(sizes, sizes) @ differences)

    own, other = _main_values(hyper, q)
    relevance = hyper.relevance
    squares = other**2 * relevance.sum() + (own**2 - other**2) * relevance
    variances += hyper.main_variance / (n / 4) * squares

    n_with = np.array([comb(n - 1, s - 1) for s in sizes], dtype=np.float64)
    n_without = np.array([comb(n - 1, s) for s in sizes], dtype=np.float64)
    squared_weights = n_with * joined[1:] ** 2 + n_without * left[1:] ** 2
    variances += (hyper.noise(sizes) * squared_weights).sum()

    return variances + _product_variances(hyper, joined, left)


def _main_values(hyper, q):
    """Semivalues of the game ``a_s (x_j - s/n)``: of player j, and of any other.

    ``a_s = g_s f_s``; the values of all players sum to zero.
    """
    n = hyper.n
    sizes = np.arange(n + 1)
    scales = hyper.scales(sizes) * hyper.input_scales(sizes)
    scales[0] = 0.0  # the empty coalition is no part of the process
    joined = np.append(0.0, q)
    left = np.append(q, 0.0)
    own = (scales * (joined * (1 - sizes / n) + left * sizes / n)).sum()
    return own, -own / (n - 1)


# Products over players ----------------------------------------------------------------


def _tiles(m, n):
    """Slices of m coalitions whose polynomials fit into memory."""
    length = max(1, _ENTRIES // (n * (n + 2) ** 2))
    return [slice(first, first + length) for first in range(0, m, length)]


def _product_factors(masks, hyper):
    """Factors of the products of coalitions T with those S of each size 1..n.

    Returns ``e_j(0)`` of players j that are not in S and ``e_j(1)`` of those that are,
    both (m, n sizes, n players), and the variances, (m, n sizes).
    """
    n = hyper.n
    sizes = masks.sum(axis=1)
    all_sizes = np.arange(1, n + 1)
    rates = hyper.product_rate * hyper.relevance / (n / 2)
    inputs = (masks * hyper.input_scales(sizes)[:, None])[:, None, :]
    of_members = hyper.input_scales(all_sizes)[:, None]
    present = np.exp(-rates * (of_members - inputs) ** 2)
    absent = np.broadcast_to(np.exp(-rates * inputs**2), present.shape)
    scales = np.outer(hyper.scales(sizes), hyper.scales(all_sizes))
    return absent, present, hyper.product_variance * scales


def _products_before(absent, present):
    """Coefficients of ``prod_{j < i} (absent_j + z present_j)`` for every i.

    The players are on the last axis of the factors, and on the first of the result,
    whose last axis has the powers of z up to their number.
    """
    n = absent.shape[-1]
    product = np.zeros((n, *absent.shape[:-1], n + 1))
    product[0, ..., 0] = 1.0
    for j in range(n - 1):
        product[j + 1] = absent[..., j, None] * product[j]
        product[j + 1, ..., 1:] += present[..., j, None] * product[j, ..., :-1]
    return product


def _products_after(absent, present):
    """As `_products_before`, of the players after every player."""
    reverse = slice(None, None, -1)
    return _products_before(absent[..., reverse], present[..., reverse])[reverse]


def _coefficients(before, after, degree):
    """Coefficient of a degree in the product of two polynomials of every player.

    From (players, m, powers) to (m, players).
    """
    reversed_after = after[:, :, degree::-1]
    return np.einsum("ima,ima->mi", before[:, :, : degree + 1], reversed_after)


def _product_covariances(masks, hyper, joined, left):
    """The part of the interactions in `utility_covariances`."""
    m, n = masks.shape
    absent, present, variances = _product_factors(masks, hyper)
    before = _products_before(absent, present)
    after = _products_after(absent, present)
    covariances = np.zeros((m, n))
    for number in range(n):
        size = number + 1
        head = before[:, :, number]
        tail = after[:, :, number]
        with_player = present[:, number] * _coefficients(head, tail, size - 1)
        of_size = joined[size] * with_player
        if size < n:
            without_player = absent[:, number] * _coefficients(head, tail, size)
            of_size = of_size - left[size] * without_player
        covariances += variances[:, number, None] * of_size
    return covariances


def _product_variances(hyper, joined, left):
    """The part of the interactions in `prior_variances`: polynomials of two variables.

    Over pairs of coalitions of sizes s and t, the coefficients (s, t) of ``prod_j (1 +
    z a_j(s) + u a_j(t) + z u b_j(s, t))`` with ``a_j(s) = exp(-c w_j f_s^2)`` for a
    member of one and ``b_j(s, t) = exp(-c w_j (f_s - f_t)^2)`` for a member of both.
    """
    n = hyper.n
    rates = hyper.product_rate * hyper.relevance / (n / 2)
    all_sizes = np.arange(1, n + 1)
    input_scales = hyper.input_scales(all_sizes)
    of_one = np.exp(-rates * input_scales[:, None] ** 2)
    scales = hyper.scales(all_sizes)
    variances = np.zeros(n)
    for s in all_sizes:
        if joined[s] == 0 and left[s] == 0:
            continue
        # Pairs of different sizes count twice.
        sizes = np.arange(s, n + 1)
        in_first = of_one[s - 1]
        in_second = of_one[sizes - 1]
        gaps = input_scales[s - 1] - input_scales[sizes - 1]
        in_both = np.exp(-rates * gaps[:, None] ** 2)
        before = _bivariate_before(in_first, in_second, in_both, s)
        after = _bivariate_before(
            in_first[::-1], in_second[:, ::-1], in_both[:, ::-1], s
        )[::-1]
        for row, t in enumerate(sizes):
            head = before[:, row]
            tail = after[:, row]
            terms = joined[s] * joined[t] * in_both[row]
            terms = terms * _bivariate_coefficients(head, tail, s - 1, t - 1)
            first_only = joined[s] * left[t] * in_first
            terms -= first_only * _bivariate_coefficients(head, tail, s - 1, t)
            second_only = left[s] * joined[t] * in_second[row]
            terms -= second_only * _bivariate_coefficients(head, tail, s, t - 1)
            neither = left[s] * left[t]
            terms += neither * _bivariate_coefficients(head, tail, s, t)
            n_orders = 1 if t == s else 2
            variances += n_orders * scales[s - 1] * scales[t - 1] * terms
    return hyper.product_variance * variances


def _bivariate_before(in_first, in_second, in_both, s):
    """As `_products_before`, with powers of z up to s and of u up to n.

    From (n,) and twice (pairs, n) to (n, pairs, s + 1, n + 1).
    """
    n_pairs, n = in_both.shape
    product = np.zeros((n, n_pairs, s + 1, n + 1))
    product[0, :, 0, 0] = 1.0
    for j in range(n - 1):
        second = in_second[:, j, None, None]
        both = in_both[:, j, None, None]
        product[j + 1] = product[j]
        product[j + 1, :, 1:, :] += in_first[j] * product[j, :, :-1, :]
        product[j + 1, :, :, 1:] += second * product[j, :, :, :-1]
        product[j + 1, :, 1:, 1:] += both * product[j, :, :-1, :-1]
    return product


def _bivariate_coefficients(before, after, s, t):
    """Coefficient (s, t) in the product of two polynomials of every player, (n,)."""
    n = len(before)
    if s >= n or t >= n:  # without a player there are n - 1
        return np.zeros(n)
    reversed_after = after[:, s::-1, t::-1]
    return np.einsum("iab,iab->i", before[:, : s + 1, : t + 1], reversed_after)


# Interactions of two players ----------------------------------------------------------


def pair_covariances(masks, hyper, q):
    """Covariances of utilities with the interactions of pairs of players.

    Parameters
    ----------
    masks : ndarray of bool of shape (m, n)
        Coalitions, none of them empty.
    hyper : Hyper
        The hyperparameters.
    q : ndarray of shape (n - 1,)
        Probabilities of the sizes of the coalition that the pair joins: those of the
        semivalue of n - 1 players.

    Returns
    -------
    covariances : ndarray of shape (m, n (n - 1) / 2)
        The pairs are in the order of ``itertools.combinations(range(n), 2)``.
    """
    n = hyper.n
    sizes = masks.sum(axis=1)
    both, one, none = pair_weights(q)
    first, second = np.array(list(combinations(range(n), 2))).T

    # Mean utilities of sizes: the weights of all coalitions of a size.
    with_both = np.concatenate([[0.0, 0.0], q])
    with_one = np.concatenate([[0.0], q, [0.0]])
    with_none = np.concatenate([q, [0.0, 0.0]])
    differences = with_both - 2 * with_one + with_none
    of_sizes = hyper.of_sizes(sizes, np.arange(1, n + 1)) @ differences[1:]
    covariances = np.repeat(of_sizes[:, None], len(first), axis=1)

    # Main effects: an interaction of players in the pair, another of all others.
    own, other = _main_interactions(hyper, with_both, with_one, with_none)
    effects = hyper.relevance * (masks - sizes[:, None] / n)
    of_pairs = effects[:, first] + effects[:, second]
    values = other * effects.sum(axis=1, keepdims=True) + (own - other) * of_pairs
    scales = hyper.scales(sizes) * hyper.input_scales(sizes)
    covariances += hyper.main_variance / (n / 4) * scales[:, None] * values

    # White noise: of the coalition itself.
    covariances += hyper.noise(sizes)[:, None] * utility_pair_weights(masks, q)

    for tile in _tiles(len(masks), n):
        covariances[tile] += _pair_products(masks[tile], hyper, (both, one, none))
    return covariances


def _main_interactions(hyper, with_both, with_one, with_none):
    """Interactions in the game ``a_s (x_j - s/n)``: of pairs with j, and of others.

    From the weights of all coalitions of a size. The interactions of a pair in the
    games of all players j sum to zero.
    """
    n = hyper.n
    sizes = np.arange(n + 1)
    scales = hyper.scales(sizes) * hyper.input_scales(sizes)
    scales[0] = 0.0
    # Of the coalitions with one of the pair, half have j.
    weights = with_both * (1 - sizes / n)
    weights -= with_one * (1 - 2 * sizes / n)
    weights -= with_none * sizes / n
    own = (scales * weights).sum()
    other = -2 * own / (n - 2) if n > 2 else 0.0
    return own, other


def _pair_products(masks, hyper, weights):
    """The part of the interactions of any order in `pair_covariances`."""
    m, n = masks.shape
    both, one, none = weights
    absent, present, variances = _product_factors(masks, hyper)
    covariances = []
    for i in range(n - 1):
        # Polynomials without i and each later player j.
        others = np.delete(np.arange(n), i)
        without_i = (absent[..., others], present[..., others])
        before = _products_before(*without_i)[i:]
        after = _products_after(*without_i)[i:]
        of_player = np.zeros((m, n - 1 - i))
        for number in range(n):
            size = number + 1
            head = before[:, :, number]
            tail = after[:, :, number]
            present_i = present[:, number, i, None]
            absent_i = absent[:, number, i, None]
            present_j = present[:, number, i + 1 :]
            absent_j = absent[:, number, i + 1 :]

            of_size = np.zeros_like(of_player)
            if size >= 2:
                with_both = present_i * present_j
                of_size += both[size] * with_both * _coefficients(head, tail, size - 2)
            if size <= n - 1:
                with_one = present_i * absent_j + absent_i * present_j
                of_size -= one[size] * with_one * _coefficients(head, tail, size - 1)
            if size <= n - 2:
                with_none = absent_i * absent_j
                of_size += none[size] * with_none * _coefficients(head, tail, size)
            of_player += variances[:, number, None] * of_size
        covariances.append(of_player)
    return np.concatenate(covariances, axis=1)
