"""A seller's side: from rows to the one summary that leaves the machine."""

import secrets
import warnings
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...exceptions import VoidGuaranteeWarning
from ...privacy import GaussianEvent, Ledger, draw_noise, make_report
from ...privacy.mechanisms import on_grid
from ..maps._modules import count_rows
from ..maps.model import BuyerModel
from ._mechanism import (
    calibrated_scale,
    moment_statistic,
    row_sensitivity,
    statistic_sensitivity,
    unpack,
)
from .summary import Summary

__all__ = ["RELEASE_CONSTRAINTS", "SellerRelease"]

RELEASE_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither"), None],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "mechanism": [StrOptions({"central", "local"})],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
    "noise": [StrOptions({"gaussian", "paper"})],
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
    noise : {"gaussian", "paper"}, default="gaussian"
        "paper" is the mechanism as published, which has NO guarantee: the mean alone would cost
        about 9 in place of 0.8 at 500 rows of norm up to 1. It is here for comparison.
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
    PriArTaScorer : The buyer's side.

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
        noise="gaussian",
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
        self.noise = noise
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
        model = self._model()
        n_rows = count_rows(X)
        plan = self._plan(model, n_rows)
        rows = model.transform(X) / (model.max_norm or 1.0)
        if plan.event is not None and self.ledger is not None:
            self.ledger.charge(plan.event, label=type(self).__name__)
        if plan.n_rows is not None:
            rows = rows[self._draw_subset(n_rows, plan.n_samples)]
        statistic, count = self._noisy(rows, plan), plan.n_samples
        if self.relation == "add_remove" and plan.mechanism == "central":
            count = None
        mean, moment, count = unpack(statistic, model.n_dimensions, plan.mean_weight, count)
        if plan.relation == "add_remove" and plan.mechanism == "central":
            # Sums over a noisy count may be impossible; what is done about it sees no row.
            mean, moment = mean / max(1.0, np.linalg.norm(mean)), np.clip(moment, -1, 1)
        radius = model.max_norm or 1.0
        self.summary_ = replace(
            plan, n_samples=count, mean=radius * mean, moment=radius**2 * moment
        )
        self.privacy_ = report_of(self.summary_)
        return self

    def plan(self, n_rows):
        """What a release of so many rows will say about itself, without looking at any.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        summary : Summary
            With the noise scale and the guarantee, and zeros for the moments.

        Raises
        ------
        ValueError
            If there are too few rows, or parameters contradict one another.
        """
        return self._plan(self._model(), n_rows)

    # Computation ------------------------------------------------------------------------------

    def _plan(self, model, n_rows):
        mechanism = check_release(self, model.max_norm)
        size = n_rows if self.subset_size is None else self.subset_size
        if n_rows < 2 or size > n_rows:
            why = "to have a covariance" if self.subset_size is None else "to draw subset_size from"
            raise ValueError(f"X must have at least {max(2, size)} rows, {why}. Got {n_rows}.")
        subset, private = size < n_rows, mechanism in ("central", "local")
        rate = size / n_rows if subset and self._counts_subset(mechanism) else None
        d = model.n_dimensions
        return Summary(
            model=model.fingerprint,
            n_samples=size,
            n_rows=n_rows if subset else None,
            max_norm=model.max_norm,
            centre=model.centre,
            mean=np.zeros(d),
            moment=np.zeros(d * (d + 1) // 2),
            mechanism=mechanism,
            relation=self.relation,
            epsilon=self.epsilon if private else None,
            delta=self.delta if private else None,
            mean_weight=model.mean_weight,
            noise_scale=self._scale(mechanism, model, size, rate),
            secret_subset=rate is not None,
            seeded=self.noise_random_state is not None and mechanism != "none",
        )

    def _model(self):
        return self.model if isinstance(self.model, BuyerModel) else BuyerModel.load(self.model)

    def _counts_subset(self, mechanism):
        return self.secret_subset and self.relation == "replace" and mechanism == "central"

    def _scale(self, mechanism, model, size, rate):
        """Noise scale, in units of the radius."""
        if mechanism == "none":
            return 0.0
        if mechanism == "paper":
            return paper_scale(self.epsilon, self.delta, size, model.max_norm) / model.max_norm
        sensitivity = (
            row_sensitivity(self.relation)
            if mechanism == "local"
            else statistic_sensitivity(model.mean_weight, self.relation)
        )
        return calibrated_scale(self.epsilon, self.delta, sensitivity, self.relation, rate)

    def _draw_subset(self, n_rows, size):
        if self.noise_random_state is not None:
            return np.random.default_rng([self.noise_random_state, 1]).permutation(n_rows)[:size]
        return np.array(secrets.SystemRandom().sample(range(n_rows), size))

    def _noisy(self, rows, plan):
        """The statistic with its noise."""

        def noisy(values):
            event = GaussianEvent(plan.noise_scale)
            noise = draw_noise(event, values.shape, noise_random_state=self.noise_random_state)
            return on_grid(values + noise, plan.noise_scale)

        if plan.mechanism in ("local", "paper"):
            rows = noisy(rows)
        central = plan.mechanism == "central"
        relation = plan.relation if central else "replace"
        statistic = moment_statistic(rows, plan.mean_weight, relation)
        return noisy(statistic) if central else statistic

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.two_d_array = False
        return tags


def check_release(setting, max_norm):
    """Contradictions among the parameters of a release.

    Parameters
    ----------
    setting : object
        With the parameters of `SellerRelease`.
    max_norm : float or None
        The buyer's radius.

    Returns
    -------
    mechanism : {"central", "local", "paper", "none"}
        What a summary calls it.

    Raises
    ------
    ValueError
        If they contradict one another.
    """
    if setting.epsilon is None:
        return "none"
    if max_norm is None:
        raise ValueError(
            "max_norm must be a number with epsilon: without a radius no noise is enough. Got None."
        )
    if setting.noise == "paper":
        if getattr(setting, "ledger", None) is not None:
            raise ValueError("ledger must be None with noise='paper', which guarantees nothing.")
        warnings.warn(
            "noise='paper' is the published mechanism: NOTHING is guaranteed about privacy.",
            VoidGuaranteeWarning,
            stacklevel=4,
        )
        return "paper"
    if setting.relation == "add_remove" and setting.mechanism == "local":
        raise ValueError(
            "relation must be 'replace' or 'null' for mechanism='local': every row sends its own "
            "noisy copy, so that their number is known. Got 'add_remove'."
        )
    if setting.subset_size is None:
        return setting.mechanism
    if setting.relation == "add_remove":
        raise ValueError(
            "subset_size must be None for relation='add_remove': the size of a subset bounds the "
            f"number of rows, which is private. Got {setting.subset_size}."
        )
    if setting.secret_subset and setting.mechanism == "central" and setting.relation != "replace":
        raise ValueError(
            "relation must be 'replace' for a secret subset to count as privacy; or pass "
            f"secret_subset=False. Got {setting.relation!r}."
        )
    return setting.mechanism


def paper_scale(epsilon, delta, n_samples, max_norm):
    """Standard deviation of the published noise on every row, which guarantees nothing.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee that it is said to give.
    n_samples : int
        Number of rows.
    max_norm : float
        Radius R.

    Returns
    -------
    scale : float
        ``(4 R^2 / n + 8 R^2 / n^2) sqrt(2 log(1.25 / delta)) / epsilon``.
    """
    sensitivity = 4 * max_norm**2 / n_samples + 8 * max_norm**2 / n_samples**2
    return sensitivity * np.sqrt(2 * np.log(1.25 / delta)) / epsilon


def report_of(summary):
    """The guarantee of a summary as a report.

    Parameters
    ----------
    summary : Summary
        The summary.

    Returns
    -------
    report : PrivacyReport or None
        None without noise.
    """
    if summary.mechanism == "none":
        return None
    local = summary.mechanism == "local"
    count = ["the number of rows, which is released as it is"]
    event = summary.event
    if event is None:  # the paper's noise on every row: an honest statement of what it gives
        event = GaussianEvent(summary.noise_scale, row_sensitivity("replace"), "replace")
    report = make_report(
        event,
        summary.delta or 1e-5,
        notion="local" if local else "central",
        unit="row",
        protects="what any one row of the seller holds"
        + (", and whether it is there" if summary.relation == "add_remove" else ""),
        against="the buyer, the other sellers and everybody whom they tell",
        not_protected=(
            *([] if summary.relation == "add_remove" else count),
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
    if summary.secret_subset:
        noise = (
            f"continuous Gaussian noise of scale {summary.noise_scale:.6g} (in units of the radius)"
            f" on sums over a secret random subset of {summary.n_samples} of {summary.n_rows} rows"
        )
        return replace(report, noise=noise)
    if summary.mechanism == "paper":
        return replace(report, void="this is the published mechanism, whose proof fails")
    return report
