"""Membership inference by data values: Algorithm 1 of the TKNN-Shapley paper, corrected."""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from ..._utils.checks import check_count


@dataclass(frozen=True)
class MembershipReport:
    """Result of `membership_inference`.

    The attack is on average rows, not on the worst one: a low `auroc` does not prove privacy, only
    a guarantee does.

    Parameters
    ----------
    auroc : float
        Area under the ROC curve of members against non-members; 0.5 is random guessing.
    auroc_error : float
        Its standard error (Hanley and McNeil).
    statistics : ndarray of shape (n_targets,)
        Logarithms of the likelihood ratios, larger for more likely members.
    members : ndarray of bool of shape (n_targets,)
        True for the members.
    n_shadows : int
        Number of shadow data sets.

    Examples
    --------
    >>> import numpy as np
    >>> MembershipReport(0.5, 0.1, np.zeros(4), np.array([1, 1, 0, 0], bool), 32).auroc
    0.5
    """

    auroc: float
    auroc_error: float
    statistics: np.ndarray
    members: np.ndarray
    n_shadows: int


def membership_inference(score, X, y, *, n_targets=200, n_shadows=32, random_state=None):
    """Infer which rows are in a data set from the values of copies of the rows.

    The rows are split at random into members, non-members and a pool for shadow data sets. A copy
    of a target is valued in the data of the members, and its value is compared with normal
    distributions fitted to the values of a copy in shadow data sets with the target (in) and
    without it (out).

    Parameters
    ----------
    score : callable
        ``score(X, y, X_new, y_new)``: the value of each new row if it alone is added to (X, y); for
        a private valuer, with fresh noise. Do not use `score_samples` of a valuer without privacy:
        for a row of fit it returns the value of that row, not that of a second copy.
    X : array-like of shape (n_samples, n_features)
        Rows, from which members, non-members and shadow data sets are drawn.
    y : array-like of shape (n_samples,)
        Labels of the rows.
    n_targets : int, default=200
        Number of attacked rows, one half members and one half non-members.
    n_shadows : int, default=32
        Number of shadow data sets, each as large as the data of the members.
    random_state : int, RandomState instance or None, default=None
        Controls the split of the rows and the shadow data sets.

    Returns
    -------
    report : MembershipReport
        The result of the attack.

    Raises
    ------
    ValueError
        If there are fewer than twice as many rows as targets, fewer than 2 shadow data sets, or an
        odd number of targets.

    References
    ----------
    J. T. Wang et al.: "A Privacy-Friendly Approach to Data Valuation", NeurIPS 2023, Algorithm 1
    (Appendix B.2.2). Its line 6 adds the values without the target to those with it; here they are
    the OUT values that lines 9 and 11 need.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(80.0)[:, None]
    >>> def copies(X, y, X_new, y_new):  # gives membership away
    ...     return np.array([float((row == X).all(axis=1).any()) for row in X_new])
    >>> membership_inference(copies, X, X[:, 0], n_targets=20, random_state=0).auroc
    1.0
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.utils import check_random_state

    X, y = np.asarray(X), np.asarray(y)
    n_targets = check_count(n_targets, "n_targets")
    if n_targets % 2 or 2 * n_targets > len(X):
        raise ValueError(
            f"n_targets must be even and at most half of the rows ({len(X)}): shadow data sets are "
            f"drawn from the others. Got {n_targets}."
        )
    if not isinstance(n_shadows, Integral) or n_shadows < 2:
        raise ValueError(f"n_shadows must be an integer of at least 2. Got {n_shadows!r}.")
    rng = check_random_state(random_state)
    order = rng.permutation(len(X))
    targets, pool = order[:n_targets], order[n_targets:]
    size = n_targets // 2
    inside, outside = np.empty((2, n_shadows, n_targets))
    for t in range(n_shadows):
        shadow = rng.choice(pool, size, replace=False)
        outside[t] = score(X[shadow], y[shadow], X[targets], y[targets])
        for i, target in enumerate(targets):
            joined = np.append(shadow, target)
            only = slice(target, target + 1)
            inside[t, i] = score(X[joined], y[joined], X[only], y[only])[0]
    members = np.arange(n_targets) < size
    observed = score(X[targets[:size]], y[targets[:size]], X[targets], y[targets])
    statistics = _log_normal(observed, inside) - _log_normal(observed, outside)
    auroc = float(roc_auc_score(members, statistics))
    return MembershipReport(auroc, _auroc_error(auroc, size), statistics, members, int(n_shadows))


def _log_normal(values, sample):
    """Log density of the normal distribution fitted to every column of a sample."""
    std = np.maximum(sample.std(axis=0, ddof=1), 1e-12)
    return -0.5 * ((values - sample.mean(axis=0)) / std) ** 2 - np.log(std)


def _auroc_error(auroc, n):
    """Standard error of Hanley and McNeil, Radiology 1982, for n members and n non-members."""
    pairs = auroc / (2 - auroc) + 2 * auroc**2 / (1 + auroc) - 2 * auroc**2
    return math.sqrt(max(auroc * (1 - auroc) + (n - 1) * pairs, 0.0)) / n
