"""Storage of the entries of a ledger, in memory or in an SQLite file."""

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from operator import itemgetter
from pathlib import Path

from .._utils.checks import check_delta, check_epsilon, check_relation

_TIMEOUT = 300.0  # seconds to wait while another process charges
_PATIENCE = 2.0  # seconds to wait while another process creates the file
_APPLICATION = int.from_bytes(b"skvL")  # in the header of every ledger
_TABLES = (
    "CREATE TABLE terms (dataset_name TEXT NOT NULL, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, relation TEXT)",
    "CREATE TABLE charges (number INTEGER PRIMARY KEY, event TEXT NOT NULL, "
    "label TEXT NOT NULL, time TEXT NOT NULL, process INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
)
_who = itemgetter("number", "label", "time", "process")  # what a charge is known by


def checked_terms(terms):
    """The terms of a ledger, each as a number or a known relation; None is one that is
    not set."""
    checks = {
        "epsilon": check_epsilon,
        "delta": check_delta,
        "relation": check_relation,
    }
    known = {name: check for name, check in checks.items() if terms[name] is not None}
    return {**terms, **{name: check(terms[name]) for name, check in known.items()}}


def _check_terms(stored, given, where):
    """Check the terms that a ledger is opened with against those it was made with."""
    if given.get("dataset_name") not in (None, stored["dataset_name"]):
        raise ValueError(
            f"dataset_name must be {stored['dataset_name']!r}, to which the ledger {where} "
            f"belongs; use another file for another data set. Got {given['dataset_name']!r}."
        )
    for name in ("epsilon", "delta", "relation"):
        if given.get(name) not in (None, stored[name]):
            raise ValueError(
                f"{name} must be {stored[name]!r}, as the ledger {where} was made with, or be left "
                f"out: a budget does not change. Got {given[name]!r}."
            )
    return stored


def _require_budget(terms):
    for name in ("epsilon", "delta"):
        if terms[name] is None:
            raise ValueError(
                f"{name} must be given for a new ledger: it is the budget. Got None."
            )


class MemoryStore:
    """Entries in memory, for a single process."""

    path = None

    def __init__(self):
        self._rows = []

    def open(self, terms):
        _require_budget(terms)
        self._terms = terms
        return terms

    def read(self):
        return dict(self._terms), list(self._rows)

    @contextmanager
    def transaction(self):
        def append(row, relation):
            self._terms["relation"] = relation
            self._rows.append(row)

        yield (*self.read(), append)


class FileStore:
    """Entries in an SQLite file; every operation opens a new connection."""

    def __init__(self, path, dataset_name):
        self.path = path
        self._dataset_name = dataset_name
        self._seen = []  # charges that were read or made: a file without them is another one

    def _refuse(self, found):
        raise ValueError(
            f"path must be a ledger's SQLite file, or a path for a new one. Got {self.path!r} "
            f"({found})."
        )

    def _create(self, terms):
        """Create the file, which no other process has created; none is left on an
        error."""
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with self._begin() as connection:
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO terms VALUES (:dataset_name, :epsilon, :delta, :relation)",
                    terms,
                )
        except BaseException:
            os.remove(self.path)
            raise

    def _check_own(self):
        """Refuse a file that is no ledger, from its first bytes alone: nothing of it
        changes."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            if not os.path.isfile(self.path):  # reading a pipe would wait for ever
                self._refuse("not a file")
            with open(self.path, "rb") as file:
                header = file.read(72)
            if header or time.monotonic() > give_up:
                break
            time.sleep(0.01)
        if not header:
            self._refuse(
                "an empty file: a damaged ledger, or none; remove it if it never was one"
            )
        if header[:15] != b"SQLite format 3" or header[68:] != _APPLICATION.to_bytes(4):
            self._refuse("another kind of file")

    @contextmanager
    def _begin(self, kind="IMMEDIATE"):
        """A connection inside a transaction, which excludes all other writers if
        "IMMEDIATE".

        An error rolls it back; what SQLite finds wrong with the file is a ValueError.
        """
        try:
            with closing(sqlite3.connect(
                f"{Path(self.path).as_uri()}?mode=rw", timeout=_TIMEOUT, isolation_level=None,
                uri=True,
            )) as connection:  # fmt: skip
                connection.row_factory = sqlite3.Row
                # A commit is on the disk when it returns.
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(f"BEGIN {kind}")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._refuse(error)

    def open(self, terms):
        try:
            if not os.path.lexists(self.path):
                _require_budget(terms)
                with suppress(FileExistsError):  # if another process was faster
                    self._create(terms)
            self._check_own()
        except OSError as error:
            self._refuse(error)
        with self._begin("DEFERRED") as connection:
            stored, self._seen = self._contents(connection)
            self._dataset_name = stored["dataset_name"]
            return _check_terms(stored, terms, self.path)

    def _contents(self, connection):
        found = connection.execute("SELECT * FROM terms").fetchall()
        rows = connection.execute("SELECT * FROM charges ORDER BY number").fetchall()
        try:
            (terms,) = (checked_terms(dict(row)) for row in found)
            _require_budget(terms)
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(f"a damaged ledger: {error}")
        return terms, [dict(row) for row in rows]

    def _present(self, connection):
        """The contents, if the file still belongs to this data set and has all former
        charges."""
        seen = self._seen  # before the file is read: other threads may charge meanwhile
        terms, rows = self._contents(connection)
        _check_terms(terms, {"dataset_name": self._dataset_name}, self.path)
        if list(map(_who, rows[: len(seen)])) != list(map(_who, seen)):
            raise RuntimeError(
                f"the ledger's file must hold the {len(seen)} charges that it held before: "
                f"{self.path!r} was restored from a backup or made anew, and its budget would be "
                "spent twice. Put the latest file back, or make a new Ledger."
            )
        self._seen = rows
        return terms, rows

    def _require_file(self):
        """Refuse to make a file that was removed anew: it would be a new budget."""
        if not os.path.exists(self.path):
            raise RuntimeError(
                f"the ledger's file must be there to charge or read: put {self.path!r} back, or "
                "make a new Ledger."
            )
        self._check_own()

    def read(self):
        self._require_file()
        with self._begin("DEFERRED") as connection:
            return self._present(connection)

    @contextmanager
    def transaction(self):
        self._require_file()
        added = []
        with self._begin() as connection:

            def append(row, relation):
                connection.execute("UPDATE terms SET relation = ?", (relation,))
                connection.execute(
                    "INSERT INTO charges VALUES (:number, :event, :label, :time, :process)",
                    row,
                )
                added.append(row)

            terms, rows = self._present(connection)
            yield terms, rows, append
        self._seen = rows + added
