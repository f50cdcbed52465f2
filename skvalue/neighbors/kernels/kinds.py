"""Kinds of metrics: how an inner product becomes a key, which increases with the distance."""

EUCLIDEAN, COSINE, GENERIC = 0, 1, 2
