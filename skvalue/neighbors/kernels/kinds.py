"""How a key, which grows with the distance, is made of an inner product."""

EUCLIDEAN, COSINE, GENERIC = 0, 1, 2
