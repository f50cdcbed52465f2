"""Scorers, and the utility of the empty coalition."""

import inspect

import numpy as np
from sklearn.metrics import check_scoring

from ..._utils.sklearn import BaseScorer, metric_name, takes_sample_weight, with_labels

_ONE_OF_C = {"accuracy", "balanced_accuracy"}
_AUC = {"roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted"}
# Scores of probabilities that take the classes from y, which may lack some, unless passed labels.
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
    """The scorer as a callable of model, X and y, with `labels` set if its metric needs them.

    Raises ValueError for validation weights that it does not accept.
    """
    scorer = check_scoring(estimator, scoring)
    known = isinstance(scorer, BaseScorer)
    if classes is not None and known and metric_name(scorer) in _OF_ALL_CLASSES:
        scorer = with_labels(scorer, classes)
    if sample_weight_val is not None:
        named = inspect.signature(estimator.score if scoring is None else scorer).parameters
        if not (takes_sample_weight(scorer) if known else "sample_weight" in named):
            raise ValueError(
                "sample_weight_val, and class_weight='balanced', need a scorer that takes "
                f"sample_weight. Got {scoring!r}."
            )
    return scorer


def empty_utility_of(scoring, n_classes):
    """Utility of the empty coalition: the score of the constant prediction.

    Raises ValueError for scorers whose score is not in the table.
    """
    name = scorer_name(scoring, n_classes > 0)
    if name in _ONE_OF_C and n_classes:
        return 1.0 / n_classes
    if name in _AUC:
        return 0.5
    if name == "neg_log_loss" and n_classes:
        return -float(np.log(n_classes))
    if name == "r2":
        return 0.0
    raise ValueError(
        "empty_utility must be given with this scoring: the score of the constant prediction is "
        "known only for 'accuracy', 'balanced_accuracy', 'roc_auc', 'neg_log_loss' and 'r2'. Got "
        f"{scoring!r}."
    )
