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
    if by_auto and not choice.rule.is_capped:
        suffix = f" (drop={choice.rule.drop} chosen by 'auto')"
        reasons = [reason + suffix for reason in reasons]
    columns["reason"] = np.array(reasons, dtype=object)
    return Report(**columns)


def _reasons(choice, rows, y):
    """Reason of each row: the rank of its value, or the cap of its class."""
    if choice.rule.is_capped:
        return [_reason_of_cap(choice, row) for row in rows]

    # The ranks that the value of each player ties over.
    first_ranks = rankdata(choice.values, "min").astype(np.intp)
    last_ranks = rankdata(choice.values, "max").astype(np.intp)
    n_selected = choice.selected.sum()
    counted = f"{len(choice.values)} {choice.unit}"

    players = np.arange(len(choice.values))[choice.players][rows]
    reasons = []
    for row, player in zip(rows, players):
        rank = f"rank {first_ranks[player]}"
        if first_ranks[player] != last_ranks[player]:
            rank = f"ranks {first_ranks[player]} to {last_ranks[player]}, which tie,"
        reason = _reason(f"{rank} of {counted}", n_selected, choice.rule)
        if choice.rule.stratify:
            reason += f", {_cap_in_words(choice.evidence, row)}"
        reasons.append(reason)
    return reasons


def _reason_of_cap(choice, row):
    """Reason of a row for which another label is more probable."""
    evidence = choice.evidence
    label = evidence.classes[evidence.probabilities[row].argmax()]
    names = np.array([label]).tolist()
    largest = evidence.probabilities[row].max()
    return (
        f"{names[0]!r} has probability {largest:.2g}, the label "
        f"{evidence.given[row]:.2g}; {_cap_in_words(evidence, row)}"
    )


def _cap_in_words(evidence, row):
    """How many labels of the class of a row can be wrong."""
    code = evidence.codes[row]
    label = evidence.classes[[code]].tolist()[0]
    return (
        f"at most {evidence.caps[code]} of the {evidence.sizes[code]} labels {label!r} "
        "can be wrong"
    )


def _reason(place, n_selected, rule):
    if rule.drop == "negative":
        return f"value below zero: {place}"
    if rule.drop == "significant":
        return (
            "value below zero, significant at a false discovery rate of "
            f"{rule.fdr}: {place}"
        )
    return f"{place}; drop selects the lowest {n_selected}"
