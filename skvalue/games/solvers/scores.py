"""Scores of many models at once, from what they answer at the validation points."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ..._utils.sklearn import BaseScorer, response_methods
from .loop import score_number
from .scoring import scorer_name


class StandInClassifier(ClassifierMixin, BaseEstimator):
    """What a scorer sees of one classifier: answers of one method, whatever X it is shown."""

    def __init__(self, classes, method=None, answers=None):
        self.classes, self.method, self.answers = classes, method, answers
        self.classes_ = classes

    @available_if(lambda self: self.method == "predict")
    def predict(self, X):
        return self.classes[self.answers.astype(np.intp)]

    @available_if(lambda self: self.method == "predict_proba")
    def predict_proba(self, X):
        return self.answers

    @available_if(lambda self: self.method == "decision_function")
    def decision_function(self, X):
        return self.answers


class StandInRegressor(RegressorMixin, BaseEstimator):
    """What a scorer sees of one regressor: its predictions, whatever X it is shown."""

    def __init__(self, predictions=None):
        self.predictions = predictions

    def predict(self, X):
        return self.predictions


class Scores:
    """Scores of answers, as a scorer gives them.

    Parameters
    ----------
    training : Training
        Classes, validation points and their weights, and the scorer.
    """

    def __init__(self, training):
        self.training = training
        self.name = scorer_name(training.scoring, training.classes is not None)
        weights = training.sample_weight_val
        self.equal = weights is None
        self.given = {} if self.equal else {"sample_weight": weights}
        weights = np.ones(len(training.y_val)) if self.equal else weights
        self.weights = weights / weights.sum()
        if training.classes is not None:
            self.y = np.searchsorted(training.classes, training.y_val)
        elif training.y_val.dtype.kind in "fiub":
            self.y = training.y_val.astype(np.float64)
            self.spread = self.weights @ (self.y - self.weights @ self.y) ** 2

    def asked(self):
        """The method of the estimator that the scorer calls; None if that cannot be known."""
        if self.training.scoring is None:
            return "predict"
        if not isinstance(self.training.scorer, BaseScorer):
            return None
        methods = response_methods(self.training.scorer)
        known = (method for method in methods if hasattr(self.training.estimator, method))
        return next(known, None)

    def of_classes(self, answers, sizes):
        """Scores of m classifiers, NaN where the scorer fails; ``sizes`` are their rows.

        ``answers`` are those of the method `asked` at V validation points: codes of classes (m, V)
        (bool, where there are two), probabilities (m, V, C), or decisions (m, V).
        """
        if self.name == "accuracy":
            right = answers == self.y.astype(answers.dtype)
            if self.equal:
                return np.count_nonzero(right, axis=1) / right.shape[1]
            return right @ self.weights
        if self.name == "neg_log_loss":
            right = np.take_along_axis(answers, self.y[None, :, None], axis=2)[:, :, 0]
            if answers.shape[2] == 2:  # scikit-learn takes the rest from 1, with its rounding
                right = np.where(self.y == 1, answers[:, :, 1], 1 - answers[:, :, 1])
            eps = np.finfo(np.float64).eps
            return np.log(np.clip(right, eps, 1 - eps)) @ self.weights
        classes, method = self.training.classes, self.asked()
        models = (StandInClassifier(classes, method, row) for row in answers)
        return self._one_by_one(models, sizes)

    def of_targets(self, predictions, sizes):
        """Scores of m regressors from their (m, V) predictions."""
        if self.name in ("r2", "neg_mean_squared_error") and len(self.y) > 1:
            loss = (predictions - self.y) ** 2 @ self.weights
            if self.name == "neg_mean_squared_error":
                return -loss
            if self.spread > 0:
                return 1.0 - loss / self.spread
        return self._one_by_one((StandInRegressor(row) for row in predictions), sizes)

    def _one_by_one(self, models, sizes):
        training, scores = self.training, np.empty(len(sizes))
        for i, model in enumerate(models):
            try:
                score = training.scorer(model, training.X_val, training.y_val, **self.given)
            except Exception:
                scores[i] = np.nan  # the loop meets the error, and deals with it
                continue
            scores[i] = score_number(score, sizes[i])
        return scores
