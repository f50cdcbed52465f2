"""Rows of a private table, read by the conventions of the public one."""

import warnings
from argparse import Namespace
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from .. import Reading
from ..reading import is_folder, read_as_public, split_target
from ._options import reading_of
from ._rows import read_rows

_HOW = (
    "The table is read as --validation, whose rows are public: a cell that does not "
    "follow its conventions is missing, and a line of another number of fields, or "
    "without a label, is no row."
)
_EQUAL = (
    " Rows that equal a public one are left out; --equal-rows says that they are other "
    "cases."
)


def read_private_rows(options):
    """The private rows, with the public ones as validation points.

    What is printed, and whether an error is raised, depends on the public rows and the
    header of the private table alone. A row that equals a public one is left out, but
    with ``--equal-rows``: it would be in both.
    """
    if options.validation is None:
        raise ValueError(
            "--epsilon must be used with --validation: public rows. Got none."
        )
    for path in (options.table, options.validation):
        if is_folder(path):
            raise ValueError(
                f"--epsilon must be used with tables. Got {path}, a folder."
            )
    public = read_rows(
        Namespace(**{**vars(options), "table": options.validation, "validation": None}),
        are_points=True,
    )
    if options.equal_rows:
        print(_HOW)
    else:
        print(_HOW + _EQUAL)
    texts = ()
    if options.groups is not None:
        texts = (options.groups,)
    how = reading_of(options)
    frame = read_as_public(
        options.table,
        public.reading,
        separator=how["separator"],
        encoding=how["encoding"],
        skip_lines=how["skip_lines"],
        texts=texts,
    )
    frame = frame[frame[options.target].notna()]
    reading = Reading(frame, [], [])
    left_out = {options.groups, *(options.ignore or ())}
    X, y = split_target(reading, options.target, left_out)
    rows = replace(
        public,
        X=X[public.X.columns],
        y=_classes(y, public),
        X_val=public.X,
        y_val=public.y,
        groups=None,
        labels=y.to_numpy(),
        reading=reading,
        numbers_val=public.numbers,
    )
    if options.groups is not None:
        rows = replace(rows, groups=frame[options.groups].astype(str).to_numpy())
    if options.equal_rows:
        return rows
    return _without_public_rows(rows)


def _classes(labels, public):
    """Labels with the class of their spelling, if the public rows have it."""
    if public.task == "regression":
        return labels.to_numpy(dtype=np.float64)
    class_of = dict(zip(public.labels.tolist(), public.y.tolist()))
    classes = [class_of.get(label, label) for label in labels.tolist()]
    if public.y.dtype.kind in "iuf":
        return np.array(classes, dtype=np.float64)
    return np.array(classes, dtype=object)


def _without_public_rows(rows):
    """The rows that equal no public one, each looked at by itself."""
    public = set(_keys(rows.X_val, rows.y_val))
    is_private = [key not in public for key in _keys(rows.X, rows.y)]
    kept = np.flatnonzero(is_private)
    groups = rows.groups
    if groups is not None:
        groups = groups[kept]
    frame = rows.reading.frame.iloc[kept]
    return replace(
        rows,
        X=rows.X.iloc[kept],
        y=rows.y[kept],
        groups=groups,
        labels=rows.labels[kept],
        reading=Reading(frame, [], []),
    )


def _keys(X, y):
    """What each row holds, with its label, as a tuple."""
    entries = X.astype(object).where(X.notna(), None)
    rows = entries.itertuples(index=False, name=None)
    return [(*row, label) for row, label in zip(rows, y.tolist())]


@contextmanager
def silent():
    """Context without warnings: those of a private fit may depend on private rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
