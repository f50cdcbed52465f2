"""``skvalue audit --epsilon``: counts that may be published in place of a list."""

import sys
from contextlib import redirect_stdout

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from ...labels import count_improbable_labels
from ._options import ledger_of
from ._private_rows import read_private_rows, silent

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
    check_outputs(options, {"output": (".html",)}, [options.table, options.validation])

    # The notes are for the curator, who has the rows.
    with redirect_stdout(sys.stderr):
        rows = read_private_rows(options)
    with silent():
        counts = count_improbable_labels(
            rows.X,
            rows.y,
            rows.X_val,
            rows.y_val,
            epsilon=options.epsilon,
            delta=options.delta,
            ledger=ledger_of(options),
            random_state=options.seed,
        )
    write_files({options.output: counts.to_html()})
    print(counts)
