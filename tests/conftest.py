"""Fixtures shared by all tests."""

import os

import numpy as np
import pytest

from skvalue.neighbors import APPROXIMATE, ENGINES, get_engine


def pytest_configure(config):
    """Workers of pytest-xdist take one thread each: more threads than cores wait for each other."""
    if getattr(config.option, "numprocesses", None):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the workers inherit it


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
