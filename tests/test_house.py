"""The structure of skvalue, counted; `python tests/house.py --list` prints what offends."""

import pytest

from tests import house

pytestmark = pytest.mark.xdist_group("house")  # the files are parsed once


@pytest.mark.parametrize("name", house.MEASURES)
def test_structure(name):
    measure, limit = house.MEASURES[name]
    offenders = measure()
    assert len(offenders) <= limit, "\n".join([f"{name}: at most {limit}", *offenders])


def test_lines_of_code():
    assert house.code_lines() <= house.MAX_LINES
    assert house.code_lines(house.TESTS) <= house.MAX_TEST_LINES


@pytest.mark.parametrize("name", house.MAX_CALLED)
def test_functions_of_a_small_fit(name):
    """`python tests/called.py NAME -v` names them."""
    assert house.called()[name] <= house.MAX_CALLED[name]


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
