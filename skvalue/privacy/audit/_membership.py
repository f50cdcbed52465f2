"""Membership inference by data values: Algorithm 1 of the TKNN-Shapley paper."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from ..._utils.checks import check_count


@dataclass(frozen=True, eq=False)
class MembershipReport:
    """Result of `membership_inference`.

    The attack is on average rows, not on the worst one: a low `auroc` proves no
    privacy, only a guarantee does.

    Parameters
    ----------
    auroc : float
        Area under the ROC curve of members against others; 0.5 is a guess.
    auroc_error : float
        Standard error of the area of a guess (Mann and Whitney).
    statistics : ndarray of shape (n_targets,)
        Logarithms of the likelihood ratios, larger for more likely members.
    is_member : ndarray of bool of shape (n_targets,)
        True for the members.
    n_shadows : int
        Number of shadow data sets.

    See Also
    --------
    membership_inference : Runs the attack.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy.audit import MembershipReport
    >>> MembershipReport(0.5, 0.1, np.zeros(2), np.array([True, False]), 32).auroc
    0.5
    """

    auroc: float
    auroc_error: float
    statistics: np.ndarray
    is_member: np.ndarray
    n_shadows: int


def membership_inference(
    score, X, y, *, n_targets=200, n_shadows=32, random_state=None
):
    """Infer which rows are in a data set from the values of copies of the rows.

    It shows what values tell about rows: exact values of small neighbourhoods give
    membership away. The rows are split at random into members, others and a pool for
    shadow data sets. A copy of a target is valued in the data of the members, and its
    value is compared with normal distributions that are fitted to the values of a copy
    in shadow data sets with the target (in) and without it (out).

    Parameters
    ----------
    score : callable
        ``score(X, y, X_new, y_new)``: the value of each new row if it alone is added to
        (X, y); of a private valuer, with fresh noise. `score_samples` of a valuer
        without privacy will not do: for a row of fit it returns the value of that row,
        and not that of a second copy.
    X : array-like of shape (n_samples, n_features)
        Rows, from which members, others and shadow data sets are drawn.
    y : array-like of shape (n_samples,)
        Labels of the rows.
    n_targets : int, default=200
        Number of attacked rows, an even one: half are members.
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
        If there are fewer than twice as many rows as targets, fewer than 2 shadow data
        sets, or an odd number of targets.

    References
    ----------
    J. T. Wang et al.: "A Privacy-Friendly Approach to Data Valuation", NeurIPS 2023,
    Algorithm 1 (Appendix B.2.2). Its line 6 appends the values without the target to
    those with it; here they are the OUT values that lines 9 and 11 need.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy.audit import membership_inference
    >>> X = np.arange(80.0)[:, None]
    >>> def tells_members(X, y, X_new, y_new):
    ...     return np.isin(X_new[:, 0], X[:, 0]).astype(float)
    >>> report = membership_inference(
    ...     tells_members, X, X[:, 0], n_targets=20, random_state=0
    ... )
    >>> report.auroc
    1.0
    """
    X = np.asarray(X)
    y = np.asarray(y)
    n_targets = check_count(n_targets, "n_targets")
    if n_targets % 2 or 2 * n_targets > len(X):
        raise ValueError(
            "n_targets must be even, and at most half of the number of rows, since "
            f"shadow data sets are drawn from the others. Got {n_targets} of {len(X)}."
        )
    n_shadows = check_count(n_shadows, "n_shadows")
    if n_shadows < 2:
        raise ValueError(
            "n_shadows must be at least 2, to have a standard deviation. Got "
            f"{n_shadows}."
        )
    rng = check_random_state(random_state)
    order = rng.permutation(len(X))
    targets = order[:n_targets]
    pool = order[n_targets:]
    size = n_targets // 2
    inside = np.empty((n_shadows, n_targets))
    outside = np.empty((n_shadows, n_targets))
    for t in range(n_shadows):
        shadow = rng.choice(pool, size, replace=False)
        outside[t] = score(X[shadow], y[shadow], X[targets], y[targets])
        for i, target in enumerate(targets):
            joined = np.append(shadow, target)
            only = slice(target, target + 1)
            inside[t, i] = score(X[joined], y[joined], X[only], y[only])[0]

    members = targets[:size]
    observed = score(X[members], y[members], X[targets], y[targets])
    statistics = _log_normal(observed, inside) - _log_normal(observed, outside)
    is_member = np.arange(n_targets) < size
    return MembershipReport(
        auroc=float(roc_auc_score(is_member, statistics)),
        auroc_error=math.sqrt((2 * size + 1) / (12 * size**2)),
        statistics=statistics,
        is_member=is_member,
        n_shadows=n_shadows,
    )


def _log_normal(values, sample):
    """Log density of the normal distribution fitted to every column of a sample."""
    std = np.maximum(sample.std(axis=0, ddof=1), 1e-12)
    return -0.5 * ((values - sample.mean(axis=0)) / std) ** 2 - np.log(std)
