"""Membership attack on a release, by an attacker who knows all rows except one."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from .._utils.sklearn import Interval, validate_params
from ..privacy import clip_rows, detection_ceiling
from .maps import as_model, row_norms
from .seller import (
    Moments,
    exact_moments,
    isotropic_statistic,
    own_radii,
    radius_log_probabilities,
)

_N_CANDIDATES = 200  # first rows of X, of which two are the candidates


@dataclass(frozen=True)
class MembershipAttack:
    """Performance of the strongest attack that tests which of two rows a seller has.

    Parameters
    ----------
    auroc : float
        Area under the ROC curve of the attack.
    auroc_error : float
        Standard error of `auroc`.
    ceiling : float
        Largest expected area that the guarantee allows.
    epsilon, delta : float
        Parameters of the guarantee.
    n_runs : int
        Number of releases with each row.

    See Also
    --------
    membership_attack : Runs the attack.

    Examples
    --------
    >>> from skvalue.priarta import MembershipAttack
    >>> MembershipAttack(0.55, 0.03, 0.56, 0.8, 1e-5, 200).holds
    True
    """

    auroc: float
    auroc_error: float
    ceiling: float
    epsilon: float
    delta: float
    n_runs: int

    @property
    def holds(self):
        """Whether the area exceeds the ceiling by at most five standard errors."""
        return self.auroc <= self.ceiling + 5 * self.auroc_error


@validate_params(
    {"n_runs": [Interval(Integral, 10, None, closed="left")]},
    prefer_skip_nested_validation=True,
)
def membership_attack(seller, X, *, rows=None, n_runs=200):
    """Attack a seller's release with knowledge of all rows except the last.

    The attacker knows that the last row is one of two candidates. Its test is the
    optimal one, the ratio of the likelihoods of what was released: of the moments, and
    of the radius if it is the seller's own. It is meant for the seller's own machine;
    its results must not be released.

    Parameters
    ----------
    seller : SellerRelease
        The release to attack, with an `epsilon`.
    X : array-like of shape (n_samples, ...)
        The seller's rows; the last row is attacked.
    rows : tuple of two rows, default=None
        The two candidates for the last row. None takes the two rows with the largest
        distance after the model's maps, among the first 200 rows of `X`.
    n_runs : int, default=200
        Number of releases with each candidate.

    Returns
    -------
    attack : MembershipAttack
        Area under the ROC curve, and the ceiling.

    Raises
    ------
    ValueError
        If the seller adds no noise, or a parameter is out of its range.

    References
    ----------
    J. Dong, A. Roth, W. Su: "Gaussian Differential Privacy", JRSS-B 2022, Section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.priarta import PriArTaScorer, SellerRelease, membership_attack
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = PriArTaScorer().fit(X).model_
    >>> membership_attack(SellerRelease(model, epsilon=1.0), X, n_runs=20).holds
    True
    """
    if seller.epsilon is None:
        raise ValueError(
            "seller must have an epsilon: without noise there is nothing to attack."
        )
    X = np.asarray(X)
    if rows is None:
        rows = _farthest_rows(seller, X[:_N_CANDIDATES])
    datasets = [np.concatenate([X[:-1], np.asarray(row)[None]]) for row in rows]

    seller = clone(seller).set_params(ledger=None)
    summaries = [
        seller.fit(dataset).summary_ for dataset in datasets for _ in range(n_runs)
    ]
    model = as_model(seller.model)
    candidates = [model.private_rows(dataset) for dataset in datasets]
    ratios = _log_likelihood_ratios(summaries, model, *candidates)
    is_first = np.repeat([1, 0], n_runs)
    auroc = roc_auc_score(is_first, ratios)
    summary = summaries[0]
    # The error of the area of a test that cannot tell the rows apart.
    error = math.sqrt((2 * n_runs + 1) / (12 * n_runs**2))
    ceiling = detection_ceiling(summary.epsilon, summary.delta, summary.relation)
    return MembershipAttack(
        auroc=float(auroc),
        auroc_error=error,
        ceiling=float(ceiling),
        epsilon=summary.epsilon,
        delta=summary.delta,
        n_runs=n_runs,
    )


def _farthest_rows(seller, candidates):
    """The two candidates with the largest distance after the model's maps."""
    latent = as_model(seller.model).transform(candidates)
    squares = ((latent[:, None] - latent[None]) ** 2).sum(axis=2)
    i, j = np.unravel_index(squares.argmax(), squares.shape)
    return candidates[i], candidates[j]


def _log_likelihood_ratios(summaries, model, first, second):
    """Log-likelihood ratios of summaries, for rows and null rows as `private_rows`."""
    scale = summaries[0].noise_scale
    relation = summaries[0].relation
    radii = np.array([model.max_norm])
    by_radius = np.zeros(1)
    if model.has_own_radius:
        radii = own_radii(model)
        by_radius = _radius_log_probabilities(first, model, relation, scale)
        by_radius -= _radius_log_probabilities(second, model, relation, scale)

    ratios = []
    for summary in summaries:
        cell = np.abs(radii - summary.max_norm).argmin()
        vectors = [
            isotropic_statistic(moments, summary.mean_weight, summary.max_norm)
            for moments in (
                exact_moments(clip_rows(first[0], summary.max_norm)),
                exact_moments(clip_rows(second[0], summary.max_norm)),
                Moments(summary.mean, summary.moment, summary.n_samples),
            )
        ]
        middle = (vectors[0] + vectors[1]) / 2
        difference = vectors[0] - vectors[1]
        ratio = difference @ (vectors[2] - middle) / scale**2
        ratios.append(by_radius[cell] + ratio)
    return np.array(ratios)


def _radius_log_probabilities(candidate, model, relation, scale):
    rows, is_null = candidate
    norms = row_norms(rows)
    norms[is_null] = np.nan
    return radius_log_probabilities(norms, model, relation, scale)
