"""Compiled loops of the batched neighbours. Importing this imports numba."""

from ..._utils.compiled import compiled


@compiled
def neighbour_means(order, distances, values, masks, n_neighbors, by_distance, out):
    """Mean of ``values`` over the nearest members of a coalition; 0 where they are too few.

    ``by_distance`` weights them with 1 / distance; members at distance 0 then count alone.
    """
    n_val, n = order.shape
    width = values.shape[1]
    for m in range(len(masks)):
        mask = masks[m]
        if mask.sum() < n_neighbors:
            continue
        for v in range(n_val):
            found, total, exact = 0, 0.0, False
            for rank in range(n):
                i = order[v, rank]
                if not mask[i]:
                    continue
                weight = 1.0
                if by_distance:
                    distance = distances[v, rank]
                    if distance == 0.0:
                        exact = True
                    elif exact:
                        break  # the others are no nearer
                    else:
                        weight = 1.0 / distance
                total += weight
                for c in range(width):
                    out[m, v, c] += weight * values[i, c]
                found += 1
                if found == n_neighbors:
                    break
            for c in range(width):
                out[m, v, c] /= total
