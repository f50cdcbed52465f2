"""Scratch arrays that tasks reuse."""

from collections import defaultdict
from threading import Lock


class Buffers:
    """Scratch arrays that tasks reuse, and what is computed once for all of them.

    Allocating memory takes longer than the product in it. `take` and `give` keep one
    set of arrays for each task that runs at the same time. ``cached``, filled under the
    lock, is for an index or a copy on a device. No content is pickled.
    """

    def __init__(self):
        self.cached = {}
        self.lock = Lock()
        self._free = defaultdict(list)

    def take(self, kind):
        """Return a free set, or None."""
        # The pop is atomic.
        try:
            return self._free[kind].pop()
        except IndexError:
            return None

    def give(self, kind, arrays):
        """Return a set for the next task."""
        self._free[kind].append(arrays)

    def __reduce__(self):
        return Buffers, ()
