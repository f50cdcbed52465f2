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
        ([1.0, -1.0] * 50, [0.8, 0.8] * 50),  # .36 of the square is
        ([1.0, -1.0], [0.5, 0.5]),  # two values of noise may be as large
        ([3.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
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
        ([1.0, -1.0] * 50, [0.7, 0.7] * 50),
        ([1.0, -1.0], [0.4, 0.4]),
        ([1.0, -1.0], [0.0, 0.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([3.0, 0.0, 0.0], [0.8, 0.8, 0.8]),
        ([np.nan, np.nan], [1.0, 1.0]),
        ([1.0], [np.nan]),
    ],
)
def test_smaller_noise_is_not(values, errors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_if_noise_exceeds(values, errors, ADVICE)


@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_noise_alone_is_warned_of_in_99_of_100_releases(n, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warned = [
            warn_if_noise_exceeds(rng.normal(size=n), np.ones(n), ADVICE)
            for _ in range(500)
        ]
    assert np.mean(warned) >= 0.97


def test_a_run_may_issue_it_later():
    issued = []
    warn_if_noise_exceeds(
        [0.0], [1.0], ADVICE, warn=lambda *warning: issued.append(warning)
    )
    ((message, category),) = issued
    assert category is NoiseExceedsSignalWarning
    assert message.endswith(f"{ADVICE}.")
