"""From the bytes of a file to its fields: encoding, separator and header, or why they
are unknown.

Refusals are ValueErrors that name the parameter of `read_table` that decides.
"""

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_SEPARATORS = ",;\t|"
_NO_TEXT = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x1f\x8b": "a gzip file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
}
_MARKS = {  # the longer ones first
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
_WESTERN = 0.98  # fraction of characters that must stand as they do in Western words
_LETTERS = set("äöüßÄÖÜéèêëÉÈÊàâÀÂçÇîïÎÔôûùÛÙñÑáíóúÁÍÓÚåøæÅØÆœŒìòÌÒãõÃÕýÝðþ")
_SYMBOLS = set("€°–—’‘“”„§²³µ«»±·…½¼¾£¥×÷©®™•ªº¿¡\u00a0")
_PLAIN = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


# Encoding -----------------------------------------------------------------------------


def decode(raw, encoding=None):
    """Text of the bytes of a file, with its byte order mark, and the codec that gives
    them back."""
    if encoding is not None:
        try:
            return raw.decode(encoding), encoding
        except (UnicodeError, LookupError) as error:
            raise ValueError(
                f"encoding={encoding!r} does not fit the file: {error}."
            ) from None
    for start, what in _NO_TEXT.items():
        if raw.startswith(start):
            raise ValueError(f"the file must be text, such as CSV. Got {what}.")
    codec = next(
        (codec for mark, codec in _MARKS.items() if raw.startswith(mark)), None
    )
    zeros = np.frombuffer(raw[:100_000], np.uint8) == 0
    if codec is None and zeros.any():
        by_place = zeros[::2].mean(), zeros[1::2].mean()
        if max(by_place) < 0.5 or min(by_place) > 0.05:
            raise ValueError("the file must be text, such as CSV. Got zero bytes.")
        codec = "utf-16-le" if by_place[1] > by_place[0] else "utf-16-be"
    try:
        return raw.decode(codec or "utf-8"), codec or "utf-8"
    except UnicodeDecodeError as error:
        if codec is not None:
            raise ValueError(
                f"the file starts as {codec} and is not. Pass encoding=."
            ) from None
        first_bad = error.start
    pairs = len(re.findall(rb"[\xc3-\xf4][\x80-\xbf]", raw))
    if pairs and 2 * pairs >= 0.3 * len(re.findall(rb"[\x80-\xff]", raw)):
        line = raw[:first_bad].count(b"\n") + 1
        raise ValueError(
            f"line {line} is not UTF-8, though most lines are: the file has two encodings. Mend "
            "that line, or pass encoding=."
        )
    text = raw.decode("cp1252", errors="replace")
    if "\ufffd" not in text and _fraction_western(text) >= _WESTERN:
        return text, "cp1252"
    raise ValueError("the encoding is unknown. Pass encoding=.")


def _fraction_western(text):
    """Fraction of non-ASCII characters that stand as they do in Western European
    text."""
    good = total = 0
    for match in re.finditer(r"[^\x00-\x7f]", text):
        letter, i = match.group(), match.start()
        before, after = text[max(i - 1, 0) : i], text[i + 1 : i + 2]
        total += 1
        if letter in _LETTERS:
            foreign = (
                before > "\x7f"
                and after > "\x7f"
                and before.isalpha()
                and after.isalpha()
            )
            good += not (foreign or (before.islower() and letter.isupper()))
        elif letter in _SYMBOLS:
            good += letter in "’·" or not (before.isalpha() and after.isalpha())
    return good / total if total else 1.0


# Separator and header -----------------------------------------------------------------


@dataclass(frozen=True)
class Fields:
    """The rows of a text, split into fields.

    Empty lines are no rows, but count in `numbers`, in which the row after the header
    is 0. The text is `before`, the `texts` of the rows, with the empty lines above
    them, and `after`.
    """

    names: list  # of the columns
    rows: list
    numbers: np.ndarray  # of the rows
    separator: str
    before: str
    texts: list
    after: str


def split(text, separator=None, skip_lines=0, header=None):
    """Fields of a text, and sentences on what was assumed; options as of
    `read_table`."""
    lines, start = (
        list(io.StringIO(text.removeprefix("\ufeff"), newline="")),
        skip_lines,
    )
    told = re.fullmatch(r"sep=(.)\s*", "".join(lines[start : start + 1]), re.IGNORECASE)
    if told:
        separator, start = separator or told[1], start + 1
    parsed = {c: _parse(lines, start, c) for c in (separator or _SEPARATORS)}
    width = {c: _width(records) for c, records in parsed.items()}
    best, *others = sorted(width, key=lambda c: -width[c])
    if not width[best]:
        raise ValueError(_why_ragged(lines, parsed))
    if others and width[others[0]] == width[best]:
        raise ValueError(
            f"both {best!r} and {others[0]!r} give {width[best]} fields in every line. Pass "
            "separator=."
        )
    is_usual = best == "," and not any(width[c] for c in others)
    name = {"\t": "tabs", " ": "spaces"}.get(best, best)
    said = [] if is_usual else [f"fields separated by {name}"]
    records, ends, numbers = zip(*parsed[best])
    names, rows = _name_columns(records, header)
    n_before, ends = len(records) - len(rows), [start, *ends]
    texts = ["".join(lines[first:end]) for first, end in pairwise(ends[n_before:])]
    numbers = np.array(numbers[n_before:]) - numbers[0] - n_before
    mark = "\ufeff" * text.startswith("\ufeff")
    before, after = (
        "".join([mark, *lines[: ends[n_before]]]),
        "".join(lines[ends[-1] :]),
    )
    return Fields(names, rows, numbers, best, before, texts, after), said


def _parse(lines, start, separator):
    """Records by a separator, each with the line, from 1, with which it ends, and its
    number.

    Empty lines are no records, but count in the numbers. None if quotes do not match.
    """
    reader = csv.reader(lines[start:], delimiter=separator, strict=True)
    try:
        return [
            (r, start + reader.line_num, number) for number, r in enumerate(reader) if r
        ]
    except csv.Error:
        return None


def _width(records):
    """Number of fields of two records or more, 0 if it differs or is one."""
    widths = {len(record) for record, *_ in records or ()}
    return max(widths) if len(widths) == 1 and widths != {1} and len(records) > 1 else 0


def _why_ragged(lines, parsed):
    """Why no separator gives the same number of fields in every line."""
    first = "".join(lines[:1])
    unclosed = [c for c, records in parsed.items() if records is None and c in first]
    parsed = {c: records for c, records in parsed.items() if records}
    if unclosed:
        return f"a quote is not closed, if fields are separated by {unclosed[0]!r}."
    if not parsed:
        return "the file must have a header and rows. Got none, or quotes that do not match."
    if all(len(records) < 2 for records in parsed.values()):
        return "the file must have at least one row. Got a header alone."

    def usual(separator):
        widths = Counter(len(record) for record, *_ in parsed[separator])
        width, times = widths.most_common(1)[0]
        return (width > 1) * times, width

    best = max(parsed, key=usual)
    times, width = usual(best)
    if not times:
        return "no separator (comma, semicolon, tab, |) gives two columns. Pass separator=."
    odd = [i for i, (record, *_) in enumerate(parsed[best]) if len(record) != width]
    record, end, _ = parsed[best][odd[0]]
    got = (
        f"line {end} must have {width} fields, as most lines have (separated by {best!r}). Got "
        f"{len(record)}"
    )
    if odd[-1] < 5 and odd == list(range(len(odd))):
        return f"{got}: is it a title? Pass skip_lines={parsed[best][odd[-1]][1]}."
    return f"{got}: mend it, or pass separator=."


def _name_columns(records, header=None):
    """Names of the columns, and the rows below them; `header` as of `read_table`."""
    if header is False:
        return [f"column {i + 1}" for i in range(len(records[0]))], records
    names, rows = [name.strip() for name in records[0]], records[1:]
    for i, name in enumerate(names):
        if not name and i not in (0, len(names) - 1):
            raise ValueError(
                f"column {i + 1} must have a name. Got none: pass header=False?"
            )
        names[i] = name or f"column {i + 1}"
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"the header must name every column once. Got {name!r} twice: rename one, or pass "
            "header=False."
        )
    if header is None:
        _refuse_data(names, rows)
    return names, rows


def _refuse_data(names, rows):
    """Refuse names that are entries: numbers above numbers, or words of their own
    columns."""
    entries, n_texts, why = [], 0, "{!r} names a column of numbers"
    for name, column in zip(names, zip(*rows)):
        counts = Counter(column)
        plain = sum(times for c, times in counts.items() if _PLAIN.fullmatch(c.strip()))
        numeric = plain > 0.8 * len(rows)
        if (
            numeric
            and _PLAIN.fullmatch(name)
            and not re.fullmatch(r"(19|20)\d\d", name)
        ):
            entries = [name]
            break
        n_texts += not numeric
        if counts[name] >= max(2, 0.02 * len(rows)):
            entries.append(name)
    else:
        why = "{!r} is an entry of its column, too"
        if len(entries) <= n_texts / 2:
            return
    raise ValueError(
        f"the first line looks like data: {why.format(entries[0])}. Pass header=False or "
        "header=True."
    )
