"""All checks of a table."""

import numpy as np

from ..._utils.checks import check_length, one_column, seed_of
from ..._utils.containers import known_rows
from ..._utils.table_columns import Column, columns_of, entries_of
from ..._utils.targets import check_task
from ...exceptions import ParameterError
from ...labels import find_duplicates, label_spellings, match_rows
from ._encoding import within_limits
from ._equal_rows import find_common_rows, find_equal_rows
from ._finding import SEVERITIES
from ._improbable_entries import find_improbable_cells
from ._labels import find_missing_labels, find_spellings
from ._leaks import find_leaks, find_missing_by_label
from ._model_skill import find_weak_model, skill_of_columns
from ._order import find_label_order, find_row_order
from ._single_columns import find_empty, find_ids, find_infinite
from ._unusual_rows import find_empty_rows, find_far_rows
from ._wording import OF_CLASSES, OF_TARGETS

LARGEST = 5000  # rows that models are fitted to
WIDEST = 50  # columns whose entries are tested
_FEWEST = 20  # rows with a label
_CLASS = 5  # rows, below which a class is too small for models
_TEXT = 0.5  # fraction of the rows, above which different strings are no categories

# Whole numbers are amounts if more than 20 differ, each in fewer than four rows on
# average.
_AMOUNTS = 20
_ROWS_OF_AMOUNT = 4


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
        infinite entries, constant, nearly constant, mostly missing; leak, missing by
        label, weak model; order of labels, order of rows; far rows, empty rows;
        improbable entries. For the kinds in validation, rows are numbers of validation
        points.

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
    >>> findings = check_table(X)  # labels would allow more checks, such as leaks
    >>> [(finding.severity, finding.kind, *finding.columns) for finding in findings]
    [('warning', 'id', 'case'), ('note', 'constant', 'country')]
    >>> findings[0].sentence
    "'case' has another value in every row: not used."
    """
    X = known_rows(X)
    X_val = known_rows(X_val, "X_val")
    columns = columns_of(X)
    n_rows = len(columns[0].entries)

    # Labels of the rows and, behind them, of the validation points. Without labels, all
    # rows have one, of which there is nothing to tell.
    if y is None:
        y = np.zeros(n_rows)
    y = one_column(y, "y")
    check_length(y, "y", n_rows, "X")
    all_labels = y
    if y_val is not None:
        n_points = 0
        if X_val is not None:
            n_points = len(X_val)
        y_val = one_column(y_val, "y_val")
        check_length(y_val, "y_val", n_points, "X_val")
        all_labels = np.concatenate([y, y_val])
    target_column = Column(target, *entries_of(all_labels))
    labels = target_column.entries
    is_labelled = ~target_column.missing
    n_labelled = is_labelled[:n_rows].sum()
    if n_labelled < _FEWEST:
        raise ParameterError(
            "y", f"must hold at least {_FEWEST} labels. Got {n_labelled}."
        )
    seed = seed_of(random_state)
    is_text = target_column.kind == "category"
    if is_text:
        labels = labels.astype(str)
    wording = _wording_of(task, labels[:n_rows][is_labelled[:n_rows]], is_text)

    findings = list(find_missing_labels(is_labelled[:n_rows], target))
    if wording.are_classes and is_text:
        findings += find_spellings(labels[:n_rows], is_labelled[:n_rows], target)
        spellings = label_spellings(labels[is_labelled].tolist()).same
        labels = np.array([spellings.get(label, label) for label in labels.tolist()])
    codes = np.where(is_labelled, np.unique(labels, return_inverse=True)[1], -1)

    # An identifier differs in all rows but copies, which are left out of the search.
    duplicates = find_duplicates(X)
    first_rows = np.unique(duplicates.codes, return_index=True)[1]
    findings += find_ids([column.take(first_rows) for column in columns])
    findings += find_infinite(columns)
    columns = [within_limits(column) for column in columns]
    findings += find_empty(columns)
    unused = set()
    for finding in findings:
        if finding.kind in ("id", "constant"):
            unused.update(finding.columns)
    columns = [
        column
        for column in columns
        if column.name not in unused and not _holds_texts(column)
    ]

    findings += find_equal_rows(duplicates, codes[:n_rows], wording)
    if X_val is not None:
        codes_val = None
        if y_val is not None:
            codes_val = codes[n_rows:]
        findings += find_common_rows(
            match_rows(X, X_val),
            duplicates.verdict,
            codes[:n_rows],
            codes_val,
            wording,
        )
    if columns:
        findings += _find_by_models(
            columns,
            labels[:n_rows],
            is_labelled[:n_rows],
            wording,
            seed,
            cells=cells,
            skill=worth,
        )
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _wording_of(task, labels, is_text):
    """The wording of findings: whether these labels of the rows are classes."""
    n_distinct = 0 if is_text else len(np.unique(labels))
    are_many = len(labels) < _ROWS_OF_AMOUNT * n_distinct
    if task == "auto" and n_distinct > _AMOUNTS and are_many:
        task = "regression"
    if check_task(task, labels) == "classification":
        return OF_CLASSES
    if is_text:
        raise ParameterError(
            "y", f"must hold numbers with task='regression'. Got {labels[0]!r}."
        )
    return OF_TARGETS


def _holds_texts(column):
    limit = _TEXT * len(column.entries)
    return column.kind == "category" and column.n_distinct > limit


def _find_by_models(columns, labels, is_labelled, wording, seed, *, cells, skill):
    """Findings of rules that need more than one column, or the labels.

    columns : list of Column
    labels : ndarray of shape (n_samples,)
    is_labelled : ndarray of bool of shape (n_samples,)
    cells, skill : as `cells` and `worth` of `check_table`
    """
    n_rows = len(labels)
    rng = np.random.default_rng(seed)
    names, codes = np.unique(labels, return_inverse=True)
    groups = codes
    if not wording.are_classes:
        limits = np.quantile(labels[is_labelled], [0.2, 0.4, 0.6, 0.8])
        names = np.arange(1, 6)
        groups = np.searchsorted(limits, labels)
    yield from find_label_order(groups[is_labelled], rng, wording)

    # Models are fitted to rows with a label, of classes that are large enough.
    rows = np.flatnonzero(is_labelled)
    if len(rows) > LARGEST:
        rows = np.sort(rng.choice(rows, LARGEST, False))
    sizes = np.bincount(groups[rows])
    rows = rows[sizes[groups[rows]] >= _CLASS]
    present, group_codes = np.unique(groups[rows], return_inverse=True)
    if len(present) > 1:
        drawn_columns = [column.take(rows) for column in columns]
        yield from find_missing_by_label(drawn_columns, group_codes, wording)
        yield from find_leaks(drawn_columns, group_codes, seed, wording)
        if skill is None:
            classes = names[present].tolist()
            skill = skill_of_columns(drawn_columns, group_codes, classes, seed)
        yield from find_weak_model(skill, wording)

    yield from find_row_order(columns, rng)
    yield from find_empty_rows(columns)
    if n_rows <= LARGEST:
        yield from find_far_rows(columns)
        if cells and len(columns) <= WIDEST:
            yield from find_improbable_cells(columns, codes, seed)
