"""Tables of the KNN-Shapley games: values as a function of rank, and the error of `max_rank`."""

import numpy as np


def class_game(n, n_neighbors, n_classes, utility="soft"):
    """Tables of the classification game: values as a function of rank.

    With matches m_r in order of distance, k = min(K, n) for "soft" and k = K for "original", and
    h = H_k - 1 for "soft" and 0 for "original", the Shapley value at rank r is

        ``-h M / (n (n - 1)) - [soft] / (C n) + m_r (h / (n - 1) + 1 / max(r, k))
        - sum_{j > max(r, k)} m_j / (j (j - 1))``,   M the number of matches,

    which is the sum of the recursion of the papers, with k = min(K, n) throughout: as printed, the
    recursion of Wang and Jia is wrong for n < K.

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

    Returns
    -------
    game : ClassGame
        The tables.

    References
    ----------
    Wang and Jia (2023), Theorem 2; Jia et al. (2019), Theorem 1.
    """
    from ._class_kernels import ClassGame

    votes = min(n_neighbors, n)
    soft = utility == "soft"
    inv = 1.0 / np.maximum(np.arange(n + 1), votes if soft else n_neighbors)
    h = (1.0 / np.arange(2, votes + 1)).sum() if soft else 0.0
    pairs = max(n - 1, 1)
    return ClassGame(
        n=n,
        votes=votes,
        inv=inv,
        sums=np.concatenate([[0.0], np.cumsum(inv[1:])]),
        base=-1.0 / (n_classes * n) if soft else 0.0,
        base_match=-h / (n * pairs),
        gain=h / pairs,
    )


def target_game(n, n_neighbors, utility="soft"):
    """Tables of the regression game: values as a function of rank.

    A coalition S predicts ``p(|S|)`` times the sum of the targets of its ``min(K, |S|)`` nearest
    rows, relative to the mean of the validation targets, with p(s) = 1 / min(K, s) for "soft" and
    1 / K for "original"; its utility is minus the squared error. The rows at ranks i and i + 1 are
    exchangeable except for their targets, so the difference of their values is a weighted sum of
    the probabilities that fewer than K members of a random coalition are nearer (Jia et al. 2019,
    Theorem 6, for 1 / K). The sums of these differences are the tables.

    Parameters
    ----------
    n : int
        Number of players.
    n_neighbors : int
        Number K of neighbours.
    utility : {"soft", "original"}, default="soft"
        The game, see `KNNShapleyValuer`.

    Returns
    -------
    game : TargetGame
        The tables; the docstring of the class has the formula.
    """
    from ._target_kernels import TargetGame

    soft = utility == "soft"
    votes = min(n_neighbors, n)
    r = np.arange(n + 1)
    r[0] = 1
    k = np.arange(votes)  # sizes of coalitions in which a far row still counts
    p = 1.0 / np.maximum(k, 1) if soft else np.full(votes, 1.0 / n_neighbors)  # p(k)
    joined = 1.0 / (k + 1) if soft else p  # p(k + 1)
    last = 1.0 / n_neighbors
    others, pairs = max(n - 1, 1), max(n - 2, 1)
    # Mean over coalition sizes of p^2 times the probability that the row is among the K nearest,
    excess = joined[: votes - 1] ** 2 - last**2
    a = (excess.sum() + last**2 * (n - 1) * np.minimum(n_neighbors, r) / r) / others
    # and of p^2 times the probability that it is, and that a given nearer row is in the coalition.
    u = np.minimum(n_neighbors - 1, r - 1)
    both = np.divide(u * (u + 1) / 2, r * (r - 1), out=np.zeros(n + 1), where=r > 1)
    b = ((excess * k[: votes - 1]).sum() / pairs + last**2 * (n - 1) * both) / others
    q = np.minimum(n_neighbors, r) / (r * n_neighbors)
    # The farthest row counts only in coalitions of fewer than K rows.
    from_second = slice(1, None)
    c1 = (joined**2 * k)[from_second].sum() / others
    drop = (p**2 - joined**2)[from_second]
    e1 = (drop * k[from_second]).sum() / others
    e2 = (drop * k[from_second] * (k[from_second] - 1)).sum() / (others * pairs)
    d1 = ((joined - p) * k)[from_second].sum() / others
    b[n] = (c1 + e2) / n
    a[n] = 2 * b[n] + ((joined**2).sum() - 2 * c1 + e1 - 2 * e2) / n
    q[n] = (joined.sum() - d1) / n
    return TargetGame(
        n=n, votes=votes, weight=1.0 / votes if soft else last, soft=soft,
        a=a.astype(float), b=b, q=q, d1=d1, e1=e1, e2=e2,
    )  # fmt: skip


def max_rank_bound(n, max_rank):
    """Bound of the error of values when only the nearest rows are ranked.

    Rows beyond rank R = `max_rank` >= K count as tied. Their values, and the exact ones, are in an
    interval of length 1/(R + 1) - 1/n; the error of the values of nearer rows comes from the
    weights of the ranks beyond R, whose sum is 1/R - 1/n. The sum of the values is exact.

    Parameters
    ----------
    n : int
        Number of players.
    max_rank : int
        Number of ranks.

    Returns
    -------
    bound : float
        Bound of ``|value - exact value|``; 0 if all rows are ranked.

    Examples
    --------
    >>> round(max_rank_bound(n=1000, max_rank=100), 6)
    0.009
    """
    return max(0.0, 1.0 / max_rank - 1.0 / n)
