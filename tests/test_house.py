"""The structure of skvalue, counted; `python tests/house.py --list` prints what
offends."""

import pytest

from tests import house

pytestmark = pytest.mark.xdist_group("house")  # the files are parsed once


@pytest.mark.parametrize("name", house.MEASURES)
def test_structure(name):
    measure, limit = house.MEASURES[name]
    offenders = measure()
    assert len(offenders) <= limit, "\n".join([f"{name}: at most {limit}", *offenders])
