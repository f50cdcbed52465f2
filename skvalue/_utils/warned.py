"""Warnings at the line of the user's call, and warnings of an estimator's fits, counted.

A fit may train an estimator thousands of times, each time with the same warning. Such warnings are
counted by kind (category and line of code), in threads and processes too, and issued once.
"""

import inspect
import sys
import textwrap
import warnings
from contextlib import contextmanager
from threading import Lock, get_ident

from .parallel import joblib_map

_INSIDE = {"skvalue", "sklearn", "joblib", "contextlib"}
_LONGEST = 200  # characters of a warning's text that are repeated


def warn(message, category=UserWarning):
    """Issue a warning at the line outside of this library that led here."""
    frame, level = inspect.currentframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_all(found):
    """Issue warnings, pairs of message and category; filters may turn them into errors.

    All are issued before the first error is raised, to which the others are added as notes.
    """
    errors = []
    for message, category in found:
        try:
            warn(message, category)
        except Warning as error:
            errors.append(error)
    for other in errors[1:]:
        errors[0].add_note(f"{type(other).__name__}: {other}")
    if errors:
        raise errors[0]


class _Counter:
    """Counts the warnings of the threads that fit models; those of other threads are shown.

    `warnings` has one state per process. The first context that is entered changes it, the last
    one that is left restores it.
    """

    def __init__(self):
        self._lock, self._users, self._by_thread = Lock(), 0, {}
        self._context, self._former = None, warnings.showwarning

    @contextmanager
    def ready(self):
        """Context in which no warning of a thread that counts is shown, or raised as an error.

        A warning that filters ignore is not counted.
        """
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._context = warnings.catch_warnings()
                self._context.__enter__()
                if warnings.showwarning != self._show:
                    self._former, warnings.showwarning = warnings.showwarning, self._show
                warnings.filters[:] = [
                    ("ignore" if action == "ignore" else "always", *rule)
                    for action, *rule in warnings.filters
                ]
                warnings.simplefilter("always", append=True)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._context.__exit__(None, None, None)

    @contextmanager
    def counting(self):
        """Context that yields the counts of this thread's warnings: kind -> [count, text]."""
        thread, found = get_ident(), {}
        with self.ready():
            outer = self._by_thread.get(thread)
            self._by_thread[thread] = found
            try:
                yield found
            finally:
                del self._by_thread[thread]
                if outer is not None:
                    self._by_thread[thread] = outer

    def of_this_thread(self):
        """The counts of the innermost context of this thread, or None."""
        return self._by_thread.get(get_ident())

    def _show(self, message, category, filename, lineno, file=None, line=None):
        found = self.of_this_thread()
        if found is None:
            self._former(message, category, filename, lineno, file, line)
        else:
            kind = _common(category), filename, lineno
            add_counts(found, {kind: [1, str(message)]})


def _common(category):
    """The category, or its first base class that other processes know and that takes a text."""
    for kind in category.__mro__:
        if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind:
            try:
                kind("")
            except TypeError:
                continue
            return kind


_counter = _Counter()
counted_warnings, ready_to_count = _counter.counting, _counter.ready  # context managers


def add_counts(found, more):
    """Add counts to ``found``."""
    for kind, (count, text) in more.items():
        found.setdefault(kind, [0, text])[0] += count


def counted(function, *task):
    """``function(*task)``, and the counts of its warnings."""
    with counted_warnings() as found:
        result = function(*task)
    return result, found


def counted_map(function, tasks, n_jobs, found):
    """As `joblib_map`, for functions that fit models: their warnings are added to ``found``."""
    with ready_to_count():  # before the tasks, which take over the filters of this thread
        for result, more in joblib_map(counted, ((function, *task) for task in tasks), n_jobs):
            add_counts(found, more)
            yield result


def summaries(found):
    """One warning per kind, as pairs of message and category."""
    return [
        (
            textwrap.shorten(text, _LONGEST)
            + (f" [{count} times in fits of the estimator]" if count > 1 else ""),
            category,
        )
        for (category, _, _), (count, text) in found.items()
    ]


def tell(found):
    """Add counts to those of the caller that counts in this thread, or issue them as warnings."""
    outer = _counter.of_this_thread()
    if outer is None:
        warn_all(summaries(found))
    else:
        add_counts(outer, found)
