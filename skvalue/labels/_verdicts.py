"""What verdicts on some rows of a ranked list say about the whole list."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from .._utils.checks import check_length, format_values, one_column
from .._utils.warned import warn
from ..exceptions import ParameterError

# Fewest verdicts that a curve is fitted to.
_MIN_VERDICTS = 10

# Default confidence of the interval of the error rate.
_CONFIDENCE = 0.95

# Four half rows in the fit of a curve, in favour of neither slope.
_PRIOR_POSITIONS = np.array([1.0, -1.0, 1.0, -1.0])
_PRIOR_LABELS = np.array([1, 0, 0, 1])
_PRIOR_WEIGHTS = np.full(4, 0.5)

# Added to the information of two coefficients, so that it can be inverted.
_RIDGE = 1e-3


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


def check_row_numbers(rows, n_rows):
    """Row numbers from 0 to n_rows - 1 as an array of integers."""
    rows = one_column(rows, "rows")
    if not len(rows):
        return rows.astype(np.intp)
    if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows:
        raise ParameterError(
            "rows",
            f"must be row numbers from 0 to {n_rows - 1}. Got {format_values(rows)}.",
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
        Row -> whether its label is wrong: the last verdict, if a row has several.

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
    rows = check_row_numbers(rows, n)
    is_error = one_column(is_error, "is_error")
    check_length(is_error, "is_error", len(rows), "rows")
    if not np.isin(is_error, [0, 1]).all():
        raise ParameterError(
            "is_error", f"must hold True or False. Got {is_error.tolist()!r}."
        )
    return dict(zip(rows.tolist(), map(bool, is_error.tolist())))


@dataclass(frozen=True, eq=False)
class Curve:
    """Probability that a label is right by its place in a list.

    Parameters
    ----------
    right : ndarray of shape (n_listed,)
        The probability at each place.
    slopes : ndarray of shape (n_listed, 2)
        Its derivatives by the two coefficients of the curve.
    covariance : ndarray of shape (2, 2)
        Covariance of the coefficients.
    """

    right: np.ndarray
    slopes: np.ndarray
    covariance: np.ndarray


def fit_curve(n_listed, places, is_error):
    """Fit a logistic curve in the log of the rank to verdicts on some places.

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
    # The same offset as that of `draw_rows`, so that verdicts are spread evenly in x.
    ranks = np.arange(1, n_listed + 1)
    x = np.log(ranks + len(places) / 4)
    x = (x - x[places].mean()) / (x[places].std() + 1e-9)

    x_seen = np.concatenate([x[places], _PRIOR_POSITIONS])
    is_right = ~np.asarray(is_error, dtype=bool)
    labels = np.concatenate([is_right, _PRIOR_LABELS]).astype(int)
    weights = np.concatenate([np.ones(len(places)), _PRIOR_WEIGHTS])
    model = LogisticRegression(C=10.0).fit(x_seen[:, None], labels, weights)
    slope = model.coef_[0, 0]
    intercept = model.intercept_[0]

    # The covariance of the coefficients is the inverse of the Fisher information.
    p = expit(intercept + slope * x_seen)
    design = np.column_stack([np.ones(len(x_seen)), x_seen])
    information = (design * (weights * p * (1 - p))[:, None]).T @ design
    covariance = np.linalg.inv(information + _RIDGE * np.eye(2))

    p = expit(intercept + slope * x)
    slopes = (p * (1 - p))[:, None] * np.column_stack([np.ones(n_listed), x])
    return Curve(p, slopes, covariance)


def list_qvalues(curve, z=0.0):
    """Lowest fraction of right labels in any prefix of the list that has a place.

    Parameters
    ----------
    curve : Curve
        From `fit_curve`.
    z : float, default=0.0
        Number of standard errors to add, of the curve and of labels drawn from it:
        1.645 for an upper bound of the fraction in a prefix, at a confidence of 95 %.

    Returns
    -------
    q_values : ndarray of shape (n_listed,)
        The fraction for each place; non-decreasing in the place.

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
    fractions = np.cumsum(curve.right) / ranks
    if z:
        gradients = np.cumsum(curve.slopes, axis=0) / ranks[:, None]
        variance_of_curve = np.einsum(
            "ij,jk,ik->i", gradients, curve.covariance, gradients
        )
        variance_of_labels = np.cumsum(curve.right * (1 - curve.right)) / ranks**2
        fractions = fractions + z * np.sqrt(variance_of_curve + variance_of_labels)

    # A prefix that contains a place ends there or later.
    lowest_fractions = np.minimum.accumulate(fractions[::-1])[::-1]
    return np.minimum(lowest_fractions, 1.0)


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
    >>> is_error = places < 40
    >>> curve = fit_curve(100, places, is_error)
    >>> count, error = count_errors(curve, places, is_error)
    >>> bool(abs(count - 40) < 2 * error)
    True
    """
    unseen = np.ones(len(curve.right), dtype=bool)
    unseen[places] = False
    p = curve.right[unseen]
    count = np.sum(is_error) + np.sum(1 - p)
    gradient = curve.slopes[unseen].sum(axis=0)
    variance = gradient @ curve.covariance @ gradient + np.sum(p * (1 - p))
    return float(count), float(np.sqrt(variance))


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
    >>> statement = make_statement(
    ...     np.arange(60), verdicts, values, fdr=0.1, confidence=None
    ... )
    >>> statement["label_error_"][:15].all(), statement["label_error_"][40:].any()
    (np.True_, np.False_)
    """
    n_samples = len(values)
    n_listed = len(listed)

    # Verdicts on rows of the list, by their places in it.
    place_of_row = {row: place for place, row in enumerate(listed.tolist())}
    listed_verdicts = {
        place_of_row[row]: is_error
        for row, is_error in verdicts.items()
        if row in place_of_row
    }
    places = np.array(list(listed_verdicts), dtype=np.intp)
    is_wrong = np.array(list(listed_verdicts.values()), dtype=bool)

    # Without a curve, verdicts say nothing about the other rows of the list: none of
    # them or all may be wrong.
    q_values_of_list = np.ones(n_listed)
    count = is_wrong.sum()
    low = is_wrong.sum()
    high = n_listed
    if len(places) >= _MIN_VERDICTS:
        curve = fit_curve(n_listed, places, is_wrong)
        z = 0.0 if confidence is None else norm.ppf(confidence)
        q_values_of_list = list_qvalues(curve, z)
        count, error = count_errors(curve, places, is_wrong)
        two_sided = 0.5 + (confidence or _CONFIDENCE) / 2
        margin = norm.ppf(two_sided) * error

        # Labels with a verdict are known, whatever the curve says.
        high = min(count + margin, n_listed - np.sum(~is_wrong))
        low = max(count - margin, is_wrong.sum())
    elif len(places) < n_listed:
        warn(
            f"{len(places)} verdicts on rows of the list say nothing about its other "
            f"rows: at least {_MIN_VERDICTS} do, and n_verdicts is the recommended "
            "number.",
            UserWarning,
        )
    values_of_named = values[listed][q_values_of_list <= fdr]

    # A verdict decides about its own row.
    rows = np.array(list(verdicts), dtype=np.intp)
    is_error = np.array(list(verdicts.values()), dtype=bool)
    q_values = np.ones(n_samples)
    q_values[listed] = q_values_of_list
    q_values[rows] = np.where(is_error, 0.0, 1.0)
    return {
        "q_values_": q_values,
        "label_error_": q_values <= fdr,
        "threshold_": float(values_of_named.max(initial=-np.inf)),
        "error_rate_": Bunch(
            rate=float(count / n_samples),
            low=float(low / n_samples),
            high=float(high / n_samples),
            confidence=confidence or _CONFIDENCE,
        ),
        "verdicts_": Bunch(row=rows, is_error=is_error),
    }
