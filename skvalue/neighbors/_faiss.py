"""The FAISS engines on a CPU, and the approximate one. Importing this imports faiss.

FAISS computes in float32, whatever the dtype of X; near-ties are resolved from the rows
in float64. A k-nearest search is meant for few ranks: it is fast with `max_rank` and
slow without. "faiss" has a flat index and is exact. "faiss-ivf" has an inverted file:
rows are grouped around centres, and a point is compared with the rows of the nearest
groups only. Neighbours near the edge of another group may be missed; ranks among the
rows found are exact.
"""

from contextlib import nullcontext
from threading import Lock
from typing import NamedTuple

import faiss
import numpy as np
from sklearn import get_config

from ._ball_rule import ball_rule
from ._block_balls import BlockBalls
from ._exact import EXACT_RANKS, pair_keys, ranked
from ._norms import check_narrow_norms
from ._rows import read_rows
from ._space import POINTS, Space
from ._whole_tile import WholeTile
from .kernels.kinds import COSINE, EUCLIDEAN

# One search at a time, since faiss runs each in several threads.
_LOCK = Lock()

# Largest number of neighbours that a search on a GPU returns.
_GPU_RANKS = 2048

# One in 8 groups is searched, and at least 16.
_PROBED = 8

# faiss wants that many rows in a group.
_ROWS_PER_GROUP = 39

_EPS = float(np.finfo(np.float32).eps)


def make_engine(name, device):
    """Return the engine "faiss" or "faiss-ivf" on a device.

    "auto" is the GPU if FAISS is built for GPUs and finds one.
    """
    # Looking for a GPU starts CUDA, which then fails in forked processes.
    if device == "auto":
        has_gpu = hasattr(faiss, "get_num_gpus") and faiss.get_num_gpus() > 0
        device = "cuda" if has_gpu else "cpu"
    if device == "cpu":
        return FaissEngine(name, "cpu")

    try:
        from ._faiss_gpu import check_card, make_gpu_engine
    except ImportError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"engine={name!r} with device='cuda' needs torch, which is not installed: "
            "pip install 'skvalue[gpu]'",
            name="torch",
        ) from error
    if name == "faiss":
        return make_gpu_engine()
    check_card()
    return FaissEngine(name, "cuda")


class FaissEngine:
    """Ranks and balls by a FAISS index on the CPU; approximate ranks also on a GPU."""

    # Whether ranks and balls stay on a device.
    keeps_on_device = False

    # Memory of the result of `balls`.
    bytes_per_pair = 1 / 8

    # Largest number of groups that a GPU searches.
    max_gpu_groups = 2048

    def __init__(self, name, device):
        self.name = name
        self.device = device

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`; a rank takes up to 48 bytes."""
        room = get_config()["working_memory"] * 2**20 // 384
        return int(max(1, min(n_points, room // min(n_rows, max_rank + 2))))

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`; a pair takes up to 48 bytes."""
        return self.rank_tile_size(n_rows, n_points, 0, workers, n_rows)

    def device_lock(self):
        """Context manager of one task; only searches wait for each other."""
        return nullcontext()

    def halving(self, n_points):
        """A tile of points, which is not halved: see `DeviceEngine.halving`."""
        return WholeTile(n_points)

    def _vectors(self, rows, name):
        """Rows or points in float32."""
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(rows, dtype=np.float32)
            if np.isfinite(np.vecdot(vectors, vectors)).all():
                return vectors
        raise ValueError(
            f"{name} must have squared norms that fit float32 for "
            f"engine={self.name!r}. Scale it, or pass engine='native'."
        )

    def _make_index(self, space):
        """The index of the rows of a space."""
        rows = space.work
        if space.kind == COSINE:
            rows = rows * space.scale[:, None]
        vectors = self._vectors(rows, "X")
        metric = faiss.METRIC_INNER_PRODUCT if space.kind == COSINE else faiss.METRIC_L2
        if self.name == "faiss":
            index = faiss.index_factory(vectors.shape[1], "Flat", metric)
        else:
            n_groups = self._n_groups(len(space))
            index = faiss.index_factory(vectors.shape[1], f"IVF{n_groups},Flat", metric)
        index.train(vectors)
        index.add(vectors)
        if self.name != "faiss":
            index.nprobe = min(n_groups, max(16, n_groups // _PROBED))
        if self.device == "cuda":
            from ._faiss_gpu import resources, working_bytes

            index = faiss.index_cpu_to_gpu(resources(0, working_bytes()), 0, index)
        return index

    def _n_groups(self, n):
        """Number of groups of n rows."""
        n_groups = min(4 * np.sqrt(n), n // _ROWS_PER_GROUP)
        if self.device == "cuda":
            n_groups = min(n_groups, self.max_gpu_groups)
        return int(max(1, n_groups))

    def _index(self, space):
        """The index of a space, which is made once."""
        cached = space.buffers.cached
        key = f"{self.name} {self.device}"
        with space.buffers.lock:
            if key not in cached:
                cached[key] = self._make_index(space)
        return cached[key]

    def search(self, space, queries, k):
        """Keys, which increase with the distance, and rows, both (n_points, k)."""
        if self.device == "cuda" and k > _GPU_RANKS:
            raise ValueError(
                f"max_rank must be at most {_GPU_RANKS - 2} for "
                f"engine={self.name!r} on a GPU, whose searches return "
                f"{_GPU_RANKS} rows, or more rows are tied. Got a search of {k}: pass "
                "a smaller max_rank, or device='cpu'."
            )
        index = self._index(space)
        queries = self._vectors(queries, POINTS)
        scores, order = index.search(queries, k)

        # With fewer than k rows in the groups searched, all groups are.
        lines = np.flatnonzero((order < 0).any(axis=1))
        if len(lines):
            n_probed = index.nprobe
            index.nprobe = index.nlist
            try:
                scores[lines], order[lines] = index.search(queries[lines], k)
            finally:
                index.nprobe = n_probed
        return (-scores if space.kind == COSINE else scores / 2), order

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        points = read_rows(points)
        queries, query_half = space.queries(points)
        n = len(space)
        left_out = np.full(len(points), -1) if self_index is None else self_index

        # Rounding error of float32 keys, and the rank from which near-ties count as
        # ties.
        tolerance = 4.0 * _EPS
        head = EXACT_RANKS
        if space.X.dtype != np.float32:
            if space.kind == EUCLIDEAN:
                largest_half = {
                    "X": space.largest_half,
                    POINTS: float(np.max(query_half, initial=0.0)),
                }
                check_narrow_norms(largest_half, np.float32, self.name)
            tolerance = _EPS * (8.0 + np.sqrt(space.X.shape[1]))
            head = n
        yield from ranked(
            space,
            points,
            query_half,
            search=IndexSearch(self, space, queries, left_out),
            absent=left_out >= 0,
            max_rank=n if max_rank is None else max_rank,
            tolerance=tolerance,
            head=head,
        )

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        if self.name != "faiss":
            raise ValueError(
                f"engine={self.name!r} only ranks neighbours: it may miss rows of a "
                "ball, and the error of their counts has no bound."
            )
        points = read_rows(points)
        n_points = len(points)
        index = self._index(space)
        rule = ball_rule(space, points, radius)
        queries = self._vectors(rule.queries, POINTS)

        # Candidates are all rows that float32 products cannot rule out.
        tolerance = _EPS * (8.0 + points.shape[1])
        point_slack = rule.slack * (tolerance / space.ball_tolerance)
        largest_slack = point_slack.max() + tolerance * space.largest_half + 1e-30
        if space.kind == COSINE:
            search_limit = 1.0 - radius - 2 * largest_slack
        else:
            search_limit = radius**2 + 4 * largest_slack
        with _LOCK:
            starts, scores, i = index.range_search(queries, search_limit)
        v = np.repeat(np.arange(n_points), np.diff(starts).astype(np.int64))

        # Where rounding may decide, the exact keys do.
        if space.kind == COSINE:
            excess = scores - (1.0 - radius)
        else:
            excess = (radius**2 - scores) / 2
        slack = point_slack[v] + tolerance * space.half[i]
        inside = excess >= slack
        pairs = np.flatnonzero((excess >= -slack) & ~inside)
        inside[pairs] = pair_keys(space, i[pairs], points, v[pairs]) <= rule.limit
        if self_index is not None:
            inside &= i != self_index[v]

        mask = np.zeros((len(space), n_points), dtype=bool)
        mask[i[inside], v[inside]] = True
        neighbours = BlockBalls(space, n_points)
        neighbours.bits[:] = 0
        neighbours.add(slice(None), mask)
        return neighbours


class IndexSearch(NamedTuple):
    """The nearest rows of points, by an index; those that are left out come last."""

    engine: FaissEngine
    space: Space
    queries: np.ndarray
    left_out: np.ndarray

    def size(self, k):
        """Number of points at a time."""
        return int(self.space.budget // (12 * k))

    def nearest(self, lines, k):
        """Sorted keys and rows, (n_lines, k)."""
        with _LOCK:
            keys, order = self.engine.search(self.space, self.queries[lines], k)
        keys[order == self.left_out[lines, None]] = np.inf
        place = np.argsort(keys, axis=1, kind="stable")
        keys = np.take_along_axis(keys, place, axis=1)
        return keys, np.take_along_axis(order, place, axis=1)
