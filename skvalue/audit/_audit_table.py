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
from .._utils.containers import known_rows, pandas_rows
from .._utils.embedding import embed
from .._utils.sklearn import StrOptions, validate_params
from .._utils.table_columns import columns_of, identifies
from .._utils.targets import check_target, encode_labels
from .._utils.text import lacks_spaces
from .._utils.text_encoder import TextEncoder
from .._utils.untrusted import refuse
from ..exceptions import ParameterError
from ..labels import LabelErrorDetector, match_rows, model_skill
from ._contents import contents_of, kind_of, plain_labels, telling_columns
from ._overview import overview_of
from .checks import LARGEST, WIDEST, check_table, rows_shown
from .reading import (
    FIRST_ROW,
    FOR_MODELS,
    LABEL,
    SHOWN,
    is_folder,
    read_images,
    read_table,
    split_target,
    target_entries,
)
from .report import AuditReport

_TO_MODELS = (
    "by TF-IDF, for the linear model, and their 50 main components for the forest"
)
_TREES = 100
_N_REASONS = 3  # rows for a label, and rows against it
_GROUPS = 50  # groups of equal rows that a page shows
_OF_GROUP = 10  # rows of such a group

# Rows and columns of a table that is checked.
_FEWEST_ROWS = 20
_MOST_COLUMNS = 1000


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
    texts=(),
    random_state=None,
):
    """Report the rows whose labels are doubtful, and what else may be wrong.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, str or path
        The rows, of shape (n_samples, n_features), or the file of a table, which
        :func:`~skvalue.audit.read_table` reads. If the detector has neither an
        embedding nor an estimator, columns of a frame are encoded by what they
        hold (numbers, dates, categories, identifiers). Texts, in a list or in columns,
        are encoded twice: the logistic regression gets all words (TF-IDF), the forest
        their 50 main components. Images, an array of shape (n_samples, height, width)
        or (n_samples, height, width, 3), are their pixels without an embedding; so are
        the pictures of a folder with one folder for each label, made small: of 16
        pixels a side, or 64 for an embedding.
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
        As of :meth:`skvalue.LabelErrorDetector.fit`: columns of `pred_probs` that have
        names are matched to the labels by these.
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
    texts : sequence of str, default=()
        Columns of a pandas frame, or of a file, that are texts whatever they hold.
        Others are texts if their entries have three words or more on average. Texts in
        scripts without spaces (Chinese, Japanese, Thai) are encoded by one to three
        letters in a row.
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
    >>> good = ["good film", "good play", "great film"]
    >>> bad = ["bad play", "bad film", "poor play"]
    >>> texts = (good + bad) * 5
    >>> labels = (["yes"] * 3 + ["no"] * 3) * 5
    >>> labels[3] = "yes"
    >>> report = audit_table(texts, labels, random_state=0)
    >>> [group] = report.conflicts  # equal texts with different labels
    >>> sorted(group.tolist())
    [3, 9, 15, 21, 27]
    """
    start = perf_counter()
    numbers = None
    entries = None
    sentences = {}
    if isinstance(X, str | os.PathLike):
        if target is None and is_folder(X):
            target = LABEL
        reading = _read(X, y, target)
        name = os.path.basename(os.path.normpath(X))
        title = name if title is None else title
        sentences["read"] = _sentences_on(reading)
        numbers = reading.frame.index.to_numpy() + FIRST_ROW
        entries = target_entries(reading, target)
        folder = X
        X, y = split_target(reading, target)
        if is_folder(folder):
            names = X["path"]
            has_embedding = detector is not None and detector.embedding is not None
            shown = read_images(folder, names, SHOWN)
            contents = shown if contents is None else contents
            X = shown if has_embedding else read_images(folder, names, FOR_MODELS)
    X = pandas_rows(known_rows(X))
    X_val = pandas_rows(known_rows(X_val, "X_val"))
    contents = known_rows(contents, "contents")
    target = getattr(y, "name", None) if target is None else str(target)
    given_labels = y
    y = np.asarray(y).reshape(-1)
    labels = plain_labels(y)

    # What is shown, and checked, are the rows themselves or what the user has of them,
    # of which there are no validation points.
    kind = kind_of(X)
    if contents is None:
        contents = X
        contents_kind = kind
        points = (X_val, y_val)
    else:
        contents_kind = kind_of(contents)
        points = (None, None)

    if detector is None:
        detector = LabelErrorDetector(random_state=random_state)
    detector = clone(detector)
    notes = []
    if detector.embedding is None and kind == "image":
        X = _pixels(X)
        X_val = None if X_val is None else _pixels(X_val)
        notes = [f"images: their {X.shape[1]} pixels"]
    elif (
        detector.embedding is None and detector.estimator is None and pred_probs is None
    ):
        detector.embedding, notes = _embedding(X, kind, texts)
    detector.fit(X, given_labels, groups=groups, pred_probs=pred_probs)

    has_classes = hasattr(detector, "classes_")
    if has_classes:
        codes, suggested = _label_codes(detector, given_labels)
        class_names = plain_labels(detector.classes_).astype(str).tolist()
        worth = model_skill(suggested, codes, class_names)
    else:
        codes, suggested = _target_codes(detector, given_labels)
        worth = None
    task = "classification" if has_classes else "regression"
    findings, sentences["unchecked"] = _findings(
        contents,
        contents_kind,
        labels,
        points,
        checks=checks,
        target=target or "target",
        task=task,
        worth=worth,
        random_state=detector.random_state,
    )

    # The rows of the list that the page shows, and all rows that it mentions.
    columns_of_list = _columns_of_list(detector, n_rows)
    mentioned = _mentioned_rows(detector, columns_of_list)
    shown = sorted(mentioned.union(*map(rows_shown, findings)))
    columns = _columns(contents)
    order = telling_columns(columns, shown, codes, suggested) if columns else {}
    notes += detector.preparation_
    if X_val is not None:
        notes += _validation_notes(detector, X, y, X_val, y_val)
    return AuditReport(
        about={
            "title": "Table" if title is None else title,
            "target": target,
            "n_samples": len(y),
            "seconds": perf_counter() - start,
            "task": task,
            "kind": contents_kind,
            "n_features": getattr(detector, "n_features_in_", 1),
            "score": _score(detector),
            "id": _id_column(contents, columns),
            "rows": "python" if numbers is None else "file",
            "duplicates": detector.duplicates_.verdict,
            "fdr": detector.fdr,
            "confidence": detector.confidence,
            "n_verdicts": detector.n_verdicts,
        },
        notes=notes,
        values=detector.values_,
        labels=labels,
        suggestions=plain_labels(detector.suggested_label_),
        listed=detector.report_.row,
        to_review=detector.to_review_,
        conflicts=detector.conflicts_,
        rows=columns_of_list,
        contents=contents_of(contents, contents_kind, shown, order),
        duplicates=detector.duplicates_.groups,
        similar=list(detector.duplicates_.similar),
        worth=worth,
        numbers=np.arange(len(y)) + FIRST_ROW if numbers is None else numbers,
        entries=entries,
        said=sentences,
        findings=findings,
        overview=overview_of(columns),
    )


# Rows and their encoding --------------------------------------------------------------


def _read(path, y, target):
    """The reading of a file, one of whose columns is the target."""
    if y is not None:
        raise ParameterError(
            "y",
            "must be None if X is a file, of which target names a column. Got both.",
        )
    if target is None:
        raise ParameterError(
            "target", f"must name a column of the file. Got None for {path}."
        )
    return read_table(path, target)


def _sentences_on(reading):
    """Sentences on how a file was read."""
    sentences = [*reading.said, *reading.doubts]
    n_lost = len(reading.unlabelled)
    if n_lost:
        sentences.append(f"{n_lost} rows without a label are left out.")
    return sentences


def _pixels(images):
    """Images as rows (n_samples, n_pixels)."""
    return np.asarray(images).reshape(len(images), -1)


def _embedding(X, kind, texts):
    """Embedding of texts and pandas frames, None for other rows; notes on it.

    Columns that `texts` names are texts whatever they hold.
    """
    if kind == "text":
        return TextEncoder(), [f"texts: {_words(X)}"]
    if not hasattr(X, "iloc"):
        return None, []
    for name in texts:
        if name not in X.columns:
            refuse("texts", "columns of X", name)
    encoder, notes = column_encoder(X, texts=texts)
    names = split_texts(X, texts)[0]
    if not names:
        return encoder, notes
    notes = [note for note in notes if not note.startswith("text ")]
    for name in names:
        entries = X[name].dropna().astype(str)
        notes.append(f"text {name}: {_words(entries)}.")
    return TextEncoder(tuple(texts)), notes


def _words(texts):
    """How texts are encoded."""
    what = "all words"
    if lacks_spaces(texts):
        what = "one to three letters in a row, since words have no spaces between them"
    return f"{what}, {_TO_MODELS}"


# What was found -----------------------------------------------------------------------


def _label_codes(detector, y):
    """Codes of the labels and of the suggestions, arrays of shape (n_samples,)."""
    codes = encode_labels(np.asarray(y).reshape(-1))[1].astype(np.intp)
    return codes, detector.label_scores_.argmax(axis=1)


def _target_codes(detector, y):
    """Fifths of the targets and of the predictions, arrays of shape (n_samples,)."""
    targets = check_target(np.asarray(y).reshape(-1), "y")
    fifths = np.quantile(targets, [0.2, 0.4, 0.6, 0.8])
    suggested = np.searchsorted(fifths, detector.suggested_label_)
    return np.searchsorted(fifths, targets), suggested


def _findings(
    contents, kind, labels, points, *, checks, target, task, worth, random_state
):
    """What else may be wrong, and sentences on what was not checked.

    points : tuple, validation points and their labels, or None
    """
    if contents is not None and not issparse(contents):
        check_consistent_length(contents, labels)
    X = contents
    X_val, y_val = points
    if kind == "text":
        X = _as_column(X)
        X_val = None if X_val is None else _as_column(X_val)
    if y_val is not None:
        y_val = plain_labels(np.asarray(y_val).reshape(-1))

    is_table = X is not None and not issparse(X) and np.ndim(X) == 2
    if checks is None or not is_table or not _is_checked(*np.shape(X)):
        return [], ["columns, far rows, the order of rows, and single entries"]
    n_rows, n_columns = np.shape(X)
    cells = checks == "all" and n_rows <= LARGEST and n_columns <= WIDEST
    findings = check_table(
        X,
        labels,
        X_val,
        y_val,
        target=target,
        cells=cells,
        task=task,
        worth=worth,
        random_state=random_state,
    )
    unchecked = [] if cells else ["whether single entries fit the rest of their row"]
    return findings, unchecked


def _is_checked(n_rows, n_columns):
    return n_rows >= _FEWEST_ROWS and n_columns <= _MOST_COLUMNS


def _as_column(texts):
    """Texts as an array of shape (n_samples, 1)."""
    return np.array(texts, dtype=object)[:, None]


def _validation_notes(detector, X, y, X_val, y_val):
    """Sentences: what validation points say about the rows and the list."""
    codes, codes_val, _ = match_rows(X, X_val)
    n_equal = np.isin(codes_val, codes).sum()
    yield f"validation: {n_equal} of {len(y_val)} rows are equal to a row of the table."

    if detector.embedding is not None:
        encoder = detector.embedding_
        X = embed(encoder, X)
        X_val = embed(encoder, X_val, "X_val")
        if isinstance(encoder, TextEncoder):
            X = encoder.split(X)[0]
            X_val = encoder.split(X_val)[0]
    kept = np.delete(np.arange(len(y)), detector.report_.row)
    if len(np.unique(y[kept])) < 2:
        return
    forest_class = RandomForestRegressor
    score = "R2"
    if hasattr(detector, "classes_"):
        forest_class = RandomForestClassifier
        score = "accuracy"
    forest = forest_class(_TREES, min_samples_leaf=5, random_state=0)
    with_all = forest.fit(X, y).score(X_val, y_val)
    without_list = forest.fit(X[kept], y[kept]).score(X_val, y_val)
    yield (
        f"validation: the {score} of a forest is {with_all:.4f} with all rows, "
        f"{without_list:.4f} without the {len(y) - len(kept)} listed rows."
    )


# What a page shows --------------------------------------------------------------------


def _columns_of_list(detector, n_rows):
    """Columns on rows of the list: the first ones, and those to review."""
    report = detector.report_
    is_shown = np.isin(report.row, detector.to_review_)
    is_shown[:n_rows] = True
    columns = {}
    for name in ("row", "probability", "forest", "boosting", "logistic", "ridge"):
        if name in report:
            columns[name] = report[name][is_shown].tolist()

    # A detector without vectors of the rows has no reasons.
    reasons = None
    if is_shown.any():
        with suppress(ValueError):
            reasons = detector.reasons(report.row[is_shown], n_rows=_N_REASONS)
    if reasons is not None:
        columns["neighbors"] = reasons.neighbors.tolist()
        for name in ("supporters", "opponents"):
            columns[name] = [rows.tolist() for rows in reasons[name]]
    return columns


def _mentioned_rows(detector, columns_of_list):
    """The set of all rows that a page mentions, those of findings aside."""
    mentioned = set(columns_of_list["row"])
    for name in ("supporters", "opponents"):
        mentioned.update(*columns_of_list.get(name, ()))
    duplicates = detector.duplicates_
    for groups in (detector.conflicts_, duplicates.groups, duplicates.similar):
        for group in groups[:_GROUPS]:
            mentioned.update(group[:_OF_GROUP].tolist())
    return mentioned


def _columns(contents):
    """The columns of a frame or a two-dimensional array, and none of other contents."""
    is_array = not issparse(contents) and np.ndim(contents) == 2
    return columns_of(contents) if hasattr(contents, "columns") or is_array else []


def _id_column(contents, columns):
    """The name of the first column of a frame that numbers the rows, or None."""
    if not hasattr(contents, "columns"):
        return None
    return next((column.name for column in columns if identifies(column)), None)


def _score(detector):
    """What the values are, in words."""
    if not hasattr(detector, "classes_"):
        return (
            "minus the residual of a held-out prediction, in multiples of its typical "
            "size"
        )
    if detector.estimator is None or hasattr(detector.estimator, "predict_proba"):
        return "probability of the given label by models that have not seen the row"
    valuer = type(detector.estimator).__name__
    return f"value of the given label by {valuer}, out of fold"
