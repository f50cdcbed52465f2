"""Files of summaries that a buyer gets."""

import os

from ..._utils.records import read_text
from ._summary_file import most_bytes
from .summary import Summary


def read_summary(source, n_dimensions):
    """A summary from a file or object; a file longer than n_dimensions need is not read."""
    if isinstance(source, Summary):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"summaries must be paths or Summary objects. Got {type(source).__name__}.")
    text = read_text(source, most_bytes(n_dimensions), source)
    try:
        return Summary.from_json(text)
    except ValueError as error:
        raise ValueError(f"{source} is no summary that can be used: {error}") from None
