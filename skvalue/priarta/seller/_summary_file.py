"""Summaries as text: written by sellers, and read by a buyer who trusts no byte of it."""

import base64
import binascii
import json

import numpy as np

from ..._utils.records import read_record, refuse

__all__ = ["MOST_DIMENSIONS", "VECTORS", "decode", "encode", "most_bytes", "read_text"]

_FORMAT, _VERSION = "skvalue.priarta.Summary", 1
MOST_DIMENSIONS = 4096
VECTORS = ("centre", "mean", "moment")


def most_bytes(n_dimensions):
    """Most bytes of a summary file.

    Parameters
    ----------
    n_dimensions : int
        Number of latent dimensions.

    Returns
    -------
    size : int
        ``8 d^2 + 4096``.

    Examples
    --------
    >>> most_bytes(64)
    36864
    """
    return 8 * n_dimensions**2 + 4096


def encode(fields, guarantee):
    """A summary's fields as text.

    Parameters
    ----------
    fields : dict
        The fields of a `Summary`.
    guarantee : str or None
        The guarantee in words.

    Returns
    -------
    text : str
        JSON; arrays are base64 of little-endian float64.
    """
    record = dict(fields)
    for name in VECTORS:
        record[name] = base64.b64encode(record[name].astype("<f8").tobytes()).decode()
    head = {"format": _FORMAT, "version": _VERSION, "guarantee": guarantee}
    return json.dumps({**head, **record}, allow_nan=False, indent=0)


def decode(text, names):
    """Fields from text. Their form is right then; what they say is for `Summary` to check.

    Parameters
    ----------
    text : str
        What `encode` gave, or anything else.
    names : set of str
        The fields of a `Summary`.

    Returns
    -------
    fields : dict
        The fields, arrays as float64.
    guarantee : object
        What is claimed in words.

    Raises
    ------
    ValueError
        If the text is no JSON, is too long, has missing, unknown or repeated fields, or an array is
        not written as it must be.
    """
    names = {*names, "guarantee"}
    record = read_record(text, _FORMAT, _VERSION, names, most_bytes(MOST_DIMENSIONS))
    claimed = record.pop("guarantee")
    for name in VECTORS:
        record[name] = _numbers(record[name], name)
    return record, claimed


def read_text(path, n_dimensions):
    """The text of a file for a model of a known number of dimensions.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_dimensions : int
        Number of latent dimensions; no more is read than a summary of so many can have.

    Returns
    -------
    text : str
        ASCII.

    Raises
    ------
    ValueError
        If the file is too long or no text.
    """
    limit = most_bytes(n_dimensions)
    with open(path, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(
            f"{path} must have at most {limit} bytes, as summaries of {n_dimensions} dimensions "
            "have. Got more."
        )
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise ValueError(f"{path} must be ASCII text. Got other bytes.") from None


def _numbers(text, name):
    """Numbers from base64."""
    if not isinstance(text, str):
        refuse(name, "base64 text", text)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        refuse(name, "base64 text", text)
    if len(content) % 8:
        refuse(name, "base64 of 8 bytes a number", f"{len(content)} bytes")
    return np.frombuffer(content, dtype="<f8").astype(np.float64)
