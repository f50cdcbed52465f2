"""Compiled loops work where their machine code cannot be kept."""

import pytest
from numba.core import caching

from skvalue._utils.compiled import compiled, first_compilation


def double(x):
    return 2 * x


@pytest.mark.parametrize("options", [{}, {"fastmath": True}])
def test_without_a_folder_to_write(options, monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert (compiled(**options) if options else compiled)(double)(21) == 42


def test_the_first_compilation_is_told_once(caplog, monkeypatch):
    monkeypatch.setattr(first_compilation, "told", False)
    compiled(double)(2)  # a function of someone else
    assert not caplog.records

    def triple(x):
        return 3 * x

    triple.__module__ = "skvalue.triple"
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert [compiled(triple)(x) for x in (2, 2.0)] == [6, 6.0]
    assert [record.name for record in caplog.records] == ["skvalue"]
    assert "compiles its loops for this machine, which may take" in caplog.text


def test_other_errors_are_told(monkeypatch):
    def fail(*_):
        raise RuntimeError("another trouble")

    monkeypatch.setattr(caching.CompileResultCacheImpl, "__init__", fail)
    with pytest.raises(RuntimeError, match="another trouble"):
        compiled(double)
