"""The command line: ``skvalue COMMAND`` or ``python -m skvalue COMMAND``."""

from ._main import main

__all__ = ["main"]
