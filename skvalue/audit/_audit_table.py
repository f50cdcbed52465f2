"""An audit of a table: a detector is fitted, and a report made of what it found."""

import os
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils.validation import check_consistent_length

from .._utils.columns import column_encoder, refuse_repeated_names, split_texts
from .._utils.containers import known_rows, pandas_rows
from .._utils.embedding import embed, fit_embedding
from .._utils.sklearn import Interval, StrOptions, validate_params
from .._utils.table_columns import (
    columns_of,
    identifies,
    refuse_infinite_columns,
)
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
    column_entries,
    is_folder,
    read_images,
    read_table,
    split_target,
)
from .report import AuditReport

_TO_MODELS = (
    "by TF-IDF, for the linear model, and their 50 main components for the forest"
)
_TREES = 100
_LARGEST = 1e30  # entry of the vectors of a forest, which are float32
_N_REASONS = 3  # rows for a label, and rows against it
_GROUPS = 50  # groups of equal rows that a page shows
_OF_GROUP = 10  # rows of such a group

# Rows and columns of a table that is checked.
_FEWEST_ROWS = 20
_MOST_COLUMNS = 1000


@validate_params(
    {
        "checks": [StrOptions({"all", "fast"}), None],
        "n_rows": [Interval(Integral, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=False,
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
        for a file or a frame of which `target` is a column.
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
        Name of the target; without y, the column of the file or frame that it is.
    texts : str or sequence of str, default=()
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
        contents have another length than y, y is given for a file, neither y nor the
        column `target`, X_val with other columns than X, or one of X_val and y_val
        without the other or without X.

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
    _check_points(X, X_val, y_val)
    detector = _unfitted(detector, random_state)
    if isinstance(texts, str):
        texts = (texts,)
    if isinstance(X, str | os.PathLike):
        table = _read_file(X, y, target, has_embedding=detector.embedding is not None)
    else:
        table = _read_rows(pandas_rows(known_rows(X)), y, target)
    X_val = _with_columns_of(table.X, pandas_rows(known_rows(X_val, "X_val")))
    target = None
    if table.target is not None:
        target = str(table.target)
    y = np.asarray(table.y).reshape(-1)
    labels = plain_labels(y)

    # What is shown, and checked, are the rows themselves or what the user has of them,
    # of which there are no validation points.
    if contents is None:
        contents = table.contents
    contents = known_rows(contents, "contents")
    kind = kind_of(table.X)
    if contents is None:
        contents = table.X
        contents_kind = kind
        points = (X_val, y_val)
    else:
        contents_kind = kind_of(contents)
        points = (None, None)

    # Rows -> a fitted detector -> labels and suggestions that are compared.
    encoded = _encode(detector, table.X, X_val, kind, texts, pred_probs is not None)
    detector.fit(encoded.X, table.y, groups=groups, pred_probs=pred_probs)
    compared = _compare(detector, table.y)

    findings, unchecked = _findings(
        contents,
        contents_kind,
        labels,
        points,
        checks=checks,
        target=target or "target",
        task=compared.task,
        worth=compared.worth,
        random_state=detector.random_state,
    )
    sentences = {"unchecked": unchecked}
    if table.sentences is not None:
        sentences["read"] = table.sentences
    notes = [*encoded.notes, *detector.preparation_]
    if X_val is not None:
        rows = (encoded.X, y)
        points = (encoded.X_val, y_val)
        notes += _validation_notes(detector, rows, points, kind, texts)

    # The rows of the list that the page shows, and all rows that it mentions.
    columns_of_list = _columns_of_list(detector, n_rows)
    mentioned = _mentioned_rows(detector, columns_of_list)
    shown = sorted(mentioned.union(*map(rows_shown, findings)))
    columns = _columns(contents)
    order = {}
    if columns:
        order = telling_columns(columns, shown, compared.codes, compared.suggested)
    if title is None:
        title = table.title
    about = {
        "title": title,
        "target": target,
        "n_samples": len(y),
        "seconds": perf_counter() - start,
        "task": compared.task,
        "kind": contents_kind,
        "n_features": getattr(detector, "n_features_in_", 1),
        "score": _score(detector),
        "id": _id_column(contents, columns),
        "rows": table.source,
        "duplicates": detector.duplicates_.verdict,
        "fdr": detector.fdr,
        "confidence": detector.confidence,
        "n_verdicts": detector.n_verdicts,
    }
    return AuditReport(
        about=about,
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
        worth=compared.worth,
        numbers=table.row_numbers,
        entries=table.entries,
        said=sentences,
        findings=findings,
        overview=overview_of(columns),
    )


# Rows and their encoding --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows of an audit, and what a report says of where they come from.

    Parameters
    ----------
    X, y : rows of shape (n_samples, ...) and labels of shape (n_samples,)
        As they were passed, or read.
    target : str or None
        Name of the target.
    title : str
        Title of the report by default.
    contents : array of shape (n_samples, ...) or None
        What to show of the rows, if not X.
    numbers : ndarray of int of shape (n_samples,) or None
        The place of each row in its file; None without a file.
    entries : list of str or None
        The labels as the file has them.
    sentences : list of str or None
        How the file was read.
    """

    X: Any
    y: Any
    target: str | None
    title: str = "Table"
    contents: Any = None
    numbers: np.ndarray | None = None
    entries: list | None = None
    sentences: list | None = None

    @property
    def source(self):
        """How rows are counted: as in a file, or as Python does."""
        if self.numbers is None:
            return "python"
        return "file"

    @property
    def row_numbers(self):
        """The place of each row in its file, or in a file of these rows."""
        if self.numbers is None:
            return np.arange(len(self.y)) + FIRST_ROW
        return self.numbers


def _check_points(X, X_val, y_val):
    """Refuse validation points without labels, or labels without points or rows."""
    if X_val is not None and y_val is None:
        raise ValueError(
            "X_val and y_val must be passed together. Got X_val and no y_val."
        )
    if X_val is None and y_val is not None:
        raise ValueError(
            "X_val and y_val must be passed together. Got y_val and no X_val."
        )
    if X is None and X_val is not None:
        raise ParameterError(
            "X_val", "must be None without X, to whose rows points are compared."
        )


def _unfitted(detector, random_state):
    """A clone of the detector, or the default one."""
    if detector is None:
        detector = LabelErrorDetector(random_state=random_state)
    if not isinstance(detector, LabelErrorDetector):
        refuse("detector", "a LabelErrorDetector, or None", detector)
    return clone(detector)


def _read_rows(X, y, target):
    """The table of rows in memory; without y, the target is a column of a frame."""
    if y is None:
        if target is None or target not in getattr(X, "columns", ()):
            raise ParameterError(
                "y",
                "must be the labels of the rows, unless `target` names their column in "
                f"a frame or file. Got None, and target={target!r}.",
            )
        refuse_repeated_names(X.columns)
        others = [name for name in X.columns if name != target]
        return _Table(X[others], X[target], target)
    if X is not None and np.ndim(X) == 1 and kind_of(X) == "table":
        raise ParameterError(
            "X",
            "must be a table of two dimensions, texts or images. Got one number or "
            "object per row.",
        )
    if target is None:
        target = getattr(y, "name", None)
    return _Table(X, y, target)


def _with_columns_of(X, X_val):
    """Validation points with the columns of the rows, in the order of these."""
    if not hasattr(X, "columns") or not hasattr(X_val, "columns"):
        return X_val
    refuse_repeated_names(X.columns)
    refuse_repeated_names(X_val.columns)
    lacking = [name for name in X.columns if name not in X_val.columns]
    other = [name for name in X_val.columns if name not in X.columns]
    rule = "must have the columns of X. Got"
    if lacking:
        raise ParameterError("X_val", f"{rule} none named {lacking[0]!r}.")
    if other:
        raise ParameterError("X_val", f"{rule} one named {other[0]!r}.")
    return X_val[list(X.columns)]


def _read_file(path, y, target, has_embedding):
    """The table of a file, or of a folder of pictures; the target is a column of it.

    With an embedding, pictures are larger.
    """
    if y is not None:
        raise ParameterError(
            "y",
            "must be None if X is a file, of which target names a column. Got both.",
        )
    if target is None and is_folder(path):
        target = LABEL
    if target is None:
        raise ParameterError(
            "target", f"must name a column of the file. Got None for {path}."
        )
    reading = read_table(path, target)
    sentences = [*reading.said, *reading.doubts]
    n_lost = len(reading.unlabelled)
    if n_lost:
        sentences.append(f"{n_lost} rows without a label are left out.")

    X, y = split_target(reading, target)
    pictures = None
    if is_folder(path):
        names = X["path"]
        pictures = read_images(path, names, SHOWN)
        X = pictures
        if not has_embedding:
            X = read_images(path, names, FOR_MODELS)
    return _Table(
        X,
        y,
        target,
        title=os.path.basename(os.path.normpath(path)),
        contents=pictures,
        numbers=reading.frame.index.to_numpy() + FIRST_ROW,
        entries=column_entries(reading, target),
        sentences=sentences,
    )


class _Encoded(NamedTuple):
    """Rows and validation points as a detector takes them, and notes on them."""

    X: Any
    X_val: Any
    notes: list


def _encode(detector, X, X_val, kind, texts, has_probabilities):
    """Rows for a detector, which gets an embedding if it has none.

    One with an estimator, or with probabilities, takes rows as they are; images are
    their pixels.
    """
    if detector.embedding is not None:
        return _Encoded(X, X_val, [])
    if kind == "image":
        X = _pixels(X)
        if X_val is not None:
            X_val = _pixels(X_val)
        return _Encoded(X, X_val, [f"images: their {X.shape[1]} pixels"])
    notes = []
    if detector.estimator is None and not has_probabilities:
        detector.embedding, notes = _embedding(X, kind, texts)
    return _Encoded(X, X_val, notes)


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
    refuse_infinite_columns(X)
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


class _Comparison(NamedTuple):
    """Labels and suggestions, both as codes.

    Parameters
    ----------
    task : {"classification", "regression"}
        What the labels are for.
    codes, suggested : ndarray of int of shape (n_samples,)
        Codes of the labels and of the suggestions; for a regression, the fifths of the
        targets to which these belong.
    worth : dict or None
        For classes, what the suggestions are worth, see `model_skill`.
    """

    task: str
    codes: np.ndarray
    suggested: np.ndarray
    worth: dict | None


def _compare(detector, y):
    """The comparison of the labels with the suggestions of a fitted detector."""
    if not hasattr(detector, "classes_"):
        targets = check_target(np.asarray(y).reshape(-1), "y")
        fifths = np.quantile(targets, [0.2, 0.4, 0.6, 0.8])
        return _Comparison(
            "regression",
            codes=np.searchsorted(fifths, targets),
            suggested=np.searchsorted(fifths, detector.suggested_label_),
            worth=None,
        )
    codes = encode_labels(np.asarray(y).reshape(-1))[1].astype(np.intp)
    suggested = detector.label_scores_.argmax(axis=1)
    class_names = plain_labels(detector.classes_).astype(str).tolist()
    worth = model_skill(suggested, codes, class_names)
    return _Comparison("classification", codes, suggested, worth)


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
        if X_val is not None:
            X_val = _as_column(X_val)
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
    if cells:
        return findings, []
    return findings, ["whether single entries fit the rest of their row"]


def _is_checked(n_rows, n_columns):
    return n_rows >= _FEWEST_ROWS and n_columns <= _MOST_COLUMNS


def _as_column(texts):
    """Texts as an array of shape (n_samples, 1)."""
    return np.array(texts, dtype=object)[:, None]


def _validation_notes(detector, rows, points, kind, texts):
    """Sentences: what validation points say about the rows and the list.

    rows, points : tuples of X and y, and of X_val and y_val
    kind, texts : as in `_embedding`
    """
    X, y = rows
    X_val, y_val = points
    codes, codes_val, _ = match_rows(X, X_val)
    n_equal = np.isin(codes_val, codes).sum()
    yield f"validation: {n_equal} of {len(y_val)} rows are equal to a row of the table."

    kept = np.delete(np.arange(len(y)), detector.report_.row)
    vectors = _vectors(detector, X, X_val, kind, texts)
    if vectors is None or len(np.unique(y[kept])) < 2:
        return
    X, X_val = vectors
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


def _vectors(detector, X, X_val, kind, texts):
    """Vectors of the rows and of validation points for a forest; None without any.

    They are those of the detector. One with an estimator, or with probabilities, may
    have none: its rows are encoded as those of the default detector.
    """
    encoder = getattr(detector, "embedding_", None)
    if encoder is None and (kind == "text" or hasattr(X, "columns")):
        try:
            embedding, _ = _embedding(X, kind, texts)
        except ValueError:
            return None  # all columns are constant, or identify rows
        encoder = fit_embedding(embedding, X, None, all_words=True)
    if encoder is not None:
        X = embed(encoder, X)
        X_val = embed(encoder, X_val, "X_val")
        if isinstance(encoder, TextEncoder):
            X = encoder.split(X)[0]
            X_val = encoder.split(X_val)[0]
    if issparse(X):
        return X, X_val
    X = np.asarray(X)
    X_val = np.asarray(X_val)
    if X.dtype.kind not in "biuf" or X_val.dtype.kind not in "biuf":
        return None
    return np.clip(X, -_LARGEST, _LARGEST), np.clip(X_val, -_LARGEST, _LARGEST)


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
    if not is_array and not hasattr(contents, "columns"):
        return []
    return columns_of(contents)


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
