"""The report of a filter, and what it warns about."""

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import Bunch

from ._choice import is_zero, what

_SHOWN = 10  # rows in the representation of a report
_ARBITRARY = (
    0.05  # fraction of the selected rows chosen by position alone that is tolerated
)


class Report(Bunch):
    """Columns of the rows that were dropped or whose weight was lowered; see
    `report_`."""

    def __repr__(self):
        n, names = len(self.row), list(self)
        table = [
            names,
            *([_text(self[name][i]) for name in names] for i in range(min(n, _SHOWN))),
        ]
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        more = [f"... and {n - _SHOWN} more"] if n > _SHOWN else []
        title = f"{n} row{'' if n == 1 else 's'}, lowest value first"
        return "\n".join([title, *lines, *more])


def _text(entry):
    return f"{entry:.4g}" if isinstance(entry, float) else str(entry)


def make_report(choice, weights, y, *, drop, groups, fdr, chosen=""):
    """The rows of weight below one, lowest value first."""
    values = choice.values[choice.players]
    rows = np.flatnonzero(weights < 1)
    rows = rows[np.argsort(values[rows], kind="stable")]
    y = np.asarray(y)
    columns = {"row": rows, "y": y[rows]}
    if groups is not None:
        columns["group"] = np.asarray(groups)[rows]
    players = np.arange(len(choice.values))[choice.players][rows]
    reason = _reasons(choice, players, drop, groups, fdr, y)
    reason = np.array([text + chosen for text in reason], dtype=object)
    return Report(**columns, value=values[rows], weight=weights[rows], reason=reason)


def _reasons(choice, players, drop, groups, fdr, y):
    """Reason of each of some selected players: its rank among those that it is compared
    with."""
    ranks = np.empty((3, len(choice.values)), dtype=np.intp)
    of = np.full(len(choice.values), what(groups), dtype=object)
    for stratum in choice.strata:
        values = choice.values[stratum]
        ranks[0, stratum], ranks[1, stratum] = (
            rankdata(values, "min"),
            rankdata(values, "max"),
        )
        ranks[2, stratum] = choice.named[stratum].sum()
        of[stratum] = f"{len(values)} {what(groups)}"
        if len(choice.strata) > 1:
            of[stratum] += f" of class {y[stratum][:1].tolist()[0]!r}"
    rules = {
        "negative": "value below zero: ",
        "significant": f"value below zero, significant at a false discovery rate of {fdr}: ",
    }
    rule = rules.get(drop, "") if isinstance(drop, str) else ""
    for player in players:
        low, high, count = ranks[:, player]
        rank = f"rank {low}" if low == high else f"ranks {low} to {high}, which tie,"
        yield f"{rule}{rank} of {of[player]}" + (
            "" if rule else f"; drop selects the lowest {count}"
        )


def notices(choice, weights, y, *, drop, groups, mode, classes, stratify):
    """Messages about a choice that may not be meant."""
    if is_zero(drop):  # chosen by drop="auto"
        return
    n, counted, named = len(choice.values), what(groups), int(choice.named.sum())
    if not named:
        if drop == "negative" and not (choice.values < 0).any():
            why = f"the lowest of {n} {counted} is {choice.values.min():.3g}"
        elif drop == "significant":
            why = f"none of {n} {counted} is significantly below zero"
        else:
            every = " of every class" if stratify else ""
            why = f"the fraction of {n} {counted}{every} is rounded down to 0"
        yield f"drop={drop!r} selects nothing: {why}."
    tied, selected = choice.tied
    if mode == "drop" and selected > _ARBITRARY * named:
        yield (
            f"drop={drop!r} cuts through ties: {selected} of {tied} equal {counted} are selected "
            "by their order alone."
        )
    if classes:
        yield from _lost_classes(
            choice, weights, np.asarray(y), drop, groups, mode, stratify
        )


def _lost_classes(choice, weights, y, drop, groups, mode, stratify):
    """A message about the classes that lose more than half of their rows, or of their
    weight."""
    labels, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    lost = sizes - np.bincount(codes, weights=weights)
    fair = max(0.5, lost.sum() / len(y))
    lines = []
    for label, loss, size in zip(labels.tolist(), lost, sizes):
        if mode == "drop" and label in choice.saved:
            lines.append(f"all rows of class {label!r} but that of the highest value")
        elif loss > fair * size and not stratify:
            lines.append(f"{loss:.6g} of the {size} rows of class {label!r}")
    if lines:
        verb = "drops" if mode == "drop" else "lowers the total weight by"
        cure = " stratify=True drops the same fraction of every class."
        cure = "" if stratify or groups is not None else cure
        yield f"drop={drop!r} {verb} {', and '.join(lines)}.{cure}"
