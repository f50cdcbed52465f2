"""``skvalue ledger``: a privacy budget in a file."""

import os

from .._utils.checks import RELATIONS
from ..privacy import Ledger, OpaqueEvent, get_epsilon
from ._options import ledger_of, new_command


def add_command(commands):
    """Add ``skvalue ledger new``, ``show`` and ``spend``."""
    about = "the privacy budget of a data set, in a file"
    steps = commands.add_parser("ledger", help=about).add_subparsers(
        required=True, metavar="STEP"
    )
    new = new_command(steps, "new", "create a ledger", _new)
    show = new_command(steps, "show", "print what is spent, and what is left", _show)
    about = "record what another program releases; refused beyond the budget"
    spend = new_command(steps, "spend", about, _spend)
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
    ledger = ledger_of(options)
    print(ledger)
    for charge in ledger.charges:
        cost = get_epsilon(charge.event, ledger.delta, ledger.relation)
        print(f"{charge.number:>4}  {charge.time}  epsilon={cost:.4g}  {charge.label}")
    print(
        f"Gaussian noise of one more release can have an epsilon of {ledger.plan(1):.3g}."
    )


def _spend(options):
    ledger = ledger_of(options)
    event = OpaqueEvent(options.epsilon, options.delta, options.relation)
    ledger.charge(event, options.label)
    print(ledger)
