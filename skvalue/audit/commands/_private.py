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
from ._rows import _read, check_columns, read_rows, refuse_common_rows
from ._words import in_words

_OF_ROWS = (
    "json", "csv", "tasks", "corrections", "findings", "groups", "fail_on", "fail_on_findings",
)  # fmt: skip


def audit_privately(options):
    """Write and print the counts; what is said of the table goes to the standard
    error."""
    for name in _OF_ROWS:
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{option} must not be used with --epsilon: no row is listed. Got it."
            )
    if options.validation is None:
        raise ValueError(
            "--epsilon must be used with --validation: public rows. Got none."
        )
    check_outputs(options, {"output": (".html",)}, [options.table, options.validation])
    with redirect_stdout(sys.stderr):  # for the curator, who has the rows
        of_public = vars(options) | {"table": options.validation, "validation": None}
        public = read_rows(Namespace(**of_public))
        reading, X, y, _ = _read(options, options.table, public.reading)
        for doubt in reading.doubts:
            print(f"question: {options.table}: {in_words(doubt)}")
    check_columns(public.X, X, "the table", "--validation")
    meant = dict(
        zip(public.labels.tolist(), public.y.tolist())
    )  # another spelling is one label
    y = np.array([meant.get(label, label) for label in y.tolist()], dtype=object)
    if not options.equal_rows:
        refuse_common_rows(replace(public, X=X, y=y, X_val=public.X, y_val=public.y))
    counts = count_improbable_labels(
        X[public.X.columns], y, public.X, public.y, epsilon=options.epsilon, delta=options.delta,
        ledger=ledger_of(options), random_state=options.seed,
    )  # fmt: skip
    write_files({options.output: counts.to_html()})
    print(counts)
