"""``skvalue review``: what verdicts say about the list of an audit."""

from ..._utils.output_files import check_outputs
from ..._utils.writing import write_files
from ._audit import compare, files_of_report, print_sizes
from ._fix import read_report
from ._options import OF_REPORT, REPORT, new_command


def add_command(commands):
    """Add ``skvalue review``."""
    parser = new_command(
        commands,
        "review",
        "take verdicts on rows of a report",
        run=_run,
        options=(*REPORT, "--fail-on"),
        helps={
            "--fail-on": "exit with 1 if a larger fraction of rows is listed and wrong"
        },
    )
    parser.add_argument("report", help="JSON file that `skvalue audit --json` wrote")
    parser.add_argument(
        "verdicts", help="CSV file (row,is_error), or JSON from Label Studio"
    )


def _run(options):
    check_outputs(options, OF_REPORT, [options.verdicts])
    report = read_report(options.report).read_verdicts(options.verdicts)
    print(*_sentences(report), sep="\n")
    contents = files_of_report(report, options)
    write_files(contents)
    print_sizes(contents)
    rate = report.statement.error_rate.rate
    what = "the error rate of the list, by the verdicts,"
    return compare(rate, what, options.fail_on)


def _sentences(report):
    """What the verdicts say."""
    about = report.about
    statement = report.statement
    n_wrong = sum(report.verdicts.values())
    yield (
        f"{len(report.verdicts)} rows were looked at; the label of {n_wrong} is wrong."
    )

    n_named = statement.label_error.sum()
    how_sure = "on average"
    if about["confidence"] is not None:
        how_sure = f"at {about['confidence']:g}"
    yield (
        f"{n_named} of {len(report.listed)} listed rows are named: {how_sure}, at most "
        f"{100 * about['fdr']:g} % of them have a right label."
    )
    if n_named == statement.label_error[list(report.verdicts)].sum():
        yield "No further row is named: these are rows that were looked at."

    rate = statement.error_rate
    yield (
        f"{100 * rate.rate:.1f} % of {about['n_samples']} rows are listed and wrong "
        f"({100 * rate.confidence:g} % interval {100 * rate.low:.1f} to "
        f"{100 * rate.high:.1f})."
    )
