"""The strata and gains of all coalitions of a design; the masks are drawn again when needed."""

import numpy as np

_GROWTH = 1.5


class CoalitionLog:
    """Stratum and gain of every coalition, 9 bytes each, and the seeds and blocks they came from.

    Its first entries never change: it is read up to a number of coalitions, and written from one
    on, whatever came after it.
    """

    def __init__(self):
        self.labels, self.gains = np.zeros(0, np.int8), np.zeros(0)
        self.segments = ()  # first coalition, its block and its seed; blocks then follow in order

    def write(self, start, block, seed, labels, gains, size):
        """Write coalitions from ``start`` on, in blocks of ``size`` from ``block`` on."""
        stop = start + len(gains)
        if stop > len(self.gains):
            spare = max(stop, int(_GROWTH * len(self.gains))) - start
            self.labels = np.concatenate([self.labels[:start], np.zeros(spare, np.int8)])
            self.gains = np.concatenate([self.gains[:start], np.zeros(spare)])
        self.labels[start:stop], self.gains[start:stop] = labels, gains
        segments = tuple(segment for segment in self.segments if segment[0] < start)
        if segments:
            first, its_block, its_seed = segments[-1]
            n_blocks, rest = divmod(start - first, size)
            if not rest and (its_block + n_blocks, its_seed) == (block, seed):
                self.segments = segments
                return
        self.segments = (*segments, (start, block, seed))

    def append(self, start, other, count):
        """Write the first ``count`` coalitions of another log from ``start`` on."""
        ours = [segment for segment in self.segments if segment[0] < start]
        theirs = [(start + first, *rest) for first, *rest in other.segments if first < count]
        self.segments = (*ours, *theirs)
        self.labels = np.concatenate([self.labels[:start], other.labels[:count]])
        self.gains = np.concatenate([self.gains[:start], other.gains[:count]])

    def blocks(self, count, size):
        """Seed, number and slice of every block of the first ``count`` coalitions."""
        for (first, block, seed), (stop, *_) in zip(self.segments, [*self.segments[1:], (count,)]):
            stop = min(stop, count)
            for number, start in enumerate(range(first, stop, size)):
                yield seed, block + number, slice(start, min(start + size, stop))

    def arrays(self, count):
        """Name -> array of the first ``count`` coalitions."""
        segments = [segment for segment in self.segments if segment[0] < count]
        return {
            "labels": self.labels[:count].copy(),
            "gains": self.gains[:count].copy(),
            "blocks": np.array([segment[:2] for segment in segments], np.int64).reshape(-1, 2),
            "seeds": np.array([str(seed) for *_, seed in segments], dtype=np.str_),
        }

    @classmethod
    def of_arrays(cls, arrays):
        """The inverse of `arrays`; copies them."""
        log = cls()
        log.labels, log.gains = arrays["labels"].copy(), arrays["gains"].copy()
        log.segments = tuple(
            (first, block, int(seed))
            for (first, block), seed in zip(arrays["blocks"].tolist(), arrays["seeds"].tolist())
        )
        return log
