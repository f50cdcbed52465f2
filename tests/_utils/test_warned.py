"""Warnings of many fits: counted, in threads too, and issued once."""

import warnings
from threading import Event, Thread

import pytest

from skvalue._utils.warned import (
    counted_map,
    counted_warnings,
    pass_on,
    ready_to_count,
    summaries,
    warn_all,
)


def work(number):
    warnings.warn(f"number {number}", RuntimeWarning, stacklevel=1)
    warnings.warn("always the same", UserWarning, stacklevel=1)
    return number


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_warning_is_counted_and_the_first_shown(n_jobs):
    counts = {}
    filters = list(warnings.filters)
    show = warnings.showwarning
    results = list(counted_map(work, [(i,) for i in range(5)], n_jobs, counts))
    assert results == list(range(5))
    assert summaries(counts) == [
        ("number 0 [5 times in fits of the estimator]", RuntimeWarning),
        ("always the same [5 times in fits of the estimator]", UserWarning),
    ]
    assert (warnings.filters, warnings.showwarning) == (filters, show)


def test_filters_ignore_warnings_or_make_errors_of_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "number")
        with counted_warnings() as counts:
            work(1)
        with pytest.raises(UserWarning, match="always the same"):
            pass_on(counts)
    assert [category for category, _, _ in counts] == [UserWarning]


def test_counts_go_to_the_caller_that_counts():
    with counted_warnings() as outer:
        with counted_warnings() as inner:
            work(1)
        pass_on(inner)
        work(2)
    assert [count for count, _ in outer.values()] == [2, 2]


def test_other_threads_keep_their_warnings():
    def count():
        with counted_warnings() as counts:
            thread = Thread(target=work, args=(7,))
            thread.start()
            thread.join()
        return counts

    with warnings.catch_warnings(record=True) as records:
        assert count() == {}
    assert [str(record.message) for record in records] == [
        "number 7",
        "always the same",
    ]


def test_a_task_that_outlives_its_fit_changes_no_filters():
    begun = Event()
    leave = Event()

    def task():
        with counted_warnings():
            begun.set()
            leave.wait()

    thread = Thread(target=task)
    with ready_to_count():
        thread.start()
        begun.wait()
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        leave.set()
        thread.join()
        work(1)
    assert [str(record.message) for record in records] == [
        "number 1",
        "always the same",
    ]


def test_a_category_that_takes_no_text_is_counted_as_its_base_class():
    class Odd(DeprecationWarning):
        def __init__(self, *, name):
            super().__init__(name)

    with counted_warnings() as counts:
        warnings.warn(Odd(name="old"), stacklevel=1)
    assert summaries(counts) == [("old", DeprecationWarning)]


def test_no_warning_is_lost_among_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="one") as error:
            warn_all([("one", UserWarning), ("two", RuntimeWarning)])
    assert error.value.__notes__ == ["RuntimeWarning: two"]
