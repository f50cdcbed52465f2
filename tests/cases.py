"""Cases of parametrised tests."""

from itertools import product

import pytest


def one_of_each(*columns):
    """All combinations of the entries of some columns, as a list for `parametrize`.

    Of each entry at least one combination is in the default tier; the others are slow.
    """
    lengths = [len(column) for column in columns]
    quick = {tuple(i % length for length in lengths) for i in range(max(lengths))}
    cases = []
    for positions in product(*map(range, lengths)):
        entries = [column[i] for column, i in zip(columns, positions)]
        marks = () if positions in quick else pytest.mark.slow
        cases.append(pytest.param(*entries, marks=marks))
    return cases
