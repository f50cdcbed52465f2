"""Values adjusted by control variates: a surrogate of the utility, with known expectations.

With features x(S) of coalitions whose expectations given stratum k and that a player i is a member
(or not) are known, ``m_ki = E[x(S) | k, i]``, and coefficients beta_f that are fitted on the other
folds of the coalitions than f, the mean utility is estimated by

    ``sum_S a(S) r(S) / sum_S a(S) + sum_f (A_kif / A_ki) m_ki'beta_f``

with ``r(S) = v(S) - x(S)'beta_f``, importance weights a and their sums A_kif over a fold. Given
the other folds beta_f is a constant, so that this is unbiased however bad the fit is; its error is
that of the residuals r.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._utils.parallel import one_thread
from .design import ENTRIES

FEWEST = 1024  # coalitions that a surrogate needs
FOLDS = 5
_RIDGES = (1.0, 10.0, 100.0, 1000.0)
_PER_PLAYER, _MOST_PLAYERS = 20, 500  # coalitions per player for "additive", and players
_ROWS = 4096  # coalitions whose features are computed at once
_GROWTH = 1.25  # of the number of coalitions between two fits, where goals are checked


@dataclass(frozen=True)
class Adjustment:
    """How a design adjusts its values.

    ``make(strata, kinds)`` returns `Controls` of some kinds. The adjusted values are used if the
    ratio of their standard errors to the plain ones is less than `largest_ratio`.
    """

    make: Callable
    kinds: tuple
    largest_ratio: float = np.inf

    def kinds_for(self, n_players, count):
        """The kinds of features for a number of coalitions."""
        many = n_players <= _MOST_PLAYERS and count >= _PER_PLAYER * n_players
        return tuple(kind for kind in self.kinds if many or kind != "additive")


def is_due(before, count):
    """Whether surrogates are fitted again at a number of coalitions, for a check of goals.

    `before` is their number at the last opportunity.
    """
    steps = [np.floor(np.log(max(m, 1) / FEWEST) / np.log(_GROWTH)) for m in (before, count)]
    return count >= FEWEST and steps[1] > steps[0]


@dataclass(frozen=True)
class Surrogate:
    """Linear functions of the features of coalitions, one for every fold.

    Of a coalition of stratum k in fold f, the surrogate is
    ``factors[f, k] * (x @ coefficients[:, f] - offsets[f, k])``.
    """

    coefficients: np.ndarray  # (n_features, n_folds)
    offsets: np.ndarray  # (n_folds, n_strata)
    factors: np.ndarray  # (n_folds, n_strata), in [0, 1]
    predictions: np.ndarray  # (m,), of the coalitions it was fitted on, out of fold

    def expected(self, controls):
        """Expectations of every fold's surrogate, with and without every player.

        Two arrays of shape (n_folds, n_strata, n).
        """
        return [
            self.factors[:, :, None] * (side.transpose(2, 0, 1) - self.offsets[:, :, None])
            for side in controls.expected(self.coefficients)
        ]


def fold_of(count, size):
    """Fold of each of some coalitions, which come in blocks of ``size``."""
    return np.arange(count) // size % FOLDS


def fit_surrogate(controls, described, labels, gains, folds, weights):
    """Ridge regression of the gains on features, cross-fitted.

    The coefficients of a fold are those of the other folds. Features and gains are centered by
    stratum, and features scaled. One fold chooses the ridge, for all.

    Parameters
    ----------
    controls : Controls
        The features, see `skvalue.estimation.controls`.
    described : ndarray of shape (m, n_described)
        The coalitions, described by the controls.
    labels, folds : ndarrays of int of shape (m,)
        Their strata and folds.
    gains : ndarray of shape (m,)
        Their utilities less the empty one.
    weights : ndarray of shape (n_strata,)
        Weight of each coalition of a stratum.

    Returns
    -------
    surrogate : Surrogate
        The fit.
    """
    n_strata, p = controls.n_strata, controls.n_features
    counts, sums = (_by_fold(folds, labels, n_strata, w) for w in (None, gains))
    others = counts.sum(axis=0) - counts
    means = (sums.sum(axis=0) - sums) / np.maximum(others, 1)  # of the other folds
    weights = weights * len(gains) / max((weights * counts.sum(axis=0)).sum(), 1e-300)
    rows = [np.flatnonzero(labels == k) for k in range(n_strata)]
    centers, grams = [None] * n_strata, np.zeros((FOLDS, p, p))
    products = np.zeros((2, FOLDS, p))  # with the gains, of the other folds, and of the fold itself
    for k in np.flatnonzero(weights * counts.sum(axis=0)):
        totals = [controls.block(described[part], k).sum(axis=0) for part in _parts(rows[k])]
        centers[k] = np.sum(totals, axis=0) / len(rows[k])
        left = gains - means[0, k]
        gram, first, cross = _sums(controls, described, left, folds, rows[k], k, centers[k])
        runs = _runs(controls.columns(k))
        for (a, here), (b, there) in itertools.product(runs, runs):
            grams[:, here, there] += weights[k] * gram[:, a, b]
        for f in range(FOLDS):
            own = cross[f] - (means[f, k] - means[0, k]) * first[f]
            rest = cross.sum(axis=0) - cross[f]
            rest -= (means[f, k] - means[0, k]) * (first.sum(axis=0) - first[f])
            for a, here in runs:
                products[0, f, here] += weights[k] * rest[a]
                products[1, f, here] += weights[k] * own[a]
    coefficients = _ridge(grams, products, len(gains))
    predictions = np.zeros(len(gains))
    offsets = np.zeros((FOLDS, n_strata))
    for k, center in enumerate(centers):
        if center is None:
            continue
        beta = coefficients[controls.columns(k)]
        offsets[:, k] = center @ beta
        for part in _parts(rows[k]):
            found = (controls.block(described[part], k) - center) @ beta
            predictions[part] = found[np.arange(len(part)), folds[part]]
    g, gg, gu = (
        _by_fold(folds, labels, n_strata, x)
        for x in (predictions, predictions**2, predictions * gains)
    )
    # Regression of the gains on the out-of-fold predictions, by stratum: one that predicts nothing
    # gets the factor 0.
    numerator = gu.sum(axis=0) - gu - means * (g.sum(axis=0) - g)
    squares = gg.sum(axis=0) - gg
    factors = np.divide(numerator, squares, out=np.zeros_like(g), where=squares > 0)
    factors = np.clip(factors, 0, 1)
    return Surrogate(coefficients, offsets, factors, factors[folds, labels] * predictions)


def _by_fold(folds, labels, n_strata, weights=None):
    """Sums over the coalitions of every fold and stratum."""
    codes = folds * n_strata + labels
    sums = np.bincount(codes, weights, minlength=FOLDS * n_strata)
    return sums.reshape(FOLDS, n_strata).astype(np.float64)


def _runs(columns):
    """Slices of consecutive columns: of their positions, and of the columns themselves."""
    ends = [0, *(np.flatnonzero(np.diff(columns) != 1) + 1), len(columns)]
    return [
        (slice(a, b), slice(columns[a], columns[a] + b - a)) for a, b in itertools.pairwise(ends)
    ]


def _parts(rows, size=_ROWS):
    return (rows[i : i + size] for i in range(0, len(rows), size))


def _sums(controls, described, gains, folds, rows, stratum, center):
    """Of the centered features of a stratum, for every fold: x'x, sums of x, and x'gains."""
    width = len(center)
    gram, first, cross = (np.zeros((FOLDS, *s)) for s in ((width, width), (width,), (width,)))
    for part in _parts(rows):
        x = controls.block(described[part], stratum) - center
        for f in range(FOLDS):
            own = folds[part] == f
            mine = x[own]
            gram[f] += mine.T @ mine
            first[f] += mine.sum(axis=0)
            cross[f] += mine.T @ gains[part][own]
    return gram, first, cross


def _ridge(grams, products, count):
    """Coefficients of every fold, of shape (p, n_folds), from the sums over each of the folds.

    ``products[0]`` are those of features and gains over the other folds, ``products[1]`` over the
    fold itself.
    """
    whole = grams.sum(axis=0)
    scale = np.sqrt(np.maximum(np.diag(whole), 0) / count)
    used = np.flatnonzero(scale > 1e-9 * scale.max(initial=0.0))
    coefficients = np.zeros((len(scale), FOLDS))
    if not len(used):
        return coefficients
    # Features of mean square 1, so that the unit of the ridge is a coalition.
    scale = scale[used]
    square = np.ix_(used, used)
    others, own = products[:, :, used] / scale

    def solve(f, ridge):
        left = (whole - grams[f])[square] / np.outer(scale, scale)
        left[np.diag_indices(len(used))] += ridge
        return cho_solve(cho_factor(left, overwrite_a=True, check_finite=False), others[f])

    tried = [solve(0, ridge) for ridge in _RIDGES]
    first = grams[0][square] / np.outer(scale, scale)
    best = int(np.argmin([beta @ first @ beta - 2 * beta @ own[0] for beta in tried]))
    coefficients[used] = np.stack(
        [tried[best], *(solve(f, _RIDGES[best]) for f in range(1, FOLDS))], axis=1
    )
    coefficients[used] /= scale[:, None]
    return coefficients


@dataclass(frozen=True)
class Adjusted:
    """Sums of residuals, and the expectations of the surrogate that are added to their means."""

    moments: object  # `SubsetMoments` of the residuals
    inside: np.ndarray  # (n_strata, n)
    outside: np.ndarray
    r2: np.ndarray | None = None  # by stratum, out of fold
    ratio: float = np.nan  # of the standard errors to those without


def adjusted_moments(sample, empty, strata, controls, weights, size):
    """Moments of the residuals of a surrogate, and its exact expectations.

    Parameters
    ----------
    sample : tuple of (masks, described, labels, gains)
        The coalitions in the order in which they were drawn; ``masks(rows)`` returns some of them.
    empty : SubsetMoments
        Moments of no coalitions.
    strata : SizeStrata
        Strata of sizes.
    controls : Controls
        The features.
    weights : ndarray of shape (n_strata,)
        As in `fit_surrogate`.
    size : int
        Number of coalitions per block.

    Returns
    -------
    adjusted : Adjusted
        The sums.
    """
    masks, described, labels, gains = sample
    folds = fold_of(len(gains), size)
    with one_thread():
        surrogate = fit_surrogate(controls, described, labels, gains, folds, weights)
        expected = surrogate.expected(controls)
    residuals = gains - surrogate.predictions
    parts, few = [], max(size, min(_ROWS, ENTRIES // 8 // controls.n_players))
    for f in range(FOLDS):
        moments = empty
        for rows in _parts(np.flatnonzero(folds == f), few):
            some = masks(rows)
            s = some.sum(axis=1)
            moments = moments.add(
                some, labels[rows], residuals[rows], strata.inside[s], strata.outside[s]
            )
        parts.append(moments)
    whole = parts[0]
    for moments in parts[1:]:
        whole = whole.merge(moments)
    sides = []
    for name, exact in zip(("inside", "outside"), expected):
        sums, total = np.stack([getattr(part, name)[0] for part in parts]), getattr(whole, name)[0]
        fractions = np.where(total > 0, sums / np.where(total > 0, total, 1), 1 / FOLDS)
        sides.append((fractions * exact).sum(axis=0))
    return Adjusted(whole, *sides)
