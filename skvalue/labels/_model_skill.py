"""How well models predict labels of rows that they have not seen."""

from functools import partial

import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import cross_val_predict

from .._utils.checks import seed_of
from ._held_out import best_mixture, default_models, log_loss, make_folds

# Quantile of the normal distribution for an interval of 95 %.
_Z = 1.96

# Models below either of these are too weak to say anything of a label.
_MIN_Z = 3.0
_MIN_KAPPA = 0.2

# Number of folds, and largest number of classes of which the accuracy is reported.
_N_FOLDS = 5
_MAX_CLASSES = 30


def predict_held_out(X, codes, *, random_state=None):
    """Predict the probabilities of labels by models that have not seen the row.

    The models are those of :class:`~skvalue.LabelErrorDetector` without an estimator: a
    random forest and a logistic regression, each of which predicts five folds of the
    rows, and the mixture of both with the least log loss.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers, scaled as the logistic regression needs it.
    codes : ndarray of int of shape (n_samples,)
        Codes of the labels, 0 to n_classes - 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the forest.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes)
        Of each label, by models that have not seen the row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skvalue.labels import predict_held_out
    >>> X, y = load_iris(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> probabilities = predict_held_out(X, y, random_state=0)
    >>> bool((probabilities.argmax(axis=1) == y).mean() > 0.9)
    True
    """
    seed = seed_of(random_state)
    every_row_alone = np.arange(len(codes))
    folds = make_folds(_N_FOLDS, codes, every_row_alone, is_classifier=True, seed=seed)
    probabilities_by_model = {
        name: cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
        for name, model in default_models(is_classifier=True, seed=seed).items()
    }
    loss = partial(log_loss, codes=codes)
    probabilities, _ = best_mixture(probabilities_by_model, loss)
    return probabilities


def model_skill(predicted, codes, classes):
    """Accuracy of held-out predictions, beside always predicting the commonest label.

    Parameters
    ----------
    predicted, codes : ndarray of int of shape (n_samples,)
        Codes of the predictions and of the labels.
    classes : sequence of str of length n_classes
        The labels.

    Returns
    -------
    skill : dict
        ``accuracy`` with ``low`` and ``high``, its interval by Wilson at 95 %;
        ``commonest``, the label, and ``commonest_rate``; ``z`` of McNemar's test of the
        predictions against always saying that label; ``kappa`` by Cohen; ``weak``,
        whether z < 3 or kappa < 0.2: such models say nothing of a label; ``classes``,
        dicts of ``label``, ``n`` and ``accuracy``, of at most 30 classes, commonest
        first.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import model_skill
    >>> codes = np.repeat([0, 1], [60, 40])
    >>> predicted = np.where(np.arange(100) < 90, codes, 0)
    >>> skill = model_skill(predicted, codes, ["no", "yes"])
    >>> skill["accuracy"], skill["commonest_rate"], skill["weak"]
    (0.9, 0.6, False)
    """
    counts = np.bincount(codes, minlength=len(classes))
    commonest = counts.argmax()
    is_right = predicted == codes
    is_commonest = codes == commonest

    # McNemar's test: rows of which one of the two predictions is right.
    n_better = np.sum(is_right & ~is_commonest)
    n_worse = np.sum(~is_right & is_commonest)
    z = (n_better - n_worse) / np.sqrt(max(n_better + n_worse, 1))
    kappa = float(np.nan_to_num(cohen_kappa_score(codes, predicted)))

    accuracy = is_right.mean()
    low, high = _wilson_interval(accuracy, len(codes))
    by_class = []
    for code in np.argsort(-counts, kind="stable")[:_MAX_CLASSES]:
        if counts[code]:
            by_class.append(
                {
                    "label": classes[code],
                    "n": int(counts[code]),
                    "accuracy": float(is_right[codes == code].mean()),
                }
            )
    return {
        "accuracy": float(accuracy),
        "low": float(low),
        "high": float(high),
        "commonest": classes[commonest],
        "commonest_rate": float(is_commonest.mean()),
        "z": float(z),
        "kappa": kappa,
        "weak": bool(z < _MIN_Z or kappa < _MIN_KAPPA),
        "classes": by_class,
    }


def _wilson_interval(fraction, n):
    """Wilson's interval of a fraction of n, at 95 %."""
    ratio = _Z**2 / n
    center = (fraction + ratio / 2) / (1 + ratio)
    variance = fraction * (1 - fraction) / n + ratio / (4 * n)
    margin = _Z * np.sqrt(variance) / (1 + ratio)
    # Rounding may leave the range.
    low = np.clip(center - margin, 0.0, fraction)
    high = np.clip(center + margin, fraction, 1.0)
    return low, high
