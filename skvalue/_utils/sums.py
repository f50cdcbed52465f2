"""Sums over rows whose rounding has a bound.

One row may change how a sum is rounded. A sum of n terms, each of which goes through at
most k additions, is computed with an error of at most k u times the sum of their
absolute values, with the unit roundoff u of float64. If the terms of a row are a vector
of norm at most S, two neighbours move apart by at most 2 k u n S, besides the exact
sensitivity of the sum.
"""

from .parallel import tiles

_N_ADDITIONS = 64  # of one term, but those within a block
_ROUNDOFF = 2.0**-53  # of float64


def sum_of_blocks(n_rows, product, block_size):
    """The sum of ``product(rows)`` over blocks of rows, added in pairs.

    Each term goes through at most `block_size` additions within its block and as many
    as the logarithm of the number of blocks, at most `_N_ADDITIONS` with the rounding
    of the products.

    >>> sum_of_blocks(10, lambda rows: sum(range(10)[rows]), 4)
    45
    """
    sums = []  # of 1, 2, 4, ... blocks
    for number, rows in enumerate(tiles(n_rows, block_size) or [slice(0)], start=1):
        total = product(rows)
        while number % 2 == 0:
            total = sums.pop() + total
            number //= 2
        sums.append(total)
    total = sums.pop()
    while sums:
        total = sums.pop() + total
    return total


def rounding_of_sums(n_rows, block_size):
    """By how much, in units of S, one of n rows may change the rounding of their sum.

    >>> f"{rounding_of_sums(10_000, 2048):.0e}"
    '5e-09'
    """
    n_additions = min(n_rows, block_size) + _N_ADDITIONS
    return 2 * n_additions * _ROUNDOFF * n_rows


def rounding_of_one(n_rows):
    """As `rounding_of_sums`, of a sum that is rounded once."""
    return 2 * _ROUNDOFF * n_rows
