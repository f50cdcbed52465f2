"""When a row is in the closed ball of a point: by its product with the point."""

from typing import NamedTuple

import numpy as np

from .kernels.kinds import COSINE, EUCLIDEAN

# The ball is closed: a distance that rounds to the radius is inside.
_CLOSED = 1e-12


class BallRule(NamedTuple):
    """When a row is in the balls of a tile of points.

    It is if ``scale * product - half`` is at least the threshold of the point; within
    ``slack + ball_tolerance * half`` of the threshold, if its exact key is at most the
    limit.
    """

    # Factors of the product, (n_points, d).
    queries: object
    # (n_points,)
    threshold: np.ndarray
    # (n_points,)
    slack: np.ndarray
    limit: float


def ball_rule(space, points, radius):
    """The `BallRule` of points for the rows of a space."""
    queries, point_half = space.queries(points)
    n_points = len(point_half)
    if space.kind == EUCLIDEAN:
        return BallRule(
            queries,
            threshold=point_half - radius**2 / 2,
            slack=space.ball_tolerance * point_half,
            limit=radius**2 * (1 + _CLOSED),
        )
    if space.kind == COSINE:
        return BallRule(
            queries,
            threshold=np.full(n_points, 1.0 - radius),
            slack=np.full(n_points, space.ball_tolerance),
            limit=radius - 1.0 + _CLOSED,
        )
    limit = radius * (1 + _CLOSED)
    return BallRule(
        queries,
        threshold=np.full(n_points, -limit),
        slack=np.zeros(n_points),
        limit=limit,
    )
