"""Rows to relabel, in batches: which to look at next, when to stop, what to accept
unseen."""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_count, check_length, one_column, seed_of
from .._utils.untrusted import refuse
from ._detector import LabelErrorDetector
from ._held_out import own
from ._verdicts import check_places, draw_rows

_FEW_CHANGES = 0.2  # fraction of a batch below which it is the last
_RARE_CHANGES = 0.3  # fraction of a batch below which each change is asked twice
_LATEST = 20  # verdicts that must agree by themselves
_FEWEST = 10  # verdicts of a head of the list
_N_DRAWN = 80  # verdicts before suggestions are accepted together


def head_to_accept(places, agrees, *, agreement=0.9):
    """Length of the head of a ranked list whose suggestions may be accepted together.

    That is the longest head, ending at a place with a verdict, of which all verdicts,
    and the last 20 by themselves, agree with the suggestion to the given fraction when
    one more verdict is counted that does not: else the longest of many heads would be
    chosen by its luck.

    Parameters
    ----------
    places : array-like of int of shape (n_verdicts,)
        Places of the list, from 0, that were looked at, as `draw_rows` draws them.
    agrees : array-like of bool of shape (n_verdicts,)
        Whether the verdict on each place is the suggestion.
    agreement : float, default=0.9
        Fraction of the verdicts that must agree.

    Returns
    -------
    length : int
        0 if no head of at least 10 verdicts is good enough.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import head_to_accept
    >>> places = np.arange(0, 160, 2)
    >>> head_to_accept(places, places < 100)
    101
    """
    order = np.argsort(places, kind="stable")
    places, agrees = np.asarray(places)[order], np.asarray(agrees, dtype=float)[order]
    counts, sums = np.arange(1, len(agrees) + 1), np.cumsum(agrees)
    latest = sums - np.concatenate([np.zeros(_LATEST), sums])[: len(sums)]
    good = (counts >= _FEWEST) & (sums >= agreement * (counts + 1))
    good &= latest >= agreement * (np.minimum(counts, _LATEST) + 1)
    ends = np.flatnonzero(good)
    return int(places[ends[-1]]) + 1 if len(ends) else 0


class ReviewQueue(BaseEstimator):
    """Ask for the labels of the most doubtful rows, in batches, until few are changed.

    A detector ranks the rows; a person says what the labels of the first rows are; the
    detector is fitted again with these labels. A change that the models do not suggest
    is asked a second time, and so is each change of a batch in which fewer than 30 % of
    the labels change; it is made if the answer is the same: otherwise late batches add
    more wrong labels than they correct. The first batch in which fewer than 20 % of the
    labels change is the last.

    Parameters
    ----------
    detector : LabelErrorDetector, default=None
        An unfitted detector for classes, which is cloned. None is
        ``LabelErrorDetector()``.
    batch_size : int, default=40
        Number of rows of a batch.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The labels, as they are by the answers.
    seen_ : ndarray of bool of shape (n_samples,)
        Whether a row has an answer.
    pending_ : ndarray of int
        Rows that were asked for and have no answer, or need a second one.
    n_answers_ : int
        Number of answers, second ones included.
    done_ : bool
        Whether the last batch changed fewer than 20 % of its labels, or no row is left.
    detector_ : LabelErrorDetector
        The detector, fitted with the labels before the last batch.

    See Also
    --------
    skvalue.LabelErrorDetector : The ranking, and what verdicts say about the whole list.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import LabelErrorDetector
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.labels import ReviewQueue
    >>> X, y_true = load_iris(return_X_y=True)
    >>> y, flipped = flip_labels(y_true, 0.2, random_state=0)
    >>> queue = ReviewQueue(LabelErrorDetector(GaussianNB(), random_state=0)).fit(X, y)
    >>> while not queue.done_:
    ...     rows = queue.next()
    ...     queue = queue.answer(rows, y_true[rows])  # which a person would say
    >>> n_wrong = int((queue.labels_ != y_true).sum())
    >>> int(flipped.sum()), n_wrong < 3, queue.n_answers_
    (30, True, 84)
    """

    def __init__(self, detector=None, *, batch_size=40):
        self.detector = detector
        self.batch_size = batch_size

    def fit(self, X, y, *, groups=None):
        """Rank the rows; earlier answers are forgotten.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, kept for the fits after each batch.
        y : array-like of shape (n_samples,)
            Their labels.
        groups : array-like of shape (n_samples,), default=None
            As of :meth:`skvalue.LabelErrorDetector.fit`.

        Returns
        -------
        self : object
            The queue.

        Raises
        ------
        ValueError
            As of :meth:`skvalue.LabelErrorDetector.fit`; for regression; if
            `batch_size` < 1.
        """
        check_count(self.batch_size, "batch_size")
        detector = LabelErrorDetector() if self.detector is None else self.detector
        detector = clone(detector).fit(X, y, groups=groups)
        if not hasattr(detector, "classes_"):
            raise ValueError(
                "y must hold classes: targets of a regression have no other label."
            )
        self._data, self.detector_ = (X, groups), detector
        self.labels_ = detector.classes_[
            np.searchsorted(detector.classes_, one_column(y, "y"))
        ]
        self.seen_ = np.zeros(len(self.labels_), dtype=bool)
        self._first, self._drawn = {}, None
        self._ask(np.empty(0, dtype=np.intp))
        self.n_answers_, self.done_, self._changed = 0, False, False
        return self

    def next(self):
        """The rows to look at now.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            `pending_` if there are such rows, else the `batch_size` most doubtful rows
            that have no answer. Empty when all have one.
        """
        check_is_fitted(self, "detector_")
        if not len(self.pending_):
            self._drawn = None
            self._ask(self._ranked()[: self.batch_size])
            self.done_ = self.done_ or not len(self.pending_)
        return self.pending_.copy()

    def draw(self):
        """Draw 80 rows of the whole list, of which the first are more probable, for
        `accept`.

        Returns
        -------
        rows : ndarray of int of shape (min(80, n_listed),)
            Rows that have no answer and whose suggestion differs from the label.

        Raises
        ------
        ValueError
            If rows are pending.
        """
        check_is_fitted(self, "detector_")
        if len(self.pending_):
            raise ValueError(
                f"draw must follow a whole batch. Got {len(self.pending_)} pending."
            )
        ranked, suggested = self._ranked(), self.detector_.suggested_label_
        listed = ranked[suggested[ranked] != self.labels_[ranked]]
        rng = np.random.default_rng(seed_of(self.detector_.random_state))
        places = draw_rows(len(listed), _N_DRAWN, rng)
        self._drawn = listed, places, suggested
        self._ask(listed[places])
        return self.pending_.copy()

    def answer(self, rows, labels):
        """Take the labels of some rows; after a whole batch, `next` fits the detector
        again.

        Parameters
        ----------
        rows : array-like of int of shape (n_rows,)
            Row numbers, each once: of `pending_`, or others.
        labels : array-like of shape (n_rows,)
            The label of each row, the given one where it is right or cannot be known.

        Returns
        -------
        self : object
            The queue. The rows that need a second answer are `pending_`.

        Raises
        ------
        ValueError
            If there is no such row, a row is there twice, or a label is not one of y.
        """
        check_is_fitted(self, "detector_")
        rows, labels = (
            check_places(rows, len(self.labels_)),
            one_column(labels, "labels"),
        )
        check_length(labels, "labels", len(rows), "rows")
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"rows must name every row once. Got {rows.tolist()!r}.")
        unknown = labels[~np.isin(labels, self.detector_.classes_)]
        if len(unknown):
            refuse(
                "labels", f"labels of y: {self.detector_.classes_.tolist()}", unknown[0]
            )
        self.n_answers_ += len(rows)
        suggested, again = self.detector_.suggested_label_, []
        # Not `labels.tolist()`, which makes numbers of dates.
        for row, label in zip(rows.tolist(), labels):
            first = self._first.pop(row, None)
            if first is None and label not in (self.labels_[row], suggested[row]):
                self._first[row] = label
                again.append(row)
                continue
            if first is None or first == label:
                self.labels_[row] = label
            self.seen_[row] = True
            self._once.discard(row) if first is not None else self._once.add(row)
        waiting = self.pending_[~np.isin(self.pending_, rows)]
        self.pending_ = np.concatenate([waiting, again]).astype(np.intp)
        self._changed = True
        if self._drawn is None and len(self._batch) and not len(self.pending_):
            self._end_batch()
        return self

    def accept(self):
        """Take over the suggestions of the head of the list in which verdicts agree
        with them.

        The head is that of `head_to_accept`, for the rows of the last `draw`; rows that
        have an answer keep it. About a tenth of these changes are wrong: see the user
        guide on cleaning.

        Returns
        -------
        rows : ndarray of int
            Rows whose label was changed.

        Raises
        ------
        ValueError
            If not all drawn rows have an answer.
        """
        check_is_fitted(self, "detector_")
        if self._drawn is None or len(self.pending_):
            raise ValueError(
                "accept must follow answers to all rows of draw(). Got none or some."
            )
        (listed, places, suggested), self._drawn = self._drawn, None
        drawn = listed[places]
        length = head_to_accept(places, self.labels_[drawn] == suggested[drawn])
        rows = listed[:length][~self.seen_[listed[:length]]]
        self.labels_[rows], self._changed = suggested[rows], True
        return rows

    def _ranked(self):
        """Rows without an answer, the largest margin of the suggestion over the label
        first."""
        if (
            self._changed
        ):  # fitted here and not in `answer`: an interrupted fit loses no answer
            X, groups = self._data
            self.detector_ = clone(self.detector_).fit(X, self.labels_, groups=groups)
            self._changed = False
        scores, classes = self.detector_.label_scores_, self.detector_.classes_
        codes = np.searchsorted(classes, self.labels_)
        order = np.argsort(own(scores, codes) - scores.max(axis=1), kind="stable")
        return order[~self.seen_[order]]

    def _ask(self, rows):
        """Make rows the batch that has no answers."""
        self.pending_, self._batch, self._before = rows, rows, self.labels_[rows]
        self._once = set()  # rows with one answer

    def _end_batch(self):
        """Ask again for rare changes, or say whether this was the last batch."""
        changed = self.labels_[self._batch] != self._before
        if changed.mean() < _RARE_CHANGES:
            again = changed & np.isin(self._batch, list(self._once))
            self.pending_ = self._batch[again]
            self._first = dict(zip(self.pending_.tolist(), self.labels_[self.pending_]))
            self.labels_[self.pending_] = self._before[again]
            self.seen_[self.pending_] = False
        if not len(self.pending_):
            self.done_ = bool(self.seen_.all() or changed.mean() < _FEW_CHANGES)
