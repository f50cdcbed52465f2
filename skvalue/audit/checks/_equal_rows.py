"""Rows that equal others of the table, or validation points."""

import numpy as np

from ..._utils.row_groups import differing, groups_of
from ..._utils.text import plural
from ._finding import Finding


def find_equal_rows(duplicates, codes, wording):
    """Equal rows, conflicts of their labels, and nearly equal rows.

    duplicates : Bunch, of `find_duplicates`
    codes : ndarray of int of shape (n_samples,), of the labels; below zero without one
    """
    are_copies = duplicates.verdict == "copies"
    groups = groups_of(duplicates.codes)
    if groups:
        n_copies = plural(sum(map(len, groups)) - len(groups), "row")
        severity = "note"
        question = "the columns are so coarse that these may be other cases."
        if are_copies:
            severity = "warning"
            question = "entered twice?"
        sentence = f"{n_copies} equal to an earlier one: {question}"
        rows = tuple(np.concatenate(groups).tolist())
        yield Finding("equal rows", severity, sentence, rows)

    labelled = np.flatnonzero(codes >= 0)
    is_conflict = differing(codes[labelled], duplicates.codes[labelled])
    conflicts = labelled[is_conflict]
    if len(conflicts):
        n_groups = plural(len(np.unique(duplicates.codes[conflicts])), "group")
        severity = "question"
        question = "must they be the same, and which one is right?"
        if are_copies and wording.are_classes:
            severity = "error"
            question = "at most one of these is right."
        sentence = (
            f"{n_groups} of equal rows with different {wording.labels}: {question}"
        )
        yield Finding("conflicts", severity, sentence, tuple(conflicts.tolist()))

    if len(duplicates.similar):
        n_pairs = plural(len(duplicates.similar), "pair")
        sentence = (
            f"{n_pairs} of rows that agree in all texts and, to 0.3 % of their range, "
            "in all numbers: rounded copies?"
        )
        rows = tuple(np.unique(duplicates.similar).tolist())
        yield Finding("nearly equal rows", "question", sentence, rows)


def find_common_rows(matches, verdict, codes, codes_val, wording):
    """Validation points that equal a row, or nearly, and conflicts of their labels.

    matches : tuple, of `match_rows`
    verdict : str, of `find_duplicates`
    codes : ndarray of int of shape (n_samples,), of the labels; below zero without one
    codes_val : ndarray of int of shape (n_points,), or None without labels
    """
    rows, points, pairs = matches
    n_rows = len(rows)
    is_shared = np.isin(points, rows)
    severity = "error"
    if verdict == "perhaps coincidence":
        severity = "question"
    if is_shared.any():
        sentence = (
            f"{is_shared.sum()} of {len(points)} validation points equal a row of the "
            "table."
        )
        shared = tuple(np.flatnonzero(is_shared).tolist())
        yield Finding("copies in validation", severity, sentence, shared)

    near = {int(other) - n_rows for row, other in pairs if row < n_rows <= other}
    if near:
        sentence = (
            f"{plural(len(near), 'validation point')} nearly equal to a row: rounded "
            "copies?"
        )
        points_near = tuple(sorted(near))
        yield Finding("copies in validation", "question", sentence, points_near)

    if codes_val is None:
        return
    codes = np.concatenate([codes, codes_val])
    groups = np.concatenate([rows, points])
    labelled = np.flatnonzero(codes >= 0)
    conflicts = labelled[differing(codes[labelled], groups[labelled])] - n_rows
    conflicts = conflicts[conflicts >= 0]
    conflicts = conflicts[is_shared[conflicts]]
    if len(conflicts):
        sentence = (
            f"{plural(len(conflicts), 'validation point')} equal to a row with "
            f"different {wording.labels}."
        )
        if not wording.are_classes:
            severity = "question"
        rows = tuple(conflicts.tolist())
        yield Finding("conflicts in validation", severity, sentence, rows)
