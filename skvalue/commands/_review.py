"""``skvalue review``: what verdicts say about the list of an audit."""

from ._audit import add_outputs, check_outputs, exit_code, fraction, write_report
from ._fix import read_report


def add_command(commands):
    """Add ``skvalue review``."""
    parser = commands.add_parser("review", help="take verdicts on rows of a report")
    parser.set_defaults(run=_run)
    parser.add_argument("report", help="JSON file that `skvalue audit --json` wrote")
    parser.add_argument("verdicts", help="CSV file (row,is_error), or JSON from Label Studio")
    add_outputs(parser)
    parser.add_argument(
        "--fail-on",
        type=fraction,
        metavar="FRACTION",
        help="exit with 1 if a larger fraction of rows is listed and wrong",
    )


def _run(options):
    check_outputs(options, [options.verdicts])
    report = read_report(options.report).read_verdicts(options.verdicts)
    said, about = report.statement, report.about
    rate = said.error_rate
    print(
        f"{len(report.verdicts)} rows were looked at; the label of {sum(report.verdicts.values())} "
        "is wrong."
    )
    print(
        f"{said.label_error.sum()} of {len(report.listed)} listed rows are named: "
        + ("on average, " if about["confidence"] is None else f"at {about['confidence']:g}, ")
        + f"at most {100 * about['fdr']:g} % of them have a right label."
    )
    seen = list(report.verdicts)
    if said.label_error.sum() == said.label_error[seen].sum():
        print("No further row is named: these are rows that were looked at.")
    print(
        f"{100 * rate.rate:.1f} % of {about['n_samples']} rows are listed and wrong "
        f"({100 * rate.confidence:g} % interval {100 * rate.low:.1f} to {100 * rate.high:.1f})."
    )
    write_report(report, options)
    return exit_code(rate.rate, "the error rate of the list, by the verdicts,", options.fail_on)
