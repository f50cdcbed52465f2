"""The parameter `model`, the name of a built-in model or a torch module, and public units."""

import numpy as np

from ..derivatives import column_scales, target_scale


def check_model(model, built_in, task, **given):
    """Raise ValueError for parameters that a built-in model does not have; warn of dropout.

    ``built_in`` has the task of each name, or None; ``given`` the value of each other parameter,
    and those that built-in models take.
    """
    if not isinstance(model, str):
        from ..derivatives import warn_of_dropout

        warn_of_dropout(model)
        return
    if model not in built_in:
        names = ", ".join(map(repr, built_in))
        raise ValueError(f"model must be {names} or a torch module. Got {model!r}.")
    if built_in[model] is not None and task not in ("auto", built_in[model]):
        raise ValueError(
            f"task must be 'auto' or {built_in[model]!r} with model={model!r}. Got {task!r}."
        )
    for name, (value, only) in given.items():
        if value not in only:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, only))} with model={model!r}: only torch "
                f"modules have another. Got {value!r}."
            )


def public_units(points, n_classes, standardize):
    """Means and scales of the columns, and centre and scale of the targets, of public points.

    The scales of d columns are their standard deviations times sqrt(d).
    """
    if not standardize:
        return None, None, 0.0, 1.0
    mean, scale = column_scales(points.X)
    units = mean, scale * np.sqrt(len(scale))
    if n_classes:
        return *units, 0.0, 1.0
    return *units, points.prior, target_scale(points.y, points.weights)


def standardized(X, y, units, n_classes):
    """Rows, and targets of a regression, in public units; None leaves columns as they are."""
    mean, scale, centre, std = units
    if mean is not None:
        X = (X - mean) / scale
    return X, y if n_classes or y is None else (y - centre) / std
