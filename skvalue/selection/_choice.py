"""The rows that a rule selects by their values, and a fit without them."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .._utils.checks import check_groups
from .._utils.sklearn import safe_indexing
from ._metadata import take_rows
from ._rules import keep_every_class, lowest, quotas, rank_weights, tied_at_cut


@dataclass(frozen=True)
class Choice:
    """The players (rows or groups) that a rule selects, and those that are dropped."""

    values: np.ndarray  # of the players
    dropped: np.ndarray  # mask of the players that are dropped
    named: np.ndarray  # mask of the selected players; some stay if a class would vanish
    fractions: np.ndarray  # of the players of each stratum that the rule selects
    ordered: (
        bool  # whether the selected players have the lowest values of their stratum
    )
    players: slice | np.ndarray  # index that maps an array over players to the rows
    saved: list  # classes that would have lost all their rows
    strata: list  # masks of the players that are compared: all of them, or each class
    tied: tuple = (0, 0)  # players tied at the cuts, and how many of them are selected

    @property
    def dropped_rows(self):
        """Mask of the rows that are dropped."""
        return self.dropped[self.players]


def keep_all(n):
    """The choice of drop=0, for which no row is valued."""
    none = np.zeros(n, dtype=bool)
    return Choice(np.zeros(n), none, none, np.zeros(1), True, slice(None), [], [~none])


def is_zero(drop):
    """Whether `drop` is the number 0, and not a rule."""
    return not isinstance(drop, str) and drop == 0


def select_rows(valuer, drop, y, *, classes, groups=None, fdr=0.1, stratify=False):
    """Choose the rows to drop by the values of a fitted valuer.

    If ``classes``, y contains classes, each of which keeps a row. The groups that the
    valuer was fitted with are dropped as a whole. With ``stratify`` each class has a
    quota: a fraction is taken of every class, a count is divided in proportion to the
    classes, and a rule selects at most the same fraction of every class as of all rows.
    """
    values = np.asarray(valuer.values_, dtype=np.float64)
    names, codes = check_groups(groups, len(y))
    if len(values) != len(y if names is None else names):
        raise ValueError(
            f"valuer must have one value per {'row' if names is None else 'group'}. Got "
            f"{len(values)} values of {type(valuer).__name__}."
        )
    n, labels = len(values), np.asarray(y)
    strata = (
        [labels == label for label in np.unique(labels)]
        if stratify
        else [np.ones(n, bool)]
    )
    sizes = np.array([stratum.sum() for stratum in strata])
    eligible = np.ones(n, dtype=bool)
    if drop == "negative":
        eligible = values < 0
    elif drop == "significant":
        eligible = np.asarray(valuer.harmful(fdr=fdr), dtype=bool)
        if codes is not None and len(eligible) == len(codes):
            eligible = np.bincount(codes, weights=eligible) > 0
    rule = isinstance(drop, str)
    counts = eligible.sum() * sizes // n if rule else quotas(drop, sizes)
    named, ties = np.zeros(n, dtype=bool), []
    for stratum, count in zip(strata, counts):
        rows = np.flatnonzero(stratum & eligible)
        named[rows] = lowest(values[rows], count)
        ties.append(tied_at_cut(values[rows], named[rows]))
    if rule or isinstance(drop, Integral):
        fractions = np.array([named[stratum].mean() for stratum in strata])
    else:
        fractions = np.full(len(strata), float(drop))
    dropped, saved = named, []
    if classes:
        dropped, saved = keep_every_class(dropped, values, labels, codes)
    if dropped.all():
        raise ValueError(
            f"drop must leave at least one row. Got {drop!r}, which selects all {n} {what(groups)}."
        )
    ordered, players = drop != "significant", slice(None) if codes is None else codes
    tied = tuple(np.sum(ties, axis=0).tolist())
    return Choice(
        values, dropped, named, fractions, ordered, players, saved, strata, tied
    )


def what(groups):
    """What is counted in messages."""
    return "values" if groups is None else "values of groups"


def lower_weights(choice):
    """Weights of the rows in (0, 1], instead of dropping the rows of a choice."""
    weights = np.empty(len(choice.values))
    for stratum, fraction in zip(choice.strata, choice.fractions):
        first = None if choice.ordered else choice.named[stratum]
        weights[stratum] = rank_weights(choice.values[stratum], fraction, first)
    return weights[choice.players]


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
