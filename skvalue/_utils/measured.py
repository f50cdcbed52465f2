"""Sizes from which another way of computing is faster, as measured."""

# Multiplications, of all pairs of a row and a point, from which engine="auto" with
# device="auto" is "torch" on a GPU, if there is one. None is never: it has not been
# measured on a card. `python tests/gpu/acceptance.py` prints the number of its card.
GPU_FROM = None
