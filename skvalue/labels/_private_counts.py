"""Noisy counts of rows whose labels a model of public points finds improbable."""

import warnings
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from .._utils.checks import check_length, format_values, one_column, seed_of
from .._utils.columns import column_encoder
from .._utils.targets import check_task
from ..privacy import (
    Release,
    calibrate_counts,
    make_report,
    sentences,
    warn_of_large_delta,
)
from ._held_out import default_models

_IMPROBABLE, _SPLITS = 0.1, 5  # probability of a label
_NOT_PROTECTED = (
    sentences.PUBLIC_POINTS,
    "what the public model says of a row, from a reader who knows this row",
    "persons with several rows as wholes: the unit is one row",
    sentences.RUNNING_TIMES,
)
_ASSUMED = (
    "no row is also a validation point",
    "the classifier and all parameters were chosen without looking at the rows, and its "
    "probabilities for a row do not depend on other rows",
    sentences.PREPARATION,
    sentences.OTHER_RELEASES,
)
_SAID = (
    f"Improbable are labels with a probability below {_IMPROBABLE} by a model of the public points "
    "alone. "
    "These are rows that a public model disagrees with, not an error rate: the last column is the "
    "fraction of the public points whose labels are improbable to models that have not seen them. "
    "No row is listed. Counts have noise, of the standard errors in the last line, and can be "
    "negative."
)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Noisy counts of rows by label; `count_improbable_labels` makes it.

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
    >>> both = X[::2], y[::2], X[1::2], y[1::2]
    >>> counts = count_improbable_labels(*both, epsilon=1.0, estimator=GaussianNB())
    >>> counts.probability_of(X[:1], y[:1]) > 0.9  # for the owner of row 0
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
        return _at(
            self.model.predict_proba(X), _codes(one_column(y, "y"), self.classes)
        )

    def to_html(self):
        """Page with the counts, what they mean, and the sheet of `privacy`.

        Returns
        -------
        page : str
            HTML that loads nothing.
        """
        lines = (
            "".join(f"<td>{escape(cell)}</td>" for cell in line)
            for line in self._lines()
        )
        table = f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"
        said = f"<h1>Improbable labels</h1>{table}<p>{_SAID}</p>"
        body = f'<body><div class="skvalue-sheet">{said}</div>'
        return self.privacy.to_html().replace("<body>", body, 1)

    def _lines(self):
        """The table of counts."""
        yield "label", "rows", "improbable", "of public points"
        columns = self.classes, self.n_rows, self.n_improbable, self.public_rate
        for label, *counts, rate in zip(*columns):
            yield str(label), *map(str, counts), f"{rate:.1%}"
        yield "other", str(self.n_other), "", ""
        yield "error", f"{self.n_rows_error:.1f}", f"{self.error:.1f}", ""

    def __str__(self):
        lines = ["".join(f"{cell:>17}" for cell in line) for line in self._lines()]
        return "\n".join([*lines, _SAID, str(self.privacy)])


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
    """Count, under differential privacy, the rows whose labels public points make
    improbable.

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
        The guarantee of all counts together, for adding or removing a row.
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
    >>> both = X[::2], y[::2], X[1::2], y[1::2]
    >>> counts = count_improbable_labels(*both, epsilon=1.0, estimator=GaussianNB())
    >>> counts.n_improbable.shape, counts.privacy.guarantee
    ((3,), '(1, 1e-05)-differential privacy')
    """
    event = calibrate_counts(epsilon, delta)
    y, y_val, seed = (
        one_column(y, "y"),
        one_column(y_val, "y_val"),
        seed_of(random_state),
    )
    check_length(y, "y", len(X))
    if check_task("auto", y_val, "y_val") == "regression" or len(np.unique(y_val)) < 2:
        raise ValueError(
            f"y_val must hold two classes or more. Got {format_values(np.unique(y_val))}."
        )
    if estimator is None:
        encoder = column_encoder(X_val)[0] if hasattr(X_val, "iloc") else "passthrough"
        estimator = make_pipeline(encoder, default_models(True, seed)["forest"])
    model, folds = (
        clone(estimator),
        StratifiedKFold(_SPLITS, shuffle=True, random_state=seed),
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # classes of few points, and unknown entries of rows
        held_out = cross_val_predict(
            model, X_val, y_val, cv=folds, method="predict_proba"
        )
        scores = model.fit(X_val, y_val).predict_proba(X)
    classes = model.classes_.tolist()
    codes_val, codes = _codes(y_val, classes), _codes(y, classes)
    improbable = (_at(scores, codes) < _IMPROBABLE) & (codes < len(classes))
    cells = np.bincount(2 * codes + improbable, minlength=2 * len(classes) + 1)
    warn_of_large_delta(delta, len(y))
    report = make_report(
        event, delta, notion="central", unit="row",
        protects="whether a row is there and what it holds", against="every reader",
        not_protected=_NOT_PROTECTED, assumptions=_ASSUMED, noise_random_state=noise_random_state,
    )  # fmt: skip
    release = Release(event, ledger, "improbable labels", noise_random_state, report)
    noisy, errors = release.of(cells), (2**0.5 * event.scale, event.scale)
    pairs = noisy[:-1].reshape(-1, 2)
    rate = np.bincount(codes_val, _at(held_out, codes_val) < _IMPROBABLE) / np.bincount(
        codes_val
    )
    counts = classes, pairs.sum(axis=1), pairs[:, 1], int(noisy[-1])
    return LabelCounts(*counts, *errors, rate, report, model)


def _codes(y, classes):
    """The place of each label among the classes, or their number; 1 and 1.0 are one
    label."""
    places = {label: place for place, label in enumerate(classes)}
    return np.array(
        [places.get(label, len(classes)) for label in y.tolist()], dtype=np.intp
    )


def _at(scores, codes):
    """The entry of each row at its label; 0 for other labels."""
    return np.pad(scores, [(0, 0), (0, 1)])[np.arange(len(codes)), codes]
