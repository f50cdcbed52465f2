"""Words and entries of CSV files that people fill in, in a spreadsheet or by hand."""

import re

from .._utils.untrusted import refuse
from ..exceptions import ParameterError
from .reading import decode, split

# Words of a spreadsheet, in several languages -> whether they mean true.
WORDS = {
    "true": True, "1": True, "yes": True, "wahr": True, "vrai": True,
    "verdadero": True, "ja": True, "false": False, "0": False, "no": False,
    "falsch": False, "faux": False, "falso": False, "nein": False,
}  # fmt: skip
# One repeat before the exponent, so that its time is linear in the length of an entry.
_NUMBER = re.compile(r"[-+]?(?=[\d.,\s]*\d)[\d.,\s]+((?<=[\d.,])[eE][-+]?\d+)?%?")


def guarded(entry):
    """An entry that no spreadsheet takes for a formula: after an apostrophe, if needed.

    >>> [guarded(entry) for entry in ("=A1", "-1", "yes")]
    ["'=A1", '-1', 'yes']
    """
    if _is_formula(entry):
        return f"'{entry}"
    return entry


def unguarded(entry):
    """The entry of which `guarded` made this one."""
    if entry.startswith("'") and _is_formula(entry):
        return entry[1:]
    return entry


def _is_formula(entry):
    entry = entry.lstrip("'")
    starts_as_formula = entry[:1] in tuple("=+-@\t\r")
    return starts_as_formula and not _NUMBER.fullmatch(entry)


def read_lines(content, name, columns):
    """The lines of a CSV file, given its bytes, as dicts with these columns or more.

    A column index, from 0, may take the place of the column row.
    """
    try:
        fields, _ = split(decode(content)[0], header=True)
    except ValueError as error:
        raise ParameterError(
            name, f"must be a CSV file. Got one that is none: {error}"
        ) from None
    names = set(fields.names)
    if "index" in names:
        names.add("row")
    if not set(columns) <= names:
        refuse(name, f"a CSV file with the columns {', '.join(columns)}", fields.names)
    return [dict(zip(fields.names, row)) for row in fields.rows]


def row_of(text, name="row"):
    """The row number that a text is, or an error."""
    if not str(text).strip().isdecimal():
        refuse(name, "a row number", text)
    return int(text)
