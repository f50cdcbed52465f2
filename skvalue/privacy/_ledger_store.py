"""Storage of the entries of a ledger, in memory or in an SQLite file."""

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from .._utils.checks import check_delta, check_epsilon, check_relation

_LOCK_TIMEOUT = 300.0  # seconds to wait while another process charges
_CREATION_TIMEOUT = 2.0  # seconds to wait while another process creates the file

_APPLICATION_ID = int.from_bytes(b"skvL")  # in the header of every ledger
_STATEMENTS = (
    "CREATE TABLE terms (dataset_name TEXT NOT NULL, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, relation TEXT)",
    "CREATE TABLE charges (number INTEGER PRIMARY KEY, event TEXT NOT NULL, "
    "label TEXT NOT NULL, time TEXT NOT NULL, process INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)

# The columns by which a charge is recognised when the file is read again.
_identity = itemgetter("number", "label", "time", "process")


@dataclass(frozen=True)
class Terms:
    """The terms of a ledger; None is one that is not set.

    Parameters
    ----------
    dataset_name : str or None
        Name of the data set.
    epsilon, delta : float or None
        The budget.
    relation : str or None
        Neighbouring relation of the budget.
    """

    dataset_name: str | None
    epsilon: float | None = None
    delta: float | None = None
    relation: str | None = None


def checked_terms(dataset_name, epsilon, delta, relation):
    """The `Terms` with numbers as floats, if they are in their ranges."""
    if epsilon is not None:
        epsilon = check_epsilon(epsilon)
    if delta is not None:
        delta = check_delta(delta)
    if relation is not None:
        relation = check_relation(relation)
    return Terms(dataset_name, epsilon, delta, relation)


def _check_terms(stored, given, path):
    """Check the terms that a ledger is opened with against those it was made with."""
    if given.dataset_name not in (None, stored.dataset_name):
        raise ValueError(
            f"dataset_name must be {stored.dataset_name!r}, to which the ledger {path} "
            "belongs; use another file for another data set. Got "
            f"{given.dataset_name!r}."
        )
    for name in ("epsilon", "delta", "relation"):
        stored_value = getattr(stored, name)
        given_value = getattr(given, name)
        if given_value not in (None, stored_value):
            raise ValueError(
                f"{name} must be {stored_value!r}, as the ledger {path} was made with, "
                f"or be left out: a budget does not change. Got {given_value!r}."
            )


def _require_budget(terms):
    """Refuse terms of a new ledger without a budget."""
    for name in ("epsilon", "delta"):
        if getattr(terms, name) is None:
            raise ValueError(
                f"{name} must be given for a new ledger: it is the budget. Got None."
            )


class MemoryStore:
    """Entries in memory, for a single process."""

    path = None

    def __init__(self):
        self._rows = []

    def open(self, terms):
        """Take the terms of a new ledger; returns them."""
        _require_budget(terms)
        self._terms = terms
        return terms

    def read(self):
        """The terms, and the charges as dictionaries."""
        return self._terms, list(self._rows)

    @contextmanager
    def transaction(self):
        """Context that yields terms and charges, and ``append(row, relation)``."""

        def append(row, relation):
            self._terms = replace(self._terms, relation=relation)
            self._rows.append(row)

        yield (*self.read(), append)


class FileStore:
    """Entries in an SQLite file; every operation opens a new connection."""

    def __init__(self, path, dataset_name):
        self.path = path
        self._dataset_name = dataset_name
        # Charges that were read or made: a file without them is another one.
        self._seen_rows = []

    def open(self, terms):
        """Open the file, which is created if there is none; returns its terms."""
        try:
            if not os.path.lexists(self.path):
                _require_budget(terms)
                with suppress(FileExistsError):  # another process was faster
                    self._create(terms)
            self._require_ledger()
        except OSError as error:
            self._refuse(error)
        with self._begin("DEFERRED") as connection:
            stored, self._seen_rows = self._contents(connection)
            self._dataset_name = stored.dataset_name
            _check_terms(stored, terms, self.path)
            return stored

    def read(self):
        """The terms, and the charges as dictionaries."""
        self._require_file()
        with self._begin("DEFERRED") as connection:
            return self._checked_contents(connection)

    @contextmanager
    def transaction(self):
        """Context that yields terms and charges, and ``append(row, relation)``.

        No other process charges in it.
        """
        self._require_file()
        added = []
        with self._begin() as connection:

            def append(row, relation):
                connection.execute("UPDATE terms SET relation = ?", (relation,))
                connection.execute(
                    "INSERT INTO charges "
                    "VALUES (:number, :event, :label, :time, :process)",
                    row,
                )
                added.append(row)

            terms, rows = self._checked_contents(connection)
            yield terms, rows, append
        self._seen_rows = rows + added

    # Files ----------------------------------------------------------------------------

    def _refuse(self, reason):
        raise ValueError(
            "path must be a ledger's SQLite file, or a path for a new one. Got "
            f"{self.path!r} ({reason})."
        )

    def _create(self, terms):
        """Create the file, which no other process has; none is left on an error."""
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with self._begin() as connection:
                for statement in _STATEMENTS:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO terms VALUES (?, ?, ?, ?)",
                    (terms.dataset_name, terms.epsilon, terms.delta, terms.relation),
                )
        except BaseException:
            os.remove(self.path)
            raise

    def _require_file(self):
        """Refuse to make a file anew that was removed: it would be a new budget."""
        if not os.path.exists(self.path):
            raise RuntimeError(
                f"the ledger's file must be there to charge or read: put {self.path!r} "
                "back, or make a new Ledger."
            )
        self._require_ledger()

    def _require_ledger(self):
        """Refuse a file that is no ledger from its first bytes, changing nothing."""
        # Another process may have created the file, and not written to it yet.
        deadline = time.monotonic() + _CREATION_TIMEOUT
        while True:
            if not os.path.isfile(self.path):  # reading a pipe would wait for ever
                self._refuse("not a file")
            is_empty = os.path.getsize(self.path) == 0
            if not is_empty or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        if is_empty:
            self._refuse(
                "an empty file: a damaged ledger, or none; remove it if it never was "
                "one"
            )
        if self._application_id() != _APPLICATION_ID:
            self._refuse("another kind of file")

    def _application_id(self):
        """The number in the header of the file by which its kind is known, or None.

        SQLite reads it, without a lock or a file beside this one. If Python opened and
        closed the file, the locks of all other threads on it would end (POSIX), and
        another process could charge at the same time as they do.
        """
        uri = f"{Path(self.path).as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                (number,) = connection.execute("PRAGMA application_id").fetchone()
        except sqlite3.OperationalError as error:  # the file cannot be read
            self._refuse(error)
        except sqlite3.DatabaseError:
            return None
        return number

    @contextmanager
    def _begin(self, kind="IMMEDIATE"):
        """A connection in a transaction, which excludes other writers if "IMMEDIATE".

        An error rolls it back; what SQLite finds wrong with the file is a ValueError.
        """
        try:
            with closing(self._connect()) as connection:
                connection.row_factory = sqlite3.Row
                # A commit is on the disk when it returns.
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(f"BEGIN {kind}")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._refuse(error)

    def _connect(self):
        return sqlite3.connect(
            f"{Path(self.path).as_uri()}?mode=rw",
            timeout=_LOCK_TIMEOUT,
            isolation_level=None,
            uri=True,
        )

    # Contents -------------------------------------------------------------------------

    def _contents(self, connection, seen_rows=()):
        """The terms, and the charges as dictionaries.

        Those of ``seen_rows``, a list that was read before, are the same objects, if
        the file has the last of them as its charge of this number.
        """
        all_terms = connection.execute("SELECT * FROM terms").fetchall()
        try:
            (row,) = map(dict, all_terms)
            terms = checked_terms(
                epsilon=row["epsilon"],
                delta=row["delta"],
                relation=row["relation"],
                dataset_name=row["dataset_name"],
            )
            _require_budget(terms)
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(f"a damaged ledger: {error}")

        if not seen_rows:
            return terms, _charges_from(connection, 0)
        last = seen_rows[-1]
        query = "SELECT COUNT(*) FROM charges WHERE number <= ?"
        (n_rows,) = connection.execute(query, (last["number"],)).fetchone()
        rows = _charges_from(connection, last["number"])
        if n_rows != len(seen_rows) or rows[:1] != [last]:
            return terms, _charges_from(connection, 0)
        return terms, seen_rows + rows[1:]

    def _checked_contents(self, connection):
        """The contents, if the file has the data set and charges that it had before."""
        # Taken before the file is read: other threads may charge meanwhile.
        seen_rows = self._seen_rows
        terms, rows = self._contents(connection, seen_rows)
        _check_terms(terms, Terms(self._dataset_name), self.path)
        has_last = len(rows) >= len(seen_rows)
        if seen_rows and has_last and rows[len(seen_rows) - 1] is seen_rows[-1]:
            self._seen_rows = rows
            return terms, rows
        first_rows = rows[: len(seen_rows)]
        if [*map(_identity, first_rows)] != [*map(_identity, seen_rows)]:
            raise RuntimeError(
                f"the ledger's file must hold the {len(seen_rows)} charges that it "
                f"held before: {self.path!r} was restored from a backup or made anew, "
                "and its budget would be spent twice. Put the latest file back, or "
                "make a new Ledger."
            )
        self._seen_rows = rows
        return terms, rows


def _charges_from(connection, number):
    """The charges from a number on, as dictionaries."""
    query = "SELECT * FROM charges WHERE number >= ? ORDER BY number"
    return [dict(row) for row in connection.execute(query, (number,))]
