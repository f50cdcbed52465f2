"""``skvalue value``: the values of the rows of a table."""

from ..._utils.output_files import KINDS, check_outputs, pandas, write_frame
from ..._utils.writing import write_files
from ._methods import METHODS, PRIVATE, make_valuer
from ._options import PRIVACY, TABLE, ledger_of, new_command, refuse_privacy
from ._progress import watched
from ._rows import read_rows, refuse_common_rows


def add_command(commands):
    """Add ``skvalue value``."""
    about = "write the value of every row, or group of rows"
    options, required = (
        (*TABLE, "--seed", "--output", *PRIVACY),
        ("--target", "--output"),
    )
    helps = {
        "--output": "file to write the values to",
        "--epsilon": "above 0: the values, of --method tknn, are (epsilon, delta)-differentially "
        "private; needs --validation, whose rows are public",
    }
    parser = new_command(commands, "value", about, _run, options, required, helps)
    parser.add_argument(
        "--method", choices=METHODS, default="knn", help="default: %(default)s"
    )


def _run(options):
    check_outputs(options, {"output": KINDS}, [options.table, options.validation])
    rows, parameters = _prepare(options)
    valuer = make_valuer(options.method, random_state=options.seed, **parameters)
    watched(valuer).fit(rows.X, rows.y, **rows.fit_arguments())
    columns = (
        {"row": rows.numbers} if rows.groups is None else {"group": valuer.groups_}
    )
    columns["value"] = valuer.values_
    if getattr(valuer, "values_error_", None) is not None:
        columns["error"] = valuer.values_error_
    write_files(
        {options.output: write_frame(pandas().DataFrame(columns), options.output)}
    )
    if options.epsilon is not None:
        print(valuer.privacy_)
    what = "rows" if rows.groups is None else f"groups of {options.groups}"
    print(
        f"{options.output}: the values of {len(valuer.values_)} {what} by {options.method}."
    )


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
        raise ValueError(
            "--epsilon must be used with --validation: public rows. Got none."
        )
    print("The columns are encoded by the rows of --validation, which are public.")
    rows = read_rows(options)
    if not options.equal_rows:
        refuse_common_rows(rows)
    parameters = {"epsilon": options.epsilon, "delta": options.delta, "task": rows.task}
    parameters["ledger"] = ledger_of(options)
    return rows.encoded(by_validation=True), parameters
