"""``skvalue audit``: which labels of a table are doubtful, as a page to send."""

import json
import os
from dataclasses import replace

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from ...labels import LabelErrorDetector
from .. import audit_table
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
from ._rows import read_rows


def add_command(commands):
    """Add ``skvalue audit``."""
    options = (*TABLE, "--seed", *REPORT, *CHECKS, "--fail-on", *PRIVACY)
    required, about = ("--target", "--output"), "report which labels are doubtful"
    parser = new_command(commands, "audit", about, _run, options, required)
    parser.add_argument("--fdr", type=float, default=0.1, help="false discovery rate")


def write_report(report, options):
    """Write the files that were asked for, all of them or none, and print their
    names."""
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


def compare(found, what, limit):
    """The exit code for a fraction, which is to be at most the limit, if there is
    one."""
    if limit is None:
        return 0
    sign = "above" if found > limit else "at most"
    return exit_code(found > limit, f"{what} is {found:.4f}, {sign} {limit:g}")


def _run(options):
    if options.epsilon is not None:
        return audit_privately(options)
    refuse_privacy(options)
    check_outputs(options, OF_REPORT | OF_CHECKS, [options.table, options.validation])
    refuse_corrections(options)
    rows = read_rows(options)
    detector = LabelErrorDetector(
        fdr=options.fdr, task=rows.task, random_state=options.seed
    )
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
    return max(failed, compare(report.fraction_listed, what, options.fail_on))
