"""What the mediator's models share: checks of priors and of the releases' public facts."""

import warnings
from collections.abc import Mapping

import numpy as np

from .._sklearn import validate_parameter_constraints
from ..exceptions import NormalApproximationWarning
from ._party import FEW_ROWS
from .release import Release

__all__ = [
    "PriorChecks",
    "check_releases",
    "common_facts",
    "positive_definite",
    "warn_of_few_rows",
]


class PriorChecks:
    """Checks of parameters, by `_parameter_constraints`."""

    def _validate_params(self):
        validate_parameter_constraints(
            self._parameter_constraints, self.get_params(deep=False), type(self).__name__
        )


def common_facts(releases, kinds, names, model):
    """Public facts that all releases agree on; refuses those that disagree, by name."""
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
        if len(found) > 1:
            shown = ", ".join(sorted(map(repr, found)))
            raise ValueError(f"releases must agree in {name}. Got {shown}.")
        facts[name] = found.pop()
    return facts


def positive_definite(value, size, name):
    """A symmetric positive definite matrix, from a number or from an array."""
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


def check_releases(releases):
    """Releases by party, from a mapping or a sequence; refuses anything else, rows above all."""
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
    """Name the parties whose statistics are sums of few rows."""
    few = [
        party
        for party, release in releases.items()
        if release.kind in ("linear", "logistic")
        and release.epsilon is not None
        and 0 < release.n_samples < FEW_ROWS
    ]
    if few:
        warnings.warn(
            f"Parties {few!r} have fewer than {FEW_ROWS} rows: the normal approximation of their "
            "statistics is rough.",
            NormalApproximationWarning,
            stacklevel=4,
        )
