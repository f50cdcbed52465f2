"""Validation of the inputs of a `ModelGame`."""

from numbers import Real

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import has_fit_parameter

from .._utils.checks import (
    check_length,
    check_numbers,
    check_weights,
    exact_integers,
    redact_errors,
    refuse_pairwise,
)
from .._utils.targets import label_codes
from .solvers import Training, check_scorer, empty_utility_of


def make_training(
    estimator,
    X,
    y,
    X_val,
    y_val,
    *,
    scoring,
    error_score,
    empty_utility,
    sample_weight,
    sample_weight_val,
    random_state,
    device,
):
    """The `Training` of a game, and the utility of the empty coalition."""
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'. Got {device!r}.")
    check_consistent_length(X, y)
    check_consistent_length(X_val, y_val)
    if not is_classifier(estimator) and not is_regressor(estimator):
        raise ValueError(
            f"estimator must be a classifier or a regressor. Got {estimator!r}."
        )
    refuse_pairwise(estimator)
    y, y_val, classes = _targets(y, y_val, is_classifier(estimator))
    sample_weight = _row_weights(sample_weight, len(y), estimator)
    sample_weight_val = _point_weights(sample_weight_val, len(y_val))
    scorer = check_scorer(estimator, scoring, sample_weight_val, classes)

    if empty_utility is None or isinstance(empty_utility, str):
        if empty_utility not in (None, "prior"):
            raise ValueError(
                "empty_utility must be a number, 'prior' or None. Got "
                f"{empty_utility!r}."
            )
        empty_utility = empty_utility_of(
            scoring=scoring,
            scorer=scorer,
            X_val=X_val,
            y_val=y_val,
            sample_weight_val=sample_weight_val,
            classes=classes,
            prior=empty_utility == "prior",
        )
    training = Training(
        estimator=seeded(estimator, random_state),
        X=X,
        y=y,
        classes=classes,
        sample_weight=sample_weight,
        X_val=X_val,
        y_val=y_val,
        sample_weight_val=sample_weight_val,
        scoring=scoring,
        scorer=scorer,
        error_score=_utility_of_failures(error_score, empty_utility),
        device=device,
    )
    return training, empty_utility


def _row_weights(sample_weight, n_rows, estimator):
    """Weights of the rows, or None."""
    if sample_weight is None:
        return None
    sample_weight = check_numbers(sample_weight, "sample_weight")
    check_length(sample_weight, "sample_weight", n_rows)
    if sample_weight.min() < 0:
        raise ValueError(
            f"sample_weight must be non-negative. Got {sample_weight.min()}."
        )
    check_takes_weights(estimator, sample_weight)
    return sample_weight


def _point_weights(sample_weight_val, n_points):
    """Weights of the validation points, or None if they count the same."""
    if sample_weight_val is None:
        return None
    weights = check_weights(
        sample_weight_val, "sample_weight_val", n_points, of="X_val"
    )
    if np.ptp(weights) == 0:  # not every scorer accepts weights
        return None
    return weights


def _utility_of_failures(error_score, empty_utility):
    """Utility of a coalition whose fit or score fails, or "raise"."""
    if isinstance(error_score, str) and error_score == "empty":
        return float(empty_utility)
    if isinstance(error_score, str) and error_score == "raise":
        return error_score
    if not (isinstance(error_score, Real) and np.isfinite(error_score)):
        raise ValueError(
            "error_score must be 'empty', 'raise' or a finite number. Got "
            f"{error_score!r}."
        )
    return error_score


def seeded(estimator, seed, every=False):
    """A clone in which each `random_state` that is None, or every one, is set."""
    estimator = clone(estimator)
    for name, value in estimator.get_params().items():
        if name.split("__")[-1] == "random_state" and (every or value is None):
            estimator.set_params(**{name: seed})
    return estimator


def check_takes_weights(estimator, weights):
    """Raise ValueError for an estimator whose fit takes no sample weights.

    With metadata routing a pipeline may take them; scikit-learn raises an error for a
    pipeline whose steps do not request them.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return
    if get_config()["enable_metadata_routing"]:
        routing = get_routing_for_object(estimator)
        if isinstance(routing, MetadataRouter):
            process_routing(estimator, "fit", sample_weight=weights)
        if routing.consumes("fit", ["sample_weight"]):
            return
    raise ValueError(
        f"sample_weight needs an estimator whose fit takes it. Got {estimator!r}. A "
        "pipeline takes it with sklearn.set_config(enable_metadata_routing=True) and "
        "set_fit_request."
    )


def _targets(y, y_val, is_classification):
    """Targets, and the sorted classes or None."""
    with redact_errors("y"):
        y = column_or_1d(exact_integers(y))
    with redact_errors("y_val"):
        y_val = column_or_1d(exact_integers(y_val))
    if not is_classification:
        return y, y_val, None
    if type_of_target(y) == "continuous":
        raise ValueError(
            "estimator must be a regressor for a continuous target. Got a classifier, "
            f"and y with continuous values such as {y[0]}."
        )
    classes = np.unique(y)
    # Refuses labels that y lacks.
    label_codes(y_val, classes, "y_val", " A regression needs a regressor.")

    # Not every estimator accepts small integer types; labels from 2**63 on fit only
    # uint64.
    if y.dtype.kind in "ui" and classes[-1] <= np.iinfo(np.int64).max:
        return np.int64(y), np.int64(y_val), np.int64(classes)
    return y, y_val, classes
