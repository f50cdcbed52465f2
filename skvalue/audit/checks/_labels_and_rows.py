"""Labels that are missing, spelled in several ways or rare; rows that are equal."""

from collections import Counter

import numpy as np

from ..._utils.row_groups import differing, groups_of
from ..._utils.text import plural
from ...labels import label_spellings
from ._finding import Finding

_SHOWN = 5  # rare labels


def find_missing_labels(known, target):
    """Rows without a label."""
    lost = tuple(np.flatnonzero(~known).tolist())
    if lost:
        said = (
            f"{len(lost)} of {len(known)} rows have no label; the others are checked."
        )
        yield Finding("missing labels", "error", said, lost, (target,))


def find_spellings(labels, known, target):
    """Spellings of one label, typing errors and rare labels."""
    found, counts = (
        label_spellings(labels[known].tolist()),
        Counter(labels[known].tolist()),
    )
    for same, severity, how in (
        (found.same, "warning", "differs in its spelling alone from"),
        (found.typos, "question", "is nearly"),
    ):
        for other, common in same.items():
            rows = tuple(np.flatnonzero(known & (labels == other)).tolist())
            n_rows = plural(counts[other], "row")
            said = f"The label {other!r} ({n_rows}) {how} {common!r}: one class?"
            fix = tuple((row, target, common) for row in rows)
            yield Finding("spelling", severity, said, rows, (target,), fix=fix)
    if found.rare:
        shown = ", ".join(map(repr, found.rare[:_SHOWN]))
        said = f"Too few rows to say anything of {plural(len(found.rare), 'label')}: {shown}."
        evidence = {label: counts[label] for label in found.rare}
        yield Finding("rare labels", "note", said, (), (target,), evidence=evidence)


def find_equal_rows(found, codes, words):
    """Equal rows of `find_duplicates`, conflicts of their labels, and nearly equal
    rows.

    Codes are below zero where there is no label.
    """
    sure = found.verdict == "copies"
    groups = groups_of(found.codes)
    if groups:
        n_copies = plural(sum(map(len, groups)) - len(groups), "row")
        why = "the columns are so coarse that these may be other cases."
        said = (
            f"{n_copies} equal to an earlier one: {'entered twice?' if sure else why}"
        )
        rows = tuple(np.concatenate(groups).tolist())
        yield Finding("equal rows", "warning" if sure else "note", said, rows)
    known = np.flatnonzero(codes >= 0)
    bad = known[differing(codes[known], found.codes[known])]
    if len(bad):
        n_groups = plural(len(np.unique(found.codes[bad])), "group")
        severity, why = "question", "must they be the same, and which one is right?"
        if sure and words.classes:
            severity, why = "error", "at most one of these is right."
        said = f"{n_groups} of equal rows with different {words.labels}: {why}"
        yield Finding("conflicts", severity, said, tuple(bad.tolist()))
    if len(found.similar):
        said = plural(len(found.similar), "pair") + (
            " of rows that agree in all texts and, to 0.3 % of their range, in all numbers: "
            "rounded copies?"
        )
        rows = tuple(np.unique(found.similar).tolist())
        yield Finding("nearly equal rows", "question", said, rows)


def find_common_rows(matched, verdict, codes, codes_val, words):
    """Validation points that equal a row, or nearly, by `match_rows`; conflicts of
    their labels.

    Codes are below zero where there is no label, and `codes_val` is None without
    labels.
    """
    rows, points, pairs = matched
    shared = np.isin(points, rows)
    severity = "question" if verdict == "perhaps coincidence" else "error"
    if shared.any():
        said = f"{shared.sum()} of {len(points)} validation points equal a row of the table."
        rows_shared = tuple(np.flatnonzero(shared).tolist())
        yield Finding("copies in validation", severity, said, rows_shared)
    near = {int(b) - len(rows) for a, b in pairs if a < len(rows) <= b}
    if near:
        said = f"{plural(len(near), 'validation point')} nearly equal to a row: rounded copies?"
        yield Finding("copies in validation", "question", said, tuple(sorted(near)))
    if codes_val is not None:
        codes, groups = (
            np.concatenate([codes, codes_val]),
            np.concatenate([rows, points]),
        )
        known = np.flatnonzero(codes >= 0)
        bad = known[differing(codes[known], groups[known])] - len(rows)
        bad = bad[bad >= 0]
        bad = bad[shared[bad]]
        if len(bad):
            severity = severity if words.classes else "question"
            said = plural(len(bad), "validation point")
            said += f" equal to a row with different {words.labels}."
            yield Finding(
                "conflicts in validation", severity, said, tuple(bad.tolist())
            )
