"""``skvalue check``: what may be wrong with a table, besides doubtful labels."""

import json
from collections import Counter
from dataclasses import asdict

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from .. import check_table, corrections_to_csv
from ..checks import SEVERITIES, rows_shown
from ._options import CHECKS, OF_CHECKS, TABLE, new_command
from ._rows import read_rows

_SHOWN = 10  # rows of a finding that are printed


def add_command(commands):
    """Add ``skvalue check``."""
    options = (*TABLE, "--seed", *CHECKS)
    new_command(commands, "check", "say what may be wrong with a table", _run, options)


def refuse_corrections(options):
    """Refuse corrections without a target, which they are of."""
    if options.corrections is not None and options.target is None:
        raise ValueError("--corrections must be used with --target. Got no target.")


def report_findings(findings, rows, options):
    """Print findings, write the files that were asked for, and return the exit code."""
    for each in findings:
        if each not in rows.findings:  # which were printed with the table
            print(_line(each, rows.numbers + 2))
    counts = Counter(each.severity for each in findings)
    found = [f"{counts[s]} {s}{'s' * (counts[s] > 1)}" for s in SEVERITIES if counts[s]]
    print(f"checks: {', '.join(found) or 'nothing was found'}.")
    files = {}
    if options.findings is not None:
        files[options.findings] = _to_json(findings, rows)
    if options.corrections is not None:
        corrections = rows.corrections(findings, options.target)
        files[options.corrections] = corrections_to_csv(corrections)
        print(f"{options.corrections}: {len(corrections)} corrections.")
    write_files(files)
    limit = options.fail_on_findings
    if limit is None:
        return 0
    n = sum(counts[name] for name in SEVERITIES[: SEVERITIES.index(limit) + 1])
    return exit_code(n > 0, f"{n} findings are {limit}s or worse")


def exit_code(failed, said):
    """1 if a gate failed, else 0; prints which, and why."""
    print(f"gate {'failed' if failed else 'passed'}: {said}.")
    return int(failed)


def _line(finding, numbers):
    """A finding in one line, with rows as a spreadsheet counts them."""
    rows = rows_shown(finding, _SHOWN)
    more = ", ..." if len(finding.rows) > len(rows) else ""
    shown = ", ".join(str(numbers[row]) for row in rows)
    return f"{finding} (rows {shown}{more})" if rows else str(finding)


def _to_json(findings, rows):
    """Findings with rows as a spreadsheet counts them."""
    found = []
    for each in findings:
        of = (2 + (rows.numbers_val if each.of_validation else rows.numbers)).tolist()
        entry = asdict(each) | {"rows": [of[row] for row in each.rows]}
        entry["cells"] = [(of[row], column) for row, column in each.cells]
        entry["fix"] = [(of[row], column, new) for row, column, new in each.fix]
        if each.kind == "missing labels":
            entry["rows"] = (rows.reading.unlabelled + 2).tolist()
        found.append(entry)
    record = {"format": "skvalue.findings", "version": 1, "findings": found}
    return json.dumps(record, indent=1, default=float)


def _run(options):
    check_outputs(options, OF_CHECKS, [options.table, options.validation])
    refuse_corrections(options)
    rows = read_rows(options)
    found = check_table(
        rows.X, rows.y, rows.X_val, rows.y_val, target=options.target or "target",
        task=rows.task, cells=options.checks == "all", random_state=options.seed,
    )  # fmt: skip
    return report_findings(rows.all_findings(found), rows, options)
