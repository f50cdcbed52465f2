"""What held-out predictions are worth: the interval of their accuracy."""

import numpy as np
import pytest

from skvalue.labels import model_skill


@pytest.mark.parametrize("is_right", [True, False], ids=["all right", "all wrong"])
def test_the_interval_is_within_zero_and_one(is_right):
    for n in range(2, 200):
        codes = np.arange(n) % 2
        predicted = codes if is_right else 1 - codes
        skill = model_skill(predicted, codes, ["no", "yes"])
        assert 0 <= skill["low"] <= skill["accuracy"] <= skill["high"] <= 1
