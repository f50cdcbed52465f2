"""Fixtures shared by all tests."""

import numpy as np
import pytest

from skvalue.neighbors import APPROXIMATE, ENGINES, get_engine


@pytest.fixture
def rng():
    return np.random.default_rng(20231)


@pytest.fixture(params=sorted(set(ENGINES) - APPROXIMATE))
def engine(request):
    """Every exact engine that is installed."""
    try:
        get_engine(request.param)
    except ImportError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def gpu():
    """Skips the test where torch sees no GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
