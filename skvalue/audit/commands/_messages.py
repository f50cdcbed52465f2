"""Messages of the library, with the options of a command for its parameters."""

import shlex

from ..._utils.messages import Message, joined
from ...exceptions import (
    ImpreciseValuesWarning,
    QuadraticCostWarning,
    RadiusWarning,
    SameRowsWarning,
    UncleanPointsWarning,
)
from ._options import READING

# Parameter -> the option that sets it, or what the command line calls it.
_OPTIONS = {
    **{parameter: option for option, parameter in READING.items()},
    "X_val": "--validation",
    "random_state": "--seed",
    "stratify": "--keep-classes",
    "target": "--target",
    "task": "--task",
    "groups": "--groups",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "ledger": "--ledger",
    "fdr": "--fdr",
    "drop": "--drop",
    "relation": "--relation",
    "n_draws": "--n-draws",
    "scoring": "--scoring",
    "empty_utility": "--empty-utility",
}
_NOUNS = {
    "X": "the rows",
    "y": "the target",
    "y_val": "the target of --validation",
    "estimator": "the model",
    "radius": "the radius",
    "cv": "the cross-validation",
}
# What can be done about a warning whose own advice has no options.
_ADVICE = {
    ImpreciseValuesWarning: "Value groups of rows, or use another --method.",
    QuadraticCostWarning: "Pass --validation to make it cheaper.",
    RadiusWarning: "Use another --method.",
    SameRowsWarning: "",
    UncleanPointsWarning: "Pass --validation with right labels.",
}


def in_words(text):
    """The text of an error, a warning or a doubt, in the words of the command line.

    >>> from skvalue._utils.messages import Message
    >>> dates = [("dates", "dmy"), ("dates", "mdy")]
    >>> text = Message("dates", "can be 3 or 4.", "Pass {} or {}.", dates, "'day'")
    >>> print(text, in_words(text), sep="\\n")
    'day' can be 3 or 4. Pass dates='dmy' or dates='mdy'.
    'day' can be 3 or 4. Pass --dates dmy or --dates mdy.
    """
    advice = None
    if isinstance(text, Exception):
        advice = _ADVICE.get(type(text))
        has_message = len(text.args) == 1 and isinstance(text.args[0], Message)
        text = text.args[0] if has_message else str(text)
    if isinstance(text, Message):
        settings = [_setting(*setting) for setting in text.settings]
        without_advice = text.in_words(_name, lambda *setting: None)
        if advice is not None and None in settings:
            text = joined(without_advice, advice)
        else:
            text = text.in_words(_name, _setting)
    return " ".join(text.split())


def _name(parameter):
    """What the command line calls a parameter."""
    return _OPTIONS.get(parameter) or _NOUNS.get(parameter, parameter)


def _setting(parameter, value):
    """An option and its value, or None if there is no such option."""
    option = _OPTIONS.get(parameter)
    if option is None or value is ... or value is True:
        return option
    if value is False:
        return f"--no-{option.removeprefix('--')}"
    return f"{option} {shlex.quote(str(value))}"
