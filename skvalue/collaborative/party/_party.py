"""Base class of releases: clip, sum, charge the ledger, add noise, report the guarantee."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.fits import swap_in
from ..._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from ...exceptions import NestedReleasesWarning, NormalApproximationWarning, VoidGuaranteeWarning
from ...privacy import (
    GaussianEvent,
    Ledger,
    draw_noise,
    make_report,
    mu_from_epsilon,
    on_grid,
    warn_of_large_delta,
)
from .release import Release

BOUND = [Interval(Real, 0, None, closed="neither"), StrOptions({"data"})]
FEW_ROWS = 50  # with fewer rows, sums are far from normal
_STATEMENT = {
    "not_protected": (
        "the rows from the party itself, which is the trusted curator of this report",
        "the number of rows, which is released exactly",
        "properties of many rows at once",
        "running times and error messages",
    ),
    "assumptions": (
        "bounds, preparation of the features (centring, scaling, projections) and this epsilon "
        "were chosen without looking at these rows",
        "no other party holds a copy of a row: for copies, the costs of all releases add up",
    ),
}


class PartyRelease(BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that release a clipped, noisy sum of a party's rows."""

    _parameter_constraints: dict = {
        "epsilon": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "renyi_epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "renyi_order": [Interval(Real, 1, None, closed="neither")],
        "prior": [HasMethods("prior_statement"), str, None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "ledger": [Ledger, None],
        "noise_random_state": [Integral, None],
    }
    _normal_approximation = True

    def __init__(
        self, epsilon, renyi_epsilon, renyi_order, prior, delta, ledger, noise_random_state
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
        """The exact release, why its guarantee is void (or ""), and attributes of the columns."""

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
            If `X` or `y` is invalid, or the release exceeds the ledger's budget; no noise is drawn
            then.
        """
        if self.renyi_epsilon is not None and self.epsilon not in ("auto", None):
            raise ValueError(
                f"epsilon must not be set where renyi_epsilon is. Got {self.epsilon!r} and "
                f"{self.renyi_epsilon!r}."
            )
        epsilon = self.renyi_epsilon
        if epsilon is None and self.epsilon is not None:
            epsilon = self._renyi(1.0 if self.epsilon == "auto" else self.epsilon)
        exact, void, columns = self._summarize(X, y)
        release = self._noisy(exact, [epsilon], void)[0]
        swap_in(self, release_=release, privacy_=self._report(release, void), **columns)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def path(self, X, y=None, *, epsilons=None, renyi_epsilons=None):
        """Releases of the same rows with several epsilons and nested noise.

        For plots of values and rewards against epsilon. Each release adds noise to the one with the
        next larger epsilon, so that all of them together cost the largest epsilon. Releases of two
        paths, or of a path and a fit, compose.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The party's rows.
        y : array-like of shape (n_samples,)
            Targets or classes of the rows.
        epsilons, renyi_epsilons : sequence of float
            Values of `epsilon` or of `renyi_epsilon`; these parameters are not used.

        Returns
        -------
        releases : list of Release
            Releases in the order of the values.

        Raises
        ------
        ValueError
            If not exactly one of both is given, it is empty or has an entry that is not above 0, or
            as in `fit`.
        """
        given = [values for values in (epsilons, renyi_epsilons) if values is not None]
        good = len(given) == 1 and all(
            isinstance(e, Real) and not isinstance(e, bool) and 0 < e < np.inf for e in given[0]
        )
        if not good or len(given[0]) == 0:
            raise ValueError(
                "Either epsilons or renyi_epsilons must hold finite numbers above 0. Got "
                f"{epsilons!r} and {renyi_epsilons!r}."
            )
        if renyi_epsilons is None:
            renyi_epsilons = [self._renyi(epsilon) for epsilon in epsilons]
        warnings.warn(
            "Several releases of one path together have only the guarantee of the largest epsilon "
            "among them, and releases of two paths compose: publish one.",
            NestedReleasesWarning,
            stacklevel=3,
        )
        exact, void, _ = self._summarize(X, y)
        return self._noisy(exact, list(renyi_epsilons), void)

    def _renyi(self, epsilon):
        """The Renyi epsilon of the least Gaussian noise for (epsilon, delta)."""
        return 0.5 * self.renyi_order * mu_from_epsilon(epsilon, self.delta) ** 2

    def _noisy(self, exact, epsilons, void):
        """Nested noisy releases from the exact one: the largest epsilon first, then added noise."""
        if self._normal_approximation and exact.n_samples < FEW_ROWS:
            warnings.warn(
                f"This party has {exact.n_samples} rows: with fewer than {FEW_ROWS} the normal "
                "approximation that mediators use is not accurate.",
                NormalApproximationWarning,
                stacklevel=4,
            )
        if None in epsilons:
            return [exact]
        marked = [replace(exact, renyi_epsilon=e, renyi_order=self.renyi_order) for e in epsilons]
        if not void:
            warn_of_large_delta(self.delta, exact.n_samples)
        if self.ledger is not None:
            if void:
                raise ValueError(
                    "ledger must not be charged for a release without a guarantee: give bounds as "
                    "numbers."
                )
            self.ledger.charge(marked[int(np.argmax(epsilons))].event, label=type(self).__name__)
        releases, vector, variance = {}, exact.vector, 0.0
        for step, place in enumerate(np.argsort(epsilons, kind="stable")[::-1]):
            release = marked[place]
            more = release.noise_scale**2 - variance
            if more > 0:
                seed = self.noise_random_state
                with warnings.catch_warnings():
                    if step:  # warn once about a seed
                        warnings.simplefilter("ignore")
                    vector = vector + draw_noise(
                        GaussianEvent(np.sqrt(more), release.sensitivity),
                        len(vector),
                        noise_random_state=seed if seed is None else _seed_of_step(seed, step),
                    )
                variance = release.noise_scale**2
            noisy = on_grid(vector, release.noise_scale)
            releases[place] = replace(release, statistic=tuple(noisy))
        return [releases[place] for place in range(len(epsilons))]

    def _report(self, release, void):
        if release.renyi_epsilon is None:
            return None
        report = make_report(
            release.event,
            self.delta,
            notion="central",
            unit="row",
            protects="the content of any one row of the party",
            against="the mediator, the other parties and anyone to whom they pass it on",
            noise_random_state=self.noise_random_state,
            **_STATEMENT,
        )
        mu = release.sensitivity / release.noise_scale
        renyi = (
            f"; its Renyi divergence of order {release.renyi_order:g} is at most "
            f"{release.renyi_epsilon:g}, and it is {mu:.6g}-GDP"
        )
        return replace(report, noise=report.noise + renyi, void=void)

    def _exact(self, kind, n_samples, statistic, bounds, **facts):
        """The release without noise."""
        prior = self.prior
        if hasattr(prior, "prior_statement"):
            prior = prior.prior_statement()
        order, statistic = self.renyi_order, tuple(statistic)
        return Release(kind, n_samples, statistic, None, order, bounds, prior=prior, **facts)

    def _bound(self, name, sizes):
        """The public bound, or, with a warning, the largest of `sizes`; and why that is void."""
        bound = getattr(self, name)
        if not isinstance(bound, str):
            return float(bound), ""
        warnings.warn(
            f"{name}='data' takes the bound from the private rows: NOTHING is guaranteed about "
            "privacy.",
            VoidGuaranteeWarning,
            stacklevel=5,
        )
        return max(float(np.max(sizes)), 1e-12), f"{name} was taken from the private rows"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def _seed_of_step(seed, step):
    """Seeds of a path's steps, hashed so that they differ from seeds that other parties use."""
    if step:
        seed = np.random.SeedSequence([seed, step]).generate_state(1)[0]
    return int(seed)
