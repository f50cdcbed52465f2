"""``skvalue value``: the values of the rows of a table."""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer_names

from ..._utils.csv_text import csv_text_of_frame
from ..._utils.output_files import KINDS, check_outputs, pandas, write_frame
from ..._utils.sklearn import safe_indexing
from ..._utils.writing import write_release, write_results
from ..reading import FIRST_ROW
from ._methods import METHODS, PRIVATE, make_valuer
from ._options import PRIVACY, TABLE, ledger_of, new_command, refuse_privacy
from ._private_rows import read_private_rows, silent
from ._progress import watched
from ._rows import read_rows, require_target

# Errors over validation points of methods that train models.
_N_PARTS = 10
_FEWEST_POINTS = 5 * _N_PARTS
_MOST_EVALUATIONS = 2**12

# Bytes of a file of private values, at most.
_BYTES_OF_HEAD = 20_000
_BYTES_OF_ROW = 200


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
    parser.add_argument(
        "--scoring",
        type=_scoring,
        metavar="NAME",
        help="score of methods that train a model, such as neg_log_loss, by its name "
        "in scikit-learn",
    )
    parser.add_argument(
        "--empty-utility",
        type=_empty_utility,
        help="score without any rows: a number, or 'prior', that of the constant "
        "prediction of the class frequencies, which are then not paid",
    )


def _scoring(text):
    """The name of a scorer of scikit-learn."""
    if text not in get_scorer_names():
        raise argparse.ArgumentTypeError(
            "must be a name of sklearn.metrics.get_scorer_names(), such as accuracy or "
            f"neg_log_loss. Got {text!r}."
        )
    return text


def _empty_utility(text):
    """A number, or "prior"."""
    if text == "prior":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number or 'prior'. Got {text!r}."
        ) from None


def _run(options):
    require_target(options)
    check_outputs(options, {"output": KINDS}, [options.table, options.validation])
    parameters = {}
    for name in ("scoring", "empty_utility"):
        if getattr(options, name) is not None:
            parameters[name] = getattr(options, name)
    if options.epsilon is not None:
        _value_privately(options, parameters)
        return

    refuse_privacy(options)
    rows = read_rows(options).encoded()
    valuer = make_valuer(
        options.method, random_state=options.seed, task=rows.task, **parameters
    )
    watched(valuer).fit(rows.X, rows.y, **rows.fit_arguments())
    validation_errors = None
    if options.validation is not None:
        validation_errors = _validation_errors(valuer, rows)
    frame = _frame_of(valuer, rows, validation_errors)
    write_results({options.output: write_frame(frame, options.output)})
    print(
        f"{options.output}: the values of {len(valuer.values_)} {_players(options)} by "
        f"{options.method}."
    )


def _value_privately(options, parameters):
    """Write values of private rows, and print their guarantee."""
    rows = _read_privately(options).encoded(by_validation=True)
    valuer = make_valuer(
        options.method,
        random_state=options.seed,
        task=rows.task,
        epsilon=options.epsilon,
        delta=options.delta,
        ledger=ledger_of(options),
        **parameters,
    )

    def make():
        with silent():
            watched(valuer).fit(rows.X, rows.y, **rows.fit_arguments())
        frame = _frame_of(valuer, rows)
        return [write_frame(frame, options.output)], csv_text_of_frame(frame)

    # The fit charges the ledger: there is space for the values before.
    size = _BYTES_OF_HEAD + _BYTES_OF_ROW * len(rows.y)
    write_release({options.output: size}, make)
    print(valuer.privacy_)
    print(
        f"{options.output}: the values of the {_players(options)} by {options.method}."
    )


def _frame_of(valuer, rows, validation_errors=None):
    """The values with their errors, by the numbers of the rows or the groups."""
    if rows.groups is None:
        columns = {"row": rows.numbers + FIRST_ROW}
        if rows.pictures is not None:
            columns["path"] = rows.reading.frame["path"].to_numpy()
    else:
        columns = {"group": valuer.groups_}
    columns["value"] = valuer.values_
    if getattr(valuer, "values_error_", None) is not None:
        columns["error"] = valuer.values_error_
    if validation_errors is not None:
        columns["validation_error"] = validation_errors
    frame = pandas().DataFrame(columns)
    if rows.groups is not None:
        frame = frame.iloc[_order_of_names(valuer.groups_)]
    return frame


def _players(options):
    """What has a value, in words."""
    if options.groups is None:
        return "rows"
    return f"groups of {options.groups}"


def _order_of_names(names):
    """Positions of groups by their numbers if all names are finite ones.

    Others stay in the order of the texts, as zip codes of equal lengths do in both.
    """
    try:
        numbers = np.array([float(name) for name in names.tolist()])
    except ValueError:
        return np.arange(len(names))
    if not np.isfinite(numbers).all():
        return np.arange(len(names))
    return np.argsort(numbers, kind="stable")


def _validation_errors(valuer, rows):
    """Standard errors of values over the validation points; None if not known.

    Methods that train models do not have them. Groups are valued again by each of ten
    parts of the points: a utility is a mean over points, and so is a value.
    """
    errors = getattr(valuer, "validation_error_", None)
    if errors is not None:
        return errors
    n_points = len(rows.y_val)
    n_evaluations = getattr(valuer, "n_evaluations_", None)
    if rows.groups is None or n_evaluations is None or n_points < _FEWEST_POINTS:
        return None
    if n_evaluations > _MOST_EVALUATIONS:
        return None
    order = np.random.default_rng(0).permutation(n_points)
    values = []
    with silent():
        for part in np.array_split(order, _N_PARTS):
            by_part = clone(valuer).fit(
                rows.X,
                rows.y,
                groups=rows.groups,
                X_val=safe_indexing(rows.X_val, part),
                y_val=rows.y_val[part],
            )
            values.append(by_part.values_)
    return np.std(values, axis=0, ddof=1) / np.sqrt(_N_PARTS)


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
