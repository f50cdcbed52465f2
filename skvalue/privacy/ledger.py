"""Privacy budgets for all fits on one data set, charged before noise is drawn."""

import json
import os
import threading
import uuid
import weakref
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from .._utils.checks import check_count
from ._ledger_store import FileStore, MemoryStore, checked_terms
from .accounting import Composition, delta_of, epsilon_of, get_epsilon
from .calibration import calibrate_gaussian
from .events import SelfComposedEvent, event_from_dict, event_to_dict
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
    A ledger notices that its file was replaced by an earlier copy or a new one, by the
    charges that it has read or made itself. A file that is replaced while no program
    has it open, or that is removed before a new ledger is made, cannot be told from the
    right one: keep the file where only you can write, and never restore it from a
    backup.

    The total is valid for any use that later mechanisms make of earlier results. If
    later *charges* (their noise, or whether they are made) also depend on earlier
    results, it is proved for continuous Gaussian noise and for sums of epsilons and
    deltas; with other noise, fix the sizes of the charges beforehand, as a grid search
    does.

    References
    ----------
    J. Dong, A. Roth, W. Su: "Gaussian Differential Privacy", JRSS-B 2022, Corollary 2.

    A. Smith, A. Thakurta: "Fully Adaptive Composition for Gaussian Differential
    Privacy", 2022.

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
    ValueError: the release must fit what is left of the budget epsilon=1, ...
    """

    def __init__(
        self, path, dataset_name=None, *, epsilon=None, delta=None, relation=None
    ):
        is_new = path is None or not os.path.lexists(path)
        is_name = isinstance(dataset_name, str) and dataset_name != ""
        if not is_name and (is_new or dataset_name is not None):
            raise TypeError(
                "dataset_name must be a string that names the data set. Got "
                f"{dataset_name!r}."
            )
        terms = checked_terms(dataset_name, epsilon, delta, relation)
        if path is None:
            self._store = MemoryStore()
            self._key = uuid.uuid4().hex
            _OPEN[self._key] = self
        else:
            self._store = FileStore(os.path.abspath(os.fspath(path)), dataset_name)
            self._key = None
        stored = self._store.open(terms)
        self._set_terms(stored, stored.dataset_name, os.getpid())

    def _set_terms(self, terms, dataset_name, process):
        self.path = self._store.path
        self.dataset_name = dataset_name
        self._process = process  # in which a ledger in memory works
        # The terms as they were last read: each charge reads those in the file.
        self._terms = terms
        self._lock = threading.Lock()
        self._account = _Account()

    @property
    def epsilon(self):
        """Epsilon of the budget."""
        return self._terms.epsilon

    @property
    def delta(self):
        """Delta of the budget."""
        return self._terms.delta

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
        # The first composition imports dp-accounting, which takes a second: it is made
        # before the file is locked.
        self._require_affordable(event, *self._contents())
        with self._lock, self._store.transaction() as (terms, rows, append):
            self._require_affordable(event, terms, rows)
            row = {
                "number": rows[-1]["number"] + 1 if rows else 1,
                "event": record,
                "label": str(label),
                "process": os.getpid(),
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            }
            append(row, terms.relation or event.relation)
        return _charge(row, event)

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
        terms, rows = self._contents()
        terms = replace(terms, relation=terms.relation or "replace")
        if epsilon is not None:
            noise = calibrate_gaussian(epsilon, terms.delta, relation=terms.relation)
            fits = SelfComposedEvent(noise, n_fits)
            self._require_affordable(fits, terms, rows, n_fits)
        return _affordable_epsilon(n_fits, self._account.charged(rows, terms), terms)

    @property
    def charges(self):
        """All charges, in order."""
        _, rows = self._contents()
        return tuple(map(_charge, rows, _events(rows)))

    @property
    def n_charges(self):
        """Number of charges."""
        _, rows = self._contents()
        return len(rows)

    @property
    def relation(self):
        """Neighbouring relation of the budget; None until it is set or charged."""
        terms, _ = self._contents()
        return terms.relation

    @property
    def spent(self):
        """Epsilon of all charges together, at the delta of the budget."""
        terms, rows = self._contents()
        return self._spent_epsilon(terms, rows)

    # Private --------------------------------------------------------------------------

    def _contents(self):
        """The terms, and the charges as rows."""
        if self.path is None and self._process != os.getpid():
            raise RuntimeError(
                "a Ledger in memory works only in the process that made it. Pass a "
                f"path, as in Ledger('budget.sqlite', {self.dataset_name!r}, ...), to "
                "use it in other processes (n_jobs) or later."
            )
        self._terms, rows = self._store.read()
        return self._terms, rows

    def _spent_epsilon(self, terms, rows):
        """Epsilon of the charges together."""
        if not rows:
            return 0.0
        charged = self._account.charged(rows, terms)
        return epsilon_of(charged.simplified(), terms.delta)

    def _require_affordable(self, event, terms, rows, n_fits=1):
        """Raise ValueError for an event that does not fit what is left of the budget.

        It is that of ``n_fits`` fits together.
        """
        terms = replace(terms, relation=terms.relation or event.relation)
        try:
            convert(event, terms.relation)
        except ValueError as error:
            raise ValueError(
                "the release must be charged under a relation that implies "
                f"{terms.relation!r}, the ledger's: use a ledger with "
                f"relation='replace'. Got {event.relation!r}."
            ) from error
        charged = self._account.charged(rows, terms)
        if _fits(charged, event, terms):
            return

        what = "the release" if n_fits == 1 else f"the sum of {n_fits} releases"
        affordable = _affordable_epsilon(n_fits, charged, terms)
        cost = get_epsilon(event, terms.delta, terms.relation)
        spent = self._spent_epsilon(terms, rows)
        raise ValueError(
            f"{what} must fit what is left of the budget epsilon={terms.epsilon:g}, "
            f"delta={terms.delta:g} of {self.dataset_name!r}, of which "
            f"epsilon={spent:.4g} is spent in {len(rows)} charges: use an epsilon "
            f"of at most {affordable:.3g} per release. Got epsilon={cost:.4g}."
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
        terms, rows = self._contents()
        n_charges = len(rows)
        charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
        spent = self._spent_epsilon(terms, rows)
        return (
            f"Privacy ledger of {self.dataset_name!r}: "
            f"epsilon={spent:.4g} of {terms.epsilon:g} spent "
            f"at delta={terms.delta:g} ({terms.relation or 'no'} relation) in "
            f"{charges}."
        )


def _charge(row, event):
    """The entry of a row, with its event."""
    return Charge(**{**row, "event": event})


def _events(rows):
    """Events of the charges; a damaged one is a ValueError."""
    try:
        return [event_from_dict(json.loads(row["event"])) for row in rows]
    except Exception as error:  # a damaged record can raise anything
        raise ValueError(
            "the ledger must hold charges as skvalue wrote them. Got a damaged one: "
            f"{error}"
        ) from None


class _Account:
    """The composition of the charges of a ledger, to which only new ones are added."""

    def __init__(self):
        self._lock = threading.Lock()
        self._start_anew(None)

    def _start_anew(self, relation):
        self._relation = relation
        self._composition = Composition(relation)
        self._n_added = 0
        self._last_row = None

    def charged(self, rows, terms):
        """The `Composition` of the charges in rows; a damaged one is a ValueError.

        A store returns the same row objects as long as the charges are the same.
        """
        with self._lock:
            n_added = self._n_added
            is_longer = 0 < n_added <= len(rows) and rows[n_added - 1] is self._last_row
            if terms.relation != self._relation or not is_longer:
                self._start_anew(terms.relation)
            new_rows = rows[self._n_added :]
            for row, event in zip(new_rows, _events(new_rows)):
                self._composition.add(event)
                self._n_added += 1
                self._last_row = row
            return self._composition


def _fits(charged, event, terms, **grid):
    """Whether the charges and an event together are within the budget."""
    return delta_of(charged.simplified(event), terms.epsilon, **grid) <= terms.delta


def _affordable_epsilon(n_fits, charged, terms):
    """Largest epsilon of Gaussian noise for each of n_fits fits.

    It is rounded down by up to 1 %.
    """

    def is_affordable(epsilon):
        noise = calibrate_gaussian(epsilon, terms.delta, relation=terms.relation)
        fits = SelfComposedEvent(noise, n_fits)
        # This grid moves epsilon by far less than 1 %, to the safe side.
        return _fits(charged, fits, terms, interval=1e-3 * terms.epsilon)

    low = 1e-3 * terms.epsilon
    high = terms.epsilon
    if is_affordable(high):
        return high
    if not is_affordable(low):
        return 0.0
    while high - low > 1e-2 * high:
        middle = (low + high) / 2
        if is_affordable(middle):
            low = middle
        else:
            high = middle
    return low


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
    ledger._set_terms(terms, dataset_name, process=None)
    return ledger
