"""Privacy budgets for all fits on one data set, charged before noise is drawn."""

import json
import os
import threading
import uuid
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime

from .._utils.checks import check_count
from ._ledger_store import FileStore, MemoryStore, checked_terms
from .accounting import delta_of, get_epsilon, simplify
from .calibration import calibrate_gaussian
from .events import ComposedEvent, SelfComposedEvent, event_from_dict, event_to_dict
from .relations import convert

_OPEN = weakref.WeakValueDictionary()  # ledgers in memory of this process, by key


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger.

    Parameters
    ----------
    number : int
        1 for the first charge.
    event : event
        The event that was charged.
    label : str
        Description of the release.
    time : str
        Time of the charge in UTC (ISO 8601).
    process : int
        ID of the process that charged it.

    Examples
    --------
    >>> from skvalue.privacy import GaussianEvent, Ledger
    >>> ledger = Ledger(None, "patients-2026", epsilon=3.0, delta=1e-5)
    >>> ledger.charge(GaussianEvent(10.0), label="first look").number
    1
    """

    number: int
    event: object
    label: str
    time: str
    process: int


class Ledger:
    """A privacy budget for one named data set, to which every release is charged.

    A charge is recorded durably before any noise is drawn; a release that would exceed
    the budget is refused, and no noise is drawn for it. An SQLite file can be used by
    several processes and over several days: a process that is killed after a charge has
    paid for a release that was not made, never the reverse. Charges compose: Gaussian
    noise by the sum of mu^2, other noise by privacy loss distributions.

    A ledger is a parameter of estimators: `sklearn.base.clone` and copies return the
    same ledger, so in a grid search every candidate is charged; pickling keeps the
    path. A ledger in memory works only in the process that made it.

    Parameters
    ----------
    path : str, path-like or None
        The SQLite file, on a local disk; it is created if it does not exist. None keeps
        the ledger in memory.
    dataset_name : str, default=None
        Name that you give to the data set; a file belongs to one name. Versions with
        common rows are one data set. None is the name of a file that is there.
    epsilon, delta : float, default=None
        The budget. Required for a new ledger; later they may be omitted, and cannot
        change.
    relation : {"null", "add_remove", "replace"}, default=None
        Neighbouring relation of the budget. None means that of the first charge. A
        charge under another relation is restated conservatively (`convert`), or refused
        if this is impossible.

    Attributes
    ----------
    charges : tuple of Charge
        All charges, in order.
    n_charges : int
        Number of charges (for example, of candidates that a search has fitted).
    spent : float
        Epsilon of all charges together, at the delta of the budget.

    Raises
    ------
    ValueError
        If the file belongs to another data set or budget, is damaged or not a ledger
        (it is then left as it is), a parameter is outside its range, or a new ledger
        has no budget.
    TypeError
        If dataset_name is not a string.

    Notes
    -----
    A ledger notices that its file was replaced by an earlier copy or a new one, by the charges that
    it has read or made itself. A file that is replaced while no program has it open, or that is
    removed before a new ledger is made, cannot be told from the right one: keep the file where only
    you can write, and never restore it from a backup.

    The total is valid for any use that later mechanisms make of earlier results. If
    later *charges* (their noise, or whether they are made) also depend on earlier
    results, it is proved for continuous Gaussian noise and for sums of epsilons and
    deltas; with other noise, fix the sizes of the charges beforehand, as a grid search
    does.

    References
    ----------
    J. Dong, A. Roth, W. Su, JRSS-B 2022, Corollary 2; A. Smith, A. Thakurta: "Fully Adaptive
    Composition for Gaussian Differential Privacy", 2022.

    Examples
    --------
    >>> from skvalue.privacy import Ledger, calibrate_gaussian
    >>> ledger = Ledger(None, "patients-2026", epsilon=1.0, delta=1e-5)
    >>> charge = ledger.charge(calibrate_gaussian(0.5, 1e-5))
    >>> ledger.n_charges, round(ledger.spent, 3)
    (1, 0.5)
    >>> ledger.charge(calibrate_gaussian(1.0, 1e-5))
    Traceback (most recent call last):
    ...
    ValueError: the release must fit what is left of the budget epsilon=1, delta=1e-05 of ...
    """

    def __init__(
        self, path, dataset_name=None, *, epsilon=None, delta=None, relation=None
    ):
        is_new = path is None or not os.path.lexists(path)
        if (
            is_new
            if dataset_name is None
            else not (isinstance(dataset_name, str) and dataset_name)
        ):
            raise TypeError(
                f"dataset_name must be a string that names the data set. Got {dataset_name!r}."
            )
        terms = {"epsilon": epsilon, "delta": delta, "relation": relation}
        terms = checked_terms({"dataset_name": dataset_name, **terms})
        if path is None:
            self._store = MemoryStore()
            self._key = uuid.uuid4().hex
            _OPEN[self._key] = self
        else:
            self._store = FileStore(os.path.abspath(os.fspath(path)), dataset_name)
            self._key = None
        stored = self._store.open(terms)
        self._hold(stored, stored["dataset_name"], os.getpid())

    def _hold(self, terms, dataset_name, process):
        self.path = self._store.path
        self.dataset_name = dataset_name
        self._process = process  # in which a ledger in memory works
        self._terms = (
            terms  # as they were last read; each charge reads those in the file
        )
        self._lock = threading.Lock()

    @property
    def epsilon(self):
        """Epsilon of the budget."""
        return self._terms["epsilon"]

    @property
    def delta(self):
        """Delta of the budget."""
        return self._terms["delta"]

    # Charging and planning ------------------------------------------------------------

    def charge(self, event, label=""):
        """Record a release before its noise is drawn, or refuse it.

        Parameters
        ----------
        event : event
            Event of everything that will be released.
        label : str, default=""
            Description of the release.

        Returns
        -------
        charge : Charge
            The entry, which is committed when this method returns.

        Raises
        ------
        ValueError
            If the budget in the file would be exceeded, the relation of the event does
            not imply that of the ledger, or the file is damaged.
        RuntimeError
            If the file is missing or lacks charges that it had, or a ledger in memory
            is used outside its process.
        TypeError
            If event is not an event.
        """
        record = json.dumps(event_to_dict(event))
        # dp-accounting takes a second to import and compose: do it before the file is
        # locked.
        self._require_affordable(event, *self._read())
        with self._lock, self._store.transaction() as (terms, rows, append):
            self._require_affordable(event, terms, _events(rows))
            row = {
                "number": rows[-1]["number"] + 1 if rows else 1,
                "event": record, "label": str(label), "process": os.getpid(),
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            }  # fmt: skip
            append(row, terms["relation"] or event.relation)
        return Charge(**{**row, "event": event})

    def plan(self, n_fits, epsilon=None):
        """Check before the first fit that a number of fits is within the budget.

        A grid search has one fit for each candidate and split, and one more if it
        refits.

        Parameters
        ----------
        n_fits : int
            Number of fits.
        epsilon : float, default=None
            Epsilon of Gaussian noise in each fit, at the ledger's delta, under the
            ledger's relation, or "replace" if it has none yet; a fit under "add_remove"
            or "null" costs more in a ledger of "replace", and one under "replace" is
            refused by the others. None only asks.

        Returns
        -------
        epsilon : float
            The largest epsilon that each of `n_fits` fits with Gaussian noise can have
            at the ledger's delta, rounded down by up to 1 %; 0.0 if it is below a
            thousandth of the budget.

        Raises
        ------
        ValueError
            If these fits would exceed the budget, or a parameter is outside its range.
        RuntimeError
            If a ledger in memory is used outside its process.
        """
        n_fits = check_count(n_fits, "n_fits")
        terms, charged = self._read()
        terms = {**terms, "relation": terms["relation"] or "replace"}
        if epsilon is not None:
            noise = calibrate_gaussian(
                epsilon, terms["delta"], relation=terms["relation"]
            )
            self._require_affordable(
                SelfComposedEvent(noise, n_fits), terms, charged, n_fits
            )
        return _affordable(n_fits, charged, terms)

    @property
    def charges(self):
        """All charges, in order."""
        rows = self._contents()[1]
        return tuple(
            Charge(**{**row, "event": event}) for row, event in zip(rows, _events(rows))
        )

    @property
    def n_charges(self):
        """Number of charges."""
        return len(self._contents()[1])

    @property
    def relation(self):
        """Neighbouring relation of the budget; None until it is set or charged."""
        return self._contents()[0]["relation"]

    @property
    def spent(self):
        """Epsilon of all charges together, at the delta of the budget."""
        return _spent(*self._read())

    # Private --------------------------------------------------------------------------

    def _contents(self):
        """The terms, and the charges as rows."""
        if self.path is None and self._process != os.getpid():
            raise RuntimeError(
                "a Ledger in memory works only in the process that made it. Pass a path, as in "
                f"Ledger('budget.sqlite', {self.dataset_name!r}, ...), to use it in other "
                "processes (n_jobs) or later."
            )
        self._terms, rows = self._store.read()
        return self._terms, rows

    def _read(self):
        """The terms, and the charged events."""
        terms, rows = self._contents()
        return terms, _events(rows)

    def _require_affordable(self, event, terms, charged, n_fits=1):
        terms = {**terms, "relation": terms["relation"] or event.relation}
        try:
            convert(event, terms["relation"])
        except ValueError as error:
            raise ValueError(
                f"the release must be charged under a relation that implies {terms['relation']!r}, "
                f"the ledger's: use a ledger with relation='replace'. Got {event.relation!r}."
            ) from error
        if _fits([*charged, event], terms):
            return
        what = "the release" if n_fits == 1 else f"the sum of {n_fits} releases"
        most = _affordable(n_fits, charged, terms)
        cost = get_epsilon(event, terms["delta"], terms["relation"])
        raise ValueError(
            f"{what} must fit what is left of the budget epsilon={terms['epsilon']:g}, delta="
            f"{terms['delta']:g} of {self.dataset_name!r}, of which epsilon="
            f"{_spent(terms, charged):.4g} is spent in {len(charged)} charges: use an epsilon of "
            f"at most {most:.3g} per release. Got epsilon={cost:.4g}."
        )

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _reopen, (self.path, self._key, self.dataset_name, self._terms)

    def __repr__(self):
        return (
            f"Ledger({self.path!r}, {self.dataset_name!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r})"
        )

    def __str__(self):
        terms, charged = self._read()
        count = len(charged)
        return (
            f"Privacy ledger of {self.dataset_name!r}: epsilon={_spent(terms, charged):.4g} of "
            f"{terms['epsilon']:g} spent at delta={terms['delta']:g} ({terms['relation'] or 'no'} "
            f"relation) in {count} {'charge' if count == 1 else 'charges'}."
        )


def _events(rows):
    """Events of the charges; a damaged one is a ValueError."""
    try:
        return [event_from_dict(json.loads(row["event"])) for row in rows]
    except Exception as error:  # a damaged record can raise anything
        raise ValueError(
            f"the ledger must hold charges as skvalue wrote them. Got a damaged one: {error}"
        ) from None


def _spent(terms, charged):
    return (
        get_epsilon(_compose(charged, terms["relation"]), terms["delta"])
        if charged
        else 0.0
    )


def _fits(events, terms, **grid):
    parts = simplify(_compose(events, terms["relation"]))
    return delta_of(parts, terms["epsilon"], **grid) <= terms["delta"]


def _affordable(n_fits, charged, terms):
    """Largest epsilon of Gaussian noise for each of n_fits fits, rounded down by up to
    1 %."""

    def fits(epsilon):
        noise = calibrate_gaussian(epsilon, terms["delta"], relation=terms["relation"])
        # This grid moves epsilon by far less than 1 %, to the safe side.
        grid = 1e-3 * terms["epsilon"]
        return _fits([*charged, SelfComposedEvent(noise, n_fits)], terms, interval=grid)

    low, high = 1e-3 * terms["epsilon"], terms["epsilon"]
    if fits(high):
        return high
    if not fits(low):
        return 0.0
    while high - low > 1e-2 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _compose(events, relation):
    return ComposedEvent(tuple(convert(event, relation) for event in events))


def _reopen(path, key, dataset_name, terms):
    """Unpickle a ledger without opening its file, which may be on another machine.

    A ledger in memory is the same object in its process; in others it raises an error
    when used.
    """
    if key in _OPEN:
        return _OPEN[key]
    ledger = Ledger.__new__(Ledger)
    ledger._store = MemoryStore() if path is None else FileStore(path, dataset_name)
    ledger._key = key
    ledger._hold(terms, dataset_name, None)
    return ledger
