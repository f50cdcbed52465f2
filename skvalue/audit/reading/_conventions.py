"""What the columns of a file have in common: decimal mark and order of dates."""

from collections import defaultdict

from ..._utils.messages import Message

_ORDERS = {
    "dmy": "day, month, year",
    "mdy": "month, day, year",
    "ymd": "year, month, day",
}
_MARKS = {".": "decimal point", ",": "decimal comma"}
_OPTIONS = {"number": "decimal", "date": "dates"}


class Conventions:
    """Decimal mark and order of dates of a file, its notes and its doubts.

    `notes` maps a note to the columns that it is about; `doubts` are sentences.
    """

    def __init__(self, columns, decimal, dates):
        self.given = {"number": decimal, "date": dates}
        self.common = {"number": set(), "date": set()}
        self.notes = defaultdict(list)
        self.doubts = []
        self.keys = {}  # column -> that of the reading that was chosen
        for column in columns:
            if column.kind in self.common and len(column.readings) == 1:
                self.common[column.kind] |= set(column.readings) - {"", "ymd"}
        if len(self.common["number"]) > 1 and decimal is None:
            self.ask(
                "some columns have a decimal comma, others a decimal point: each is "
                "read by its own entries.",
                "Pass {} to accept that.",
                [("decimal", ...)],
            )

    def ask(self, problem, advice, settings):
        """Add a doubt; the first of the settings has the parameter that decides."""
        parameter = settings[0][0]
        self.doubts.append(Message(parameter, problem, advice, settings, subject=""))

    def common_key(self, kind):
        """Decimal mark, or order of dates, by the option or by all columns; or None."""
        if self.given[kind]:
            return self.given[kind]
        keys = self.common[kind]
        return min(keys) if len(keys) == 1 else None

    def choose(self, name, column, example):
        """The entries of a column, as the option or the other columns of the file ask.

        ``example``: an entry, for the doubt if nothing decides.
        """
        keys = list(column.readings)
        key = self.common_key(column.kind)
        if key not in keys:
            key = keys[0]
            if len(keys) > 1:
                self._doubt(name, column, example)
        self.keys[name] = key
        if key in column.forms and column.forms[key].is_doubtful:
            self._doubt_century(name, column.forms[key].latest_year, example)
        if key in _ORDERS:
            self.notes[f"dates of {_ORDERS[key]}"].append(name)
        elif key == "," or (key and len(keys) > 1):
            self.notes[_MARKS[key]].append(name)
        return column.readings[key]

    def _doubt(self, name, column, example):
        """Ask which of two readings is right."""
        option = _OPTIONS[column.kind]
        first_key, second_key = column.readings
        first = str(column.readings[first_key][0])[:10]
        second = str(column.readings[second_key][0])[:10]
        self.ask(
            f"{name!r}: {example!r} can be {first} or {second}, read as {first}.",
            "Pass {} or {}.",
            [(option, first_key), (option, second_key)],
        )

    def _doubt_century(self, name, latest_year, example):
        """Ask of which hundred years the years of two digits are."""
        self.ask(
            f"{name!r}: years of two digits, such as in {example!r}, can be of two "
            f"centuries, read as {latest_year - 99} to {latest_year}.",
            "Pass {} for the hundred years that end with it.",
            [("latest_year", ...)],
        )
