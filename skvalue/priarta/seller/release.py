"""A seller's side: from rows to the one summary that leaves the machine."""

import secrets
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...privacy import GaussianEvent, Ledger, add_noise, make_report
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

    The rows go through the buyer's maps and are clipped to its radius around its centre; mean and
    second moment get Gaussian noise of the size that the guarantee needs, and nothing else leaves
    the machine. Replacing a row moves the second moment around a fixed centre 2.8 times less than
    the covariance, and both moments in one release need less noise than each in its own.

    Parameters
    ----------
    model : BuyerModel, str or path-like
        The buyer's model, or its folder.
    epsilon : float or None, default=0.8
        Privacy loss of the rows, in total; None adds no noise, hence no privacy.
    delta : float, default=1e-5
        With `epsilon`.
    mechanism : {"central", "local"}, default="central"
        "central": noise once, on the moments. "local": noise on every row before anything is summed
        up, for a seller that trusts not even itself with sums; the buyer takes off what that adds
        on average, but distances are then worth little below tens of thousands of rows.
    relation : {"replace", "null", "add_remove"}, default="replace"
        Neighbouring relation: a row replaced by any other; blanked out; or added or removed, so
        that the number of rows is private too.
    subset_size : int, default=None
        Number of rows, drawn at random without replacement, that are summed up. None takes all.
    secret_subset : bool, default=True
        Whether the choice of the subset stays secret and so counts as privacy ("replace" only).
    ledger : Ledger, default=None
        Charged before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        For tests and experiments only: noise and subset from this seed, which VOIDS the guarantee.

    Attributes
    ----------
    summary_ : Summary
        What may leave the machine; ``summary_.to_json()`` travels.
    privacy_ : PrivacyReport
        What the summary guarantees; None without noise.

    See Also
    --------
    skvalue.PriArTaScorer : The buyer's side.

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
            The seller's rows, as the buyer's are shaped.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            With the `summary_`; rows and clear moments are not kept.

        Raises
        ------
        ValueError
            If the rows do not suit the model, are fewer than 2 or than `subset_size`, parameters
            contradict one another, or the ledger's budget would be overrun; nothing is drawn then.
        """
        model = as_model(self.model)
        plan = self._plan(model, count_rows(X))
        radius = model.max_norm or 1.0
        rows = model.transform(X) / radius
        if plan.event is not None and self.ledger is not None:
            self.ledger.charge(plan.event, label=type(self).__name__)
        if plan.n_rows is not None:
            rows = rows[self._draw_subset(plan.n_rows, plan.n_samples)]
        mean, moment, count = self._noisy_moments(rows, plan)
        facts = vars(plan) | {"n_samples": count}
        summary = Summary(**facts, mean=radius * mean, moment=radius**2 * moment)
        self.summary_, self.privacy_ = summary, report_of(summary)
        return self

    def plan(self, n_rows):
        """What a release of so many rows will say about itself, without looking at any.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        plan : ReleasePlan
            With the noise scale and the guarantee.

        Raises
        ------
        ValueError
            If there are too few rows, or parameters contradict one another.
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
        """Mean, second moment and number of rows, in units of the radius, with their noise."""

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
            # Sums over a noisy count may be impossible; what is done about it sees no row.
            mean, moment = mean / max(1.0, np.linalg.norm(mean)), np.clip(moment, -1, 1)
        return mean, moment, count

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.two_d_array = False
        return tags


def check_release(parameters, max_norm):
    """Refuse parameters of a release that contradict one another; `max_norm` is the radius."""
    relation, subset_size = parameters.relation, parameters.subset_size
    if parameters.epsilon is None:
        return
    if max_norm is None:
        raise ValueError(
            "max_norm must be a number with epsilon: without a radius no noise is enough. Got None."
        )
    if relation == "add_remove" and parameters.mechanism == "local":
        raise ValueError(
            "relation must be 'replace' or 'null' for mechanism='local': every row sends its own "
            "noisy copy, so that their number is known. Got 'add_remove'."
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
            "relation must be 'replace' for a secret subset to count as privacy; or pass "
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
        protects=f"what any one row of the seller holds{', and whether it is there' * hidden}",
        against="the buyer, the other sellers and everybody whom they tell",
        not_protected=(
            *([] if hidden else ["the number of rows, which is released as it is"]),
            "anything true of many rows at once, such as which classes the seller has",
            "running times and error messages",
            "the buyer's data: weights, centre and radius of its model are in the sellers' hands",
        ),
        assumptions=(
            "the buyer's maps treat each row by itself, and were made without these rows",
            "this epsilon was chosen without looking at these rows",
            "no other seller holds a copy of a row: copies lose what all releases cost together",
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
