"""Rows and targets of the tables that a command is given."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..._utils.checks import format_values
from ..._utils.columns import column_encoder
from ..._utils.output_files import pandas
from ...labels import find_duplicates, label_spellings
from .. import Correction, Finding, read_table
from ..checks import SEVERITIES, find_spellings
from ._options import reading_of
from ._words import in_words

_SHOWN = 20  # rows, or labels, that are named


@dataclass(frozen=True)
class Rows:
    """Columns and targets of a table, and of the validation points, or None.

    `y` has one label for all spellings of it; `labels` are those of the file, and
    `findings` what was found of them. `reading` is what was read, with the row numbers,
    `numbers_val` those of the validation points; `notes` are the sentences on it that
    were printed.
    """

    X: object
    y: np.ndarray
    X_val: object
    y_val: object
    groups: object
    task: str
    labels: np.ndarray
    reading: object
    findings: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    numbers_val: np.ndarray | None = None

    @property
    def numbers(self):
        """The number of each row in the file, from 0."""
        return self.reading.frame.index.to_numpy()

    def all_findings(self, found):
        """What was found of the labels of the file, and of the rows; worst first."""
        rest = [each for each in found if each.kind not in ("spelling", "rare labels")]
        found = [*self.findings, *rest]
        return sorted(found, key=lambda each: SEVERITIES.index(each.severity))

    def corrections(self, findings, target):
        """What can be corrected: spellings, and, for a person to accept, all else."""
        made = [
            self._correction(
                row, target, new, each.sentence, each.severity == "warning"
            )
            for each in findings
            for row, _, new in each.fix
        ]
        for each in findings:
            if each.kind == "missing labels":
                lost = self.reading.unlabelled.tolist()
                made += [
                    Correction(n + 2, target, "", "", "no label", False) for n in lost
                ]
            if each.kind == "equal rows" and each.severity == "warning":
                made += self._copies(target)
        return made

    def _copies(self, target):
        """Corrections that leave out rows that equal an earlier one, with its label."""
        codes, first = find_duplicates(self.X).codes, {}
        for row, code in enumerate(codes.tolist()):
            earlier = first.setdefault(code, row)
            if earlier < row and self.y[earlier] == self.y[row]:
                why = f"equals row {self.numbers[earlier] + 2}: accept = remove leaves it out"
                yield self._correction(row, target, None, why, False)

    def _correction(self, row, target, new, why, accept):
        label = str(self.labels[row])
        return Correction(int(self.numbers[row]) + 2, target, label, new, why, accept)

    def fit_arguments(self):
        """The validation set, and groups, as keyword arguments of `fit`."""
        arguments = (
            {} if self.X_val is None else {"X_val": self.X_val, "y_val": self.y_val}
        )
        return (
            arguments if self.groups is None else {**arguments, "groups": self.groups}
        )

    def encoded(self, by_validation=False):
        """The same rows as arrays; prints what is done to the columns.

        The encoding is learned from the rows, or from the validation points alone.
        """
        learned = self.X_val if by_validation else self.X
        encoder, notes = column_encoder(learned)
        print(*notes, sep="\n")
        encoder.fit(learned)
        X_val = None if self.X_val is None else encoder.transform(self.X_val)
        return replace(self, X=encoder.transform(self.X), X_val=X_val)


def read_rows(options):
    """The rows of the table, and the validation points if there are any."""
    reading, X, y, groups = _read(options, options.table)
    said = "; ".join([f"target {options.target}"] * (y is not None) + reading.said)
    notes = [f"{options.table}: {len(X)} rows, {X.shape[1]} columns, {said}."]
    notes += [f"question: {in_words(doubt)}" for doubt in reading.doubts]
    numeric = y is None or y.dtype.kind == "f" or options.task == "regression"
    task = "regression" if numeric else "classification"
    rows = Rows(X, y, None, None, groups, task, y, reading, notes=notes)
    if len(reading.unlabelled):
        lost, n = reading.unlabelled, len(X) + len(reading.unlabelled)
        which = format_values((lost + 2).tolist(), _SHOWN)
        said = f"{len(lost)} of {n} rows have no label and are left out: rows {which}."
        rows.findings.append(
            Finding("missing labels", "error", said, columns=(options.target,))
        )
    if not numeric:
        rows = _one_class_each(rows, options.target)
    print(*rows.notes, *rows.findings, sep="\n")
    if y is not None and len(np.unique(rows.y)) < 2:
        raise ValueError(
            f"--target must be a column of at least two values. Got {options.target!r}, which "
            f"holds {format_values(rows.y[:1])} only."
        )
    if options.validation is None:
        return rows
    reading_val, X_val, y_val, _ = _read(options, options.validation, reading)
    for doubt in reading_val.doubts:
        print(f"question: {options.validation}: {in_words(doubt)}")
    check_columns(X, X_val)
    if not numeric:
        y_val = _spelled_alike(y_val, rows)
    numbers_val = reading_val.frame.index.to_numpy()
    return replace(rows, X_val=X_val[X.columns], y_val=y_val, numbers_val=numbers_val)


def refuse_common_rows(rows):
    """Refuse validation points that are rows of the table: as public rows they are not
    private."""
    tables = [
        X.assign(**{" target": y})
        for X, y in ((rows.X, rows.y), (rows.X_val, rows.y_val))
    ]
    codes = find_duplicates(pandas().concat(tables, ignore_index=True)).codes
    n_both = int(np.isin(codes[len(rows.X) :], codes[: len(rows.X)]).sum())
    if n_both:
        raise ValueError(
            "--validation must have no row of the table, since its rows count as public and the "
            f"others as private. Got {n_both} rows that are in both: leave them out of "
            "one, or pass --equal-rows if they are other cases."
        )


def _read(options, path, like=None):
    """A table: how it was read, columns, target and groups."""
    try:
        reading = read_table(
            path, options.target, task=options.task, like=like, **reading_of(options)
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    frame, ignored = reading.frame, list(options.ignore or ())
    for option, name in [
        *(("--ignore", name) for name in ignored),
        ("--groups", options.groups),
    ]:
        if name is not None and name not in frame.columns:
            raise ValueError(f"{option} must be a column of {path}. Got {name!r}.")
    groups = (
        None if options.groups is None else frame[options.groups].astype(str).to_numpy()
    )
    left_out = {options.target, options.groups, *ignored}
    X = frame[[name for name in frame.columns if name not in left_out]].reset_index(
        drop=True
    )
    if not X.shape[1]:
        raise ValueError(f"{path} must have a column other than the target. Got none.")
    if options.target is None:
        return reading, X, None, groups
    y = frame[options.target].to_numpy()
    if options.task == "regression":
        y = y.astype(np.float64)
    elif y.dtype.kind not in "biuf":
        y = np.array([str(label) for label in y.tolist()], dtype=object)
    return reading, X, y, groups


def _one_class_each(rows, target):
    """The rows with one class for all spellings of a label, and what was found of
    labels."""
    y = np.array([str(label) for label in rows.y.tolist()], dtype=object)
    found = list(find_spellings(y, np.ones(len(y), dtype=bool), target))
    rows = replace(rows, findings=[*rows.findings, *found])
    fixes = [fix for each in found if each.severity == "warning" for fix in each.fix]
    for row, _, label in fixes:
        y[row] = label
    return replace(rows, y=y) if fixes else rows


def _spelled_alike(y_val, rows):
    """Labels of the validation points, as the rows have them."""
    labels = list(map(str, rows.labels.tolist()))
    known = dict(zip(labels, rows.y.tolist()))
    texts = [str(label) for label in y_val.tolist()]
    same = label_spellings([*labels, *texts]).same
    common = {same.get(label, label): meant for label, meant in known.items()}
    found = [
        known.get(label, common.get(same.get(label, label), label)) for label in texts
    ]
    return np.array(found, dtype=rows.y.dtype)


def check_columns(X, others, name="--validation", first="the table"):
    """Refuse a table without the columns of the first, or with other entries."""
    missing = [column for column in X.columns if column not in others.columns]
    if missing:
        raise ValueError(
            f"{name} must have the columns of {first}. Got none named {missing[0]!r}."
        )
    for column in X.columns:
        kinds = [
            getattr(frame[column].dtype, "kind", "O") in "iuf" for frame in (X, others)
        ]
        if kinds == [True, False] and others[column].notna().any():
            raise ValueError(
                f"{name} must have numbers in the column {column!r}, as {first} has. Got others, "
                f"such as {others[column].dropna().iloc[0]!r}."
            )
