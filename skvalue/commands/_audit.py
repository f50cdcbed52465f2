"""``skvalue audit``: which labels of a table are doubtful, as a page to send."""

import json
import os
from argparse import ArgumentTypeError
from dataclasses import replace

from .._utils.writing import write_files
from ..review import LabelErrorDetector, audit_table
from ._check import add_checks, check_files, report_findings
from ._files import check_output
from ._private import audit_privately
from ._progress import watched
from ._rows import add_privacy, add_table, read_rows, refuse_privacy

_FAILED = 1  # exit code of a gate


def add_command(commands):
    """Add ``skvalue audit``."""
    parser = commands.add_parser("audit", help="report which labels are doubtful")
    parser.set_defaults(run=_run)
    add_table(parser)
    parser.add_argument("--fdr", type=float, default=0.1, help="false discovery rate")
    parser.add_argument("--seed", type=int, default=0, help="random state; default: %(default)s")
    add_outputs(parser, required=True)
    add_checks(parser)
    parser.add_argument(
        "--fail-on",
        type=fraction,
        metavar="FRACTION",
        help="exit with 1 if a larger fraction of rows has another suggestion than its label",
    )
    add_privacy(parser, "counts of improbable labels, in place of the list, are")


def fraction(text):
    """A number from 0 to 1, of the words of a command."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"must be a number from 0 to 1. Got {text!r}.")
    return number


def add_outputs(parser, required=False):
    """Add the files that a report is written to."""
    parser.add_argument("-o", "--output", required=required, help="page to write (.html)")
    parser.add_argument("--json", help="file for `skvalue review` (.json)")
    parser.add_argument("--csv", help="the list, for verdicts in its column is_error (.csv)")
    parser.add_argument("--tasks", help="the rows to review as tasks of Label Studio (.json)")


def check_outputs(options, inputs):
    """Refuse, before any work, files that could not be written."""
    kinds = {"output": ".html", "json": ".json", "csv": ".csv", "tasks": ".json"}
    for option, kind in kinds.items():
        path = getattr(options, option)
        check_output(path, f"--{option}", [kind], inputs)
        inputs = [*inputs, path]


def write_report(report, options):
    """Write the files that were asked for, all of them or none, and print their names."""
    names = {"table": getattr(options, "table", report.about["title"])}
    names["report"] = options.json or getattr(options, "report", None)
    made = {
        options.output: lambda: report.to_html(files=names),
        options.json: report.to_json,
        options.csv: report.to_csv,
        options.tasks: lambda: json.dumps(report.to_label_studio()),
    }
    write_files({path: make() for path, make in made.items() if path is not None})
    for path in filter(None, made):
        print(f"{path}: {os.path.getsize(path):,} bytes.")


def exit_code(found, what, limit):
    """1 if a fraction is above the limit, else 0; prints which."""
    if limit is None:
        return 0
    failed = found > limit
    verb, sign = ("failed", "above") if failed else ("passed", "at most")
    print(f"gate {verb}: {what} is {found:.4f}, {sign} {limit:g}.")
    return _FAILED if failed else 0


def _run(options):
    if options.epsilon is not None:
        return audit_privately(options)
    refuse_privacy(options)
    inputs = [options.table, options.validation, options.output, options.json, options.csv]
    check_outputs(options, inputs[:2])
    check_files(options, [*inputs, options.tasks])
    rows = read_rows(options)
    detector = LabelErrorDetector(fdr=options.fdr, task=rows.task, random_state=options.seed)
    report = audit_table(
        rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val, groups=rows.groups,
        detector=watched(detector), title=os.path.basename(options.table), target=options.target,
        checks=options.checks,
    )  # fmt: skip
    print(*report.notes, sep="\n")
    report = replace(  # with rows and labels as in the file
        report, labels=rows.labels, numbers=rows.numbers + 2,
        said={**report.said, "read": rows.notes}, findings=rows.all_findings(report.findings),
    )  # fmt: skip
    failed = report_findings(report.findings, rows, options)
    print(f"{report}; {report.about['seconds']:.1f} seconds.")
    write_report(report, options)
    what = "the fraction of rows whose suggestion differs, without verdicts,"
    return max(failed, exit_code(report.fraction_listed, what, options.fail_on))
