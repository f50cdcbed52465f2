"""The one place that decides whether the noise of private values exceeds the signal."""

import warnings

import numpy as np
import pytest

from skvalue.base import warn_if_noise_exceeds
from skvalue.exceptions import NoiseExceedsSignalWarning

ADVICE = "a larger epsilon has less noise"


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ([1.0, -1.0], [1.0, 1.0]),  # nothing is left beyond the noise
        ([1.0, -1.0], [0.8, 0.8]),  # .36 of the square is
        ([3.0, 0.0, 0.0], [1.5, 1.5, 1.5]),
        ([1.0, np.nan], [2.0, 2.0]),
        ([1.0], [np.inf]),
        ([0.0, 0.0], [0.1, 0.1]),
    ],
)
def test_noise_that_exceeds_the_signal_is_warned_of(values, errors):
    with pytest.warns(NoiseExceedsSignalWarning, match=ADVICE) as record:
        assert warn_if_noise_exceeds(values, errors, ADVICE)
    (message,) = record
    assert str(message.message).count(". ") == 0  # one sentence


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ([1.0, -1.0], [0.7, 0.7]),
        ([1.0, -1.0], [0.0, 0.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([3.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        ([np.nan, np.nan], [1.0, 1.0]),
        ([1.0], [np.nan]),
    ],
)
def test_smaller_noise_is_not(values, errors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_if_noise_exceeds(values, errors, ADVICE)


def test_a_run_may_issue_it_later():
    issued = []
    warn_if_noise_exceeds(
        [0.0], [1.0], ADVICE, warn=lambda *warning: issued.append(warning)
    )
    ((message, category),) = issued
    assert category is NoiseExceedsSignalWarning
    assert message.endswith(f"{ADVICE}.")
