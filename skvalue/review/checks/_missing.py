"""Entries that are missing more often for some labels than for others."""

import numpy as np
from scipy.stats import chi2_contingency

from ._finding import Finding

_LEVEL, _GAP = 0.001, 0.1  # of the test, over the number of columns; difference of the rates
_FEWEST, _CLASS = 5, 20  # missing entries, and present ones; rows of a class that is compared


def find_missing_by_label(columns, codes, words):
    """Columns that may have been filled in after the outcome was known."""
    tested = [c for c in columns if _FEWEST <= c.missing.sum() <= len(codes) - _FEWEST]
    n_classes = codes.max() + 1
    for column in tested:
        lost = np.bincount(codes[column.missing], minlength=n_classes)
        sizes = np.bincount(codes, minlength=n_classes)
        p = chi2_contingency(np.stack([lost, sizes - lost]))[1]
        rates = (lost / sizes)[sizes >= _CLASS]
        gap = float(np.ptp(rates)) if len(rates) > 1 else 0.0
        if p < _LEVEL / len(tested) and gap >= _GAP:
            said = (
                f"{column.name!r} is missing in {100 * gap:.0f} of 100 rows more of one "
                f"{words.group} than of another: was it filled in after the outcome was known?"
            )
            evidence = {"gap": gap, "p": float(p)}
            where = (column.name,)
            yield Finding("missing by label", "question", said, (), where, evidence=evidence)
