"""Estimator that makes a seller's private summary."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.fits import without_private_counts
from ..._utils.private_entries import quiet_arithmetic
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...exceptions import ParameterError
from ...privacy import (
    Ledger,
    Release,
    clip_rows,
    make_report,
    on_grid,
    sentences,
    warn_of_large_delta,
)
from ..maps import as_model, count_rows, row_norms
from .mechanism import (
    MAX_ROWS,
    Moments,
    exact_moments,
    moment_statistic,
    n_radius_counts,
    own_radius,
    release_event,
    unpack,
)
from .summary import Summary

RELEASE_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="neither"), None],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
}


class SellerRelease(BaseEstimator):
    """A seller's private summary of its rows for a buyer.

    The rows are transformed by the buyer's maps. Without `epsilon`, their mean and
    second moment around the buyer's mean are the summary, and nothing is clipped.

    With `epsilon` there are two steps. First a radius is chosen for these rows: the
    median of their distances from the buyer's mean is bisected by six noisy counts, and
    the radius is to it as the buyer's 95 % quantile is to the buyer's median, and a
    tenth larger. Then rows are clipped to this radius, and mean, second moment and its
    trace are released with Gaussian noise. The counts have a fifth of the budget, and
    all is one release. The sensitivity of the second moment around a fixed centre is
    2.8 times smaller than that of the covariance, and one release of all moments needs
    less noise than separate ones.

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
        summary, message or error depends on it, and it is not pickled. Without noise
        such rows are refused.
    n_clipped_rows_ : int
        Number of rows that were clipped to the radius, for the seller alone, as
        `n_null_rows_`. If it is many, the buyer sees less of how the rows differ from
        its own.

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
            If the rows do not have the shape or the columns of the model's, are fewer
            than 2 and their number is not private, or the release exceeds the ledger's
            budget; no noise is drawn then. Without noise also if a row is not finite,
            or a map gives NaN, infinity or a number beyond 1e50 for it.
        """
        model = as_model(self.model)
        model.check_columns(X)
        n_rows = count_rows(X)
        n_counts = n_radius_counts(model)
        event = release_event(
            self.epsilon, self.delta, model.mean_weight, self.relation, n_counts
        )
        has_private_number = event is not None and self.relation == "add_remove"
        if n_rows < 2 and not has_private_number:
            raise ParameterError(
                "X",
                "must have at least 2 rows, to have a covariance, unless their "
                f"number is private (relation 'add_remove'). Got {n_rows}.",
            )

        if event is None:
            released = _ExactMoments(exact_moments(model.reachable_rows(X)))
        else:
            n_protected = n_rows
            if has_private_number:
                n_protected = None
            warn_of_large_delta(self.delta, n_protected)
            released = self._release(event, model, X)
        summary = Summary(
            model=model.fingerprint,
            n_samples=released.moments.n_samples,
            centre=model.centre,
            relation=self.relation,
            epsilon=self.epsilon,
            mean_weight=model.mean_weight,
            mean=released.moments.mean,
            moment=released.moments.moment,
            **released.noise_fields,
        )
        report = _report_of(summary)
        self.summary_ = summary
        self.privacy_ = report
        self.n_null_rows_ = released.n_null
        self.n_clipped_rows_ = released.n_clipped
        return self

    @quiet_arithmetic()
    def _release(self, event, model, X):
        """The `_NoisyMoments` of private rows, within a radius that is released too."""
        rows, is_null = model.private_rows(X)
        release = Release(
            event,
            self.ledger,
            label=type(self).__name__,
            noise_random_state=self.noise_random_state,
        )
        draw = release.source()

        # Noisy counts -> radius.
        radius = model.max_norm
        if model.has_own_radius:
            norms = row_norms(rows)
            norms[is_null] = np.nan
            radius = own_radius(norms, model, self.relation, draw)

        # Rows of norm at most 1 -> sums -> noise -> moments.
        clipped = clip_rows(rows, radius)
        weight = model.mean_weight
        statistic = moment_statistic(clipped / radius, weight, self.relation)
        statistic = on_grid(statistic + draw(statistic.shape, (1,)), draw.scale)
        public_count = len(rows)
        if self.relation == "add_remove":
            public_count = None
        mean, moment, n_samples = unpack(
            statistic, model.n_dimensions, weight, public_count
        )
        return _NoisyMoments(
            Moments(radius * mean, radius**2 * moment, n_samples),
            radius=radius,
            n_radius_counts=n_radius_counts(model),
            delta=self.delta,
            noise_scale=event.scale,
            is_seeded=self.noise_random_state is not None,
            n_null=int(is_null.sum()),
            n_clipped=int((clipped != rows).any(axis=1).sum()),
        )

    # Notebooks show each member whose name ends with "_".
    def __dir__(self):
        return without_private_counts(self, super().__dir__())

    def __getstate__(self):
        return without_private_counts(self, super().__getstate__())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.two_d_array = False
        return tags


@dataclass(frozen=True)
class _ExactMoments:
    """Moments of rows that are not private: no row is null, and none is clipped."""

    moments: Moments
    n_null: int = 0
    n_clipped: int = 0

    @property
    def noise_fields(self):
        """Fields of the summary on the radius and the noise."""
        return {
            "max_norm": None,
            "n_radius_counts": 0,
            "delta": None,
            "noise_scale": 0.0,
            "seeded": False,
        }


@dataclass(frozen=True)
class _NoisyMoments:
    """Noisy moments, how they were released, and what the seller alone is told.

    Parameters
    ----------
    moments : Moments
        In the units of the rows.
    radius : float
        The radius to which rows were clipped.
    n_radius_counts : int
        Number of noisy counts by which it was chosen.
    delta, noise_scale : float
        Delta of the guarantee, and the standard deviation of the noise.
    is_seeded : bool
        Whether the noise has a seed.
    n_null, n_clipped : int
        Numbers of null rows, and of rows that were clipped.
    """

    moments: Moments
    radius: float
    n_radius_counts: int
    delta: float
    noise_scale: float
    is_seeded: bool
    n_null: int
    n_clipped: int

    @property
    def noise_fields(self):
        """Fields of the summary on the radius and the noise."""
        return {
            "max_norm": self.radius,
            "n_radius_counts": self.n_radius_counts,
            "delta": self.delta,
            "noise_scale": self.noise_scale,
            "seeded": self.is_seeded,
        }


def _report_of(summary):
    """The guarantee of a summary as a report; None without noise."""
    if summary.event is None:
        return None
    noise_random_state = None
    if summary.seeded:
        noise_random_state = 0  # whichever it was
    protects = "the content of any one row of the seller"
    not_protected = []
    if summary.relation == "add_remove":
        protects += ", and its presence"
    else:
        not_protected.append("the number of rows, which is released exactly")
    not_protected += [
        "properties of many rows at once, such as which classes the seller has, or how "
        "far its rows are from the buyer's, which the radius tells",
        sentences.RUNNING_TIMES,
        "the buyer's data: sellers have the weights, centre and norms of its model",
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
            f"there are at most {MAX_ROWS:,} rows: the noise allows for the rounding "
            "of sums of as many",
            sentences.NO_COPIES.format("seller"),
        ),
        noise_random_state=noise_random_state,
    )
