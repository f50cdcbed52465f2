"""Scorers, and the utility of the empty coalition."""

import inspect
import warnings

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer

from ..._utils.sklearn import BaseScorer, metric_name, takes_sample_weight, with_labels
from .loop import score_number

_ONE_OF_C = {"accuracy", "balanced_accuracy"}
_SCORERS_ONE_OF_C = {repr(get_scorer(name)) for name in _ONE_OF_C}
_AUC = {
    "roc_auc",
    "roc_auc_ovr",
    "roc_auc_ovo",
    "roc_auc_ovr_weighted",
    "roc_auc_ovo_weighted",
}
# Scores of probabilities, which take the classes from y, which may lack some, unless
# labels are passed to them.
_NEED_LABELS = {
    "brier_score_loss",
    "d2_brier_score",
    "d2_log_loss_score",
    "log_loss",
    "top_k_accuracy_score",
}


def scorer_name(scoring, classification):
    """Name of the scorer, or None; `scoring=None` is the score of the estimator."""
    if scoring is None:
        return "accuracy" if classification else "r2"
    return scoring if isinstance(scoring, str) else None


def check_scorer(estimator, scoring, sample_weight_val, classes=None):
    """The scorer, called with model, X and y, with `labels` if its metric needs them.

    Raises ValueError for validation weights that it does not accept.
    """
    scorer = check_scoring(estimator, scoring)
    is_scorer = isinstance(scorer, BaseScorer)
    if classes is not None and is_scorer and metric_name(scorer) in _NEED_LABELS:
        scorer = with_labels(scorer, classes)
    if sample_weight_val is not None:
        if is_scorer:
            takes_weights = takes_sample_weight(scorer)
        else:
            score = estimator.score if scoring is None else scorer
            takes_weights = "sample_weight" in inspect.signature(score).parameters
        if not takes_weights:
            raise ValueError(
                "sample_weight_val, and class_weight='balanced', need a scorer that "
                f"takes sample_weight. Got {scoring!r}."
            )
    return scorer


def empty_utility_of(
    scoring, scorer, X_val, y_val, sample_weight_val, classes, prior=False
):
    """Utility of the empty coalition: 1/C, or the score of the constant prediction.

    1/C is that of accuracies, unless ``prior``. The constant prediction is that of
    `DummyClassifier(strategy="prior")` or `DummyRegressor` fitted on the validation
    targets with their weights; classes they lack have probability 0. Raises ValueError
    for a scorer that cannot score it.
    """
    is_classification = classes is not None
    name = scorer_name(scoring, is_classification)
    is_accuracy = name in _ONE_OF_C or repr(scorer) in _SCORERS_ONE_OF_C
    if is_classification and is_accuracy and not prior:
        return 1.0 / len(classes)
    if name in _AUC:
        return 0.5
    if name == "r2":
        return 0.0

    model = _constant_model(y_val, sample_weight_val, classes)
    weights = {}
    if sample_weight_val is not None:
        weights = {"sample_weight": sample_weight_val}
    try:
        with warnings.catch_warnings():
            # Such as that of a precision without positive predictions.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return score_number(scorer(model, X_val, y_val, **weights), 0)
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"empty_utility must be given with this scoring: scoring {model!r}, the "
            f"constant prediction, raises {type(error).__name__}: {first_line}. Got "
            f"{scoring!r}."
        ) from error


def _constant_model(y_val, sample_weight_val, classes):
    """The constant prediction, fitted on the validation targets."""
    weights = sample_weight_val
    if weights is None:
        weights = np.ones(len(y_val))
    if classes is None:
        return DummyRegressor().fit(np.zeros((len(y_val), 1)), y_val, weights)

    # Each class once with weight 0, so that the model knows those that y_val lacks.
    y = np.concatenate([y_val, classes])
    weights = np.concatenate([weights, np.zeros(len(classes))])
    model = DummyClassifier(strategy="prior")
    return model.fit(np.zeros((len(y), 1)), y, weights)
