"""``skvalue review``: what verdicts say about the list of an audit."""

from ..._utils.output_files import check_outputs
from ._audit import compare, write_report
from ._fix import read_report
from ._options import OF_REPORT, REPORT, new_command


def add_command(commands):
    """Add ``skvalue review``."""
    about = "take verdicts on rows of a report"
    helps = {
        "--fail-on": "exit with 1 if a larger fraction of rows is listed and wrong"
    }
    parser = new_command(
        commands, "review", about, _run, (*REPORT, "--fail-on"), helps=helps
    )
    parser.add_argument("report", help="JSON file that `skvalue audit --json` wrote")
    parser.add_argument(
        "verdicts", help="CSV file (row,is_error), or JSON from Label Studio"
    )


def _run(options):
    check_outputs(options, OF_REPORT, [options.verdicts])
    report = read_report(options.report).read_verdicts(options.verdicts)
    said, about = report.statement, report.about
    rate, n_named, n_wrong = (
        said.error_rate,
        said.label_error.sum(),
        sum(report.verdicts.values()),
    )
    sure = (
        "on average" if about["confidence"] is None else f"at {about['confidence']:g}"
    )
    print(
        f"{len(report.verdicts)} rows were looked at; the label of {n_wrong} is wrong."
    )
    print(
        f"{n_named} of {len(report.listed)} listed rows are named: {sure}, at most "
        f"{100 * about['fdr']:g} % of them have a right label."
    )
    if n_named == said.label_error[list(report.verdicts)].sum():
        print("No further row is named: these are rows that were looked at.")
    print(
        f"{100 * rate.rate:.1f} % of {about['n_samples']} rows are listed and wrong "
        f"({100 * rate.confidence:g} % interval {100 * rate.low:.1f} to {100 * rate.high:.1f})."
    )
    write_report(report, options)
    return compare(
        rate.rate, "the error rate of the list, by the verdicts,", options.fail_on
    )
