"""How far a fit is, and how long it takes, as a line on the standard error."""

import sys
from time import monotonic

from ..._utils.duration import LONG, duration

# Nothing is said before a tenth of the steps, or, of a long fit, these seconds of work.
_SURE_FRACTION = 0.1
_SURE = 30
_SHORT = 5  # seconds: steps of shorter fits are not shown
_OFTEN = 0.5  # seconds between two lines on a terminal


class _Line:
    """A callback that announces fits of more than ten seconds, and shows their steps.

    Steps are shown on a terminal alone.
    """

    def setup(self, estimator, context):
        """Start the clock."""
        self._start = monotonic()
        self._n_done = 0
        self._is_announced = False
        self._last_shown = 0.0  # seconds since the start

    def on_fit_task_begin(self, estimator, context):
        """Do nothing: steps count when they end."""

    def on_fit_task_end(self, estimator, context):
        """Count a step, and say how many are left."""
        n_steps = None
        if context.parent is not None:
            n_steps = context.parent.max_subtasks
        if not n_steps:
            return
        now = monotonic()
        self._n_done += 1

        # The first step may import modules: it says nothing about the others.
        if self._n_done == 1:
            self._first_end = now
            return
        seconds_per_step = (now - self._first_end) / (self._n_done - 1)
        remaining = seconds_per_step * max(n_steps - self._n_done, 0)
        elapsed = now - self._start
        is_sure = self._n_done >= _SURE_FRACTION * n_steps or elapsed > _SURE
        is_long = is_sure and elapsed + remaining > LONG
        if is_long and not self._is_announced:
            self._is_announced = True
            seconds = duration(elapsed + remaining)
            print(f"This takes about {seconds}.", file=sys.stderr)
        is_shown = sys.stderr.isatty() and elapsed + remaining > _SHORT
        if is_shown and elapsed - self._last_shown > _OFTEN:
            self._last_shown = elapsed
            percentage = 100 * self._n_done // n_steps
            line = f"{percentage} %, about {duration(remaining)} left"
            print(f"\r{line:<40}", end="", file=sys.stderr, flush=True)

    def teardown(self, estimator, context):
        """Clear the line."""
        if self._last_shown:
            print(f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


def watched(estimator):
    """The estimator, with a line on its progress if it takes callbacks."""
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(_Line())
    return estimator
