"""``skvalue audit --epsilon``: counts that may be published in place of a list."""

import sys
from contextlib import redirect_stdout

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_release
from ...labels import count_improbable_labels
from ._options import ledger_of
from ._private_rows import read_private_rows, silent

# Bytes of a page of counts, at most; a label has up to 1,000 letters.
_BYTES_OF_PAGE = 20_000
_BYTES_OF_CLASS = 10_000

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
    ledger = ledger_of(options)

    def make():
        with silent():
            counts = count_improbable_labels(
                rows.X,
                rows.y,
                rows.X_val,
                rows.y_val,
                epsilon=options.epsilon,
                delta=options.delta,
                ledger=ledger,
                random_state=options.seed,
            )
        return [counts.to_html()], str(counts)

    # The counts charge the ledger: there is space for the page before.
    size = _BYTES_OF_PAGE + _BYTES_OF_CLASS * len(set(rows.y_val.tolist()))
    print(write_release({options.output: size}, make))
