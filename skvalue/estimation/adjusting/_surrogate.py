"""A surrogate of the utility: ridge regression on features, fitted fold by fold."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._folds import FOLDS, other_folds, sum_by_fold

_RIDGES = (1.0, 10.0, 100.0, 1000.0)
_TILE = 4096  # coalitions whose features are computed at once


class Sample(NamedTuple):
    """The m coalitions that a surrogate is fitted on.

    Parameters
    ----------
    described : ndarray of shape (m, n_described)
        Their description, see `Controls.describe`.
    labels, folds : ndarrays of int of shape (m,)
        Their strata and folds.
    gains : ndarray of shape (m,)
        Their utilities less the empty one.
    """

    described: np.ndarray
    labels: np.ndarray
    folds: np.ndarray
    gains: np.ndarray


class Surrogate(NamedTuple):
    """Linear functions of the features, one for each fold.

    The surrogate of a coalition with features x, in stratum k and fold f, is
    ``factors[f, k] * (x @ coefficients[:, f] - offsets[f, k])``.

    Parameters
    ----------
    coefficients : ndarray of shape (n_features, n_folds)
        Of the features.
    offsets, factors : ndarrays of shape (n_folds, n_strata)
        The factors are between 0 and 1.
    predictions : ndarray of shape (m,)
        The surrogate of the coalitions that it was fitted on, out of fold.
    """

    coefficients: np.ndarray
    offsets: np.ndarray
    factors: np.ndarray
    predictions: np.ndarray

    def expected(self, controls):
        """Expectations given that a player is a member, and that it is not.

        Two arrays of shape (n_folds, n_strata, n_players).
        """
        inside, outside = controls.expected(self.coefficients)
        factors = self.factors[:, :, None]
        offsets = self.offsets[:, :, None]
        inside = factors * (inside.transpose(2, 0, 1) - offsets)
        outside = factors * (outside.transpose(2, 0, 1) - offsets)
        return inside, outside


def fit_surrogate(controls, sample, weights):
    """Ridge regression of the gains on features, cross-fitted.

    The coefficients of a fold are those of the other folds. Features and gains are
    centered by stratum, and features scaled. One fold chooses the ridge, for all.

    Parameters
    ----------
    controls : Controls
        The features, see `skvalue.estimation.adjusting`.
    sample : Sample
        The coalitions.
    weights : ndarray of shape (n_strata,)
        Weight of each coalition of a stratum.

    Returns
    -------
    surrogate : Surrogate
        The fit.
    """
    # On average a coalition has weight 1, which is the unit of the ridge.
    n_drawn = np.bincount(sample.labels, minlength=controls.n_strata).astype(np.float64)
    total_weight = max((weights * n_drawn).sum(), 1e-300)
    weights = weights * len(sample.gains) / total_weight

    gain_means = _gain_means(sample, controls.n_strata)
    equations = _normal_equations(controls, sample, weights, gain_means)
    coefficients = _solve_ridge(equations, len(sample.gains))
    linear, offsets = _predict(controls, sample, coefficients, equations.centers)
    factors = _shrinkage_factors(sample, linear, gain_means)
    predictions = factors[sample.folds, sample.labels] * linear
    return Surrogate(coefficients, offsets, factors, predictions)


def _gain_means(sample, n_strata):
    """Mean gains of the other folds, by stratum, of shape (n_folds, n_strata)."""
    n_others = other_folds(sum_by_fold(sample.folds, sample.labels, n_strata))
    sums = sum_by_fold(sample.folds, sample.labels, n_strata, sample.gains)
    return other_folds(sums) / np.maximum(n_others, 1)


class _NormalEquations(NamedTuple):
    """Weighted sums over the centered features x, p in all, and the centered gains.

    Parameters
    ----------
    grams : ndarray of shape (n_folds, p, p)
        Sums of x'x over each fold.
    products : ndarray of shape (n_folds, p)
        Sums of x'gain over the other folds.
    held_out : ndarray of shape (p,)
        Sum of x'gain over the first fold, whose gains are centered by the others.
    centers : dict of int to ndarray of shape (n_local,)
        Mean of the local features of each stratum that has a weight.
    """

    grams: np.ndarray
    products: np.ndarray
    held_out: np.ndarray
    centers: dict


def _normal_equations(controls, sample, weights, gain_means):
    """Sums over all strata, from which the coefficients follow."""
    p = controls.n_features
    grams = np.zeros((FOLDS, p, p))
    products = np.zeros((FOLDS, p))
    held_out = np.zeros(p)
    centers = {}
    for stratum, weight in enumerate(weights):
        rows = np.flatnonzero(sample.labels == stratum)
        if weight == 0 or not len(rows):
            continue

        # All folds subtract the same mean from the gains, so that products are summed
        # once. The mean that belongs to a fold differs by a shift, subtracted after.
        center = _feature_means(controls, sample, rows, stratum)
        gains = sample.gains - gain_means[0, stratum]
        xx, x, x_gain = _sums_by_fold(controls, sample, gains, rows, center)
        shifts = (gain_means[:, stratum] - gain_means[0, stratum])[:, None]
        x_gain_others = other_folds(x_gain) - shifts * other_folds(x)

        # The local features are a few runs of columns: adding slices is much faster
        # than adding by indices.
        runs = _runs(controls.columns(stratum))
        for (local_a, a), (local_b, b) in itertools.product(runs, runs):
            grams[:, a, b] += weight * xx[:, local_a, local_b]
        for local, columns in runs:
            products[:, columns] += weight * x_gain_others[:, local]
            held_out[columns] += weight * x_gain[0, local]
        centers[stratum] = center
    return _NormalEquations(grams, products, held_out, centers)


def _feature_means(controls, sample, rows, stratum):
    """Mean of the features of some rows of the sample, of shape (n_local,)."""
    sums = [
        controls.block(sample.described[tile], stratum).sum(axis=0)
        for tile in row_tiles(rows)
    ]
    return np.sum(sums, axis=0) / len(rows)


def _sums_by_fold(controls, sample, gains, rows, center):
    """Sums of x'x, x and x'gain over the coalitions of a stratum, for every fold.

    Of shapes (n_folds, n_local, n_local), (n_folds, n_local) and (n_folds, n_local).
    """
    stratum = sample.labels[rows[0]]
    width = len(center)
    xx_sums = np.zeros((FOLDS, width, width))
    x_sums = np.zeros((FOLDS, width))
    x_gain_sums = np.zeros((FOLDS, width))
    for tile in row_tiles(rows):
        features = controls.block(sample.described[tile], stratum) - center
        for fold in range(FOLDS):
            in_fold = sample.folds[tile] == fold
            x = features[in_fold]
            xx_sums[fold] += x.T @ x
            x_sums[fold] += x.sum(axis=0)
            x_gain_sums[fold] += x.T @ gains[tile][in_fold]
    return xx_sums, x_sums, x_gain_sums


def _solve_ridge(equations, n_coalitions):
    """Coefficients of every fold, of shape (p, n_folds)."""
    grams, products, held_out, _ = equations
    total = grams.sum(axis=0)
    coefficients = np.zeros((len(total), FOLDS))

    # Features are scaled to mean square 1, so that the unit of the ridge is a
    # coalition. Those that hardly vary have no coefficient.
    scale = np.sqrt(np.maximum(np.diag(total), 0) / n_coalitions)
    active = np.flatnonzero(scale > 1e-9 * scale.max(initial=0.0))
    if not len(active):
        return coefficients
    scale = scale[active]
    norms = np.outer(scale, scale)
    square = np.ix_(active, active)
    products = products[:, active] / scale
    held_out = held_out[active] / scale

    def solve(fold, ridge):
        gram = (total - grams[fold])[square] / norms
        gram[np.diag_indices_from(gram)] += ridge
        factor = cho_factor(gram, overwrite_a=True, check_finite=False)
        return cho_solve(factor, products[fold])

    # The ridge with the smallest squared error on the first fold (less a constant) is
    # that of all folds.
    gram = grams[0][square] / norms
    candidates = [solve(0, ridge) for ridge in _RIDGES]
    errors = [beta @ gram @ beta - 2 * beta @ held_out for beta in candidates]
    best = int(np.argmin(errors))

    coefficients[active, 0] = candidates[best] / scale
    for fold in range(1, FOLDS):
        coefficients[active, fold] = solve(fold, _RIDGES[best]) / scale
    return coefficients


def _predict(controls, sample, coefficients, centers):
    """Linear predictions out of fold (m,), and their offsets (n_folds, n_strata)."""
    predictions = np.zeros(len(sample.gains))
    offsets = np.zeros((FOLDS, controls.n_strata))
    for stratum, center in centers.items():
        beta = coefficients[controls.columns(stratum)]
        offsets[:, stratum] = center @ beta
        for tile in row_tiles(np.flatnonzero(sample.labels == stratum)):
            features = controls.block(sample.described[tile], stratum) - center
            of_folds = features @ beta
            predictions[tile] = of_folds[np.arange(len(tile)), sample.folds[tile]]
    return predictions, offsets


def _shrinkage_factors(sample, predictions, gain_means):
    """Slopes of the gains on out-of-fold predictions, over the other folds.

    Of shape (n_folds, n_strata), clipped to [0, 1]. Where predictions say nothing of
    the gains, the factor is 0.
    """
    n_strata = gain_means.shape[1]

    def sum_over_others(terms):
        return other_folds(sum_by_fold(sample.folds, sample.labels, n_strata, terms))

    products = sum_over_others(predictions * sample.gains)
    products -= gain_means * sum_over_others(predictions)
    squares = sum_over_others(predictions**2)
    slopes = np.zeros_like(squares)
    np.divide(products, squares, out=slopes, where=squares > 0)
    return np.clip(slopes, 0, 1)


def row_tiles(rows, size=_TILE):
    """The rows in tiles whose features, or masks, are in memory at the same time."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _runs(columns):
    """Runs of consecutive columns, as pairs of slices: of positions, and of columns."""
    breaks = np.flatnonzero(np.diff(columns) != 1) + 1
    edges = [0, *breaks, len(columns)]
    runs = []
    for start, stop in itertools.pairwise(edges):
        first = columns[start]
        runs.append((slice(start, stop), slice(first, first + stop - start)))
    return runs
