"""Rows and targets of the tables that a command is given."""

from dataclasses import dataclass

import numpy as np

from .._utils.columns import column_encoder
from ._files import read_table


@dataclass(frozen=True)
class Rows:
    """Columns and targets of a table, and of the validation points, or None."""

    X: object
    y: np.ndarray
    X_val: object
    y_val: object

    def fit_arguments(self):
        """The validation set as keyword arguments of `fit`."""
        return {} if self.X_val is None else {"X_val": self.X_val, "y_val": self.y_val}

    def encoded(self, by_validation=False):
        """The same rows as arrays; prints what is done to the columns.

        The encoding is learned from the rows, or from the validation points alone.
        """
        learned = self.X_val if by_validation else self.X
        encoder, notes = column_encoder(learned)
        print(*notes, sep="\n")
        encoder.fit(learned)
        X_val = None if self.X_val is None else encoder.transform(self.X_val)
        return Rows(encoder.transform(self.X), self.y, X_val, self.y_val)


def add_table(parser):
    """Add the options that say which rows there are."""
    parser.add_argument("table", help="a .csv, .tsv, .parquet, .arrow or .feather file")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--validation", help="a table of the same columns: the validation points")


def read_rows(options):
    """The rows of the table, and the validation points if there are any."""
    X, y = _split(read_table(options.table, "the table"), options.target, "the table")
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"--target must be a column of at least two values. Got {options.target!r}, which "
            f"holds {y[0]!r} only."
        )
    print(f"{options.table}: {len(X)} rows, {X.shape[1]} columns, target {options.target}.")
    if options.validation is None:
        return Rows(X, y, None, None)
    X_val, y_val = _split(
        read_table(options.validation, "--validation"), options.target, "--validation"
    )
    missing = [name for name in X.columns if name not in X_val.columns]
    if missing:
        raise ValueError(
            f"--validation must have the columns of the table. Got none named {missing[0]!r}."
        )
    for name in X.columns:
        kinds = [getattr(frame[name].dtype, "kind", "O") in "iuf" for frame in (X, X_val)]
        if kinds == [True, False] and X_val[name].notna().any():
            raise ValueError(
                f"--validation must have numbers in the column {name!r}, as the table has. Got "
                f"others, such as {X_val[name].dropna().iloc[0]!r}."
            )
    return Rows(X, y, X_val[X.columns], y_val)


def _split(frame, target, name):
    """Columns and target of a table."""
    if target not in frame.columns:
        shown = ", ".join(map(str, frame.columns[:20])) + (", ..." * (frame.shape[1] > 20))
        raise ValueError(f"--target must be a column of {name}: {shown}. Got {target!r}.")
    absent = np.flatnonzero(frame[target].isna())
    if len(absent):
        raise ValueError(
            f"--target must have no missing entry. Got {len(absent)} in {name}, the first in row "
            f"{absent[0]}."
        )
    if frame.shape[1] == 1:
        raise ValueError(f"{name} must have a column other than the target. Got {target!r} alone.")
    y = frame[target].to_numpy()
    return frame.drop(columns=target), np.array(
        list(map(str, y)), dtype=object
    ) if y.dtype == object else y
