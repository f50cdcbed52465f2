"""The report of an audit: arrays, and what they are written to."""

import json
import os
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..._utils.csv_text import csv_text_of_frame
from ..._utils.optional import import_optional
from ..._utils.untrusted import read_record, read_text
from ..._utils.writing import write_files
from ...labels import check_verdicts, make_statement
from .._spreadsheets import guarded
from ._page import page
from ._record import check_record
from ._verdict_files import label_studio_tasks, read_verdicts

_FORMAT = "skvalue.AuditReport"
_VERSION = 1
_LIMIT = 100_000_000  # characters of a report that is read
_LONGEST_PATH = 4096  # characters


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit of a table found, to look at, to send, and to take verdicts.

    `audit_table` makes it. A notebook shows it as a page.

    Parameters
    ----------
    about : dict
        ``title``; ``target``, its name or None; ``task``; ``kind`` of the contents:
        "table", "text" or "image"; ``n_samples``; ``n_features``; ``score``, what
        `values` are; ``id``, the column that numbers the rows, or None; ``duplicates``,
        the verdict on equal rows; ``seconds`` of the fit; ``fdr``, ``confidence`` and
        ``n_verdicts`` of the detector; ``rows``, "file" or "python": how the page and
        files that the report writes count rows.
    notes : list of str
        What was done to the columns.
    values : ndarray of shape (n_samples,)
        As of :class:`~skvalue.LabelErrorDetector`: low values are doubtful.
    labels : ndarray of shape (n_samples,)
        The given labels, or targets.
    suggestions : ndarray of shape (n_samples,)
        The suggested labels, or predictions.
    listed : ndarray of shape (n_listed,)
        Rows whose suggestion differs, most doubtful first.
    to_review : ndarray of shape (n_to_review,)
        Rows to look at.
    conflicts : list of ndarray
        Groups of equal rows with different labels.
    rows : dict of lists
        Columns on the rows that the page shows: ``row``; ``probability`` of the
        suggestion, for classes; the probability of the given label by each default
        model; ``neighbors``, the fraction of the 10 nearest rows with the given label;
        ``supporters`` and ``opponents``, the rows that speak for and against it. Not
        all of these are there for all rows.
    contents : dict
        Row -> its columns (dict), its text, or its picture (a data URI), for the rows
        that the page shows.
    numbers : ndarray of shape (n_samples,)
        The place of each row in its file as a spreadsheet counts: the header is row 1.
        Without a file, 2, 3, ... for rows 0, 1, ..., as of a file of these rows.
    verdicts : dict of int to bool
        Row -> whether its label is wrong.
    duplicates, similar : list of ndarray
        Groups of equal rows, and pairs of nearly equal ones, as of
        :func:`~skvalue.labels.find_duplicates`.
    worth : dict or None
        For classes: ``accuracy`` of the models on rows that they have not seen, with
        ``low`` and ``high``, its interval at 95 %; ``commonest``, the commonest label,
        and ``commonest_rate``, its fraction; ``z`` of McNemar's test of the models
        against always saying that label; ``kappa`` by Cohen; ``weak``, whether z < 3 or
        kappa < 0.2: such models say nothing of a label; and ``classes``, the ``label``,
        ``n`` and ``accuracy`` of each.
    said : dict of lists of str
        Sentences that the page shows on how the file was read, "read", and on what was
        not checked, "unchecked".
    findings : list of Finding
        What :func:`~skvalue.audit.check_table` found, worst first.
    overview : list of dict
        ``column``, ``kind``, ``missing``, ``distinct``, ``said`` (the range or the
        commonest entry) and ``bars`` (the counts of a histogram) of each column, of at
        most 200.
    entries : list of str or None
        The targets as the file has them, for corrections; None without a file.

    Attributes
    ----------
    fraction_listed : float
        Fraction of all rows in `listed`.
    statement : Bunch or None
        What the verdicts say: ``q_values``, ``label_error``, ``error_rate`` and
        ``threshold``, as of :class:`~skvalue.LabelErrorDetector`; None without
        verdicts.

    See Also
    --------
    audit_table : Audit a table and return the report.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import LabelErrorDetector
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.audit import audit_table
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> y, flipped = flip_labels(y, 0.1, random_state=0)
    >>> detector = LabelErrorDetector(GaussianNB(), random_state=0)
    >>> report = audit_table(X, y, detector=detector, checks=None)
    >>> report
    AuditReport of 150 rows: the suggestion differs from the label in 22 (14.7 %);
    no verdicts yet
    >>> report.to_frame()[["row", "label", "suggestion"]].shape
    (22, 3)
    """

    about: dict
    notes: list
    values: np.ndarray
    labels: np.ndarray
    suggestions: np.ndarray
    listed: np.ndarray
    to_review: np.ndarray
    conflicts: list
    rows: dict
    contents: dict
    numbers: np.ndarray
    verdicts: dict = field(default_factory=dict)
    duplicates: list = field(default_factory=list)
    similar: list = field(default_factory=list)
    worth: dict | None = None
    said: dict = field(default_factory=dict)
    findings: list = field(default_factory=list)
    overview: list = field(default_factory=list)
    entries: list | None = None

    @property
    def fraction_listed(self):
        """Fraction of all rows whose suggestion differs."""
        return len(self.listed) / len(self.values)

    @cached_property
    def statement(self) -> Any:
        """What the verdicts say about the list, or None without verdicts."""
        if not self.verdicts:
            return None
        statement = make_statement(
            self.listed,
            self.verdicts,
            self.values,
            fdr=self.about["fdr"],
            confidence=self.about["confidence"],
        )
        return Bunch(**{name.rstrip("_"): entry for name, entry in statement.items()})

    def review(self, rows, is_error):
        """Take verdicts on rows; nothing is fitted again.

        Parameters
        ----------
        rows : array-like of int of shape (n_verdicts,)
            Row numbers.
        is_error : array-like of bool of shape (n_verdicts,)
            Whether the label of each row is wrong.

        Returns
        -------
        report : AuditReport
            A report with these verdicts and the earlier ones, of which it replaces
            those on the same rows.

        Raises
        ------
        ValueError
            If there is no such row, or a verdict is neither true nor false.
        """
        verdicts = check_verdicts(rows, is_error, len(self.values))
        return replace(self, verdicts={**self.verdicts, **verdicts})

    def read_verdicts(self, path):
        """Take verdicts from a file.

        Parameters
        ----------
        path : str or path
            A CSV file with the columns ``row`` and ``is_error``, as `to_csv` or the
            page writes it: true or false, or nothing where there is no verdict. Rows
            are counted as in a spreadsheet, whose header is row 1; or there is a column
            ``index`` in place of ``row``, in which the first is 0. Or JSON that
            Label Studio exported from the tasks of `to_label_studio`: a label is wrong
            where another one was chosen.

        Returns
        -------
        report : AuditReport
            As of `review`.

        Raises
        ------
        ValueError
            If the file has no verdict, or something else in the place of one.
        """
        rows, is_error = read_verdicts(path, self.labels, self.numbers)
        return self.review(rows, is_error)

    def to_frame(self):
        """Return the list as a pandas data frame, most doubtful row first.

        Returns
        -------
        frame : pandas.DataFrame
            ``row``, ``label``, ``suggestion``, ``value``, ``to_review``, ``is_error``
            (the verdict, None without one) and, with verdicts, ``q_value`` and
            ``label_error``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        listed = self.listed
        verdicts = [self.verdicts.get(row) for row in listed.tolist()]
        columns = {
            "row": listed,
            "label": self.labels[listed],
            "suggestion": self.suggestions[listed],
            "value": self.values[listed],
            "to_review": np.isin(listed, self.to_review),
            "is_error": np.array(verdicts, dtype=object),
        }
        statement = self.statement
        if statement is not None:
            columns["q_value"] = statement.q_values[listed]
            columns["label_error"] = statement.label_error[listed]
        return import_optional("pandas", "to_frame").DataFrame(columns)

    def to_csv(self, path=None):
        """Write the list as a CSV file.

        Of the rows of a file it has the column ``row``, which counts as a spreadsheet
        does: the header is row 1. Else it has the column ``index``, which counts from
        0. Verdicts are filled in in its column ``is_error``, see `read_verdicts`.
        A label that a spreadsheet would take for a formula, such as ``=A1``, has an
        apostrophe before it; numbers, such as -1, have none.

        Parameters
        ----------
        path : str or path, default=None
            File to write; None writes none.

        Returns
        -------
        text : str or None
            The CSV text, if there is no path.
        """
        frame = self.to_frame()
        if self.about["rows"] == "file":
            frame["row"] = self.numbers[self.listed]
        else:
            frame = frame.rename(columns={"row": "index"})
        for name in ("label", "suggestion"):
            if frame[name].dtype.kind == "O":
                frame[name] = list(map(guarded, frame[name]))
        return _write(csv_text_of_frame(frame), path)

    def to_html(self, path=None, *, files=None):
        """Make the page, a single file that works without a network.

        Parameters
        ----------
        path : str or path, default=None
            File to write; None writes none.
        files : dict, default=None
            Names of files for the commands that the page shows: "table" and "report".

        Returns
        -------
        html : str or None
            The page, if there is no path.

        Raises
        ------
        ImportError
            If jinja2 is not installed.
        """
        return _write(page(self, files or {}), path)

    def to_json(self, path=None):
        """Write all that the report holds as JSON, which `from_json` reads.

        Parameters
        ----------
        path : str or path, default=None
            File to write; None writes none.

        Returns
        -------
        text : str or None
            The JSON text, if there is no path.
        """
        record = {"format": _FORMAT, "version": _VERSION}
        for attribute in fields(self):
            record[attribute.name] = _plain(getattr(self, attribute.name))
        return _write(json.dumps(record, allow_nan=False), path)

    @classmethod
    def from_json(cls, text):
        """Read a report that `to_json` wrote.

        Parameters
        ----------
        text : str or path
            The JSON text, or the path of its file.

        Returns
        -------
        report : AuditReport
            The report.

        Raises
        ------
        ValueError
            If the text is no such report.
        """
        is_path = isinstance(text, os.PathLike)
        if isinstance(text, str) and len(text) < _LONGEST_PATH:
            is_path = is_path or os.path.isfile(text)
        if is_path:
            text = read_text(text, _LIMIT, "report")
        names = [attribute.name for attribute in fields(cls)]
        record = read_record(text, _FORMAT, _VERSION, names, _LIMIT, "report")
        return cls(**check_record(record))

    def to_label_studio(self, path=None):
        """Make the tasks of a Label Studio project from the rows to review.

        Parameters
        ----------
        path : str or path, default=None
            File to write; None writes none.

        Returns
        -------
        tasks : list of dict or None
            The tasks, if there is no path, with the suggestion as a prediction. The
            labels are the choices of a control named ``label``, for an object named
            ``content``.
        """
        tasks = label_studio_tasks(self)
        return tasks if path is None else _write(json.dumps(tasks), path)

    def __repr__(self):
        percentage = 100 * self.fraction_listed
        verdicts = "no verdicts yet"
        if self.verdicts:
            verdicts = f"{len(self.verdicts)} verdicts"
        return (
            f"AuditReport of {len(self.values)} rows: the suggestion differs from the "
            f"label in {len(self.listed)} ({percentage:.1f} %); {verdicts}"
        )

    def _repr_html_(self):
        """The page in a frame, so that it and the notebook do not change each other."""
        style = "width: 100%; height: 640px; border: 1px solid #8886"
        return f'<iframe style="{style}" srcdoc="{escape(self.to_html())}"></iframe>'


def _write(text, path):
    """The text, or None if it is written to a file."""
    return text if path is None else write_files({path: text})


def _plain(entry):
    """The entry as JSON holds it; objects that JSON has not are strings."""
    if is_dataclass(entry):
        entry = asdict(entry)
    if isinstance(entry, (np.ndarray, np.generic)):
        entry = entry.tolist()
    if isinstance(entry, dict):
        return {str(key): _plain(value) for key, value in entry.items()}
    if isinstance(entry, (list, tuple)):
        return [_plain(value) for value in entry]
    if isinstance(entry, float) and not np.isfinite(entry):
        return None
    if entry is None or isinstance(entry, (int, float, str)):
        return entry
    return str(entry)
