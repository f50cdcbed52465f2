"""Base class of parties' estimators: clip, sum, release, report the guarantee."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._utils.checks import check_positive
from ..._utils.fits import set_fitted_state, without_private_counts
from ..._utils.private_entries import quiet_arithmetic
from ..._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from ..._utils.warned import warn
from ...exceptions import (
    NestedReleasesWarning,
    NormalApproximationWarning,
    VoidGuaranteeWarning,
)
from ...privacy import (
    GaussianEvent,
    Ledger,
    Release,
    SeededNoiseWarning,
    make_report,
    mu_from_epsilon,
    sentences,
    warn_of_large_delta,
)
from .noisy_statistic import NoisyStatistic, check_scaling

BOUND = [Interval(Real, 0, None, closed="neither"), StrOptions({"data"})]
SCALING = {
    "x_centre": [Real, "array-like", None],
    "x_scale": [Real, "array-like", None],
}
MIN_NORMAL_ROWS = 50  # with fewer rows, sums are far from normal
_STATEMENT = {
    "not_protected": (
        "the rows from the party itself, which is the trusted curator of this report",
        "the number of rows, which is released exactly",
        "properties of many rows at once",
        sentences.RUNNING_TIMES,
    ),
    "assumptions": (
        "bounds, preparation of the features (centring, scaling, projections) and this "
        "epsilon were chosen without looking at these rows",
        sentences.NO_COPIES.format("party"),
    ),
}


@dataclass(frozen=True)
class ExactRelease:
    """A party's statistic before noise is added, and what a release must state.

    `void_reason` says why a release has no guarantee, and is empty if it has one;
    `attributes` are further fitted attributes: of the columns of X, and how many rows
    were clipped.
    """

    statistic: NoisyStatistic
    void_reason: str
    attributes: dict


class BasePartyRelease(BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that release a clipped, noisy sum of a party's rows."""

    _parameter_constraints: dict = {
        "epsilon": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
            None,
        ],
        "renyi_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "renyi_order": [Interval(Real, 1, None, closed="neither")],
        "prior": [HasMethods("prior_statement"), str, None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "ledger": [Ledger, None],
        "noise_random_state": [Integral, None],
    }
    _normal_approximation = True

    def __init__(
        self,
        epsilon,
        renyi_epsilon,
        renyi_order,
        prior,
        delta,
        ledger,
        noise_random_state,
    ):
        self.epsilon = epsilon
        self.renyi_epsilon = renyi_epsilon
        self.renyi_order = renyi_order
        self.prior = prior
        self.delta = delta
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    @abstractmethod
    def _summarize(self, X, y):
        """Fields of a `NoisyStatistic`; see `ExactRelease` for the other two results.

        Returns
        -------
        fields : dict
            The fields that the rows and their bounds determine.
        void_reason : str
            Why a release has no guarantee.
        attributes : dict
            Fitted attributes: of the columns of X, and how many rows were clipped.
        """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Make the release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,)
            The party's rows; numbers of shape (n_samples,) for `MeanRelease`.
        y : array-like of shape (n_samples,)
            Targets or classes of the rows. Ignored by `MeanRelease`.

        Returns
        -------
        self : object
            The fitted estimator, which keeps neither the rows nor the exact statistic.

        Raises
        ------
        ValueError
            If `X` or `y` is invalid, or the release exceeds the ledger's budget; no
            noise is drawn then.
        """
        renyi_epsilon = self._stated_renyi_epsilon()
        exact = self._exact_release(X, y)
        statistic = exact.statistic
        report = None
        if renyi_epsilon is not None:
            statistic = replace(statistic, renyi_epsilon=renyi_epsilon)
            release = self._release(statistic, exact.void_reason)
            noisy = release.of(exact.statistic.vector)
            statistic = replace(statistic, statistic=tuple(noisy))
            report = release.report
        set_fitted_state(self, release_=statistic, privacy_=report, **exact.attributes)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def path(self, X, y=None, *, renyi_epsilons):
        """Releases of the same rows with several epsilons and nested noise.

        For plots of values and rewards against epsilon. Each release adds noise to the
        one with the next larger epsilon, so that all of them together cost the largest
        epsilon. Releases of two paths, or of a path and a fit, compose.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The party's rows.
        y : array-like of shape (n_samples,)
            Targets or classes of the rows.
        renyi_epsilons : sequence of float
            Values of `renyi_epsilon`. The parameters `renyi_epsilon` and `epsilon` are
            not used.

        Returns
        -------
        releases : list of NoisyStatistic
            Releases in the order of the values.

        Raises
        ------
        ValueError
            If there is no value, or one that is not above 0, or as in `fit`.
        """
        epsilons = [
            check_positive(epsilon, "renyi_epsilons") for epsilon in renyi_epsilons
        ]
        if not epsilons:
            raise ValueError("renyi_epsilons must hold numbers above 0. Got none.")
        warn(
            "Several releases of one path together have only the guarantee of the "
            "largest epsilon among them, and releases of two paths compose: publish "
            "one.",
            NestedReleasesWarning,
        )
        # All of these releases have noise, so that no row may be refused.
        private_party = clone(self).set_params(epsilon="auto")
        exact = private_party._exact_release(X, y)
        stated = [
            replace(exact.statistic, renyi_epsilon=epsilon) for epsilon in epsilons
        ]

        # The release with the largest epsilon has the least noise and is charged.
        order = np.argsort(epsilons, kind="stable")[::-1]
        first = stated[order[0]]
        vector = self._release(first, exact.void_reason).of(exact.statistic.vector)
        noise_scale = first.noise_scale

        # Each of the others adds the noise that the one before it lacks.
        releases = [None] * len(stated)
        for step, i in enumerate(order):
            if stated[i].noise_scale > noise_scale:
                vector = self._add_noise(vector, noise_scale, stated[i], step)
                noise_scale = stated[i].noise_scale
            releases[i] = replace(stated[i], statistic=tuple(vector))
        return releases

    def _stated_renyi_epsilon(self):
        """The Renyi epsilon of the release; None for a release without noise."""
        if self.renyi_epsilon is None:
            if self.epsilon is None:
                return None
            # The Renyi epsilon of the least Gaussian noise for (epsilon, delta).
            epsilon = 1.0 if self.epsilon == "auto" else self.epsilon
            mu = mu_from_epsilon(epsilon, self.delta)
            return 0.5 * self.renyi_order * mu**2
        if self.epsilon not in ("auto", None):
            raise ValueError(
                "epsilon must not be set where renyi_epsilon is, since each of them "
                f"determines the noise. Got {self.epsilon!r} and "
                f"{self.renyi_epsilon!r}."
            )
        return self.renyi_epsilon

    @property
    def _has_noise(self):
        """Whether rows are private, so that none of them may be refused."""
        return self.epsilon is not None or self.renyi_epsilon is not None

    def _exact_release(self, X, y):
        """The `ExactRelease` of rows, with a warning if they are few."""
        with quiet_arithmetic(self._has_noise):
            fields, void_reason, attributes = self._summarize(X, y)
        prior = self.prior
        if hasattr(prior, "prior_statement"):
            prior = prior.prior_statement()
        statistic = NoisyStatistic(
            **fields, renyi_epsilon=None, renyi_order=self.renyi_order, prior=prior
        )
        if self._normal_approximation and statistic.n_samples < MIN_NORMAL_ROWS:
            warn(
                f"This party has {statistic.n_samples} rows: with fewer than "
                f"{MIN_NORMAL_ROWS} the normal approximation that mediators use is not "
                "accurate.",
                NormalApproximationWarning,
            )
        return ExactRelease(statistic, void_reason, attributes)

    def _release(self, stated, void_reason):
        """The release of a statistic with the noise that its parameters state."""
        if not void_reason:
            warn_of_large_delta(self.delta, stated.n_samples)
        elif self.ledger is not None:
            raise ValueError(
                "ledger must not be charged for a release without a guarantee: give "
                "bounds as numbers."
            )
        report = make_report(
            stated.event,
            self.delta,
            notion="central",
            unit="row",
            protects="the content of any one row of the party",
            against="the mediator, the other parties and anyone to whom they pass it "
            "on",
            noise_random_state=self.noise_random_state,
            **_STATEMENT,
        )
        mu = stated.sensitivity / stated.noise_scale
        renyi_sentence = (
            f"; its Renyi divergence of order {stated.renyi_order:g} is at most "
            f"{stated.renyi_epsilon:g}, and it is {mu:.6g}-GDP"
        )
        return Release(
            stated.event,
            self.ledger,
            label=type(self).__name__,
            noise_random_state=self.noise_random_state,
            report=replace(
                report, noise=report.noise + renyi_sentence, void=void_reason
            ),
        )

    def _add_noise(self, vector, noise_scale, stated, step):
        """A noisy statistic of a path with more noise, up to that which is stated."""
        added_scale = np.sqrt(stated.noise_scale**2 - noise_scale**2)
        event = GaussianEvent(added_scale, stated.sensitivity)
        seed = _seed_of_step(self.noise_random_state, step)
        with warnings.catch_warnings():
            # The first release of the path has warned.
            warnings.simplefilter("ignore", SeededNoiseWarning)
            return Release(event, noise_random_state=seed).of(vector)

    def _scaling(self, n_features):
        """The public map of the features, as fields of a statistic."""
        if self.x_centre is None and self.x_scale is None:
            return {}
        fields = {}
        for name, neutral in (("x_centre", 0.0), ("x_scale", 1.0)):
            value = getattr(self, name)
            numbers = np.asarray(neutral if value is None else value, dtype=np.float64)
            if numbers.shape not in ((), (n_features,)):
                raise ValueError(
                    f"{name} must be a number or have one for each of the "
                    f"{n_features} features. Got shape {numbers.shape}."
                )
            fields[name] = check_scaling(
                tuple(np.broadcast_to(numbers, n_features).tolist()), name, n_features
            )
        return fields

    def _scaled(self, X, scaling):
        """Rows by the public map; what is not finite is refused without noise."""
        if not scaling:
            return X
        with np.errstate(over="ignore", invalid="ignore"):
            X = (X - np.array(scaling["x_centre"])) / np.array(scaling["x_scale"])
        if not self._has_noise and not np.isfinite(X).all():
            raise ValueError(
                "X must be finite after it is divided by x_scale. Got an overflow."
            )
        return X

    def _bound(self, name, rows):
        """The bound of a parameter, and why it voids the guarantee ("" if not).

        For the parameter "data" it is the largest norm of the rows, with a warning.
        """
        bound = getattr(self, name)
        if not isinstance(bound, str):
            return float(bound), ""
        warn(
            f"{name}='data' takes the bound from the private rows: NOTHING is "
            "guaranteed about privacy.",
            VoidGuaranteeWarning,
        )
        bound = max(float(np.linalg.norm(rows, axis=1).max()), 1e-12)
        return bound, f"{name} was taken from the private rows"

    # Notebooks show each member whose name ends with "_".
    def __dir__(self):
        return without_private_counts(self, super().__dir__())

    def __getstate__(self):
        return without_private_counts(self, super().__getstate__())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        tags.input_tags.allow_nan = self._has_noise
        return tags


def _seed_of_step(seed, step):
    """The seed of a path's step, hashed to differ from seeds of other parties."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, step]).generate_state(1)[0])
