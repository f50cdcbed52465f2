"""Leave-one-out: the decrease of the score without a row."""

from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class LeaveOneOutValuer(BaseSemivalueValuer):
    """Leave-one-out values: the decrease of an estimator's score without each row.

    Exact, with one fit per row. One row rarely changes a score, so that most values are zero or
    noise; the Shapley and Banzhaf values of the same rows are more informative.

    Parameters
    ----------
    %(model)s
    %(utility)s
    %(data)s
    %(jobs)s

    Attributes
    ----------
    %(values)s NaN for rows
        that an interrupted or stopped fit has not reached.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Zeros, because the values are exact; infinite where `values_` is NaN.
    sampler_ : str
        "exact".
    stop_reason_ : str
        "exact", "callback", "interrupted" or "error".
    %(counts)s

    See Also
    --------
    SemivalueValuer : Any semivalue.

    References
    ----------
    R. D. Cook: "Detection of Influential Observation in Linear Regression", Technometrics 19(1),
    1977.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import LeaveOneOutValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(X, y, train_size=20, stratify=y, random_state=0)
    >>> valuer = LeaveOneOutValuer()
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> valuer.n_evaluations_, valuer.sampler_
    (21, 'exact')
    """

    _parameter_constraints: dict = {
        name: BaseSemivalueValuer._parameter_constraints[name]
        for name in (
            "estimator", "scoring", "empty_utility", "error_score", "task", "cv", "class_weight",
            "batch", "device", "memory", "n_jobs",
        )
    }  # fmt: skip

    sampler = "exact"
    truncation = max_evaluations = max_time = tol = sign_level = stable_bottom = None
    checkpoint = random_state = None
    warm_start = False

    def __init__(
        self,
        estimator=None,
        *,
        scoring=None,
        empty_utility=None,
        error_score="empty",
        task="auto",
        cv=5,
        class_weight=None,
        batch="auto",
        device="auto",
        memory=None,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.empty_utility = empty_utility
        self.error_score = error_score
        self.task = task
        self.cv = cv
        self.class_weight = class_weight
        self.batch = batch
        self.device = device
        self.memory = memory
        self.n_jobs = n_jobs

    @property
    def _semivalue(self):
        return "leave-one-out"
