"""Scores of many models at once, from their predictions at the validation points."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from ..._utils.sklearn import BaseScorer, response_methods
from .loop import score_number
from .scoring import scorer_name


class PrecomputedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with precomputed output of one response method, passed to a
    scorer."""

    def __init__(self, classes=None, method=None, answers=None):
        self.classes_ = classes

        def respond(X):
            return classes[answers.astype(np.intp)] if method == "predict" else answers

        respond.__name__ = method  # the scorer reads it
        setattr(self, method, respond)


class PrecomputedRegressor(RegressorMixin, BaseEstimator):
    """A regressor with precomputed predictions, passed to a scorer."""

    def __init__(self, predictions=None):
        self.predictions = predictions

    def predict(self, X):
        return self.predictions


class Scores:
    """Scores, by the scorer of a `Training`, of predictions at its validation
    points."""

    def __init__(self, training):
        self.training = training
        self.name = scorer_name(training.scoring, training.classes is not None)
        weights = training.sample_weight_val
        self.equal = weights is None
        weights = np.ones(len(training.y_val)) if self.equal else weights
        self.weights = weights / weights.sum()
        if training.classes is not None:
            self.y = np.searchsorted(training.classes, training.y_val)
        elif training.y_val.dtype.kind in "fiub":
            self.y = training.y_val.astype(np.float64)
            self.variance = self.weights @ (self.y - self.weights @ self.y) ** 2

    def response_method(self):
        """The method of the estimator that the scorer calls; None if unknown."""
        if self.training.scoring is None:
            return "predict"
        if not isinstance(self.training.scorer, BaseScorer):
            return None
        methods = response_methods(self.training.scorer)
        known = (
            method for method in methods if hasattr(self.training.estimator, method)
        )
        return next(known, None)

    def of_classes(self, answers, sizes):
        """Scores of m classifiers trained on ``sizes`` rows; NaN if the scorer fails.

        ``answers`` is the output of `response_method` at V validation points: codes of
        classes (m, V) (bool for two classes), probabilities (m, V, C), or decisions (m,
        V).
        """
        if self.name == "accuracy":
            right = answers == self.y.astype(answers.dtype)
            if self.equal:
                return np.count_nonzero(right, axis=1) / right.shape[1]
            return right @ self.weights
        if self.name == "neg_log_loss":
            right = np.take_along_axis(answers, self.y[None, :, None], axis=2)[:, :, 0]
            if answers.shape[2] == 2:  # scikit-learn computes 1 - p, with its rounding
                right = np.where(self.y == 1, answers[:, :, 1], 1 - answers[:, :, 1])
            eps = np.finfo(np.float64).eps
            return np.log(np.clip(right, eps, 1 - eps)) @ self.weights
        if self.name == "neg_brier_score":
            if answers.shape[2] == 2:  # of the positive class only
                return -((answers[:, :, 1] - self.y) ** 2) @ self.weights
            off = answers - np.eye(answers.shape[2])[self.y]
            return -(off**2).sum(axis=2) @ self.weights
        classes, method = self.training.classes, self.response_method()
        models = (PrecomputedClassifier(classes, method, row) for row in answers)
        return self._one_by_one(models, sizes)

    def of_targets(self, predictions, sizes):
        """Scores of m regressors from their (m, V) predictions."""
        if self.name in ("r2", "neg_mean_squared_error") and len(self.y) > 1:
            loss = (predictions - self.y) ** 2 @ self.weights
            if self.name == "neg_mean_squared_error":
                return -loss
            if self.variance > 0:
                return 1.0 - loss / self.variance
        return self._one_by_one(
            (PrecomputedRegressor(row) for row in predictions), sizes
        )

    def _one_by_one(self, models, sizes):
        scores = np.empty(len(sizes))
        for i, model in enumerate(models):
            try:
                score = self.training.score(model)
            except Exception:
                scores[i] = np.nan  # the loop handles the error
                continue
            scores[i] = score_number(score, sizes[i])
        return scores
