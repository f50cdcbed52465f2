"""The torch engine: exact ranks and balls on a CPU or a CUDA device. Importing this imports torch.

Products are float32 or float64, as X is, never half precision or TF32: what those cannot tell apart
is most of the pairs, and deciding them again costs more than the faster product saves. What a
product leaves open is decided on the CPU from the rows, in float64 (`_settle`).
"""

from contextlib import contextmanager
from threading import Lock

import numpy as np
import torch
from sklearn import get_config

from .._utils.parallel import tiles
from .._utils.torch_device import (
    block_bytes,
    current_gpu,
    find_device,
    free_memory,
    in_any_order,
    on_gpu,
    undisturbed,
)
from ._block_space import BlockSpace
from ._exact import HEAD, count_ranked, hand_on, pair_keys, run_members, settle_pairs
from ._rows import read_rows
from ._space import COSINE, EUCLIDEAN, GENERIC, Labels, ball_rule

_LOCK = Lock()  # one tile at a time: torch spreads its operations over threads by itself
_FEW_CLASSES = 32  # up to here counts and sums are matrix products


@contextmanager
def _turn(gpu):
    """One tile at a time, on one GPU in all threads, whatever the user has set elsewhere."""
    with _LOCK, on_gpu(gpu), undisturbed(), in_any_order(), torch.no_grad():
        yield


def make_engine(device):
    """Return the engine on a device.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        "auto" is "cuda" where torch sees a GPU.

    Returns
    -------
    engine : TorchEngine
        The engine.

    Raises
    ------
    ValueError
        If device is "cuda" and torch sees no GPU.
    """
    return TorchEngine(find_device(device))


class TorchEngine:
    """Exact ranks and balls by torch.

    Parameters
    ----------
    device : {"cpu", "cuda"}
        Where it works.
    """

    Strips = Labels

    def __init__(self, device):
        self.device, self._gpu = device, current_gpu(device)

    def __reduce__(self):
        return TorchEngine, (self.device,)  # another process may have other GPUs

    def rank_tile_size(self, n_players, n_judges, n_features, workers, max_rank):
        """Judges of one task of `rank_values`; a pair takes up to 48 bytes."""
        return int(max(1, min(n_judges, block_bytes(self.device) // (48 * n_players))))

    def ball_tile_size(self, n_players, n_judges, workers):
        """Judges of one task of `ball_values`; a pair takes one byte."""
        return int(max(1, min(n_judges, 8192, block_bytes(self.device) // n_players)))

    def _to(self, array):
        array = np.ascontiguousarray(array)
        if not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array).to(self.device)

    def _players(self, space, n_judges):
        """Yield the players in blocks, as the product takes them."""
        if isinstance(space, BlockSpace):
            for part, block in space.blocks(n_judges):
                block = block if space.center is None else block - space.center
                if space.kind == COSINE:
                    block = block * space.scale[part, None]
                yield part, self._to(block)
            return
        n, d = space.work.shape
        size = space.work.dtype.itemsize

        def kept():  # all of them or none, as the first tile finds the memory
            fits = self.device != "cpu" and n * d * size < free_memory() // 4
            return self._scaled(space, slice(None)) if fits else None

        work = space.buffers.hold("torch", kept)
        each = 16 * n_judges if work is not None else d + 8 * n_judges
        for part in tiles(n, min(n, max(16, int(block_bytes(self.device) // (size * each))))):
            yield part, self._scaled(space, part) if work is None else work[part]

    def _scaled(self, space, part):
        work = self._to(space.work[part])
        return work * self._to(space.scale[part])[:, None] if space.kind == COSINE else work

    def _distances(self, space, Q):
        """Yield blocks of players and distances of a metric that is no product, from the CPU."""
        room = get_config()["working_memory"] * 2**20 // 2
        for part in tiles(len(space), max(16, int(room // (8 * len(Q))))):
            yield part, self._to(space.distances(Q, part))

    # Ranks ----------------------------------------------------------------------------------

    def _keys(self, space, Q, queries):
        """Keys that grow with the distance, (n_judges, n_players)."""
        shape = len(Q), len(space)
        if space.kind == GENERIC:
            keys = torch.empty(shape, dtype=torch.float64, device=self.device)
            for part, distances in self._distances(space, Q):
                keys[:, part] = distances
            return keys
        queries, half = self._to(queries), self._to(space.half)
        keys = torch.empty(shape, dtype=queries.dtype, device=self.device)
        for part, block in self._players(space, len(Q)):
            torch.addmm(half[part], queries, block.T, alpha=-1, out=keys[:, part])
        return keys

    def _orders(self, space, Q, own, max_rank):
        """Yield judges, their players by distance, (n_judges, n_sorted), and which are tied.

        All judges at once, except for those whose last rank is tied: they are sorted further.
        """
        Q = space.read(Q) if isinstance(space, BlockSpace) else read_rows(Q)
        queries, query_half = space.queries(Q)
        keys = self._keys(space, Q, queries)
        if own is not None:
            judges = np.flatnonzero(own >= 0)
            keys[judges, own[judges].astype(np.int64)] = torch.inf
        n, lines, n_sorted = len(space), np.arange(len(Q)), max_rank + 1
        half = self._to(space.half) * space.rank_tolerance
        query_half = self._to(query_half)[:, None].to(keys.dtype) * space.rank_tolerance
        while n_sorted < n // 4 and len(lines):
            order, near = self._first(space, keys, half, query_half, n_sorted)
            open_ = near[:, -1]  # the run may go on behind
            ended, to_sort = (mask.nonzero()[:, 0] for mask in (~open_, open_))
            some = lines[ended.cpu().numpy()]
            yield some, *self._settled(space, Q[some], order[ended], near[ended])
            lines, keys = lines[to_sort.cpu().numpy()], keys[to_sort]
            query_half, n_sorted = query_half[to_sort], 2 * n_sorted
        if len(lines):
            order, near = self._first(space, keys, half, query_half, n)
            del keys
            yield lines, *self._settled(space, Q[lines], order, near)

    def _first(self, space, keys, half, query_half, n_sorted):
        """Players of the smallest keys, and which are within rounding of the one before."""
        if n_sorted < len(space):
            line, order = torch.topk(keys, n_sorted, dim=1, largest=False, sorted=True)
        else:
            line, order = torch.sort(keys, dim=1)
        near = torch.zeros(line.shape, dtype=torch.bool, device=self.device)
        gap = line[:, 1:] - line[:, :-1]
        if space.kind == EUCLIDEAN:
            near[:, 1:] = gap <= half[order[:, 1:]] + query_half
        else:
            near[:, 1:] = gap <= (space.rank_tolerance if space.kind == COSINE else 0.0)
        return order, near

    def _settled(self, space, Q, order, near):
        """The same, decided from the rows where keys leave it open; changed in place."""
        if space.kind == GENERIC:
            return order, near
        v, p = run_members(
            near[:, : HEAD + 1].cpu().numpy(), lambda lines: near[lines, HEAD:].cpu().numpy()
        )
        if len(v):
            at = torch.from_numpy(v).to(self.device), torch.from_numpy(p).to(self.device)
            i, tied = order[at].cpu().numpy(), near[at].cpu().numpy()
            i, tied = settle_pairs(space, Q, v, i, tied, torch.get_num_threads())
            order[at], near[at] = self._to(i), self._to(tied)
        return order, near

    def rank_values(self, space, Q, own, max_rank, consume):
        """Rank the players for every judge of a tile, see `_numba.rank_values`."""
        n, found = len(space), []
        with _turn(self._gpu):
            for lines, order, tied in self._orders(space, Q, own, max_rank):
                order = torch.where(tied, ~order, order).to(torch.int32).cpu().numpy()
                n_ranked = count_ranked(tied.cpu().numpy() if max_rank < n else tied, max_rank)
                found.append((lines, order, n_ranked))
        for lines, order, n_ranked in found:
            n_in = n if own is None else n - (own[lines] >= 0)
            hand_on(consume, lines, order, np.minimum(n_ranked, n_in))

    def class_values(self, space, Q, own, game, labels, class_counts, codes, weights):
        """Values and utilities of the classification game, all players ranked.

        The formula is that of `skvalue.valuers.knn_shapley.class_game`; the tied get the mean over
        their orders, as in the loops of the CPU engine.

        Parameters
        ----------
        space : Space
            The players.
        Q : ndarray of shape (n_judges, d)
            The judges.
        own : ndarray of shape (n_judges,) or None
            A player that does not play for the judge.
        game : ClassGame
            The tables.
        labels : ndarray of shape (n,)
            Class codes of the players.
        class_counts : ndarray of shape (n_classes,)
            Players of each class.
        codes, weights : ndarrays of shape (n_judges,)
            Class codes and weights of the judges.

        Returns
        -------
        values : ndarray of shape (n,)
            Sums of weight times value.
        utility : ndarray of shape (n_judges,)
            Utility of all players.
        """
        matches = class_counts[codes].astype(np.float64)
        if own is not None:
            matches -= labels[own] == codes
        with _turn(self._gpu):
            ((_, order, tied),) = self._orders(space, Q, own, len(space))
            order, tied = order[:, : game.n], tied[:, : game.n]
            inv, sums = self._to(game.inv), self._to(game.sums)
            base = self._to(matches * game.base_match + game.base)
            labels, codes = self._to(labels.astype(np.int32)), self._to(codes.astype(np.int32))
            weights = self._to(weights.astype(np.float64))
            values = torch.zeros(len(space), dtype=torch.float64, device=self.device)
            utility = torch.empty(len(codes), dtype=torch.float64, device=self.device)
            for part in tiles(len(codes), -(-len(codes) // 8)):
                line = order[part]
                match = (labels[line] == codes[part, None]).to(torch.float64)
                score = _class_scores(
                    match, tied[part], base[part, None], inv, sums, game.gain, game.votes
                )
                utility[part] = score[1] * inv[0]
                spread = torch.zeros(
                    (len(line), len(space)), dtype=torch.float64, device=self.device
                )
                values += weights[part] @ spread.scatter_(1, line, score[0])
            return values.cpu().numpy(), utility.cpu().numpy()

    # Balls ----------------------------------------------------------------------------------

    def ball_values(self, space, strips, Q, radius, own, weigh):
        """Sum the weights of the balls that each player is in, see `_numba.ball_values`."""
        Q = space.read(Q) if isinstance(space, BlockSpace) else read_rows(Q)
        n, n_judges, n_classes = len(space), len(Q), strips.n_classes
        queries, threshold, slack, limit = ball_rule(space, Q, radius)
        dtype = torch.float64 if space.kind == GENERIC else None
        with _turn(self._gpu):
            labels = self._to(strips.labels)
            inside = torch.empty((n, n_judges), dtype=torch.bool, device=self.device)
            threshold, slack = self._to(threshold).to(dtype), self._to(slack).to(dtype)
            if space.kind == GENERIC:
                for part, distances in self._distances(space, Q):
                    inside[part] = -threshold >= distances.T
            else:
                queries, half = self._to(queries), self._to(space.half)
                threshold, slack = threshold.to(half.dtype), slack.to(half.dtype)
                for part, block in self._players(space, n_judges):
                    x = torch.addmm(half[part, None], block, queries.T, beta=-1)
                    near = slack + space.ball_tolerance * half[part, None]
                    mask = x >= threshold + near
                    r, v = ((x >= threshold - near) & ~mask).nonzero(as_tuple=True)
                    if len(r):
                        i, j = r.cpu().numpy() + part.start, v.cpu().numpy()
                        keys = pair_keys(space, i, Q, j, torch.get_num_threads())
                        mask[r, v] = self._to(keys <= limit)
                    inside[part] = mask
            if own is not None:
                judges = np.flatnonzero(own >= 0)
                inside[own[judges].astype(np.int64), judges] = False
            # Sums go by blocks of players, in which a pair takes 16 bytes.
            parts = tiles(n, int(max(16, min(2**20, block_bytes(self.device) // (16 * n_judges)))))
            counts = torch.zeros((n_classes, n_judges), dtype=torch.int64, device=self.device)
            for part in parts:
                if n_classes <= _FEW_CLASSES:  # at most 2**20 ones: exact in float32
                    kinds = torch.nn.functional.one_hot(labels[part], n_classes).T
                    counts += (kinds.to(torch.float32) @ inside[part].to(torch.float32)).long()
                else:
                    counts.index_add_(0, labels[part], inside[part].long())
            counts = counts.cpu().numpy()
            weights = self._to(np.asarray(weigh(counts), dtype=np.float64))
            values = torch.zeros(n, dtype=torch.float64, device=self.device)
            for part in parts if bool(weights.any()) else []:
                if n_classes <= _FEW_CLASSES:
                    sums = inside[part].to(torch.float64) @ weights.T
                    values[part] = sums.gather(1, labels[part, None])[:, 0]
                else:
                    values[part] = (inside[part] * weights[labels[part]]).sum(dim=1)
            return values.cpu().numpy(), counts


def _class_scores(match, tied, base, inv, sums, gain, votes):
    """Values by rank, and expected matches among the nearest ``votes``; overwrites ``match``."""
    drop = inv[:-1] - inv[1:]
    member = tied.clone()
    member[:, :-1] |= tied[:, 1:]
    v, p = member.nonzero(as_tuple=True)
    if len(v):
        first = ~tied[v, p]
        run = torch.cumsum(first, dim=0) - 1
        own_match = match[v, p]
        size = torch.bincount(run)
        hits = torch.bincount(run, weights=own_match)
        start = p[first]
        stop = start + size
        mean = (sums[stop] - sums[start]) / size
        one = (mean - inv[stop]) / (size - 1)
        match[v, p] = (hits / size)[run]  # what the ranks outside the run see of it
    behind = match * drop
    later = torch.flip(torch.cumsum(torch.flip(behind, [1]), dim=1), [1]) - behind
    values = base - later + match * (gain + inv[1:])
    if len(v):
        values[v, p] = (
            base[v, 0]
            - (later[v, stop[run] - 1] + (hits * one)[run])
            + own_match * (gain + (mean + one)[run])
        )
    return values, match[:, :votes].sum(dim=1)
