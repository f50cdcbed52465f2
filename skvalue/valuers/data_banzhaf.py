"""Data Banzhaf: Wang and Jia (2023)."""

from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class DataBanzhafValuer(BaseSemivalueValuer):
    """Data Banzhaf: Banzhaf values of rows in the game of training an estimator.

    All coalitions have the same weight, so that coalitions of about half of the rows
    dominate. Among semivalues, the ranking by the Banzhaf value is the most robust to
    noise in utilities.

    Parameters
    ----------
    %(model)s
    %(utility)s
    %(sampling)s
    %(data)s
    %(long)s
    %(jobs)s
    %(random)s

    Attributes
    ----------
    %(values)s
    %(errors)s
    %(counts)s

    See Also
    --------
    SemivalueValuer : Any semivalue.

    References
    ----------
    J. T. Wang, R. Jia: "Data Banzhaf: A Robust Data Valuation Framework for Machine
    Learning", AISTATS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import DataBanzhafValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, train_size=20, stratify=y, random_state=0
    ... )
    >>> valuer = DataBanzhafValuer(max_evaluations=2000, random_state=0)
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> valuer.sampler_, values.shape
    ('subsets', (20,))
    """

    _semivalue = "banzhaf"
