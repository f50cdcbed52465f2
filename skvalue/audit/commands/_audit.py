"""``skvalue audit``: which labels of a table are doubtful, as a page to send."""

import json
import os
from dataclasses import replace

from ..._utils.output_files import check_outputs, ending_of
from ..._utils.text import shell_word
from ..._utils.writing import write_results
from ...labels import LabelErrorDetector
from .. import audit_table
from ..reading import FIRST_ROW, column_entries, is_folder
from ._check import (
    corrections_of_findings,
    exit_code,
    files_of_findings,
    gate_of_findings,
    print_corrections,
    print_findings,
    refuse_corrections,
)
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
    print_findings(report.findings, rows)
    if rows.pictures is not None:
        print(*_listed_pictures(report, rows), sep="\n")
    print(f"{report}; {report.about['seconds']:.1f} seconds.")

    corrections = corrections_of_findings(report.findings, rows, options)
    of_report = files_of_report(report, options)
    of_findings = files_of_findings(report.findings, corrections, rows, options)
    write_results({**of_report, **of_findings})
    print_sizes(of_report)
    print_corrections(corrections, options)
    print(_next_command(options))

    findings_code = gate_of_findings(report.findings, options.fail_on_findings)
    what = "the fraction of rows whose suggestion differs, without verdicts,"
    list_code = compare(report.fraction_listed, what, options.fail_on)
    return max(findings_code, list_code)


def _next_command(options):
    """What can be done with the page."""
    stem, _ = os.path.splitext(options.output)
    ending = ".csv"
    if not is_folder(options.table):
        ending = ending_of(options.table)
    table = shell_word(options.table)
    fixed = shell_word(f"{stem}.fixed{ending}")
    return (
        f"Next: look at the rows of {options.output} and save the corrections; then "
        f"skvalue fix {table} FILE -o {fixed}"
    )


def _listed_pictures(report, rows):
    """Where the most doubtful pictures are."""
    paths = rows.reading.frame["path"].to_numpy()
    for row in report.listed[:_SHOWN].tolist():
        label = f"{report.labels[row]}, probably {report.suggestions[row]}"
        yield f"row {report.numbers[row]}: {paths[row]} ({label})"


def files_of_report(report, options):
    """Path -> content of the files of a report that were asked for."""
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
    return contents


def print_sizes(paths):
    """Print the names and sizes of files that were written."""
    for path in paths:
        print(f"{path}: {os.path.getsize(path):,} bytes.")


def compare(fraction, what, limit):
    """The exit code for a fraction that must be at most the limit, if there is one."""
    if limit is None:
        return 0
    is_above = fraction > limit
    relation = "at most"
    if is_above:
        relation = "above"
    return exit_code(is_above, f"{what} is {fraction:.4f}, {relation} {limit:g}")
