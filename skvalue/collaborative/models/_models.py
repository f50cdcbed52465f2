"""Base of the mediator's models: checks of priors and of the public fields of releases."""

import hashlib
import json
import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator

from ..._utils.sklearn import check_parameters
from ...exceptions import NormalApproximationWarning
from ..party import FEW_ROWS, Release


class PriorModel(BaseEstimator):
    """Base class of models of releases, with the methods that `BayesianSurpriseScorer` lists."""

    _prior_parameters = ()

    def prior_statement(self):
        """The prior as text; equal priors have equal texts.

        Parties state it in their releases, and the mediator compares it with its model's prior.

        Returns
        -------
        statement : str
            Class and parameters of the prior, as JSON; arrays by the first 16 digits of a hash.
        """
        check_parameters(self)
        facts = {name: _stated(getattr(self, name)) for name in self._prior_parameters}
        return json.dumps({"model": type(self).__name__, **facts})


def _stated(value):
    """A number, also for constant vectors and multiples of the identity; else an array's hash."""
    array = np.asarray(value, dtype="<f8") + 0.0  # no -0.0
    if array.ndim == 1 and array.size and (array == array[0]).all():
        array = array[0]
    if array.ndim == 2 and array.size and (array == array[0, 0] * np.eye(*array.shape)).all():
        array = array[0, 0]
    if array.ndim == 0:
        return float(array)
    return f"{array.shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def check_prior(model, releases):
    """Raise a ValueError if releases state different priors, or another than that of the model."""
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
        raise ValueError(f"model must have the prior that releases state, {wanted}. Got {held}.")


def common_facts(releases, kinds, names, model):
    """The public fields `names`, which must be equal in all releases."""
    releases = list(releases)
    for release in releases:
        if not isinstance(release, Release):
            raise TypeError(f"releases must hold Release objects. Got {type(release).__name__}.")
        if release.kind not in kinds:
            raise ValueError(
                f"releases must be of kind {' or '.join(map(repr, kinds))} for {model}. Got "
                f"{release.kind!r}."
            )
    facts = {}
    for name in names:
        found = {getattr(release, name) for release in releases}
        if name == "classes" and len(found) > 1:
            found -= {()}  # releases without labels are not compared
        if len(found) > 1:
            shown = ", ".join(sorted(map(repr, found)))
            raise ValueError(f"releases must agree in {name}. Got {shown}.")
        facts[name] = found.pop()
    return facts


def positive_definite(value, size, name):
    """A symmetric positive definite matrix from a number (times the identity) or an array."""
    matrix = np.asarray(value, dtype=float)
    if matrix.ndim == 0:
        return float(matrix) * np.eye(size)
    good = matrix.shape == (size, size) and np.isfinite(matrix).all()
    if not good or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ValueError(
            f"{name} must be a symmetric positive definite matrix of shape ({size}, {size}). Got "
            f"one of shape {matrix.shape}."
        )
    return matrix


def public_moments(x_covariance, n_features, intercept):
    """Second moments of ([1,] x) for a given covariance of x, else None."""
    if x_covariance is None:
        return None
    second = np.eye(n_features + intercept)
    second[intercept:, intercept:] = positive_definite(x_covariance, n_features, "x_covariance")
    return second


def check_releases(releases):
    """Releases by party, from a mapping or a sequence of Release objects, never of rows."""
    if isinstance(releases, Mapping):
        releases = dict(releases)
    elif isinstance(releases, list | tuple):
        releases = dict(enumerate(releases))
    else:
        raise TypeError(
            "releases must be a mapping of parties to Release objects, or a sequence of them. Got "
            f"{type(releases).__name__}."
        )
    if not releases:
        raise ValueError("releases must hold at least one release. Got none.")
    for party, release in releases.items():
        if not isinstance(release, Release):
            raise TypeError(
                f"releases must hold Release objects (Release.from_json reads one), never rows. "
                f"Got {type(release).__name__} from {party!r}."
            )
    return releases


def warn_of_few_rows(releases):
    """Warn about parties with fewer than `FEW_ROWS` rows."""
    few = [
        party
        for party, release in releases.items()
        if release.kind in ("linear", "logistic")
        and release.renyi_epsilon is not None
        and 0 < release.n_samples < FEW_ROWS
    ]
    if few:
        warnings.warn(
            f"Parties {few!r} have fewer than {FEW_ROWS} rows: the normal approximation of their "
            "statistics is not accurate.",
            NormalApproximationWarning,
            stacklevel=5,
        )
