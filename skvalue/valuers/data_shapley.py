"""Data Shapley: Ghorbani and Zou (2019)."""

from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer

__all__ = ["DataShapleyValuer"]


@documented
class DataShapleyValuer(BaseSemivalueValuer):
    """Data Shapley: the Shapley value of every row in the game of training an estimator.

    Coalitions of every size count the same. The values sum to what all rows together add to none.

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
    KNNShapleyValuer : Exact Shapley values of a model that is not trained.

    References
    ----------
    A. Ghorbani, J. Zou: "Data Shapley: Equitable Valuation of Data for Machine Learning", ICML
    2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import DataShapleyValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(X, y, train_size=20, stratify=y, random_state=0)
    >>> valuer = DataShapleyValuer(max_evaluations=2000, random_state=0)
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> bool(np.isclose(values.sum(), valuer.utility_ - valuer.empty_utility_))
    True
    """

    _parameter_constraints: dict = {**BaseSemivalueValuer._parameter_constraints}

    def __init__(
        self,
        estimator=None,
        *,
        scoring=None,
        empty_utility=None,
        error_score="empty",
        sampler="auto",
        truncation=None,
        max_evaluations=None,
        max_time=None,
        tol=None,
        sign_level=None,
        stable_bottom=None,
        task="auto",
        cv=5,
        batch="auto",
        device="auto",
        memory=None,
        checkpoint=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.empty_utility = empty_utility
        self.error_score = error_score
        self.sampler = sampler
        self.truncation = truncation
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.tol = tol
        self.sign_level = sign_level
        self.stable_bottom = stable_bottom
        self.task = task
        self.cv = cv
        self.batch = batch
        self.device = device
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _semivalue(self):
        return "shapley"
