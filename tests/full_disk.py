"""A disk without space, for tests: this process cannot write files beyond a size."""

from contextlib import contextmanager

import pytest


@contextmanager
def full_disk(limit):
    """Context in which a file that grows beyond `limit` bytes is an OSError."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
