"""The process of a game, blended with one of what boosted trees do not explain.

A process expects utilities to change by about as much everywhere. Those of models that
jump, such as trees, or that fail on a few coalitions, do not, and boosted trees predict
them better. From a few hundred coalitions on there is therefore a second process, of
the utilities less the predictions of trees that were fitted to other coalitions; the
mean of these trees is added to it. Estimates are ``1 - w`` times that of the first
process and ``w`` times that of the second, with the w in [0, 1] whose errors of
left-out utilities are least, weighted as in the semivalue that is estimated: a stack
(Wolpert 1992).
"""

from dataclasses import dataclass

import numpy as np

from .closed_forms import (
    mean_squared_pair_weights,
    mean_squared_weights,
    utility_pair_weights,
    utility_weights,
)
from .fit import (
    Process,
    condition,
    fit_best_process,
    fit_process,
    fit_seconds,
    is_constant,
    left_out_counts,
    pair_posterior,
    semivalue_posterior,
)
from .kernel import Hyper
from .trees import CrossFit, cross_fit

MANY_COALITIONS = 400  # from which on there are trees


@dataclass(frozen=True)
class BlendHyper:
    """What is fitted: all that a blend is made of but coalitions and utilities.

    `rest` are the hyperparameters of the process of what the trees leave; it and
    `trees` are None for few coalitions.
    """

    hyper: Hyper
    trees: CrossFit | None = None
    rest: Hyper | None = None


@dataclass(frozen=True)
class Blend:
    """A process, the trees, and the process of what these leave; see `BlendHyper`."""

    process: Process
    trees: CrossFit | None = None
    rest: Process | None = None


def fit_blend(masks, utilities):
    """Fit the process of utilities, and of what trees leave of them.

    Parameters
    ----------
    masks : ndarray of bool of shape (m, n)
        Different coalitions, none of them empty.
    utilities : ndarray of shape (m,)
        Their utilities, not all equal.

    Returns
    -------
    fitted : BlendHyper
        For `condition_blend`.
    blend : Blend
        The same, conditioned on the utilities.
    """
    process = fit_best_process(masks, utilities)
    if len(masks) < MANY_COALITIONS:
        return BlendHyper(process.hyper), Blend(process)
    trees = cross_fit(masks, utilities)
    residuals = utilities - trees.left_out
    if is_constant(residuals):
        return BlendHyper(process.hyper), Blend(process)
    rest = fit_process(masks, residuals)
    return (
        BlendHyper(process.hyper, trees, rest.hyper),
        Blend(process, trees, rest),
    )


def condition_blend(fitted, masks, utilities):
    """The blend of what was fitted to these coalitions and utilities."""
    process = condition(fitted.hyper, masks, utilities)
    if fitted.trees is None:
        return Blend(process)
    rest = condition(fitted.rest, masks, utilities - fitted.trees.left_out)
    return Blend(process, fitted.trees, rest)


def blend_posterior(blend, q, empty_utility):
    """As `semivalue_posterior`, of a blend.

    The two parts of an error add up, as those of estimates from the same utilities do.
    """
    values, errors = semivalue_posterior(blend.process, q, empty_utility)
    weight = rest_weight(blend, mean_squared_weights(q))
    if weight == 0:
        return values, errors
    rest_values, rest_errors = semivalue_posterior(
        blend.rest, q, _empty_rest(blend, empty_utility)
    )
    rest_values += blend.trees.leaves.semivalues(q)
    rest_values += _own_misses(blend) @ utility_weights(blend.process.masks, q)
    return (
        (1 - weight) * values + weight * rest_values,
        (1 - weight) * errors + weight * rest_errors,
    )


def blend_pair_posterior(blend, q, empty_utility):
    """As `pair_posterior`, of a blend."""
    interactions = pair_posterior(blend.process, q, empty_utility)
    weight = rest_weight(blend, mean_squared_pair_weights(q))
    if weight == 0:
        return interactions
    rest = pair_posterior(blend.rest, q, _empty_rest(blend, empty_utility))
    rest += blend.trees.leaves.interactions(q)
    rest += _own_misses(blend) @ utility_pair_weights(blend.process.masks, q)
    return (1 - weight) * interactions + weight * rest


def _empty_rest(blend, empty_utility):
    """What the trees leave of the utility of the empty coalition."""
    nobody = np.zeros((1, blend.process.hyper.n), dtype=bool)
    return empty_utility - blend.trees.leaves.utilities(nobody)[0]


def _own_misses(blend):
    """What the second process and the trees lack to the utilities they know, (m,).

    The process is that of residuals of trees which were not fitted to the utility, and
    the trees that are added to it are the mean of all.
    """
    return blend.trees.left_out - blend.trees.leaves.utilities(blend.process.masks)


def blend_seconds(m, n):
    """Seconds that a blend and its posterior are expected to take here.

    For m coalitions of n players, see `fit_seconds`.
    """
    return fit_seconds(m, n, with_trees=m >= MANY_COALITIONS)


# The weight of the second process -----------------------------------------------------


def rest_weight(blend, mean_squares):
    """Weight, in [0, 1], of the second process.

    That with the least squared errors of left-out folds, see `left_out_counts` for
    ``mean_squares``, less its standard error, so that it is 0 where these are errors of
    a few coalitions. The same folds are left out of both processes, whose
    hyperparameters stay.
    """
    if blend.rest is None:
        return 0.0
    counts = left_out_counts(blend.process.masks, mean_squares)
    errors = left_out_errors(blend.process, blend.trees.folds)
    differences = errors - left_out_errors(blend.rest, blend.trees.folds)
    total = counts @ differences**2
    if total == 0:
        return 0.0
    # The least squares of errors on differences, less their standard error.
    slopes = counts * differences
    weight = slopes @ errors / total
    remaining = errors - weight * differences
    standard_error = np.sqrt((slopes * remaining) @ (slopes * remaining)) / total
    return float(np.clip(weight - standard_error, 0, 1))


def left_out_errors(process, folds):
    """Utilities less their predictions from the other folds, (m,)."""
    errors = np.zeros(len(folds))
    for fold in range(folds.max() + 1):
        rows = np.flatnonzero(folds == fold)
        of_fold = process.whitening[:, rows]
        precision = of_fold.T @ of_fold
        errors[rows] = np.linalg.solve(precision, process.alpha[rows])
    return process.spread * errors
