"""The structure of skvalue, counted; `python tests/house.py --list` prints what offends."""

import pytest

from tests import house

pytestmark = pytest.mark.xdist_group("house")  # the files are parsed once


@pytest.mark.parametrize("name", house.MEASURES)
def test_structure(name):
    measure, limit = house.MEASURES[name]
    offenders = measure()
    assert len(offenders) <= limit, "\n".join([f"{name}: at most {limit}", *offenders])


def test_longest_chain_of_classes():
    assert house.longest_chain() <= house.MAX_CHAIN


def test_lines_of_code():
    assert house.code_lines() <= house.MAX_CODE_LINES


def test_private_fits_are_looked_at():
    refused = {name: fit for name, fit in house.fitted().items() if isinstance(fit, str)}
    assert not refused


def test_counting_leaves_out_what_is_no_code(tmp_path):
    path = tmp_path / "file.py"
    path.write_text('''"""Two lines
of text."""

import os  # counts

# No code.
TEXT = """
code
"""


def function():
    """Text."""
    return (
        os
    )
''')
    assert house.count_code(path) == 8
