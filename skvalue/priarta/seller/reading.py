"""Reads summary files."""

import os

from ..._utils.records import read_text
from ._summary_file import most_bytes
from .summary import Summary


def read_summary(source, n_dimensions):
    """A summary from a file or object; a file too long for n_dimensions is an error."""
    if isinstance(source, Summary):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"summaries must be paths or Summary objects. Got {type(source).__name__}.")
    text = read_text(source, most_bytes(n_dimensions), source)
    try:
        return Summary.from_json(text)
    except ValueError as error:
        raise ValueError(f"{source} is not a valid summary: {error}") from None
