"""Tables of the KNN-Shapley games: values as a function of rank."""

from typing import NamedTuple

import numpy as np

from ._sizes import near_rows


class ClassTables(NamedTuple):
    """Tables of the classification game of n players, see `class_game`.

    (A NamedTuple, which compiled loops take.)

    ``inv[r] = 1 / max(r, k)``, for another semivalue `SizeTables.near`, with cumulative
    sums ``sums``; the value at rank r is ``matches * base_match + base + match * (gain
    + inv[r]) - sum_{j > r} match_j drop_j`` with ``drop_j = inv[j - 1] - inv[j]``.
    """

    n: int
    votes: int
    inv: np.ndarray
    sums: np.ndarray
    base: float
    base_match: float
    gain: float


class TargetTables(NamedTuple):
    """Tables of the regression game of n players, see `target_game`.

    (A NamedTuple, which compiled loops take.)

    With z_r the centred target at rank r, u that of the point, and Z_r the sum of z
    before r, the value at rank r is ``base - a_r z_r^2 - 2 z_r (b_r Z_r + sum_{j > r}
    b_{j-1} z_j) + 2 u q_r z_r + sum_{j > r} ((a_{j-1} - a_j) z_j^2 + 2 (b_{j-1} - b_j)
    z_j Z_j - 2 u (q_{j-1} - q_j) z_j)``.
    """

    n: int
    votes: int
    weight: float
    soft: bool
    a: np.ndarray
    b: np.ndarray
    q: np.ndarray
    # Coefficients of ``n base``: with the sum S of all z and the sum Q of their
    # squares, ``2 u d1 S + e1 Q + e2 (S^2 - Q)``.
    d1: float
    e1: float
    e2: float
    # n times the probability that a player joins the empty coalition.
    alone: float


class VoteTables(NamedTuple):
    """Tables of the game of a majority vote, see `vote_game`.

    (A NamedTuple, which compiled loops take.)

    ``steps[r]`` is the probability that the coalition that a row joins has K - 1 of the
    r - 1 nearest others and the next one; ``sizes[c, d, s]`` that it has s rows, in the
    game of the classes c and d.
    """

    n: int
    n_neighbors: int
    # The largest weight; 1 without weights.
    scale: int
    empty: float
    steps: np.ndarray
    sizes: np.ndarray


def class_game(
    n,
    n_neighbors,
    n_classes,
    utility="soft",
    semivalue="shapley",
    min_coalition=0,
    empty=None,
):
    """Tables of the classification game: values as a function of rank.

    With matches m_r in order of distance, k = min(K, n) for "soft" and k = K for
    "original", and h = H_k - 1 for "soft" and 0 for "original", the Shapley value at
    rank r is

        ``-h M / (n (n - 1)) - [soft] / (C n) + m_r (h / (n - 1) + 1 / max(r, k))
        - sum_{j > max(r, k)} m_j / (j (j - 1))``,   M the number of matches,

    which is the sum of the recursion of the papers, with k = min(K, n) throughout: as
    printed, the recursion of Wang and Jia is wrong for n < K.

    For another semivalue, 1 / max(r, k) becomes ``near[r]`` of `SizeTables`. With q_s
    the probability that a player joins a coalition of s others, let ``R = q_1 / 2 + ...
    + q_{k-1} / k`` for "soft" and 0 for "original"; then h / n becomes R, 1 / n becomes
    q_0, and h / (n - 1) becomes ``R n / (n - 1) + q_0 - near[n]`` for "soft".

    Parameters
    ----------
    n : int
        Number of players.
    n_neighbors : int
        Number K of neighbours.
    n_classes : int
        Number C of classes.
    utility : {"soft", "original"}, default="soft"
        The game, see `KNNShapleyValuer`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue, see `skvalue.semivalues.check_semivalue`.
    min_coalition : int, default=0
        Number of rows that a coalition has at least.
    empty : float, default=None
        Utility of the empty coalition; None is 1 / C for "soft" and 0 for "original".

    Returns
    -------
    game : ClassTables
        The tables.

    References
    ----------
    Wang and Jia (2023), Theorem 2; Jia et al. (2019), Theorem 1.

    Examples
    --------
    >>> from skvalue.valuers.knn_shapley import class_game
    >>> game = class_game(3, n_neighbors=1, n_classes=2)
    >>> game.n, game.votes
    (3, 1)
    """
    is_soft = utility == "soft"
    votes = min(n_neighbors, n)
    k = votes if is_soft else n_neighbors
    if empty is None:
        empty = is_soft / n_classes

    sizes, inv, _ = near_rows(n, k, semivalue, min_coalition)
    sums = np.concatenate([[0.0], np.cumsum(inv[1:])])
    inv[0] = 1.0 / k

    base = -sizes[0] * empty / n
    base_match = 0.0
    gain = 0.0
    if is_soft:
        h = (sizes[1:] / np.arange(2, votes + 1)).sum()
        others = max(n - 1, 1)
        base_match = -h / (n * others)
        gain = h / others + (sizes[0] - sizes.sum() / votes) / n
    return ClassTables(
        n=n,
        votes=votes,
        inv=inv,
        sums=sums,
        base=float(base),
        base_match=float(base_match),
        gain=float(gain),
    )


def target_game(n, n_neighbors, utility="soft", semivalue="shapley", min_coalition=0):
    """Tables of the regression game: values as a function of rank.

    A coalition S predicts ``p(|S|)`` times the sum of the targets of its ``min(K,
    |S|)`` nearest rows, relative to the mean of the validation targets, with p(s) = 1 /
    min(K, s) for "soft" and 1 / K for "original"; its utility is minus the squared
    error. The rows at ranks i and i + 1 are exchangeable except for their targets, so
    the difference of their values is a weighted sum of the probabilities that fewer
    than K members of a random coalition are nearer (Jia et al. 2019, Theorem 6, for 1 /
    K). The sums of these differences are the tables. They hold for every semivalue,
    with the probabilities of `SizeTables`.

    Parameters
    ----------
    n : int
        Number of players.
    n_neighbors : int
        Number K of neighbours.
    utility : {"soft", "original"}, default="soft"
        The game, see `KNNShapleyValuer`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue, see `skvalue.semivalues.check_semivalue`.
    min_coalition : int, default=0
        Number of rows that a coalition has at least.

    Returns
    -------
    game : TargetTables
        The tables; the docstring of the class has the formula.

    Examples
    --------
    >>> from skvalue.valuers.knn_shapley import target_game
    >>> game = target_game(3, n_neighbors=1)
    >>> game.n, game.votes
    (3, 1)
    """
    is_soft = utility == "soft"
    votes = min(n_neighbors, n)
    sizes, near, joint = near_rows(n, n_neighbors, semivalue, min_coalition)
    others = max(n - 1, 1)
    pairs = max(n - 2, 1)

    # Sizes k of coalitions in which a far row still counts; p(k) and p(k + 1).
    k = np.arange(votes)
    last = 1.0 / n_neighbors
    if is_soft:
        p = 1.0 / np.maximum(k, 1)
        joined = 1.0 / (k + 1)
    else:
        p = np.full(votes, last)
        joined = p

    # Mean over coalitions of p^2 times the event that the row is among the K nearest.
    small = k[: votes - 1]
    pair_sizes = (sizes[:-1] * (n - 1 - small) + sizes[1:] * (small + 1)) / n
    excess = pair_sizes * (joined[: votes - 1] ** 2 - last**2)
    a = excess.sum() / others + last * near
    # The same, and that a given nearer row is in the coalition.
    b = (excess * small).sum() / pairs / others + last**2 * joint
    q = near.copy()

    # The farthest row counts only in coalitions of fewer than K rows.
    c1 = (sizes * joined**2 * k)[1:].sum() / others
    drop = (sizes * (p**2 - joined**2))[1:]
    e1 = (drop * k[1:]).sum() / others
    e2 = (drop * k[1:] * (k[1:] - 1)).sum() / (others * pairs)
    d1 = (sizes * (joined - p) * k)[1:].sum() / others
    b[n] = (c1 + e2) / n
    a[n] = 2 * b[n] + ((sizes * joined**2).sum() - 2 * c1 + e1 - 2 * e2) / n
    q[n] = ((sizes * joined).sum() - d1) / n
    return TargetTables(
        n=n,
        votes=votes,
        weight=1.0 / votes if is_soft else last,
        soft=is_soft,
        a=a,
        b=b,
        q=q,
        d1=float(d1),
        e1=float(e1),
        e2=float(e2),
        alone=float(sizes[0]),
    )


def vote_game(class_counts, n_neighbors, n_bits=0, semivalue="shapley", left_out=False):
    """Tables of the classification game of a majority vote, with or without weights.

    At one validation point a row has the integer weight ``round(2**n_bits * nearest /
    distance)``, or 1 without weights. Against another class, a coalition is right if,
    among its K nearest rows of these two classes, those of the point's class have at
    least as much weight; the utility is the mean over the other classes, and 1/C for
    the empty coalition.

    Let P be the distribution of the sum of the signed weights of K - 1 random rows
    nearer than the one at rank m, without row i of signed weight u, which is nearer,
    too. Row i replaces row m in coalitions whose K-th nearest member is row m, and
    adds, on average, ``steps[m - 1] (P(sum < -u_m) - P(sum < -u))``. The probabilities
    depend on i by its weight u alone, which has at most ``2**(n_bits + 1) + 1`` values:
    the values of all rows take time O(n K^2 2^n_bits), where the algorithm of the paper
    is quadratic in n.

    Parameters
    ----------
    class_counts : array-like of int of shape (n_classes,)
        Number of players of each class.
    n_neighbors : int
        Number K of neighbours.
    n_bits : int, default=0
        Number of bits of a weight; 0 without weights.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue, see `skvalue.semivalues.check_semivalue`.
    left_out : bool, default=False
        Whether a validation point is one of the rows of its class, and does not play
        there.

    Returns
    -------
    game : VoteTables
        The tables.

    References
    ----------
    J. T. Wang, P. Mittal, R. Jia: "Efficient Data Shapley for Weighted Nearest Neighbor
    Algorithms", AISTATS 2024; Theorem 5 and Appendix B.

    Examples
    --------
    >>> from skvalue.valuers.knn_shapley import vote_game
    >>> game = vote_game([3, 2], n_neighbors=3)
    >>> game.n, game.empty
    (5, 0.5)
    """
    class_counts = np.asarray(class_counts)
    n_classes = len(class_counts)
    n = int(class_counts.sum()) - left_out

    near = near_rows(n, n_neighbors, semivalue).near
    steps = np.zeros(n + 1)
    steps[:n] = n_neighbors * (near[:-1] - near[1:])

    # Numbers of players in the game of two classes, and the sizes of its coalitions.
    pair_counts = class_counts[:, None] + class_counts - left_out
    sizes = np.zeros((n_classes, n_classes, n_neighbors))
    for count in np.unique(pair_counts):
        if count > 0:
            pair_sizes = near_rows(int(count), n_neighbors, semivalue).sizes / count
            sizes[pair_counts == count, : len(pair_sizes)] = pair_sizes
    return VoteTables(
        n=n,
        n_neighbors=n_neighbors,
        scale=2**n_bits,
        empty=1.0 / n_classes,
        steps=steps,
        sizes=sizes,
    )
