"""Noisy counts of improbable labels: sensitivity, noise, meaning and statements."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from skvalue.exceptions import VoidGuaranteeWarning
from skvalue.labels import count_improbable_labels
from skvalue.privacy import (
    DiscreteGaussianEvent,
    Ledger,
    calibrate_counts,
    draw_noise,
    get_epsilon,
)
from skvalue.privacy.audit import distinguish_scores, search_sensitivity

EPSILON = 8.0
DELTA = 1e-5

# Public points of two classes.
X_VAL = np.repeat([[0.0], [4.0]], 20, axis=0) + np.linspace(-1, 1, 40)[:, None]
Y_VAL = np.repeat(["low", "high"], 20).astype(object)
BAYES = GaussianNB()

seeded = pytest.mark.filterwarnings("ignore:noise_random_state")


def count(X, y, X_val=X_VAL, y_val=Y_VAL, estimator=BAYES, **options):
    options = {"epsilon": EPSILON, "delta": DELTA, "random_state": 0, **options}
    return count_improbable_labels(X, y, X_val, y_val, estimator=estimator, **options)


def count_exactly(X, y, X_val=X_VAL, y_val=Y_VAL, **options):
    """Counts without their noise.

    Numbers of rows and of improbable ones by class, and the number of other labels.
    """
    counts = count(X, y, X_val, y_val, noise_random_state=0, **options)
    n_classes = len(counts.classes)
    event = calibrate_counts(EPSILON, DELTA)
    noise = draw_noise(event, 2 * n_classes + 1, noise_random_state=0)
    noise_by_class = noise[:-1].reshape(n_classes, 2)
    n_rows = counts.n_rows - noise_by_class.sum(axis=1)
    n_improbable = counts.n_improbable - noise_by_class[:, 1]
    by_class = dict(zip(counts.classes, zip(n_rows, n_improbable)))
    return by_class, counts.n_other - noise[-1]


@seeded
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.VoidGuaranteeWarning")
def test_one_row_changes_one_count_by_one():
    @lru_cache
    def counts_of(rows):
        x, y = zip(*rows)
        X = np.array(x)[:, None]
        counts = count(X, np.array(y, dtype=object), noise_random_state=0)
        n_probable = counts.n_rows - counts.n_improbable
        return [*n_probable, *counts.n_improbable, counts.n_other]

    records = list(product((0.0, 4.0), ("low", "high", "new", None)))
    sensitivity = search_sensitivity(
        lambda rows: counts_of(tuple(sorted(rows, key=str))),
        records,
        2,
        claimed=1.0,
        relation="add_remove",
        norm=1,
    )
    assert sensitivity.passed
    assert sensitivity.tight


def count_far_classes(epsilon, n_improbable, n_classes=500):
    """Counts of classes that are far apart.

    Each has three rows with its label, and some with the improbable label of another
    class, so that it is a run of its own.
    """
    centers = 10.0 * np.arange(n_classes)[:, None]
    labels = np.arange(n_classes)
    other_labels = np.roll(labels, 1)
    X = np.tile(centers, (3 + n_improbable, 1))
    y = np.concatenate([np.tile(labels, 3), np.tile(other_labels, n_improbable)])
    X_val = np.tile(centers, (5, 1))
    y_val = np.tile(labels, 5)
    nearest = KNeighborsClassifier(1)
    return count(X, y, X_val, y_val, nearest, epsilon=epsilon)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_an_audit_catches_half_of_the_noise(factor):
    event = calibrate_counts(EPSILON, DELTA)
    epsilon = get_epsilon(DiscreteGaussianEvent(factor * event.scale), DELTA)
    scores = []
    for n_improbable in (1, 0):
        runs = [count_far_classes(epsilon, n_improbable) for _ in range(2)]
        scores.append(np.concatenate([counts.n_improbable for counts in runs]))
    assert distinguish_scores(*scores, event, fail=1e-7).passed == (factor == 1.0)


def test_stated_errors_hold():
    counts = count_far_classes(1.0, 4)
    noise = counts.n_improbable - 4
    assert np.mean(np.abs(noise) <= 3 * counts.error) > 0.97
    assert np.std(noise) == pytest.approx(counts.error, rel=0.2)
    noise = counts.n_rows - 7
    assert np.mean(np.abs(noise) <= 3 * counts.n_rows_error) > 0.97
    assert np.std(noise) == pytest.approx(counts.n_rows_error, rel=0.2)


def test_public_points_that_are_far_apart_have_no_improbable_labels():
    assert count_far_classes(1.0, 4).public_rate.max() == 0


# Numbers of rows and of improbable ones by class, and of other labels.
@seeded
@pytest.mark.parametrize(
    ("labels", "y_val", "by_class", "n_other"),
    [
        (["low", "low", "high", "high"], Y_VAL, {"low": (2, 1), "high": (2, 1)}, 0),
        (["low", "LOW", None, np.nan], Y_VAL, {"low": (1, 0), "high": (0, 0)}, 3),
        ([0.0, 0.0, 1.0, np.nan], np.repeat([0, 1], 20), {0: (2, 1), 1: (1, 0)}, 1),
        (["0", "0", "1", "1"], np.repeat([0, 1], 20), {0: (0, 0), 1: (0, 0)}, 4),
    ],
    ids=["strings", "new labels", "floats of integers", "strings of integers"],
)
def test_rows_are_counted_by_label(labels, y_val, by_class, n_other):
    X = np.array([[0.1], [4.0], [4.1], [0.0]])
    y = np.array(labels, dtype=object)
    assert count_exactly(X, y, y_val=y_val) == (by_class, n_other)


@seeded
def test_rows_of_a_frame_are_encoded_by_the_public_points():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(size=300), "kind": rng.choice(["a", "b"], 300)}
    )
    y = np.where(frame["kind"] == "a", "yes", "no").astype(object)

    # Private rows have other columns, in another order, and unknown entries.
    X = frame[:100].copy()
    X.loc[0, "size"] = np.nan
    X.loc[1, "kind"] = "unknown"
    X["more"] = 1.0
    X = X[["kind", "more", "size"]]
    by_class, n_other = count_exactly(X, y[:100], frame[100:], y[100:], estimator=None)
    assert n_other == 0
    assert sum(n_rows for n_rows, _ in by_class.values()) == 100


REFUSED_ENTRIES = {
    "text": "a",
    "dict": {},
    "complex": 1j,
    "more than a float": 10**400,
    "None": None,
}


@seeded
@pytest.mark.parametrize("name", REFUSED_ENTRIES)
def test_a_row_that_the_model_refuses_is_counted_with_other_labels(name):
    X = np.array([[0.1], [4.0], [4.1]], dtype=object)
    X[1, 0] = REFUSED_ENTRIES[name]
    y = np.array(["low", "high", "high"], dtype=object)
    assert count_exactly(X, y) == ({"low": (1, 0), "high": (1, 0)}, 1)


class OfFloats(GaussianNB):
    """A classifier that takes no objects."""

    def predict_proba(self, X):
        assert X.dtype == np.float64
        return super().predict_proba(X)


@seeded
@pytest.mark.parametrize("container", [np.asarray, np.ndarray.tolist])
def test_rows_of_objects_are_numbers_where_the_points_are(container):
    X = np.array([[0.1], ["a"], [4.1]], dtype=object)
    y = np.array(["low", "high", "high"], dtype=object)
    counts = count_exactly(container(X), y, estimator=OfFloats())
    assert counts == ({"low": (1, 0), "high": (1, 0)}, 1)


@seeded
@pytest.mark.parametrize("dtype", ["Int64", "float64", "timedelta64[s]", "object"])
def test_a_missing_entry_of_a_frame_is_no_error(dtype):
    pd = pytest.importorskip("pandas")
    numbers = pd.Series([0, 4, 4], dtype="timedelta64[s]" if "time" in dtype else None)
    X = pd.DataFrame({"x": numbers.astype(dtype)})
    X.loc[1, "x"] = pd.NA if dtype in ("Int64", "object") else None
    y = np.array(["low", "high", "high"], dtype=object)
    X_val = pd.DataFrame({"x": X_VAL[:, 0]})
    by_class, n_other = count_exactly(X, y, X_val)
    assert sum(n_rows for n_rows, _ in by_class.values()) + n_other == 3


class TestRelease:
    X = np.array([[0.0], [4.0]] * 20)
    y = np.array(["low", "low"] * 20, dtype=object)

    @pytest.fixture
    def ledger(self):
        return Ledger(None, "rows", epsilon=2.0, delta=DELTA)

    def test_the_ledger_is_charged_once(self, ledger):
        counts = count(self.X, self.y, epsilon=1.5, ledger=ledger)
        assert [charge.label for charge in ledger.charges] == ["improbable labels"]
        assert ledger.spent == pytest.approx(1.5)
        assert counts.privacy.guarantee == "(1.5, 1e-05)-differential privacy"

    def test_counts_beyond_the_budget_are_refused(self, ledger):
        count(self.X, self.y, epsilon=1.5, ledger=ledger)
        with pytest.raises(ValueError, match="must fit what is left of the budget"):
            count(self.X, self.y, epsilon=1.5, ledger=ledger)
        assert ledger.n_charges == 1

    def test_counts_have_no_entry_per_row(self):
        counts = count(self.X, self.y, epsilon=1.5)
        for name, value in vars(counts).items():
            assert name == "model" or np.size(value) <= 2

    def test_texts_say_what_the_counts_mean(self):
        counts = count(self.X, self.y, epsilon=1.5)
        for text in (str(counts), counts.to_html()):
            assert "not an error rate" in text
            assert "No row is listed" in text
        assert "had one row been added or removed" in str(counts)

    def test_owners_get_the_probabilities_of_their_labels(self):
        counts = count(self.X, self.y, epsilon=1.5)
        probabilities = counts.probability_of(self.X[:2], ["low", "other"])
        assert probabilities.round(2).tolist() == [1.0, 0.0]

    def test_a_large_delta_warns(self):
        with pytest.warns(VoidGuaranteeWarning, match="delta should be well below"):
            count(self.X, self.y, delta=0.1)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("epsilon must be a finite number above 0", {"epsilon": 0.0}),
        ("y_val must hold two classes or more", {"y_val": ["low"] * 40}),
        ("y_val must hold two classes or more", {"y_val": np.linspace(0, 1, 40)}),
        ("y must have", {"y": ["low"]}),
    ],
)
def test_wrong_arguments_are_refused(message, options):
    options = {"X": X_VAL + 0.1, "y": Y_VAL, **options}
    with pytest.raises(ValueError, match=message):
        count(**options)
