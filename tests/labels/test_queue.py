"""Batches of rows to relabel: order, second answers, the end, and joint changes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import KNNShapleyValuer, LabelErrorDetector
from skvalue.audit import audit_table
from skvalue.datasets import flip_labels
from skvalue.labels import ReviewQueue, acceptable_prefix

CLASSES = np.array(["a", "bb", "long"])


def blobs(n=150, rate=0.2, seed=0):
    """Rows of three classes that are apart, their true labels, and noisy labels."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 5 * np.array([[0, 0], [1, 0], [0, 1]])[codes]
    y_true = CLASSES[codes]
    y_noisy, _ = flip_labels(y_true, rate, random_state=seed)
    return X, y_true, y_noisy


def fitted_queue(X, y, **options):
    detector = LabelErrorDetector(LogisticRegression(), random_state=0)
    return ReviewQueue(detector, **options).fit(X, y)


def answer_all(queue, y_true):
    """Answer with the true labels until the queue ends; returns the batches."""
    batches = []
    while not queue.done_:
        rows = queue.next()
        queue.answer(rows, y_true[rows])
        batches.append(rows)
    return batches


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
@pytest.mark.parametrize(
    "classes", [CLASSES, np.array([-1, 0, 1])], ids=["strings", "numbers"]
)
class TestRightAnswers:
    @pytest.fixture
    def data(self, classes, rate):
        X, y_true, y_noisy = blobs(rate=rate)
        y_true = classes[np.searchsorted(CLASSES, y_true)]
        y_noisy = classes[np.searchsorted(CLASSES, y_noisy)]
        return X, y_true, y_noisy

    def test_all_labels_become_right(self, data):
        X, y_true, y_noisy = data
        queue = fitted_queue(X, y_noisy, batch_size=20)
        answer_all(queue, y_true)
        np.testing.assert_array_equal(queue.labels_, y_true)

    def test_answers_and_seen_rows_are_counted(self, data):
        X, y_true, y_noisy = data
        queue = fitted_queue(X, y_noisy, batch_size=20)
        rows = np.concatenate(answer_all(queue, y_true))
        assert queue.n_answers_ == len(rows)
        assert queue.seen_.sum() == len(np.unique(rows))

    def test_the_first_batch_of_few_changes_is_the_last(self, data):
        X, y_true, y_noisy = data
        batches = answer_all(fitted_queue(X, y_noisy, batch_size=20), y_true)
        # Second answers are in smaller batches.
        batches = [batch for batch in batches if len(batch) == 20]
        changes = [np.mean(y_noisy[batch] != y_true[batch]) for batch in batches]
        assert all(change >= 0.2 for change in changes[:-1])
        assert changes[-1] < 0.2


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_labels_that_are_dates_are_asked_for_as_often_as_strings(unit):
    X, y_true, y_noisy = blobs()
    of_strings = fitted_queue(X, y_noisy, batch_size=20)
    answer_all(of_strings, y_true)

    dates = np.array(["2020-01-01", "2021-05-05", "2022-09-09"], f"datetime64[{unit}]")
    true_dates = dates[np.searchsorted(CLASSES, y_true)]
    noisy_dates = dates[np.searchsorted(CLASSES, y_noisy)]
    of_dates = fitted_queue(X, noisy_dates, batch_size=20)
    answer_all(of_dates, true_dates)
    np.testing.assert_array_equal(of_dates.labels_, true_dates)
    assert of_dates.n_answers_ == of_strings.n_answers_


def test_the_first_batch_has_the_largest_margins_of_the_suggestion():
    X, _, y_noisy = blobs()
    queue = fitted_queue(X, y_noisy, batch_size=10)
    detector = LabelErrorDetector(LogisticRegression(), random_state=0).fit(X, y_noisy)
    scores = detector.label_scores_
    scores_of_labels = scores[np.arange(150), np.searchsorted(CLASSES, y_noisy)]
    margins = scores.max(axis=1) - scores_of_labels
    expected = np.argsort(-margins, kind="stable")[:10]
    np.testing.assert_array_equal(queue.next(), expected)


def test_next_is_the_same_until_all_rows_have_an_answer():
    X, y_true, y_noisy = blobs()
    queue = fitted_queue(X, y_noisy, batch_size=10)
    rows = queue.next()
    np.testing.assert_array_equal(queue.next(), rows)
    queue.answer(rows[3:], y_true[rows[3:]])
    np.testing.assert_array_equal(queue.next(), rows[:3])
    queue.answer(rows[:3], y_true[rows[:3]])
    assert not np.isin(queue.next(), rows).any()


class TestChangeThatIsNotSuggested:
    """The first row of a batch gets a label that is neither given nor suggested."""

    @pytest.fixture
    def queue(self):
        X, y_true, y_noisy = blobs()
        queue = fitted_queue(X, y_noisy, batch_size=10)
        rows = queue.next()
        row = rows[0]
        suggested = queue.detector_.suggested_label_[row]
        (surprising,) = np.setdiff1d(CLASSES, [y_noisy[row], suggested])
        answers = y_true[rows]
        answers[0] = surprising
        queue.answer(rows, answers)
        self.row = row
        self.given = y_noisy[row]
        self.suggested = suggested
        self.surprising = surprising
        return queue

    def test_it_is_asked_a_second_time(self, queue):
        assert queue.labels_[self.row] == self.given
        assert queue.pending_.tolist() == [self.row]
        assert queue.next().tolist() == [self.row]
        assert not queue.seen_[self.row]

    @pytest.mark.parametrize("answer", ["surprising", "given", "suggested"])
    def test_the_second_answer_ends_the_batch(self, queue, answer):
        queue.answer([self.row], [getattr(self, answer)])
        assert queue.n_answers_ == 11
        assert queue.seen_.sum() == 10

    def test_the_same_answer_changes_the_label(self, queue):
        queue.answer([self.row], [self.surprising])
        assert queue.labels_[self.row] == self.surprising

    @pytest.mark.parametrize("answer", ["given", "suggested"])
    def test_another_answer_changes_nothing(self, queue, answer):
        queue.answer([self.row], [getattr(self, answer)])
        assert queue.labels_[self.row] == self.given


class TestRareChanges:
    """A batch of 40 rows in which few labels change."""

    @pytest.fixture
    def data(self):
        return blobs(rate=0.02)

    @pytest.fixture
    def queue(self, data):
        X, y_true, y_noisy = data
        queue = fitted_queue(X, y_noisy)
        rows = queue.next()
        queue.answer(rows, y_true[rows])
        return queue

    def test_they_are_asked_a_second_time(self, data, queue):
        X, y_true, y_noisy = data
        rows = fitted_queue(X, y_noisy).next()
        wrong_rows = rows[y_noisy[rows] != y_true[rows]]
        assert 0 < len(wrong_rows) < 12
        assert queue.pending_.tolist() == wrong_rows.tolist()
        assert not queue.done_
        np.testing.assert_array_equal(queue.labels_, y_noisy)

    def test_the_same_answers_change_the_labels(self, data, queue):
        _, y_true, _ = data
        rows = queue.pending_
        queue.answer(rows, y_true[rows])
        assert queue.done_
        assert queue.n_answers_ == 40 + len(rows)
        np.testing.assert_array_equal(queue.labels_[rows], y_true[rows])

    def test_the_given_labels_as_answers_change_nothing(self, data, queue):
        _, _, y_noisy = data
        rows = queue.pending_
        queue.answer(rows, y_noisy[rows])
        assert queue.done_
        assert queue.n_answers_ == 40 + len(rows)
        np.testing.assert_array_equal(queue.labels_[rows], y_noisy[rows])


def test_a_queue_without_further_rows_is_done():
    X, y_true, y_noisy = blobs(30)
    queue = fitted_queue(X, y_noisy, batch_size=40)
    rows = queue.next()
    assert len(rows) == 30
    queue.answer(rows, y_true[rows])
    queue.answer(queue.pending_, y_true[queue.pending_])
    assert queue.done_
    assert not len(queue.next())


class TestAccept:
    def answer_draw(self, queue, y_true):
        """Answer all rows of a draw with the true labels; returns the rows."""
        rows = queue.draw()
        while len(queue.pending_):
            queue.answer(queue.pending_, y_true[queue.pending_])
        return rows

    @pytest.mark.parametrize("rate", [0.1, 0.3])
    def test_drawn_rows_have_another_suggestion(self, rate):
        X, _, y_noisy = blobs(600, rate)
        queue = fitted_queue(X, y_noisy)
        rows = queue.draw()
        is_listed = queue.detector_.suggested_label_ != y_noisy
        assert is_listed[rows].all()
        assert len(rows) == min(80, is_listed.sum())

    @pytest.mark.parametrize("rate", [0.1, 0.3])
    def test_suggestions_of_rows_without_an_answer_are_taken_over(self, rate):
        X, y_true, y_noisy = blobs(600, rate)
        queue = fitted_queue(X, y_noisy)
        rows = self.answer_draw(queue, y_true)
        changed = queue.accept()
        assert not np.isin(changed, rows).any()
        assert np.sum(queue.labels_[changed] != y_true[changed]) <= 0.1 * len(changed)
        others = np.setdiff1d(np.arange(600), [*rows, *changed])
        np.testing.assert_array_equal(queue.labels_[others], y_noisy[others])

    def test_many_suggestions_of_many_wrong_labels_are_taken_over(self):
        X, y_true, y_noisy = blobs(600, 0.3)
        queue = fitted_queue(X, y_noisy)
        self.answer_draw(queue, y_true)
        assert len(queue.accept()) > 60

    def test_nothing_is_taken_over_where_verdicts_disagree(self):
        X, _, y_noisy = blobs(600)
        queue = fitted_queue(X, y_noisy)
        rows = queue.draw()
        queue.answer(rows, y_noisy[rows])
        assert not len(queue.accept())
        np.testing.assert_array_equal(queue.labels_, y_noisy)

    def test_a_second_accept_is_refused(self):
        X, y_true, y_noisy = blobs(600, 0.1)
        queue = fitted_queue(X, y_noisy)
        self.answer_draw(queue, y_true)
        queue.accept()
        with pytest.raises(ValueError, match="Got no draw since the last batch"):
            queue.accept()

    def test_accept_is_refused_while_rows_are_pending(self):
        X, _, y_noisy = blobs(600)
        queue = fitted_queue(X, y_noisy)
        queue.draw()
        message = "accept must follow answers to all rows.* Got 80 pending"
        with pytest.raises(ValueError, match=message):
            queue.accept()

    def test_draw_is_refused_while_rows_are_pending(self):
        X, _, y_noisy = blobs(600)
        queue = fitted_queue(X, y_noisy)
        queue.draw()
        message = "draw must follow a whole batch. Got 80 pending"
        with pytest.raises(ValueError, match=message):
            queue.draw()


@pytest.mark.parametrize(
    ("agrees", "length"),
    [
        # Too few verdicts.
        ([True] * 9, 0),
        ([True] * 10, 19),
        # Two of eleven disagree, with the one that is added.
        ([False] + [True] * 9, 0),
        ([False] + [True] * 18, 2 * 18 + 1),
        # At the next place, two of the last twenty-one disagree.
        ([True] * 40 + [False] * 40, 2 * 40 + 1),
        # Later, no more than two thirds of all agree.
        ([True] * 20 + [False] * 20 + [True] * 40, 2 * 20 + 1),
        ([False] * 2 + [True] * 78, 2 * 79 + 1),
        ([True, True, False, True] * 20, 0),
    ],
)
def test_acceptable_prefix_by_hand(agrees, length):
    places = 2 * np.arange(len(agrees))
    order = np.random.default_rng(0).permutation(len(agrees))
    assert acceptable_prefix(places[order], np.array(agrees)[order]) == length


def test_an_empty_batch_is_refused():
    X, _, y_noisy = blobs(60)
    message = "batch_size must be an integer of at least 1. Got 0"
    with pytest.raises(ValueError, match=message):
        fitted_queue(X, y_noisy, batch_size=0)


def test_a_regression_is_refused():
    X, _, _ = blobs(60)
    with pytest.raises(ValueError, match="y must hold classes"):
        ReviewQueue(LabelErrorDetector(Ridge(), cv=2)).fit(X, X[:, 0])


@pytest.mark.parametrize(
    "detector", [KNNShapleyValuer(), "detector", LabelErrorDetector]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda detector, X, y: ReviewQueue(detector).fit(X, y),
        lambda detector, X, y: audit_table(X, y, detector=detector),
    ],
    ids=["queue", "audit"],
)
def test_what_is_no_detector_is_refused(detector, use):
    X, _, y_noisy = blobs(60)
    with pytest.raises(ValueError, match="detector must be a LabelErrorDetector, or"):
        use(detector, X, y_noisy)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([60], ["a"], "rows must be row numbers from 0 to 59"),
        (np.arange(60) < 1, ["a"], "0 to 59. Got True, False, False, False, False, .."),
        ([1, 1], ["a", "a"], "rows must name every row once"),
        ([1, 2], ["a"], "labels"),
        ([1, 2], ["a", "x"], r"labels of y: \['a', 'bb', 'long'\]. Got .*'x'"),
    ],
)
def test_wrong_answers_are_refused_as_a_whole(rows, labels, message):
    X, _, y_noisy = blobs(60)
    queue = fitted_queue(X, y_noisy)
    with pytest.raises(ValueError, match=message):
        queue.answer(rows, labels)
    assert queue.n_answers_ == 0
