"""One thing that is, or may be, wrong with a table."""

from dataclasses import dataclass, field

SEVERITIES = ("error", "warning", "question", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is, or may be, wrong with a table.

    Parameters
    ----------
    kind : str
        A stable name, such as "leak".
    severity : {"error", "warning", "question", "note"}
        "error" holds without a model; "warning" is rarely false; "question": only a
        person who knows the table can answer; "note": there is nothing to do.
    sentence : str
        For a person who knows the table and no statistics.
    rows : tuple of int, default=()
        Rows that it is about, from 0.
    columns : tuple of str, default=()
        Columns that it is about.
    cells : tuple of (int, str), default=()
        Rows and columns of entries, most improbable first.
    evidence : dict, default=None
        Numbers of the rule.
    fix : tuple of (int, str, str), default=()
        Row, column and new entry, where there is one.

    Examples
    --------
    >>> from skvalue.audit.checks import Finding
    >>> print(Finding("constant", "note", "'country' has the same entry in all rows."))
    note constant: 'country' has the same entry in all rows.
    """

    kind: str
    severity: str
    sentence: str
    rows: tuple = ()
    columns: tuple = ()
    cells: tuple = ()
    evidence: dict = field(default_factory=dict)
    fix: tuple = ()

    @property
    def of_validation(self):
        """Whether its rows are those of the validation points."""
        return self.kind.endswith("in validation")

    def __str__(self):
        return f"{self.severity} {self.kind}: {self.sentence}"


def rows_shown(finding, most=20):
    """The first rows of a finding, or of its entries; none of validation points.

    >>> rows_shown(Finding("far rows", "question", "Two.", rows=(7, 9)), most=1)
    [7]
    """
    if finding.of_validation:
        return []
    rows = [row for row, _ in finding.cells] or finding.rows
    return list(dict.fromkeys(rows))[:most]
