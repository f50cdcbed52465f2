"""What a mediator tells the parties: values, errors and shares."""

import json
from dataclasses import asdict, dataclass

import numpy as np

from ..._utils.untrusted import (
    choice,
    integer,
    named_fields,
    number,
    read_record,
    refuse,
)
from ...rewards import shares
from ..party import check_fingerprint, check_party

_FORMAT = "skvalue.collaborative.PartyScores"
_VERSION = 1
MAX_SCORES_SIZE = 1_000_000  # characters
_MAX_PARTIES = 1000
_LARGEST = 1e100
_VALUES = ("predictive", "surprise")


@dataclass(frozen=True)
class PartyScores:
    """Values of parties with their errors, and the share of each in a payment.

    Parameters
    ----------
    model : str
        Fingerprint of the `MediatorModel`.
    value : {"predictive", "surprise"}
        What a value is: nats per validation point, or nats.
    semivalue : str
        The semivalue of the parties.
    n_validation : int
        Number of validation points; 0 for "surprise".
    grand_value : float
        Value of all parties together.
    parties : sequence of dict
        For each party `party`, `value`, `error`, `validation_error`,
        `standalone_value`, `n_samples` and `share`, see
        `skvalue.rewards.shares`.

    Raises
    ------
    ValueError
        If a field is invalid.

    Examples
    --------
    >>> from skvalue import BayesianSurpriseScorer
    >>> from skvalue.collaborative import GaussianMean, NoisyStatistic, PartyScores
    >>> release = NoisyStatistic("gaussian", 100, (40.0,), 0.5, 2.0, (-1.0, 1.0))
    >>> scorer = BayesianSurpriseScorer(GaussianMean()).fit({"a": release})
    >>> scores = PartyScores.from_scorer(scorer, "0" * 64)
    >>> scores.parties[0]["share"]
    1.0
    """

    model: str
    value: str
    semivalue: str
    n_validation: int
    grand_value: float
    parties: tuple

    def __post_init__(self):
        check_fingerprint(self.model)
        choice(self.value, "value", _VALUES)
        if not isinstance(self.semivalue, str) or len(self.semivalue) > 100:
            refuse("semivalue", "a name of at most 100 characters", self.semivalue)
        integer(self.n_validation, "n_validation", 0, 10**12)
        number(self.grand_value, "grand_value", -_LARGEST, _LARGEST)
        parties = self.parties
        is_sequence = isinstance(parties, list | tuple)
        if not is_sequence or not 1 <= len(parties) <= _MAX_PARTIES:
            refuse("parties", f"a sequence of 1 to {_MAX_PARTIES} parties", parties)
        object.__setattr__(self, "parties", tuple(map(_checked_party, parties)))
        names = [party["party"] for party in self.parties]
        if len(set(names)) < len(names):
            refuse("parties", "parties of different names", sorted(names))

    @classmethod
    def from_scorer(cls, scorer, model, n_validation=0):
        """The scores of a fitted scorer.

        Parameters
        ----------
        scorer : BayesianSurpriseScorer or PredictiveValueScorer
            The fitted scorer.
        model : str
            Fingerprint of the `MediatorModel`.
        n_validation : int, default=0
            Number of validation points.

        Returns
        -------
        scores : PartyScores
            The scores, in the order of the parties.

        Raises
        ------
        ValueError
            If the scorer has no `values_error_`, since nothing is known of the errors
            that noise causes, or a single validation point.
        """
        if not hasattr(scorer, "values_error_"):
            raise ValueError(
                "scorer must state the errors that the noise of the releases causes, "
                "as scorers do with a model that takes noise into account and has "
                f"exact_posteriors. Got {type(scorer.model).__name__}."
            )
        values = scorer.values_
        validation_errors = getattr(scorer, "validation_error_", None)
        is_predictive = validation_errors is not None
        if is_predictive and np.isnan(validation_errors).any():
            raise ValueError(
                "scorer must have at least 2 validation points, whose errors scores "
                "state. Got one."
            )
        if not is_predictive:
            validation_errors = np.zeros(len(values))
        shared = np.zeros(len(values))
        if values.max() > 0:
            shared = np.minimum(shares(values, budget=1.0), 1.0)
        parties = []
        for i, name in enumerate(scorer.parties_):
            parties.append(
                {
                    "party": str(name),
                    "value": float(values[i]),
                    "error": float(scorer.values_error_[i]),
                    "validation_error": float(validation_errors[i]),
                    "standalone_value": float(scorer.standalone_values_[i]),
                    "n_samples": scorer.releases_[name].n_samples,
                    "share": float(shared[i]),
                }
            )
        return cls(
            model=model,
            value="predictive" if is_predictive else "surprise",
            semivalue=str(scorer.semivalue),
            n_validation=n_validation,
            grand_value=scorer.grand_value_,
            parties=tuple(parties),
        )

    def to_json(self):
        """The scores as text.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an equal object.
        """
        record = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        return json.dumps(record, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """Read from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        scores : PartyScores
            The scores.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        return cls(**read_record(text, _FORMAT, _VERSION, names, MAX_SCORES_SIZE))


def _checked_party(record):
    """The record of a party, of checked fields."""

    def finite(value, field):
        return number(value, field, -_LARGEST, _LARGEST)

    def error(value, field):
        return number(value, field, 0, _LARGEST, strict=False)

    def share(value, field):
        return number(value, field, 0, 1, strict=False)

    checks = {
        "party": lambda name, _: check_party(name),
        "value": finite,
        "error": error,
        "validation_error": error,
        "standalone_value": finite,
        "n_samples": lambda value, field: integer(value, field, 0, 10**12),
        "share": share,
    }
    return dict(zip(checks, named_fields(record, "parties", **checks)))
