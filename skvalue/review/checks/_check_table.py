"""All checks of a table."""

import numpy as np

from ..._utils.checks import check_length, one_column, seed_of
from ..._utils.targets import check_task
from .._table import entries_of
from ._cells import find_improbable_cells
from ._columns import Column, columns_of
from ._columns_alone import find_empty, find_ids
from ._far import find_empty_rows, find_far_rows
from ._finding import SEVERITIES
from ._labels_and_rows import find_equal_rows, find_missing_labels, find_spellings
from ._leaks import find_leaks
from ._missing import find_missing_by_label
from ._order import find_label_order, find_row_order

_LARGEST = 5000  # rows that models are fitted to
_FEWEST = 20  # rows with a label
_CLASS = 5  # rows, below which a class is too small for models
_TEXT, _LEVELS = 0.5, 50  # strings that differ more are no categories


def check_table(X, y, X_val=None, *, target="target", cells=True, task="auto", random_state=None):
    """Find what is, or may be, wrong with a table.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
        The rows, of any types of columns.
    y : array-like of shape (n_samples,)
        Their labels as they stand in the file, None where there is none; or targets.
    X_val : data frame or array of shape (n_points, n_features), default=None
        Validation points; those that equal a row of the table are reported.
    target : str, default="target"
        Name of the target.
    cells : bool, default=True
        Whether to look for improbable entries, which costs a forest for each column. Tables of
        more than 5,000 rows are not searched.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is. Checks that need classes are left out for a regression.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, forests and shuffles.

    Returns
    -------
    findings : list of Finding
        Worst first. Kinds: missing labels, spelling, rare labels; equal rows, conflicts, copies in
        validation; id, constant, nearly constant, mostly missing; leak, missing by label; order of
        labels, order of rows; far rows, empty rows; improbable entries.

    Raises
    ------
    ValueError
        If X and y have different lengths, or fewer than 20 rows have a label.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skvalue.review import check_table
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["paid", "open"], 200).astype(object)
    >>> X = pd.DataFrame({"age": rng.uniform(18, 80, 200), "case": np.arange(200)})
    >>> X["reminder"] = np.where(y == "open", "sent", "none")
    >>> y[0] = "Paid"
    >>> found = check_table(X, y, target="bill", random_state=0)
    >>> [(each.severity, each.kind, *each.columns) for each in found]
    [('warning', 'spelling', 'bill'), ('warning', 'id', 'case'), ('question', 'leak', 'reminder')]
    >>> found[0].fix
    ((0, 'bill', 'paid'),)
    """
    columns, y = columns_of(X), one_column(y, "y")
    check_length(y, "y", len(columns[0].entries), "X")
    column = Column(target, *entries_of(y))
    labels, known = column.entries, ~column.missing
    if known.sum() < _FEWEST:
        raise ValueError(f"y must hold at least {_FEWEST} labels. Got {known.sum()}.")
    is_text, seed = column.kind == "category", seed_of(random_state)
    labels, rng = labels.astype(str) if is_text else labels, np.random.default_rng(seed)
    classes = check_task(task, labels[known]) == "classification"
    found = [*find_missing_labels(known, target)]
    if classes and is_text:
        found += find_spellings(labels, known, target)
        for row, _, label in [
            fix for each in found if each.severity == "warning" for fix in each.fix
        ]:
            labels[row] = label
    found += [*find_ids(columns), *find_empty(columns)]
    unused = {name for each in found if each.kind in ("id", "constant") for name in each.columns}
    columns = [c for c in columns if c.name not in unused and not _is_text(c)]
    codes = np.unique(labels, return_inverse=True)[1]
    found += find_equal_rows(X, codes, known, X_val)
    if columns:
        found += _of_models(columns, codes, known, classes, seed, rng, cells)
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def _is_text(column):
    limit = max(_LEVELS, _TEXT * len(column.entries))
    return column.kind == "category" and column.n_distinct > limit


def _of_models(columns, codes, known, classes, seed, rng, cells):
    """Findings of rules that need more than one column, or the labels."""
    n = len(codes)
    if classes:
        yield from find_label_order(codes[known], rng)
        enough = np.flatnonzero(known & (np.bincount(codes)[codes] >= _CLASS))
        few = enough if len(enough) <= _LARGEST else np.sort(rng.choice(enough, _LARGEST, False))
        some = [np.unique(codes[rows], return_inverse=True)[1] for rows in (enough, few)]
        if len(enough) and some[0].max() > 0:
            yield from find_missing_by_label([c.take(enough) for c in columns], some[0])
        if len(few) and some[1].max() > 0 and np.bincount(some[1]).min() > 1:
            yield from find_leaks([c.take(few) for c in columns], some[1], seed)
    yield from find_row_order(columns, rng)
    yield from find_empty_rows(columns)
    if n <= _LARGEST:
        yield from find_far_rows(columns)
        if cells:
            yield from find_improbable_cells(columns, codes, seed)
