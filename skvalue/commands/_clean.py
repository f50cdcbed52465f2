"""``skvalue clean``: a table without its rows of low value."""

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.multiclass import type_of_target

from .._utils.writing import write_files
from ..selection import ValueFilter
from ._files import KINDS, check_output, pandas, read_table, write_frame
from ._methods import add_method, make_valuer
from ._progress import watched
from ._rows import add_table, read_rows

_RULES = ("negative", "significant", "auto")


def add_command(commands):
    """Add ``skvalue clean``."""
    parser = commands.add_parser("clean", help="write the table without its rows of low value")
    parser.set_defaults(run=_run)
    add_table(parser)
    add_method(parser)
    parser.add_argument(
        "--drop",
        type=_drop,
        default=0.1,
        help="a fraction of the rows, their number, or a rule: negative, significant (needs "
        "--validation), auto (chosen by cross-validation); default: %(default)s",
    )
    parser.add_argument("-o", "--output", required=True, help="file to write the kept rows to")
    parser.add_argument("--report", help="file to write the dropped rows and the reasons to")


def _drop(text):
    """A rule, or a fraction, or a number of rows."""
    if text in _RULES:
        return text
    return int(text) if text.isdigit() else float(text)


def _run(options):
    inputs = [options.table, options.validation]
    check_output(options.output, "-o", KINDS, inputs)
    check_output(options.report, "--report", KINDS, [*inputs, options.output])
    rows = read_rows(options).encoded()
    row_filter = ValueFilter(
        watched(make_valuer(options.method, random_state=options.seed)),
        options.drop,
        estimator=_estimator(rows.y) if options.drop == "auto" else None,
    ).fit(rows.X, rows.y, **rows.fit_arguments())
    table = read_table(options.table, "the table", as_text=True)
    kept = table.iloc[row_filter.sample_indices_]
    writers = {options.output: write_frame(kept, options.output)}
    if options.report is not None:
        writers[options.report] = write_frame(_dropped(row_filter, table), options.report)
    write_files(writers)
    print(f"{options.output}: {len(kept)} of {len(table)} rows; the others have the lowest values.")


def _estimator(y):
    continuous = type_of_target(y).startswith("continuous")
    return Ridge() if continuous else LogisticRegression(max_iter=1000)


def _dropped(row_filter, table):
    """The dropped rows, lowest value first, after their row number, value and reason."""
    if not len(row_filter.dropped_indices_):
        return table.iloc[:0]
    report = row_filter.report_
    columns = {f"dropped_{name}": report[name] for name in ("row", "value", "reason")}
    rows = table.iloc[report.row].reset_index(drop=True)
    pd = pandas()
    return pd.concat([pd.DataFrame(columns), rows], axis=1)
