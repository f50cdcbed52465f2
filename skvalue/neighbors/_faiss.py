"""The FAISS engine: flat k-nearest and range search. Importing this imports faiss.

FAISS computes in float32, whatever X is; what that leaves open is decided from the rows in float64.
A k-nearest search is made for few ranks: with `max_rank` it is quick, without it slow.
"""

from threading import Lock

import faiss
import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from ._exact import HEAD, count_ranked, hand_on, pair_keys, settle
from ._rows import read_rows
from ._space import COSINE, GENERIC, JUDGES, Labels, ball_rule

_LOCK = Lock()  # one search at a time: faiss spreads it over threads by itself
_GPU_RANKS = 2048  # the most neighbours that a search on a GPU returns


def check_device(device):
    """Return where faiss works: "cuda" or "cpu".

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        "auto" is "cuda" where faiss sees a GPU.

    Returns
    -------
    device : {"cpu", "cuda"}
        The device.

    Raises
    ------
    ValueError
        If device is "cuda" and faiss sees no GPU.
    """
    if device == "cpu":  # to ask for a GPU starts CUDA, which then fails in a fork of this process
        return "cpu"
    seen = faiss.get_num_gpus() > 0 if hasattr(faiss, "get_num_gpus") else False
    if device == "cuda" and not seen:
        raise ValueError(
            "device='cuda' needs a GPU that faiss sees (pip install 'skvalue[gpu]'). Got none: "
            "pass device='cpu'."
        )
    return "cuda" if seen else "cpu"


def make_engine(device):
    """Return the engine on a device, see `check_device`."""
    return FaissEngine(check_device(device))


class FaissEngine:
    """Exact ranks and balls by FAISS.

    Parameters
    ----------
    device : {"cpu", "cuda"}
        Where k-nearest searches run. Range searches run on the CPU.
    """

    Strips = Labels
    name = "faiss"

    def __init__(self, device):
        self.device = device

    def rank_tile_size(self, n_players, n_judges, n_features, workers, max_rank):
        """Judges of one task of `rank_values`; one of their ranks takes up to 48 bytes."""
        room = get_config()["working_memory"] * 2**20 // 384
        return int(max(1, min(n_judges, room // min(n_players, max_rank + 2))))

    def ball_tile_size(self, n_players, n_judges, workers):
        """Judges of one task of `ball_values`; a pair in a ball takes up to 48 bytes."""
        return self.rank_tile_size(n_players, n_judges, 0, workers, n_players)

    def _build(self, vectors, kind):
        """Index of the players."""
        index = (faiss.IndexFlatIP if kind == COSINE else faiss.IndexFlatL2)(vectors.shape[1])
        index.add(vectors)
        return index

    def _make(self, space, on_gpu):
        if space.kind == GENERIC:
            raise ValueError(
                f"metric must be 'cosine' or 'euclidean' for engine={self.name!r}. Got "
                f"{space.metric!r}."
            )
        with np.errstate(over="ignore"):
            rows = space.work * space.scale[:, None] if space.kind == COSINE else space.work
            vectors = np.ascontiguousarray(rows, dtype=np.float32)
        self._check(vectors, "X")
        index = self._build(vectors, space.kind)
        if on_gpu:
            index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        return index

    def _check(self, vectors, name):
        with np.errstate(over="ignore"):
            if np.isfinite(np.vecdot(vectors, vectors)).all():
                return
        raise ValueError(
            f"{name} must have squared norms that fit float32 for engine={self.name!r}. Scale it, "
            "or pass engine='numba'."
        )

    def _queries(self, queries):
        with np.errstate(over="ignore"):
            queries = np.ascontiguousarray(queries, dtype=np.float32)
        self._check(queries, JUDGES)
        return queries

    def _index(self, space, on_gpu=False):
        name = f"{self.name} {'gpu' if on_gpu else 'cpu'}"
        return space.buffers.hold(name, lambda: self._make(space, on_gpu))

    def _index_for(self, space, k):
        """The index that finds so many neighbours."""
        return self._index(space, self.device == "cuda" and k <= _GPU_RANKS)

    def _search(self, space, queries, k):
        """Keys that grow with the distance, and players, (n_judges, k)."""
        index = self._index_for(space, k)
        found, order = index.search(self._queries(queries), k)
        return (-found if space.kind == COSINE else found / 2), order

    @staticmethod
    def _tolerance(space):
        """How far keys in float32 are rounded, and the rank from which that makes ties."""
        eps = float(np.finfo(np.float32).eps)
        if space.X.dtype == np.float32:
            return 4.0 * eps, HEAD
        return eps * (8.0 + np.sqrt(space.X.shape[1])), len(space)

    def rank_values(self, space, Q, own, max_rank, consume):
        """Rank the players for every judge of a tile, see `_numba.rank_values`."""
        Q = read_rows(Q)
        queries, query_half = space.queries(Q)
        n = len(space)
        own = np.full(len(Q), -1) if own is None else own
        tolerance, head = self._tolerance(space)
        waiting = [(np.arange(len(Q)), min(n, max_rank + 2))]
        while waiting:
            lines, n_asked = waiting.pop()
            size = self.rank_tile_size(n, len(Q), 0, 1, n_asked - 2)
            if len(lines) > size:
                waiting += [(lines[part], n_asked) for part in reversed(tiles(len(lines), size))]
                continue
            keys, order = self._ranked(space, queries[lines], own[lines], n_asked)
            if n_asked < n:
                gap, keys, order = keys[:, -1] - keys[:, -2], keys[:, :-1], order[:, :-1]
                sizes = 1.0
                if space.kind != COSINE:
                    sizes = space.half[order[:, -1]] + query_half[lines]
                ended = gap > tolerance * sizes  # else players behind the last may be tied with it
                if not ended.all():
                    waiting.append((lines[~ended], min(n, 2 * n_asked)))
                lines, keys, order = lines[ended], keys[ended], order[ended]
            with np.errstate(invalid="ignore"):  # inf - inf behind the last player
                tied = settle(space, Q[lines], query_half[lines], keys, order, tolerance, head)
            n_ranked = count_ranked(tied, min(max_rank, tied.shape[1]))
            n_ranked = np.minimum(n_ranked, n - (own[lines] >= 0))
            order = np.where(tied, ~order, order).astype(np.int32)
            hand_on(consume, lines, order, n_ranked)

    def _ranked(self, space, queries, own, n_asked):
        """Sorted keys and players, the judge's own row behind all others."""
        with _LOCK:
            keys, order = self._search(space, queries, n_asked)
        keys[order == own[:, None]] = np.inf
        place = np.argsort(keys, axis=1, kind="stable")
        return np.take_along_axis(keys, place, axis=1), np.take_along_axis(order, place, axis=1)

    def ball_values(self, space, strips, Q, radius, own, weigh):
        """Sum the weights of the balls that each player is in, see `_numba.ball_values`."""
        Q = read_rows(Q)
        n_judges, n_classes = len(Q), strips.n_classes
        index = self._index(space)
        queries, _, slack, limit = ball_rule(space, Q, radius)
        queries = self._queries(queries)
        tolerance = float(np.finfo(np.float32).eps) * (8.0 + Q.shape[1])
        slack = slack * (tolerance / space.ball_tolerance)
        reach = slack.max() + tolerance * space.largest_half + 1e-30
        with _LOCK:
            if space.kind == COSINE:
                starts, found, i = index.range_search(queries, 1.0 - radius - 2 * reach)
            else:
                starts, found, i = index.range_search(queries, radius**2 + 4 * reach)
        v = np.repeat(np.arange(n_judges), np.diff(starts).astype(np.int64))
        excess = found - (1.0 - radius) if space.kind == COSINE else (radius**2 - found) / 2
        near = slack[v] + tolerance * space.half[i]
        inside = excess >= near
        open_ = np.flatnonzero((excess >= -near) & ~inside)
        inside[open_] = pair_keys(space, i[open_], Q, v[open_]) <= limit
        if own is not None:
            inside &= i != own[v]
        i, v = i[inside], v[inside]
        place = strips.labels[i] * n_judges + v
        counts = np.bincount(place, minlength=n_classes * n_judges)
        weights = np.asarray(weigh(counts.reshape(n_classes, n_judges)), dtype=np.float64)
        values = np.bincount(i, weights=weights.ravel()[place], minlength=len(space))
        return values, counts.reshape(n_classes, n_judges)
