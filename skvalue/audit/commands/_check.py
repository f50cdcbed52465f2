"""``skvalue check``: what may be wrong with a table, besides doubtful labels."""

import json
from collections import Counter
from dataclasses import asdict

from ..._utils.output_files import check_outputs
from ..._utils.text import plural
from ..._utils.writing import write_results
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
    findings = rows.all_findings(findings)
    print_findings(findings, rows)
    corrections = corrections_of_findings(findings, rows, options)
    write_results(files_of_findings(findings, corrections, rows, options))
    print_corrections(corrections, options)
    return gate_of_findings(findings, options.fail_on_findings)


def refuse_corrections(options):
    """Refuse corrections without a target, which they are of."""
    if options.corrections is not None and options.target is None:
        raise ValueError("--corrections must be used with --target. Got no target.")


def print_findings(findings, rows):
    """Print findings, a line for each, and how many there are."""
    for finding in findings:
        # Those of the labels of the file were printed with the table.
        if finding not in rows.findings:
            print(_line(finding, rows.numbers + FIRST_ROW))
    print(f"checks: {_summary(_counts(findings))}.")


def corrections_of_findings(findings, rows, options):
    """What can be corrected, if a file is asked for; else nothing."""
    if options.corrections is None:
        return []
    return rows.corrections(findings, options.target)


def files_of_findings(findings, corrections, rows, options):
    """Path -> content of the files of findings that were asked for."""
    contents = {}
    if options.findings is not None:
        contents[options.findings] = _to_json(findings, rows)
    if options.corrections is not None:
        contents[options.corrections] = corrections_to_csv(corrections)
    return contents


def print_corrections(corrections, options):
    """Print how many corrections were written, if any were asked for."""
    if options.corrections is not None:
        print(f"{options.corrections}: {len(corrections)} corrections.")


def gate_of_findings(findings, limit):
    """The exit code: whether a finding is as severe as the limit, if there is one."""
    if limit is None:
        return 0
    counts = _counts(findings)
    severities = SEVERITIES[: SEVERITIES.index(limit) + 1]
    n_failing = sum(counts[severity] for severity in severities)
    return exit_code(n_failing > 0, f"{n_failing} findings are {limit}s or worse")


def _counts(findings):
    """Number of findings of each severity."""
    return Counter(finding.severity for finding in findings)


def _summary(counts):
    """Numbers of findings by severity, such as "1 error, 2 notes"."""
    texts = [
        plural(counts[severity], severity)
        for severity in SEVERITIES
        if counts[severity]
    ]
    return ", ".join(texts) or "nothing was found"


def _line(finding, numbers):
    """A finding in one line, with rows as a spreadsheet counts them."""
    rows = rows_shown(finding, _SHOWN)
    if not rows:
        return str(finding)
    shown = [str(numbers[row]) for row in rows]
    if len(finding.rows) > len(rows):
        shown.append("...")
    return f"{finding} (rows {', '.join(shown)})"


def _to_json(findings, rows):
    """Findings with rows as a spreadsheet counts them."""
    entries = []
    for finding in findings:
        numbers = rows.numbers
        if finding.of_validation:
            numbers = rows.numbers_val
        numbers = (numbers + FIRST_ROW).tolist()
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
    if has_failed:
        print(f"gate failed: {reason}.")
        return 1
    print(f"gate passed: {reason}.")
    return 0
