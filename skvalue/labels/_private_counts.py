"""Noisy counts of rows whose labels a model of public points finds improbable."""

import warnings
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from .._utils.checks import check_length, format_values, one_column, seed_of
from .._utils.columns import column_encoder
from .._utils.private_entries import (
    objects_of,
    private_entries,
    private_labels,
    quiet_arithmetic,
)
from .._utils.targets import check_task, codes_or_other
from ..exceptions import ParameterError
from ..privacy import (
    Release,
    calibrate_counts,
    make_report,
    sentences,
    warn_of_large_delta,
)
from ._held_out import default_models

# Labels of a smaller probability are improbable.
_THRESHOLD = 0.1

# Number of folds of the public points.
_N_FOLDS = 5

_NOT_PROTECTED = (
    sentences.PUBLIC_POINTS,
    "what the public model says of a row, from a reader who knows this row",
    "persons with several rows as wholes: the unit is one row",
    sentences.RUNNING_TIMES,
)
_ASSUMPTIONS = (
    "no row is also a validation point",
    "the classifier and all parameters were chosen without looking at the rows, and "
    "its probabilities for a row do not depend on other rows",
    sentences.PREPARATION,
    sentences.OTHER_RELEASES,
)
_EXPLANATION = (
    f"Improbable are labels with a probability below {_THRESHOLD} by a model of the "
    "public points alone. These are rows that a public model disagrees with, not an "
    "error rate: the last column is the fraction of the public points whose labels are "
    "improbable to models that have not seen them. No row is listed. Counts have "
    "noise, of the standard errors in the last line, and can be negative."
)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Noisy counts of rows by label, made by `count_improbable_labels`.

    It holds no private row, and all of it may be published.

    Parameters
    ----------
    classes : list of length n_classes
        The labels of the public points.
    n_rows, n_improbable : ndarray of int of shape (n_classes,)
        Noisy numbers of rows with each label, and of those whose label is improbable.
    n_other : int
        Noisy number of rows with another label, or none.
    n_rows_error, error : float
        Standard errors of `n_rows`, and of `n_improbable` and `n_other`.
    public_rate : ndarray of shape (n_classes,)
        Fraction of the public points of each class whose label is improbable, held out.
    privacy : skvalue.privacy.PrivacyReport
        What is protected, from whom, and what is not.
    model : classifier
        The public model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue.labels import count_improbable_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> counts = count_improbable_labels(
    ...     X[::2], y[::2], X[1::2], y[1::2], epsilon=1.0, estimator=GaussianNB()
    ... )

    For the owner of row 0:

    >>> counts.probability_of(X[:1], y[:1]) > 0.9
    array([ True])
    """

    classes: list
    n_rows: np.ndarray
    n_improbable: np.ndarray
    n_other: int
    n_rows_error: float
    error: float
    public_rate: np.ndarray
    privacy: Any
    model: object

    def probability_of(self, X, y):
        """Probabilities of labels by the public model, for the owners of the rows.

        They depend on these rows and the public points alone.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows, with the columns of the public points.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        probabilities : ndarray of shape (n,)
            Of each label; 0 for one that no public point has.
        """
        scores = self.model.predict_proba(X)
        return _label_scores(scores, _class_codes(one_column(y, "y"), self.classes))

    def to_html(self):
        """Page with the counts, what they mean, and the sheet of `privacy`.

        Returns
        -------
        page : str
            HTML that loads nothing.
        """
        lines = []
        for cells in self._table():
            lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        table = f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"
        text = f"<h1>Improbable labels</h1>{table}<p>{_EXPLANATION}</p>"
        body = f'<body><div class="skvalue-sheet">{text}</div>'
        return self.privacy.to_html().replace("<body>", body, 1)

    def _table(self):
        """The lines of the table of counts, each a list of cells."""
        table = [["label", "rows", "improbable", "of public points"]]
        columns = (self.classes, self.n_rows, self.n_improbable, self.public_rate)
        for label, n_rows, n_improbable, rate in zip(*columns):
            table.append([str(label), str(n_rows), str(n_improbable), f"{rate:.1%}"])
        table.append(["other", str(self.n_other), "", ""])
        table.append(["error", f"{self.n_rows_error:.1f}", f"{self.error:.1f}", ""])
        return table

    def __str__(self):
        lines = []
        for cells in self._table():
            lines.append("".join(f"{cell:>17}" for cell in cells))
        return "\n".join([*lines, _EXPLANATION, str(self.privacy)])


def count_improbable_labels(
    X,
    y,
    X_val,
    y_val,
    *,
    epsilon,
    delta=1e-5,
    estimator=None,
    ledger=None,
    random_state=None,
    noise_random_state=None,
):
    """Count privately the rows whose labels a model of public points finds improbable.

    A classifier of the public points alone gives each private row the probability of
    its label. Released are noisy numbers, by label, of the rows with a probability
    below a threshold and of the others: one row is in one of these counts, and changes
    it by one. Rows with a label that no public point has are counted together.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Private rows.
    y : array-like of shape (n_samples,)
        Their labels.
    X_val : array-like or data frame of shape (n_points, n_features)
        Public points, which are not protected. No private row may be one of them.
    y_val : array-like of shape (n_points,)
        Their labels: at least two classes, one of at least five points.
    epsilon, delta : float
        The guarantee of differential privacy of all counts together, for adding or
        removing a row.
    estimator : classifier, default=None
        What is fitted to the public points; its probabilities for a row must not depend
        on other rows. None is a random forest, with the columns of a data frame encoded
        by the public points.
    ledger : skvalue.privacy.Ledger, default=None
        The ledger that is charged before noise is drawn.
    random_state : int, RandomState instance or None, default=None
        Seed of the default estimator and of the folds of public points.
    noise_random_state : int, default=None
        Seed of the noise, for tests only: voids the guarantee.

    Returns
    -------
    counts : LabelCounts
        The noisy counts, with what they mean and what is protected.

    Raises
    ------
    ValueError
        If a parameter is outside its range, the public points have no two classes, X
        lacks one of their columns, or the ledger refuses the charge.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue.labels import count_improbable_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> counts = count_improbable_labels(
    ...     X[::2], y[::2], X[1::2], y[1::2], epsilon=1.0, estimator=GaussianNB()
    ... )
    >>> counts.n_improbable.shape, counts.privacy.guarantee
    ((3,), '(1, 1e-05)-differential privacy')
    """
    event = calibrate_counts(epsilon, delta)
    if isinstance(X, (list, tuple)):
        X = objects_of(X)
    # What rows hold is said by the public points.
    are_objects = isinstance(X, np.ndarray) and X.dtype == object
    if are_objects and np.asarray(X_val).dtype.kind in "biuf":
        X = private_entries(X)
    y = one_column(private_labels(y), "y")
    y_val = one_column(y_val, "y_val")
    seed = seed_of(random_state)
    check_length(y, "y", len(X))
    _check_columns(X, X_val)
    if check_task("auto", y_val, "y_val") == "regression" or len(np.unique(y_val)) < 2:
        values = format_values(np.unique(y_val))
        raise ParameterError("y_val", f"must hold two classes or more. Got {values}.")

    # Scores of the private rows by the public model, and of the public points by models
    # that have not seen them.
    model = clone(estimator) if estimator is not None else _default_model(X_val, seed)
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings(), quiet_arithmetic():
        # Of classes of few points, and of unknown entries of rows.
        warnings.simplefilter("ignore")
        held_out_scores = cross_val_predict(
            model, X_val, y_val, cv=folds, method="predict_proba"
        )
        scores, is_scored = _scores_of_rows(model.fit(X_val, y_val), X)
    classes = model.classes_.tolist()
    n_classes = len(classes)
    codes = np.where(is_scored, _class_codes(y, classes), n_classes)
    codes_val = _class_codes(y_val, classes)
    is_improbable = (_label_scores(scores, codes) < _THRESHOLD) & (codes < n_classes)
    is_improbable_val = _label_scores(held_out_scores, codes_val) < _THRESHOLD
    public_rate = np.bincount(codes_val, is_improbable_val) / np.bincount(codes_val)

    # A row is in one of these counts: of the probable and the improbable labels of each
    # class, and of other labels.
    counts = np.bincount(2 * codes + is_improbable, minlength=2 * n_classes + 1)
    warn_of_large_delta(delta, None)  # the number of rows is private
    report = make_report(
        event,
        delta,
        notion="central",
        unit="row",
        protects="whether a row is there and what it holds",
        against="every reader",
        not_protected=_NOT_PROTECTED,
        assumptions=_ASSUMPTIONS,
        noise_random_state=noise_random_state,
    )
    release = Release(event, ledger, "improbable labels", noise_random_state, report)
    noisy_counts = release.of(counts)

    by_class = noisy_counts[:-1].reshape(-1, 2)
    return LabelCounts(
        classes=classes,
        n_rows=by_class.sum(axis=1),
        n_improbable=by_class[:, 1],
        n_other=int(noisy_counts[-1]),
        n_rows_error=2**0.5 * event.scale,
        error=event.scale,
        public_rate=public_rate,
        privacy=report,
        model=model,
    )


def _check_columns(X, X_val):
    """Refuse rows that lack a column of the public points, or are not real numbers."""
    if hasattr(X, "columns") and hasattr(X_val, "columns"):
        lacking = [name for name in X_val.columns if name not in X.columns]
        if lacking:
            raise ValueError(
                f"X must have the columns of X_val. Got none named {lacking[0]!r}."
            )
        return
    shape = np.shape(X)[1:]
    expected = np.shape(X_val)[1:]
    if shape != expected:
        raise ValueError(
            f"X must have rows of the shape of those of X_val, {expected}. Got {shape}."
        )
    if np.asarray(X).dtype.kind == "c":
        raise ValueError("X must hold real numbers. Got complex ones.")


def _scores_of_rows(model, X):
    """Probabilities (n, n_classes) of private rows, and a mask of rows that have some.

    Rows with numbers that float32 does not hold, and rows that the model refuses among
    others, are passed to it one by one. One that it then refuses has none, whatever the
    error: to raise it would reveal the row. The other rows are passed together, with
    another row in place of each such row, so that their probabilities have the bits
    that they would have without it. There may be no row at all.
    """
    rows = X
    if not hasattr(X, "iloc"):
        rows = np.asarray(X)

    def take(places):
        return rows.iloc[places] if hasattr(rows, "iloc") else rows[places]

    n_rows = len(rows)
    scores = np.zeros((n_rows, len(model.classes_)))
    is_scored = _fit_float32(rows)
    is_scored[_refused_rows(model, take, np.flatnonzero(is_scored))] = False
    if is_scored.any():
        another = np.argmax(is_scored)
        together = np.where(is_scored, np.arange(n_rows), another)
        scores[is_scored] = model.predict_proba(take(together))[is_scored]
    for place in np.flatnonzero(~is_scored):
        with suppress(Exception):
            (scores[place],) = model.predict_proba(take([place]))
            is_scored[place] = True
    return scores, is_scored


def _refused_rows(model, take, places):
    """Which of some rows a model refuses, found by halves."""
    if not len(places):
        return places
    with suppress(Exception):
        model.predict_proba(take(places))
        return places[:0]
    if len(places) == 1:
        return places
    halves = np.array_split(places, 2)
    return np.concatenate([_refused_rows(model, take, half) for half in halves])


def _fit_float32(rows):
    """Which rows of a frame, or an array, have no number that float32 does not hold.

    Columns, or arrays, of other entries than numbers are not looked at.
    """
    if hasattr(rows, "iloc"):
        columns = [rows.iloc[:, place] for place in range(rows.shape[1])]
    else:
        columns = [rows]
    fits = np.ones(len(rows), dtype=bool)
    for column in columns:
        if getattr(column.dtype, "kind", "O") not in "iuf":
            continue
        numbers = column
        if hasattr(column, "to_numpy"):  # of nullable columns, too
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        is_within = np.abs(numbers) <= np.finfo(np.float32).max  # False for NaN
        fits &= is_within.all(axis=tuple(range(1, is_within.ndim)))
    return fits


def _default_model(X_val, seed):
    """A random forest, with the columns of a frame encoded by the public points."""
    encoder = "passthrough"
    if hasattr(X_val, "iloc"):
        encoder, _ = column_encoder(X_val)
    forest = default_models(is_classifier=True, seed=seed)["forest"]
    return make_pipeline(encoder, forest)


def _class_codes(y, classes):
    """The index of each label in the classes; their number for other labels.

    1 and 1.0 are one label.
    """
    return codes_or_other(y, np.array(classes, dtype=object)).astype(np.intp)


def _label_scores(scores, codes):
    """The score of the label of each row; 0 for a label that is no class."""
    padded = np.pad(scores, [(0, 0), (0, 1)])
    return padded[np.arange(len(codes)), codes]
