"""Leave-one-out: the decrease of the score without a row."""

from .._utils.sklearn import StrOptions
from ._retraining._newton import newton_game
from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class LeaveOneOutValuer(BaseSemivalueValuer):
    """Leave-one-out values: the decrease of an estimator's score without each row.

    Exact, with one fit per row, or with Newton steps from one fit (`method`). One row rarely
    changes a score, so that most values are zero or noise; the Shapley and Banzhaf values of the
    same rows are more informative.

    Parameters
    ----------
    %(model)s
    method : {"auto", "newton", "refit"}, default="auto"
        How models without a row are found. "refit": by training them, in batches if possible.
        "newton": by Newton steps from the model of all rows, with its Hessian, for the estimators
        of :class:`~skvalue.InfluenceValuer`; models are then at their optimum, whatever `tol` is,
        but transformers of a pipeline and weights of class_weight="balanced" stay those of all
        rows. "auto" is "newton" where it finds the models of a refit and saves time: for single
        rows of an estimator that has a unique optimum, and would be trained one by one.
    %(utility)s
    %(data)s
    %(jobs)s

    Attributes
    ----------
    %(values)s NaN for rows
        that an interrupted or stopped fit has not reached.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Zeros, because no coalitions are drawn at random; infinite where `values_` is NaN.
    approximate_ : bool
        Whether the models are others than those of refits, because transformers, or weights of
        class_weight="balanced", stay those of all rows; True only with method="newton".
    sampler_ : str
        "exact".
    stop_reason_ : str
        "exact", "callback", "interrupted" or "error".
    %(counts)s

    See Also
    --------
    SemivalueValuer : Any semivalue.
    InfluenceValuer : The same question, with a smooth utility and errors over validation points.

    References
    ----------
    R. D. Cook: "Detection of Influential Observation in Linear Regression", Technometrics 19(1),
    1977. K. Rahnama Rad, A. Maleki: "A Scalable Estimate of the Out-of-Sample Prediction Error via
    Approximate Leave-One-Out Cross-Validation", JRSS B 82(4), 2020, Equation 6.

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
    >>> valuer.approximate_
    False
    """

    _parameter_constraints: dict = {
        "method": [StrOptions({"auto", "newton", "refit"})],
        **{
            name: BaseSemivalueValuer._parameter_constraints[name]
            for name in (
                "estimator", "scoring", "empty_utility", "error_score", "task", "cv",
                "class_weight", "batch", "device", "memory", "n_jobs",
            )
        },
    }  # fmt: skip

    sampler = "exact"
    adjust = None
    truncation = max_evaluations = max_time = tol = sign_level = stable_bottom = None
    checkpoint = random_state = None
    warm_start = False

    def __init__(
        self,
        estimator=None,
        *,
        method="auto",
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
        self.method = method
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

    def _game(self, game, X, y, weights, groups):
        if self.method == "newton" and (self.batch, self.device) != ("auto", "auto"):
            raise ValueError(
                "batch and device must be 'auto' with method='newton', which trains one model. Got "
                f"batch={self.batch!r}, device={self.device!r}."
            )
        method = "refit" if self.batch != "auto" else self.method
        return newton_game(game, X, y, weights, groups, method)

    @property
    def approximate_(self):
        """Whether transformers or weights of classes stay those of all rows."""
        fitted = self._record("approximate_", error=AttributeError)
        return "newton, approximate" in fitted.statistic.solvers
