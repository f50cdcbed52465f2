"""Updates of the parties of a round, and their weights, as arrays."""

from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

from ..._utils.containers import as_numpy
from ..._utils.private_entries import private_entries, quiet_arithmetic
from ..._utils.untrusted import party_name
from ...exceptions import ParameterError

# Standard deviations by which noise may exceed the norm that is expected of it: the
# probability of more is exp(-50).
_NOISE_MARGIN = 10.0
_MAX_WEIGHT = 1e100  # products with updates are finite
_SLACK = 1e-9  # relative rounding error allowed in a clipped norm


def checked_parties(parties):
    """Names of the parties of a training: 0, 1, ... if their number is given."""
    is_number = isinstance(parties, Integral) and not isinstance(parties, bool)
    if is_number:
        if parties < 2:
            raise ParameterError(
                "parties", f"must be at least 2, or names. Got {parties!r}."
            )
        return tuple(range(int(parties)))
    if isinstance(parties, str | bytes) or not np.iterable(parties):
        raise ParameterError(
            "parties", f"must be an integer of at least 2, or names. Got {parties!r}."
        )
    names = tuple(parties)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError(
            "parties", f"must be an integer or strings, their names. Got {names!r}."
        )
    for name in names:
        party_name(name, "parties")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ParameterError(
            "parties", f"must be at least two different names. Got {names!r}."
        )
    return names


def checked_updates(updates, names, theta, n_parameters, *, is_private):
    """Numbers (n_present,) of the parties that sent updates, and those, an array.

    ``updates`` has a row for every party, or an update by the name of each party that
    takes part. Messages show no entry of an update. Private entries that are no numbers
    are NaN; without privacy they are refused.
    """
    if isinstance(updates, Mapping):
        present = _numbers_of(updates, names)
        rows = [updates[names[number]] for number in present]
        shape = (len(present), n_parameters)
        cure = "an update of this shape by the name of each party"
    else:
        present = np.arange(len(names))
        rows = updates
        shape = (len(names), n_parameters)
        cure = "or a mapping from names to updates if parties are absent"

    try:
        # No party decides the type of the numbers of others.
        if isinstance(rows, (list, tuple)):
            array = np.stack([_as_numbers(update, is_private) for update in rows])
        else:
            array = _as_numbers(rows, is_private)
    except (TypeError, ValueError):
        # Not from this error, which may show an entry.
        raise ParameterError(
            "updates",
            f"must be real numbers in shape {shape}, {cure}. Got other entries, or "
            "rows of different lengths.",
        ) from None
    if theta.shape != (n_parameters,) or array.shape != shape:
        raise ValueError(
            f"theta must have shape ({n_parameters},), and updates {shape}. Got "
            f"{theta.shape} and {array.shape}."
        )
    return present, array


def _as_numbers(update, is_private):
    """One update, or an array of them, as float64.

    Raises TypeError or ValueError for complex numbers and other entries.
    """
    array = np.asarray(private_entries(update) if is_private else as_numpy(update))
    if array.dtype.kind == "c":
        raise TypeError("complex numbers")
    with quiet_arithmetic(is_private):
        return array.astype(np.float64)


def _numbers_of(updates, names):
    """Sorted numbers of the parties that are named in a mapping."""
    number_of = {name: number for number, name in enumerate(names)}
    for name in updates:
        if name not in number_of:
            shown = ", ".join(map(repr, names[:5]))
            if len(names) > 5:
                shown += ", ..."
            raise ParameterError(
                "updates", f"must name parties of the training: {shown}. Got {name!r}."
            )
    if not updates:
        raise ParameterError(
            "updates", "must have the update of at least one party. Got none."
        )
    return np.array(sorted(number_of[name] for name in updates))


def checked_weights(weights, names, present):
    """Weights (n_present,) of the parties that sent updates; ones if None.

    ``weights`` has a number for every party, or by name for each that takes part.
    """
    if weights is None:
        return np.ones(len(present))
    if isinstance(weights, Mapping):
        missing = [names[number] for number in present if names[number] not in weights]
        if missing:
            raise ParameterError(
                "weights",
                "must have a number for each party with an update. Got none for "
                f"{missing[0]!r}.",
            )
        of_present = [weights[names[number]] for number in present]
    else:
        if np.shape(weights) != (len(names),):
            raise ParameterError(
                "weights",
                f"must have shape ({len(names)},), a number for every party. Got shape "
                f"{np.shape(weights)}.",
            )
        numbers = np.asarray(weights).tolist()
        of_present = [numbers[number] for number in present]

    for number, weight in zip(present, of_present):
        is_number = isinstance(weight, Real) and not isinstance(weight, bool | np.bool_)
        if not is_number or not 0 < weight <= _MAX_WEIGHT:
            raise ParameterError(
                "weights",
                f"must be positive numbers up to {_MAX_WEIGHT:g}, such as numbers of "
                "rows: leave parties without an update out of updates. Got "
                f"{weight!r} for {names[number]!r}.",
            )
    return np.array(of_present, dtype=np.float64)


def largest_norm(clip, noise_scale, n_parameters):
    """Largest norm of what a party releases with this clip and noise.

    Infinite without clip; larger norms have a probability below exp(-50).
    """
    if clip is None:
        return np.inf
    noise_norm = noise_scale * (np.sqrt(n_parameters) + _NOISE_MARGIN)
    return clip * (1 + _SLACK) + noise_norm


def check_released(updates, limit, names):
    """Refuse releases (n, p) that `release` cannot have made, by the party's name."""
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(updates, axis=1)
    for norm, name in zip(norms, names):
        if not np.isfinite(norm):
            raise ParameterError(
                "updates",
                "must be finite, as those are that release returns. Got one that is "
                f"not, of party {name!r}.",
            )
        if norm > limit:
            raise ParameterError(
                "updates",
                f"must have norms of at most {limit:.6g}, as the clip and the noise of "
                f"this training allow: it was released with another clip. Got a norm "
                f"of {norm:.6g}, of party {name!r}.",
            )
