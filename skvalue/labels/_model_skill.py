"""How well models predict labels of rows that they have not seen."""

from functools import partial

import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import cross_val_predict

from .._utils.checks import seed_of
from ._held_out import default_models, log_loss, make_folds, mix

_Z = 1.96  # of an interval of 95 %
_LEAST_Z, _LEAST_KAPPA = 3.0, 0.2  # below which models are too weak to tell
_SPLITS = 5
_MOST = 30  # classes that are told apart


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
    >>> probabilities = predict_held_out(StandardScaler().fit_transform(X), y, random_state=0)
    >>> bool((probabilities.argmax(axis=1) == y).mean() > 0.9)
    True
    """
    seed = seed_of(random_state)
    folds = make_folds(_SPLITS, codes, np.arange(len(codes)), True, seed)
    scores = {
        name: cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
        for name, model in default_models(True, seed).items()
    }
    return mix(scores, partial(log_loss, codes=codes))[0]


def model_skill(predicted, codes, classes):
    """Accuracy of held-out predictions next to the commonest label, overall and by
    class.

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
    >>> skill = model_skill(np.where(np.arange(100) < 90, codes, 0), codes, ["no", "yes"])
    >>> skill["accuracy"], skill["commonest_rate"], skill["weak"]
    (0.9, 0.6, False)
    """
    counts, n = np.bincount(codes, minlength=len(classes)), len(codes)
    right, usual = predicted == codes, codes == counts.argmax()
    better, worse = np.sum(right & ~usual), np.sum(~right & usual)
    z = (better - worse) / np.sqrt(max(better + worse, 1))
    kappa = float(np.nan_to_num(cohen_kappa_score(codes, predicted)))
    p, ratio = right.mean(), _Z**2 / n
    middle = (p + ratio / 2) / (1 + ratio)
    half = _Z * np.sqrt(p * (1 - p) / n + ratio / (4 * n)) / (1 + ratio)
    return {
        "accuracy": float(p),
        "low": float(middle - half),
        "high": float(middle + half),
        "commonest": classes[counts.argmax()],
        "commonest_rate": float(usual.mean()),
        "z": float(z),
        "kappa": kappa,
        "weak": bool(z < _LEAST_Z or kappa < _LEAST_KAPPA),
        "classes": [
            {
                "label": classes[k],
                "n": int(counts[k]),
                "accuracy": float(right[codes == k].mean()),
            }
            for k in np.argsort(-counts, kind="stable")[:_MOST]
            if counts[k]
        ],
    }
