"""``skvalue value``: the values of the rows of a table."""

from contextlib import nullcontext

from ..._utils.output_files import KINDS, check_outputs, pandas, write_frame
from ..._utils.writing import write_files
from ._methods import METHODS, PRIVATE, make_valuer
from ._options import PRIVACY, TABLE, ledger_of, new_command, refuse_privacy
from ._private_rows import read_private_rows, silent
from ._progress import watched
from ._rows import read_rows, require_target


def add_command(commands):
    """Add ``skvalue value``."""
    parser = new_command(
        commands,
        "value",
        "write the value of every row, or group of rows",
        run=_run,
        options=(*TABLE, "--seed", "--output", *PRIVACY),
        required=("--output",),
        helps={
            "--output": "file to write the values to",
            "--epsilon": "above 0: the values, of --method tknn, are (epsilon, delta)-"
            "differentially private; needs --validation, whose rows are public",
        },
    )
    parser.add_argument(
        "--method", choices=METHODS, default="knn", help="default: %(default)s"
    )


def _run(options):
    require_target(options)
    check_outputs(options, {"output": KINDS}, [options.table, options.validation])
    if options.epsilon is None:
        refuse_privacy(options)
        rows = read_rows(options).encoded()
        parameters = {}
    else:
        rows = _read_privately(options)
        parameters = {
            "epsilon": options.epsilon,
            "delta": options.delta,
            "ledger": ledger_of(options),
        }
        rows = rows.encoded(by_validation=True)
    valuer = make_valuer(
        options.method, random_state=options.seed, task=rows.task, **parameters
    )
    hides_warnings = nullcontext() if options.epsilon is None else silent()
    with hides_warnings:
        watched(valuer).fit(rows.X, rows.y, **rows.fit_arguments())

    if rows.groups is None:
        columns = {"row": rows.numbers + 2}
        if rows.pictures is not None:
            columns["path"] = rows.reading.frame["path"].to_numpy()
        what = "rows"
    else:
        columns = {"group": valuer.groups_}
        what = f"groups of {options.groups}"
    columns["value"] = valuer.values_
    if getattr(valuer, "values_error_", None) is not None:
        columns["error"] = valuer.values_error_
    frame = pandas().DataFrame(columns)
    write_files({options.output: write_frame(frame, options.output)})
    if options.epsilon is not None:
        print(valuer.privacy_)
        print(f"{options.output}: the values of the {what} by {options.method}.")
        return
    print(
        f"{options.output}: the values of {len(valuer.values_)} {what} by "
        f"{options.method}."
    )


def _read_privately(options):
    """The rows, which are private, and the validation points, which are public."""
    if options.method not in PRIVATE:
        raise ValueError(
            f"--epsilon must be used with --method {' or '.join(PRIVATE)}. Got "
            f"{options.method}."
        )
    rows = read_private_rows(options)
    print("The columns are encoded by the rows of --validation, which are public.")
    return rows
