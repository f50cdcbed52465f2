"""Labels that are missing, spelled in several ways or rare."""

import unicodedata
from collections import Counter

import numpy as np

from ..._utils.text import plural
from ...labels import label_spellings
from ._finding import Finding

_SHOWN = 5  # rare labels


def find_missing_labels(is_labelled, target):
    """Rows without a label."""
    rows = tuple(np.flatnonzero(~is_labelled).tolist())
    if rows:
        sentence = (
            f"{len(rows)} of {len(is_labelled)} rows have no label; the others are "
            "checked."
        )
        yield Finding("missing labels", "error", sentence, rows, (target,))


def find_spellings(labels, is_labelled, target):
    """Spellings of one label, typing errors and rare labels."""
    labels_of_rows = labels[is_labelled].tolist()
    spellings = label_spellings(labels_of_rows)
    counts = Counter(labels_of_rows)

    def renaming(other, common, severity, relation):
        rows = tuple(np.flatnonzero(is_labelled & (labels == other)).tolist())
        n_rows = plural(counts[other], "row")
        # Composed and decomposed letters look the same: their codes are shown.
        looks = [unicodedata.normalize("NFC", label) for label in (other, common)]
        shown = ascii if looks[0] == looks[1] else repr
        return Finding(
            "spelling",
            severity,
            f"The label {shown(other)} ({n_rows}) {relation} {shown(common)}: one "
            "class?",
            rows=rows,
            columns=(target,),
            fix=tuple((row, target, common) for row in rows),
        )

    for other, common in spellings.same.items():
        relation = "differs in its spelling alone from"
        yield renaming(other, common, "warning", relation)
    for other, common in spellings.typos.items():
        yield renaming(other, common, "question", "is nearly")
    if spellings.rare:
        n_labels = plural(len(spellings.rare), "label")
        shown = ", ".join(map(repr, spellings.rare[:_SHOWN]))
        yield Finding(
            "rare labels",
            "note",
            f"Too few rows to say anything of {n_labels}: {shown}.",
            columns=(target,),
            evidence={label: counts[label] for label in spellings.rare},
        )
