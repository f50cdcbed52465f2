"""What is left to an attacker who knows everything but one row of a seller."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from .._utils.sklearn import Interval, validate_params
from ..privacy import detection_ceiling, svec_index
from .maps import as_model


@dataclass(frozen=True)
class MembershipAttack:
    """How well the strongest attacker tells which of two rows a seller has.

    Parameters
    ----------
    auroc : float
        Area under the ROC curve of its test.
    auroc_error : float
        Standard error of that.
    ceiling : float
        What the guarantee allows: no attack does better on average.
    epsilon, delta : float
        The guarantee.
    n_runs : int
        Releases with either row.

    See Also
    --------
    membership_attack : Makes one.

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
        """Whether the area is no larger than the ceiling, but for five standard errors."""
        return self.auroc <= self.ceiling + 5 * self.auroc_error


@validate_params(
    {"n_runs": [Interval(Integral, 10, None, closed="left")]}, prefer_skip_nested_validation=True
)
def membership_attack(seller, X, *, rows=None, n_runs=200):
    """Attack a seller's release, knowing every row but one.

    The attacker also knows two rows, one of which the seller has, and looks at the released
    moments along the direction in which the two would move them: for Gaussian noise no test is
    better. This is for the seller to run on its own machine; results of it are no release.

    Parameters
    ----------
    seller : SellerRelease
        The release to attack, with an epsilon.
    X : array-like of shape (n_samples, ...)
        The seller's rows; the last is the one that is attacked.
    rows : tuple of two rows, default=None
        The rows that the last may be. None takes the two of X that are farthest apart among 200, as
        the model sees them.
    n_runs : int, default=200
        Releases with either row.

    Returns
    -------
    attack : MembershipAttack
        What it achieves.

    Raises
    ------
    ValueError
        If the seller adds no noise, or a parameter is out of range.

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
        raise ValueError("seller must have an epsilon: without noise there is nothing to attack.")
    X = np.asarray(X)
    if rows is None:
        some = as_model(seller.model).transform(X[:200])
        apart = ((some[:, None] - some[None]) ** 2).sum(axis=2)
        rows = [X[i] for i in np.unravel_index(apart.argmax(), apart.shape)]
    neighbours = [np.concatenate([X[:-1], np.asarray(row)[None]]) for row in rows]
    exact = clone(seller).set_params(epsilon=None, ledger=None, subset_size=None)
    exact_moments = [_vector(exact.fit(rows).summary_) for rows in neighbours]
    seller = clone(seller).set_params(ledger=None)
    releases = [[seller.fit(rows).summary_ for _ in range(n_runs)] for rows in neighbours]
    plan = releases[0][0]
    # Along the change, in units of the noise.
    unit = np.where(
        np.arange(len(exact_moments[0])) < plan.n_dimensions, plan.mean_noise, plan.moment_noise
    )
    direction = (exact_moments[0] - exact_moments[1]) / unit**2
    first, second = (np.array([_vector(s) for s in found]) @ direction for found in releases)
    ranks = rankdata(np.concatenate([first, second]))[:n_runs]
    auroc = (ranks.sum() - n_runs * (n_runs + 1) / 2) / n_runs**2
    error = math.sqrt((2 * n_runs + 1) / (12 * n_runs**2))
    epsilon, delta = plan.epsilon, plan.delta
    if plan.secret_subset:  # which rows are in it is random too: the noise is not all
        ceiling = _ceiling(epsilon, delta)
    else:
        ceiling = detection_ceiling(epsilon, delta, plan.relation)
    return MembershipAttack(float(auroc), error, float(ceiling), epsilon, delta, n_runs)


def _ceiling(epsilon, delta):
    """Largest area under a ROC curve that (epsilon, delta) alone leaves."""
    kink = (1 - delta) / (1 + math.exp(epsilon))
    steep = (1 - delta) * kink - math.exp(epsilon) * kink**2 / 2
    return 1 - steep - math.exp(-epsilon) * (1 - delta - kink) ** 2 / 2


def _vector(summary):
    """Mean and isometric second moment."""
    return np.concatenate([summary.mean, summary.moment * svec_index(summary.n_dimensions)[2]])
