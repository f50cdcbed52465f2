"""Estimator that makes a seller's private summary."""

from numbers import Integral, Real

from sklearn.base import BaseEstimator

from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...privacy import Ledger, Release, make_report, sentences, warn_of_large_delta
from ..maps import as_model, count_rows
from .mechanism import moment_statistic, release_event, unpack
from .summary import Summary

RELEASE_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither"), None],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
}


class SellerRelease(BaseEstimator):
    """A seller's private summary of its rows for a buyer.

    The rows are transformed by the buyer's maps and clipped to the radius around its
    centre. Gaussian noise, calibrated to the guarantee, is added to their mean and
    second moment, the only data that leave the machine. The sensitivity of the second
    moment around a fixed centre is 2.8 times smaller than that of the covariance, and
    one release of both moments needs less noise than two separate releases.

    Parameters
    ----------
    model : BuyerModel, str or path-like
        The buyer's model, or the folder it was exported to.
    epsilon : float or None, default=0.8
        Total privacy loss of the rows. None: no noise and no privacy.
    delta : float, default=1e-5
        Delta of the guarantee.
    relation : {"replace", "null", "add_remove"}, default="replace"
        Neighbouring relation: one row is replaced by any other ("replace") or by a null
        row, which adds nothing to the sums ("null"), or is added or removed
        ("add_remove", which also protects the number of rows).
    ledger : Ledger, default=None
        Ledger to charge before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        Seed of the noise, for tests and experiments only: it VOIDS the guarantee.

    Attributes
    ----------
    summary_ : Summary
        The only object that may leave the machine, as ``summary_.to_json()``.
    privacy_ : PrivacyReport
        Guarantee of the summary; None without noise.
    n_null_rows_ : int
        Number of rows that the buyer's maps cannot transform, or with NaN or infinity,
        which count as null rows in a private summary. It is for the seller alone: no
        summary, message or error depends on it. Without noise such rows are refused.

    See Also
    --------
    skvalue.PriArTaScorer : The buyer's scorer of summaries.

    References
    ----------
    "Private, Augmentation-Robust and Task-Agnostic Data Valuation Approach for Data
    Marketplace" (PriArTa), Section 4, with another mechanism; B. Balle, Y.-X. Wang:
    "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.priarta import PriArTaScorer, SellerRelease
    >>> X = np.random.default_rng(0).normal(size=(1000, 2)) / 3
    >>> model = PriArTaScorer(max_norm=1.0).fit(X).model_
    >>> SellerRelease(model, epsilon=0.8).fit(X + 1).summary_.guarantee
    '(0.8, 1e-05)-differential privacy of a row, relation replace'
    """

    _parameter_constraints: dict = {
        "model": "no_validation",
        **RELEASE_CONSTRAINTS,
        "ledger": [Ledger, None],
        "noise_random_state": [Integral, None],
    }

    def __init__(
        self,
        model,
        epsilon: float | None = 0.8,
        *,
        delta=1e-5,
        relation="replace",
        ledger=None,
        noise_random_state=None,
    ):
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Make the summary.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The seller's rows, in the shape of the buyer's rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted estimator, which keeps neither the rows nor exact moments.

        Raises
        ------
        ValueError
            If the rows do not have the shape of the model's, are fewer than 2, or the
            release exceeds the ledger's budget; no noise is drawn then. Without noise
            also if a row is not finite, or a map gives NaN or infinity for it.
        """
        model = as_model(self.model)
        n_rows = count_rows(X)
        if n_rows < 2:
            raise ValueError(
                f"X must have at least 2 rows, to have a covariance. Got {n_rows}."
            )

        # Rows of norm at most 1 -> sums -> noise -> moments.
        weight = model.mean_weight
        radius = model.max_norm
        event = release_event(self.epsilon, self.delta, weight, self.relation)
        n_null = 0
        if event is None:
            rows = model.transform(X)
        else:
            rows, is_null = model.private_rows(X)
            n_null = int(is_null.sum())
        statistic = moment_statistic(rows / radius, weight, self.relation)
        if event is not None:
            warn_of_large_delta(self.delta, n_rows)
            release = Release(
                event,
                self.ledger,
                label=type(self).__name__,
                noise_random_state=self.noise_random_state,
            )
            statistic = release.of(statistic)
        public_count = None if self.relation == "add_remove" else n_rows
        moments = unpack(statistic, model.n_dimensions, weight, public_count)

        is_noisy = event is not None
        summary = Summary(
            model=model.fingerprint,
            n_samples=moments.n_samples,
            max_norm=radius,
            centre=model.centre,
            relation=self.relation,
            epsilon=self.epsilon,
            delta=self.delta if is_noisy else None,
            mean_weight=weight,
            noise_scale=event.scale if is_noisy else 0.0,
            seeded=is_noisy and self.noise_random_state is not None,
            mean=radius * moments.mean,
            moment=radius**2 * moments.moment,
        )
        report = _report_of(summary)
        self.summary_ = summary
        self.privacy_ = report
        self.n_null_rows_ = n_null
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.two_d_array = False
        return tags


def _report_of(summary):
    """The guarantee of a summary as a report; None without noise."""
    if summary.event is None:
        return None
    protects = "the content of any one row of the seller"
    not_protected = []
    if summary.relation == "add_remove":
        protects += ", and its presence"
    else:
        not_protected.append("the number of rows, which is released exactly")
    not_protected += [
        "properties of many rows at once, such as which classes the seller has",
        sentences.RUNNING_TIMES,
        "the buyer's data: sellers have the weights, centre and radius of its model",
    ]
    return make_report(
        summary.event,
        summary.delta,
        notion="central",
        unit="row",
        protects=protects,
        against="the buyer, the other sellers and anyone to whom they pass it on",
        not_protected=tuple(not_protected),
        assumptions=(
            "the buyer's maps transform each row separately, and were fitted without "
            "these rows",
            "this epsilon was chosen without looking at these rows",
            sentences.NO_COPIES.format("seller"),
        ),
        noise_random_state=0 if summary.seeded else None,
    )
