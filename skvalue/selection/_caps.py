"""How many labels of each class can be wrong, by held-out probabilities."""

import warnings
from dataclasses import dataclass
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import check_array, check_consistent_length

from .._utils.checks import one_column
from .._utils.probabilities import check_probabilities
from .._utils.targets import encode_labels
from ..exceptions import ParameterError

# Of the rows for which a class is the most probable: those for which it is clear.
_CLEAR_FRACTION = 0.25

# Where a smaller fraction of the rows is doubtful, only labels of less than this
# probability are: the others may be right labels of classes that overlap.
_MANY = 0.1
_NEARLY_ZERO = 0.1


def label_caps(y, pred_probs):
    """How many labels of each class can be wrong, by held-out probabilities.

    The cap of a class is the smaller one of two numbers, rounded down, and leaves at
    least one row.

    The first is the confident joint of Northcutt et al. Class j is above its threshold
    in a row if its probability is at least the mean probability of j over the rows with
    label j. Of the rows of a class in which any class is above its threshold, it counts
    those whose most probable such class is another one, and scales the count to all
    rows of the class.

    Where classes overlap, this counts right labels, too. The second number is what the
    clear rows say: of the rows for which class i is the most probable, those in the
    highest quarter of its probability. Their classes are certain, so that the mean
    probability of another label j in these rows is the rate at which class i is
    labelled j. The number is the sum of these rates, times the numbers of rows for
    which i is the most probable, over the other classes i.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The labels.
    pred_probs : array-like of shape (n_samples, n_classes)
        Probabilities by models that have not seen the row, in the order of the sorted
        labels; columns of a frame are matched by name.

    Returns
    -------
    caps : ndarray of int of shape (n_classes,)
        The caps of the sorted labels.

    Raises
    ------
    ValueError
        If pred_probs are no probabilities of the labels.

    See Also
    --------
    capped_rows : The rows to drop, with this cap.

    References
    ----------
    C. Northcutt, L. Jiang, I. Chuang: "Confident Learning: Estimating Uncertainty in
    Dataset Labels", JAIR 2021, section 3.1.

    G. Patrini, A. Rozza, A. Menon, R. Nock, L. Qu: "Making Deep Neural Networks Robust
    to Label Noise: A Loss Correction Approach", CVPR 2017, section 4, on clear rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.selection import label_caps
    >>> y = np.array([*"aaaaaabbb"])
    >>> of_b = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.7, 0.65, 0.65, 0.65])
    >>> label_caps(y, np.column_stack([1 - of_b, of_b])).tolist()
    [1, 0]
    """
    return _checked_evidence(y, pred_probs).caps


def capped_rows(y, pred_probs):
    """Rows whose label is doubtful enough to train without them.

    These are rows for which another label has the highest probability; of each class
    at most `label_caps`, those whose label is least probable. If these are less than a
    tenth of all rows, only those whose label has a probability below 0.1 are dropped:
    the others may as well be right labels of classes that overlap, without which
    models get worse. No class is given a quota: where no label can be wrong, nothing is
    dropped.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The labels.
    pred_probs : array-like of shape (n_samples, n_classes)
        Probabilities by models that have not seen the row, in the order of the sorted
        labels; columns of a frame are matched by name.

    Returns
    -------
    rows : ndarray of int of shape (n_rows,)
        Indices of the rows, ascending.

    Raises
    ------
    ValueError
        If pred_probs are no probabilities of the labels.

    See Also
    --------
    label_caps : The caps.
    skvalue.ValueFilter : Drops these rows with a `LabelErrorDetector` and drop="auto".

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.selection import capped_rows
    >>> y = np.array([*"aaaaaabbb"])
    >>> of_b = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.7, 0.65, 0.65, 0.65])
    >>> capped_rows(y, np.column_stack([1 - of_b, of_b])).tolist()
    [5]
    """
    return _checked_evidence(y, pred_probs).capped_rows()


def _checked_evidence(y, pred_probs):
    """The `Evidence` of labels and probabilities that a user passes."""
    y = one_column(y, "y")
    classes, _, _ = encode_labels(y)
    return Evidence.of(y, check_probabilities(pred_probs, len(y), classes))


def caps_of_codes(codes, probabilities):
    """The caps of `label_caps` for labels that are codes from 0."""
    n_classes = probabilities.shape[1]
    sizes = np.bincount(codes, minlength=n_classes)
    joint = confident_counts(codes, probabilities)
    clear = clear_counts(probabilities)
    caps = np.floor(np.minimum(joint, clear) + 1e-9).astype(np.intp)
    return np.clip(caps, 0, np.maximum(sizes - 1, 0))


def confident_counts(codes, probabilities):
    """Numbers of wrong labels of each class by the confident joint.

    >>> codes = np.array([0, 0, 1])
    >>> probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    >>> confident_counts(codes, probabilities).tolist()
    [1.0, 0.0]
    """
    n_classes = probabilities.shape[1]
    sizes = np.bincount(codes, minlength=n_classes)
    given = probabilities[np.arange(len(codes)), codes]
    sums = np.bincount(codes, weights=given, minlength=n_classes)
    # A class without rows has no threshold that could be reached.
    thresholds = np.full(n_classes, np.inf)
    np.divide(sums, sizes, out=thresholds, where=sizes > 0)

    above = np.where(probabilities >= thresholds, probabilities, -1.0)
    is_counted = above.max(axis=1) >= 0
    is_other = is_counted & (above.argmax(axis=1) != codes)
    n_counted = np.bincount(codes[is_counted], minlength=n_classes)
    n_other = np.bincount(codes[is_other], minlength=n_classes)
    return sizes * n_other / np.maximum(n_counted, 1)


def clear_counts(probabilities):
    """Numbers of wrong labels of each class by the rows whose class is clear.

    >>> clear_counts(np.array([[0.9, 0.1], [0.6, 0.4], [0.25, 0.75]])).tolist()
    [0.25, 0.2]
    """
    n_classes = probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)
    counts = np.zeros(n_classes)
    for code in range(n_classes):
        rows = probabilities[predicted == code]
        if len(rows) == 0:
            continue
        is_clear = rows[:, code] >= np.quantile(rows[:, code], 1 - _CLEAR_FRACTION)
        rates = rows[is_clear].mean(axis=0)
        rates[code] = 0.0
        counts += len(rows) * rates
    return counts


@dataclass(frozen=True, eq=False)
class Evidence:
    """What held-out probabilities say about labels.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The sorted labels.
    codes : ndarray of int of shape (n_samples,)
        Codes of the given labels.
    probabilities : ndarray of shape (n_samples, n_classes)
        Held-out probabilities of the classes.
    caps : ndarray of int of shape (n_classes,)
        How many labels of each class can be wrong.
    """

    classes: np.ndarray
    codes: np.ndarray
    probabilities: np.ndarray
    caps: np.ndarray

    @classmethod
    def of(cls, y, pred_probs):
        """The evidence on labels, with probabilities in the order of the classes."""
        classes, codes, _ = encode_labels(one_column(y, "y"))
        codes = codes.astype(np.intp)
        probabilities = check_array(
            pred_probs, dtype=np.float64, input_name="pred_probs"
        )
        check_consistent_length(codes, probabilities)
        if probabilities.shape[1] != len(classes):
            raise ParameterError(
                "pred_probs",
                f"must have a column for each of {len(classes)} classes. "
                f"Got {probabilities.shape[1]}.",
            )
        caps = caps_of_codes(codes, probabilities)
        return cls(classes, codes, probabilities, caps)

    @property
    def given(self):
        """Probability of the given label of each row."""
        return self.probabilities[np.arange(len(self.codes)), self.codes]

    @property
    def sizes(self):
        """Number of rows of each class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def capped_rows(self):
        """The rows of `capped_rows`."""
        is_other = self.probabilities.argmax(axis=1) != self.codes
        is_doubtful = self.within_caps(is_other, self.given)
        if is_doubtful.mean() < _MANY:
            is_doubtful &= self.given < _NEARLY_ZERO
        return np.flatnonzero(is_doubtful)

    def within_caps(self, selected, values):
        """Mask of the selected rows that the caps allow, those of least value first."""
        allowed = np.zeros(len(selected), dtype=bool)
        for code, cap in enumerate(self.caps):
            rows = np.flatnonzero(selected & (self.codes == code))
            order = np.argsort(values[rows], kind="stable")
            allowed[rows[order[:cap]]] = True
        return allowed


def gives_probabilities(valuer):
    """Whether a valuer is a detector of wrong labels, which computes probabilities."""
    return "pred_probs" in signature(valuer.fit).parameters


def fitted_probabilities(valuer):
    """Held-out probabilities of all labels that a detector has; None without them.

    A detector by the values of another valuer has scores that are no probabilities.
    """
    scores = getattr(valuer, "label_scores_", None)
    if scores is None or scores.min() < 0:
        return None
    is_one = np.abs(scores.sum(axis=1) - 1) <= 1e-3
    return scores if is_one.all() else None


def find_evidence(valuer, estimator, data, cv):
    """Evidence by the probabilities of the valuer, else by those of the estimator.

    `data` are the rows; those of the estimator are cross-validated.
    """
    probabilities = fitted_probabilities(valuer)
    if probabilities is not None:
        return Evidence.of(data.y, probabilities)
    if not hasattr(estimator, "predict_proba"):
        got = "no estimator" if estimator is None else type(estimator).__name__
        raise ParameterError(
            "stratify",
            "must be False without probabilities of labels, which say how many of a "
            f"class can be wrong. Got {type(valuer).__name__} and {got}.",
            "Pass an {} with predict_proba, or a LabelErrorDetector as valuer.",
            [("estimator", ...)],
        )
    n_splits = int(cv) if isinstance(cv, Integral) else 5
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # Of classes with fewer rows than splits, whose cap is low.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        probabilities = cross_val_predict(
            clone(estimator), data.X, data.y, cv=splitter, method="predict_proba"
        )
    return Evidence.of(data.y, probabilities)
