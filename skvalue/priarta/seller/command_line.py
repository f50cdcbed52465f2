"""The command ``seller``: a seller's side of PriArTa.

``skvalue seller summarize model/ rows.npz -o summary.json`` needs only skvalue and the
folder that the buyer exported.
"""

import os
from functools import partial

import numpy as np

from ..._utils.untrusted import read_text
from ..._utils.writing import replaced
from ...privacy import Ledger
from ..maps import BuyerModel
from .release import SellerRelease
from .summary import Summary, most_bytes


def add_seller_command(commands):
    """Add the command ``seller`` with its steps ``summarize`` and ``check`` to a command line.

    Parameters
    ----------
    commands : object
        What :meth:`argparse.ArgumentParser.add_subparsers` returned. Parsed options of
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
    commands = parser.add_subparsers(required=True)
    summarize = commands.add_parser("summarize", help="make the summary for the buyer")
    summarize.set_defaults(run=_summarize)
    summarize.add_argument("model", help="folder that the buyer exported")
    summarize.add_argument(
        "rows", help="an .npz, .npy or .csv (no header) file of your rows"
    )
    about_epsilon = (
        "above 0; all that is released is epsilon-differentially private with --delta: "
        "smaller is more private and noisier, 1 is a common choice"
    )
    summarize.add_argument("--epsilon", type=float, required=True, help=about_epsilon)
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
    check = commands.add_parser(
        "check", help="print the size and the guarantee of a summary"
    )
    check.set_defaults(run=_check)
    check.add_argument("summary", help="file of the summary")


def _summarize(options):
    if (options.ledger is None) != (options.dataset_name is None):
        raise ValueError("--ledger and --dataset-name must be given together.")
    if os.path.exists(options.output) and os.path.getsize(options.output):
        raise ValueError(
            f"--output must be a new file. Got {options.output}, which exists."
        )
    seller, rows = _seller(options), read_rows(options.rows)
    text = None
    try:
        with replaced([options.output]) as [file]:
            # The space is taken before the ledger is charged: a full disk costs
            # nothing.
            file.write(bytes(most_bytes(seller.model.n_dimensions)))
            file.flush()
            os.fsync(file.fileno())
            text = seller.fit(rows).summary_.to_json()
            file.seek(0)
            file.write(text.encode("ascii"))
            file.truncate()
    except OSError as error:
        kept = "nothing was released"
        if text is not None:
            kept = "the summary was released and is printed: keep it"
            print(text)
        raise OSError(f"--output could not be written ({error}); {kept}.") from error
    print(f"{options.output}: {os.path.getsize(options.output)} bytes.")
    print(seller.privacy_)


def _seller(options):
    model = BuyerModel.load(options.model)
    if options.ledger is not None and not os.path.isfile(options.ledger):
        raise ValueError(
            "--ledger must be the file of a ledger that exists. Got "
            f"{options.ledger}: create it, with the budget of these rows, by "
            "`skvalue ledger new FILE NAME --epsilon E --delta D`."
        )
    ledger = (
        None if options.ledger is None else Ledger(options.ledger, options.dataset_name)
    )
    told = {"delta": options.delta, "relation": options.relation, "ledger": ledger}
    return SellerRelease(model, options.epsilon, **told)


def _check(options):
    try:
        summary = Summary.from_json(read_text(options.summary, 200_000_000, "summary"))
    except ValueError as error:
        raise ValueError(
            f"summary must be a file that summarize wrote. Got {options.summary}: {error}"
        ) from None
    print(
        f"{summary.n_samples} rows, {summary.n_dimensions} dimensions, model {summary.model}"
    )
    print(summary.guarantee or "NO PRIVACY IS GUARANTEED.")


def read_rows(path):
    """Rows from an .npz file of one array, an .npy or a .csv file; no code in it is
    executed."""
    kind = os.path.splitext(path)[1].lower()
    if kind not in (".npz", ".npy", ".csv"):
        raise ValueError(f"rows must be an .npz, .npy or .csv file. Got {path}.")
    if kind == ".csv":
        what = ".csv file of numbers without a header"
        read = partial(np.loadtxt, delimiter=",", ndmin=2)
    else:
        what = f"whole {kind} file of one array of numbers"
        read = partial(_read_arrays, kind=kind)
    try:
        rows = read(path)
    except OSError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(f"rows must be a {what}. Got {path}: {error}") from None
    if rows.ndim == 0 or rows.dtype.kind not in "buif":
        raise ValueError(
            f"rows must be an array of real numbers. Got {path}, which holds {rows.dtype}."
        )
    return rows


def _read_arrays(path, kind):
    loaded = np.load(path)
    if isinstance(loaded, np.ndarray) != (kind == ".npy"):
        raise ValueError("a file of another kind")
    if kind == ".npy":
        return loaded
    with loaded as arrays:
        if len(arrays.files) != 1:
            raise ValueError(f"the arrays {sorted(arrays.files)}")
        return arrays[arrays.files[0]]
