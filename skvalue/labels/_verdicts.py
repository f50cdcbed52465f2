"""What verdicts on some rows of a ranked list say about the whole list."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from .._utils.checks import check_length, one_column
from .._utils.warned import warn

_FEWEST = 10  # verdicts that a curve is fitted to
_LEVEL = 0.95  # confidence of the interval of the error rate
_PRIOR = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1, 0, 0, 1]), np.full(4, 0.5)


def draw_rows(n_listed, n_verdicts, rng):
    """Draw places of a ranked list to look at, without replacement.

    Low ranks decide where a list ends, so the weight of a place is 1 / (rank +
    n_verdicts / 4).

    Parameters
    ----------
    n_listed : int
        Length of the list.
    n_verdicts : int
        Number of places to draw; all of them if the list is shorter.
    rng : Generator
        Source of random numbers.

    Returns
    -------
    places : ndarray of shape (min(n_verdicts, n_listed),)
        Places, from 0, in the order of the draw: the first m of them are a draw of m.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import draw_rows
    >>> sorted(draw_rows(3, 5, np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    ranks = np.arange(1, n_listed + 1)
    keys = rng.exponential(size=n_listed) * (ranks + n_verdicts / 4)
    return np.argsort(keys, kind="stable")[:n_verdicts]


def check_places(rows, n):
    """Row numbers, or an error."""
    rows = one_column(rows, "rows")
    wrong = len(rows) and (
        rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n
    )
    if wrong:
        raise ValueError(
            f"rows must be row numbers from 0 to {n - 1}. Got {rows.tolist()!r}."
        )
    return rows.astype(np.intp)


def check_verdicts(rows, is_error, n):
    """Check verdicts on rows, and put them into a dict.

    Parameters
    ----------
    rows : array-like of int of shape (n_verdicts,)
        Row numbers.
    is_error : array-like of bool of shape (n_verdicts,)
        Whether the label of each row is wrong.
    n : int
        Number of all rows.

    Returns
    -------
    verdicts : dict of int to bool
        Row -> whether its label is wrong.

    Raises
    ------
    ValueError
        If there is no such row, or a verdict is neither true nor false.

    Examples
    --------
    >>> from skvalue.labels import check_verdicts
    >>> check_verdicts([4, 2], [True, False], 10)
    {4: True, 2: False}
    """
    rows, is_error = check_places(rows, n), one_column(is_error, "is_error")
    check_length(is_error, "is_error", len(rows), "rows")
    if not np.isin(is_error, [0, 1]).all():
        raise ValueError(
            f"is_error must hold True or False. Got {is_error.tolist()!r}."
        )
    return dict(zip(rows.tolist(), map(bool, is_error.tolist())))


@dataclass(frozen=True, eq=False)
class Curve:
    """Probability that the label is right by place, and what its uncertainty is made
    of."""

    right: np.ndarray  # probability of each place
    slopes: np.ndarray  # its derivatives by the coefficients, of shape (n_listed, 2)
    covariance: np.ndarray  # of the coefficients


def fit_curve(n_listed, places, is_error):
    """Fit the probability that a label is right as a logistic function of the log of
    its rank.

    Parameters
    ----------
    n_listed : int
        Length of the ranked list.
    places : ndarray of shape (n_verdicts,)
        Places of the rows with a verdict.
    is_error : ndarray of bool of shape (n_verdicts,)
        Whether their labels are wrong.

    Returns
    -------
    curve : Curve
        ``right``: the probability that the label at each place is right; ``slopes`` and
        ``covariance``: for standard errors by the delta method.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import fit_curve
    >>> places = np.arange(0, 100, 2)
    >>> right = fit_curve(100, places, places < 40).right
    >>> bool(right[:20].max() < 0.2), bool(right[-20:].min() > 0.8)
    (True, True)
    """
    ranks = np.arange(1, n_listed + 1)
    x = np.log(ranks + len(places) / 4)
    x = (x - x[places].mean()) / (x[places].std() + 1e-9)
    rows = np.concatenate([x[places], _PRIOR[0]])  # two rows in favour of neither
    right = np.concatenate([~np.asarray(is_error, dtype=bool), _PRIOR[1]]).astype(int)
    weights = np.concatenate([np.ones(len(places)), _PRIOR[2]])
    model = LogisticRegression(C=10.0).fit(rows[:, None], right, weights)
    slope, intercept = model.coef_[0, 0], model.intercept_[0]
    p = expit(intercept + slope * rows)
    design = np.column_stack([np.ones(len(rows)), rows])
    information = (design * (weights * p * (1 - p))[:, None]).T @ design
    covariance = np.linalg.inv(information + 1e-3 * np.eye(2))
    p = expit(intercept + slope * x)
    return Curve(
        p, (p * (1 - p))[:, None] * np.column_stack([np.ones(n_listed), x]), covariance
    )


def list_qvalues(curve, z=0.0):
    """Lowest fraction of right labels of any list of first places that holds each
    place.

    Parameters
    ----------
    curve : Curve
        From `fit_curve`.
    z : float, default=0.0
        Standard errors to add, of the curve and of labels drawn from it: 1.645 for an
        upper bound of the fraction in a list, at a confidence of 95 %.

    Returns
    -------
    q_values : ndarray of shape (n_listed,)
        Non-decreasing in the place.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import fit_curve, list_qvalues
    >>> places = np.arange(0, 100, 2)
    >>> q = list_qvalues(fit_curve(100, places, places < 40))
    >>> 35 < int((q <= 0.1).sum()) < 50
    True
    """
    ranks = np.arange(1, len(curve.right) + 1)
    fdp = np.cumsum(curve.right) / ranks
    if z:
        g = np.cumsum(curve.slopes, axis=0) / ranks[:, None]
        variance = np.einsum("ij,jk,ik->i", g, curve.covariance, g)
        drawn = (
            np.cumsum(curve.right * (1 - curve.right)) / ranks**2
        )  # labels, given the curve
        fdp = fdp + z * np.sqrt(variance + drawn)
    return np.minimum(np.minimum.accumulate(fdp[::-1])[::-1], 1.0)


def count_errors(curve, places, is_error):
    """Estimate how many labels of the list are wrong: those with a verdict are known.

    Parameters
    ----------
    curve : Curve
        From `fit_curve`.
    places : ndarray of shape (n_verdicts,)
        Places of the rows with a verdict.
    is_error : ndarray of bool of shape (n_verdicts,)
        Whether their labels are wrong.

    Returns
    -------
    count : float
        Expected number of wrong labels.
    error : float
        Standard error: of the curve, and of what is drawn from it at the other places.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import count_errors, fit_curve
    >>> places = np.arange(0, 100, 2)
    >>> count, error = count_errors(fit_curve(100, places, places < 40), places, places < 40)
    >>> bool(abs(count - 40) < 2 * error)
    True
    """
    unseen = np.ones(len(curve.right), dtype=bool)
    unseen[places] = False
    p = curve.right[unseen]
    total = curve.slopes[unseen].sum(axis=0)
    variance = total @ curve.covariance @ total + np.sum(p * (1 - p))
    return float(np.sum(is_error) + np.sum(1 - p)), float(np.sqrt(variance))


def make_statement(listed, verdicts, values, fdr, confidence):
    """State what verdicts on some rows of a list say about the whole list.

    Parameters
    ----------
    listed : ndarray of int of shape (n_listed,)
        The rows whose suggestion differs from their label, most doubtful first.
    verdicts : dict of int to bool
        Row -> whether its label is wrong.
    values : ndarray of shape (n_samples,)
        Values of all rows, as of :class:`~skvalue.LabelErrorDetector`.
    fdr : float
        Largest fraction of right labels among the rows that are named.
    confidence : float or None
        Confidence of that bound; None bounds the expected fraction.

    Returns
    -------
    statement : dict
        The attributes that :meth:`skvalue.LabelErrorDetector.review` sets:
        ``q_values_``, ``label_error_``, ``threshold_``, ``error_rate_`` and
        ``verdicts_``.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import make_statement
    >>> verdicts = {row: row < 20 for row in range(0, 60, 2)}
    >>> values = np.arange(100.0)
    >>> statement = make_statement(np.arange(60), verdicts, values, fdr=0.1, confidence=None)
    >>> statement["label_error_"][:15].all(), statement["label_error_"][40:].any()
    (np.True_, np.False_)
    """
    n = len(values)
    place = {row: number for number, row in enumerate(listed.tolist())}
    seen = {place[row]: wrong for row, wrong in verdicts.items() if row in place}
    places, wrong = (
        np.array(list(seen), dtype=np.intp),
        np.array(list(seen.values()), dtype=bool),
    )
    by_list, count, low, high = (
        np.ones(len(listed)),
        wrong.sum(),
        wrong.sum(),
        len(listed),
    )
    if len(seen) >= _FEWEST:
        curve = fit_curve(len(listed), places, wrong)
        by_list = list_qvalues(
            curve, 0.0 if confidence is None else norm.ppf(confidence)
        )
        count, error = count_errors(curve, places, wrong)
        within = norm.ppf(0.5 + (confidence or _LEVEL) / 2) * error
        high = min(count + within, high - np.sum(~wrong))
        low = max(count - within, low)
    elif len(seen) < len(listed):
        warn(
            f"{len(seen)} verdicts on rows of the list say nothing about its other rows: at least "
            f"{_FEWEST} do, and n_verdicts is the recommended number.",
            UserWarning,
        )
    q_values = np.ones(n)
    q_values[listed] = by_list
    named = values[listed][by_list <= fdr]
    rows = np.array(list(verdicts), dtype=np.intp)
    is_error = np.array(list(verdicts.values()), dtype=bool)
    q_values[rows] = np.where(is_error, 0.0, 1.0)
    return {
        "q_values_": q_values,
        "label_error_": q_values <= fdr,
        "threshold_": float(named.max(initial=-np.inf)),
        "error_rate_": Bunch(
            rate=float(count / n), low=float(low / n), high=float(high / n),
            confidence=confidence or _LEVEL,
        ),
        "verdicts_": Bunch(row=rows, is_error=is_error),
    }  # fmt: skip
