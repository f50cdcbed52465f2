"""Base classes of the mediator's models, and checks of releases and their priors."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._utils.checks import check_numbers
from ..._utils.sklearn import Interval, StrOptions, check_parameters
from ..._utils.warned import warn
from ...exceptions import NormalApproximationWarning, ParameterError
from ...privacy import clip_rows
from ..party import MIN_NORMAL_ROWS, SUMS, NoisyStatistic
from ._draws import draw_behind_noise
from ._moments import plugin_second_moments, posterior_second_moments

_N_MOMENT_DRAWS = 64  # of the second moments behind a release


class PriorModel(BaseEstimator):
    """Base class of models of releases.

    `BayesianSurpriseScorer` lists the methods of a model. A class has the kind of its
    releases, the fields that must be equal in all of them, and the parameters of its
    prior.
    """

    _kind = ""
    _common_fields = ()
    _prior_parameters = ()
    # What targets of a model without classes are: "numbers", "counts" or "zeros and
    # ones".
    _targets = "numbers"

    def prior_statement(self):
        """The prior as text; equal priors have equal texts.

        Parties state it in their releases, and the mediator compares it with its
        model's prior.

        Returns
        -------
        statement : str
            Class and parameters of the prior, as JSON; arrays by the first 16 digits of
            a hash.
        """
        check_parameters(self)
        facts = {"model": type(self).__name__}
        for name in self._prior_parameters:
            value = getattr(self, name)
            if value is not None:
                facts[name] = _statement_of(value)
        return json.dumps(facts)

    def bind(self, releases):
        """Bind a copy of the model to releases, which are checked.

        Parameters
        ----------
        releases : sequence of NoisyStatistic
            The parties' releases.

        Returns
        -------
        model : model
            The bound copy, with what its likelihood needs of the releases; the other
            methods need it.

        Raises
        ------
        ValueError
            If the releases are of another kind, differ in number of features,
            intercept, bounds or classes, or a parameter of the prior has the wrong
            shape.
        """
        check_parameters(self)
        bound = clone(self)
        bound._bind(releases, self._common_facts(releases))
        return bound

    @abstractmethod
    def scaled_loglik(self, phi, release, scale):
        """Log-likelihood of a release whose statistic is scaled.

        The likelihood of the exact statistic is raised to a power, as if it and the
        number of rows were multiplied by it, before the noise is added, which is
        multiplied by it, too. Without noise it is the power of the likelihood.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_parameters)
            Draws of the parameters.
        release : NoisyStatistic
            The release, one of those that the model is bound to.
        scale : float
            The power, above 0 and at most 1.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods, up to a constant that does not depend on phi.

        References
        ----------
        Sim et al., NeurIPS 2023, Section 5.2 and Appendix E.3.
        """

    def party_loglik(self, phi, release):
        """Log-likelihood of one party's release.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_parameters)
            Draws of the parameters.
        release : NoisyStatistic
            The release, one of those that the model is bound to.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods, up to a constant that does not depend on phi.
        """
        return self.scaled_loglik(phi, release, 1.0)

    def _common_facts(self, releases):
        """The public fields that must be equal in all releases."""
        for release in releases:
            if release.kind != self._kind:
                raise ValueError(
                    f"releases must be of kind {self._kind!r} for "
                    f"{type(self).__name__}. Got {release.kind!r}."
                )
        facts = {}
        for name in self._common_fields:
            values = {getattr(release, name) for release in releases}
            if name == "classes" and len(values) > 1:
                # Releases without labels are not compared.
                values.discard(())
            if len(values) > 1:
                listed = ", ".join(sorted(map(repr, values)))
                raise ValueError(f"releases must agree in {name}. Got {listed}.")
            (facts[name],) = values
        return facts

    def _bind(self, releases, facts):
        """Set what the likelihood needs, from releases of the common `facts`."""

    def exact_statistics(self, phi, release, rng):
        """Draws of the exact statistic behind a release, one for each draw of phi.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_parameters)
            Draws of the parameters.
        release : NoisyStatistic
            The release, one of those that the model is bound to.
        rng : numpy Generator
            Random number generator.

        Returns
        -------
        statistics : ndarray of shape (n_draws, n_entries)
            Statistics without noise; those of the release if it has none.
        """
        if release.n_samples == 0:
            return np.zeros((len(phi), len(release.statistic)))
        if release.noise_scale == 0:
            return np.tile(release.vector, (len(phi), 1))
        return self._exact_statistics(phi, release, rng)

    @abstractmethod
    def _exact_statistics(self, phi, release, rng):
        """The draws of `exact_statistics` for a release of rows with noise."""

    @abstractmethod
    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact statistics, each of one coalition.

        Parameters
        ----------
        counts : ndarray of shape (n_posteriors,)
            Numbers of rows.
        statistics : ndarray of shape (n_posteriors, n_entries)
            Statistics of these rows, without noise.

        Returns
        -------
        posteriors : object
            Its methods ``divergences()`` and ``log_densities(X, y)`` return the
            divergences (n_posteriors,) from the prior, and the log predictive densities
            (n_posteriors, n_points) of points.
        """


class PartyMoments(NamedTuple):
    """What the likelihood needs of a party's release.

    `gram` has the noisy sums, (size, size). `second_moments` are those of u = ([1,] x)
    at the party, one or more (p, p); the likelihood is a mean over them. They are
    [None] for the likelihood of an exact statistic, which does not need them.
    `log_densities` are those of the sums of u u' under each of them, and 0 where they
    are taken as known.
    """

    gram: np.ndarray
    second_moments: object
    log_densities: object


class RegressionModel(PriorModel):
    """Base class of models of regression, which need second moments of the features."""

    _common_fields = (
        "n_features",
        "intercept",
        "bounds",
        "classes",
        "x_centre",
        "x_scale",
    )

    _parameter_constraints: dict = {
        "mean": [Real, "array-like"],
        "precision": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "x_covariance": ["array-like", None],
        "moments": [StrOptions({"plugin", "hierarchical"})],
        "moment_draws": [Interval(Integral, 1, 256, closed="both")],
    }

    def _bind(self, releases, facts):
        self.n_features_in_ = facts["n_features"]
        self.intercept_ = facts["intercept"]
        self.x_bound_ = facts["bounds"][0]
        self.x_centre_ = np.array(facts["x_centre"])
        self.x_scale_ = np.array(facts["x_scale"])
        size = self.n_features_in_ + self.intercept_
        self.prior_mean_ = np.broadcast_to(np.asarray(self.mean, float), size)
        self.prior_precision_ = positive_definite(self.precision, size, "precision")
        self._bind_classes(facts["classes"])
        self._party_moments = {
            release: self._learn(release) for release in releases if release.n_samples
        }

    def map_features(self, X):
        """Features as parties map theirs: scaled by public numbers, and clipped.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        mapped : ndarray of shape (n_rows, n_features)
            Rows of norm at most the bound of the releases.
        """
        if len(self.x_scale_):
            X = (X - self.x_centre_) / self.x_scale_
        return clip_rows(X, self.x_bound_)

    def _bind_classes(self, classes):
        """Check the classes of the releases, and set those of a classifier."""

    @abstractmethod
    def _learn(self, release):
        """The `PartyMoments` of a release."""

    @abstractmethod
    def _loglik(self, phi, release, gram, second_moments, scale):
        """Log-likelihood (n_draws,) of a release, for given second moments of u.

        `scale` is that of `scaled_loglik`.
        """

    def _second_moments(self, gram, release):
        """Second moments of u at a party and log densities, as in `PartyMoments`.

        `gram` has the party's noisy sums of u u', u = ([1,] x).
        """
        if self.x_covariance is not None:
            size = release.n_features
            covariance = positive_definite(self.x_covariance, size, "x_covariance")
            second_moments = np.eye(len(gram))
            features = slice(int(release.intercept), None)
            second_moments[features, features] = covariance
            return [second_moments], [0.0]
        facts = _facts_of_moments(gram, release)
        if self.moments == "hierarchical":
            return posterior_second_moments(**facts, n_draws=self.moment_draws)
        return [plugin_second_moments(**facts)], [0.0]

    def _possible_moments(self, release):
        """Second moments of u that a party may have, (p, p) each, given its release.

        Those of `moments="plugin"` are one estimate, which does not say how wrong it
        may be: they are drawn here.
        """
        gram, second_moments, _ = self._party_moments[release]
        if self.x_covariance is not None or self.moments == "hierarchical":
            return second_moments
        size = release.n_features + release.intercept
        facts = _facts_of_moments(gram[:size, :size], release)
        draws, _ = posterior_second_moments(
            **facts, n_draws=_N_MOMENT_DRAWS, n_particles=_N_MOMENT_DRAWS
        )
        return draws

    def _exact_statistics(self, phi, release, rng):
        # Each draw takes one of the second moments of the features, at random.
        second_moments = self._possible_moments(release)
        numbers = rng.integers(len(second_moments), size=len(phi))
        statistics = np.empty((len(phi), len(release.statistic)))
        for number in np.unique(numbers):
            rows = numbers == number
            mean, covariance = self._row_moments(
                phi[rows], second_moments[number], release.intercept
            )
            statistics[rows] = draw_behind_noise(
                release.vector,
                release.noise_scale**2,
                release.n_samples * mean,
                release.n_samples * covariance,
                rng,
            )
        return self._possible_statistics(statistics, release)

    @abstractmethod
    def _row_moments(self, phi, second_moments, intercept):
        """Means (n, m) and covariances (n, m, m) of the statistic of one row."""

    @abstractmethod
    def _possible_statistics(self, statistics, release):
        """Statistics (n, m), changed to what rows within the bounds can have."""

    def scaled_loglik(self, phi, release, scale):
        """Log-likelihood of a release whose statistic is scaled.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_parameters)
            Draws of the parameters.
        release : NoisyStatistic
            The release, one of those that the model is bound to.
        scale : float
            Power of the likelihood of the exact statistic, above 0 and at most 1.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods, up to a constant that does not depend on phi.
        """
        if release.n_samples == 0:
            return np.zeros(len(phi))
        gram, second_moments, log_densities = self._party_moments[release]

        # The likelihood given the sums of x, on which the draws of second moments are
        # already conditioned.
        total = -np.inf
        for second, log_density in zip(second_moments, log_densities):
            loglik = self._loglik(phi, release, gram, second, scale)
            total = np.logaddexp(total, loglik - log_density)
        return total


def _facts_of_moments(gram, release):
    """Arguments of `plugin_second_moments`: the noisy sums of u u', and the release."""
    return {
        "gram": gram,
        "count": float(release.n_samples),
        "variance": release.noise_scale**2,
        "bound": release.bounds[0],
        "intercept": release.intercept,
    }


def bind(model, releases):
    """The model bound to releases; a user's model may do without."""
    if hasattr(model, "bind"):
        return model.bind(releases)
    return model


def _statement_of(value):
    """A parameter of a prior for JSON: a number, or the hash of an array.

    Constant vectors and multiples of the identity are numbers, too.
    """
    array = np.asarray(value, dtype="<f8") + 0.0  # no -0.0
    if array.ndim == 1 and array.size and (array == array[0]).all():
        array = array[0]
    if array.ndim == 2 and array.size:
        multiple = array[0, 0] * np.eye(*array.shape)
        if (array == multiple).all():
            array = array[0, 0]
    if array.ndim == 0:
        return float(array)
    content = np.ascontiguousarray(array).tobytes()
    return f"{array.shape} {hashlib.sha256(content).hexdigest()[:16]}"


def check_targets(model, y, name):
    """Targets y as numbers of which a model has a density; refuses others.

    Labels, and targets of models that are none of skvalue's, are left as they are.
    """
    if not isinstance(model, PriorModel) or hasattr(model, "classes_"):
        return y
    y = check_numbers(y, name)
    is_possible = np.ones(len(y), dtype=bool)
    if model._targets == "counts":
        is_possible = (y >= 0) & (np.floor(y) == y)
    elif model._targets == "zeros and ones":
        is_possible = (y == 0) | (y == 1)
    if not is_possible.all():
        raise ParameterError(
            name,
            f"must hold {model._targets} for {type(model).__name__}. Got "
            f"{y[~is_possible][0]:g}.",
        )
    return y


def check_prior(model, releases):
    """Refuse releases that state different priors, or another one than the model's."""
    stated = {release.prior for release in releases.values()} - {None}
    if len(stated) > 1:
        listed = ", ".join(sorted(stated))
        raise ValueError(f"releases must agree in prior. Got {listed}.")
    if not stated:
        return
    if not hasattr(model, "prior_statement"):
        raise ValueError(
            "model must have a method prior_statement where releases state a prior. "
            f"Got {type(model).__name__}."
        )
    (agreed,) = stated
    statement = model.prior_statement()
    if agreed != statement:
        raise ValueError(
            f"model must have the prior that releases state, {agreed}. Got {statement}."
        )


def positive_definite(value, size, name):
    """A positive definite matrix from a number (times the identity) or an array."""
    matrix = np.asarray(value, dtype=float)
    if matrix.ndim == 0:
        return float(matrix) * np.eye(size)
    flaw = _flaw(matrix, size)
    if flaw is not None:
        raise ValueError(
            f"{name} must be a symmetric positive definite matrix of shape ({size}, "
            f"{size}). Got {flaw}."
        )
    return matrix


def _flaw(matrix, size):
    """Why an array is no symmetric positive definite matrix, or None."""
    if matrix.shape != (size, size):
        return f"one of shape {matrix.shape}"
    if not np.isfinite(matrix).all():
        return "NaN or infinity"
    if not np.allclose(matrix, matrix.T):
        return "one that is not symmetric"
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest <= 0:
        return f"one with the eigenvalue {smallest:g}"
    return None


def check_releases(releases):
    """Releases by party, from a mapping or a sequence of NoisyStatistic objects."""
    if isinstance(releases, Mapping):
        releases = dict(releases)
    elif isinstance(releases, list | tuple):
        releases = dict(enumerate(releases))
    else:
        raise TypeError(
            "releases must be a mapping of parties to NoisyStatistic objects, or a "
            f"sequence of them. Got {type(releases).__name__}."
        )
    if not releases:
        raise ValueError("releases must hold at least one release. Got none.")
    for party, release in releases.items():
        if not isinstance(release, NoisyStatistic):
            raise TypeError(
                "releases must hold NoisyStatistic objects (its method from_json reads "
                f"one), never rows. Got {type(release).__name__} from {party!r}."
            )
    return releases


def warn_of_few_rows(releases):
    """Warn about parties with fewer than `MIN_NORMAL_ROWS` rows."""
    small_parties = [party for party, r in releases.items() if _is_small(r)]
    if small_parties:
        warn(
            f"Parties {small_parties!r} have fewer than {MIN_NORMAL_ROWS} rows: the "
            "normal approximation of their statistics is not accurate.",
            NormalApproximationWarning,
        )


def _is_small(release):
    """Whether the normal approximation of a release is used and not accurate."""
    is_approximated = release.kind not in SUMS and release.renyi_epsilon is not None
    return is_approximated and 0 < release.n_samples < MIN_NORMAL_ROWS
