"""What a mediator sends to a party: its reward, with names."""

import json
from dataclasses import dataclass

from ..._utils.untrusted import read_record, refuse
from ..party import check_fingerprint, check_party
from .posterior import MAX_POSTERIOR_SIZE, PosteriorDraws

_FORMAT = "skvalue.collaborative.NamedReward"
_VERSION = 1
MAX_REWARD_SIZE = MAX_POSTERIOR_SIZE + 10_000  # characters


@dataclass(frozen=True)
class NamedReward:
    """A reward with the name of its party and the model that it belongs to.

    Parameters
    ----------
    party : str
        Name of the party.
    model : str
        Fingerprint of the `MediatorModel`, whose `transform` scales rows for the
        reward.
    posterior : PosteriorRegressor, PosteriorClassifier or PosteriorDraws
        The reward, an entry of `RhoShapleyReward.rewards_`.

    Raises
    ------
    ValueError
        If a field is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import GaussianMean, NamedReward, PosteriorDraws
    >>> posterior = PosteriorDraws(GaussianMean(), np.zeros((5, 1)))
    >>> text = NamedReward("clinic", "0" * 64, posterior).to_json()
    >>> NamedReward.from_json(text).posterior.samples_.shape
    (5, 1)
    """

    party: str
    model: str
    posterior: PosteriorDraws

    def __post_init__(self):
        check_party(self.party)
        check_fingerprint(self.model)
        if not isinstance(self.posterior, PosteriorDraws):
            rule = "a PosteriorDraws, as RhoShapleyReward makes it"
            refuse("posterior", rule, type(self.posterior).__name__)

    def to_json(self):
        """The reward and its names as text.

        Returns
        -------
        text : str
            JSON, which `from_json` reads.
        """
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "party": self.party,
            "model": self.model,
            "posterior": json.loads(self.posterior.to_json()),
        }
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """Read from text, which is not trusted; no code in it is run.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        named : NamedReward
            The reward and its names.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        record = read_record(text, _FORMAT, _VERSION, names, MAX_REWARD_SIZE)
        posterior = record["posterior"]
        if not isinstance(posterior, dict):
            refuse("posterior", "the record of a PosteriorDraws", posterior)
        posterior = PosteriorDraws.from_json(json.dumps(posterior))
        return cls(record["party"], record["model"], posterior)
