"""Estimator that makes a seller's private summary."""

import secrets
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...privacy import GaussianEvent, Ledger, add_noise, make_report, warn_of_large_delta
from ..maps import as_model, count_rows
from .mechanism import calibrated_scale, moment_statistic, sensitivity_of, unpack
from .plan import ReleasePlan
from .summary import Summary

RELEASE_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither"), None],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "mechanism": [StrOptions({"central", "local"})],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
    "subset_size": [Interval(Integral, 2, None, closed="left"), None],
    "secret_subset": ["boolean"],
}


class SellerRelease(BaseEstimator):
    """A seller's private summary of its rows for a buyer.

    The rows are transformed by the buyer's maps and clipped to the radius around its centre.
    Gaussian noise, calibrated to the guarantee, is added to their mean and second moment, the only
    data that leave the machine. The sensitivity of the second moment around a fixed centre is 2.8
    times smaller than that of the covariance, and one release of both moments needs less noise than
    two separate releases.

    Parameters
    ----------
    model : BuyerModel, str or path-like
        The buyer's model, or the folder it was exported to.
    epsilon : float or None, default=0.8
        Total privacy loss of the rows. None: no noise and no privacy.
    delta : float, default=1e-5
        Delta of the guarantee.
    mechanism : {"central", "local"}, default="central"
        "central" adds noise once, to the moments. "local" adds noise to every row before any sums
        are computed; the buyer corrects the expected bias, but below tens of thousands of rows the
        distances are not accurate.
    relation : {"replace", "null", "add_remove"}, default="replace"
        Neighbouring relation: one row is replaced by any other ("replace") or by a null row, which
        adds nothing to the sums ("null"), or is added or removed ("add_remove", which also protects
        the number of rows).
    subset_size : int, default=None
        Size of a random subset of rows, drawn without replacement, to summarize. None takes all.
    secret_subset : bool, default=True
        Whether the subset is kept secret, which improves the guarantee ("replace" only).
    ledger : Ledger, default=None
        Ledger to charge before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        Seed of noise and subset, for tests and experiments only: it VOIDS the guarantee.

    Attributes
    ----------
    summary_ : Summary
        The only object that may leave the machine, as ``summary_.to_json()``.
    privacy_ : PrivacyReport
        Guarantee of the summary; None without noise.

    See Also
    --------
    skvalue.PriArTaScorer : The buyer's scorer of summaries.

    References
    ----------
    "Private, Augmentation-Robust and Task-Agnostic Data Valuation Approach for Data Marketplace"
    (PriArTa), Section 4, with another mechanism; B. Balle, Y.-X. Wang: "Improving the Gaussian
    Mechanism for Differential Privacy", ICML 2018.

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
        epsilon=0.8,
        *,
        delta=1e-5,
        mechanism="central",
        relation="replace",
        subset_size=None,
        secret_subset=True,
        ledger=None,
        noise_random_state=None,
    ):
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.relation = relation
        self.subset_size = subset_size
        self.secret_subset = secret_subset
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
            If the rows do not suit the model, are fewer than 2 or than `subset_size`, parameters
            are inconsistent, or the release exceeds the ledger's budget; no noise is drawn then.
        """
        model = as_model(self.model)
        n_rows = count_rows(X)
        plan = self._plan(model, n_rows)
        radius = model.max_norm or 1.0
        rows = model.transform(X) / radius
        if plan.event is not None:
            warn_of_large_delta(self.delta, n_rows)
            if self.ledger is not None:
                self.ledger.charge(plan.event, label=type(self).__name__)
        if plan.n_rows is not None:
            rows = rows[self._draw_subset(plan.n_rows, plan.n_samples)]
        mean, moment, count = self._noisy_moments(rows, plan)
        facts = vars(plan) | {"n_samples": count}
        summary = Summary(**facts, mean=radius * mean, moment=radius**2 * moment)
        self.summary_, self.privacy_ = summary, report_of(summary)
        return self

    def plan(self, n_rows):
        """Noise and guarantee of a release of a number of rows, without the rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        plan : ReleasePlan
            Noise scale and guarantee.

        Raises
        ------
        ValueError
            If there are too few rows, or parameters are inconsistent.
        """
        return self._plan(as_model(self.model), n_rows)

    # Computation ------------------------------------------------------------------------------

    def _plan(self, model, n_rows):
        check_release(self, model.max_norm)
        size = n_rows if self.subset_size is None else self.subset_size
        if n_rows < 2 or size > n_rows:
            why = "to have a covariance" if self.subset_size is None else "to draw subset_size from"
            raise ValueError(f"X must have at least {max(2, size)} rows, {why}. Got {n_rows}.")
        mechanism = "none" if self.epsilon is None else self.mechanism
        noisy = self.epsilon is not None
        secret = self.secret_subset and self.relation == "replace" and mechanism == "central"
        secret = secret and size < n_rows
        scale = 0.0
        if noisy:
            sensitivity = sensitivity_of(mechanism, model.mean_weight, self.relation)
            rate = size / n_rows if secret else None
            scale = calibrated_scale(self.epsilon, self.delta, sensitivity, self.relation, rate)
        return ReleasePlan(
            model=model.fingerprint,
            n_samples=size,
            n_rows=n_rows if size < n_rows else None,
            max_norm=model.max_norm,
            centre=model.centre,
            mechanism=mechanism,
            relation=self.relation,
            epsilon=self.epsilon,
            delta=self.delta if noisy else None,
            mean_weight=model.mean_weight,
            noise_scale=scale,
            secret_subset=secret,
            seeded=self.noise_random_state is not None and noisy,
        )

    def _draw_subset(self, n_rows, size):
        if self.noise_random_state is not None:
            return np.random.default_rng([self.noise_random_state, 1]).permutation(n_rows)[:size]
        return np.array(secrets.SystemRandom().sample(range(n_rows), size))

    def _noisy_moments(self, rows, plan):
        """Noisy mean, second moment and number of rows, in units of the radius."""

        def noisy(values):
            event = GaussianEvent(plan.noise_scale)
            return add_noise(values, event, noise_random_state=self.noise_random_state)

        if plan.mechanism == "local":
            rows = noisy(rows)
        central = plan.mechanism == "central"
        relation = plan.relation if central else "replace"
        statistic = moment_statistic(rows, plan.mean_weight, relation)
        statistic = noisy(statistic) if central else statistic
        hidden = relation == "add_remove"  # the number of rows
        mean, moment, count = unpack(
            statistic, plan.n_dimensions, plan.mean_weight, None if hidden else plan.n_samples
        )
        if hidden:
            # Sums over a noisy count may be out of range; clipping is post-processing.
            mean, moment = mean / max(1.0, np.linalg.norm(mean)), np.clip(moment, -1, 1)
        return mean, moment, count

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.two_d_array = False
        return tags


def check_release(parameters, max_norm):
    """Raise a ValueError for inconsistent parameters of a release; `max_norm` is the radius."""
    relation, subset_size = parameters.relation, parameters.subset_size
    if parameters.epsilon is None:
        return
    if max_norm is None:
        raise ValueError(
            "max_norm must be a number with epsilon: without a radius no noise is enough. Got None."
        )
    if relation == "add_remove" and parameters.mechanism == "local":
        raise ValueError(
            "relation must be 'replace' or 'null' for mechanism='local', which does not hide the "
            "number of rows. Got 'add_remove'."
        )
    if subset_size is None:
        return
    if relation == "add_remove":
        raise ValueError(
            "subset_size must be None for relation='add_remove': the size of a subset bounds the "
            f"number of rows, which is private. Got {subset_size}."
        )
    if parameters.secret_subset and parameters.mechanism == "central" and relation != "replace":
        raise ValueError(
            "relation must be 'replace' for a secret subset to improve the guarantee; or pass "
            f"secret_subset=False. Got {relation!r}."
        )


def report_of(summary):
    """The guarantee of a summary as a report; None without noise."""
    if summary.mechanism == "none":
        return None
    hidden = summary.relation == "add_remove"  # the number of rows
    report = make_report(
        summary.event,
        summary.delta,
        notion=summary.mechanism,
        unit="row",
        protects=f"the content of any one row of the seller{', and its presence' * hidden}",
        against="the buyer, the other sellers and anyone to whom they pass it on",
        not_protected=(
            *([] if hidden else ["the number of rows, which is released exactly"]),
            "properties of many rows at once, such as which classes the seller has",
            "running times and error messages",
            "the buyer's data: sellers have the weights, centre and radius of its model",
        ),
        assumptions=(
            "the buyer's maps transform each row separately, and were fitted without these rows",
            "this epsilon was chosen without looking at these rows",
            "no other seller holds a copy of a row: for copies, the costs of all releases add up",
        ),
        noise_random_state=0 if summary.seeded else None,
    )
    if not summary.secret_subset:
        return report
    noise = (
        f"continuous Gaussian noise of scale {summary.noise_scale:.6g} (in units of the radius)"
        f" on sums over a secret random subset of {summary.n_samples} of {summary.n_rows} rows"
    )
    return replace(report, noise=noise)
