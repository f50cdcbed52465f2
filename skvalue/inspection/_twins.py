"""Evidence that one party holds copies of another party's rows."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.utils import (
    Bunch,
    check_array,
    check_consistent_length,
    check_random_state,
    gen_batches,
)

from .._utils.checks import check_names, check_positive

# Rows of a label that a party must have besides the row itself.
_MIN_OTHER_ROWS = 3

# Arrays of distances that are there at one time.
_N_ARRAYS = 6


def twin_parties(X, y, groups, *, threshold=5.0, random_state=0):
    """Test, for each pair of parties, whether one has noisy copies of the other's rows.

    A copy has one twin and no other: its source is much nearer than the second nearest
    row. For each row of party A, the ratio of its distances from the nearest and the
    second nearest row of its label in party B is compared with the same ratio among A's
    other rows, of which as many are drawn. Without copies either one is the smaller
    with the same probability, also if A and B have a region in common that others do
    not have, so that the sign test over A's rows has a standard normal statistic.

    The result is evidence for a person, who asks both parties where the rows come from;
    it is no rule of payment. It finds copies that are moved by about one distance
    between neighbours, which no radius finds; it needs about 100 rows per party (about
    30 of them can reach a z of 5), and does not see copies within one name.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows, with columns of comparable scales.
    y : array-like of shape (n_samples,) or None
        Their labels; copies keep theirs. None compares rows of all labels, as for
        targets.
    groups : array-like of shape (n_samples,)
        Party of every row.
    threshold : float, default=5.0
        Pairs of a larger z are in ``pairs``.
    random_state : int, RandomState instance or None, default=0
        Controls which rows are drawn where parties differ in size.

    Returns
    -------
    result : Bunch
        ``names``, ndarray of shape (n_parties,); ``z``, ndarray of shape (n_parties,
        n_parties), where line i is about the rows of party i and column j about their
        twins in party j (NaN if i is j or either has too few rows of each label);
        ``fractions``, of the same shape, of the rows whose ratio is smaller there, one
        half without copies; ``pairs``, a list of ``(party, party with the twins, z)``,
        the largest z first.

    Raises
    ------
    ValueError
        If lengths differ, X is not finite, or there is one party.

    Examples
    --------
    Party "c" has the rows of party "a", moved:

    >>> import numpy as np
    >>> from skvalue.inspection import twin_parties
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> X[200:] = X[:100] + 0.1 * rng.normal(size=(100, 5))
    >>> result = twin_parties(X, None, np.repeat(["a", "b", "c"], 100))
    >>> [(str(party), str(other)) for party, other, z in result.pairs]
    [('a', 'c'), ('c', 'a')]
    """
    X = check_array(X, dtype=np.float64)
    threshold = check_positive(threshold, "threshold")
    check_consistent_length(X, y, groups)
    names, codes = check_names(groups, "groups")
    if len(names) < 2:
        raise ValueError(
            f"groups must name at least two parties. Got {names.tolist()}."
        )
    labels = np.zeros(len(X), dtype=np.int64)
    if y is not None:
        _, labels = check_names(y, "y")

    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    wins, n_trials = _count_wins(X, labels, codes, rng)
    with np.errstate(invalid="ignore"):
        fractions = wins / n_trials
        z = (2 * wins - n_trials) / np.sqrt(n_trials)

    suspects = np.argwhere(z > threshold).tolist()
    suspects.sort(key=lambda pair: -z[tuple(pair)])
    pairs = [(names[i], names[j], float(z[i, j])) for i, j in suspects]
    return Bunch(names=names, z=z, fractions=fractions, pairs=pairs)


def _count_wins(X, labels, codes, rng):
    """Number of rows whose ratio is smaller in another party, and of rows compared.

    Both are of shape (n_parties, n_parties); equal ratios count one half.
    """
    n_parties = codes.max() + 1
    wins = np.zeros((n_parties, n_parties))
    n_trials = np.zeros((n_parties, n_parties))
    for label in np.unique(labels):
        of_label = labels == label
        parties = [X[of_label & (codes == i)] for i in range(n_parties)]
        for i, rows in enumerate(parties):
            for j, other_rows in enumerate(parties):
                # Ratios depend on the number of rows that are searched, so it is the
                # same in both parties.
                n_searched = min(len(rows) - 1, len(other_rows))
                if i == j or n_searched < _MIN_OTHER_ROWS:
                    continue
                searched = rng.permutation(other_rows)[:n_searched]
                wins[i, j] += _count_smaller_ratios(rows, searched, rng)
                n_trials[i, j] += len(rows)
    return wins, n_trials


def _count_smaller_ratios(rows, searched, rng):
    """Number of rows whose ratio is smaller among the rows that are searched.

    It is compared with the ratio among as many of the other rows of the party itself.
    """
    n_smaller = 0.0
    bytes_per_row = 8 * _N_ARRAYS * len(rows)
    batch_size = int(get_config()["working_memory"] * 2**20 // bytes_per_row)
    for batch in gen_batches(len(rows), max(1, batch_size)):
        ratios = _neighbor_ratios(cdist(rows[batch], searched))

        # A row is not its own neighbour.
        distances = cdist(rows[batch], rows)
        own_columns = np.arange(batch.start, batch.stop)
        distances[np.arange(len(distances)), own_columns] = np.inf
        own_ratios = _neighbor_ratios(_draw_columns(distances, len(searched), rng))
        n_ties = (ratios == own_ratios).sum()
        n_smaller += (ratios < own_ratios).sum() + 0.5 * n_ties
    return n_smaller


def _neighbor_ratios(distances):
    """Distance to the nearest over that to the second nearest, of each line."""
    # The small number makes the ratio of two rows at distance 0 a 1.
    nearest = np.partition(distances, 1, axis=1)[:, :2] + 1e-12
    return nearest[:, 0] / nearest[:, 1]


def _draw_columns(distances, n_columns, rng):
    """A random choice of `n_columns` finite entries of each line."""
    keys = np.where(np.isinf(distances), np.inf, rng.random(distances.shape))
    columns = np.argsort(keys, axis=1)[:, :n_columns]
    return np.take_along_axis(distances, columns, axis=1)
