"""Fits of the process, and the semivalues that follow from them.

A fit is a function of coalitions and their utilities, and of nothing else: fits of the
same coalitions, in one run or after a resumption or a merge, are the same to the bit.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import comb
from time import thread_time

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri
from scipy.optimize import minimize

from ..._utils.parallel import one_thread
from .closed_forms import (
    mean_squared_weights,
    pair_covariances,
    prior_variances,
    utility_covariances,
)
from .kernel import (
    JITTER,
    N_SHARED,
    Hyper,
    HyperPrior,
    negative_log_posterior,
    noiseless_covariance,
)

STEPS = 60  # of L-BFGS
_MOST_FITTED = 400  # coalitions that hyperparameters are fitted to
_N_NEIGHBORS = 4  # of a coalition that are fitted with it, itself included
_BOUND = 4  # standard deviations of the prior

# White noise grows by steps of a factor e while left-out residuals are larger than
# predicted: their mean square, relative to predicted variances.
_LARGEST_SQUARE = 1.3
_MOST_NOISE = np.e  # in units of the variance of utilities
_NOISE_STEPS = 8

# Standard deviation of the log relevances of players, and a smaller one for games that
# jump. It replaces the first if its left-out residuals are clearly smaller, from this
# number of coalitions on.
_RELEVANCE_SD = 0.8
_SMALL_RELEVANCE_SD = 0.3
_CLEARLY_SMALLER = 0.8
_MANY_COALITIONS = 999

# Work of a fit, for forecasts of its time, relative to one evaluation of the log
# posterior of as many coalitions as hyperparameters are fitted to: of conditioning as
# many on their utilities, which grows with the cube of their number, of the closed
# forms of a coalition, which grow with that of the number of players, and of boosted
# trees, for each coalition.
_N_CONDITIONS = 4  # those that raise the noise included
_CONDITION_WORK = 0.3
_CLOSED_FORM_WORK = 6e-6
_TREES_WORK = 0.25

_CONSTANT = 1e-12  # range of utilities, relative to the largest, that is rounding
_JITTER_STEPS = 6


@dataclass(frozen=True)
class Process:
    """A process conditioned on the utilities of m coalitions.

    Parameters
    ----------
    hyper : Hyper
        The hyperparameters.
    masks : ndarray of bool of shape (m, n)
        The coalitions.
    center, spread : float
        Mean and standard deviation of their utilities, by which these are standardised.
    whitening : ndarray of shape (m, m)
        Inverse of the lower Cholesky factor of the covariance matrix: times utilities,
        it makes them uncorrelated.
    alpha : ndarray of shape (m,)
        The inverse of that matrix times the standardised utilities.
    left_out : ndarray of shape (m,)
        Standardised utilities less their predictions from all others.
    left_out_z : ndarray of shape (m,)
        The same over their predicted standard deviations.
    """

    hyper: Hyper
    masks: np.ndarray
    center: float
    spread: float
    whitening: np.ndarray
    alpha: np.ndarray
    left_out: np.ndarray
    left_out_z: np.ndarray


def is_constant(utilities):
    """Whether utilities are equal, up to rounding."""
    return bool(np.ptp(utilities) <= _CONSTANT * np.abs(utilities).max())


def fit_process(masks, utilities, steps=STEPS, relevance_sd=_RELEVANCE_SD):
    """Fit hyperparameters by their posterior mode, and condition on all coalitions.

    Parameters
    ----------
    masks : ndarray of bool of shape (m, n)
        Different coalitions, none of them empty.
    utilities : ndarray of shape (m,)
        Their utilities, not all equal.
    steps : int, default=60
        Most steps of L-BFGS.
    relevance_sd : float, default=0.8
        Prior standard deviation of the log relevances of players.

    Returns
    -------
    process : Process
        The process.
    """
    _, _, z = _standardised(utilities)
    rows = near_subset(masks)
    prior = HyperPrior.of(masks.shape[1], relevance_sd)
    lowest = prior.mean - _BOUND * prior.sd
    highest = prior.mean + _BOUND * prior.sd
    mode = minimize(
        negative_log_posterior,
        prior.mean,
        args=(masks[rows], z[rows], prior),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([lowest, highest], axis=1),
        options={"maxiter": steps},
    )
    return _calibrated(Hyper.from_vector(mode.x), masks, utilities)


def fit_best_process(masks, utilities):
    """As `fit_process`, with the prior of relevances that predicts left-out utilities.

    Relevances overfit utilities that jump, such as those of a decision tree.
    """
    process = fit_process(masks, utilities)
    if len(masks) < _MANY_COALITIONS:
        return process
    cautious = fit_process(masks, utilities, relevance_sd=_SMALL_RELEVANCE_SD)
    error = np.mean(process.left_out**2)
    cautious_error = np.mean(cautious.left_out**2)
    if cautious_error < _CLEARLY_SMALLER * error:
        return cautious
    return process


def fit_seconds(m, n, with_trees):
    """Seconds that `fit_best_process` and its posterior are expected to take here.

    From the measured time of an evaluation of the log posterior, for m coalitions of n
    players; `with_trees` adds a process of what boosted trees leave, and these trees.
    On games of data, within a factor of three.
    """
    n_fits = 1 if m < _MANY_COALITIONS else 2
    n_processes = 1
    work = 0.0
    if with_trees:
        n_fits += 1
        n_processes += 1
        work += _TREES_WORK * m
    work += n_processes * _CLOSED_FORM_WORK * m * n**3
    fits = n_fits * _one_fit_seconds(m, n, STEPS)
    return fits + work * _step_seconds(_MOST_FITTED, n)


def plan_seconds(m, n):
    """Seconds that the fit before a plan is expected to take, see `fit_seconds`."""
    return _one_fit_seconds(m, n, STEPS // 2)


def _one_fit_seconds(m, n, steps):
    """As `fit_seconds`, of one fit with a number of steps of L-BFGS."""
    # Times of few coalitions are measured on the next power of two.
    n_timed = min(_MOST_FITTED, 2 ** (m - 1).bit_length())
    seconds = steps * _step_seconds(n_timed, n)
    condition_work = _N_CONDITIONS * _CONDITION_WORK * (m / _MOST_FITTED) ** 3
    return seconds + condition_work * _step_seconds(_MOST_FITTED, n)


@cache
def _step_seconds(m, n):
    """Time of an evaluation of the log posterior, of m coalitions at random.

    That of the thread, so that what else the machine does counts little.
    """
    rng = np.random.default_rng(0)
    masks = rng.random((m, n)) < 0.5
    z = rng.normal(size=m)
    prior = HyperPrior.of(n, _RELEVANCE_SD)
    seconds = []
    with one_thread():
        for _ in range(3):
            start = thread_time()
            negative_log_posterior(prior.mean, masks, z, prior)
            seconds.append(thread_time() - start)
    return min(seconds)


def near_subset(masks, count=_MOST_FITTED):
    """Numbers of the coalitions that hyperparameters are fitted to.

    About `count` of them, in groups of a coalition drawn at random and those nearest to
    it. Coalitions far from each other do not show how much utilities differ between
    neighbours: white noise would be underestimated.
    """
    m = len(masks)
    if m <= count:
        return np.arange(m)
    rng = np.random.default_rng(m)
    members = masks.astype(np.float32)
    sizes = members.sum(axis=1)
    is_chosen = np.zeros(m, dtype=bool)
    for row in rng.permutation(m):
        # Hamming distances to those that are not chosen; ties are in random order.
        distances = sizes + sizes[row] - 2 * members @ members[row]
        distances += 0.5 * rng.random(m, dtype=np.float32)
        distances[is_chosen] += 1e9
        distances[row] = -1.0
        is_chosen[np.argpartition(distances, _N_NEIGHBORS)[:_N_NEIGHBORS]] = True
        if is_chosen.sum() >= count:
            break
    return np.flatnonzero(is_chosen)


def _calibrated(hyper, masks, utilities):
    """Condition on coalitions, with more white noise if left-out utilities show it.

    The subset that hyperparameters are fitted to, and utilities that jump, lead to too
    little noise, and then to errors that are too small.
    """
    matrix = noiseless_covariance(masks, hyper)
    process = _conditioned(hyper, masks, utilities, matrix)
    for _ in range(_NOISE_STEPS):
        is_calibrated = np.mean(process.left_out_z**2) <= _LARGEST_SQUARE
        if is_calibrated or hyper.noise_variance >= _MOST_NOISE:
            break
        hyper = replace(hyper, noise_variance=np.e * hyper.noise_variance)
        process = _conditioned(hyper, masks, utilities, matrix)
    return process


def condition(hyper, masks, utilities):
    """The process of hyperparameters, given utilities; see `Process`."""
    matrix = noiseless_covariance(masks, hyper)
    return _conditioned(hyper, masks, utilities, matrix)


def _conditioned(hyper, masks, utilities, noiseless):
    """As `condition`, given the covariance matrix without the white noise."""
    center, spread, z = _standardised(utilities)
    factor = _cholesky(noiseless, hyper.noise(masks.sum(axis=1)))
    alpha, _ = dpotrs(factor, z, lower=1)

    # Left-out residuals need no fits: alpha over the diagonal of the inverse matrix,
    # which is that of the squared inverse of the factor.
    whitening, _ = dtrtri(factor, lower=1, overwrite_c=1)
    precisions = np.einsum("ij,ij->j", whitening, whitening)
    return Process(
        hyper=hyper,
        masks=masks,
        center=center,
        spread=spread,
        whitening=whitening,
        alpha=alpha,
        left_out=alpha / precisions,
        left_out_z=alpha / np.sqrt(precisions),
    )


def _standardised(utilities):
    """Their mean and standard deviation, and the standardised utilities.

    Squares of very small utilities would be 0, so that they are multiplied by a power
    of two, which changes no digit.
    """
    exponent = np.frexp(np.abs(utilities).max())[1]
    scaled = np.ldexp(utilities, -exponent)
    center = scaled.mean()
    spread = scaled.std()
    z = (scaled - center) / spread
    return float(np.ldexp(center, exponent)), float(np.ldexp(spread, exponent)), z


def _cholesky(noiseless, noise):
    """Lower Cholesky factor of a covariance matrix with jitter, as little as needed."""
    jitter = JITTER
    for _ in range(_JITTER_STEPS):
        # LAPACK works in place, in columns that are contiguous.
        matrix = noiseless.copy()
        matrix[np.diag_indices_from(matrix)] += noise + jitter
        factor, info = dpotrf(matrix.T, lower=1, overwrite_a=1)
        if info == 0:
            return factor
        jitter *= 10
    raise np.linalg.LinAlgError(
        f"The covariance matrix of {len(noiseless)} coalitions is not positive "
        "definite."
    )


# What follows from a process ----------------------------------------------------------


def semivalue_posterior(process, q, empty_utility):
    """Posterior means of the semivalues, and their standard errors.

    Parameters
    ----------
    process : Process
        The process.
    q : ndarray of shape (n,)
        Probabilities of sizes.
    empty_utility : float
        Utility of the empty coalition.

    Returns
    -------
    values, errors : ndarrays of shape (n,)
        Errors are posterior standard deviations, times a factor for left-out residuals
        that are still larger than predicted and for the fit of 9 + n hyperparameters to
        m coalitions: 1.6 for 14 players and 30 coalitions, 1.02 for 1,000. Residuals
        count equally, or as `left_out_counts` has it if they are larger then; a few of
        them may decide that, so that the standard error of their mean is added.
    """
    hyper = process.hyper
    covariances = utility_covariances(process.masks, hyper, q)
    standardised = covariances.T @ process.alpha
    # The values of a constant game without the empty coalition are q[0] times it.
    values = process.spread * standardised + q[0] * (process.center - empty_utility)

    whitened = process.whitening @ covariances
    variances = prior_variances(hyper, q) - (whitened**2).sum(axis=0)
    m, n = process.masks.shape
    mean_square = float(np.mean(process.left_out_z**2))
    weighted_square, its_error = _weighted_square(process, q)
    larger = max(1.0, mean_square, weighted_square + its_error)
    of_hyper = 1 + 2 * (n + N_SHARED) / m
    variances = np.maximum(variances, 0.0) * larger * of_hyper
    return values, process.spread * np.sqrt(variances)


def left_out_counts(masks, mean_squares):
    """For how much the squared left-out error of every coalition counts, (m,).

    As often as there are unknown coalitions of its size for one that is known, times
    the mean square of their weights in an estimate, ``mean_squares`` of shape (n + 1,).
    The sum is the variance of the estimate if unknown coalitions are wrong by as much,
    and independently of each other.
    """
    n = masks.shape[1]
    sizes = masks.sum(axis=1)
    n_known = np.bincount(sizes, minlength=n + 1)
    n_coalitions = np.array([comb(n, size) for size in range(n + 1)], dtype=float)
    n_unknown = n_coalitions - n_known
    counts = mean_squares * n_unknown / np.maximum(n_known, 1)
    return counts[sizes]


def _weighted_square(process, q):
    """Weighted mean square of left-out residuals, over that of their predictions.

    With its standard error: that of a quotient of means.
    """
    counts = left_out_counts(process.masks, mean_squared_weights(q))
    squares = process.left_out**2
    known = process.left_out_z != 0
    predicted = np.zeros(len(squares))
    predicted[known] = squares[known] / process.left_out_z[known] ** 2
    total = counts @ predicted
    if total == 0:
        return 0.0, 0.0
    ratio = counts @ squares / total
    deviations = counts * (squares - ratio * predicted)
    standard_error = np.sqrt(deviations @ deviations) / total
    return float(ratio), float(standard_error)


def pair_posterior(process, q, empty_utility):
    """Posterior means of the interactions of pairs, see `pair_covariances`.

    ``q``, (n - 1,), are the probabilities of the sizes that a pair joins.
    """
    covariances = pair_covariances(process.masks, process.hyper, q)
    standardised = covariances.T @ process.alpha
    # Those of a constant game without the empty coalition are -q[0] times it.
    return process.spread * standardised + q[0] * (empty_utility - process.center)


def unexplained_by_size(process):
    """Standard deviation of left-out residuals of every size 0..n, (n + 1,).

    Smoothed over neighbouring sizes, on the scale of their logarithms.
    """
    n = process.hyper.n
    squares = process.left_out**2
    log_sizes = np.log(process.masks.sum(axis=1))
    log_of_all = np.log(np.maximum(np.arange(n + 1), 1))
    nearness = np.exp(-0.5 * ((log_of_all[:, None] - log_sizes) / 0.25) ** 2)
    # The mean over all coalitions counts as two more.
    totals = nearness @ squares + 2 * squares.mean()
    return np.sqrt(totals / (nearness.sum(axis=1) + 2))
