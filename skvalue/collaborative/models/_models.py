"""Base of the mediator's models: checks of priors and of the public fields of
releases."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._utils.sklearn import Interval, StrOptions, check_parameters
from ..._utils.warned import warn
from ...exceptions import NormalApproximationWarning
from ..party import FEW_ROWS, NoisyStatistic
from ._moments import plugin_second_moments, posterior_second_moments


class PriorModel(BaseEstimator):
    """Base class of models of releases, with the methods that `BayesianSurpriseScorer`
    lists.

    A class has the kind of its releases, the fields that must be equal in all of them,
    and the parameters of its prior.
    """

    _kind, _common_fields, _prior_parameters = "", (), ()

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
        facts = {name: _stated(getattr(self, name)) for name in self._prior_parameters}
        return json.dumps({"model": type(self).__name__, **facts})

    def bind(self, releases):
        """Copy of the model with what its likelihood needs of the releases, after their
        check.

        Parameters
        ----------
        releases : sequence of NoisyStatistic
            The parties' releases.

        Returns
        -------
        model : model
            The bound copy; the other methods need it.

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

    def _common_facts(self, releases):
        """The public fields that must be equal in all releases."""
        kind, name = self._kind, type(self).__name__
        for release in releases:
            if release.kind != kind:
                raise ValueError(
                    f"releases must be of kind {kind!r} for {name}. Got {release.kind!r}."
                )
        facts = {}
        for name in self._common_fields:
            values = {getattr(release, name) for release in releases}
            if name == "classes" and len(values) > 1:
                values -= {()}  # releases without labels are not compared
            if len(values) > 1:
                shown = ", ".join(sorted(map(repr, values)))
                raise ValueError(f"releases must agree in {name}. Got {shown}.")
            (facts[name],) = values
        return facts

    def _bind(self, releases, facts):
        """Set what the likelihood needs, from releases of the common `facts`."""


class RegressionModel(PriorModel):
    """Base class of models of regression, which need second moments of the features."""

    _common_fields = ("n_features", "intercept", "bounds", "classes")

    _parameter_constraints: dict = {
        "mean": [Real, "array-like"],
        "precision": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "x_covariance": ["array-like", None],
        "moments": [StrOptions({"plugin", "hierarchical"})],
        "moment_draws": [Interval(Integral, 1, 256, closed="both")],
    }

    def _bind(self, releases, facts):
        self.n_features_in_, self.intercept_ = facts["n_features"], facts["intercept"]
        size = self.n_features_in_ + self.intercept_
        self.prior_mean_ = np.broadcast_to(np.asarray(self.mean, float), size)
        self.prior_precision_ = positive_definite(self.precision, size, "precision")
        self._bind_classes(facts["classes"])
        self._facts = {r: self._learn(r) for r in releases if r.n_samples}

    def _bind_classes(self, classes):
        """Check the classes of the releases, and set those of the model, if it has
        some."""

    @abstractmethod
    def _learn(self, release):
        """Gram matrix that the likelihood needs, and `_second_moments`."""

    @abstractmethod
    def _loglik(self, phi, release, gram, second):
        """Log-likelihood of a release for given second moments of u."""

    def _second_moments(self, gram, release):
        """Second moments of u = ([1,] x) at a party, in rows, and log densities of
        `gram` by row.

        `gram` has the party's noisy sums of u u'. Moments that are taken as known are
        one row, with a log density of 0.
        """
        if self.x_covariance is not None:
            second = np.eye(len(gram))
            inner = slice(int(release.intercept), None)
            size = release.n_features
            second[inner, inner] = positive_definite(
                self.x_covariance, size, "x_covariance"
            )
            return [second], [0.0]
        facts = (
            gram,
            float(release.n_samples),
            release.noise_scale**2,
            release.bounds[0],
        )
        if self.moments == "hierarchical":
            return posterior_second_moments(
                *facts, release.intercept, self.moment_draws
            )
        return [plugin_second_moments(*facts, release.intercept)], [0.0]

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
        if release.n_samples == 0:
            return np.zeros(len(phi))
        gram, moments = self._facts[release]
        # The likelihood given the sums of x, on which the draws are already
        # conditioned.
        total = -np.inf
        for second, own in zip(*moments):
            total = np.logaddexp(total, self._loglik(phi, release, gram, second) - own)
        return total


def bind(model, releases):
    """The model bound to releases; a user's model may do without."""
    return model.bind(releases) if hasattr(model, "bind") else model


def _stated(value):
    """A number, also for constant vectors and multiples of the identity; else an
    array's hash."""
    array = np.asarray(value, dtype="<f8") + 0.0  # no -0.0
    if array.ndim == 1 and array.size and (array == array[0]).all():
        array = array[0]
    if (
        array.ndim == 2
        and array.size
        and (array == array[0, 0] * np.eye(*array.shape)).all()
    ):
        array = array[0, 0]
    if array.ndim == 0:
        return float(array)
    return f"{array.shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def check_prior(model, releases):
    """Raise a ValueError if releases state different priors, or another than that of
    the model."""
    stated = {release.prior for release in releases.values()} - {None}
    if len(stated) > 1:
        shown = ", ".join(sorted(stated))
        raise ValueError(f"releases must agree in prior. Got {shown}.")
    if not stated:
        return
    if not hasattr(model, "prior_statement"):
        raise ValueError(
            "model must have a method prior_statement where releases state a prior. Got "
            f"{type(model).__name__}."
        )
    (wanted,), held = stated, model.prior_statement()
    if wanted != held:
        raise ValueError(
            f"model must have the prior that releases state, {wanted}. Got {held}."
        )


def positive_definite(value, size, name):
    """A symmetric positive definite matrix from a number (times the identity) or an
    array."""
    matrix = np.asarray(value, dtype=float)
    if matrix.ndim == 0:
        return float(matrix) * np.eye(size)
    good = matrix.shape == (size, size) and np.isfinite(matrix).all()
    if (
        not good
        or not np.allclose(matrix, matrix.T)
        or np.linalg.eigvalsh(matrix)[0] <= 0
    ):
        raise ValueError(
            f"{name} must be a symmetric positive definite matrix of shape ({size}, {size}). Got "
            f"one of shape {matrix.shape}."
        )
    return matrix


def check_releases(releases):
    """Releases by party, from a mapping or a sequence of NoisyStatistic objects, never
    of rows."""
    if isinstance(releases, Mapping):
        releases = dict(releases)
    elif isinstance(releases, list | tuple):
        releases = dict(enumerate(releases))
    else:
        raise TypeError(
            "releases must be a mapping of parties to NoisyStatistic objects, or a sequence of "
            f"them. Got {type(releases).__name__}."
        )
    if not releases:
        raise ValueError("releases must hold at least one release. Got none.")
    for party, release in releases.items():
        if not isinstance(release, NoisyStatistic):
            raise TypeError(
                "releases must hold NoisyStatistic objects (its method from_json reads one), "
                f"never rows. Got {type(release).__name__} from {party!r}."
            )
    return releases


def warn_of_few_rows(releases):
    """Warn about parties with fewer than `FEW_ROWS` rows."""
    few = [
        party
        for party, release in releases.items()
        if release.kind != "gaussian"
        and release.renyi_epsilon is not None
        and 0 < release.n_samples < FEW_ROWS
    ]
    if few:
        warn(
            f"Parties {few!r} have fewer than {FEW_ROWS} rows: the normal approximation of their "
            "statistics is not accurate.",
            NormalApproximationWarning,
        )
