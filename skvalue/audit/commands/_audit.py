"""``skvalue audit``: which labels of a table are doubtful, as a page to send."""

import json
import os
from dataclasses import replace

from ..._utils.output_files import check_outputs, ending_of
from ..._utils.writing import write_files
from ...labels import LabelErrorDetector
from .. import audit_table
from ..reading import FIRST_ROW, column_entries, is_folder
from ._check import exit_code, refuse_corrections, report_findings
from ._options import (
    CHECKS,
    OF_CHECKS,
    OF_REPORT,
    PRIVACY,
    REPORT,
    TABLE,
    new_command,
    refuse_privacy,
)
from ._private import audit_privately
from ._progress import watched
from ._rows import read_rows, require_target

_SHOWN = 20  # pictures whose paths are printed


def add_command(commands):
    """Add ``skvalue audit``."""
    parser = new_command(
        commands,
        "audit",
        "report which labels are doubtful",
        run=_run,
        options=(*TABLE, "--seed", *REPORT, *CHECKS, "--fail-on", *PRIVACY),
        required=("--output",),
    )
    parser.add_argument("--fdr", type=float, default=0.1, help="false discovery rate")


def _run(options):
    require_target(options)
    if options.epsilon is not None:
        return audit_privately(options)
    refuse_privacy(options)
    inputs = [options.table, options.validation]
    check_outputs(options, OF_REPORT | OF_CHECKS, inputs)
    refuse_corrections(options)

    rows = read_rows(options)
    detector = LabelErrorDetector(
        fdr=options.fdr, task=rows.task, random_state=options.seed
    )
    report = audit_table(
        rows.X,
        rows.y,
        X_val=rows.X_val,
        y_val=rows.y_val,
        groups=rows.groups,
        contents=rows.pictures,
        detector=watched(detector),
        title=os.path.basename(os.path.normpath(options.table)),
        target=options.target,
        texts=rows.texts,
        checks=options.checks,
    )
    print(*report.notes, sep="\n")

    # With rows and labels as in the file.
    report = replace(
        report,
        about={**report.about, "rows": "file"},
        labels=rows.labels,
        numbers=rows.numbers + FIRST_ROW,
        entries=column_entries(rows.reading, options.target),
        said={**report.said, "read": rows.notes},
        findings=rows.all_findings(report.findings),
    )
    findings_code = report_findings(report.findings, rows, options)
    if rows.pictures is not None:
        print(*_listed_pictures(report, rows), sep="\n")
    print(f"{report}; {report.about['seconds']:.1f} seconds.")
    write_report(report, options)
    stem = os.path.splitext(options.output)[0]
    ending = ".csv" if is_folder(options.table) else ending_of(options.table)
    print(
        f"Next: look at the rows of {options.output} and save the corrections; then "
        f"skvalue fix {options.table} FILE -o {stem}.fixed{ending}"
    )
    what = "the fraction of rows whose suggestion differs, without verdicts,"
    list_code = compare(report.fraction_listed, what, options.fail_on)
    return max(findings_code, list_code)


def _listed_pictures(report, rows):
    """Where the most doubtful pictures are."""
    paths = rows.reading.frame["path"].to_numpy()
    for row in report.listed[:_SHOWN].tolist():
        label = f"{report.labels[row]}, probably {report.suggestions[row]}"
        yield f"row {report.numbers[row]}: {paths[row]} ({label})"


def write_report(report, options):
    """Write the files that were asked for, all or none, and print their names."""
    contents = {}
    if options.output is not None:
        names = {
            "table": getattr(options, "table", report.about["title"]),
            "report": options.json or getattr(options, "report", None),
        }
        contents[options.output] = report.to_html(files=names)
    if options.json is not None:
        contents[options.json] = report.to_json()
    if options.csv is not None:
        contents[options.csv] = report.to_csv()
    if options.tasks is not None:
        contents[options.tasks] = json.dumps(report.to_label_studio())
    write_files(contents)
    for path in contents:
        print(f"{path}: {os.path.getsize(path):,} bytes.")


def compare(fraction, what, limit):
    """The exit code for a fraction that must be at most the limit, if there is one."""
    if limit is None:
        return 0
    is_above = fraction > limit
    relation = "above" if is_above else "at most"
    return exit_code(is_above, f"{what} is {fraction:.4f}, {relation} {limit:g}")
