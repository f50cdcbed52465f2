"""The rows that a rule selects by their values, and a fit without them."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .._utils.checks import check_groups
from .._utils.sklearn import safe_indexing
from ._metadata import take_rows
from ._rules import (
    keep_every_class,
    lowest_mask,
    quotas,
    rank_weights,
    ties_at_cut,
)


@dataclass(frozen=True)
class Rule:
    """How rows are selected by their values.

    If `has_classes`, y holds classes, each of which keeps a row. With `stratify` each
    class has a quota: a fraction is taken of every class, a count is divided in
    proportion to the classes, and a rule by name selects at most the same fraction of
    every class as of all rows.
    """

    drop: float | str
    has_classes: bool = False
    fdr: float = 0.1
    stratify: bool = False

    @property
    def is_zero(self):
        """Whether `drop` is the number 0, and not a rule by name."""
        return is_zero(self.drop)


@dataclass(frozen=True, eq=False)
class Choice:
    """The players (rows or groups) that a rule selects, and those that are dropped.

    Parameters
    ----------
    rule : Rule
        The rule.
    values : ndarray of shape (n_players,)
        Values of the players.
    players : slice or ndarray of shape (n_rows,)
        Index that maps an array over players to the rows.
    selected : ndarray of bool of shape (n_players,)
        The players that the rule selects.
    dropped : ndarray of bool of shape (n_players,)
        The players that are dropped: a selected one stays if a class would vanish.
    emptied_classes : list
        Classes that would have lost all their rows.
    strata : list of ndarray of bool of shape (n_players,)
        The players that are compared with each other: all of them, or each class.
    fractions : ndarray of shape (n_strata,)
        Fraction of the players of each stratum that the rule selects.
    n_tied, n_tied_selected : int
        Number of players that tie where the rule cuts, and of the selected ones.
    """

    rule: Rule
    values: np.ndarray
    players: slice | np.ndarray
    selected: np.ndarray
    dropped: np.ndarray
    emptied_classes: list
    strata: list
    fractions: np.ndarray
    n_tied: int
    n_tied_selected: int

    @property
    def row_values(self):
        """Value of every row; with groups, the value of its group."""
        return self.values[self.players]

    @property
    def dropped_rows(self):
        """Mask of the rows that are dropped."""
        return self.dropped[self.players]

    @property
    def has_groups(self):
        """Whether the players are groups."""
        return not isinstance(self.players, slice)

    @property
    def unit(self):
        """What is counted, in messages."""
        return "values of groups" if self.has_groups else "values"


def is_zero(drop):
    """Whether `drop` is the number 0, and not a rule by name."""
    return not isinstance(drop, str) and drop == 0


def keep_all(n_rows, drop):
    """The choice of drop=0, for which no row is valued."""
    none = np.zeros(n_rows, dtype=bool)
    return Choice(
        rule=Rule(drop),
        values=np.zeros(n_rows),
        players=slice(None),
        selected=none,
        dropped=none,
        emptied_classes=[],
        strata=[~none],
        fractions=np.zeros(1),
        n_tied=0,
        n_tied_selected=0,
    )


def select_rows(valuer, y, groups, rule):
    """Choose the rows to drop by the values of a fitted valuer.

    The groups that the valuer was fitted with are dropped as a whole.
    """
    values = np.asarray(valuer.values_, dtype=np.float64)
    labels = np.asarray(y)
    group_names, group_codes = check_groups(groups, len(y))
    _check_n_values(valuer, len(values), len(y), group_names)

    n_players = len(values)
    strata = [np.ones(n_players, dtype=bool)]
    if rule.stratify:
        strata = [labels == label for label in np.unique(labels)]

    # In each stratum, the lowest of the values that the rule may select.
    eligible = _eligible_players(valuer, values, group_codes, rule)
    selected = np.zeros(n_players, dtype=bool)
    n_tied = 0
    n_tied_selected = 0
    for stratum, quota in zip(strata, _quotas(eligible, strata, rule.drop)):
        rows = np.flatnonzero(stratum & eligible)
        selected[rows] = lowest_mask(values[rows], quota)
        n_equal, n_equal_selected = ties_at_cut(values[rows], selected[rows])
        n_tied += n_equal
        n_tied_selected += n_equal_selected

    dropped = selected
    emptied_classes = []
    if rule.has_classes:
        dropped, emptied_classes = keep_every_class(
            selected, values, labels, group_codes
        )
    choice = Choice(
        rule=rule,
        values=values,
        players=slice(None) if group_codes is None else group_codes,
        selected=selected,
        dropped=dropped,
        emptied_classes=emptied_classes,
        strata=strata,
        fractions=_selected_fractions(selected, strata, rule.drop),
        n_tied=n_tied,
        n_tied_selected=n_tied_selected,
    )
    if dropped.all():
        raise ValueError(
            f"drop must leave at least one row. Got {rule.drop!r}, which selects all "
            f"{n_players} {choice.unit}."
        )
    return choice


def _check_n_values(valuer, n_values, n_rows, group_names):
    unit = "row"
    n_players = n_rows
    if group_names is not None:
        unit = "group"
        n_players = len(group_names)
    if n_values != n_players:
        raise ValueError(
            f"valuer must have one value per {unit}. Got {n_values} values of "
            f"{type(valuer).__name__}."
        )


def _eligible_players(valuer, values, group_codes, rule):
    """Mask of the players that the rule may select."""
    if rule.drop == "negative":
        return values < 0
    if rule.drop != "significant":
        return np.ones(len(values), dtype=bool)

    eligible = np.asarray(valuer.harmful(fdr=rule.fdr), dtype=bool)
    if group_codes is not None and len(eligible) == len(group_codes):
        # A group is harmful if one of its rows is.
        eligible = np.bincount(group_codes, weights=eligible) > 0
    return eligible


def _quotas(eligible, strata, drop):
    """Numbers of players to select in each stratum."""
    sizes = np.array([stratum.sum() for stratum in strata])
    if isinstance(drop, str):
        # At most the fraction of all players that are eligible, of every stratum.
        return eligible.sum() * sizes // len(eligible)
    return quotas(drop, sizes)


def _selected_fractions(selected, strata, drop):
    """Fraction that is selected of each stratum: `drop`, if that is a fraction."""
    if isinstance(drop, (str, Integral)):
        return np.array([selected[stratum].mean() for stratum in strata])
    return np.full(len(strata), float(drop))


def row_weights(choice, mode):
    """Weights of the rows: 0 for dropped ones, or lower ones with mode="weight"."""
    if mode == "drop":
        return 1.0 - choice.dropped_rows

    weights = np.empty(len(choice.values))
    for stratum, fraction in zip(choice.strata, choice.fractions):
        ranked_first = None
        if choice.rule.drop == "significant":
            # Significant values need not be the lowest ones.
            ranked_first = choice.selected[stratum]
        weights[stratum] = rank_weights(choice.values[stratum], fraction, ranked_first)
    return weights[choice.players]


def fit_on_choice(estimator, data, choice, mode):
    """Fit the estimator on the kept rows, or on all rows with lower weights."""
    X = data.X
    y = data.y
    params = data.estimator_params
    n_rows = len(choice.dropped_rows)
    if mode == "drop":
        kept = np.flatnonzero(~choice.dropped_rows)
        if len(kept) < n_rows:
            params = take_rows(params, kept, n_rows)
            X = safe_indexing(X, kept)
            y = safe_indexing(y, kept)
        return estimator.fit(X, y, **params)

    weights = row_weights(choice, mode)
    if params.get("sample_weight") is not None:
        weights = weights * np.asarray(params["sample_weight"])
    return estimator.fit(X, y, **{**params, "sample_weight": weights})
