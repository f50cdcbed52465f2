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
        some = as_model(seller.model).transform(X[:200])
        apart = ((some[:, None] - some[None]) ** 2).sum(axis=2)
        rows = [X[i] for i in np.unravel_index(apart.argmax(), apart.shape)]
    neighbours = [np.concatenate([X[:-1], np.asarray(row)[None]]) for row in rows]
    exact = clone(seller).set_params(epsilon=None, ledger=None)
    exact_moments = [_vector(exact.fit(rows).summary_) for rows in neighbours]
    seller = clone(seller).set_params(ledger=None)
    releases = [
        [seller.fit(rows).summary_ for _ in range(n_runs)] for rows in neighbours
    ]
    made = releases[0][0]
    # Project on the change of the moments, in units of the noise.
    unit = np.where(
        np.arange(len(exact_moments[0])) < made.n_dimensions,
        made.noise.mean,
        made.noise.moment,
    )
    direction = (exact_moments[0] - exact_moments[1]) / unit**2
    statistics = np.array(
        [_vector(summary) for summary in [*releases[0], *releases[1]]]
    )
    auroc = roc_auc_score(np.repeat([1, 0], n_runs), statistics @ direction)
    error = math.sqrt((2 * n_runs + 1) / (12 * n_runs**2))
    ceiling = detection_ceiling(made.epsilon, made.delta, made.relation)
    return MembershipAttack(
        float(auroc), error, float(ceiling), made.epsilon, made.delta, n_runs
    )


def _vector(summary):
    """Mean and second moment as one vector, the latter isometric."""
    return np.concatenate(
        [summary.mean, summary.moment * svec_index(summary.n_dimensions)[2]]
    )
