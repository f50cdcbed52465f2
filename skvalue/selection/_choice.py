"""The rows that a rule selects by their values, and a fit without them."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .._utils.checks import check_groups
from .._utils.sklearn import safe_indexing
from ..exceptions import ParameterError
from ._caps import Evidence
from ._rules import keep_every_class, lowest_mask, n_selected, rank_weights, ties_at_cut


@dataclass(frozen=True)
class Rule:
    """How rows are selected by their values.

    If `has_classes`, y holds classes, each of which keeps a row. With `stratify`, or
    `is_capped`, no class loses more rows than can be wrong in it; the latter is
    drop="auto" with a detector of wrong labels, which selects the rows for which
    another label is more probable.
    """

    drop: float | str
    has_classes: bool = False
    fdr: float = 0.1
    stratify: bool = False
    is_capped: bool = False

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
    fraction : float
        Fraction of the players that the rule selects.
    evidence : Evidence or None
        What says how many labels of a class can be wrong, if that caps its losses.
    n_tied, n_tied_selected : int
        Number of players that tie where the rule cuts, and of the selected ones.
    """

    rule: Rule
    values: np.ndarray
    players: slice | np.ndarray
    selected: np.ndarray
    dropped: np.ndarray
    emptied_classes: list
    fraction: float
    evidence: Evidence | None
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
        fraction=0.0,
        evidence=None,
        n_tied=0,
        n_tied_selected=0,
    )


def select_rows(valuer, y, groups, rule, evidence=None):
    """Choose the rows to drop by the values of a fitted valuer.

    The groups that the valuer was fitted with are dropped as a whole, unless the rule
    is capped: a label is wrong or right for itself. The `evidence` is that of the caps.
    """
    values = np.asarray(valuer.values_, dtype=np.float64)
    labels = np.asarray(y)
    group_names, group_codes = check_groups(groups, len(y))
    if rule.is_capped:
        group_names = None
        group_codes = None
    _check_n_values(valuer, len(values), len(y), group_names)

    # The lowest of the values that the rule may select.
    n_players = len(values)
    eligible = _eligible_players(valuer, values, group_codes, rule, evidence)
    rows = np.flatnonzero(eligible)
    count = len(rows)
    if not isinstance(rule.drop, str):
        count = n_selected(rule.drop, n_players)
    selected = np.zeros(n_players, dtype=bool)
    selected[rows] = lowest_mask(values[rows], count)
    n_tied, n_tied_selected = ties_at_cut(values[rows], selected[rows])
    if rule.stratify:
        selected = evidence.within_caps(selected, values)

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
        fraction=_selected_fraction(selected, rule),
        evidence=evidence,
        n_tied=n_tied,
        n_tied_selected=n_tied_selected,
    )
    if dropped.all():
        raise ParameterError(
            "drop",
            f"must leave at least one row. Got {rule.drop!r}, which selects all "
            f"{n_players} {choice.unit}.",
        )
    return choice


def _check_n_values(valuer, n_values, n_rows, group_names):
    unit = "row"
    n_players = n_rows
    if group_names is not None:
        unit = "group"
        n_players = len(group_names)
    if n_values != n_players:
        raise ParameterError(
            "valuer",
            f"must have one value per {unit}. Got {n_values} values of "
            f"{type(valuer).__name__}.",
        )


def _eligible_players(valuer, values, group_codes, rule, evidence):
    """Mask of the players that the rule may select."""
    if rule.is_capped:
        eligible = np.zeros(len(values), dtype=bool)
        eligible[evidence.capped_rows()] = True
        return eligible
    if rule.drop == "negative":
        return values < 0
    if rule.drop != "significant":
        return np.ones(len(values), dtype=bool)

    eligible = np.asarray(valuer.harmful(fdr=rule.fdr), dtype=bool)
    if group_codes is not None and len(eligible) == len(group_codes):
        # A group is harmful if one of its rows is.
        eligible = np.bincount(group_codes, weights=eligible) > 0
    return eligible


def _selected_fraction(selected, rule):
    """Fraction of the players that is selected; of a given fraction, that one."""
    if rule.stratify or isinstance(rule.drop, (str, Integral)):
        return selected.mean()
    return float(rule.drop)


def row_weights(choice, mode):
    """Weights of the rows: 0 for dropped ones, or lower ones with mode="weight"."""
    if mode == "drop":
        return 1.0 - choice.dropped_rows

    ranked_first = None
    if choice.rule.drop == "significant" or choice.evidence is not None:
        # The selected values need not be the lowest ones.
        ranked_first = choice.selected
    weights = rank_weights(choice.values, choice.fraction, ranked_first)
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
            params = data.take_estimator_params(kept)
            X = safe_indexing(X, kept)
            y = safe_indexing(y, kept)
        return estimator.fit(X, y, **params)

    weights = row_weights(choice, mode)
    if params.get("sample_weight") is not None:
        weights = weights * np.asarray(params["sample_weight"])
    return estimator.fit(X, y, **{**params, "sample_weight": weights})
