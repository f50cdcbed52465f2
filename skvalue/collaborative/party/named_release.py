"""What a party sends to a mediator: its release, with names."""

import json
from dataclasses import asdict, dataclass

from ..._utils.untrusted import fingerprint, party_name, read_record, refuse
from .noisy_statistic import NoisyStatistic

_FORMAT = "skvalue.collaborative.NamedRelease"
_VERSION = 1
MAX_RELEASE_SIZE = 50_000_000  # characters
_MAX_COLUMN = 200
_MAX_COLUMNS = 1001


@dataclass(frozen=True)
class NamedRelease:
    """A release with the name of its party and the model that it was made for.

    Parameters
    ----------
    party : str
        Name of the party: letters, digits, spaces, ".", "-" and "_".
    model : str
        Fingerprint of the `MediatorModel`.
    columns : sequence of str
        Names of the features and, last, the target, in the order of the statistic.
    release : NoisyStatistic
        The release.

    Raises
    ------
    ValueError
        If a field is invalid.

    See Also
    --------
    MediatorModel : Checks it, with `check_release`.

    Examples
    --------
    >>> from skvalue.collaborative import NamedRelease, NoisyStatistic
    >>> release = NoisyStatistic("logistic", 9, (0.0, 3.0), None, 2.0, (1.0,), 1)
    >>> named = NamedRelease("clinic", "0" * 64, ["dose", "cured"], release)
    >>> NamedRelease.from_json(named.to_json()) == named
    True
    """

    party: str
    model: str
    columns: tuple
    release: NoisyStatistic

    def __post_init__(self):
        object.__setattr__(self, "party", check_party(self.party))
        object.__setattr__(self, "model", check_fingerprint(self.model))
        if not isinstance(self.release, NoisyStatistic):
            refuse("release", "a NoisyStatistic", type(self.release).__name__)
        object.__setattr__(self, "columns", _checked_columns(self.columns))
        n_columns = self.release.n_features + 1
        if len(self.columns) != n_columns:
            refuse("columns", f"{n_columns} names, as many as the release has", self)

    def to_json(self):
        """The release and its names as text.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an equal object.
        """
        record = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        record["release"] = json.loads(self.release.to_json())
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """Read from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        named : NamedRelease
            The release and its names.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        record = read_record(text, _FORMAT, _VERSION, names, MAX_RELEASE_SIZE)
        # All fields of the statistic are checked by its own reader.
        if not isinstance(record["release"], dict):
            refuse("release", "the record of a NoisyStatistic", record["release"])
        release = NoisyStatistic.from_json(json.dumps(record["release"]))
        return cls(**{**record, "release": release})


def check_party(name):
    """The name of a party, of which the name of a file can be made."""
    return party_name(name, "party")


def check_fingerprint(text):
    """The fingerprint of a model."""
    return fingerprint(text, "model")


def _checked_columns(columns):
    """Names of columns as a tuple."""
    is_sequence = isinstance(columns, list | tuple)
    if not is_sequence or not 1 <= len(columns) <= _MAX_COLUMNS:
        refuse("columns", f"a sequence of at most {_MAX_COLUMNS} names", columns)
    for name in columns:
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_COLUMN:
            refuse("columns", f"names of 1 to {_MAX_COLUMN} characters", name)
    return tuple(columns)
