"""Kinds of metrics: how an inner product becomes a key, increasing in the distance."""

EUCLIDEAN = 0
COSINE = 1
GENERIC = 2
