"""Valuers by their names on the command line, and the command that lists them."""

import inspect

from sklearn.linear_model import Ridge

import skvalue

from ...exceptions import ParameterError
from ._options import new_command

METHODS = {
    "knn": "KNNShapleyValuer",
    "tknn": "TKNNShapleyValuer",
    "data-oob": "DataOOBValuer",
    "data-shapley": "DataShapleyValuer",
    "data-banzhaf": "DataBanzhafValuer",
    "beta-shapley": "BetaShapleyValuer",
    "layered-shapley": "LayeredShapleyValuer",
    "leave-one-out": "LeaveOneOutValuer",
    "influence": "InfluenceValuer",
}
DETECTOR = "detector"  # which `clean` has as well
PRIVATE = {"tknn"}  # methods that take --epsilon


def make_valuer(name, *, random_state, task, **parameters):
    """The valuer of a method, with the random state and the task, if it takes them."""
    valuer = getattr(skvalue, METHODS.get(name, "LabelErrorDetector"))()
    accepted = valuer.get_params()
    for option in ("scoring", "empty_utility"):
        if option in parameters and option not in accepted:
            methods = [other for other in METHODS if _takes(other, option)]
            raise ParameterError(
                option,
                f"must be used with --method {', '.join(methods)}. Got {name}.",
            )
    if "random_state" in accepted:
        parameters["random_state"] = random_state
    if "task" in accepted:
        parameters["task"] = task
    elif task == "regression":
        parameters["estimator"] = Ridge()
    return valuer.set_params(**parameters)


def _takes(name, parameter):
    """Whether the valuer of a method has a parameter."""
    return parameter in getattr(skvalue, METHODS[name])().get_params()


def add_command(commands):
    """Add ``skvalue methods``."""
    about = "list the methods of `value` and `clean`"
    new_command(commands, "methods", about, run=_run)


def _run(options):
    width = max(map(len, METHODS))
    for name, valuer in METHODS.items():
        note = " Private with --epsilon." if name in PRIVATE else ""
        print(f"{name:<{width}}  {_summary(getattr(skvalue, valuer))}{note}")


def _summary(valuer):
    """The first paragraph of the documentation, in one line."""
    paragraph, _, _ = inspect.getdoc(valuer).partition("\n\n")
    return " ".join(paragraph.split())
