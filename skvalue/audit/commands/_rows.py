"""Rows and targets of the tables that a command is given."""

import os
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..._utils.checks import format_values
from ..._utils.columns import column_encoder
from ..._utils.table_columns import refuse_infinite_columns
from ...exceptions import ParameterError
from ...labels import find_duplicates, label_spellings
from .. import Correction, Finding, Reading, read_table
from ..checks import SEVERITIES, find_spellings
from ..reading import (
    FIRST_ROW,
    FOR_MODELS,
    LABEL,
    SHOWN,
    column_entries,
    is_folder,
    read_images,
    split_target,
)
from ._messages import in_words
from ._options import reading_of

_SHOWN = 20  # rows, or labels, that are named


class Table(NamedTuple):
    """A table as it was read: its columns, and its target and groups, or None."""

    reading: Reading
    X: object
    y: np.ndarray | None
    groups: np.ndarray | None


@dataclass(frozen=True)
class Rows:
    """Columns and targets of a table, and of the validation points, or None.

    `y` has one label for all spellings of it; `labels` are those of the file, and
    `findings` what was found of them. `reading` is what was read, with the row numbers,
    `numbers_val` those of the validation points; `notes` are the sentences on it that
    were printed; `texts` names columns that are texts whatever they hold. For a folder
    of pictures X are small ones, and `pictures` those to show.
    """

    X: object
    y: np.ndarray
    X_val: object
    y_val: object
    groups: object
    task: str
    labels: np.ndarray
    reading: Reading
    findings: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    numbers_val: np.ndarray | None = None
    texts: tuple = ()
    pictures: object = None

    @property
    def numbers(self):
        """The number of each row in the file, from 0."""
        return self.reading.frame.index.to_numpy()

    def all_findings(self, of_rows):
        """Findings of the labels of the file, and of the rows; worst first."""
        of_rows = [
            finding
            for finding in of_rows
            if finding.kind not in ("spelling", "rare labels")
        ]
        findings = [*self.findings, *of_rows]
        return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))

    def corrections(self, findings, target):
        """What can be corrected: spellings, and, for a person to accept, all else."""
        entries = column_entries(self.reading, target)
        corrections = []
        for finding in findings:
            is_accepted = finding.severity == "warning"
            for row, _, new in finding.fix:
                correction = Correction(
                    self._number(row),
                    target,
                    entries[row],
                    new,
                    finding.sentence,
                    is_accepted,
                )
                corrections.append(correction)
        for finding in findings:
            if finding.kind == "missing labels":
                for number in self.reading.unlabelled.tolist():
                    correction = Correction(
                        number + FIRST_ROW, target, "", "", "no label", False
                    )
                    corrections.append(correction)
            if finding.kind == "equal rows" and finding.severity == "warning":
                corrections += self._removals_of_copies(target, entries)
        return corrections

    def _removals_of_copies(self, target, entries):
        """Corrections that leave out rows that equal an earlier one, with its label.

        entries : list of str, of the target, as the file has them
        """
        first_rows = {}
        for row, code in enumerate(find_duplicates(self.X).codes.tolist()):
            earlier = first_rows.setdefault(code, row)
            if earlier < row and self.y[earlier] == self.y[row]:
                number = self._number(earlier)
                why = f"equals row {number}: accept = remove leaves it out"
                yield Correction(
                    self._number(row), target, entries[row], None, why, False
                )

    def _number(self, row):
        """The number of a row as a spreadsheet counts."""
        return int(self.numbers[row]) + FIRST_ROW

    def fit_arguments(self):
        """The validation set, and groups, as keyword arguments of `fit`."""
        arguments = {}
        if self.X_val is not None:
            arguments["X_val"] = self.X_val
            arguments["y_val"] = self.y_val
        if self.groups is not None:
            arguments["groups"] = self.groups
        return arguments

    def encoded(self, by_validation=False):
        """The same rows as arrays; prints what is done to the columns.

        The encoding is learned from the rows, or from the validation points alone.
        """
        if self.pictures is not None:
            return self._pixels()
        if by_validation:
            learned = self.X_val
        else:
            learned = self.X
            refuse_infinite_columns(self.X)  # of private rows an error would tell
        encoder, notes = column_encoder(learned, texts=self.texts)
        print(*notes, sep="\n")
        encoder.fit(learned)
        X_val = self.X_val
        if X_val is not None:
            X_val = encoder.transform(X_val)
        if by_validation and not len(self.X):
            return replace(self, X=X_val[:0], X_val=X_val)  # an encoder refuses no rows
        return replace(self, X=encoder.transform(self.X), X_val=X_val)

    def _pixels(self):
        """The same pictures as rows of numbers from 0 to 1."""
        X = self.X.reshape(len(self.X), -1) / 255
        X_val = self.X_val
        if X_val is not None:
            X_val = X_val.reshape(len(X_val), -1) / 255
        print(f"pictures: their {X.shape[1]} pixels, of sides made {FOR_MODELS} long.")
        return replace(self, X=X, X_val=X_val)


def require_target(options):
    """Refuse a table without a target, which a folder of pictures has."""
    if options.target is None and not is_folder(options.table):
        raise ValueError(
            f"--target must name the column to predict of {options.table}. Got none."
        )


def read_rows(options, are_points=False):
    """The rows of the table, and the validation points; prints what was read.

    are_points : as in `read_columns`
    """
    reading, X, labels, groups = read_columns(
        options, options.table, "the table", are_points=are_points
    )
    has_labels = labels is not None
    are_classes = (
        has_labels and labels.dtype.kind != "f" and options.task != "regression"
    )
    assumptions = list(reading.said)
    if has_labels:
        assumptions.insert(0, f"target {options.target}")
    is_table = not is_folder(options.table)
    size = f"{len(X)} rows, {X.shape[1]} columns"
    if not is_table:
        size = f"{len(X)} pictures"
    if assumptions:
        size = f"{size}, {'; '.join(assumptions)}"
    notes = [f"{options.table}: {size}."]
    notes += [f"question: {in_words(doubt)}" for doubt in reading.doubts]

    findings = []
    y = labels
    if len(reading.unlabelled):
        findings.append(_missing_labels(reading, options.target))
    if are_classes:
        y, spellings = _merge_spellings(labels, options.target)
        findings += spellings
    print(*notes, *findings, sep="\n")
    if has_labels and len(np.unique(y)) < 2:
        raise ValueError(
            "--target must be a column of at least two values. Got "
            f"{options.target!r}, which holds {format_values(y[:1])} only."
        )
    pictures = None
    if not is_table:
        pictures = _pictures(reading, options.table, SHOWN)
    rows = Rows(
        X=X,
        y=y,
        X_val=None,
        y_val=None,
        groups=groups,
        task="classification" if are_classes else "regression",
        labels=labels,
        reading=reading,
        findings=findings,
        notes=notes,
        texts=tuple(name for name in options.text or () if is_table and name in X),
        pictures=pictures,
    )
    if options.validation is None:
        return rows
    return _with_validation(rows, options)


def _with_validation(rows, options):
    """The rows with the validation points, read as they were."""
    reading, X_val, y_val, _ = read_columns(
        options, options.validation, "--validation", rows.reading, are_points=True
    )
    for doubt in reading.doubts:
        print(f"question: {options.validation}: {in_words(doubt)}")
    if (rows.pictures is None) == is_folder(options.validation):
        raise ValueError(
            "--validation must be a folder of pictures if the table is one, and a "
            f"table if not. Got {options.validation}."
        )
    if rows.pictures is None:
        check_columns(rows.X, X_val)
        X_val = X_val[rows.X.columns]
    if rows.task == "classification":
        y_val = _spelled_alike(y_val, rows)
    return replace(
        rows,
        X_val=X_val,
        y_val=y_val,
        numbers_val=reading.frame.index.to_numpy(),
    )


def read_columns(options, path, name, like=None, are_points=False):
    """The table of a file, which messages call by a name.

    like : Reading, which decides in place of doubts, or None
    are_points : whether they are validation points, which may lack the columns of
        --groups and --ignore: those of a buyer have no owner
    """
    if not os.path.exists(path):
        raise ValueError(f"{name} must be a file that exists. Got {path}.")
    if options.target is None and is_folder(path):
        options.target = LABEL
    target = options.target
    try:
        reading = read_table(
            path,
            target,
            task=options.task,
            like=like,
            **{**reading_of(options), "strict": False},
        )
    except ValueError as error:
        raise ValueError(f"{path}: {in_words(error)}") from None
    if options.strict and reading.doubts:
        doubts = " ".join(map(in_words, reading.doubts))
        raise ValueError(f"--strict refuses {path}: {doubts}")
    frame = reading.frame
    ignored = list(options.ignore or ())
    groups = None
    if not are_points:
        for name in ignored:
            _check_name("--ignore", name, frame, path)
    if options.groups is not None and not are_points:
        _check_name("--groups", options.groups, frame, path)
        groups = _group_names(reading, options.groups)
    X, y = split_target(reading, target, {options.groups, *ignored})
    if is_folder(path):
        X = _pictures(reading, path, FOR_MODELS)
    if not X.shape[1]:
        raise ValueError(f"{path} must have a column other than the target. Got none.")
    if y is None:
        return Table(reading, X, None, groups)
    y = y.to_numpy()
    if options.task == "regression":
        y = y.astype(np.float64)
    elif y.dtype.kind not in "biuf":
        y = np.array([str(label) for label in y.tolist()], dtype=object)
    return Table(reading, X, y, groups)


def _group_names(reading, name):
    """The entries of the column of groups as the file has them: 01 is not 1."""
    is_missing = reading.frame[name].isna().to_numpy()
    if is_missing.any():
        number = int(reading.frame.index[is_missing][0]) + FIRST_ROW
        raise ValueError(
            "--groups must be a column with an entry in every row. Got none in row "
            f"{number} of {name!r}."
        )
    return np.array(column_entries(reading, name), dtype=str)


def _pictures(reading, path, side):
    """The pictures of a folder, made as small as a number of pixels."""
    return read_images(path, reading.frame["path"], side)


def _check_name(option, name, frame, path):
    """Refuse a name that no column of the file has."""
    if name not in frame.columns:
        raise ValueError(f"{option} must be a column of {path}. Got {name!r}.")


def _missing_labels(reading, target):
    """The finding of rows that were left out, since they have no label."""
    n_lost = len(reading.unlabelled)
    n_rows = len(reading.frame) + n_lost
    numbers = format_values((reading.unlabelled + FIRST_ROW).tolist(), _SHOWN)
    sentence = (
        f"{n_lost} of {n_rows} rows have no label and are left out: rows {numbers}."
    )
    return Finding("missing labels", "error", sentence, columns=(target,))


def _merge_spellings(labels, target):
    """Labels with one class for all spellings, and the findings of spellings."""
    merged = np.array([str(label) for label in labels.tolist()], dtype=object)
    findings = list(find_spellings(merged, np.ones(len(merged), dtype=bool), target))
    fixes = []
    for finding in findings:
        if finding.severity == "warning":
            fixes += finding.fix
    if not fixes:
        return labels, findings
    for row, _, label in fixes:
        merged[row] = label
    return merged, findings


def _spelled_alike(y_val, rows):
    """Labels of the validation points, as the rows have them."""
    labels = list(map(str, rows.labels.tolist()))
    labels_val = [str(label) for label in y_val.tolist()]
    spellings = label_spellings([*labels, *labels_val]).same
    class_of_label = dict(zip(labels, rows.y.tolist()))
    class_of_spelling = {
        spellings.get(label, label): class_ for label, class_ in class_of_label.items()
    }

    # The class of an equal label, else of another spelling of it, else a new class.
    classes = []
    for label in labels_val:
        if label in class_of_label:
            classes.append(class_of_label[label])
        else:
            spelling = spellings.get(label, label)
            classes.append(class_of_spelling.get(spelling, label))
    return np.array(classes, dtype=rows.y.dtype)


def check_columns(X, others, name="--validation", first="the table"):
    """Refuse a table without the columns of the first, or with other entries."""
    for column in X.columns:
        if column not in others.columns:
            raise ParameterError(
                name, f"must have the columns of {first}. Got none named {column!r}."
            )
    for column in X.columns:
        if not _holds_numbers(X[column]) or _holds_numbers(others[column]):
            continue
        present = others[column].dropna()
        if len(present):
            raise ParameterError(
                name,
                f"must have numbers in the column {column!r}, as {first} has. "
                f"Got others, such as {present.iloc[0]!r}.",
            )


def _holds_numbers(column):
    return getattr(column.dtype, "kind", "O") in "iuf"
