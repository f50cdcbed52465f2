"""From rows to the choice of those that go: what all filters do."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from .._utils.checks import check_groups
from ..valuers import KNNShapleyValuer
from ._drop import drop_count, keep_every_class, lowest, rank_weights

__all__ = ["Choice", "check_request", "fit_valuer", "fresh_valuer", "lower_weights", "select_rows"]


@dataclass(frozen=True)
class Choice:
    """The players (rows, or groups of them) that a rule names, and those that go.

    Attributes
    ----------
    values : ndarray of shape (n_players,)
        Their values.
    dropped, named : ndarrays of shape (n_players,)
        Masks of those that go, and of those that the rule names: more, if a class would vanish.
    share : float
        Fraction that the rule names.
    ordered : bool
        Whether those named are the lowest.
    players : slice or ndarray of shape (n_samples,)
        Index that makes an array of players one of rows.
    reason : str
        Why they go.
    saved : list
        Classes that the rule would have emptied.
    """

    values: np.ndarray
    dropped: np.ndarray
    named: np.ndarray
    share: float
    ordered: bool
    players: slice | np.ndarray
    reason: str
    saved: list

    @property
    def dropped_rows(self):
        """Mask of the rows that go."""
        return self.dropped[self.players]


def fresh_valuer(valuer, task="auto"):
    """An unfitted copy of the valuer; None is `KNNShapleyValuer`.

    A valuer whose own ``task`` is "auto" gets ``task``, so that numbers that a regressor predicts
    are not taken for classes.
    """
    valuer = KNNShapleyValuer() if valuer is None else clone(valuer)
    if task != "auto" and valuer.get_params(deep=False).get("task") == "auto":
        valuer.set_params(task=task)
    return valuer


def check_request(valuer, drop, memory, X_val, groups, n_rows):
    """Refuse, before any work, what cannot be done; warn of a private valuer.

    Raises
    ------
    ValueError
        If drop is a number that leaves nothing, drop="significant" comes without X_val or with a
        valuer that has no `harmful`, or a private valuer with drop="auto", drop="significant" or
        memory.
    """
    name = type(valuer).__name__
    if isinstance(drop, Integral):
        names, _ = check_groups(groups, n_rows)
        n, what = (n_rows, "n_samples") if names is None else (len(names), "n_groups")
        if drop >= n:
            raise ValueError(f"drop must be less than {what}={n}. Got {drop}.")
    if drop == "significant":
        if not hasattr(valuer, "harmful"):
            raise ValueError(
                f"drop='significant' needs a valuer that has the method harmful. Got {name}."
            )
        if X_val is None:
            raise ValueError(
                "drop='significant' needs X_val and y_val: it asks whether a value would be below "
                "zero on fresh validation points. Got no X_val."
            )
    epsilon = getattr(valuer, "epsilon", None)
    if epsilon is None:
        return
    if drop == "auto":
        raise ValueError(
            "drop must not be 'auto' with a private valuer: every inner fold would be a release of "
            f"its own. Got {name} with epsilon={epsilon}."
        )
    if drop == "significant":
        raise ValueError(
            "drop must not be 'significant' with a private valuer: the test needs the rows, which "
            f"a private fit does not keep. Got {name} with epsilon={epsilon}."
        )
    if memory is not None:
        raise ValueError(
            "memory must be None with a private valuer: its values are not to be stored. Got "
            f"{name} with epsilon={epsilon}."
        )
    warnings.warn(
        f"The rows are chosen by private values ({name} with epsilon={epsilon}), but a model "
        "trained on them is not private: it reads the rows themselves.",
        UserWarning,
        stacklevel=5,
    )


def _fit(valuer, X, y, params):
    return valuer.fit(X, y, **params)


def fit_valuer(valuer, X, y, params, memory=None):
    """Fit the valuer, or load the one that was fitted on the same rows before.

    Parameters
    ----------
    valuer : estimator
        An unfitted valuer.
    X, y : array-likes
        The rows.
    params : dict
        X_val, y_val, groups and other metadata of its fit.
    memory : str, object with the joblib.Memory interface or None
        Where fitted valuers are kept.

    Returns
    -------
    valuer : estimator
        The fitted valuer.

    Raises
    ------
    ValueError
        If what was fitted has no `values_`.
    """
    fitted = check_memory(memory).cache(_fit)(valuer, X, y, params)
    if not hasattr(fitted, "values_"):
        raise ValueError(
            f"valuer must have values_ after fit, as valuers have. Got {type(valuer).__name__}."
        )
    return fitted


def select_rows(valuer, drop, y, *, classes, groups=None, fdr=0.1):
    """Choose the rows that go.

    Parameters
    ----------
    valuer : estimator
        A fitted valuer.
    drop : float, int, "negative" or "significant"
        The rule.
    y : array-like of shape (n_samples,)
        Labels or targets.
    classes : bool
        Whether y holds classes, none of which may vanish.
    groups : array-like of shape (n_samples,), default=None
        Groups that the valuer was fitted with: they go as wholes.
    fdr : float, default=0.1
        Of drop="significant".

    Returns
    -------
    choice : Choice
        The values and what goes.

    Raises
    ------
    ValueError
        If no row would stay.
    """
    values = np.asarray(valuer.values_, dtype=np.float64)
    names, codes = check_groups(groups, len(y))
    n = len(values)
    what = "values" if names is None else "values of groups"
    if drop == "negative":
        dropped, reason = values < 0, "value below zero"
    elif drop == "significant":
        dropped = np.asarray(valuer.harmful(fdr=fdr), dtype=bool)
        if codes is not None and len(dropped) == len(codes):
            dropped = np.bincount(codes, weights=dropped) > 0
        reason = f"value below zero, significant at a false discovery rate of {fdr}"
    else:
        count = drop_count(drop, n)
        dropped, reason = lowest(values, count), f"among the {count} lowest of {n} {what}"
    named, saved = dropped, []
    share = drop if isinstance(drop, Real) and not isinstance(drop, Integral) else named.mean()
    if classes:
        dropped, saved = keep_every_class(dropped, values, np.asarray(y), codes)
    if dropped.all():
        raise ValueError(
            f"drop must leave at least one row. Got {drop!r}, which names all {n} {what}."
        )
    return Choice(
        values=values,
        dropped=dropped,
        named=named,
        share=share,
        ordered=drop != "significant",
        players=slice(None) if codes is None else codes,
        reason=reason,
        saved=saved,
    )


def lower_weights(choice):
    """Weights of the rows, in (0, 1], in place of dropping the ones of a choice."""
    first = None if choice.ordered else choice.named
    return rank_weights(choice.values, choice.share, first)[choice.players]
