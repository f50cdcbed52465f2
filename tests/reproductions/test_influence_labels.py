"""A cell of the table of wrong labels on the page on influence."""

import pytest

from .scripts import of


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.UncleanPointsWarning")
@of("influence_labels", pytest.mark.slow)
def test_rows_on_themselves_find_wrong_labels_as_clean_points_do(script):
    own, folds, clean = script.areas("wine", 0)
    assert own > 0.9
    assert clean > 0.8
    assert folds < 0.8
