"""Compiled loops of stored neighbours: rows that come and go in orders and balls. Imports numba.

A judge's line holds the rows that play for it and their keys, in ascending order of key, before
what rounding may have swapped is settled; so a line is changed in one linear pass.
"""

import numpy as np

from ..._utils.compiled import compiled
from .rank import _ULP, GENERIC, _order_exactly, _pair_slack, key_unit, slack

_STRIDE = 16
_BLOCK = 128

# Byte -> its eight bits, one a byte of a word: eight small counts are added at once.
LANES = np.array([sum((x >> k & 1) << 8 * k for k in range(8)) for x in range(256)], np.uint64)
_LANE_FULL = 255  # additions that a lane holds


# Orders ---------------------------------------------------------------------------------------


@compiled
def _ascend(keys, rows):
    """Sort a nearly sorted line in place."""
    moves = 8 * len(keys)
    for p in range(1, len(keys)):
        key, i = keys[p], rows[p]
        if keys[p - 1] <= key:
            continue
        q = p - 1
        while q >= 0 and keys[q] > key:
            keys[q + 1] = keys[q]
            rows[q + 1] = rows[q]
            q -= 1
        keys[q + 1] = key
        rows[q + 1] = i
        moves -= p - q
        if moves < 0:  # not so nearly
            place = np.argsort(keys, kind="mergesort")
            keys[:] = keys[place]
            rows[:] = rows[place]
            return


@compiled
def keep_lines(players, product, order, n_ranked, keys, rows):
    """Fill the lines of ranked judges: ``order`` as in `_rank_kernels.rank_tile`."""
    half, scale = players.half, players.scale
    for v in range(len(n_ranked)):
        line, values = product[v], keys[v]
        for p in range(n_ranked[v]):
            i = order[v, p]
            i ^= i >> 31  # ~i where it is tied
            rows[v, p] = i
            values[p] = line[i] if players.kind == GENERIC else half[i] - scale[i] * line[i]
        _ascend(values[: n_ranked[v]], rows[v, : n_ranked[v]])


@compiled
def _copy(keys, rows, out_keys, out_rows):
    """Copy a line. (A slice that is assigned is first copied elsewhere.)"""
    for p in range(len(keys)):
        out_keys[p] = keys[p]
    for p in range(len(rows)):
        out_rows[p] = rows[p]


@compiled
def _drop(keys, rows, n, place, out_keys, out_rows):
    """Copy the rows that stay, under the numbers ``place`` gives them (-1: gone)."""
    q = 0
    for p in range(n):
        if q == len(out_keys):  # what is left is gone
            break
        i = place[rows[p]]
        out_keys[q] = keys[p]
        out_rows[q] = i
        q += i >= 0
    return q


@compiled
def _merge(keys, rows, n, new_keys, new_rows, out_keys, out_rows):
    """Merge two sorted lines into a third."""
    p = q = 0
    for k in range(len(new_keys)):
        key, stop = new_keys[k], p
        while stop + _STRIDE <= n and keys[stop + _STRIDE - 1] <= key:
            stop += _STRIDE
        while stop < n and keys[stop] <= key:
            stop += 1
        _copy(keys[p:stop], rows[p:stop], out_keys[q:], out_rows[q:])
        q += stop - p
        p = stop
        out_keys[q] = key
        out_rows[q] = new_rows[k]
        q += 1
    _copy(keys[p:n], rows[p:n], out_keys[q:], out_rows[q:])
    return q + n - p


@compiled
def _settle_run(players, query, query_half, keys, order, start, stop, head):
    """What `_rank_kernels._finish_run` does, with keys in the order of the line."""
    a = start
    while a < stop:
        b = a + 1
        while b < stop:
            if keys[b] - keys[b - 1] > _pair_slack(players, order[b], keys[b], query_half):
                break
            b += 1
        if b - a > 1:
            if players.kind == GENERIC or a >= head:
                for p in range(a + 1, b):
                    order[p] = ~order[p]
            else:
                _order_exactly(players, query, order, a, b)
        a = b


@compiled
def _count_near(before, keys, allowed):
    near = 0
    for p in range(len(keys)):
        near += np.int64(keys[p] - before[p] <= allowed)
    return near


@compiled
def _tie_near(before, keys, rows, lowest, unit, allowed, order):
    """Tie what the keys' rounding cannot tell apart, as a first ranking does far out."""
    for p in range(len(keys)):
        here = np.float32((keys[p] - lowest) * unit)
        near = here - np.float32((before[p] - lowest) * unit) <= allowed + here * _ULP
        order[p] = rows[p] ^ -np.int32(near)


@compiled
def _settle(players, query, query_half, keys, rows, n, head, order):
    """Turn a line into an order with ties, by the rules of `_rank_kernels.rank_row`."""
    kind, tolerance = players.kind, players.tolerance
    allowed = keys.dtype.type(slack(kind, tolerance, players.largest_half, query_half))
    end = n
    if keys.itemsize == 4 and head < n:  # what lies behind the first gap behind the head is far
        end = max(head, 1)
        while end < n and keys[end] - keys[end - 1] <= allowed:
            end += 1
    for p in range(end):
        order[p] = rows[p]
    start, p, looked = 0, 1, 0
    while p < end:
        if p == start + 1 and looked <= p <= end - _BLOCK:
            looked = p + _BLOCK
            if not _count_near(keys[p - 1 : looked - 1], keys[p:looked], allowed):
                start, p = looked - 1, looked
                continue
        if keys[p] - keys[p - 1] > allowed:
            if p - start > 1:
                _settle_run(players, query, query_half, keys, order, start, p, head)
            start = p
        p += 1
    if end - start > 1:
        _settle_run(players, query, query_half, keys, order, start, end, head)
    if end < n:
        order[end] = rows[end]
        tolerance, far = players.far_tolerance, end + 1
        unit = key_unit(keys, np.float64(keys[n - 1]) - np.float64(keys[0]))
        allowed = np.float32(slack(kind, tolerance, players.mean_half, query_half) * unit)
        _tie_near(keys[end : n - 1], keys[far:n], rows[far:n], keys[0], unit, allowed, order[far:n])


@compiled
def change_lines(players, queries, query_half, keys, rows, size, lines, place, new_keys, new_rows,
                 out_keys, out_rows, first, head, spare_keys, spare_rows, order):  # fmt: skip
    """Change some lines, and write their orders.

    Line ``lines[k]`` of ``keys`` and ``rows``, of which ``size`` entries are used, becomes line
    ``first + k`` of ``out_keys`` and ``out_rows``, which may be the same arrays: rows are numbered
    anew by ``place`` (-1: gone; empty: all stay), then the sorted new ones are merged in.
    """
    here = out_keys.ctypes.data == keys.ctypes.data
    for k in range(len(lines)):
        old_keys, old_rows, n = keys[lines[k]], rows[lines[k]], size
        to_keys, to_rows = out_keys[first + k], out_rows[first + k]
        new, gone = len(new_keys[k]) > 0, len(place) > 0
        if gone:
            mid_keys, mid_rows = (spare_keys, spare_rows) if new else (to_keys, to_rows)
            n = _drop(old_keys, old_rows, n, place, mid_keys, mid_rows)
            old_keys, old_rows = mid_keys, mid_rows
        if new and (gone or not here):
            n = _merge(old_keys, old_rows, n, new_keys[k], new_rows[k], to_keys, to_rows)
        elif new:
            n = _merge(old_keys, old_rows, n, new_keys[k], new_rows[k], spare_keys, spare_rows)
            _copy(spare_keys[:n], spare_rows[:n], to_keys, to_rows)
        elif not gone and not here:
            _copy(old_keys[:n], old_rows[:n], to_keys, to_rows)
        _settle(players, queries[k], query_half[k], to_keys, to_rows, n, head, order[k])
    return n


@compiled
def cut_ranks(order, n_ranked, max_rank):
    """Rank no further than ``max_rank`` and what is tied with it."""
    for v in range(len(n_ranked)):
        n = min(n_ranked[v], max_rank)
        while n < n_ranked[v] and order[v, n] < 0:
            n += 1
        n_ranked[v] = n


# Balls ----------------------------------------------------------------------------------------


@compiled
def turn_strips(bits, order, members):
    """Turn strips, a byte for eight players and a judge, into a byte for a player and 8 judges."""
    n_judges = bits.shape[1]
    for s in range(len(bits)):
        line = bits[s]
        for j in range(8):
            i = order[8 * s + j]
            if i < 0:
                continue
            for b in range(members.shape[1]):
                byte = 0
                for v in range(8 * b, min(8 * b + 8, n_judges)):
                    byte |= ((line[v] >> j) & 1) << (v - 8 * b)
                members[i, b] = byte


@compiled
def _flush(lanes, counts):
    for b in range(len(lanes)):
        word = lanes[b]
        for k in range(8):
            counts[8 * b + k] += np.int64(word & np.uint64(255))
            word >>= np.uint64(8)
        lanes[b] = 0


@compiled
def count_members(members, labels, lanes_of, counts):
    """Count the members of every ball by class; ``lanes_of`` is `LANES`."""
    lanes = np.zeros((len(counts), members.shape[1]), np.uint64)
    added = np.zeros(len(counts), np.int64)
    for i in range(len(members)):
        c = labels[i]
        for b in range(members.shape[1]):
            lanes[c, b] += lanes_of[members[i, b]]
        added[c] += 1
        if added[c] == _LANE_FULL:
            _flush(lanes[c], counts[c])
            added[c] = 0
    for c in range(len(counts)):
        _flush(lanes[c], counts[c])


@compiled
def sum_members(members, labels, weights, out):
    """Sum for every player the weights of the balls that it is in, four balls at a time."""
    n_classes, n_bytes = len(weights), members.shape[1]
    sums = np.zeros((n_classes, 2 * n_bytes, 16))  # of every subset of four weights
    for c in range(n_classes):
        for b in range(2 * n_bytes):
            for k in range(4):
                for x in range(1 << k):
                    sums[c, b, x + (1 << k)] = sums[c, b, x] + weights[c, 4 * b + k]
    for i in range(len(members)):
        table, line = sums[labels[i]], members[i]
        low = high = 0.0
        for b in range(n_bytes):
            low += table[2 * b, line[b] & 15]
            high += table[2 * b + 1, line[b] >> 4]
        out[i] = low + high
