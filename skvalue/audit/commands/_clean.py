"""``skvalue clean``: a table without its rows of low value."""

import argparse
import itertools
from contextlib import suppress

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from ..._utils.output_files import KINDS, check_outputs, ending_of, write_frame
from ..._utils.untrusted import refuse
from ..._utils.writing import write_results
from ...selection import ValueFilter, label_caps
from ..reading import FIRST_ROW, is_folder
from ._fix import read_report
from ._kept import kept_rows
from ._methods import DETECTOR, METHODS, make_valuer
from ._options import TABLE, new_command
from ._progress import watched
from ._rows import read_rows

_RULES = ("negative", "significant", "auto")
_MOST = 0.5  # fraction of a class that may go without --force, if not of all rows


def add_command(commands):
    """Add ``skvalue clean``."""
    parser = new_command(
        commands,
        "clean",
        "write the table without its rows of low value",
        run=_run,
        options=(*TABLE, "--seed", "--output"),
        required=("--output",),
        helps={"--output": "file to write the kept rows to"},
    )
    parser.add_argument(
        "--from",
        dest="named_by",
        metavar="REPORT.json",
        help="drop the rows whose label is wrong by the verdicts of this report of the "
        "table, and no others (rows without a label stay in a text file): nothing is "
        "valued then",
    )
    parser.add_argument(
        "--method",
        choices=[DETECTOR, *METHODS],
        default=DETECTOR,
        help="default: the probability of each label by models that have not seen its "
        "row",
    )
    parser.add_argument(
        "--drop",
        type=_drop,
        help="a fraction of the rows, their number (of the groups with --groups), or a "
        "rule: negative, significant (needs --validation), auto (the rows for which "
        "another label is more probable, of each class as many as can be wrong; with "
        "--method, or for targets, a fraction chosen by cross-validation); default: "
        "auto for labels without --method, else 0.1",
    )
    parser.add_argument(
        "--keep-classes",
        action=argparse.BooleanOptionalAction,
        help="whether no class may lose more rows than labels can be wrong in it, "
        "without --groups; default: yes, unless --drop is a number",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="write it though a class loses most of its rows",
    )
    parser.add_argument(
        "--report", help="file to write the dropped rows and the reasons to"
    )


def _drop(text):
    """A rule, a number of rows, or a fraction."""
    if text in _RULES:
        return text
    if text.isdecimal():
        return int(text)
    with suppress(ValueError):
        fraction = float(text)
        if 0 <= fraction < 1:
            return fraction
    rule = f"a fraction below 1, a number of rows, or one of {', '.join(_RULES)}"
    raise argparse.ArgumentTypeError(f"must be {rule}. Got {text!r}.")


def _run(options):
    outputs = {"output": KINDS, "report": KINDS}
    check_outputs(options, outputs, [options.table, options.validation])
    named_by = None
    if options.named_by is not None:
        named_by = read_report(options.named_by, "--from")
    else:
        _check_valuation(options)
    if options.target is None and named_by is not None:
        options.target = named_by.about["target"]
    rows = read_rows(options)
    if named_by is None:
        row_filter = _fit_filter(options, rows.encoded())
        kept = row_filter.sample_indices_
        dropped = row_filter.report_
    else:
        dropped = _wrong_rows(named_by, rows)
        kept = np.delete(np.arange(len(rows.y)), dropped["row"])
    if rows.task == "classification" and not options.force:
        _refuse_loss(rows.y, kept)

    contents = {options.output: _kept_rows(options, rows, kept)}
    if options.report is not None:
        frame = _with_reasons(dropped, rows.reading.frame)
        contents[options.report] = write_frame(frame, options.report)
    write_results(contents)

    n_rows = len(rows.y)
    if len(kept) == n_rows:
        why = "none is dropped"
    elif named_by is not None:
        why = "the others are wrong by a verdict"
    elif _has_caps(row_filter):
        why = "of the others another label is more probable"
    else:
        why = "the others have the lowest values"
    print(f"{options.output}: {len(kept)} of {n_rows} rows; {why}.")
    if rows.task == "classification" and named_by is None:
        _print_losses(rows, kept, row_filter)


def _has_caps(row_filter):
    """Whether the rows were chosen by probabilities of labels."""
    return row_filter.drop == "auto" and not hasattr(row_filter, "drop_scores_")


def _print_losses(rows, kept, row_filter):
    """Print how many rows of each class are dropped, and how many can be wrong."""
    labels = np.asarray(rows.labels)
    classes, codes = np.unique(rows.y, return_inverse=True)
    sizes = np.bincount(codes)
    losses = sizes - np.bincount(codes[kept], minlength=len(classes))
    caps = None
    if _has_caps(row_filter):
        caps = label_caps(rows.y, row_filter.valuer_.label_scores_)
    for code, (size, loss) in enumerate(zip(sizes, losses)):
        if loss == 0:
            continue
        label = labels[np.argmax(codes == code)]
        line = f"  {label}: {loss} of {size} rows are dropped"
        if caps is not None:
            line += f"; by held-out probabilities at most {caps[code]} can be wrong"
        print(f"{line}.")


def _check_valuation(options):
    """Refuse options that say too little, or too much, to value the rows."""
    if options.target is None and not is_folder(options.table):
        raise ValueError("--target must name a column without --from. Got none.")
    if options.drop == "significant":
        if options.method == DETECTOR:
            raise ValueError(
                "--drop significant needs --validation and another --method, such as "
                "knn: the detector tests no values."
            )
        if options.validation is None:
            raise ValueError(
                "--drop significant needs --validation: it tests whether a value would "
                "be below zero on new validation points. Got none."
            )
    if options.method == DETECTOR and options.validation is not None:
        raise ValueError(
            "--validation needs a --method that takes validation points, such as knn: "
            f"the detector has none. Got {options.validation}."
        )


def _fit_filter(options, rows):
    """The fitted filter of the rows."""
    are_classes = rows.task == "classification"
    valuer = make_valuer(options.method, random_state=options.seed, task=rows.task)
    drop = options.drop
    if drop is None:
        drop = "auto" if are_classes and options.method == DETECTOR else 0.1
    keep_classes = options.keep_classes
    if keep_classes is None:
        keep_classes = options.drop is None or isinstance(drop, str)
    estimator = LogisticRegression(max_iter=1000) if are_classes else Ridge()
    row_filter = ValueFilter(
        watched(valuer),
        drop,
        stratify=keep_classes and are_classes and rows.groups is None,
        estimator=estimator,
    )
    return row_filter.fit(rows.X, rows.y, **rows.fit_arguments())


def _wrong_rows(report, rows):
    """Rows whose label is wrong by a report, as the report of a filter has them."""
    if not report.verdicts:
        rule = "a report with verdicts, as `skvalue review --json` writes it"
        refuse("--from", rule, report)
    labels = list(map(str, rows.labels.tolist()))
    labels_before = list(map(str, report.labels.tolist()))
    numbers = rows.numbers + FIRST_ROW
    if labels != labels_before or (numbers != report.numbers).any():
        raise ValueError(
            "--from must be the report of this table, which has not changed since. Got "
            "other labels, or other rows."
        )
    wrong = sorted(row for row, is_error in report.verdicts.items() if is_error)
    wrong = np.array(wrong, int)
    return {
        "row": wrong,
        "value": report.values[wrong],
        "reason": ["wrong by a verdict"] * len(wrong),
    }


def _refuse_loss(y, kept):
    """Refuse to drop most rows of a class, unless most of all rows are dropped."""
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes)
    losses = sizes - np.bincount(codes[kept], minlength=len(classes))
    limit = max(_MOST, losses.sum() / len(y))
    for label, size, loss in zip(classes.tolist(), sizes, losses):
        leaves_one = loss == size - 1 > 0
        if loss > limit * size or leaves_one:
            raise ValueError(
                f"the class {label!r} would lose {loss} of its {size} rows: nothing "
                "was written. Pass --keep-classes, or --force to write it."
            )


def _kept_rows(options, rows, kept):
    """What the output holds: rows of a file of its kind, or a frame to write."""
    numbers = rows.numbers[kept]
    if ending_of(options.output) == ending_of(options.table):
        # A report says nothing of rows without a label, which can stay.
        if options.named_by is not None:
            unlabelled = rows.reading.unlabelled
            lines = np.union1d(numbers, unlabelled).astype(np.intp)
        else:
            lines = np.unique(numbers).astype(np.intp)
        return kept_rows(options.table, rows.reading, lines, options)
    return write_frame(rows.reading.frame.loc[numbers], options.output)


def _with_reasons(dropped, table):
    """The dropped rows, lowest value first, after their number, value and reason."""
    rows = table.iloc[dropped["row"]]
    columns = {
        "dropped_row": rows.index + FIRST_ROW,
        "dropped_value": dropped["value"],
        "dropped_reason": dropped["reason"],
    }
    # The table may have such columns already, of an earlier report.
    taken = {*rows.columns, *columns}
    renamed = {
        name: _free_name(name, taken) for name in rows.columns if name in columns
    }
    rows = rows.rename(columns=renamed)
    for place, (name, entries) in enumerate(columns.items()):
        rows.insert(place, name, entries)
    return rows


def _free_name(name, taken):
    """The name with the first number behind it that no column has."""
    for number in itertools.count(1):
        free = f"{name}.{number}"
        if free not in taken:
            return free
