"""Numbers, dates and missing entries of columns of strings.

A type has to fit all entries of a column. What two readings fit is decided later, by an
option or by the other columns of the file, or else it is a doubt.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..._utils.optional import import_optional

MISSING = {
    "", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "-", "--", "—", "–", "?",
    ".", "..", "#n/a", "#na", "#nv", "#wert!", "#value!", "#div/0!", "#ref!", "k.a.",
    "k. a.", "nd", "n.d.", "keine angabe", "missing", "unknown", "unbekannt",
    "(missing)", "(null)", "<na>", "inconnu", "s/o",
}  # fmt: skip
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y",
    "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y",
    "%d %b %y", "%b %d %Y", "%b %d, %Y",
)  # fmt: skip
_FIRST = 20  # entries that are tried before all others are
_LONGEST_NUMBER = 15  # digits that a float keeps
_MOST_ODD_WORDS = 5  # words in a column of numbers or dates that are read as missing
_MOST_ODD = 0.1  # fraction of the rows that may hold such words
_FEWEST_TYPED = 20  # distinct entries, above which a column of texts may look typed
_MOST_SHAPES = 12  # shapes of entries, digits aside, of a column of units

# A mark of thousands that is a space or an apostrophe.
_SPACE = re.compile(r"(?<=\d)[ '’\u00a0\u202f\u2009](?=\d{3}(?!\d))")
# A currency before, or a unit behind; other letters before are a code.
_AFFIX = re.compile(
    r"(?P<before>[€$£¥]|EUR|USD|CHF|GBP|)\s?"
    r"(?P<number>[+-]?(?!0\d)[\d.,'’\u00a0\u202f ]*\d[\d.,]*)"
    r"\s?(?P<after>[^\d\s.,+()\-]{0,6})"
)
_MOMENT = re.compile(
    r"(?P<day>[^:]*?\d)"
    r"([ T]+(?P<time>[0-2]?\d:[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[AaPp][Mm])?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?)?"
)


def _number_pattern(decimal, group):
    whole = rf"(0|[1-9]\d*|[1-9]\d{{0,2}}(\{group}\d{{3}})+)"
    return re.compile(rf"[+-]?({whole}(\{decimal}\d*)?|\{decimal}\d+)([eE][+-]?\d+)?")


_NUMBERS = {".": _number_pattern(".", ","), ",": _number_pattern(",", ".")}


@dataclass(frozen=True)
class TextColumn:
    """The entries of a column of a file, and what they can be read as.

    `kind` is "text", "number" or "date"; `readings`: key -> an entry for each distinct
    cell that is not missing. Keys are a decimal mark, an order of day, month and year,
    or "" where there is no choice.
    """

    cells: list
    counts: Counter  # of the distinct cells
    kind: str = "text"
    readings: dict = field(default_factory=dict)
    missing: tuple = ("",)  # words that mean missing
    odd_words: tuple = ()  # words that are read as missing, since all others are typed
    note: str = ""  # what was done to the cells
    looks_typed: bool = False


class _Typing(NamedTuple):
    """The kind of a column, its readings, and a note on what was done to the cells."""

    kind: str
    readings: dict
    note: str = ""


def read_column(cells, missing, as_text):
    """The column of these cells; `missing`: words that the user says mean missing."""
    cells = [cell.strip() for cell in cells]
    counts = Counter(cells)
    if as_text:
        return TextColumn(cells, counts, missing=("", *missing))
    words = [cell for cell in counts if cell.lower() in MISSING or cell in missing]
    present = [cell for cell in counts if cell not in words]
    if not present:
        return TextColumn(cells, counts, "number", {"": np.zeros(0)}, tuple(words))

    # A few words among numbers or dates are read as missing, and asked about.
    typing = _type_of(present)
    odd_words = ()
    if typing.kind == "text" and not typing.note:
        odd_words = tuple(cell for cell in present if not re.match(r"\W*\d", cell))
        n_odd = sum(counts[cell] for cell in odd_words)
        is_rare = len(odd_words) <= _MOST_ODD_WORDS and n_odd <= _MOST_ODD * len(cells)
        if is_rare and 0 < len(odd_words) < len(present):
            typing = _type_of([cell for cell in present if cell not in odd_words])
    if typing.kind != "text":
        return TextColumn(
            cells,
            counts,
            kind=typing.kind,
            readings=typing.readings,
            missing=tuple(words),
            odd_words=odd_words,
            note=typing.note,
        )

    # In a column of texts, a word such as "none" is a text as well.
    return TextColumn(
        cells,
        counts,
        missing=tuple(word for word in words if word == "" or word in missing),
        note=typing.note,
        looks_typed=not typing.note and _look_typed(present, counts),
    )


def _type_of(cells):
    """The typing that fits all of these distinct cells."""
    if all(map(str.isdecimal, cells)):
        has_zero = any(len(cell) > 1 and cell[0] == "0" for cell in cells)
        if has_zero or max(map(len, cells)) > _LONGEST_NUMBER:
            return _Typing("text", {}, "digits that stay text")
        if all(len(cell) == 8 and cell[:2] in ("19", "20") for cell in cells):
            dates = _days(cells, "%Y%m%d")
            if dates is not None:
                return _Typing("date", {"ymd": dates})
    has_exponent = any(re.fullmatch(r"\d+[eE]\d+", cell) for cell in cells)
    if has_exponent and len(set(map(len, cells))) == 1:
        return _Typing("text", {}, "codes such as 1E5 that stay text")

    numbers = _numbers(cells)
    if numbers:
        return _Typing("number", numbers)
    numbers, affix = _numbers_with_affix(cells)
    if numbers:
        return _Typing("number", numbers, f"{affix!r} cut off")
    dates = _dates(cells)
    return _Typing("date" if dates else "text", dates)


def _numbers(cells):
    """Decimal mark -> numbers; "" if no cell has a mark, of decimals or thousands."""
    cells = [_SPACE.sub("", cell) for cell in cells]
    numbers = {}
    for decimal, group in (".,", ",."):
        if all(map(_NUMBERS[decimal].fullmatch, cells)):
            plain = [cell.replace(group, "").replace(decimal, ".") for cell in cells]
            numbers[decimal] = np.array(plain).astype(np.float64)
    if len(numbers) < 2:
        return numbers
    if np.array_equal(numbers["."], numbers[","]):
        return {"": numbers["."]}

    # The mark that the cells have comes first: it is more probably the decimal one.
    if any("," in cell for cell in cells):
        return {",": numbers[","], ".": numbers["."]}
    return numbers


def _numbers_with_affix(cells):
    """Readings of numbers with one currency or unit, none else; and the affix."""
    matches = [_AFFIX.fullmatch(cell) for cell in cells]
    if None in matches:
        return {}, ""
    affixes = {(match["before"], match["after"]) for match in matches}
    if len(affixes) > 1:
        return {}, ""
    [(before, after)] = affixes
    numbers = _numbers([match["number"].strip() for match in matches])
    return numbers, before + after


def _dates(cells):
    """Order of day, month and year -> dates."""
    if not all(map(_MOMENT.fullmatch, cells[:_FIRST])):
        return {}
    matches = [_MOMENT.fullmatch(cell) for cell in cells]
    if None in matches:
        return {}
    zones = {match["zone"] for match in matches if match["time"]}
    if len(zones) > 1:
        return {}

    days = [match["day"] for match in matches]
    seconds = np.array([_seconds(match["time"]) for match in matches])
    dates = {}
    for form in _DAYS:
        if _days(days[:_FIRST], form) is None:
            continue
        midnights = _days(days, form)
        if midnights is not None:
            order = re.sub("[^dmy]", "", form.lower().replace("b", "m"))
            dates[order] = midnights + (seconds * 1e6).astype("timedelta64[us]")
    # Two orders that give the same dates, as 05/05/2026, leave no choice.
    if len(dates) == 2 and np.array_equal(*dates.values()):
        dates.popitem()
    return dates


def _days(texts, form):
    """Dates of a format, or None if it does not fit all texts."""
    pd = import_optional("pandas", "read_table")
    dates = pd.to_datetime(pd.Series(texts), format=form, errors="coerce")
    return None if dates.isna().any() else dates.to_numpy("datetime64[us]")


def _seconds(time):
    """Seconds since midnight of a time such as 10:30, 10:30:05 or 1:30 pm."""
    if time is None:
        return 0.0
    hour, minute, second = f"{time.rstrip(' aApPmM')}:0".split(":")[:3]
    hour = int(hour)
    if time[-1] in "mM":
        is_afternoon = time[-2] in "pP"
        hour = hour % 12 + 12 * is_afternoon
    return 3600 * hour + 60 * int(minute) + float(second)


def _look_typed(present, counts):
    """Whether a column of texts may have been meant as numbers, units or dates."""
    if len(present) <= _FEWEST_TYPED:
        return False
    shapes = {re.sub(r"[\d.,]+", "#", cell) for cell in present}
    are_units = all(re.fullmatch(r"#\.? ?[^\W\d#]+( #)?", shape) for shape in shapes)
    if are_units and len(shapes) <= _MOST_SHAPES:
        return True
    digits = [cell for cell in present if re.fullmatch(r"\W*\d[\d\W]*", cell)]
    n_digits = sum(counts[cell] for cell in digits)
    return n_digits > 0.5 * sum(counts[cell] for cell in present)
