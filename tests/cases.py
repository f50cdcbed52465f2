"""Cases of parametrised tests."""

from itertools import product

import pytest


def one_of_each(*columns):
    """All combinations of the entries of some columns, as a list for `parametrize`.

    Of each entry at least one combination is in the default tier; the others are slow.
    """
    first = {
        tuple(i % len(column) for column in columns)
        for i in range(max(map(len, columns)))
    }
    return [
        pytest.param(
            *(column[i] for column, i in zip(columns, places)),
            marks=() if places in first else pytest.mark.slow,
        )
        for places in product(*(range(len(column)) for column in columns))
    ]
