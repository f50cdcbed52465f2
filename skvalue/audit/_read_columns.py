"""Numbers, dates and missing entries of columns of strings: a type has to fit all
entries.

Each function takes the distinct entries of a column. What two readings fit is decided
by an option or by the other columns of the file, or else it is a doubt.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from .._utils.optional import import_optional

MISSING = {
    "", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "-", "--", "—", "–", "?", ".", "..",
    "#n/a", "#na", "#nv", "#wert!", "#value!", "#div/0!", "#ref!", "k.a.", "k. a.", "nd", "n.d.",
    "keine angabe", "missing", "unknown", "unbekannt", "(missing)", "(null)", "<na>", "inconnu",
    "s/o",
}  # fmt: skip
_CODES = (-1, -9, -99, -999, -9999, 99, 999, 9999, 99999, 0)
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y",
    "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %b %y", "%b %d %Y",
    "%b %d, %Y",
)  # fmt: skip
_ORDERS = {
    "dmy": "day, month, year",
    "mdy": "month, day, year",
    "ymd": "year, month, day",
}
_MARK = {".": "decimal point", ",": "decimal comma"}
_SPACE = re.compile(r"(?<=\d)[ '’\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_AFFIX = re.compile(  # a currency before, or a unit behind; other letters before are a code
    r"(?P<before>[€$£¥]|EUR|USD|CHF|GBP|)\s?(?P<number>[+-]?(?!0\d)[\d.,'’\u00a0\u202f ]*\d[\d.,]*)"
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
class Cells:
    """The entries of a column of a file, and their readings.

    `kind` is "text", "number" or "date"; `readings`: key -> an entry for each distinct
    cell that is not missing. Keys are a decimal mark, an order of day, month and year,
    or "" where there is no choice.
    """

    cells: list
    counts: Counter  # of the distinct cells
    kind: str = "text"
    readings: dict = field(default_factory=dict)
    missing: tuple = ("",)  # words that count as missing
    odd: tuple = ()  # words that do, though they are not known to mean it
    said: str = ""
    looks_typed: bool = False


def read_column(cells, missing, as_text):
    """All readings of the cells of a column; some words are asked to mean missing."""
    cells = [c.strip() for c in cells]
    counts = Counter(cells)
    if as_text:
        return Cells(cells, counts, missing=("", *missing))
    words = tuple(c for c in counts if c.lower() in MISSING or c in missing)
    body, odd = [c for c in counts if c not in words], ()
    if not body:
        return Cells(cells, counts, "number", {"": np.zeros(0)}, words)
    kind, readings, said = _typed(body)
    if kind == "text" and not said:
        odd = tuple(c for c in body if not re.match(r"\W*\d", c))
        n_odd = sum(counts[c] for c in odd)
        if 0 < len(odd) <= 5 and n_odd <= 0.1 * len(cells) and len(odd) < len(body):
            kind, readings, said = _typed([c for c in body if c not in odd])
    if kind != "text":
        return Cells(cells, counts, kind, readings, words, odd, said)
    typed = not said and _look_typed(body, counts)
    words = tuple(c for c in words if c == "" or c in missing)
    return Cells(cells, counts, missing=words, said=said, looks_typed=typed)


def _typed(cells):
    """The kind that fits all cells, its readings, and what was done, in words."""
    if all(map(str.isdecimal, cells)):
        zero = next((c for c in cells if len(c) > 1 and c[0] == "0"), None)
        if zero is not None or max(map(len, cells)) > 15:
            return "text", {}, "digits that stay text"
        if all(len(c) == 8 and c[:2] in ("19", "20") for c in cells):
            dates = _days(cells, "%Y%m%d")
            if dates is not None:
                return "date", {"ymd": dates}, ""
    if (
        any(re.fullmatch(r"\d+[eE]\d+", c) for c in cells)
        and len(set(map(len, cells))) == 1
    ):
        return "text", {}, "codes such as 1E5 that stay text"
    found, said = _numbers(cells), ""
    if not found:
        parts = [_AFFIX.fullmatch(c) for c in cells]
        around = {(p["before"], p["after"]) if p else None for p in parts}
        if len(around) == 1 and None not in around:
            found = _numbers([p["number"].strip() for p in parts])
            said = f"{''.join(*around)!r} cut off"
    if found:
        return "number", found, said
    dates = _dates(cells)
    return "date" if dates else "text", dates, ""


def _numbers(cells):
    """Decimal mark -> numbers; the mark is "" where there is none, and no thousands
    mark."""
    cells, found = [_SPACE.sub("", c) for c in cells], {}
    for decimal, group in (".,", ",."):
        if all(map(_NUMBERS[decimal].fullmatch, cells)):
            plain = [c.replace(group, "").replace(decimal, ".") for c in cells]
            found[decimal] = np.array(plain).astype(np.float64)
    if len(found) == 2 and np.array_equal(found["."], found[","]):
        return {"": found["."]}
    if len(found) == 2 and any("," in c for c in cells):
        found = {",": found[","], ".": found["."]}  # the decimal mark comes first
    return found


def _dates(cells):
    """Order of day, month and year -> dates."""
    if not all(map(_MOMENT.fullmatch, cells[:20])):
        return {}
    parts = [_MOMENT.fullmatch(c) for c in cells]
    if not all(parts) or len({p["zone"] for p in parts if p["time"]}) > 1:
        return {}
    days, found = [p["day"] for p in parts], {}
    seconds = np.array([_seconds(p["time"]) for p in parts])
    for form in _DAYS:
        if _days(days[:20], form) is not None:
            dates = _days(days, form)
            if dates is not None:
                order = re.sub("[^dmy]", "", form.lower().replace("b", "m"))
                found[order] = dates + (seconds * 1e6).astype("timedelta64[us]")
    if len(found) == 2 and np.array_equal(*found.values()):
        found.popitem()
    return found


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
        hour = hour % 12 + 12 * (time[-2] in "pP")
    return 3600 * hour + 60 * int(minute) + float(second)


def _look_typed(body, cells):
    """Whether a column of texts may have been meant as numbers, units or dates."""
    if len(body) <= 20:
        return False
    shapes = {re.sub(r"[\d.,]+", "#", c) for c in body}
    units = len(shapes) <= 12 and all(
        re.fullmatch(r"#\.? ?[^\W\d#]+( #)?", s) for s in shapes
    )
    digits = sum(cells[c] for c in body if re.fullmatch(r"\W*\d[\d\W]*", c))
    return units or digits > 0.5 * sum(cells[c] for c in body)


# All columns --------------------------------------------------------------------------


class Conventions:
    """What the columns of a file have in common: decimal mark, order of dates, and what
    was said.

    `said` maps a sentence to the columns that it is about.
    """

    def __init__(self, columns, decimal, dates):
        self.given = {"number": decimal, "date": dates}
        self.common = {"number": set(), "date": set()}
        self.said, self.doubts = defaultdict(list), []
        for column in columns:
            if column.kind in self.common and len(column.readings) == 1:
                self.common[column.kind] |= set(column.readings) - {"", "ymd"}
        if len(self.common["number"]) > 1 and decimal is None:
            self.doubts.append(
                "some columns have a decimal comma, others a decimal point: each is read by its "
                "own entries. Pass decimal= to accept that."
            )

    def common_key(self, kind):
        """The decimal mark, or order of dates, by the option or by all columns that
        have one."""
        common = self.common[kind]
        return self.given[kind] or (min(common) if len(common) == 1 else None)

    def choose(self, name, column, example):
        """The entries of a column by the reading that the option or the other columns
        ask for."""
        keys, key = list(column.readings), self.common_key(column.kind)
        if key not in keys:
            key = keys[0]
            if len(keys) > 1:
                option = {"number": "decimal", "date": "dates"}[column.kind]
                first, second = (str(column.readings[key][0])[:10] for key in keys)
                self.doubts.append(
                    f"{name!r}: {example!r} can be {first} or {second}, read as {first}. Pass "
                    f"{option}={keys[0]!r} or {option}={keys[1]!r}."
                )
        if key in _ORDERS:
            self.said[f"dates of {_ORDERS[key]}"].append(name)
        elif key == "," or (key and len(keys) > 1):
            self.said[_MARK[key]].append(name)
        return column.readings[key]


def find_codes(values, times):
    """Numbers that may stand for missing, with how often each is there.

    They are repeated, and the only negative ones, or apart from all other numbers by
    more than a quarter of their range from 5 to 95 %.
    """
    n, found = times.sum(), []
    for code in _CODES if n >= 30 else ():
        n_code, others = times[values == code].sum(), values != code
        if n_code < max(3, 0.002 * n) or len(np.unique(values[others])) < 10:
            continue
        rest = np.unique(values[others])
        low, high = np.quantile(np.repeat(values[others], times[others]), [0.05, 0.95])
        gap = code - rest[-1] if code > rest[-1] else rest[0] - code
        apart = gap > 0.25 * (high - low) and gap > 3 * np.median(np.diff(rest))
        if apart or code < 0 <= rest[0]:
            found.append((code, int(n_code)))
    return found
