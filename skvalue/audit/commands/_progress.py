"""How far a fit is, and how long it takes, as a line on the standard error."""

import sys
from time import monotonic

from ..._utils.duration import LONG, duration

_SURE = 3  # seconds of work, before which none is
_OFTEN = 0.5  # seconds between two lines on a terminal


class _Line:
    """A callback: announces a fit of more than a minute, and shows its steps on a
    terminal."""

    def setup(self, estimator, context):
        """Start the clock."""
        self._start, self._done, self._announced, self._last = (
            monotonic(),
            0,
            False,
            0.0,
        )

    def on_fit_task_begin(self, estimator, context):
        """Do nothing: steps count when they end."""

    def on_fit_task_end(self, estimator, context):
        """Count a step; the first one, which may compile loops, says nothing on the
        others."""
        n = context.parent.max_subtasks if context.parent is not None else None
        if not n:
            return
        self._done, now = self._done + 1, monotonic()
        if self._done == 1:
            self._first = now
            return
        left = (now - self._first) / (self._done - 1) * max(n - self._done, 0)
        elapsed = now - self._start
        if elapsed > _SURE and elapsed + left > LONG and not self._announced:
            self._announced = True
            print(f"This takes about {duration(elapsed + left)}.", file=sys.stderr)
        if sys.stderr.isatty() and elapsed - self._last > _OFTEN:
            self._last = elapsed
            line = f"{100 * self._done // n} %, about {duration(left)} left"
            print(f"\r{line:<40}", end="", file=sys.stderr, flush=True)

    def teardown(self, estimator, context):
        """Clear the line."""
        if self._last:
            print(f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


def watched(estimator):
    """The estimator, with a line on its progress if it takes callbacks."""
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(_Line())
    return estimator
