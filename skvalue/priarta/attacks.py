"""Membership attack on a release, by an attacker who knows all rows except one."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from .._utils.sklearn import Interval, validate_params
from ..privacy import detection_ceiling, svec_index
from .maps import as_model

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

    The attacker knows that the last row is one of two candidates, and projects the
    released moments on the difference between the moments with either candidate: for
    Gaussian noise this is the optimal test. It is meant for the seller's own machine;
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

    # The moments that the attacker knows, and releases of either data set.
    exact_seller = clone(seller).set_params(epsilon=None, ledger=None)
    exact_first, exact_second = (
        _vector(exact_seller.fit(dataset).summary_) for dataset in datasets
    )
    seller = clone(seller).set_params(ledger=None)
    summaries = [
        [seller.fit(dataset).summary_ for _ in range(n_runs)] for dataset in datasets
    ]
    releases = np.array([_vector(summary) for summary in summaries[0] + summaries[1]])

    # Project on the change of the moments, in units of the noise.
    summary = summaries[0][0]
    is_mean = np.arange(len(exact_first)) < summary.n_dimensions
    unit = np.where(is_mean, summary.noise.mean, summary.noise.moment)
    direction = (exact_first - exact_second) / unit**2
    is_first = np.repeat([1, 0], n_runs)
    auroc = roc_auc_score(is_first, releases @ direction)
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


def _vector(summary):
    """Mean and second moment as one vector, the latter isometric."""
    weights = svec_index(summary.n_dimensions)[2]
    return np.concatenate([summary.mean, summary.moment * weights])
