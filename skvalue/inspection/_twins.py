"""Evidence that one party holds copies of another party's rows."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import (
    Bunch,
    check_array,
    check_consistent_length,
    check_random_state,
)

from .._utils.checks import check_names, check_positive

_FEWEST = 3  # rows of a label that a party must have besides the row itself


def _ratios(gaps):
    """Distance from the nearest over that from the second nearest, of each line."""
    two = np.partition(gaps, 1, axis=1)[:, :2] + 1e-12
    return two[:, 0] / two[:, 1]


def twin_parties(X, y, groups, *, threshold=5.0, random_state=0):
    """Test, for each pair of parties, whether one holds copies of the other's rows,
    with noise.

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
    >>> [(str(one), str(other)) for one, other, z in result.pairs]
    [('a', 'c'), ('c', 'a')]
    """
    X, threshold = (
        check_array(X, dtype=np.float64),
        check_positive(threshold, "threshold"),
    )
    check_consistent_length(X, y, groups)
    names, codes = check_names(groups, "groups")
    if len(names) < 2:
        raise ValueError(
            f"groups must name at least two parties. Got {names.tolist()}."
        )
    labels = np.zeros(len(X), int) if y is None else check_names(y, "y")[1]
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    wins, trials = np.zeros((2, len(names), len(names)))
    for label in np.unique(labels):
        parts = [X[(labels == label) & (codes == i)] for i in range(len(names))]
        for i, own in enumerate(parts):
            within = cdist(own, own)
            np.fill_diagonal(within, np.inf)
            for j, other in enumerate(parts):
                size = min(len(own) - 1, len(other))
                if i == j or size < _FEWEST:
                    continue
                there = _ratios(cdist(own, rng.permutation(other)[:size]))
                keys = np.where(np.isinf(within), np.inf, rng.random(within.shape))
                drawn = np.argsort(keys, axis=1)[:, :size]
                here = _ratios(np.take_along_axis(within, drawn, axis=1))
                wins[i, j] += (there < here).sum() + 0.5 * (there == here).sum()
                trials[i, j] += len(own)
    with np.errstate(invalid="ignore"):
        fractions, z = wins / trials, (2 * wins - trials) / np.sqrt(trials)
    large = sorted(
        np.argwhere(z > threshold).tolist(), key=lambda pair: -z[tuple(pair)]
    )
    pairs = [(names[i], names[j], float(z[i, j])) for i, j in large]
    return Bunch(names=names, z=z, fractions=fractions, pairs=pairs)
