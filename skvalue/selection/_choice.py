"""The rows that a rule names by their values, and the fit of an estimator without them."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from .._utils.checks import check_groups
from .._utils.sklearn import safe_indexing
from ._metadata import take_rows
from ._rules import drop_count, keep_every_class, lowest, rank_weights


@dataclass(frozen=True)
class Choice:
    """The players (rows, or groups of them) that a rule names, and those that go."""

    values: np.ndarray  # of the players
    dropped: np.ndarray  # mask of those that go
    named: np.ndarray  # mask of those that the rule names: more, if a class would vanish
    fraction: float  # that the rule names
    ordered: bool  # whether those named are the lowest
    players: slice | np.ndarray  # index that makes an array of players one of rows
    reason: str  # why they go
    saved: list  # classes that the rule would have emptied

    @property
    def dropped_rows(self):
        """Mask of the rows that go."""
        return self.dropped[self.players]


def select_rows(valuer, drop, y, *, classes, groups=None, fdr=0.1):
    """Choose the rows that go by the values of a fitted valuer.

    ``classes`` says whether y holds classes, none of which may vanish. Groups that the valuer was
    fitted with go as wholes.
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
            f"drop must leave at least one row. Got {drop!r}, which names all {n} {what}."
        )
    ordered, players = drop != "significant", slice(None) if codes is None else codes
    return Choice(values, dropped, named, fraction, ordered, players, reason, saved)


def lower_weights(choice):
    """Weights of the rows, in (0, 1], in place of dropping the ones of a choice."""
    first = None if choice.ordered else choice.named
    return rank_weights(choice.values, choice.fraction, first)[choice.players]


def fit_on_choice(estimator, X, y, params, choice, mode):
    """Fit the estimator on the rows that stay, or on all rows with lower weights.

    ``params`` are the metadata of its fit, which are cut with the rows.
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
