"""Numbers, dates and missing entries of columns of strings.

A type has to fit all entries of a column. What two readings fit is decided later, by an
option or by the other columns of the file, or else it is a doubt.
"""

import datetime
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

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
# A currency before, or a unit behind; other letters before are a code. The number has
# one repeat, so that a long entry takes no more than a time linear in its length.
_AFFIX = re.compile(
    r"(?P<before>[€$£¥]|EUR|USD|CHF|GBP|)\s?"
    r"(?P<number>[+-]?(?!0\d)[\d.,'’\u00a0\u202f ]*(?<=[\d.,]))"
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
_GROUPS = {".": ",", ",": "."}  # decimal mark -> that of thousands
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
           "dec")  # fmt: skip
_LATEST_YEAR = 2068  # of years of two digits: from 1969 on


class DateForm(NamedTuple):
    """How the dates of a column are written.

    `latest_year`: years of two digits are of the hundred years that end with it;
    `zone`: the time zone of all entries that have a time, or None.
    """

    days: str
    latest_year: int = _LATEST_YEAR
    zone: str | None = None
    is_doubtful: bool = False  # whether years of two digits can be of two centuries


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
    affix: tuple = ("", "")  # that was cut off, before and behind numbers
    forms: dict = field(default_factory=dict)  # order -> DateForm
    looks_typed: bool = False


class _Typing(NamedTuple):
    """The kind of a column and its readings, and the rest as of `TextColumn`."""

    kind: str
    readings: dict
    note: str = ""
    affix: tuple = ("", "")
    forms: dict = {}


def read_column(cells, missing, as_text, latest_year=None):
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
    typing = _type_of(present, latest_year)
    odd_words = ()
    if typing.kind == "text" and not typing.note:
        odd_words = tuple(cell for cell in present if not re.match(r"\W*\d", cell))
        n_odd = sum(counts[cell] for cell in odd_words)
        is_rare = len(odd_words) <= _MOST_ODD_WORDS and n_odd <= _MOST_ODD * len(cells)
        if is_rare and 0 < len(odd_words) < len(present):
            usual = [cell for cell in present if cell not in odd_words]
            typing = _type_of(usual, latest_year)
    if typing.kind != "text":
        return TextColumn(
            cells,
            counts,
            kind=typing.kind,
            readings=typing.readings,
            missing=tuple(words),
            odd_words=odd_words,
            note=typing.note,
            affix=typing.affix,
            forms=typing.forms,
        )

    # In a column of texts, a word such as "none" is a text as well.
    return TextColumn(
        cells,
        counts,
        missing=tuple(word for word in words if word == "" or word in missing),
        note=typing.note,
        looks_typed=not typing.note and _look_typed(present, counts),
    )


def _type_of(cells, latest_year):
    """The typing that fits all of these distinct cells."""
    if all(map(str.isdecimal, cells)):
        has_zero = any(len(cell) > 1 and cell[0] == "0" for cell in cells)
        if has_zero or max(map(len, cells)) > _LONGEST_NUMBER:
            return _Typing("text", {}, "digits that stay text")
        if all(len(cell) == 8 and cell[:2] in ("19", "20") for cell in cells):
            days = days_by(cells, DateForm("%Y%m%d"))
            if not np.isnat(days).any():
                dates = days.astype("datetime64[us]")
                forms = {"ymd": DateForm("%Y%m%d")}
                return _Typing("date", {"ymd": dates}, forms=forms)
    has_exponent = any(re.fullmatch(r"\d+[eE]\d+", cell) for cell in cells)
    if has_exponent and len(set(map(len, cells))) == 1:
        return _Typing("text", {}, "codes such as 1E5 that stay text")

    numbers = _numbers(cells)
    if numbers:
        return _Typing("number", numbers)
    numbers, affix = _numbers_with_affix(cells)
    if numbers:
        note = f"{''.join(affix)!r} cut off"
        return _Typing("number", numbers, note, affix=affix)
    dates, forms = _dates(cells, latest_year)
    if not dates:
        return _Typing("text", {})
    return _Typing("date", dates, forms=forms)


def _numbers(cells):
    """Decimal mark -> numbers; "" if no cell has a mark, of decimals or thousands."""
    cells = [_SPACE.sub("", cell) for cell in cells]
    numbers = {}
    for decimal, pattern in _NUMBERS.items():
        if all(map(pattern.fullmatch, cells)):
            plain = [_plain_number(cell, decimal) for cell in cells]
            numbers[decimal] = np.array(list(map(float, plain)))
    if len(numbers) < 2:
        return numbers
    if np.array_equal(numbers["."], numbers[","]):
        return {"": numbers["."]}

    # The mark that the cells have comes first: it is more probably the decimal one.
    if any("," in cell for cell in cells):
        return {",": numbers[","], ".": numbers["."]}
    return numbers


def _plain_number(cell, decimal):
    """The text of a number without marks of thousands, with a decimal point."""
    return cell.replace(_GROUPS[decimal], "").replace(decimal, ".")


def numbers_by(cells, decimal, affix=("", "")):
    """Numbers of one decimal mark and one affix; NaN for a cell that is none such.

    Each is read by itself, whatever the others are.
    """
    numbers = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if affix != ("", ""):
            match = _AFFIX.fullmatch(cell)
            if match is None or (match["before"], match["after"]) != affix:
                continue
            cell = match["number"].strip()
        cell = _SPACE.sub("", cell)
        if _NUMBERS[decimal].fullmatch(cell):
            numbers[i] = float(_plain_number(cell, decimal))
    return numbers


def _numbers_with_affix(cells):
    """Readings of numbers with one currency or unit, none else; and the affix."""
    matches = [_AFFIX.fullmatch(cell) for cell in cells]
    if None in matches:
        return {}, ("", "")
    affixes = {(match["before"], match["after"]) for match in matches}
    if len(affixes) > 1:
        return {}, ("", "")
    [affix] = affixes
    return _numbers([match["number"].strip() for match in matches]), affix


def _dates(cells, latest_year):
    """Order of day, month and year -> dates; and order -> how they are written."""
    if not all(map(_MOMENT.fullmatch, cells[:_FIRST])):
        return {}, {}
    matches = [_MOMENT.fullmatch(cell) for cell in cells]
    if None in matches:
        return {}, {}
    zones = {match["zone"] for match in matches if match["time"]}
    if len(zones) > 1:
        return {}, {}
    zone = zones.pop() if zones else None

    texts = [match["day"] for match in matches]
    times = _times([match["time"] for match in matches])
    dates = {}
    forms = {}
    for days in _DAYS:
        form = DateForm(days, zone=zone)
        if np.isnat(days_by(texts[:_FIRST], form)).any():
            continue
        form = _with_century(texts, form, latest_year)
        midnights = days_by(texts, form)
        if not np.isnat(midnights).any():
            order = re.sub("[^dmy]", "", days.lower().replace("b", "m"))
            dates[order] = midnights.astype("datetime64[us]") + times
            forms[order] = form
    # Two orders that give the same dates, as 05/05/2026, leave no choice.
    if len(dates) == 2 and np.array_equal(*dates.values()):
        dates.popitem()
    return dates, forms


def _with_century(texts, form, latest_year):
    """The form, with the latest year that its years of two digits can be.

    Without one that is given, it is the present year or 2068, whichever leaves the
    dates closer together; that is doubtful unless they are twice as close.
    """
    if "%y" not in form.days:
        return form
    if latest_year is not None:
        return form._replace(latest_year=latest_year)
    present = datetime.date.today().year
    spans = {}
    for year in (present, _LATEST_YEAR):
        days = days_by(texts, form._replace(latest_year=year))
        spans[year] = np.ptp(days.astype("datetime64[Y]").astype(int))
        if year == _LATEST_YEAR and days.max() < np.datetime64(str(present + 1)):
            return form
    year = min(spans, key=spans.get)
    is_doubtful = 2 * spans[year] >= max(spans.values())
    return form._replace(latest_year=year, is_doubtful=bool(is_doubtful))


def dates_by(cells, form):
    """Dates of one form; NaT for a cell that is none such.

    Each is read by itself, whatever the others are.
    """
    days = []
    times = []
    for cell in cells:
        match = _MOMENT.fullmatch(cell)
        if match is None or (match["time"] and match["zone"] != form.zone):
            days.append("")
            times.append(None)
        else:
            days.append(match["day"])
            times.append(match["time"])
    return days_by(days, form).astype("datetime64[us]") + _times(times)


def days_by(texts, form):
    """Days (datetime64[D]) of a form; NaT for a text that is none such."""
    pattern = _days_pattern(form.days)
    days = [_day(pattern.fullmatch(text), form.latest_year) for text in texts]
    return np.array(days, dtype="datetime64[D]")


@cache
def _days_pattern(days):
    """A pattern of the year, month and day of a format such as %d.%m.%Y."""
    groups = {
        "%Y": r"(?P<year>\d{4})", "%y": r"(?P<year>\d\d)", "%m": r"(?P<month>\d\d?)",
        "%b": "(?P<month>[A-Za-z]{3})", "%d": r"(?P<day>\d\d?)", r"\ ": r"\s+",
    }  # fmt: skip
    pattern = re.escape(days)
    for code, group in groups.items():
        pattern = pattern.replace(code, group)
    return re.compile(pattern)


def _day(match, latest_year):
    """The date of a match, or None."""
    if match is None:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year = latest_year - (latest_year - year) % 100
    month = match["month"].lower()
    if month.isdecimal():
        month = int(month)
    elif month in _MONTHS:
        month = _MONTHS.index(month) + 1
    else:
        return None
    try:
        return datetime.date(year, month, int(match["day"]))
    except ValueError:
        return None


def _times(times):
    """Times of day as durations."""
    seconds = np.array([_seconds(time) for time in times], dtype=np.float64)
    return np.rint(seconds * 1e6).astype("timedelta64[us]")


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
