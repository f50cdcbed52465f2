"""Folds of the coalitions of a design: whole blocks, which take turns."""

import numpy as np

FOLDS = 5


def assign_folds(n_coalitions, block_size):
    """Fold of every coalition, of shape (n_coalitions,)."""
    return np.arange(n_coalitions) // block_size % FOLDS


def sum_by_fold(folds, labels, n_strata, terms=None):
    """Sums of terms (m,) over the coalitions of every fold and stratum.

    Numbers of coalitions without terms; both of shape (n_folds, n_strata).
    """
    cells = folds * n_strata + labels
    sums = np.bincount(cells, terms, minlength=FOLDS * n_strata)
    return sums.reshape(FOLDS, n_strata).astype(np.float64)


def other_folds(sums):
    """Sums over the other folds than each one, from the sums over each (first axis)."""
    return sums.sum(axis=0) - sums
