"""From the bytes of a file to its text: the encoding, or why it is unknown.

Refusals name the parameter of `read_table` that decides. charset-normalizer is asked
for a suggestion alone: it has an answer for every file, and takes "garçon" for Baltic
and a few degree signs for Japanese, without a word. So an encoding is read by its signs
or as Western European words, and a person decides on all others.
"""

import codecs
import re
from contextlib import suppress

import numpy as np

from ..._utils.optional import import_optional
from ...exceptions import ParameterError

_NO_TEXT = {
    b"PK\x03\x04": "a zip file, or an Excel file whose name does not end in .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x1f\x8b": "a gzip file",
    b"PAR1": "a Parquet file whose name does not end in .parquet",
    b"ARROW1": "an Arrow file whose name does not end in .arrow or .feather",
}
# Byte order marks; that of UTF-32-LE begins as that of UTF-16-LE, and so comes first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
_HEAD = 100_000  # bytes among which zeros are counted, or an encoding is looked for
_ASKED = 1000  # lines of which a suggestion is made
_TWO_BYTES = 0.3  # fraction of non-ASCII bytes in UTF-8 pairs, from which it is UTF-8

# Fraction of the non-ASCII characters that must stand as in Western European words.
_WESTERN = 0.98
_LETTERS = set("äöüßÄÖÜéèêëÉÈÊàâÀÂçÇîïÎÔôûùÛÙñÑáíóúÁÍÓÚåøæÅØÆœŒìòÌÒãõÃÕýÝðþ")
_SYMBOLS = set("€°–—’‘“”„§²³µ«»±·…½¼¾£¥×÷©®™•ªº¿¡\u00a0")


def decode(raw, encoding=None):
    """Text of the bytes of a file, with its byte order mark, and its codec."""
    if encoding is not None:
        try:
            return raw.decode(encoding), encoding
        except (UnicodeError, LookupError) as error:
            raise ParameterError(
                "encoding", f"must fit the file. Got {encoding!r}: {error}."
            ) from None

    for start, kind in _NO_TEXT.items():
        if raw.startswith(start):
            raise ValueError(f"the file must be text, such as CSV. Got {kind}.")
    codec = _codec_by_mark(raw) or _codec_by_zeros(raw)
    if codec is not None:
        try:
            return raw.decode(codec), codec
        except UnicodeDecodeError:
            raise _unknown(f"the file starts as {codec} and is not.") from None

    try:
        return raw.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        _refuse_two_encodings(raw, error.start)
    text = raw.decode("cp1252", errors="replace")
    if "\ufffd" not in text and _fraction_western(text) >= _WESTERN:
        return text, "cp1252"
    raise _unknown_encoding(raw)


def _unknown(problem):
    """The error of a file whose encoding has to be passed."""
    return ParameterError(
        "encoding", problem, "Pass {}.", [("encoding", ...)], subject=""
    )


def _unknown_encoding(raw):
    """The error of a file without signs of its encoding, with one that is probable."""
    with suppress(ImportError):
        normalizer = import_optional("charset_normalizer", "a suggestion")
        lines = [line for line in raw.splitlines() if not line.isascii()]
        best = normalizer.from_bytes(b"\n".join(lines[:_ASKED])[:_HEAD]).best()
        match = re.search(r".{0,10}[^\x00-\x7f].{0,10}", str(best or ""))
        if match is not None:
            return ParameterError(
                "encoding",
                f"the encoding is unknown; by {best.encoding} a text is {match[0]!r}.",
                "Pass {} if that is right, else another.",
                [("encoding", best.encoding)],
                subject="",
            )
    return _unknown("the encoding is unknown.")


def _codec_by_mark(raw):
    """The codec whose byte order mark the file has, or None."""
    for mark, codec in _MARKS.items():
        if raw.startswith(mark):
            return codec
    return None


def _codec_by_zeros(raw):
    """UTF-16 by the zero bytes of its ASCII letters, or None without zero bytes."""
    is_zero = np.frombuffer(raw[:_HEAD], np.uint8) == 0
    if not is_zero.any():
        return None
    even = is_zero[::2].mean()
    odd = is_zero[1::2].mean()
    if max(even, odd) < 0.5 or min(even, odd) > 0.05:
        raise ValueError("the file must be text, such as CSV. Got zero bytes.")
    return "utf-16-le" if odd > even else "utf-16-be"


def _refuse_two_encodings(raw, first_bad):
    """Refuse a file most of whose non-ASCII letters are UTF-8, though not all are."""
    n_pairs = len(re.findall(rb"[\xc3-\xf4][\x80-\xbf]", raw))
    n_bytes = len(re.findall(rb"[\x80-\xff]", raw))
    if n_pairs and 2 * n_pairs >= _TWO_BYTES * n_bytes:
        line = raw[:first_bad].count(b"\n") + 1
        raise _unknown(
            f"line {line} is not UTF-8, though most lines are: the file has two "
            "encodings. Mend that line, or say which."
        )


def _fraction_western(text):
    """Fraction of non-ASCII characters that stand as in Western European text."""
    n_western = 0
    n_characters = 0
    for match in re.finditer(r"[^\x00-\x7f]", text):
        character = match.group()
        place = match.start()
        before = text[max(place - 1, 0) : place]
        after = text[place + 1 : place + 2]
        n_characters += 1
        if character in _LETTERS:
            n_western += _is_western_letter(character, before, after)
        elif character in _SYMBOLS:
            is_in_word = before.isalpha() and after.isalpha()
            n_western += character in "’·" or not is_in_word
    return n_western / n_characters if n_characters else 1.0


def _is_western_letter(letter, before, after):
    """Whether a letter is no capital in a word, nor between two foreign letters."""
    is_foreign_before = before > "\x7f" and before.isalpha()
    is_foreign_after = after > "\x7f" and after.isalpha()
    if is_foreign_before and is_foreign_after:
        return False
    return not (before.islower() and letter.isupper())
