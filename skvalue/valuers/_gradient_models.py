"""Models of gradient methods: parameters that fit them, and units of public data."""

from typing import NamedTuple

import numpy as np

from ..derivatives import column_scales, target_scale


def check_model(valuer, tasks, **allowed):
    """Raise ValueError for parameters that a built-in model does not have.

    ``tasks`` has the task of each built-in model by its name, or None; ``allowed`` the
    values of parameters that built-in models take, other than loss and device. Of a
    torch module, layers with dropout are warned of.
    """
    if not isinstance(valuer.model, str):
        from ..derivatives import warn_of_dropout

        warn_of_dropout(valuer.model)
        return

    if valuer.model not in tasks:
        names = ", ".join(map(repr, tasks))
        raise ValueError(
            f"model must be {names} or a torch module. Got {valuer.model!r}."
        )
    task = tasks[valuer.model]
    if task is not None and valuer.task not in ("auto", task):
        raise ValueError(
            f"task must be 'auto' or {task!r} with model={valuer.model!r}. Got "
            f"{valuer.task!r}."
        )

    allowed = {"loss": (None,), "device": ("auto", "cpu"), **allowed}
    for name, choices in allowed.items():
        value = getattr(valuer, name)
        if value not in choices:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, choices))} with "
                f"model={valuer.model!r}: only torch modules have another. Got "
                f"{value!r}."
            )


class PublicUnits(NamedTuple):
    """Units of rows and targets that depend on public points alone.

    Parameters
    ----------
    column_means, column_scales : ndarray of shape (n_features,) or None
        Means of the columns, and their standard deviations times the square root of
        their number, so that a typical row has norm one. None leaves columns as they
        are.
    target_center, target_scale : float
        Mean and standard deviation of the targets.
    is_regression : bool
        Whether targets are numbers; labels have no units.
    """

    column_means: np.ndarray | None
    column_scales: np.ndarray | None
    target_center: float
    target_scale: float
    is_regression: bool

    def standardize(self, X, y):
        """Rows (n, d), and targets (n,) or None, in these units."""
        if self.column_means is not None:
            X = (X - self.column_means) / self.column_scales
        if self.is_regression and y is not None:
            y = (y - self.target_center) / self.target_scale
        return X, y


def public_units(points, n_classes, standardize):
    """The `PublicUnits` of validation points; of size one without ``standardize``."""
    is_regression = not n_classes
    if not standardize:
        return PublicUnits(None, None, 0.0, 1.0, is_regression)
    means, scales = column_scales(points.X)
    scales = scales * np.sqrt(len(scales))
    if not is_regression:
        return PublicUnits(means, scales, 0.0, 1.0, is_regression)
    scale = target_scale(points.y, points.weights)
    return PublicUnits(means, scales, points.prior, scale, is_regression)
