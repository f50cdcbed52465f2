"""Summaries as text, which the buyer does not trust."""

import json

from ..._utils.records import from_base64, read_record, to_base64
from ._checks import MOST_DIMENSIONS

_FORMAT, _VERSION = "skvalue.priarta.Summary", 1
_VECTORS = ("centre", "mean", "moment")


def most_bytes(n_dimensions):
    """Largest number of bytes of a summary file.

    >>> most_bytes(64)
    36864
    """
    return 8 * n_dimensions**2 + 4096


def encode(record, guarantee):
    """JSON of the fields of a summary and of its guarantee as a sentence."""
    vectors = {name: to_base64(record[name]) for name in _VECTORS}
    head = {"format": _FORMAT, "version": _VERSION, "guarantee": guarantee}
    return json.dumps({**head, **record, **vectors}, allow_nan=False, indent=0)


def decode(text, names):
    """Fields of a summary and the claimed guarantee, from JSON; `Summary` checks the fields."""
    limit = most_bytes(MOST_DIMENSIONS)
    record = read_record(text, _FORMAT, _VERSION, {*names, "guarantee"}, limit)
    claimed = record.pop("guarantee")
    return record | {name: from_base64(record[name], name) for name in _VECTORS}, claimed
