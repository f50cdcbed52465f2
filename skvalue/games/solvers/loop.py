"""Utilities without a batched solver: clone the estimator, fit and score the clone."""

import re
import traceback
from contextlib import contextmanager

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.metaestimators import available_if

from ..._utils.fits import follows_interrupt
from ..._utils.parallel import one_thread
from ..._utils.sklearn import InvalidParameterError, safe_indexing, validated


class OneClass(DummyClassifier):
    """Predicts the one class of its rows; decisions are 0."""

    def decision_function(self, X):
        return np.zeros(len(self.predict(X)))


class MissingClasses(ClassifierMixin, BaseEstimator):
    """A fitted model of `n_rows` rows that lack some of the classes.

    With k of C classes in n rows its probabilities are multiplied by (n + k) / (n + C),
    and each missing class gets 1 / (n + C).
    """

    def __init__(self, model, classes, n_rows):
        self.model = model
        self.classes = classes
        self.n_rows = n_rows
        self.classes_ = classes

    def predict(self, X):
        return self.model.predict(X)

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    def predict_proba(self, X):
        probabilities = self.model.predict_proba(X)
        seen = self.model.classes_
        n_total = self.n_rows + len(self.classes)
        completed = np.full((len(probabilities), len(self.classes)), 1.0 / n_total)
        scale = (self.n_rows + len(seen)) / n_total
        completed[:, np.searchsorted(self.classes, seen)] = probabilities * scale
        return completed

    @available_if(lambda self: hasattr(self.model, "decision_function"))
    def decision_function(self, X):
        n_classes = len(self.classes)
        if isinstance(self.model, OneClass) and n_classes > 2:
            # Zeros, as for two classes.
            return np.zeros((len(self.predict(X)), n_classes))
        return self.model.decision_function(X)

    def score(self, X, y, sample_weight=None):
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.model.score(X, y, **weights)

    def __getattr__(self, name):
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)


def train(estimator, X, y, sample_weight, classes, rows):
    """The model of one coalition, and whether it has one class.

    ``classes`` None is a regression.
    """
    y_rows = y[rows]
    n_classes = 0 if classes is None else len(np.unique(y_rows))
    if n_classes == 1:
        model = OneClass().fit(rows, y_rows)
    else:
        weights = {}
        if sample_weight is not None:
            weights = {"sample_weight": sample_weight[rows]}
        model = clone(estimator).fit(safe_indexing(X, rows), y_rows, **weights)
    if classes is not None and n_classes < len(classes):
        model = MissingClasses(model, classes, len(rows))
    return model, n_classes == 1


@contextmanager
def on_all_rows(estimator, X, n_rows):
    """Context of a fit on all rows and its score: an error means there is no value.

    The ValueError repeats of its cause what shows no entry of the rows, see `_reason`.
    """
    try:
        yield
    except Exception as error:
        name = type(estimator).__name__
        cure = ""
        kind = getattr(getattr(X, "dtype", None), "kind", "O")
        if name != "Pipeline" and kind not in "biufc":
            cure = (
                " Frames and texts need a pipeline, such as "
                f"make_pipeline(ColumnTransformer(...), {name}())."
            )
        raise ValueError(
            f"estimator must train on all {n_rows} rows together, and be scored. Got "
            f"{name}, which raised {type(error).__name__}{_reason(error)}.{cure}"
        ) from error


def _reason(error):
    """The first line of an error of scikit-learn, up to what may be a row's entry."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if frame.f_globals.get("__name__", "").partition(".")[0] != "sklearn":
        return ", the cause of this error"
    first_line = str(error).partition("\n")[0]
    if not isinstance(error, InvalidParameterError):
        first_line = re.split(r":? ?['\"\[]", first_line)[0]
    return f": {first_line.rstrip('.')}"


def score_number(score, n_rows):
    """A score as a finite float; the ValueError names the size of the coalition."""
    if np.ndim(score) or not isinstance(score, (int, float, np.number)):
        raise ValueError(
            f"scoring must return one number. Got {type(score).__name__} for a "
            f"coalition of {n_rows} rows."
        )
    if not np.isfinite(score):
        raise ValueError(
            f"scoring must return a finite number. Got {score} for a coalition of "
            f"{n_rows} rows."
        )
    return float(score)


def fit_and_score(training, packed):
    """Utilities (m,), one by one, and masks of the failed ones, and of one class.

    ``packed`` are masks as bits (`numpy.packbits`). Runs on one BLAS and OpenMP thread,
    so that results do not depend on the number of workers. If all rows together fail,
    or error_score is "raise", an error is raised. Parameters of the estimator are
    always checked with all rows.
    """
    utilities = np.empty(len(packed))
    failed = np.zeros(len(packed), dtype=bool)
    one_class = np.zeros(len(packed), dtype=bool)
    with one_thread():
        for i, bits in enumerate(packed):
            rows = np.flatnonzero(np.unpackbits(bits, count=len(training.y)))
            try:
                with validated(len(rows) == training.n_rows):
                    model, one_class[i] = train(
                        training.estimator,
                        training.X,
                        training.y,
                        training.sample_weight,
                        training.classes,
                        rows,
                    )
                    score = training.score(model)
            except Exception as error:
                _raise_if_final(error, training, len(rows))
                utilities[i] = training.error_score
                failed[i] = True
                one_class[i] = False
                continue
            utilities[i] = score_number(score, len(rows))
    return utilities, failed, one_class


def _raise_if_final(error, training, n_rows):
    """Raise the error of a coalition's fit or score, unless it has a utility then."""
    if follows_interrupt(error):
        raise KeyboardInterrupt from error
    if isinstance(training.error_score, str):
        error.add_note(f"The coalition had {n_rows} rows.")
        raise error
    if n_rows == training.n_rows:
        with on_all_rows(training.estimator, training.X, n_rows):
            raise error
