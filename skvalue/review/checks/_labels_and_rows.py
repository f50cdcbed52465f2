"""Labels that are missing, spelled in several ways or rare; rows that are equal."""

from collections import Counter

import numpy as np

from .._duplicates import differing, find_duplicates, groups_of, rows_in
from .._labels import label_spellings
from ._finding import Finding


def find_missing_labels(known, target):
    """Rows without a label."""
    lost = tuple(np.flatnonzero(~known).tolist())
    if lost:
        said = f"{len(lost)} of {len(known)} rows have no label; the others are checked."
        yield Finding("missing labels", "error", said, lost, (target,))


def find_spellings(labels, known, target):
    """Spellings of one label, typing errors and rare labels."""
    found, counts = label_spellings(labels[known].tolist()), Counter(labels[known].tolist())
    for same, severity, how in (
        (found.same, "warning", "differs in its spelling alone from"),
        (found.typos, "question", "is nearly"),
    ):
        for other, common in same.items():
            rows = tuple(np.flatnonzero(known & (labels == other)).tolist())
            said = f"The label {other!r} ({counts[other]} rows) {how} {common!r}: one class?"
            fix = tuple((row, target, common) for row in rows)
            yield Finding("spelling", severity, said, rows, (target,), fix=fix)
    if found.rare:
        said = (
            f"{len(found.rare)} labels have too few rows to be checked, such as {found.rare[0]!r}."
        )
        evidence = {label: counts[label] for label in found.rare}
        yield Finding("rare labels", "note", said, (), (target,), evidence=evidence)


def find_equal_rows(X, codes, known, X_val):
    """Equal rows, conflicts of their labels, and validation points that equal a row."""
    found = find_duplicates(X)
    sure = found.verdict == "copies"
    groups = groups_of(found.codes)
    if groups:
        n_copies = sum(map(len, groups)) - len(groups)
        why = (
            "entered twice?" if sure else "the columns are so coarse that these may be other cases."
        )
        said = f"{n_copies} rows equal an earlier row: {why}"
        rows = tuple(int(row) for group in groups for row in group)
        yield Finding("equal rows", "warning" if sure else "note", said, rows)
    bad = np.flatnonzero(known)[differing(codes[known], found.codes[known])]
    if len(bad):
        n_groups = len(np.unique(found.codes[bad]))
        why = "at most one of them is right." if sure else "which other columns might explain."
        said = f"{n_groups} groups of equal rows have different labels, {why}"
        yield Finding("conflicts", "error" if sure else "question", said, tuple(bad.tolist()))
    if X_val is not None:
        shared = np.flatnonzero(rows_in(X, X_val))
        if len(shared):
            said = f"{len(shared)} of {len(X_val)} validation points equal a row of the table."
            severity = "error" if found.verdict in ("none", "copies") else "question"
            yield Finding("copies in validation", severity, said, tuple(shared.tolist()))
