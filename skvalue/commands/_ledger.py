"""``skvalue ledger``: a privacy budget in a file."""

import os

from ..privacy import Ledger, OpaqueEvent, get_epsilon
from ._rows import ledger_of

_RELATIONS = "replace", "add_remove", "null"


def add_command(commands):
    """Add ``skvalue ledger new``, ``show`` and ``spend``."""
    about = "the privacy budget of a data set, in a file"
    steps = commands.add_parser("ledger", help=about).add_subparsers(required=True, metavar="STEP")
    for name, run, about in [
        ("new", _new, "create a ledger"),
        ("show", _show, "print what is spent, and what is left"),
        ("spend", _spend, "record what another program releases; refused beyond the budget"),
    ]:
        step = steps.add_parser(name, help=about)
        step.set_defaults(run=run)
        step.add_argument("ledger", help="file of the ledger")
        if name == "show":
            continue
        if name == "new":
            step.add_argument("name", help="of the data set; versions of it are one data set")
        step.add_argument("--epsilon", type=float, required=True, help="above 0")
        step.add_argument("--delta", type=float, required=True, help="such as 1e-5")
        relation = {"default": "replace"} if name == "spend" else {}
        step.add_argument(
            "--relation", choices=_RELATIONS, **relation,
            help="neighbouring relation; default: "
            + ("%(default)s" if relation else "that of the first release"),
        )  # fmt: skip
        if name == "spend":
            step.add_argument("--label", default="", help="what is released")


def _new(options):
    if os.path.lexists(options.ledger):
        raise ValueError(f"ledger must be a new file. Got {options.ledger}, which exists.")
    budget = {"epsilon": options.epsilon, "delta": options.delta, "relation": options.relation}
    print(Ledger(options.ledger, options.name, **budget))


def _show(options):
    ledger = ledger_of(options)
    print(ledger)
    for charge in ledger.charges:
        cost = get_epsilon(charge.event, ledger.delta, ledger.relation)
        print(f"{charge.number:>4}  {charge.time}  epsilon={cost:.4g}  {charge.label}")
    print(f"Gaussian noise of one more release can have an epsilon of {ledger.plan(1):.3g}.")


def _spend(options):
    ledger = ledger_of(options)
    event = OpaqueEvent(options.epsilon, options.delta, options.relation)
    ledger.charge(event, options.label)
    print(ledger)
