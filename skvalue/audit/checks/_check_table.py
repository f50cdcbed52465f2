"""All checks of a table."""

import numpy as np
from sklearn.utils import Bunch

from ..._utils.checks import check_length, one_column, seed_of
from ..._utils.table_columns import Column, columns_of, entries_of
from ..._utils.targets import check_task
from ...labels import find_duplicates, label_spellings, match_rows
from ._cells import find_improbable_cells
from ._columns_alone import find_empty, find_ids
from ._far import find_empty_rows, find_far_rows
from ._finding import SEVERITIES
from ._labels_and_rows import (
    find_common_rows,
    find_equal_rows,
    find_missing_labels,
    find_spellings,
)
from ._leaks import find_leaks, find_missing_by_label
from ._order import find_label_order, find_row_order
from ._weak import find_weak_model, worth_of_models

LARGEST, WIDEST = (
    5000,
    50,
)  # rows that models are fitted to, columns whose entries are tested
_FEWEST = 20  # rows with a label
_AMOUNTS, _MANY = (
    20,
    4,
)  # whole numbers are amounts if more differ, each in fewer rows on average
_CLASS = 5  # rows, below which a class is too small for models
_WORDS = {
    "classification": Bunch(
        classes=True, label="label", labels="labels", group="class"
    ),
    "regression": Bunch(
        classes=False,
        label="fifth of the target",
        labels="targets",
        group="fifth of the targets",
    ),
}
_TEXT = 0.5  # fraction of the rows, above which different strings are no categories


def check_table(
    X,
    y=None,
    X_val=None,
    y_val=None,
    *,
    target="target",
    cells=True,
    task="auto",
    worth=None,
    random_state=None,
):
    """Find what is, or may be, wrong with a table.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
        The rows, of any types of columns.
    y : array-like of shape (n_samples,), default=None
        Their labels as they stand in the file, None where there is none; or targets.
        Without y, what needs labels is not looked for.
    X_val : data frame or array of shape (n_points, n_features), default=None
        Validation points; those that equal a row of the table, or nearly, are reported.
    y_val : array-like of shape (n_points,), default=None
        Their labels, None where there is none; those that differ from the label of an
        equal row are reported.
    target : str, default="target"
        Name of the target.
    cells : bool, default=True
        Whether to look for improbable entries, which costs a forest for each column.
        Tables of more than 5,000 rows or 50 columns are not searched.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is. "auto" takes numbers as targets of a regression if they are
        not whole, or if more than 20 differ, each in less than four rows on average.
        For a regression, the fifth of the targets to which a row belongs takes the
        place of its label; spellings and rare labels are not looked for.
    worth : dict, default=None
        What predictions of unseen rows are worth, as ``worth`` of an
        :class:`~skvalue.audit.AuditReport`. None trains models to tell whether labels
        can be checked.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, forests and shuffles.

    Returns
    -------
    findings : list of Finding
        Worst first. Kinds: missing labels, spelling, rare labels; equal rows,
        conflicts, nearly equal rows, copies in validation, conflicts in validation; id,
        constant, nearly constant, mostly missing; leak, missing by label, weak model;
        order of labels, order of rows; far rows, empty rows; improbable entries. For
        the kinds in validation, rows are numbers of validation points.

    Raises
    ------
    ValueError
        If X and y, or X_val and y_val, have different lengths, or fewer than 20 rows
        have a label.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skvalue.audit import check_table
    >>> age = np.random.default_rng(0).uniform(18, 80, 100)
    >>> X = pd.DataFrame({"age": age, "case": np.arange(100), "country": "DE"})
    >>> found = check_table(X)  # with labels, leaks and others are found
    >>> [(each.severity, each.kind, *each.columns) for each in found]
    [('warning', 'id', 'case'), ('note', 'constant', 'country')]
    >>> found[0].sentence
    "'case' has another value in every row: not used."
    """
    columns = columns_of(X)
    n = len(columns[0].entries)
    y = np.zeros(n) if y is None else one_column(y, "y")  # one class: nothing to tell
    check_length(y, "y", n, "X")
    if y_val is not None:
        y_val = one_column(y_val, "y_val")
        check_length(y_val, "y_val", 0 if X_val is None else len(X_val), "X_val")
    column = Column(
        target, *entries_of(y if y_val is None else np.concatenate([y, y_val]))
    )
    labels, known = column.entries, ~column.missing
    if known[:n].sum() < _FEWEST:
        raise ValueError(
            f"y must hold at least {_FEWEST} labels. Got {known[:n].sum()}."
        )
    is_text, seed = column.kind == "category", seed_of(random_state)
    labels = labels.astype(str) if is_text else labels
    told = labels[:n][known[:n]]
    n_distinct = 0 if is_text else len(np.unique(told))
    if task == "auto" and n_distinct > _AMOUNTS and len(told) < _MANY * n_distinct:
        task = "regression"
    words = _WORDS[check_task(task, told)]
    if is_text and not words.classes:
        raise ValueError(
            f"y must hold numbers with task='regression'. Got {labels[0]!r}."
        )
    found = [*find_missing_labels(known[:n], target)]
    if words.classes and is_text:
        found += find_spellings(labels[:n], known[:n], target)
        same = label_spellings(labels[known].tolist()).same
        labels = np.array([same.get(label, label) for label in labels.tolist()])
    equal = find_duplicates(X)
    different = np.unique(equal.codes, return_index=True)[
        1
    ]  # a copy has the number of its row
    found += [*find_ids([c.take(different) for c in columns]), *find_empty(columns)]
    unused = {
        name
        for each in found
        if each.kind in ("id", "constant")
        for name in each.columns
    }
    columns = [c for c in columns if c.name not in unused and not _is_text(c)]
    codes = np.where(known, np.unique(labels, return_inverse=True)[1], -1)
    found += find_equal_rows(equal, codes[:n], words)
    if X_val is not None:
        both = codes[:n], None if y_val is None else codes[n:]
        found += find_common_rows(match_rows(X, X_val), equal.verdict, *both, words)
    if columns:
        found += _of_models(columns, labels[:n], known[:n], words, seed, cells, worth)
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def _is_text(column):
    return column.kind == "category" and column.n_distinct > _TEXT * len(column.entries)


def _of_models(columns, labels, known, words, seed, cells, worth):
    """Findings of rules that need more than one column, or the labels."""
    n, rng = len(labels), np.random.default_rng(seed)
    names, codes = np.unique(labels, return_inverse=True)
    fifths = codes
    if not words.classes:
        limits = np.quantile(labels[known], [0.2, 0.4, 0.6, 0.8])
        names, fifths = np.arange(1, 6), np.searchsorted(limits, labels)
    yield from find_label_order(fifths[known], rng, words)
    rows = np.flatnonzero(known)
    rows = rows if len(rows) <= LARGEST else np.sort(rng.choice(rows, LARGEST, False))
    rows = rows[np.bincount(fifths[rows])[fifths[rows]] >= _CLASS]
    present, told = np.unique(fifths[rows], return_inverse=True)
    if len(present) > 1:
        some = [column.take(rows) for column in columns]
        yield from find_missing_by_label(some, told, words)
        yield from find_leaks(some, told, seed, words)
        if worth is None:
            worth = worth_of_models(some, told, names[present].tolist(), seed)
        yield from find_weak_model(worth, words)
    yield from find_row_order(columns, rng)
    yield from find_empty_rows(columns)
    if n <= LARGEST:
        yield from find_far_rows(columns)
        if cells and len(columns) <= WIDEST:
            yield from find_improbable_cells(columns, codes, seed)
