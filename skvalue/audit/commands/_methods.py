"""Valuers by the names that they have on the command line, and the command that lists
them."""

import inspect

from sklearn.linear_model import Ridge

import skvalue

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


def make_valuer(name, *, random_state=None, **parameters):
    """The valuer of a method, which gets the random state, and the task, if it has
    one."""
    valuer = getattr(skvalue, METHODS.get(name, "LabelErrorDetector"))()
    if "random_state" in valuer.get_params():
        parameters["random_state"] = random_state
    if (
        "task" not in valuer.get_params()
        and parameters.pop("task", None) == "regression"
    ):
        parameters["estimator"] = Ridge()
    return valuer.set_params(**parameters)


def add_command(commands):
    """Add ``skvalue methods``."""
    new_command(commands, "methods", "list the methods of `value` and `clean`", _run)


def _run(options):
    width = max(map(len, METHODS))
    for name, valuer in METHODS.items():
        summary = inspect.getdoc(getattr(skvalue, valuer)).splitlines()[0]
        print(
            f"{name:<{width}}  {summary}"
            + " Private with --epsilon." * (name in PRIVATE)
        )
