"""Exact sensitivity over all pairs of neighbouring data sets on a small domain."""

from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from ..._utils.checks import check_count, check_positive, check_relation


@dataclass(frozen=True)
class SensitivityReport:
    """Result of `search_sensitivity`.

    Parameters
    ----------
    found : float
        Largest distance between the statistics of two neighbouring data sets.
    witness : tuple of two lists
        The neighbours of the largest distance.
    passed : bool
        Whether no distance above the claim was found.
    tight : bool
        Whether it passed and 99 % of the claim was reached, so that no noise is wasted.

    Examples
    --------
    >>> from skvalue.privacy.audit import search_sensitivity
    >>> search_sensitivity(sum, [0, 1], 3, claimed=1.0, relation="replace").tight
    True
    """

    found: float
    witness: tuple
    passed: bool
    tight: bool


def search_sensitivity(
    statistic, records, n_rows, *, claimed, relation, norm=2, blank=None
):
    """Largest change of a statistic between neighbouring data sets of a small domain.

    If the statistic of a data set is not finite, or that of its neighbour has another
    shape, the change is infinite: noise cannot hide it.

    Parameters
    ----------
    statistic : callable
        Function from a list of records to a number or an array. It must not depend on
        the order of the records.
    records : sequence
        All possible records.
    n_rows : int
        Number of rows of a data set; all multisets of `n_rows` records are tried.
    claimed : float
        The claimed sensitivity.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.
    norm : {1, 2}, default=2
        Norm of the change.
    blank : record, default=None
        For "null": the record that contributes nothing.

    Returns
    -------
    report : SensitivityReport
        The report; it passes if the largest change is at most the claim.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or "null" has no blank record.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim, A. Smith: "Calibrating Noise to Sensitivity in
    Private Data Analysis", TCC 2006, Definition 2 (L1); L2 likewise.

    Examples
    --------
    >>> def counts(rows):
    ...     return [rows.count("same"), rows.count("other")]
    >>> kinds = ["same", "other", "outside"]
    >>> bound = 2**0.5
    >>> search_sensitivity(counts, kinds, 3, claimed=bound, relation="replace").tight
    True
    >>> search_sensitivity(counts, kinds, 3, claimed=1.0, relation="replace").passed
    False
    """
    n_rows = check_count(n_rows, "n_rows")
    claimed = check_positive(claimed, "claimed")
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2. Got {norm!r}.")
    if check_relation(relation) == "null" and blank is None:
        raise ValueError("blank must be the record that contributes nothing. Got None.")

    # What can stand in the place of a row in a neighbour.
    if relation == "add_remove":
        substitutes = [()]
    elif relation == "null":
        substitutes = [(blank,)]
    else:
        substitutes = [(record,) for record in records]

    largest = 0.0
    witness = ()
    for rows in combinations_with_replacement(records, n_rows):
        exact = np.asarray(statistic(list(rows)), dtype=float)
        for i, substitute in product(range(n_rows), substitutes):
            neighbour = [*rows[:i], *substitute, *rows[i + 1 :]]
            moved = np.asarray(statistic(neighbour), dtype=float)
            distance = _distance(exact, moved, norm)
            if distance > largest:
                largest = distance
                witness = (list(rows), neighbour)
    passed = largest <= claimed * (1 + 1e-9)
    tight = passed and largest >= 0.99 * claimed
    return SensitivityReport(largest, witness, passed, tight)


def _distance(exact, moved, norm):
    """Norm of the change of a statistic; infinite if noise cannot hide it."""
    is_finite = np.isfinite(exact).all() and np.isfinite(moved).all()
    if not is_finite or moved.shape != exact.shape:
        return np.inf
    return float(np.linalg.norm(np.ravel(moved - exact), norm))
