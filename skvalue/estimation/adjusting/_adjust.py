"""Values adjusted by control variates: surrogates of the utility, of known expectation.

With features x(S) of coalitions whose expectations given stratum k and that a player i
is a member (or not) are known, ``m_ki = E[x(S) | k, i]``, and coefficients beta_f that
are fitted on the other folds of the coalitions than f, the mean utility is estimated by

    ``sum_S a(S) r(S) / sum_S a(S) + sum_f (A_kif / A_ki) m_ki'beta_f``

with ``r(S) = v(S) - x(S)'beta_f``, importance weights a and their sums A_kif over a
fold. Given the other folds beta_f is a constant, so that this is unbiased however bad
the fit is; its error is that of the residuals r.
"""

from dataclasses import dataclass

import numpy as np

from ..._utils.parallel import one_thread
from ..design import ENTRIES
from ._folds import FOLDS, assign_folds
from ._surrogate import Sample, fit_surrogate, row_tiles

FEWEST = 1024  # coalitions that a surrogate needs
_TILE = 4096  # coalitions whose masks are in memory at once
_GROWTH = 1.25  # of the number of coalitions between two fits, where `tol` is checked

# The features "additive" are two per player: they need many coalitions and few players.
_COALITIONS_PER_PLAYER = 20
_MOST_PLAYERS = 500


@dataclass(frozen=True)
class Adjustment:
    """How a design adjusts its values.

    The adjusted values are used if the ratio of their standard errors to the plain ones
    is less than `largest_ratio`.
    """

    kinds: tuple  # of features, see `skvalue.estimation.adjusting`
    largest_ratio: float = np.inf

    def kinds_for(self, n_players, n_coalitions):
        """The kinds of features for a number of coalitions."""
        few_players = n_players <= _MOST_PLAYERS
        many_coalitions = n_coalitions >= _COALITIONS_PER_PLAYER * n_players
        if few_players and many_coalitions:
            return self.kinds
        return tuple(kind for kind in self.kinds if kind != "additive")


@dataclass(frozen=True)
class Adjusted:
    """Sums of residuals, and the expectations that are added to their means.

    Parameters
    ----------
    moments : SubsetMoments
        Those of the residuals.
    inside, outside : ndarrays of shape (n_strata, n_players)
        The second sum of the formula, with and without every player.
    predictions : ndarray of shape (m,)
        The surrogate of each coalition.
    inside_by_fold, outside_by_fold : ndarrays of shape (n_folds, n_strata, n_players)
        Expectations of the surrogate of each fold.
    ratio : float, default=nan
        Standard errors of the values over those without the adjustment.
    """

    moments: object
    inside: np.ndarray
    outside: np.ndarray
    predictions: np.ndarray
    inside_by_fold: np.ndarray
    outside_by_fold: np.ndarray
    ratio: float = np.nan


def refit_due(n_before, n_coalitions):
    """Whether surrogates are fitted again, for a check of `tol`.

    From the numbers of coalitions at the last opportunity, and now.
    """
    if n_coalitions < FEWEST:
        return False
    return _n_growths(n_coalitions) > _n_growths(n_before)


def _n_growths(n_coalitions):
    """Number of times that the first fit's coalitions grew by `_GROWTH`."""
    return np.floor(np.log(max(n_coalitions, 1) / FEWEST) / np.log(_GROWTH))


def adjusted_moments(
    coalitions, labels, gains, *, kinds, rows, strata, weights, no_moments, block_size
):
    """Moments of the residuals of a surrogate, and its exact expectations.

    Parameters
    ----------
    coalitions : Coalitions
        The m coalitions of a design, in the order in which they were drawn.
    labels : ndarray of int of shape (m,)
        Their strata.
    gains : ndarray of shape (m,)
        Their utilities less the empty one.
    kinds : tuple of str
        Kinds of features, see `make_controls`.
    rows : dict
        What features need of the rows: keywords of `make_controls`.
    strata : SizeStrata
        Strata of sizes.
    weights : ndarray of shape (n_strata,)
        Weight of a squared residual of a coalition.
    no_moments : SubsetMoments
        Moments of no coalitions.
    block_size : int
        Number of coalitions per block.

    Returns
    -------
    adjusted : Adjusted
        The sums.
    """
    sample = Sample(
        described=coalitions.describe(kinds, strata, rows),
        labels=labels,
        folds=assign_folds(len(gains), block_size),
        gains=gains,
    )
    controls = coalitions.controls
    with one_thread():
        surrogate = fit_surrogate(controls, sample, weights)
        inside_by_fold, outside_by_fold = surrogate.expected(controls)

    # Sums over residuals, by fold: the sums A_kif of their weights are needed, too.
    residuals = gains - surrogate.predictions
    tile_size = max(block_size, min(_TILE, ENTRIES // 8 // controls.n_players))
    by_fold = []
    for fold in range(FOLDS):
        moments = no_moments
        for tile in row_tiles(np.flatnonzero(sample.folds == fold), tile_size):
            masks = coalitions.masks(tile)
            moments = moments.add(masks, labels[tile], residuals[tile], strata)
        by_fold.append(moments)

    moments = by_fold[0]
    for of_fold in by_fold[1:]:
        moments = moments.merge(of_fold)

    return Adjusted(
        moments=moments,
        inside=_mean_over_folds([m.inside[0] for m in by_fold], inside_by_fold),
        outside=_mean_over_folds([m.outside[0] for m in by_fold], outside_by_fold),
        predictions=surrogate.predictions,
        inside_by_fold=inside_by_fold,
        outside_by_fold=outside_by_fold,
    )


def _mean_over_folds(weights, expected):
    """``sum_f (A_kif / A_ki) m_ki'beta_f``, of shape (n_strata, n_players).

    From the weights A_kif and the expectations, both (n_folds, n_strata, n_players).
    """
    weights = np.stack(weights)
    total = weights.sum(axis=0)
    # Without coalitions no fold is better than another: all count the same.
    fractions = np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / FOLDS)
    return (fractions * expected).sum(axis=0)
