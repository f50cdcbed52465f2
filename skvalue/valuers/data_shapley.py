"""Data Shapley: Ghorbani and Zou (2019)."""

from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class DataShapleyValuer(BaseSemivalueValuer):
    """Data Shapley: Shapley values of rows in the game of training an estimator.

    All coalition sizes have the same weight. The values sum to the utility of all rows
    minus that of the empty coalition.

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
    KNNShapleyValuer : Exact Shapley values without training, for nearest neighbours.

    References
    ----------
    A. Ghorbani, J. Zou: "Data Shapley: Equitable Valuation of Data for Machine
    Learning", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import DataShapleyValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, train_size=20, stratify=y, random_state=0
    ... )
    >>> valuer = DataShapleyValuer(max_evaluations=2000, random_state=0)
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> bool(np.isclose(values.sum(), valuer.utility_ - valuer.empty_utility_))
    True
    """

    _semivalue = "shapley"
