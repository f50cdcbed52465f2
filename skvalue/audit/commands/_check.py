"""``skvalue check``: what may be wrong with a table, besides doubtful labels."""

import json
from collections import Counter
from dataclasses import asdict

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from .. import check_table, corrections_to_csv
from ..checks import SEVERITIES, rows_shown
from ..reading import FIRST_ROW, is_folder
from ._options import CHECKS, OF_CHECKS, TABLE, new_command
from ._rows import read_rows

_SHOWN = 10  # rows of a finding that are printed


def add_command(commands):
    """Add ``skvalue check``."""
    new_command(
        commands,
        "check",
        "say what may be wrong with a table",
        run=_run,
        options=(*TABLE, "--seed", *CHECKS),
    )


def _run(options):
    check_outputs(options, OF_CHECKS, [options.table, options.validation])
    refuse_corrections(options)
    if is_folder(options.table):
        raise ValueError(
            "the table must be a file: pictures have no columns to check, and `skvalue "
            f"audit` looks for doubtful labels. Got the folder {options.table}."
        )
    rows = read_rows(options)
    findings = check_table(
        rows.X,
        rows.y,
        rows.X_val,
        rows.y_val,
        target=options.target or "target",
        task=rows.task,
        cells=options.checks == "all",
        random_state=options.seed,
    )
    return report_findings(rows.all_findings(findings), rows, options)


def refuse_corrections(options):
    """Refuse corrections without a target, which they are of."""
    if options.corrections is not None and options.target is None:
        raise ValueError("--corrections must be used with --target. Got no target.")


def report_findings(findings, rows, options):
    """Print findings, write the files that were asked for, and return the exit code."""
    for finding in findings:
        # Those of the labels of the file were printed with the table.
        if finding not in rows.findings:
            print(_line(finding, rows.numbers + FIRST_ROW))
    counts = Counter(finding.severity for finding in findings)
    print(f"checks: {_summary(counts)}.")

    contents = {}
    if options.findings is not None:
        contents[options.findings] = _to_json(findings, rows)
    if options.corrections is not None:
        corrections = rows.corrections(findings, options.target)
        contents[options.corrections] = corrections_to_csv(corrections)
        print(f"{options.corrections}: {len(corrections)} corrections.")
    write_files(contents)

    limit = options.fail_on_findings
    if limit is None:
        return 0
    severities = SEVERITIES[: SEVERITIES.index(limit) + 1]
    n_failing = sum(counts[severity] for severity in severities)
    return exit_code(n_failing > 0, f"{n_failing} findings are {limit}s or worse")


def _summary(counts):
    """Numbers of findings by severity, such as "1 error, 2 notes"."""
    parts = []
    for severity in SEVERITIES:
        n = counts[severity]
        if n:
            parts.append(f"{n} {severity}{'s' if n > 1 else ''}")
    return ", ".join(parts) or "nothing was found"


def _line(finding, numbers):
    """A finding in one line, with rows as a spreadsheet counts them."""
    rows = rows_shown(finding, _SHOWN)
    if not rows:
        return str(finding)
    listed = ", ".join(str(numbers[row]) for row in rows)
    more = ", ..." if len(finding.rows) > len(rows) else ""
    return f"{finding} (rows {listed}{more})"


def _to_json(findings, rows):
    """Findings with rows as a spreadsheet counts them."""
    entries = []
    for finding in findings:
        of_file = rows.numbers_val if finding.of_validation else rows.numbers
        numbers = (of_file + FIRST_ROW).tolist()
        entry = asdict(finding)
        entry["rows"] = [numbers[row] for row in finding.rows]
        entry["cells"] = [(numbers[row], column) for row, column in finding.cells]
        entry["fix"] = [(numbers[row], column, new) for row, column, new in finding.fix]
        if finding.kind == "missing labels":
            entry["rows"] = (rows.reading.unlabelled + FIRST_ROW).tolist()
        entries.append(entry)
    record = {"format": "skvalue.findings", "version": 1, "findings": entries}
    return json.dumps(record, indent=1, default=float)


def exit_code(has_failed, reason):
    """1 if a gate failed, else 0; prints which, and why."""
    print(f"gate {'failed' if has_failed else 'passed'}: {reason}.")
    return int(has_failed)
