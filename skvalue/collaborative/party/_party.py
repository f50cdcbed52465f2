"""Base class of parties' estimators: clip, sum, release, report the guarantee."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.checks import check_positive
from ..._utils.fits import swap_in
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
from .noisy_statistic import NoisyStatistic

BOUND = [Interval(Real, 0, None, closed="neither"), StrOptions({"data"})]
FEW_ROWS = 50  # with fewer rows, sums are far from normal
_STATEMENT = {
    "not_protected": (
        "the rows from the party itself, which is the trusted curator of this report",
        "the number of rows, which is released exactly",
        "properties of many rows at once",
        sentences.RUNNING_TIMES,
    ),
    "assumptions": (
        "bounds, preparation of the features (centring, scaling, projections) and this epsilon "
        "were chosen without looking at these rows",
        sentences.NO_COPIES.format("party"),
    ),
}


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
        """Fields of a `NoisyStatistic`, why it has no guarantee (or ""), attributes of
        columns."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Make the release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or, for `MeanRelease`, (n_samples,)
            The party's rows.
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
        if self.renyi_epsilon is not None and self.epsilon not in ("auto", None):
            raise ValueError(
                f"epsilon must not be set where renyi_epsilon is. Got {self.epsilon!r} and "
                f"{self.renyi_epsilon!r}."
            )
        epsilon = self.renyi_epsilon
        if epsilon is None and self.epsilon is not None:
            # The Renyi epsilon of the least Gaussian noise for (epsilon, delta).
            mu = mu_from_epsilon(
                1.0 if self.epsilon == "auto" else self.epsilon, self.delta
            )
            epsilon = 0.5 * self.renyi_order * mu**2
        exact, void, columns = self._exact(X, y)
        noisy, report = exact, None
        if epsilon is not None:
            stated = replace(exact, renyi_epsilon=epsilon)
            release = self._release(stated, void)
            noisy = replace(stated, statistic=tuple(release.of(exact.vector)))
            report = release.report
        swap_in(self, release_=noisy, privacy_=report, **columns)
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
            Values of `renyi_epsilon`, which is not used, and neither is `epsilon`.

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
            "Several releases of one path together have only the guarantee of the largest epsilon "
            "among them, and releases of two paths compose: publish one.",
            NestedReleasesWarning,
        )
        exact, void, _ = self._exact(X, y)
        stated = [replace(exact, renyi_epsilon=epsilon) for epsilon in epsilons]
        order = np.argsort(epsilons, kind="stable")[::-1]
        first = stated[order[0]]
        vector, scale = self._release(first, void).of(exact.vector), first.noise_scale
        releases = [None] * len(stated)
        for step, place in enumerate(order):
            noisy = stated[place]
            if noisy.noise_scale > scale:
                more = GaussianEvent(
                    np.sqrt(noisy.noise_scale**2 - scale**2), noisy.sensitivity
                )
                seed = _seed_of_step(self.noise_random_state, step)
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore", SeededNoiseWarning
                    )  # the first has warned
                    vector = Release(more, noise_random_state=seed).of(vector)
                scale = noisy.noise_scale
            releases[place] = replace(noisy, statistic=tuple(vector))
        return releases

    def _exact(self, X, y):
        """The statistic without noise, why its guarantee is void, and columns; see
        `_summarize`."""
        fields, void, columns = self._summarize(X, y)
        prior = self.prior
        if hasattr(prior, "prior_statement"):
            prior = prior.prior_statement()
        exact = NoisyStatistic(
            **fields, renyi_epsilon=None, renyi_order=self.renyi_order, prior=prior
        )
        if self._normal_approximation and exact.n_samples < FEW_ROWS:
            warn(
                f"This party has {exact.n_samples} rows: with fewer than {FEW_ROWS} the normal "
                "approximation that mediators use is not accurate.",
                NormalApproximationWarning,
            )
        return exact, void, columns

    def _release(self, stated, void):
        """The release of a statistic with the noise that its parameters state."""
        if not void:
            warn_of_large_delta(self.delta, stated.n_samples)
        elif self.ledger is not None:
            raise ValueError(
                "ledger must not be charged for a release without a guarantee: give bounds as "
                "numbers."
            )
        report = make_report(
            stated.event,
            self.delta,
            notion="central",
            unit="row",
            protects="the content of any one row of the party",
            against="the mediator, the other parties and anyone to whom they pass it on",
            noise_random_state=self.noise_random_state,
            **_STATEMENT,
        )
        mu = stated.sensitivity / stated.noise_scale
        renyi = (
            f"; its Renyi divergence of order {stated.renyi_order:g} is at most "
            f"{stated.renyi_epsilon:g}, and it is {mu:.6g}-GDP"
        )
        report = replace(report, noise=report.noise + renyi, void=void)
        label = type(self).__name__
        return Release(
            stated.event, self.ledger, label, self.noise_random_state, report
        )

    def _bound(self, name, sizes):
        """The public bound, or, with a warning, the largest of `sizes`; and why that is
        void."""
        bound = getattr(self, name)
        if not isinstance(bound, str):
            return float(bound), ""
        warn(
            f"{name}='data' takes the bound from the private rows: NOTHING is guaranteed about "
            "privacy.",
            VoidGuaranteeWarning,
        )
        return max(
            float(np.max(sizes)), 1e-12
        ), f"{name} was taken from the private rows"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def _seed_of_step(seed, step):
    """Seeds of a path's steps, hashed so that they differ from seeds that other parties
    use."""
    return (
        None
        if seed is None
        else int(np.random.SeedSequence([seed, step]).generate_state(1)[0])
    )
