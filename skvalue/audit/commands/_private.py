"""``skvalue audit --epsilon``: counts that may be published in place of a list."""

import sys
from argparse import Namespace
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from ...labels import count_improbable_labels
from ._options import ledger_of
from ._rows import check_columns, read_columns, read_rows, refuse_common_rows
from ._words import in_words

# Options that list rows.
_OF_ROWS = (
    "json", "csv", "tasks", "corrections", "findings", "groups", "fail_on",
    "fail_on_findings",
)  # fmt: skip


def audit_privately(options):
    """Write and print the counts; notes on the table go to the standard error."""
    for name in _OF_ROWS:
        value = getattr(options, name)
        if value is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} must not be used with --epsilon: no row "
                f"is listed. Got {value!r}."
            )
    if options.validation is None:
        raise ValueError(
            "--epsilon must be used with --validation: public rows. Got none."
        )
    check_outputs(options, {"output": (".html",)}, [options.table, options.validation])

    # The public rows decide how the private ones are read. The notes are for the
    # curator, who has the rows.
    with redirect_stdout(sys.stderr):
        of_public = {"table": options.validation, "validation": None}
        public = read_rows(Namespace(**{**vars(options), **of_public}))
        reading, X, labels, _ = read_columns(options, options.table, public.reading)
        for doubt in reading.doubts:
            print(f"question: {options.table}: {in_words(doubt)}")
    check_columns(public.X, X, "the table", "--validation")

    # Another spelling is one label.
    class_of = dict(zip(public.labels.tolist(), public.y.tolist()))
    classes = [class_of.get(label, label) for label in labels.tolist()]
    y = np.array(classes, dtype=object)
    if not options.equal_rows:
        refuse_common_rows(replace(public, X=X, y=y, X_val=public.X, y_val=public.y))
    counts = count_improbable_labels(
        X[public.X.columns],
        y,
        public.X,
        public.y,
        epsilon=options.epsilon,
        delta=options.delta,
        ledger=ledger_of(options),
        random_state=options.seed,
    )
    write_files({options.output: counts.to_html()})
    print(counts)
