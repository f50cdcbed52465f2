"""Bound models as records for JSON, without the releases that they are bound to."""

import math
from inspect import signature

import numpy as np

from ..._utils.untrusted import choice, flag, integer, named_fields, number, refuse
from ..party import SUMS, NoisyStatistic, size_of_statistic
from .counts import BetaBernoulli, GammaPoisson
from .gaussian_mean import GaussianMean
from .linear import BayesianLinear
from .logistic import BayesianLogistic

_MODELS = {
    "BayesianLinear": BayesianLinear,
    "BayesianLogistic": BayesianLogistic,
    "GaussianMean": GaussianMean,
    "BetaBernoulli": BetaBernoulli,
    "GammaPoisson": GammaPoisson,
}
# Bounds of a release of each kind, of which predictions do not depend; that of the
# features, on which they do, comes first.
_BOUNDS = {
    "linear": (1.0,),
    "logistic": (),
    "gaussian": (-1.0, 1.0),
    "bernoulli": (0.0, 1.0),
    "poisson": (0.0, 2.0),
}
_MAX_FEATURES = 1000
_MAX_TEXT = 200  # characters


def model_record(model):
    """Class and parameters of a bound model, and the features of its releases."""
    name = type(model).__name__
    if _MODELS.get(name) is not type(model):
        raise TypeError(
            f"model must be one of {', '.join(_MODELS)}, to be written as JSON. Got "
            f"{name}."
        )
    parameters = model.get_params(deep=False)
    return {
        "name": name,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "n_features": getattr(model, "n_features_in_", 0),
        "intercept": bool(getattr(model, "intercept_", False)),
        "x_bound": float(getattr(model, "x_bound_", 1.0)),
        "x_centre": _plain(getattr(model, "x_centre_", ())),
        "x_scale": _plain(getattr(model, "x_scale_", ())),
    }


def stored_model(record):
    """A bound model from an untrusted record, as `model_record` makes it."""
    name, parameters, n_features, intercept, x_bound, x_centre, x_scale = named_fields(
        record,
        "model",
        name=lambda value, field: choice(value, field, _MODELS),
        parameters=_checked_parameters,
        n_features=lambda value, field: integer(value, field, 0, _MAX_FEATURES),
        intercept=flag,
        x_bound=lambda value, field: number(value, field, 1e-50, 1e50),
        x_centre=_checked_list,
        x_scale=_checked_list,
    )
    model_class = _MODELS[name]
    expected = set(signature(model_class).parameters)
    if set(parameters) != expected:
        refuse("parameters", f"those of {name}, {sorted(expected)}", list(parameters))
    model = model_class(**parameters)

    # A release of no rows has all that predictions need.
    kind = model._kind
    n_features = 0 if kind in SUMS else n_features
    bounds = _BOUNDS[kind]
    if kind not in SUMS:
        bounds = (x_bound, *bounds)
    empty = NoisyStatistic(
        kind=kind,
        n_samples=0,
        statistic=(0.0,) * size_of_statistic(kind, n_features, intercept),
        renyi_epsilon=None,
        renyi_order=2.0,
        bounds=bounds,
        n_features=n_features,
        intercept=intercept,
        classes=parameters["classes"] if kind == "logistic" else (),
        x_centre=x_centre,
        x_scale=x_scale,
    )
    return model.bind([empty])


def _plain(value):
    """A parameter as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _checked_list(value, field):
    """A list, whose content `NoisyStatistic` checks."""
    if not isinstance(value, list):
        refuse(field, "a list of numbers", value)
    return value


def _checked_parameters(parameters, field):
    """Parameters by name: texts, numbers, and sequences or matrices of them."""
    if not isinstance(parameters, dict):
        refuse(field, "a record of parameters", parameters)
    checked = {}
    for name, value in parameters.items():
        checked[name] = _checked_value(value, f"{field}[{name!r}]", depth=2)
    if isinstance(checked.get("classes"), list):
        checked["classes"] = tuple(checked["classes"])
    return checked


def _checked_value(value, field, depth):
    """None, a text, a number, or a sequence of them of at most this depth."""
    if isinstance(value, list) and depth > 0 and len(value) <= _MAX_FEATURES + 1:
        return [_checked_value(entry, field, depth - 1) for entry in value]
    is_text = isinstance(value, str) and len(value) <= _MAX_TEXT
    is_number = isinstance(value, int | float) and math.isfinite(value)
    if value is not None and not is_text and not is_number:
        refuse(field, "numbers or texts, in at most two dimensions", value)
    return value
