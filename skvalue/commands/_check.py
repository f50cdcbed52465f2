"""``skvalue check``: what may be wrong with a table, besides doubtful labels."""

import json
from collections import Counter
from dataclasses import asdict

from .._utils.writing import write_files
from ..review import check_table, corrections_to_csv
from ..review.checks import SEVERITIES, rows_shown
from ._files import check_output
from ._rows import add_table, read_rows

_FAILED = 1  # exit code of a gate
_SHOWN = 10  # rows of a finding that are printed


def add_command(commands):
    """Add ``skvalue check``."""
    parser = commands.add_parser("check", help="say what may be wrong with a table")
    parser.set_defaults(run=_run)
    add_table(parser, target_required=False)
    parser.add_argument("--seed", type=int, default=0, help="random state; default: %(default)s")
    add_checks(parser)


def add_checks(parser):
    """Add the options on what is checked, and what is done with it."""
    parser.add_argument(
        "--checks",
        choices=("all", "fast"),
        default="all",
        help="fast: no search for single entries that do not fit their row, which is left out of "
        "tables of more than 5,000 rows or 50 columns; default: %(default)s",
    )
    parser.add_argument("--findings", help="what was found, for programs (.json)")
    parser.add_argument(
        "--corrections",
        help="what can be corrected, for `skvalue fix` (.csv): spellings are accepted; typing "
        "errors, missing labels and rows that are entered twice wait for your accept",
    )
    parser.add_argument(
        "--fail-on-findings",
        choices=SEVERITIES[:3],
        help="exit with 1 if there is a finding of this severity, or a worse one",
    )


def check_files(options, inputs):
    """Refuse, before any work, files that could not be written."""
    check_output(options.findings, "--findings", [".json"], inputs)
    check_output(options.corrections, "--corrections", [".csv"], [*inputs, options.findings])
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
    print(f"gate {'failed' if n else 'passed'}: {n} findings are {limit}s or worse.")
    return _FAILED if n else 0


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
        numbers = rows.numbers_val + 2 if each.of_validation else rows.numbers + 2
        of = dict(zip(range(len(numbers)), numbers.tolist()))
        entry = asdict(each) | {"rows": [of[row] for row in each.rows]}
        entry["cells"] = [(of[row], column) for row, column in each.cells]
        entry["fix"] = [(of[row], column, new) for row, column, new in each.fix]
        if each.kind == "missing labels":
            entry["rows"] = (rows.reading.unlabelled + 2).tolist()
        found.append(entry)
    record = {"format": "skvalue.findings", "version": 1, "findings": found}
    return json.dumps(record, indent=1, default=float)


def _run(options):
    check_files(options, [options.table, options.validation])
    rows = read_rows(options)
    found = check_table(
        rows.X, rows.y, rows.X_val, rows.y_val, target=options.target or "target",
        task=rows.task, cells=options.checks == "all", random_state=options.seed,
    )  # fmt: skip
    return report_findings(rows.all_findings(found), rows, options)
