"""What a server asks in a round, and what a party answers: records for JSON files."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np

from ..._utils.untrusted import (
    choice,
    fingerprint,
    flag,
    from_base64,
    integer,
    number,
    party_name,
    read_record,
    read_text,
    refuse,
    to_base64,
)
from ...derivatives import gradient_event
from ...exceptions import ParameterError
from ...privacy import get_epsilon
from ._updates import largest_norm

_ROUND_FORMAT = "skvalue.valuers.FederatedRound"
_UPDATE_FORMAT = "skvalue.valuers.FederatedUpdate"
_VERSION = 1
_MAX_PARAMETERS = 10_000_000
_MAX_PARTIES = 10_000
_MAX_COLUMNS = 10_000
_MAX_ROUNDS = 1_000_000
MAX_SAMPLES = 10**12
_MAX_COLUMN = 200  # characters
_CHARACTERS = 12  # in which JSON writes a character that is not ASCII
_MAX_NUMBER = 1e50
_MAX_EPSILON = 1e6
_TRUSTS = ("local", "server")
# What a party and the server must have agreed on, by its parameter of the valuer.
AGREED = ("n_rounds", "clip", "epsilon", "delta", "noise_multiplier", "trust")


@dataclass(frozen=True, eq=False)
class FederatedRound:
    """What the server of a federated training asks its parties in one round.

    `FederatedSemivalueValuer.announce_round` makes it; `to_json` and `from_json`
    transfer it to the parties. All fields are public, and checked on construction.

    Parameters
    ----------
    training : str
        Name of the training.
    number : int
        Number of the round, from 1 to `n_rounds`.
    parties : sequence of str
        Names of the parties.
    columns : sequence of str
        Names of the columns that the rows of every party have, in their order; empty
        if they are not compared.
    n_rounds : int
        Number of rounds, and so of releases of every party.
    clip : float or None
        Bound of the norm of updates.
    epsilon, delta : float or None, float
        Privacy of all updates of a party together.
    noise_multiplier : float or None
        Noise in place of `epsilon`.
    trust : {"local", "server"}
        As in `FederatedSemivalueValuer`.
    parameters : array-like of shape (p,)
        Parameters of the global model before the round.

    Attributes
    ----------
    fingerprint : str
        Hash of all fields, which an update states.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range.

    See Also
    --------
    FederatedUpdate : What a party answers.

    Examples
    --------
    >>> from skvalue import FederatedSemivalueValuer
    >>> from skvalue.valuers import FederatedRound
    >>> server = FederatedSemivalueValuer(n_rounds=5, clip=1.0)
    >>> server = server.start(lambda thetas: thetas[:, 0], ["north", "south"])
    >>> asked = server.announce_round([0.0, 0.0])
    >>> FederatedRound.from_json(asked.to_json()).fingerprint == asked.fingerprint
    True
    """

    training: str
    number: int
    parties: tuple
    columns: tuple
    n_rounds: int
    clip: float | None
    epsilon: float | None
    delta: float
    noise_multiplier: float | None
    trust: str
    parameters: np.ndarray

    def __post_init__(self):
        _set(self, "training", party_name)
        _set(self, "parties", _party_names, _MAX_PARTIES)
        _check_agreed(self)
        _set(self, "parameters", _checked_vector)

    @property
    def fingerprint(self):
        """Hash of all fields, a text of 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self):
        """The round as text.

        Returns
        -------
        text : str
            JSON; the parameters are base64 of little-endian float64.
        """
        return _to_json(self, _ROUND_FORMAT, "parameters")

    @classmethod
    def from_json(cls, text):
        """Read a round from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        asked : FederatedRound
            The round.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, of another format or version, has
            missing, unknown or repeated fields, or a field has an invalid value.
        """
        names = {field.name for field in fields(cls)}
        limit = max_file_size(_MAX_PARAMETERS, _MAX_COLUMNS + _MAX_PARTIES)
        record = read_record(text, _ROUND_FORMAT, _VERSION, names, limit)
        record["parameters"] = from_base64(record["parameters"], "parameters")
        return cls(**record)


@dataclass(frozen=True, eq=False)
class FederatedUpdate:
    """What a party of a federated training sends to the server in one round.

    `FederatedSemivalueValuer.answer_round` makes it on the party's machine; `to_json`
    and `from_json` transfer it to the server. It states what was agreed on, and the
    server refuses an update that was made otherwise. All fields are public: the
    guarantee is about exactly these fields. They are checked on construction.

    Parameters
    ----------
    party : str
        Name of the party: letters, digits, spaces, ".", "-" and "_".
    asked : str
        Fingerprint of the `FederatedRound` that is answered.
    number : int
        Number of the round.
    n_samples : int
        Number of rows of the party, by which its update is weighted. It is declared,
        exact and public.
    columns : sequence of str
        Names of the columns of its rows, in their order.
    n_rounds : int
        Number of rounds that the noise is made for.
    clip : float or None
        Bound to which the norm of the update was clipped.
    epsilon, delta : float or None, float
        Privacy of all updates of the party together.
    noise_multiplier : float or None
        Noise in place of `epsilon`.
    trust : {"local", "server"}
        As in `FederatedSemivalueValuer`.
    seeded : bool
        Whether the noise has a seed, which voids the guarantee.
    update : array-like of shape (p,)
        The released update.

    Attributes
    ----------
    guarantee : str or None
        The guarantee of all updates of the party as a sentence; None if there is none.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, or the update is longer than
        the clip and the noise allow.

    See Also
    --------
    FederatedRound : What the server asks.

    Examples
    --------
    >>> from skvalue import FederatedSemivalueValuer
    >>> from skvalue.valuers import FederatedUpdate
    >>> agreed = FederatedSemivalueValuer(n_rounds=5, clip=1.0, epsilon=1.0)
    >>> server = agreed.start(lambda thetas: thetas[:, 0], ["north", "south"])
    >>> asked = server.announce_round([0.0, 0.0])
    >>> party = FederatedSemivalueValuer(n_rounds=5, clip=1.0, epsilon=1.0)
    >>> sent = party.answer_round(asked, [0.3, 0.1], party="north", n_samples=400)
    >>> FederatedUpdate.from_json(sent.to_json()).guarantee
    '(1, 1e-05)-differential privacy of a party, by 5 updates'
    """

    party: str
    asked: str
    number: int
    n_samples: int
    columns: tuple
    n_rounds: int
    clip: float | None
    epsilon: float | None
    delta: float
    noise_multiplier: float | None
    trust: str
    seeded: bool
    update: np.ndarray

    def __post_init__(self):
        _set(self, "party", party_name)
        _set(self, "asked", fingerprint)
        _set(self, "n_samples", integer, 1, MAX_SAMPLES)
        _set(self, "seeded", flag)
        _check_agreed(self)
        _set(self, "update", _checked_vector)

        limit = largest_norm(self.clip, _noise_scale(self), len(self.update))
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(self.update))
        if not norm <= limit:
            refuse(
                "update",
                f"of norm at most {limit:.6g}, as its clip and noise allow",
                norm,
            )

    @property
    def guarantee(self):
        """The guarantee as a sentence; None if there is none."""
        event = _event(self)
        if event is None or self.seeded:
            return None
        epsilon = get_epsilon(event, self.delta)
        return (
            f"({epsilon:.6g}, {self.delta:.6g})-differential privacy of a party, by "
            f"{self.n_rounds} updates"
        )

    def to_json(self):
        """The update as text.

        Returns
        -------
        text : str
            JSON; the update is base64 of little-endian float64.
        """
        return _to_json(self, _UPDATE_FORMAT, "update", guarantee=self.guarantee)

    @classmethod
    def from_json(cls, text):
        """Read an update from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        update : FederatedUpdate
            The update.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, of another format or version, has
            missing, unknown or repeated fields, or a field has an invalid value.
        """
        names = {field.name for field in fields(cls)} | {"guarantee"}
        limit = max_file_size(_MAX_PARAMETERS, _MAX_COLUMNS)
        record = read_record(text, _UPDATE_FORMAT, _VERSION, names, limit)
        claimed = record.pop("guarantee")
        record["update"] = from_base64(record["update"], "update")
        sent = cls(**record)
        if claimed != sent.guarantee:
            refuse("guarantee", f"{sent.guarantee!r}, as the fields say", claimed)
        return sent


# What may stand for an update in a mapping.
_ANSWERS = (FederatedUpdate, str, os.PathLike)

# Files --------------------------------------------------------------------------------


def max_file_size(n_parameters, n_names):
    """Largest number of bytes of a file with this many parameters and names.

    >>> max_file_size(10, 3)
    11416
    """
    n_texts = n_names * (_CHARACTERS * _MAX_COLUMN + 4)
    return 4 * math.ceil(8 * n_parameters / 3) + n_texts + 4096


def read_update(path, asked):
    """The update of a file that answers a `FederatedRound`; other sizes are refused."""
    limit = max_file_size(len(asked.parameters), len(asked.columns))
    text = read_text(path, limit, str(path))
    try:
        return FederatedUpdate.from_json(text)
    except ValueError as error:
        raise ParameterError(
            str(path), f"must be an update of a party. Got an error: {error}"
        ) from None


def is_answered(updates):
    """Whether updates are a mapping to records or files, not to arrays."""
    if not isinstance(updates, Mapping):
        return False
    kinds = [isinstance(sent, _ANSWERS) for sent in updates.values()]
    if any(kinds) and not all(kinds):
        raise ParameterError(
            "updates", "must be arrays, or else all FederatedUpdate objects or paths."
        )
    return any(kinds)


def read_answers(answers, asked, n_samples, allows_seeds):
    """Updates and numbers of rows by the names of parties, from their answers.

    ``answers`` are `FederatedUpdate` objects, or paths of files with them, by name;
    ``n_samples`` has the numbers of rows that were stated before. All of them are
    checked before any is used.
    """
    updates = {}
    stated = {}
    for name, answer in answers.items():
        if name not in asked.parties:
            shown = ", ".join(map(repr, asked.parties[:5]))
            raise ParameterError(
                "updates", f"must name parties of the training: {shown}. Got {name!r}."
            )
        sent = answer
        if not isinstance(answer, FederatedUpdate):
            sent = read_update(answer, asked)
        check_answer(sent, asked, name, n_samples.get(name), allows_seeds)
        updates[name] = sent.update
        stated[name] = sent.n_samples
    return updates, stated


def check_answer(sent, asked, name, n_samples, allows_seeds):
    """Refuse an update that does not answer a round as it was asked.

    ``name`` is the party that it is said to be of, ``n_samples`` the number of rows
    that the party stated in its first round, or None.
    """
    if sent.party != name:
        raise ParameterError(
            "updates",
            "must have each update under the name of its party. Got one of "
            f"{sent.party!r} under {name!r}.",
        )
    for field in ("number", *AGREED):
        expected = getattr(asked, field)
        stated = getattr(sent, field)
        if stated != expected:
            raise ParameterError(
                "updates",
                f"must have the {field} of the round, {expected!r}. Got {stated!r}, of "
                f"party {name!r}.",
            )
    if sent.columns != asked.columns:
        raise ParameterError(
            "updates",
            f"must be of rows with the columns of the round: "
            f"{difference_of_names(asked.columns, sent.columns)}, of party {name!r}.",
        )
    if len(sent.update) != len(asked.parameters):
        raise ParameterError(
            "updates",
            f"must have {len(asked.parameters)} numbers. Got {len(sent.update)}, of "
            f"party {name!r}.",
        )
    if sent.seeded and not allows_seeds:
        raise ParameterError(
            "updates",
            "must have noise without a seed, which protects no row. Got a seeded one, "
            f"of party {name!r}.",
        )
    if n_samples is not None and sent.n_samples != n_samples:
        raise ParameterError(
            "updates",
            f"must state the number of rows that the party stated before, {n_samples}. "
            f"Got {sent.n_samples}, of party {name!r}.",
        )
    if sent.asked != asked.fingerprint:
        raise ParameterError(
            "updates",
            "must answer this round of this training, with its parameters. Got an "
            f"answer to another one, of party {name!r}.",
        )


def difference_of_names(expected, names):
    """Where the names of columns differ first, for a message."""
    if len(names) != len(expected):
        return f"there are {len(expected)}. Got {len(names)}"
    for place, (one, other) in enumerate(zip(expected, names), start=1):
        if one != other:
            return f"column {place} is {one!r}. Got {other!r}"
    return ""


# Fields -------------------------------------------------------------------------------


def _set(record, name, check, *arguments):
    """Replace a field of a frozen record by its checked value."""
    value = check(getattr(record, name), name, *arguments)
    object.__setattr__(record, name, value)


def _check_agreed(record):
    """Check the fields that a round and an update have in common."""
    _set(record, "columns", checked_columns)
    _set(record, "n_rounds", integer, 1, _MAX_ROUNDS)
    _set(record, "number", integer, 1, record.n_rounds)
    _set(record, "clip", _number_or_none)
    _set(record, "epsilon", _number_or_none, _MAX_EPSILON)
    _set(record, "delta", number, 0, 1)
    _set(record, "noise_multiplier", _number_or_none)
    _set(record, "trust", choice, _TRUSTS)
    if record.epsilon is not None and record.noise_multiplier is not None:
        refuse("noise_multiplier", "None if epsilon is given", record.noise_multiplier)
    if _is_private(record) and record.clip is None:
        refuse("clip", "a number, on which noise is based", record.clip)
    if _is_private(record) and not 1e-100 < _noise_scale(record) < 1e100:
        refuse("clip", "such that the noise is between 1e-100 and 1e100", record.clip)


def _is_private(record):
    return record.epsilon is not None or record.noise_multiplier is not None


def _event(record):
    """The releases of a party over all rounds as one event; None without noise."""
    if not _is_private(record):
        return None
    return gradient_event(
        record.n_rounds,
        record.clip,
        epsilon=record.epsilon,
        delta=record.delta,
        noise_multiplier=record.noise_multiplier,
        trust=record.trust,
    )


def _noise_scale(record):
    """Standard deviation of the noise of one release."""
    event = _event(record)
    return 0.0 if event is None else event.event.scale


def _party_names(value, name, most):
    """At least two different names."""
    is_sequence = isinstance(value, list | tuple)
    if not is_sequence or not 2 <= len(value) <= most:
        refuse(name, f"a sequence of 2 to {most} names", value)
    names = tuple(party_name(entry, name) for entry in value)
    if len(set(names)) < len(names):
        refuse(name, "different names", value)
    return names


def checked_columns(value, name):
    """Names of columns as a tuple, maybe none; arrays of names are taken too."""
    if isinstance(value, str | bytes) or not np.iterable(value):
        refuse(name, f"a sequence of at most {_MAX_COLUMNS} names", value)
    value = np.asarray(value, dtype=object).tolist()
    if len(value) > _MAX_COLUMNS:
        refuse(name, f"a sequence of at most {_MAX_COLUMNS} names", value)
    for entry in value:
        if not isinstance(entry, str) or not 0 < len(entry) <= _MAX_COLUMN:
            refuse(name, f"names of 1 to {_MAX_COLUMN} characters", entry)
    return tuple(value)


def _number_or_none(value, name, highest=_MAX_NUMBER):
    return None if value is None else number(value, name, 0, highest, strict=False)


def _checked_vector(value, name):
    """A finite vector of float64."""
    array = np.asarray(value)
    is_vector = array.ndim == 1 and array.dtype.kind in "fiu"
    if not is_vector or not 1 <= len(array) <= _MAX_PARAMETERS:
        refuse(
            name,
            f"a vector of 1 to {_MAX_PARAMETERS} numbers",
            f"{array.dtype} of shape {array.shape}",
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        refuse(name, "a vector of finite numbers", "NaN or infinity")
    return array


def _to_json(record, label, vector, **stated):
    """A record as text, with a vector in base64."""
    content = {"format": label, "version": _VERSION, **stated, **asdict(record)}
    content[vector] = to_base64(getattr(record, vector))
    return json.dumps(content, allow_nan=False)
