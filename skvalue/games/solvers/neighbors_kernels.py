"""Compiled loops of the batched neighbours. Importing this imports numba."""

from ..._utils.compiled import compiled


@compiled
def neighbour_means(order, distances, values, masks, n_neighbors, by_distance, out):
    """Mean of ``values`` over the nearest rows of a coalition; 0 if it has too few rows.

    ``by_distance`` weights rows by 1 / distance; if rows have distance 0, only these count.
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
                        break  # the following rows have distances above 0
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
