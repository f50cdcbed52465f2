"""The command ``ledger``: a privacy budget in a file."""

import os

from .._utils.checks import RELATIONS
from .accounting import get_epsilon
from .events import OpaqueEvent
from .ledger import Ledger


def add_ledger_command(commands):
    """Add the command ``ledger`` to a command line.

    Its steps are ``new``, ``show`` and ``spend``.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned. Parsed options of
        the command have the attribute `run`, a function that takes them and runs it.

    Examples
    --------
    >>> import argparse
    >>> from skvalue.privacy import add_ledger_command
    >>> parser = argparse.ArgumentParser()
    >>> add_ledger_command(parser.add_subparsers())
    >>> options = parser.parse_args(["ledger", "show", "budget.sqlite"])
    >>> callable(options.run)
    True
    """
    about = "the privacy budget of a data set, in a file"
    steps = commands.add_parser("ledger", help=about).add_subparsers(
        required=True, metavar="STEP"
    )
    new = steps.add_parser("new", help="create a ledger")
    new.set_defaults(run=_new)
    show = steps.add_parser("show", help="print what is spent, and what is left")
    show.set_defaults(run=_show)
    about = "record what another program releases; refused beyond the budget"
    spend = steps.add_parser("spend", help=about)
    spend.set_defaults(run=_spend)
    for step in (new, show, spend):
        step.add_argument("ledger", help="file of the ledger")
    new.add_argument("name", help="of the data set; versions of it are one data set")
    for step, relation in ((new, "that of the first release"), (spend, "replace")):
        step.add_argument("--epsilon", type=float, required=True, help="above 0")
        step.add_argument("--delta", type=float, required=True, help="such as 1e-5")
        about = f"neighbouring relation; default: {relation}"
        step.add_argument("--relation", choices=RELATIONS, help=about)
    spend.set_defaults(relation="replace")
    spend.add_argument("--label", default="", help="what is released")


def ledger_of(options):
    """The ledger that the command of a release charges, or None.

    It is named by the options ``--ledger`` and ``--dataset-name``, both or neither.
    """
    if (options.ledger is None) != (options.dataset_name is None):
        raise ValueError("--ledger and --dataset-name must be given together.")
    if options.ledger is None:
        return None
    if not os.path.isfile(options.ledger):
        raise ValueError(
            "--ledger must be the file of a ledger that exists. Got "
            f"{options.ledger}: create it, with the budget of these rows, by "
            "`skvalue ledger new FILE NAME --epsilon E --delta D`."
        )
    return Ledger(options.ledger, options.dataset_name)


def _open(path):
    """The ledger of a file, which must exist."""
    if not os.path.isfile(path):
        raise ValueError(
            f"--ledger must be a file that `skvalue ledger new` made. Got {path}."
        )
    return Ledger(path)


def _new(options):
    if os.path.lexists(options.ledger):
        raise ValueError(
            f"ledger must be a new file. Got {options.ledger}, which exists."
        )
    budget = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "relation": options.relation,
    }
    print(Ledger(options.ledger, options.name, **budget))


def _show(options):
    ledger = _open(options.ledger)
    print(ledger)
    for charge in ledger.charges:
        cost = get_epsilon(charge.event, ledger.delta, ledger.relation)
        print(f"{charge.number:>4}  {charge.time}  epsilon={cost:.4g}  {charge.label}")
    epsilon = ledger.plan(1)
    print(f"Gaussian noise of one more release can have an epsilon of {epsilon:.3g}.")


def _spend(options):
    ledger = _open(options.ledger)
    event = OpaqueEvent(options.epsilon, options.delta, options.relation)
    ledger.charge(event, options.label)
    print(ledger)
