"""What several fits on one data set cost together, charged before they draw any noise."""

import json
import os
import threading
import uuid
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime

from .._utils.checks import check_count, check_delta, check_epsilon, check_relation
from ._ledger_store import FileStore, MemoryStore
from .accounting import get_delta, get_epsilon
from .calibration import calibrate_gaussian
from .events import ComposedEvent, SelfComposedEvent, event_from_dict, event_to_dict
from .relations import convert

_OPEN = weakref.WeakValueDictionary()  # memory ledgers of this process by their key


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger.

    Parameters
    ----------
    number : int
        1 for the first charge.
    event : event
        What was released, as it was charged.
    label : str
        What the release was said to be.
    time : str
        When, in UTC (ISO 8601).
    process : int
        Which process charged it.

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
    """A privacy budget for one named data set, which every release on it is charged to.

    A charge is on record, durably, before any noise is drawn; a release that would overrun the
    budget is refused and draws nothing. A file (SQLite) is shared by processes and days: a process
    killed after its charge has paid for a release that never was, never the reverse. Charges
    compose: Gaussian noise by the sum of mu^2, anything else through privacy loss distributions.

    A ledger is a parameter of estimators: `sklearn.base.clone` and copies give the same ledger, so
    that in a grid search every candidate is charged; pickling keeps the path. A ledger in memory
    works in its own process only.

    Parameters
    ----------
    path : str, path-like or None
        The SQLite file, made if it is not there; on a local disk. None keeps the ledger in memory.
    dataset_name : str
        Name of the data set, given by you; a file belongs to one name. Versions that share rows are
        one data set.
    epsilon, delta : float, default=None
        The budget. Needed for a new ledger; later they may be left out, and cannot change.
    relation : {"null", "add_remove", "replace"}, default=None
        Neighbouring relation of the budget. None takes that of the first charge. A charge under
        another one is restated to the safe side (`convert`), or refused if it cannot be.

    Attributes
    ----------
    charges : tuple of Charge
        Everything charged, in order.
    n_charges : int
        How many charges there were (how many candidates a search tried).
    spent : float
        Epsilon of everything charged, at the budget's delta.

    Raises
    ------
    ValueError
        If the file belongs to another data set or budget, a parameter is outside its range, or a
        new ledger has no budget.
    TypeError
        If dataset_name is not a string.

    Notes
    -----
    The total holds whatever later mechanisms make of earlier results. That later *charges* (how
    much noise, whether to go on) may be chosen after seeing earlier results too is proved for
    continuous Gaussian noise and for sums of epsilons and deltas; with other noise, decide on the
    sizes of the charges beforehand, as a grid search does.

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

    def __init__(self, path, dataset_name, *, epsilon=None, delta=None, relation=None):
        if not isinstance(dataset_name, str) or not dataset_name:
            raise TypeError(
                f"dataset_name must be a string that names the data set. Got {dataset_name!r}."
            )
        if epsilon is not None:
            epsilon = check_epsilon(epsilon)
        if delta is not None:
            delta = check_delta(delta)
        if relation is not None:
            check_relation(relation)
        terms = {"dataset_name": dataset_name, "epsilon": epsilon, "delta": delta}
        if path is None:
            self._store = MemoryStore()
            self._key = uuid.uuid4().hex
            _OPEN[self._key] = self
        else:
            self._store = FileStore(os.path.abspath(os.fspath(path)), dataset_name)
            self._key = None
        terms = self._store.open({**terms, "relation": relation})
        self._hold(terms["epsilon"], terms["delta"], dataset_name)

    def _hold(self, epsilon, delta, dataset_name):
        self.path = self._store.path
        self.dataset_name = dataset_name
        self.epsilon, self.delta = epsilon, delta
        self._lock = threading.Lock()

    # Asking and charging --------------------------------------------------------------------

    def charge(self, event, label=""):
        """Put a release on record before its noise is drawn, or refuse it.

        Parameters
        ----------
        event : event
            Everything that the release will give away, see `skvalue.privacy.events`.
        label : str, default=""
            What it is.

        Returns
        -------
        charge : Charge
            The entry, which is committed when this returns.

        Raises
        ------
        ValueError
            If the budget would be overrun, or the event's relation does not imply the ledger's.
        RuntimeError
            If a ledger in memory is used outside its process.
        TypeError
            If event is not an event.
        """
        record = json.dumps(event_to_dict(event))
        # dp-accounting takes a second to import and compose: not while others wait for the file.
        self._require_affordable(event, *self._read())
        with self._lock, self._store.transaction() as (terms, rows, append):
            relation = terms["relation"] or event.relation
            self._require_affordable(event, relation, _events(rows))
            time = datetime.now(UTC).isoformat(timespec="seconds")
            number = append(record, str(label), time, os.getpid(), relation)
        return Charge(number, event, str(label), time, os.getpid())

    def plan(self, n_fits, event=None, *, epsilon=None, delta=None, relation="replace"):
        """Ask whether a number of fits will fit the budget, before the first one starts.

        A grid search has one fit for each candidate and split, and one more if it refits.

        Parameters
        ----------
        n_fits : int
            How many fits.
        event : event, default=None
            What each will release.
        epsilon, delta : float, default=None
            In place of an event: Gaussian noise for this epsilon each (delta=None: the ledger's).
        relation : {"null", "add_remove", "replace"}, default="replace"
            Relation of that noise.

        Returns
        -------
        epsilon : float
            The largest epsilon that each of so many fits of Gaussian noise could have, at the
            ledger's delta, rounded down by up to 1 in 100; 0.0 if it is below a thousandth of the
            budget.

        Raises
        ------
        ValueError
            If the fits asked for would overrun the budget, or a parameter is outside its range.
        RuntimeError
            If a ledger in memory is used outside its process.
        """
        n_fits = check_count(n_fits, "n_fits")
        if event is not None and epsilon is not None:
            raise ValueError("event and epsilon must not both be given: they say the same twice.")
        if epsilon is not None:
            event = calibrate_gaussian(
                epsilon, self.delta if delta is None else delta, relation=relation
            )
        ledger_relation, charged = self._read()
        if event is not None:
            ledger_relation = ledger_relation or event.relation
            wanted = SelfComposedEvent(event, n_fits)
            self._require_affordable(wanted, ledger_relation, charged, n_fits)
        return self._affordable(n_fits, charged, ledger_relation or relation)

    @property
    def charges(self):
        """Everything charged, in order."""
        rows = self._contents()[1]
        return tuple(Charge(**{**row, "event": event}) for row, event in zip(rows, _events(rows)))

    @property
    def n_charges(self):
        """How many charges there were."""
        return len(self._contents()[1])

    @property
    def relation(self):
        """Neighbouring relation of the budget; None before the first charge of a free choice."""
        return self._contents()[0]["relation"]

    @property
    def spent(self):
        """Epsilon of everything charged, at the budget's delta."""
        return self._epsilon_of(*self._read())

    # Plumbing -------------------------------------------------------------------------------

    def _contents(self):
        """The terms, and the charges as rows."""
        if not self._store.usable():
            raise RuntimeError(
                "a Ledger in memory counts in the process that made it only. Pass a path, as in "
                f"Ledger('budget.sqlite', {self.dataset_name!r}, ...), to share it with other "
                "processes (n_jobs) or other days."
            )
        return self._store.read()

    def _read(self):
        """The relation, and the events charged."""
        terms, rows = self._contents()
        return terms["relation"], _events(rows)

    def _epsilon_of(self, relation, charged):
        return get_epsilon(_compose(charged, relation), self.delta) if charged else 0.0

    def _fits(self, events, relation):
        return get_delta(_compose(events, relation), self.epsilon) <= self.delta

    def _require_affordable(self, event, relation, charged, n_fits=1):
        relation = relation or event.relation
        try:
            convert(event, relation)
        except ValueError as error:
            raise ValueError(
                f"the release must be charged under a relation that implies {relation!r}, the "
                f"ledger's: use a ledger with relation='replace'. Got {event.relation!r}."
            ) from error
        if self._fits([*charged, event], relation):
            return
        spent = self._epsilon_of(relation, charged)
        asked = "the release" if n_fits == 1 else f"the {n_fits} fits"
        raise ValueError(
            f"{asked} must fit what is left of the budget epsilon={self.epsilon:g}, delta="
            f"{self.delta:g} of {self.dataset_name!r}, of which epsilon={spent:.4g} is spent in "
            f"{len(charged)} charges: ask for fewer fits, or for epsilon of at most "
            f"{self._affordable(n_fits, charged, relation):.3g} each. "
            f"Got epsilon={get_epsilon(event, self.delta, relation):.4g} in all."
        )

    def _affordable(self, n_fits, charged, relation):
        """Largest epsilon of Gaussian noise for each of n_fits, rounded down by up to 1 in 100."""

        def fits(epsilon):
            noise = calibrate_gaussian(epsilon, self.delta, relation=relation)
            return self._fits([*charged, SelfComposedEvent(noise, n_fits)], relation)

        if fits(self.epsilon):
            return self.epsilon
        low, high = 0.0, self.epsilon
        while high - low > 1e-2 * high and high > 1e-3 * self.epsilon:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _reopen, (self.path, self._key, self.dataset_name, self.epsilon, self.delta)

    def __repr__(self):
        return (
            f"Ledger({self.path!r}, {self.dataset_name!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r})"
        )

    def __str__(self):
        count = self.n_charges
        return (
            f"Privacy ledger of {self.dataset_name!r}: epsilon={self.spent:.4g} of "
            f"{self.epsilon:g} spent at delta={self.delta:g} ({self.relation or 'no'} relation) in "
            f"{count} {'charge' if count == 1 else 'charges'}."
        )


def _events(rows):
    return [event_from_dict(json.loads(row["event"])) for row in rows]


def _compose(events, relation):
    return ComposedEvent(tuple(convert(event, relation) for event in events))


def _reopen(path, key, dataset_name, epsilon, delta):
    """Unpickle a ledger, without touching its file: that may be on another machine.

    A ledger in memory is itself in its own process, and elsewhere one that refuses to be used.
    """
    if key in _OPEN:
        return _OPEN[key]
    ledger = Ledger.__new__(Ledger)
    ledger._store = MemoryStore(process=None) if path is None else FileStore(path, dataset_name)
    ledger._key = key
    ledger._hold(epsilon, delta, dataset_name)
    return ledger
