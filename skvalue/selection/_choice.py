"""The rows that a rule selects by their values, and a fit without them."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from .._utils.checks import check_groups
from .._utils.sklearn import safe_indexing
from ._metadata import take_rows
from ._rules import drop_count, keep_every_class, lowest, rank_weights


@dataclass(frozen=True)
class Choice:
    """The players (rows or groups) that a rule selects, and those that are dropped."""

    values: np.ndarray  # of the players
    dropped: np.ndarray  # mask of the players that are dropped
    named: np.ndarray  # mask of the selected players; some stay if a class would vanish
    fraction: float  # of the players that the rule selects
    ordered: bool  # whether the selected players have the lowest values
    players: slice | np.ndarray  # index that maps an array over players to the rows
    reason: str  # why they are selected
    saved: list  # classes that would have lost all their rows

    @property
    def dropped_rows(self):
        """Mask of the rows that are dropped."""
        return self.dropped[self.players]


def select_rows(valuer, drop, y, *, classes, groups=None, fdr=0.1):
    """Choose the rows to drop by the values of a fitted valuer.

    If ``classes``, y contains classes, each of which keeps a row. The groups that the valuer was
    fitted with are dropped as a whole.
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
    fraction = drop if isinstance(drop, Real) and not isinstance(drop, Integral) else named.mean()
    if classes:
        dropped, saved = keep_every_class(dropped, values, np.asarray(y), codes)
    if dropped.all():
        raise ValueError(
            f"drop must leave at least one row. Got {drop!r}, which selects all {n} {what}."
        )
    ordered, players = drop != "significant", slice(None) if codes is None else codes
    return Choice(values, dropped, named, fraction, ordered, players, reason, saved)


def lower_weights(choice):
    """Weights of the rows in (0, 1], instead of dropping the rows of a choice."""
    first = None if choice.ordered else choice.named
    return rank_weights(choice.values, choice.fraction, first)[choice.players]


def fit_on_choice(estimator, X, y, params, choice, mode):
    """Fit the estimator on the kept rows, or on all rows with lower weights.

    ``params`` are the metadata of its fit; per-row ones are reduced to the kept rows.
    """
    if mode == "drop":
        kept = np.flatnonzero(~choice.dropped_rows)
        if len(kept) < len(choice.dropped_rows):
            params = take_rows(params, kept, len(choice.dropped_rows))
            X, y = safe_indexing(X, kept), safe_indexing(y, kept)
        return estimator.fit(X, y, **params)
    weights = lower_weights(choice)
    if params.get("sample_weight") is not None:
        weights = weights * np.asarray(params["sample_weight"])
    return estimator.fit(X, y, **{**params, "sample_weight": weights})
