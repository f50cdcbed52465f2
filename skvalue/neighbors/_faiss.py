"""The FAISS engines: k-nearest and range search. Importing this imports faiss.

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

from ._block_balls import BlockBalls
from ._exact import EXACT_RANKS, pair_keys, ranked
from ._rows import read_rows
from ._space import POINTS, Space, ball_rule
from .kernels.kinds import COSINE

_LOCK = Lock()  # one search at a time, since faiss runs each in several threads
_GPU_RANKS = 2048  # largest number of neighbours that a search on a GPU returns
_EPS = float(np.finfo(np.float32).eps)
_PROBED = 8  # one in 8 groups is searched, and at least 16


def check_device(device):
    """Return "cuda" or "cpu"; "auto" is "cuda" if faiss finds a GPU."""
    if (
        device == "cpu"
    ):  # looking for a GPU starts CUDA, which then fails in forked processes
        return "cpu"
    seen = faiss.get_num_gpus() > 0 if hasattr(faiss, "get_num_gpus") else False
    if device == "cuda" and not seen:
        raise ValueError(
            "device='cuda' needs a GPU that faiss sees (pip install 'skvalue[gpu]'). Got none: "
            "pass device='cpu'."
        )
    return "cuda" if seen else "cpu"


def make_engine(name, device):
    """Return the engine "faiss" or "faiss-ivf" on a device, see `check_device`."""
    return FaissEngine(name, check_device(device))


class FaissEngine:
    """Ranks and balls by a FAISS index.

    K-nearest searches run on ``device``, range searches on the CPU.
    """

    bytes_per_pair = 1 / 8  # kept by `balls`
    most_gpu_groups = 2048  # that a GPU searches

    def __init__(self, name, device):
        self.name, self.device = name, device

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`; each of their ranks takes up to 48
        bytes."""
        room = get_config()["working_memory"] * 2**20 // 384
        return int(max(1, min(n_points, room // min(n_rows, max_rank + 2))))

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`; a pair takes up to 48 bytes."""
        return self.rank_tile_size(n_rows, n_points, 0, workers, n_rows)

    def device_lock(self):
        """Context manager of one task: tasks run in parallel, their searches one after
        another."""
        return nullcontext()

    def _vectors(self, rows, name):
        """Rows or points in float32."""
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(rows, dtype=np.float32)
            if np.isfinite(np.vecdot(vectors, vectors)).all():
                return vectors
        raise ValueError(
            f"{name} must have squared norms that fit float32 for engine={self.name!r}. Scale it, "
            "or pass engine='numba'."
        )

    def _make(self, space, on_gpu):
        rows = space.work * space.scale[:, None] if space.kind == COSINE else space.work
        vectors, n = self._vectors(rows, "X"), len(space)
        most = self.most_gpu_groups if self.device == "cuda" else n
        n_groups = int(
            max(1, min(4 * np.sqrt(n), n // 39, most))
        )  # faiss wants 39 rows per group
        index = faiss.index_factory(
            vectors.shape[1],
            "Flat" if self.name == "faiss" else f"IVF{n_groups},Flat",
            faiss.METRIC_INNER_PRODUCT if space.kind == COSINE else faiss.METRIC_L2,
        )
        index.train(vectors)
        index.add(vectors)
        if self.name != "faiss":
            index.nprobe = min(n_groups, max(16, n_groups // _PROBED))
        if on_gpu:
            index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        return index

    def _index(self, space, on_gpu=False):
        cached, name = space.buffers.cached, f"{self.name} {'gpu' if on_gpu else 'cpu'}"
        with space.buffers.lock:
            if name not in cached:
                cached[name] = self._make(space, on_gpu)
        return cached[name]

    def search(self, space, queries, k):
        """Keys, which increase with the distance, and rows, both of shape (n_points,
        k)."""
        index = self._index(space, self.device == "cuda" and k <= _GPU_RANKS)
        queries = self._vectors(queries, POINTS)
        found, order = index.search(queries, k)
        short = np.flatnonzero((order < 0).any(axis=1))
        if len(short):  # fewer than k rows in the groups searched: search all groups
            probed, index.nprobe = index.nprobe, index.nlist
            try:
                found[short], order[short] = index.search(queries[short], k)
            finally:
                index.nprobe = probed
        return (-found if space.kind == COSINE else found / 2), order

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        points, n = read_rows(points), len(space)
        queries, query_half = space.queries(points)
        left_out = np.full(len(points), -1) if self_index is None else self_index
        # Rounding error of float32 keys, and the rank from which near-ties count as
        # ties.
        tolerance, head = 4.0 * _EPS, EXACT_RANKS
        if space.X.dtype != np.float32:
            tolerance, head = _EPS * (8.0 + np.sqrt(space.X.shape[1])), n
        yield from ranked(
            space, points, query_half, IndexSearch(self, space, queries, left_out), left_out >= 0,
            n if max_rank is None else max_rank, tolerance, head,
        )  # fmt: skip

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        if self.name != "faiss":  # counts would be wrong without a bound
            raise ValueError(
                f"engine={self.name!r} only ranks neighbours: it needs max_rank."
            )
        points = read_rows(points)
        n_points, index = len(points), self._index(space)
        queries, _, slack, limit = ball_rule(space, points, radius)
        queries = self._vectors(queries, POINTS)
        tolerance = _EPS * (8.0 + points.shape[1])
        slack = slack * (tolerance / space.ball_tolerance)
        reach = slack.max() + tolerance * space.largest_half + 1e-30
        with _LOCK:
            if space.kind == COSINE:
                starts, keys, i = index.range_search(queries, 1.0 - radius - 2 * reach)
            else:
                starts, keys, i = index.range_search(queries, radius**2 + 4 * reach)
        v = np.repeat(np.arange(n_points), np.diff(starts).astype(np.int64))
        excess = (
            keys - (1.0 - radius) if space.kind == COSINE else (radius**2 - keys) / 2
        )
        near = slack[v] + tolerance * space.half[i]
        inside = excess >= near
        open_ = np.flatnonzero((excess >= -near) & ~inside)
        inside[open_] = pair_keys(space, i[open_], points, v[open_]) <= limit
        if self_index is not None:
            inside &= i != self_index[v]
        found = BlockBalls(space, n_points)
        found.bits[:] = 0
        mask = np.zeros((len(space), n_points), dtype=bool)
        mask[i[inside], v[inside]] = True
        found.add(slice(None), mask)
        return found


class IndexSearch(NamedTuple):
    """The nearest rows of points, by an index; the row that a point leaves out comes
    last."""

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
        return np.take_along_axis(keys, place, axis=1), np.take_along_axis(
            order, place, axis=1
        )
