"""The report of a filter: the rows that were dropped, and why."""

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import Bunch

_MAX_PRINTED_ROWS = 10


class Report(Bunch):
    """Columns of the rows that were dropped or have a lower weight; see `report_`."""

    def __repr__(self):
        names = list(self)
        n_rows = len(self.row)
        table = [names]
        for i in range(min(n_rows, _MAX_PRINTED_ROWS)):
            table.append([_format(self[name][i]) for name in names])

        widths = [max(map(len, column)) for column in zip(*table)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        plural = "" if n_rows == 1 else "s"
        lines.insert(0, f"{n_rows} row{plural}, lowest value first")
        if n_rows > _MAX_PRINTED_ROWS:
            lines.append(f"... and {n_rows - _MAX_PRINTED_ROWS} more")
        return "\n".join(lines)


def _format(entry):
    return f"{entry:.4g}" if isinstance(entry, float) else str(entry)


def make_report(choice, weights, y, groups, *, by_auto=False):
    """The rows of weight below one, lowest value first.

    With `by_auto` the reasons say that drop="auto" chose the fraction.
    """
    values = choice.row_values
    rows = np.flatnonzero(weights < 1)
    rows = rows[np.argsort(values[rows], kind="stable")]
    y = np.asarray(y)

    columns = {"row": rows, "y": y[rows]}
    if groups is not None:
        columns["group"] = np.asarray(groups)[rows]
    columns["value"] = values[rows]
    columns["weight"] = weights[rows]

    reasons = _reasons(choice, rows, y)
    if by_auto:
        suffix = f" (drop={choice.rule.drop} chosen by 'auto')"
        reasons = [reason + suffix for reason in reasons]
    columns["reason"] = np.array(reasons, dtype=object)
    return Report(**columns)


def _reasons(choice, rows, y):
    """Reason of each row: the rank of its value among those compared with it."""
    # For each player: the ranks that its value ties over, the number of players that
    # were selected of its stratum, and the words for the stratum.
    n_players = len(choice.values)
    first_ranks = np.empty(n_players, dtype=np.intp)
    last_ranks = np.empty(n_players, dtype=np.intp)
    n_selected = np.empty(n_players, dtype=np.intp)
    compared_with = np.empty(n_players, dtype=object)
    for stratum in choice.strata:
        values = choice.values[stratum]
        first_ranks[stratum] = rankdata(values, "min")
        last_ranks[stratum] = rankdata(values, "max")
        n_selected[stratum] = choice.selected[stratum].sum()
        compared_with[stratum] = f"{len(values)} {choice.unit}"
        if len(choice.strata) > 1:
            label = y[stratum][:1].tolist()[0]
            compared_with[stratum] = f"{len(values)} {choice.unit} of class {label!r}"

    players = np.arange(n_players)[choice.players][rows]
    reasons = []
    for player in players:
        rank = f"rank {first_ranks[player]}"
        if first_ranks[player] != last_ranks[player]:
            rank = f"ranks {first_ranks[player]} to {last_ranks[player]}, which tie,"
        place = f"{rank} of {compared_with[player]}"
        reasons.append(_reason(place, n_selected[player], choice.rule))
    return reasons


def _reason(place, n_selected, rule):
    if rule.drop == "negative":
        return f"value below zero: {place}"
    if rule.drop == "significant":
        return (
            "value below zero, significant at a false discovery rate of "
            f"{rule.fdr}: {place}"
        )
    return f"{place}; drop selects the lowest {n_selected}"
