"""How well held-out predictions are right, and what that says of a list of doubtful
labels."""

import numpy as np
from sklearn.metrics import cohen_kappa_score

_Z = 1.96  # of an interval of 95 %
_LEAST_Z, _LEAST_KAPPA = 3.0, 0.2  # below which models are too weak to tell
_MOST = 30  # classes that are told apart


def worth_of(predicted, codes, classes):
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
    worth : dict
        ``accuracy`` with ``low`` and ``high``, its interval by Wilson at 95 %;
        ``commonest``, the label, and ``commonest_rate``; ``z`` of McNemar's test of the
        predictions against always saying that label; ``kappa`` by Cohen; ``weak``,
        whether z < 3 or kappa < 0.2: such models say nothing of a label; ``classes``,
        dicts of ``label``, ``n`` and ``accuracy``, of at most 30 classes, commonest
        first.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.repeat([0, 1], [60, 40])
    >>> worth = worth_of(np.where(np.arange(100) < 90, codes, 0), codes, ["no", "yes"])
    >>> worth["accuracy"], worth["commonest_rate"], worth["weak"]
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


def most_wrong(fraction_listed, error_rate=0.05):
    """Bound of the fraction of a list that is wrong, if that many labels of the table
    are.

    >>> most_wrong(0.25)
    0.2
    """
    return min(1.0, error_rate / fraction_listed) if fraction_listed else 0.0
