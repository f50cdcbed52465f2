"""Values of the classification game, computed from ranks on a torch device. Imports torch."""

import numpy as np
import torch

from ..._utils.parallel import tiles
from ...base import Part
from . import _values


def value_part(split, engine, space, y, points, game, class_counts, max_rank):
    """As `_values.value_part`; for classification with all ranks, computed on the device."""
    if not len(class_counts) or max_rank < game.n:
        return _values.value_part(split, engine, space, y, points, game, class_counts, max_rank)
    return Part(split, *value_points(engine, space, y, points, game, class_counts))


def value_points(engine, space, y, points, game, class_counts):
    """Values of all rows at a tile of points: the formula of `class_game`, ties averaged."""
    matches = class_counts[points.y].astype(np.float64)
    if points.self_index is not None:
        matches -= y[points.self_index] == points.y
    with engine.turn():
        inv, sums = engine.to_device(game.inv), engine.to_device(game.sums)
        base = engine.to_device(matches * game.base_match + game.base)[:, None]
        labels = engine.to_device(y.astype(np.int32))
        codes = engine.to_device(points.y.astype(np.int32))[:, None]
        weights = engine.to_device(points.weights.astype(np.float64))
        values = torch.zeros(len(y), dtype=torch.float64, device=weights.device)
        utility = torch.empty(len(points), dtype=torch.float64, device=weights.device)
        for lines, order, tied in engine.device_ranks(space, points.X, points.self_index):
            order, tied = order[:, : game.n], tied[:, : game.n]
            for part in tiles(len(lines), -(-len(lines) // 8)):
                here, line = lines[part], order[part]
                match = (labels[line] == codes[here]).to(torch.float64)
                score, votes = _class_scores(
                    match, tied[part], base[here], inv, sums, game.gain, game.votes
                )
                utility[here] = votes * inv[0]
                by_row = torch.zeros(
                    (len(line), len(y)), dtype=torch.float64, device=weights.device
                )
                values += weights[here] @ by_row.scatter_(1, line, score)
        return values.cpu().numpy(), utility.cpu().numpy()


def _class_scores(match, tied, base, inv, sums, gain, votes):
    """Values by rank, and expected matches among the nearest ``votes``; changes ``match``."""
    drop = inv[:-1] - inv[1:]
    member = tied.clone()
    member[:, :-1] |= tied[:, 1:]
    v, p = member.nonzero(as_tuple=True)
    if len(v):
        first = ~tied[v, p]
        run = torch.cumsum(first, dim=0) - 1
        run_match = match[v, p]
        size = torch.bincount(run)
        hits = torch.bincount(run, weights=run_match)
        start = p[first]
        stop = start + size
        mean = (sums[stop] - sums[start]) / size
        one = (mean - inv[stop]) / (size - 1)
        match[v, p] = (hits / size)[run]  # for the ranks outside the run
    drops = match * drop
    later = torch.flip(torch.cumsum(torch.flip(drops, [1]), dim=1), [1]) - drops
    values = base - later + match * (gain + inv[1:])
    if len(v):
        values[v, p] = (
            base[v, 0]
            - (later[v, stop[run] - 1] + (hits * one)[run])
            + run_match * (gain + (mean + one)[run])
        )
    return values, match[:, :votes].sum(dim=1)
