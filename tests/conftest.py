"""Fixtures shared by all tests."""

import numpy as np
import pytest

from skvalue.neighbors import ENGINES


@pytest.fixture
def rng():
    return np.random.default_rng(20231)


@pytest.fixture(params=sorted(ENGINES))
def engine(request):
    """Every exact engine that is installed."""
    return request.param
