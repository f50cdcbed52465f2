"""Values of the classification game from ranks that stay on a torch device. Imports torch."""

import numpy as np
import torch

from ..._utils.parallel import tiles


def value_points(engine, space, y, points, game, class_counts):
    """As `_values.value_points`, all rows ranked; the tied get the mean over their orders."""
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
        utility = np.empty(len(points))
        for lines, order, tied in engine.device_ranks(space, points.X, points.self_index):
            order, tied = order[:, : game.n], tied[:, : game.n]
            for part in tiles(len(lines), -(-len(lines) // 8)):
                here, line = lines[part], order[part]
                match = (labels[line] == codes[here]).to(torch.float64)
                score, votes = _class_scores(
                    match, tied[part], base[here], inv, sums, game.gain, game.votes
                )
                utility[here] = (votes * inv[0]).cpu().numpy()
                by_row = torch.zeros(
                    (len(line), len(y)), dtype=torch.float64, device=weights.device
                )
                values += weights[here] @ by_row.scatter_(1, line, score)
        return values.cpu().numpy(), np.zeros(len(class_counts) + 1), utility


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
