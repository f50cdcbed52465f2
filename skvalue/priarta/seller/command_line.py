"""The command ``seller``: a seller's side of PriArTa.

``skvalue seller summarize model/ rows.npz -o summary.json`` needs only skvalue and the
folder that the buyer exported.
"""

import os

from ..._utils.output_files import check_outputs
from ..._utils.untrusted import read_text
from ..._utils.writing import write_release
from ...exceptions import ParameterError
from ...privacy import ledger_of
from ..maps import BuyerModel
from .release import SellerRelease
from .rows_file import read_private_rows
from .summary import Summary, max_file_size

_NOTES_SIZE = 300  # more than notes have
_MAX_TEXT_LENGTH = 200_000_000  # of a summary


def add_seller_command(commands):
    """Add the command ``seller`` to a command line.

    Its steps are ``summarize`` and ``check``.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned. Parsed options of
        the command have the attribute `run`, a function that takes them and runs it.

    Examples
    --------
    >>> import argparse
    >>> from skvalue.priarta import add_seller_command
    >>> parser = argparse.ArgumentParser()
    >>> add_seller_command(parser.add_subparsers())
    >>> options = parser.parse_args(["seller", "check", "summary.json"])
    >>> callable(options.run)
    True
    """
    seller = commands.add_parser(
        "seller",
        help="a seller's side of PriArTa: summarize and check",
        description="A seller's side of PriArTa.",
    )
    add_seller_steps(seller)


def add_seller_steps(parser):
    """Add the steps ``summarize`` and ``check`` to the parser of the command."""
    steps = parser.add_subparsers(required=True)
    summarize = steps.add_parser("summarize", help="make the summary for the buyer")
    summarize.set_defaults(run=_summarize)
    summarize.add_argument("model", help="folder that the buyer exported")
    summarize.add_argument(
        "rows",
        help="a .csv file of your rows, with a header if the buyer's model has names "
        "of columns, which are taken in any order; or an .npz or .npy file of an array",
    )
    summarize.add_argument(
        "--columns",
        help="names of the columns of a file without a header, in its order, such as "
        "age,dose",
    )
    summarize.add_argument(
        "--epsilon",
        type=float,
        required=True,
        help="above 0; all that is released is epsilon-differentially private with "
        "--delta: smaller is more private and noisier, 1 is a common choice",
    )
    summarize.add_argument(
        "--delta", type=float, required=True, help="such as 1e-5, below 1/n"
    )
    summarize.add_argument(
        "--relation", default="replace", help="replace, null or add_remove"
    )
    summarize.add_argument("--ledger", help="file of the ledger of these rows")
    summarize.add_argument("--dataset-name", help="name of the rows in the ledger")
    summarize.add_argument(
        "-o", "--output", required=True, help="file to write the summary to"
    )
    summarize.add_argument(
        "--notes",
        help="file for you alone: how many rows could not be read or transformed and "
        "count as null rows, and how many were clipped to the radius. Nothing that the "
        "buyer sees depends on it",
    )

    check = steps.add_parser(
        "check", help="print the size and the guarantee of a summary"
    )
    check.set_defaults(run=_check)
    check.add_argument("summary", help="file of the summary")


def _summarize(options):
    check_outputs(options, {"output": None, "notes": None}, _inputs(options))
    if os.path.exists(options.output) and os.path.getsize(options.output):
        raise ValueError(
            f"--output must be a new file. Got {options.output}, which exists."
        )
    seller = SellerRelease(
        BuyerModel.load(options.model),
        options.epsilon,
        delta=options.delta,
        relation=options.relation,
        ledger=ledger_of(options),
    )
    rows = _read(options, seller.model)
    sizes = {options.output: max_file_size(seller.model.n_dimensions)}
    if options.notes is not None:
        sizes[options.notes] = _NOTES_SIZE

    def make():
        text = seller.fit(rows).summary_.to_json()
        contents = [text]
        if options.notes is not None:
            contents.append(_notes(seller))
        return contents, text

    write_release(sizes, make)
    print(f"{options.output}: {os.path.getsize(options.output)} bytes.")
    print(seller.privacy_)


def _inputs(options):
    """Files that are read: the rows, and those of the buyer's folder."""
    names = os.listdir(options.model) if os.path.isdir(options.model) else []
    return [options.rows, *(os.path.join(options.model, name) for name in names)]


def _notes(seller):
    """What the seller alone is told of its rows."""
    return (
        f"{seller.n_null_rows_} rows could not be read or transformed; they count as "
        f"null rows.\n{seller.n_clipped_rows_} rows were clipped to the radius "
        f"{seller.summary_.max_norm:.4g}.\n"
    )


def _read(options, model):
    """The private rows, by the names of the public model or an option alone."""
    if options.columns is None:
        return read_private_rows(options.rows, model.n_entries, columns=model.columns)
    if model.columns is None:
        raise ParameterError(
            "--columns",
            "must not be used with a model without names of columns. Got "
            f"{options.columns!r}.",
        )
    return read_private_rows(
        options.rows, columns=model.columns, order=options.columns.split(",")
    )


def _check(options):
    try:
        text = read_text(options.summary, _MAX_TEXT_LENGTH, "summary")
        summary = Summary.from_json(text)
    except ValueError as error:
        raise ValueError(
            "summary must be a file that summarize wrote. Got "
            f"{options.summary}: {error}"
        ) from None
    print(
        f"{summary.n_samples} rows, {summary.n_dimensions} dimensions, model "
        f"{summary.model}"
    )
    print(summary.guarantee or "NO PRIVACY IS GUARANTEED.")
