"""Batches of rows to relabel: order, second answers, the stop, changes made
together."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import LabelErrorDetector
from skvalue.datasets import flip_labels
from skvalue.labels import ReviewQueue, head_to_accept


def blobs(n=150, rate=0.2, seed=0):
    """Rows of three classes that are apart, their labels, and labels of which some are
    wrong."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 5 * np.array([[0, 0], [1, 0], [0, 1]])[codes]
    truth = np.array(["a", "bb", "long"])[codes]
    return X, truth, flip_labels(truth, rate, random_state=seed)[0]


def queue_of(X, y, **options):
    return ReviewQueue(
        LabelErrorDetector(LogisticRegression(), random_state=0), **options
    ).fit(X, y)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("kind", [str, int])
def test_right_answers_set_all_labels_right(kind, rate):
    X, truth, given = blobs(rate=rate)
    if kind is int:
        truth, given = (
            np.searchsorted(["a", "bb", "long"], y) - 1 for y in (truth, given)
        )
    queue = queue_of(X, given, batch_size=20)
    batches = []
    while not queue.done_:
        batches.append(queue.next())
        queue.answer(batches[-1], truth[batches[-1]])
    np.testing.assert_array_equal(queue.labels_, truth)
    rows = np.concatenate(batches)
    assert len(rows) == queue.n_answers_
    assert len(np.unique(rows)) == queue.seen_.sum()
    # the stop: each batch but the last changed a fifth of its labels
    batches = [batch for batch in batches if len(batch) == 20]  # not the second answers
    changes = [np.mean(given[batch] != truth[batch]) for batch in batches]
    assert min([1, *changes[:-1]]) >= 0.2 > changes[-1]


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_labels_that_are_dates_are_asked_for_as_often_as_strings(unit):
    X, truth, given = blobs()
    dates = np.array(["2020-01-01", "2021-05-05", "2022-09-09"], f"datetime64[{unit}]")
    n_answers = []
    for names in (np.array(["a", "bb", "long"]), dates):
        codes = np.searchsorted(["a", "bb", "long"], [truth, given])
        queue = queue_of(X, names[codes[1]], batch_size=20)
        while not queue.done_:
            rows = queue.next()
            queue.answer(rows, names[codes[0]][rows])
        np.testing.assert_array_equal(queue.labels_, names[codes[0]])
        n_answers.append(queue.n_answers_)
    assert n_answers[0] == n_answers[1]


def test_next_is_the_same_until_all_rows_have_an_answer():
    X, truth, given = blobs()
    queue = queue_of(X, given, batch_size=10)
    rows = queue.next()
    np.testing.assert_array_equal(queue.next(), rows)
    detector = LabelErrorDetector(LogisticRegression(), random_state=0).fit(X, given)
    scores = detector.label_scores_
    margin = (
        scores.max(axis=1)
        - scores[np.arange(150), np.searchsorted(["a", "bb", "long"], given)]
    )
    np.testing.assert_array_equal(rows, np.argsort(-margin, kind="stable")[:10])
    queue.answer(rows[3:], truth[rows[3:]])
    np.testing.assert_array_equal(queue.next(), rows[:3])
    queue.answer(rows[:3], truth[rows[:3]])
    assert not np.isin(queue.next(), rows).any()


@pytest.mark.parametrize(
    ("second", "changed"), [("same", True), ("given", False), ("other", False)]
)
def test_a_change_that_is_not_suggested_is_asked_twice(second, changed):
    X, truth, given = blobs()
    queue = queue_of(X, given, batch_size=10)
    rows = queue.next()
    row = rows[0]
    suggested = queue.detector_.suggested_label_[row]
    strange = next(
        label for label in ("a", "bb", "long") if label not in (given[row], suggested)
    )
    said = truth[rows]
    said[0] = strange
    queue.answer(rows, said)
    assert queue.labels_[row] == given[row]
    assert queue.pending_.tolist() == queue.next().tolist() == [row]
    assert not queue.seen_[row]
    queue.answer(
        [row], [{"same": strange, "given": given[row], "other": suggested}[second]]
    )
    assert queue.labels_[row] == (strange if changed else given[row])
    assert queue.n_answers_ == 11
    assert queue.seen_.sum() == 10


@pytest.mark.parametrize("same", [True, False])
def test_rare_changes_are_asked_twice(same):
    X, truth, given = blobs(rate=0.02)
    queue = queue_of(X, given)
    rows = queue.next()
    wrong = rows[given[rows] != truth[rows]]
    assert 0 < len(wrong) < 12
    queue.answer(rows, truth[rows])
    assert queue.pending_.tolist() == wrong.tolist()
    assert not queue.done_
    np.testing.assert_array_equal(queue.labels_, given)
    queue.answer(wrong, truth[wrong] if same else given[wrong])
    assert queue.done_
    assert queue.n_answers_ == 40 + len(wrong)
    np.testing.assert_array_equal(
        queue.labels_[wrong], truth[wrong] if same else given[wrong]
    )


def test_the_last_rows():
    X, truth, given = blobs(30)
    queue = queue_of(X, given, batch_size=40)
    rows = queue.next()
    assert len(rows) == 30
    queue.answer(rows, truth[rows])
    queue.answer(queue.pending_, truth[queue.pending_])
    assert queue.done_
    assert not len(queue.next())


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_accept_takes_over_suggestions_of_rows_without_an_answer(rate):
    X, truth, given = blobs(600, rate)
    queue = queue_of(X, given)
    rows = queue.draw()
    listed = queue.detector_.suggested_label_ != given
    assert listed[rows].all()
    assert len(rows) == min(80, listed.sum())
    while len(queue.pending_):
        queue.answer(queue.pending_, truth[queue.pending_])
    changed = queue.accept()
    assert not np.isin(changed, rows).any()
    if rate == 0.3:
        assert len(changed) > 60
    assert np.sum(queue.labels_[changed] != truth[changed]) <= 0.1 * len(changed)
    others = np.setdiff1d(np.arange(600), [*rows, *changed])
    np.testing.assert_array_equal(queue.labels_[others], given[others])
    with pytest.raises(
        ValueError, match="accept must follow answers to all rows of draw"
    ):
        queue.accept()


def test_nothing_is_accepted_where_verdicts_disagree():
    X, _, given = blobs(600)
    queue = queue_of(X, given)
    rows = queue.draw()
    with pytest.raises(ValueError, match="accept must follow answers"):
        queue.accept()
    with pytest.raises(
        ValueError, match="draw must follow a whole batch. Got 80 pending"
    ):
        queue.draw()
    queue.answer(rows, given[rows])
    assert not len(queue.accept())
    np.testing.assert_array_equal(queue.labels_, given)


@pytest.mark.parametrize(
    ("agrees", "length"),
    [
        ([True] * 9, 0),  # too few
        ([True] * 10, 19),
        ([False] + [True] * 9, 0),  # two of eleven, with the one that is added
        ([False] + [True] * 18, 2 * 18 + 1),
        (
            [True] * 40 + [False] * 40,
            2 * 40 + 1,
        ),  # two of the last twenty-one disagree there
        ([True] * 20 + [False] * 20 + [True] * 40, 2 * 20 + 1),  # all: two thirds of 60
        ([False] * 2 + [True] * 78, 2 * 79 + 1),
        ([True, True, False, True] * 20, 0),
    ],
)
def test_heads_that_are_accepted(agrees, length):
    places = 2 * np.arange(len(agrees))
    order = np.random.default_rng(0).permutation(len(agrees))
    assert head_to_accept(places[order], np.array(agrees)[order]) == length


def test_bad_input():
    X, _, given = blobs(60)
    with pytest.raises(
        ValueError, match="batch_size must be an integer of at least 1. Got 0"
    ):
        queue_of(X, given, batch_size=0)
    with pytest.raises(ValueError, match="y must hold classes"):
        ReviewQueue(LabelErrorDetector(Ridge(), cv=2)).fit(X, X[:, 0])
    queue = queue_of(X, given)
    for rows, labels, message in [
        ([60], ["a"], "rows must be row numbers from 0 to 59"),
        ([1, 1], ["a", "a"], "rows must name every row once"),
        ([1, 2], ["a"], "labels"),
        (
            [1, 2],
            ["a", "x"],
            r"labels must be labels of y: \['a', 'bb', 'long'\]. Got .*'x'",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            queue.answer(rows, labels)
    assert queue.n_answers_ == 0
