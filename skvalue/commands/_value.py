"""``skvalue value``: the values of the rows of a table."""

from .._utils.writing import write_files
from ._files import KINDS, check_output, pandas, write_frame
from ._methods import PRIVATE, add_method, make_valuer
from ._progress import watched
from ._rows import add_privacy, add_table, ledger_of, read_rows, refuse_common_rows, refuse_privacy


def add_command(commands):
    """Add ``skvalue value``."""
    parser = commands.add_parser("value", help="write the value of every row, or group of rows")
    parser.set_defaults(run=_run)
    add_table(parser)
    add_method(parser)
    parser.add_argument("-o", "--output", required=True, help="file to write the values to")
    add_privacy(parser, "the values, of --method tknn, are")


def _run(options):
    check_output(options.output, "-o", KINDS, [options.table, options.validation])
    rows, parameters = _prepare(options)
    valuer = make_valuer(options.method, random_state=options.seed, **parameters)
    watched(valuer).fit(rows.X, rows.y, **rows.fit_arguments())
    columns = {"row": rows.numbers} if rows.groups is None else {"group": valuer.groups_}
    columns["value"] = valuer.values_
    if getattr(valuer, "values_error_", None) is not None:
        columns["error"] = valuer.values_error_
    write_files({options.output: write_frame(pandas().DataFrame(columns), options.output)})
    if options.epsilon is not None:
        print(valuer.privacy_)
    what = "rows" if rows.groups is None else f"groups of {options.groups}"
    print(f"{options.output}: the values of {len(valuer.values_)} {what} by {options.method}.")


def _prepare(options):
    """Rows as arrays, and parameters of the valuer."""
    if options.epsilon is None:
        refuse_privacy(options)
        rows = read_rows(options).encoded()
        return rows, {"task": rows.task}
    if options.method not in PRIVATE:
        raise ValueError(
            f"--epsilon must be used with --method {' or '.join(PRIVATE)}. Got {options.method}."
        )
    if options.validation is None:
        raise ValueError("--epsilon must be used with --validation: public rows. Got none.")
    print("The columns are encoded by the rows of --validation, which are public.")
    rows = read_rows(options)
    if not options.equal_rows:
        refuse_common_rows(rows)
    parameters = {"epsilon": options.epsilon, "delta": options.delta, "task": rows.task}
    parameters["ledger"] = ledger_of(options)
    return rows.encoded(by_validation=True), parameters
