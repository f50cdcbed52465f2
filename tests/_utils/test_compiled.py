"""Compiled loops work where their machine code cannot be kept."""

import pytest
from numba.core import caching

from skvalue._utils.compiled import compiled


def double(x):
    return 2 * x


@pytest.mark.parametrize("options", [{}, {"fastmath": True}])
def test_without_a_folder_to_write(options, monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert (compiled(**options) if options else compiled)(double)(21) == 42


def test_other_errors_are_told(monkeypatch):
    def fail(*_):
        raise RuntimeError("another trouble")

    monkeypatch.setattr(caching.CompileResultCacheImpl, "__init__", fail)
    with pytest.raises(RuntimeError, match="another trouble"):
        compiled(double)
