"""Any semivalue of the game of training an estimator on a coalition of rows."""

from ._retraining._text import documented
from ._retraining._valuer import BaseSemivalueValuer


@documented
class SemivalueValuer(BaseSemivalueValuer):
    """Semivalue of every row in the game of training an estimator on coalitions.

    The utility of a coalition of rows is the score, on the validation set, of the
    estimator trained on that coalition. A semivalue is a mean of the marginal
    contributions of a row to coalitions of the other rows, weighted by their sizes.
    Values are estimated from random coalitions, with standard errors, or exact if there
    are few coalitions.

    Parameters
    ----------
    %(model)s
    semivalue : {"shapley", "banzhaf"}, tuple or callable, default="shapley"
        The semivalue; a tuple (alpha, beta) is Beta Shapley, a callable a custom
        semivalue, see `skvalue.semivalues.size_weights`. Leave-one-out is
        `LeaveOneOutValuer`.
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
    DataShapleyValuer : All sizes of coalitions alike.
    DataBanzhafValuer : All coalitions alike.
    BetaShapleyValuer : Small, or large, coalitions more.
    LeaveOneOutValuer : The coalition of all other rows.
    KNNShapleyValuer : Exact Shapley values without training, for nearest neighbours.

    References
    ----------
    P. Dubey, A. Neyman, R. J. Weber: "Value Theory without Efficiency", Mathematics of
    Operations Research 6(1), 1981.

    P. Kolpaczki, V. Bengs, M. Muschalik, E. Hüllermeier: "Approximating the Shapley
    Value without Marginal Contributions", AAAI 2024 (strata of sizes, each coalition
    used for all players).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import SemivalueValuer
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, train_size=20, stratify=y, random_state=0
    ... )
    >>> valuer = SemivalueValuer(max_evaluations=2000, random_state=0)
    >>> values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    >>> gain = valuer.utility_ - valuer.empty_utility_
    >>> valuer.sampler_, bool(np.isclose(values.sum(), gain))
    ('stratified', True)
    >>> bool((valuer.values_error_ < 0.02).all())
    True
    """

    _parameter_constraints: dict = {
        **BaseSemivalueValuer._parameter_constraints,
        "semivalue": [str, tuple, list, callable],
    }

    def __init__(
        self,
        estimator=None,
        semivalue: object = "shapley",
        *,
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
        self.semivalue = semivalue

    @property
    def _semivalue(self):
        return self.semivalue
