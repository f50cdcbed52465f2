"""Storage of the entries of a ledger, in memory or in an SQLite file."""

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

_TIMEOUT = 300.0  # seconds to wait while another process charges
_TABLES = (
    "CREATE TABLE IF NOT EXISTS terms (dataset_name TEXT NOT NULL, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, relation TEXT)",
    "CREATE TABLE IF NOT EXISTS charges (number INTEGER PRIMARY KEY, event TEXT NOT NULL, "
    "label TEXT NOT NULL, time TEXT NOT NULL, process INTEGER NOT NULL)",
)


def _check_terms(stored, given, where):
    """Check the terms that a ledger is opened with against those it was made with."""
    if stored["dataset_name"] != given["dataset_name"]:
        raise ValueError(
            f"dataset_name must be {stored['dataset_name']!r}, to which the ledger {where} "
            f"belongs; use another file for another data set. Got {given['dataset_name']!r}."
        )
    for name in ("epsilon", "delta", "relation"):
        if given[name] is not None and given[name] != stored[name]:
            raise ValueError(
                f"{name} must be {stored[name]!r}, as the ledger {where} was made with, or be left "
                f"out: a budget does not change. Got {given[name]!r}."
            )
    return stored


def _require_budget(terms):
    for name in ("epsilon", "delta"):
        if terms[name] is None:
            raise ValueError(f"{name} must be given for a new ledger: it is the budget. Got None.")


class MemoryStore:
    """Entries in memory, for a single process."""

    path = None

    def __init__(self, process=...):
        self._process = os.getpid() if process is ... else process
        self._rows = []

    def usable(self):
        return self._process == os.getpid()

    def open(self, terms):
        _require_budget(terms)
        self._terms = terms
        return terms

    def read(self):
        return dict(self._terms), list(self._rows)

    @contextmanager
    def transaction(self):
        def append(event, label, time, process, relation):
            self._terms["relation"] = relation
            row = {"number": len(self._rows) + 1, "event": event, "label": label}
            self._rows.append({**row, "time": time, "process": process})
            return row["number"]

        yield (*self.read(), append)


class FileStore:
    """Entries in an SQLite file; every operation opens a new connection."""

    def __init__(self, path, dataset_name):
        self.path = path
        self._dataset_name = dataset_name

    def usable(self):
        return True

    def _connect(self, mode="rw"):
        """Connect; only mode "rwc" creates a missing file, which is a new budget."""
        try:
            connection = sqlite3.connect(
                f"{Path(self.path).as_uri()}?mode={mode}",
                timeout=_TIMEOUT,
                isolation_level=None,
                uri=True,
            )
        except sqlite3.OperationalError as error:
            raise RuntimeError(
                f"the ledger's file must be there to charge or read: put {self.path!r} back, or "
                f"make a new Ledger. Got {error}."
            ) from error
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous=FULL")  # a commit is on the disk when it returns
        return connection

    @contextmanager
    def _begin(self, mode="rw"):
        """A connection inside a transaction that excludes all other writers."""
        with closing(self._connect(mode)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def open(self, terms):
        if not os.path.exists(self.path):
            _require_budget(terms)
        try:
            return self._open(terms)
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"path must be a ledger's SQLite file, or a path for a new one. Got {self.path!r} "
                f"({error})."
            ) from error

    def _open(self, terms):
        with self._begin("rwc") as connection:
            for table in _TABLES:
                connection.execute(table)
            stored = connection.execute("SELECT * FROM terms").fetchone()
            if stored is not None:
                return _check_terms(dict(stored), terms, self.path)
            _require_budget(terms)
            connection.execute(
                "INSERT INTO terms VALUES (:dataset_name, :epsilon, :delta, :relation)", terms
            )
            return terms

    def _contents(self, connection):
        terms = connection.execute("SELECT * FROM terms").fetchone()
        given = {"dataset_name": self._dataset_name, "epsilon": None, "delta": None}
        _check_terms(dict(terms), {**given, "relation": None}, self.path)
        rows = connection.execute("SELECT * FROM charges ORDER BY number").fetchall()
        return dict(terms), [dict(row) for row in rows]

    def read(self):
        with closing(self._connect()) as connection:
            connection.execute("BEGIN")
            return self._contents(connection)

    @contextmanager
    def transaction(self):
        with self._begin() as connection:

            def append(event, label, time, process, relation):
                connection.execute("UPDATE terms SET relation = ?", (relation,))
                cursor = connection.execute(
                    "INSERT INTO charges (event, label, time, process) VALUES (?, ?, ?, ?)",
                    (event, label, time, process),
                )
                return cursor.lastrowid

            yield (*self._contents(connection), append)
