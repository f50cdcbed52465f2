"""Beta Shapley: Kwon and Zou (2022)."""

from numbers import Real

from .._utils.sklearn import Interval
from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class BetaShapleyValuer(BaseSemivalueValuer):
    """Beta Shapley: semivalues of rows in the game of training an estimator.

    A large `alpha` puts weight on small coalitions, in which a wrong label does most
    harm; (1, 1) is Data Shapley.

    Parameters
    ----------
    %(model)s
    alpha : float, default=16
        First parameter, from 1e-6 to 1e300; larger values put more weight on small
        coalitions.
    beta : float, default=1
        Second parameter, likewise; larger values put more weight on large coalitions.
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
    Y. Kwon, J. Zou: "Beta Shapley: a Unified and Noise-reduced Data Valuation Framework
    for Machine Learning", AISTATS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import BetaShapleyValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, train_size=20, stratify=y, random_state=0
    ... )
    >>> valuer = BetaShapleyValuer(alpha=4, max_evaluations=2000, random_state=0)
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> valuer.sampler_, values.shape
    ('stratified', (20,))
    """

    _parameter_constraints: dict = {
        **BaseSemivalueValuer._parameter_constraints,
        "alpha": [Interval(Real, 1e-6, 1e300, closed="both")],
        "beta": [Interval(Real, 1e-6, 1e300, closed="both")],
    }

    def __init__(
        self,
        estimator=None,
        *,
        alpha: float = 16,
        beta: float = 1,
        scoring=None,
        empty_utility=None,
        error_score: float | str = "empty",
        sampler="auto",
        group_values="players",
        adjust: bool | str = "auto",
        truncation=None,
        max_evaluations=None,
        max_time=None,
        tol=None,
        task="auto",
        cv: object = 5,
        class_weight=None,
        batch="auto",
        device="auto",
        checkpoint=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
    ):
        super().__init__(
            estimator,
            scoring=scoring,
            empty_utility=empty_utility,
            error_score=error_score,
            sampler=sampler,
            group_values=group_values,
            adjust=adjust,
            truncation=truncation,
            max_evaluations=max_evaluations,
            max_time=max_time,
            tol=tol,
            task=task,
            cv=cv,
            class_weight=class_weight,
            batch=batch,
            device=device,
            checkpoint=checkpoint,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.alpha = alpha
        self.beta = beta

    @property
    def _semivalue(self):
        return self.alpha, self.beta
