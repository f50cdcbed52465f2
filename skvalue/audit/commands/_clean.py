"""``skvalue clean``: a table without its rows of low value."""

import argparse
from contextlib import suppress

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from ..._utils.output_files import KINDS, check_outputs, ending_of, write_frame
from ..._utils.untrusted import refuse
from ..._utils.writing import write_files
from ...selection import ValueFilter
from ._fix import read_report
from ._methods import DETECTOR, METHODS, make_valuer
from ._options import TABLE, new_command
from ._progress import watched
from ._rows import read_rows

_RULES = ("negative", "significant", "auto")
_MOST = 0.5  # fraction of a class that may go without --force, if not of all rows


def add_command(commands):
    """Add ``skvalue clean``."""
    about, options = (
        "write the table without its rows of low value",
        (*TABLE, "--seed", "--output"),
    )
    helps = {"--output": "file to write the kept rows to"}
    parser = new_command(commands, "clean", about, _run, options, ("--output",), helps)
    parser.add_argument(
        "--from",
        dest="named_by",
        metavar="REPORT.json",
        help="drop the rows whose label is wrong by the verdicts of this report of the table, and "
        "no others (rows without a label stay in a text file): nothing is valued then",
    )
    parser.add_argument(
        "--method",
        choices=[DETECTOR, *METHODS],
        default=DETECTOR,
        help="default: the probability of each label by models that have not seen its row",
    )
    parser.add_argument(
        "--drop",
        type=_drop,
        default=0.1,
        help="a fraction of the rows, their number, or a rule: negative, significant (needs "
        "--validation), auto (chosen by cross-validation); default: %(default)s",
    )
    parser.add_argument(
        "--keep-classes",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to drop the same fraction of every class, without --groups; default: yes",
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
        if 0 <= float(text) < 1:
            return float(text)
    rule = f"a fraction below 1, a number of rows, or one of {', '.join(_RULES)}"
    raise argparse.ArgumentTypeError(f"must be {rule}. Got {text!r}.")


def _run(options):
    check_outputs(
        options, {"output": KINDS, "report": KINDS}, [options.table, options.validation]
    )
    named_by = None if options.named_by is None else read_report(options.named_by)
    if options.target is None and named_by is None:
        raise ValueError("--target must name a column without --from. Got none.")
    if (
        named_by is None
        and options.method == DETECTOR
        and options.validation is not None
    ):
        raise ValueError(
            "--validation needs a --method that takes validation points, such as knn: the "
            f"detector has none. Got {options.validation}."
        )
    options.target = options.target or named_by.about["target"]
    rows = read_rows(options)
    if named_by is None:
        row_filter = _filter(options, rows.encoded())
        kept, report = row_filter.sample_indices_, row_filter.report_
    else:
        report = _named(named_by, rows)
        kept = np.delete(np.arange(len(rows.y)), report["row"])
    if rows.task == "classification" and not options.force:
        _refuse_loss(rows.y, kept)
    numbers, n = rows.numbers[kept], len(rows.y)
    content = None
    if ending_of(options.output) == ending_of(options.table):
        # A report says nothing of rows without a label, which the lines of a text file
        # can keep.
        unknown = rows.reading.unlabelled if named_by is not None else ()
        content = rows.reading.to_bytes(np.union1d(numbers, unknown).astype(np.intp))
    if content is None:
        content = write_frame(rows.reading.frame.loc[numbers], options.output)
    writers = {options.output: content}
    if options.report is not None:
        dropped = _dropped(report, rows.reading.frame)
        writers[options.report] = write_frame(dropped, options.report)
    write_files(writers)
    why = "have the lowest values" if named_by is None else "are wrong by a verdict"
    what = f"the others {why}" if len(kept) < n else "none is dropped"
    print(f"{options.output}: {len(kept)} of {n} rows; {what}.")


def _filter(options, rows):
    """The fitted filter of the rows."""
    classes = rows.task == "classification"
    valuer = make_valuer(options.method, random_state=options.seed, task=rows.task)
    estimator = LogisticRegression(max_iter=1000) if classes else Ridge()
    return ValueFilter(
        watched(valuer),
        options.drop,
        stratify=options.keep_classes and classes and rows.groups is None,
        estimator=estimator if options.drop == "auto" else None,
    ).fit(rows.X, rows.y, **rows.fit_arguments())


def _named(report, rows):
    """The rows of a report whose label is wrong, as the report of a filter has them."""
    if not report.verdicts:
        refuse(
            "--from",
            "a report with verdicts, as `skvalue review --json` writes it",
            report,
        )
    labels, known = (list(map(str, y.tolist())) for y in (rows.labels, report.labels))
    if labels != known or (rows.numbers + 2 != report.numbers).any():
        raise ValueError(
            "--from must be the report of this table, which has not changed since. Got other "
            "labels, or other rows."
        )
    wrong = np.array(
        [row for row, is_error in sorted(report.verdicts.items()) if is_error], int
    )
    why = ["wrong by a verdict"] * len(wrong)
    return {"row": wrong, "value": report.values[wrong], "reason": why}


def _refuse_loss(y, kept):
    """Refuse to drop most rows of a class, beyond the fraction of all rows that is
    dropped."""
    classes, codes = np.unique(y, return_inverse=True)
    before = np.bincount(codes)
    lost = before - np.bincount(codes[kept], minlength=len(classes))
    fair = max(_MOST, lost.sum() / len(y))
    for label, size, loss in zip(classes.tolist(), before, lost):
        if loss > fair * size or loss == size - 1 > 0:
            raise ValueError(
                f"the class {label!r} would lose {loss} of its {size} rows: nothing was written. "
                "Pass --keep-classes, or --force to write it."
            )


def _dropped(report, table):
    """The dropped rows, lowest value first, after their row number, value and
    reason."""
    rows = table.iloc[report["row"]]
    columns = {"row": rows.index, "value": report["value"], "reason": report["reason"]}
    for place, (name, entries) in enumerate(
        columns.items()
    ):  # which an earlier report may have
        rows.insert(place, f"dropped_{name}", entries, allow_duplicates=True)
    return rows
