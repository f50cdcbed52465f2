"""The statement of a privacy guarantee, the attribute `privacy_` of estimators."""

import textwrap
from dataclasses import dataclass

from .._utils.checks import check_delta, check_positive, check_relation
from .._utils.warned import warn
from ..exceptions import VoidGuaranteeWarning
from ._sheet import as_html, as_text
from .accounting import get_epsilon, pure_epsilon, simplify
from .events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
)
from .gdp import detection_ceiling

# Who is trusted, by notion.
NOTIONS = {
    "central": "a trusted curator sees the raw data, or what is computed from them, "
    "and releases only noisy results",
    "joint": "a trusted curator holds the raw data and shows each owner results that "
    "protect every other owner, even when the others pool what they see",
    "local": "no one; each party adds the noise before anything leaves it",
}

# What neighbouring data sets are, by relation.
_NEIGHBOURS = {
    "null": "had one {unit} been blanked out, so that it contributes nothing",
    "add_remove": "had one {unit} been added or removed",
    "replace": "had one {unit} been replaced by any other",
}

_LARGE_DELTA = 0.01  # where the number of records is private
_SEEDED = (
    "the noise was drawn from a seed (noise_random_state), so it can be reproduced and "
    "subtracted"
)


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy guarantee of a fit: what is protected, from whom, and what is not.

    `print` shows it as prose, `to_html` and a notebook as a sheet for readers who are
    not mathematicians. Use `make_report` to build one with epsilon computed from an
    event.

    Parameters
    ----------
    notion : {"central", "joint", "local"}
        Who is trusted: a curator, who releases only noisy results; a curator, who shows
        results to their owners; no one.
    unit : str
        Unit in which neighbouring data sets differ, such as "row".
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.
    epsilon, delta : float
        The guarantee for everything that was released.
    noise : str
        Description of the noise.
    protects : str
        What is protected.
    against : str
        From whom it is protected.
    not_protected : tuple of str
        What is not protected.
    assumptions : tuple of str
        Assumptions of the guarantee that the library cannot check.
    seeded : bool, default=False
        Whether the noise was drawn from a seed, which voids the guarantee.
    detection_ceiling : float, default=None
        Largest AUROC of detecting, from the releases of a unit, that this unit was
        replaced; None if unknown, see `skvalue.privacy.detection_ceiling`.
    void : str, default=""
        Any other reason why the guarantee is void, such as bounds computed from the
        data.

    See Also
    --------
    make_report : Build a report from an event.

    Examples
    --------
    >>> report = PrivacyReport(
    ...     notion="central",
    ...     unit="row",
    ...     relation="replace",
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     noise="Gaussian noise",
    ...     protects="the rows",
    ...     against="every reader",
    ... )
    >>> report.guarantee
    '(1, 1e-05)-differential privacy'
    """

    notion: str
    unit: str
    relation: str
    epsilon: float
    delta: float
    noise: str
    protects: str
    against: str
    not_protected: tuple = ()
    assumptions: tuple = ()
    seeded: bool = False
    detection_ceiling: float | None = None
    void: str = ""

    def __post_init__(self):
        if self.notion not in NOTIONS:
            raise ValueError(
                f"notion must be one of {', '.join(NOTIONS)}. Got {self.notion!r}."
            )
        check_relation(self.relation)
        if self.epsilon != 0:
            check_positive(self.epsilon, "epsilon")
        if self.delta != 0:
            check_delta(self.delta)
        for name in ("not_protected", "assumptions"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(
                    f"{name} must be a sequence of sentences. Got one string."
                )
            object.__setattr__(self, name, tuple(value))

    @property
    def guarantee(self):
        """The guarantee in words; None if it is void."""
        if self.seeded or self.void:
            return None
        size = f"{self.epsilon:.6g}"
        if self.delta:
            size += f", {self.delta:.6g}"
        kind = "" if self.notion == "central" else f"{self.notion} "
        return f"({size})-{kind}differential privacy"

    def to_text(self):
        """The guarantee in plain sentences under headings, without mathematics.

        Returns
        -------
        text : str
            What the results reveal, who sees what, what is not protected, what the best
            attack can do, and assumptions to check.
        """
        return as_text(self)

    def to_html(self):
        """Page with the sentences of `to_text`, and boxes to tick for the assumptions.

        Returns
        -------
        page : str
            HTML that loads nothing; a notebook shows the same.
        """
        return as_html(self)

    def _repr_html_(self):
        return as_html(self, page=False)

    def __str__(self):
        sentences = [
            self._first_sentence(),
            self._odds_sentence(),
            f"Who is trusted: {NOTIONS[self.notion]}.",
            f"Protected: {self.protects}, from {self.against}.",
            f"Noise: {self.noise}.",
        ]
        if self.not_protected:
            sentences.append(f"NOT protected: {'; '.join(self.not_protected)}.")
        if self.assumptions:
            assumptions = "; ".join(self.assumptions)
            sentences.append(f"Assumed, and not checked: {assumptions}.")
        if self.detection_ceiling is not None and self.guarantee is not None:
            sentences.append(
                f"A detector that uses only a {self.unit}'s own releases to tell "
                f"whether that {self.unit} was replaced cannot have an area under the "
                f"ROC curve above {self.detection_ceiling:.3f}."
            )
        return textwrap.fill(" ".join(sentences), width=88)

    def _first_sentence(self):
        """That there is a guarantee, or why there is none."""
        if self.guarantee is not None:
            return f"This release satisfies {self.guarantee}."
        reason = self.void
        condition = "Otherwise"
        if self.seeded:
            reason = _SEEDED
            condition = "Without the seed"
        return (
            f"NO PRIVACY IS GUARANTEED: {reason}. {condition} the guarantee would read "
            "as follows."
        )

    def _odds_sentence(self):
        """What epsilon and delta mean."""
        neighbours = _NEIGHBOURS[self.relation].format(unit=self.unit)
        sentence = (
            f"Compare the data with what they would be {neighbours}: any statement "
            f"about the released results is at most exp({self.epsilon:.6g}) times as "
            "probable under one as under the other"
        )
        if self.delta:
            sentence += f", plus {self.delta:.6g}"
        return f"{sentence}."


def describe_noise(event):
    """Description of the noise of an event.

    Parameters
    ----------
    event : event
        Any event of `skvalue.privacy`.

    Returns
    -------
    text : str
        The description, a clause.

    Raises
    ------
    TypeError
        If event is not an event.

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent
    >>> describe_noise(DiscreteGaussianEvent(scale=13.5, contributions=13))
    'discrete Gaussian noise of scale 13.5 on every count (at most 13 of them ...
    """
    match event:
        case ComposedEvent():
            return "; and ".join(map(describe_noise, event.events))
        case SelfComposedEvent():
            return f"{event.count} times {describe_noise(event.event)}"
        case PoissonSampledEvent():
            return (
                f"{describe_noise(event.event)}, on a secret sample that holds each "
                f"row with probability {event.probability:g}"
            )
        case OpaqueEvent():
            return (
                f"a mechanism known to be ({event.epsilon:g}, {event.delta:g})-private"
            )
        case DiscreteGaussianEvent():
            return (
                f"discrete Gaussian noise of scale {event.scale:.6g} on every count "
                f"(at most {event.contributions} of them change, each by at most "
                f"{event.step})"
            )
        case GaussianEvent():
            return _describe_continuous("Gaussian", "L2", event)
        case LaplaceEvent():
            return _describe_continuous("Laplace", "L1", event)
    raise TypeError(f"event must be an event of skvalue.privacy. Got {event!r}.")


def _describe_continuous(distribution, norm, event):
    return (
        f"continuous {distribution} noise of scale {event.scale:.6g} ({norm} "
        f"sensitivity {event.sensitivity:.6g}); numbers released with it are rounded "
        "to a millionth of the scale or less, since floating-point numbers have gaps"
    )


def warn_of_large_delta(delta, n):
    """Warn of a delta of at least one over the number of records.

    n : number of records; None if it is private, so that no warning may depend on it
    """
    if n is None:
        if delta >= _LARGE_DELTA:
            warn(
                f"delta should be well below 1/n. With delta={delta:g}, even a release "
                f"that reveals one of {1 / delta:.0f} records entirely would satisfy "
                "the guarantee. (The number of records is private, and not compared.)",
                VoidGuaranteeWarning,
            )
    elif delta * n >= 1:
        warn(
            f"delta should be well below 1/n. With delta={delta:g} and n={n}, even a "
            "release that reveals one of the n records entirely would satisfy the "
            "guarantee.",
            VoidGuaranteeWarning,
        )


def make_report(event, delta, *, noise_random_state=None, **facts):
    """Privacy report of a release, with epsilon computed from its event.

    Parameters
    ----------
    event : event
        Event of everything that was released, under the relation to report.
    delta : float
        In (0, 1), or 0 for Laplace noise and events whose delta is 0.
    noise_random_state : int, default=None
        Seed of the noise of the estimator; any value except None voids the guarantee.
    **facts : dict
        The `notion`, `unit`, `protects`, `against`, `not_protected` and `assumptions`
        of the `PrivacyReport`; the last two may be left out.

    Returns
    -------
    report : PrivacyReport
        The report, for the attribute `privacy_`.

    Raises
    ------
    ValueError
        If delta or the notion is outside its range, or epsilon is infinite at this
        delta.
    TypeError
        If event is not an event.

    Examples
    --------
    >>> from skvalue.privacy import calibrate_counts, make_report
    >>> report = make_report(
    ...     calibrate_counts(1.0, 1e-5, max_contributions=13),
    ...     1e-5,
    ...     notion="joint",
    ...     unit="row",
    ...     protects="whether a row is there and what it holds",
    ...     against="every other owner",
    ... )
    >>> round(report.epsilon, 6)
    1.0
    """
    epsilon = get_epsilon(event, delta) if delta != 0 else pure_epsilon(event)

    # Discrete noise does not follow the curve of one (epsilon, delta): at scale 0.2,
    # detection is better than this ceiling.
    ceiling = None
    is_gaussian = set(map(type, simplify(event))) == {GaussianEvent}
    if is_gaussian and epsilon:
        ceiling = detection_ceiling(epsilon, delta, event.relation)
    return PrivacyReport(
        relation=event.relation,
        epsilon=epsilon,
        delta=float(delta),
        noise=describe_noise(event),
        seeded=noise_random_state is not None,
        detection_ceiling=ceiling,
        **facts,
    )
