"""Rows to relabel, in batches: the next ones, the end, and what to accept unseen."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_count, check_length, one_column, seed_of
from .._utils.untrusted import refuse
from ..exceptions import ParameterError
from ._detector import LabelErrorDetector
from ._held_out import label_scores
from ._verdicts import check_row_numbers, draw_rows

# A batch with a smaller fraction of changes is the last.
_FEW_CHANGES = 0.2

# In a batch with a smaller fraction of changes each change is asked twice.
_RARE_CHANGES = 0.3

# Number of rows that are drawn before suggestions are accepted together.
_N_DRAWN = 80

# Of the prefix of a list that is accepted: the fewest verdicts, and how many of the
# latest ones must agree by themselves.
_MIN_VERDICTS = 10
_N_LATEST = 20


def acceptable_prefix(places, agrees, *, agreement=0.9):
    """Length of the prefix of a ranked list whose suggestions may be accepted together.

    That is the longest prefix, ending at a place with a verdict, of which all verdicts,
    and the last 20 by themselves, agree with the suggestion to the given fraction when
    one more verdict is counted that does not: otherwise the longest of many prefixes
    would be chosen by luck.

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
        0 if no prefix of at least 10 verdicts is good enough.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.labels import acceptable_prefix
    >>> places = np.arange(0, 160, 2)
    >>> acceptable_prefix(places, places < 100)
    101
    """
    order = np.argsort(places, kind="stable")
    places = np.asarray(places)[order]
    agrees = np.asarray(agrees, dtype=float)[order]

    # For the prefix that ends at each verdict: how many verdicts agree, and how many of
    # the latest ones do, which is what those before them leave.
    n_verdicts = np.arange(1, len(agrees) + 1)
    n_latest = np.minimum(n_verdicts, _N_LATEST)
    n_agree = np.cumsum(agrees)
    n_agree_before = np.concatenate([np.zeros(_N_LATEST), n_agree])[: len(n_agree)]
    n_latest_agree = n_agree - n_agree_before

    # One more verdict counts each time, as one that does not agree.
    is_good = n_verdicts >= _MIN_VERDICTS
    is_good &= n_agree >= agreement * (n_verdicts + 1)
    is_good &= n_latest_agree >= agreement * (n_latest + 1)
    if not is_good.any():
        return 0
    last = np.flatnonzero(is_good)[-1]
    return int(places[last]) + 1


class _Status(IntEnum):
    """The answers that a row has. From `ONCE` on one of them counts.

    A row that is `DOUBTED` has one answer, which needs a second one to count; a row
    that is `REVISED` has one that counts, and another one, which needs a second one.
    """

    OPEN = 0
    DOUBTED = 1
    ONCE = 2
    TWICE = 3
    REVISED = 4


class _Draw(NamedTuple):
    """What `accept` needs of a draw from the list of rows with other suggestions.

    Parameters
    ----------
    listed : ndarray of int of shape (n_listed,)
        The rows, the most doubtful label first.
    places : ndarray of int of shape (n_drawn,)
        Places in this list that were drawn.
    suggested : ndarray of shape (n_samples,)
        Labels that were suggested at the time of the draw.
    """

    listed: np.ndarray
    places: np.ndarray
    suggested: np.ndarray


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
    skvalue.LabelErrorDetector : The ranking, and what verdicts say of the list.

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

    A person says the true labels of the rows of each batch:

    >>> while not queue.done_:
    ...     rows = queue.next()
    ...     queue = queue.answer(rows, y_true[rows])
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
            `batch_size` < 1, or `detector` is another object.
        """
        check_count(self.batch_size, "batch_size")
        detector = LabelErrorDetector() if self.detector is None else self.detector
        if not isinstance(detector, LabelErrorDetector):
            refuse("detector", "a LabelErrorDetector, or None", detector)
        detector = clone(detector).fit(X, y, groups=groups)
        if not hasattr(detector, "classes_"):
            raise ParameterError(
                "y", "must hold classes: targets of a regression have no other label."
            )
        self.detector_ = detector
        self._X = X
        self._groups = groups
        codes = np.searchsorted(detector.classes_, one_column(y, "y"))
        self.labels_ = detector.classes_[codes]
        self._status = np.full(len(self.labels_), _Status.OPEN, dtype=np.int8)
        # Entries count for rows that are doubted or revised.
        self._first_answers = self.labels_.copy()
        self._draw = None
        self._refit_due = False
        self.n_answers_ = 0
        self.done_ = False
        self._ask(np.empty(0, dtype=np.intp))
        return self

    @property
    def seen_(self):
        """Whether each row has an answer that counts, of shape (n_samples,)."""
        return self._status >= _Status.ONCE

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
            self._draw = None
            self._ask(self._ranked()[: self.batch_size])
            if not len(self.pending_):
                self.done_ = True
        return self.pending_.copy()

    def draw(self):
        """Draw 80 rows of the whole list for `accept`; the first are more probable.

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
        ranked = self._ranked()
        suggested = self.detector_.suggested_label_
        listed = ranked[suggested[ranked] != self.labels_[ranked]]
        rng = np.random.default_rng(seed_of(self.detector_.random_state))
        places = draw_rows(len(listed), _N_DRAWN, rng)
        self._draw = _Draw(listed, places, suggested)
        self._ask(listed[places])
        return self.pending_.copy()

    def answer(self, rows, labels):
        """Take the labels of some rows.

        After those of a whole batch, `next` fits the detector again.

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
        rows = check_row_numbers(rows, len(self.labels_))
        labels = one_column(labels, "labels")
        check_length(labels, "labels", len(rows), "rows")
        if len(np.unique(rows)) < len(rows):
            raise ParameterError(
                "rows", f"must name every row once. Got {rows.tolist()!r}."
            )
        classes = self.detector_.classes_
        unknown = labels[~np.isin(labels, classes)]
        if len(unknown):
            refuse("labels", f"labels of y: {classes.tolist()}", unknown[0])

        # A first answer counts if it is the label or the suggestion. Any other is
        # doubted: it counts if a second answer is the same.
        status = self._status[rows]
        suggested = self.detector_.suggested_label_[rows]
        is_second = (status == _Status.DOUBTED) | (status == _Status.REVISED)
        is_first = ~is_second
        is_expected = (labels == self.labels_[rows]) | (labels == suggested)
        is_confirmed = labels == self._first_answers[rows]
        is_doubted = is_first & ~is_expected

        is_counted = (is_first & is_expected) | (is_second & is_confirmed)
        self.labels_[rows[is_counted]] = labels[is_counted]
        self._first_answers[rows[is_doubted]] = labels[is_doubted]

        had_answer = status >= _Status.ONCE
        self._status[rows[is_second]] = _Status.TWICE
        self._status[rows[is_first & is_expected]] = _Status.ONCE
        self._status[rows[is_doubted & ~had_answer]] = _Status.DOUBTED
        self._status[rows[is_doubted & had_answer]] = _Status.REVISED

        self.n_answers_ += len(rows)
        self._refit_due = True
        still_pending = self.pending_[~np.isin(self.pending_, rows)]
        self.pending_ = np.concatenate([still_pending, rows[is_doubted]])
        if self._draw is None and len(self._batch) and not len(self.pending_):
            self._end_batch()
        return self

    def accept(self):
        """Take over the suggestions of the prefix of the list that verdicts agree with.

        The prefix is that of `acceptable_prefix`, for the rows of the last `draw`; rows
        that have an answer keep it. About a tenth of these changes are wrong: see the
        user guide on cleaning.

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
        if self._draw is None:
            raise ParameterError(
                "accept",
                "must follow answers to all rows of draw(). Got no draw since "
                "the last batch.",
            )
        if len(self.pending_):
            raise ParameterError(
                "accept",
                "must follow answers to all rows of draw(). Got "
                f"{len(self.pending_)} pending.",
            )
        listed, places, suggested = self._draw
        self._draw = None

        drawn_rows = listed[places]
        agrees = self.labels_[drawn_rows] == suggested[drawn_rows]
        length = acceptable_prefix(places, agrees)
        prefix = listed[:length]
        rows = prefix[~self.seen_[prefix]]
        self.labels_[rows] = suggested[rows]
        self._refit_due = True
        return rows

    def _ranked(self):
        """Rows without an answer, the largest margin of the suggestion first."""
        # Not in `answer`, so that an interrupted fit loses no answer.
        if self._refit_due:
            self.detector_ = clone(self.detector_).fit(
                self._X, self.labels_, groups=self._groups
            )
            self._refit_due = False
        scores = self.detector_.label_scores_
        codes = np.searchsorted(self.detector_.classes_, self.labels_)
        margins = label_scores(scores, codes) - scores.max(axis=1)
        order = np.argsort(margins, kind="stable")
        return order[~self.seen_[order]]

    def _ask(self, rows):
        """Make rows without an answer the batch."""
        self.pending_ = rows
        self._batch = rows
        self._labels_before = self.labels_[rows]

    def _end_batch(self):
        """Ask again for rare changes, or say whether this was the last batch."""
        batch = self._batch
        is_changed = self.labels_[batch] != self._labels_before
        if is_changed.mean() < _RARE_CHANGES:
            has_one_answer = self._status[batch] == _Status.ONCE
            is_unconfirmed = is_changed & has_one_answer
            rows = batch[is_unconfirmed]
            self._first_answers[rows] = self.labels_[rows]
            self.labels_[rows] = self._labels_before[is_unconfirmed]
            self._status[rows] = _Status.DOUBTED
            self.pending_ = rows
        if not len(self.pending_):
            has_few_changes = is_changed.mean() < _FEW_CHANGES
            self.done_ = bool(self.seen_.all() or has_few_changes)
