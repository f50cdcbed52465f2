"""Scores of many models at once, from their predictions at the validation points."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from ..._utils.sklearn import BaseScorer, response_methods
from .loop import score_number
from .scoring import scorer_name


class PrecomputedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with precomputed output of one response method, for a scorer."""

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
    """Scores of predictions at the validation points, by the scorer of a `Training`."""

    def __init__(self, training):
        self.training = training
        self.name = scorer_name(training.scoring, training.classes is not None)
        weights = training.sample_weight_val
        self.equal = weights is None  # whether all points count the same
        if weights is None:
            weights = np.ones(len(training.y_val))
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
        for method in response_methods(self.training.scorer):
            if hasattr(self.training.estimator, method):
                return method
        return None

    def of_classes(self, answers, sizes):
        """Scores of m classifiers trained on ``sizes`` rows; NaN if the scorer fails.

        ``answers`` is the output of `response_method` at V validation points: codes of
        classes (m, V) (bool for two classes), probabilities (m, V, C), or decisions (m,
        V).
        """
        if self.name == "accuracy":
            return self._accuracies(answers)
        if self.name == "neg_log_loss":
            return self._log_likelihoods(answers)
        if self.name == "neg_brier_score":
            return self._brier_scores(answers)
        method = self.response_method()
        models = (
            PrecomputedClassifier(self.training.classes, method, of_model)
            for of_model in answers
        )
        return self._one_by_one(models, sizes)

    def _accuracies(self, labels):
        is_right = labels == self.y.astype(labels.dtype)
        if self.equal:
            return np.count_nonzero(is_right, axis=1) / is_right.shape[1]
        return is_right @ self.weights

    def _log_likelihoods(self, probabilities):
        if probabilities.shape[2] == 2:
            # scikit-learn computes 1 - p, with its rounding.
            positive = probabilities[:, :, 1]
            of_label = np.where(self.y == 1, positive, 1 - positive)
        else:
            labels = self.y[None, :, None]
            of_label = np.take_along_axis(probabilities, labels, axis=2)[:, :, 0]
        eps = np.finfo(np.float64).eps
        return np.log(np.clip(of_label, eps, 1 - eps)) @ self.weights

    def _brier_scores(self, probabilities):
        n_classes = probabilities.shape[2]
        if n_classes == 2:  # of the positive class only
            return -((probabilities[:, :, 1] - self.y) ** 2) @ self.weights
        errors = probabilities - np.eye(n_classes)[self.y]
        return -(errors**2).sum(axis=2) @ self.weights

    def of_targets(self, predictions, sizes):
        """Scores of m regressors from their (m, V) predictions."""
        is_mean_square = self.name in ("r2", "neg_mean_squared_error")
        if is_mean_square and len(self.y) > 1:
            losses = (predictions - self.y) ** 2 @ self.weights
            if self.name == "neg_mean_squared_error":
                return -losses
            if self.variance > 0:
                return 1.0 - losses / self.variance
        models = (PrecomputedRegressor(of_model) for of_model in predictions)
        return self._one_by_one(models, sizes)

    def _one_by_one(self, models, sizes):
        """Scores by the scorer itself."""
        scores = np.empty(len(sizes))
        for i, model in enumerate(models):
            try:
                score = self.training.score(model)
            except Exception:
                scores[i] = np.nan  # the loop handles the error
                continue
            scores[i] = score_number(score, sizes[i])
        return scores
