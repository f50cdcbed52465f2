"""An audit of a table: a detector is fitted, and a report made of what it found."""

import os
from contextlib import suppress
from time import perf_counter

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils.validation import check_consistent_length

from .._utils.columns import column_encoder, split_texts
from .._utils.embedding import embed
from .._utils.sklearn import StrOptions, validate_params
from .._utils.table_columns import columns_of, identifies
from .._utils.targets import check_target, encode_labels
from .._utils.text_encoder import TextEncoder
from ..labels import LabelErrorDetector, match_rows, model_skill
from ._contents import contents_of, kind_of, overview_of, plain_labels, telling_columns
from ._read import read_table
from ._report import AuditReport
from .checks import LARGEST, WIDEST, check_table, rows_shown

_WORDS = "all words, by TF-IDF, for the linear model, and their 50 main components for the forest"
_TREES = 100
_N_REASONS = 3  # rows for a label, and rows against it
_FEWEST, _MOST = 20, 1000  # rows and columns of a table that is checked


@validate_params(
    {"checks": [StrOptions({"all", "fast"}), None]}, prefer_skip_nested_validation=False
)
def audit_table(
    X,
    y=None,
    *,
    X_val=None,
    y_val=None,
    detector=None,
    contents=None,
    groups=None,
    pred_probs=None,
    n_rows=100,
    checks="all",
    title=None,
    target=None,
    random_state=None,
):
    """Find the rows whose labels are doubtful, and what else may be wrong, and report
    them.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or str or path
        The rows, or the file of a table, which :func:`~skvalue.audit.read_table`
        reads. If the detector has neither an embedding nor an estimator, columns of a
        pandas frame are encoded by what they hold (numbers, dates, categories,
        identifiers). Texts, in a list or in columns, are encoded twice: the logistic
        regression gets all words (TF-IDF), the forest their 50 main components. Images,
        an array of shape (n_samples, height, width) or (n_samples, height, width, 3),
        are their pixels without an embedding.
    y : array-like of shape (n_samples,), default=None
        Their labels, or targets. A named series names the target in the report. None
        for a file.
    X_val, y_val : array-like, default=None
        Other rows, of the same columns, and their labels. The notes of the report then
        say how many of them are in X, and how well they are predicted with and without
        the listed rows.
    detector : LabelErrorDetector, default=None
        An unfitted detector, which is cloned. None is
        ``LabelErrorDetector(random_state=random_state)``.
    contents : array-like of length n_samples, default=None
        What to show of the rows, if not X: texts, images, or a data frame.
    groups, pred_probs : array-like, default=None
        As of :meth:`skvalue.LabelErrorDetector.fit`.
    n_rows : int, default=100
        Number of rows of the list that the page shows, besides those to review.
    checks : {"all", "fast"} or None, default="all"
        What else is looked for: see :func:`~skvalue.audit.check_table`. "fast" leaves
        out single entries, which cost a forest for each column, and which are left out
        of tables of more than 5,000 rows or 50 columns. Pictures, sparse matrices and
        tables of fewer than 20 rows or more than 1,000 columns are not checked.
    title : str, default=None
        Title of the report; None is the name of the file, or "Table".
    target : str, default=None
        Name of the target; for a file, its column.
    random_state : int, RandomState instance or None, default=None
        Seed of the default detector.

    Returns
    -------
    report : AuditReport
        The report.

    Raises
    ------
    ValueError
        As of :meth:`skvalue.LabelErrorDetector.fit`, and of `read_table` for a file; if
        contents have another length than y, or y is given for a file.

    See Also
    --------
    skvalue.LabelErrorDetector : The detector.

    Examples
    --------
    >>> from skvalue.audit import audit_table
    >>> texts = ["good film", "good play", "great film", "bad play", "bad film", "poor play"] * 5
    >>> labels = ["yes", "yes", "yes", "no", "no", "no"] * 5
    >>> labels[3] = "yes"
    >>> report = audit_table(texts, labels, random_state=0)
    >>> [sorted(group.tolist()) for group in report.conflicts]  # labels of equal texts differ
    [[3, 9, 15, 21, 27]]
    """
    start, numbers, said = perf_counter(), None, {}
    if isinstance(X, str | os.PathLike):
        title = os.path.basename(X) if title is None else title
        X, y, numbers, said["read"] = _read(X, y, target)
    target = getattr(y, "name", None) if target is None else str(target)
    given, y = y, np.asarray(y).reshape(-1)
    labels, validation = (
        plain_labels(y),
        (X_val, y_val) if contents is None else (None, None),
    )
    contents = X if contents is None else contents
    if detector is None:
        detector = LabelErrorDetector(random_state=random_state)
    detector, notes = clone(detector), []
    if detector.embedding is None and kind_of(X) == "image":
        X = np.asarray(X).reshape(len(X), -1)
        X_val = None if X_val is None else np.asarray(X_val).reshape(len(X_val), -1)
        notes = [f"images: their {X.shape[1]} pixels"]
    elif (
        detector.embedding is None and detector.estimator is None and pred_probs is None
    ):
        detector.embedding, notes = _embedding(X)
    detector.fit(X, given, groups=groups, pred_probs=pred_probs)
    task = "classification" if hasattr(detector, "classes_") else "regression"
    codes, suggested, worth = _codes(detector, given)
    rows, shown = _rows(detector, n_rows)
    findings, said["unchecked"] = _findings(
        checks,
        contents,
        labels,
        *validation,
        target,
        task,
        worth,
        detector.random_state,
    )
    shown = sorted(shown.union(*map(rows_shown, findings)))
    row_id, of_row, overview = _shown(contents, shown, codes, suggested)
    notes += [*detector.preparation_, *_validation_notes(detector, X, y, X_val, y_val)]
    return AuditReport(
        about={
            "title": "Table" if title is None else title,
            "target": target,
            "n_samples": len(y),
            "seconds": perf_counter() - start,
            "task": task,
            "kind": kind_of(contents),
            "n_features": getattr(detector, "n_features_in_", 1),
            "score": _score(detector),
            "id": row_id,
            "duplicates": detector.duplicates_.verdict,
            **{
                name: getattr(detector, name)
                for name in ("fdr", "confidence", "n_verdicts")
            },
        },
        notes=notes,
        values=detector.values_,
        labels=labels,
        suggestions=plain_labels(detector.suggested_label_),
        listed=detector.report_.row,
        to_review=detector.to_review_,
        conflicts=detector.conflicts_,
        rows=rows,
        contents=of_row,
        duplicates=detector.duplicates_.groups,
        similar=list(detector.duplicates_.similar),
        worth=worth,
        numbers=np.arange(2, len(y) + 2) if numbers is None else numbers,
        said=said,
        findings=findings,
        overview=overview,
    )


def _shown(contents, rows, codes, suggested):
    """The column that identifies rows, or None, what is shown of some rows, and of each
    column."""
    framed = hasattr(contents, "columns")
    is_table = framed or (not issparse(contents) and np.ndim(contents) == 2)
    columns = columns_of(contents) if is_table else []
    order = telling_columns(columns, rows, codes, suggested) if columns else {}
    row_id = next(
        (column.name for column in columns if framed and identifies(column)), None
    )
    return row_id, contents_of(contents, rows, order), overview_of(columns)


def _read(path, y, target):
    """Columns, target and row numbers of a file, and sentences on how it was read."""
    if y is not None:
        raise ValueError(
            "y must be None if X is a file, of which target names a column. Got both."
        )
    if target is None:
        raise ValueError(f"target must name a column of the file. Got None for {path}.")
    reading = read_table(path, target)
    frame, n_lost = reading.frame, len(reading.unlabelled)
    lost = f"{n_lost} rows without a label are left out."
    said = [*reading.said, *reading.doubts, *[lost] * bool(n_lost)]
    numbers, frame = frame.index.to_numpy() + 2, frame.reset_index(drop=True)
    return frame.drop(columns=target), frame[target], numbers, said


def _findings(checks, X, y, X_val, y_val, target, task, worth, random_state):
    """What else may be wrong, and sentences on what was not checked."""
    if X is not None and not issparse(X):
        check_consistent_length(X, y)
    rows, points = (
        np.array(each, dtype=object)[:, None] if kind_of(each) == "text" else each
        for each in (X, X_val)
    )
    y_val = None if y_val is None else plain_labels(np.asarray(y_val).reshape(-1))
    n, width = (0, 0) if rows is None or np.ndim(rows) != 2 else np.shape(rows)
    if checks is None or issparse(X) or n < _FEWEST or width > _MOST:
        return [], ["columns, far rows, the order of rows, and single entries"]
    cells = checks == "all" and n <= LARGEST and width <= WIDEST
    found = check_table(
        rows, y, points, y_val, target=target or "target", cells=cells, task=task,
        worth=worth, random_state=random_state,
    )  # fmt: skip
    return found, [] if cells else ["whether single entries fit the rest of their row"]


def _codes(detector, y):
    """Codes of labels and suggestions, or of fifths of targets; what the models are
    worth."""
    y = np.asarray(y).reshape(-1)
    if not hasattr(detector, "classes_"):
        codes = check_target(y, "y")
        fifths = np.quantile(codes, [0.2, 0.4, 0.6, 0.8])
        both = codes, detector.suggested_label_
        return *(np.searchsorted(fifths, numbers) for numbers in both), None
    codes = encode_labels(y)[1].astype(np.intp)
    suggested, classes = (
        detector.label_scores_.argmax(axis=1),
        plain_labels(detector.classes_),
    )
    return codes, suggested, model_skill(suggested, codes, classes.astype(str).tolist())


def _embedding(X):
    """The embedding of texts and of pandas frames, None for other rows, and what it
    does."""
    if kind_of(X) == "text":
        return TextEncoder(), [f"texts: {_WORDS}"]
    if not hasattr(X, "iloc"):
        return None, []
    encoder, notes = column_encoder(X)
    texts = split_texts(X)[0]
    if not texts:
        return encoder, notes
    notes = [note for note in notes if not note.startswith("text ")]
    return TextEncoder(), [*notes, f"text {', '.join(map(str, texts))}: {_WORDS}."]


def _validation_notes(detector, X, y, X_val, y_val):
    """Sentences: what validation points say about the rows and the list."""
    if X_val is None:
        return
    codes, codes_val, _ = match_rows(X, X_val)
    n_equal = np.isin(codes_val, codes).sum()
    yield f"validation: {n_equal} of {len(y_val)} rows are equal to a row of the table."
    if detector.embedding is not None:
        encoder = detector.embedding_
        X, X_val = embed(encoder, X), embed(encoder, X_val, "X_val")
        if isinstance(encoder, TextEncoder):
            X, X_val = (encoder.split(rows)[0] for rows in (X, X_val))
    kept = np.delete(np.arange(len(y)), detector.report_.row)
    if len(np.unique(y[kept])) < 2:
        return
    classes = hasattr(detector, "classes_")
    forest = RandomForestClassifier if classes else RandomForestRegressor
    forest = forest(_TREES, min_samples_leaf=5, random_state=0)
    whole = forest.fit(X, y).score(X_val, y_val)
    without = forest.fit(X[kept], y[kept]).score(X_val, y_val)
    yield (
        f"validation: the {'accuracy' if classes else 'R2'} of a forest is {whole:.4f} with all "
        f"rows, {without:.4f} without the {len(y) - len(kept)} listed rows."
    )


def _rows(detector, n_rows):
    """Columns of the rows that a page shows, and all rows that it mentions."""
    report, others = detector.report_, ("supporters", "opponents")
    chosen = np.isin(report.row, detector.to_review_)
    chosen[:n_rows] = True
    names = ("row", "probability", "forest", "logistic", "ridge")
    columns = {name: report[name][chosen].tolist() for name in names if name in report}
    reasons = None
    if chosen.any():
        with suppress(ValueError):  # of a detector without vectors of the rows
            reasons = detector.reasons(report.row[chosen], n_rows=_N_REASONS)
    if reasons is not None:
        columns["neighbors"] = reasons.neighbors.tolist()
        columns |= {name: [each.tolist() for each in reasons[name]] for name in others}
    mentioned = set(columns["row"])
    for name in others:
        mentioned.update(*columns.get(name, ()))
    equal = detector.duplicates_
    for groups in (detector.conflicts_, equal.groups, equal.similar):
        mentioned.update(*(group[:10].tolist() for group in groups[:50]))
    return columns, mentioned


def _score(detector):
    """What the values are, in words."""
    if not hasattr(detector, "classes_"):
        return "minus the residual of a held-out prediction, in multiples of its typical size"
    if detector.estimator is None or hasattr(detector.estimator, "predict_proba"):
        return "probability of the given label by models that have not seen the row"
    return (
        f"value of the given label by {type(detector.estimator).__name__}, out of fold"
    )
