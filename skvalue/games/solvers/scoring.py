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
# Scores of probabilities that take the classes from y, which may lack some, unless
# passed labels.
_OF_ALL_CLASSES = {
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
    """The scorer as a callable of model, X and y, with `labels` set if its metric needs
    them.

    Raises ValueError for validation weights that it does not accept.
    """
    scorer = check_scoring(estimator, scoring)
    known = isinstance(scorer, BaseScorer)
    if classes is not None and known and metric_name(scorer) in _OF_ALL_CLASSES:
        scorer = with_labels(scorer, classes)
    if sample_weight_val is not None:
        named = inspect.signature(
            estimator.score if scoring is None else scorer
        ).parameters
        if not (takes_sample_weight(scorer) if known else "sample_weight" in named):
            raise ValueError(
                "sample_weight_val, and class_weight='balanced', need a scorer that takes "
                f"sample_weight. Got {scoring!r}."
            )
    return scorer


def empty_utility_of(
    scoring, scorer, X_val, y_val, sample_weight_val, classes, prior=False
):
    """Utility of the empty coalition: 1/C unless `prior`, or the score of the constant
    prediction.

    The constant prediction is that of `DummyClassifier(strategy="prior")` or
    `DummyRegressor` fitted on the validation targets with their weights; classes they
    lack have probability 0. Raises ValueError for a scorer that cannot score it.
    """
    name = scorer_name(scoring, classes is not None)
    if (
        classes is not None
        and not prior
        and (name in _ONE_OF_C or repr(scorer) in _SCORERS_ONE_OF_C)
    ):
        return 1.0 / len(classes)
    if name in _AUC:
        return 0.5
    if name == "r2":
        return 0.0
    given = {} if sample_weight_val is None else {"sample_weight": sample_weight_val}
    weights = np.ones(len(y_val)) if sample_weight_val is None else sample_weight_val
    model = DummyRegressor()
    if classes is not None:
        model, y_fit = (
            DummyClassifier(strategy="prior"),
            np.concatenate([y_val, classes]),
        )
        weights = np.concatenate([weights, np.zeros(len(classes))])
    model.fit(np.zeros((len(weights), 1)), y_val if classes is None else y_fit, weights)
    try:
        with (
            warnings.catch_warnings()
        ):  # such as a precision without positive predictions
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return score_number(scorer(model, X_val, y_val, **given), 0)
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"empty_utility must be given with this scoring: scoring {model!r}, the constant "
            f"prediction, raises {type(error).__name__}: {first_line}. Got {scoring!r}."
        ) from error
