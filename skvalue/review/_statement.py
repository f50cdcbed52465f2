"""What verdicts on rows say about the list that a fit has made."""

import numpy as np
from scipy.stats import norm
from sklearn.utils import Bunch

from .._utils.warned import warn
from ._verdicts import count_errors, fit_curve, list_qvalues

_FEWEST = 10  # verdicts that a curve is fitted to
_LEVEL = 0.95  # confidence of the interval of the error rate


def make_statement(listed, verdicts, values, fdr, confidence):
    """What verdicts (row -> whether its label is wrong) say: the attributes that `review` sets.

    ``listed``: the rows whose suggestion differs, most doubtful first.
    """
    n = len(values)
    place = {row: number for number, row in enumerate(listed.tolist())}
    seen = {place[row]: wrong for row, wrong in verdicts.items() if row in place}
    places, wrong = np.array(list(seen), dtype=np.intp), np.array(list(seen.values()), dtype=bool)
    by_list, count, low, high = np.ones(len(listed)), wrong.sum(), wrong.sum(), len(listed)
    if len(seen) >= _FEWEST:
        curve = fit_curve(len(listed), places, wrong)
        by_list = list_qvalues(curve, 0.0 if confidence is None else norm.ppf(confidence))
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
