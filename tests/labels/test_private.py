"""Noisy counts of improbable labels: sensitivity, noise, what they count and what they
say."""

from functools import lru_cache

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

EPSILON, DELTA = 8.0, 1e-5
X_VAL = np.repeat([[0.0], [4.0]], 20, axis=0) + np.linspace(-1, 1, 40)[:, None]
Y_VAL = np.repeat(["low", "high"], 20).astype(object)
BAYES = GaussianNB()
seeded = pytest.mark.filterwarnings("ignore:noise_random_state")


def count(X, y, X_val=X_VAL, y_val=Y_VAL, estimator=BAYES, **options):
    options = {"epsilon": EPSILON, "delta": DELTA, "random_state": 0, **options}
    return count_improbable_labels(X, y, X_val, y_val, estimator=estimator, **options)


def exact(X, y, X_val=X_VAL, y_val=Y_VAL, **options):
    """The counts without their noise: rows and improbable ones by class, and other
    labels."""
    found = count(X, y, X_val, y_val, noise_random_state=0, **options)
    n = len(found.classes)
    noise = draw_noise(
        calibrate_counts(EPSILON, DELTA), 2 * n + 1, noise_random_state=0
    )
    improbable = found.n_improbable - noise[1:-1:2]
    rows = found.n_rows - noise[:-1].reshape(n, 2).sum(axis=1)
    return dict(zip(found.classes, zip(rows, improbable))), found.n_other - noise[-1]


@seeded
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.VoidGuaranteeWarning")
def test_one_row_changes_one_count_by_one():
    @lru_cache
    def counts(rows):
        x, y = zip(*rows)
        found = count(
            np.array(x)[:, None], np.array(y, dtype=object), noise_random_state=0
        )
        return [
            *(found.n_rows - found.n_improbable),
            *found.n_improbable,
            found.n_other,
        ]

    records = [(x, label) for x in (0.0, 4.0) for label in ("low", "high", "new", None)]
    found = search_sensitivity(
        lambda rows: counts(tuple(sorted(rows, key=str))),
        records, 2, claimed=1.0, relation="add_remove", norm=1,
    )  # fmt: skip
    assert found.passed
    assert found.tight


def many(epsilon, n_improbable, n_classes=500):
    """The counts of many classes that are far apart, each a run with as many improbable
    rows."""
    places = 10.0 * np.arange(n_classes)[:, None]
    labels = np.arange(n_classes)
    X, y = np.tile(places, (3, 1)), np.tile(labels, 3)
    X, y = (
        np.concatenate([X, *[places] * n_improbable]),
        np.tile(labels, 3 + n_improbable),
    )
    y[3 * n_classes :] = np.tile(np.roll(labels, 1), n_improbable)
    nearest = KNeighborsClassifier(1)
    return count(
        X, y, np.tile(places, (5, 1)), np.tile(labels, 5), nearest, epsilon=epsilon
    )


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_an_audit_catches_half_of_the_noise(factor):
    event = calibrate_counts(EPSILON, DELTA)
    epsilon = get_epsilon(DiscreteGaussianEvent(factor * event.scale), DELTA)
    scores = [
        np.concatenate([many(epsilon, n).n_improbable for _ in range(2)])
        for n in (1, 0)
    ]
    assert distinguish_scores(*scores, event).passed == (factor == 1.0)


def test_stated_errors_hold():
    found = many(1.0, 4)
    for noisy, true, error in [
        (found.n_improbable, 4, found.error), (found.n_rows, 7, found.n_rows_error),
    ]:  # fmt: skip
        assert np.mean(np.abs(noisy - true) <= 3 * error) > 0.98
        assert np.std(noisy - true) == pytest.approx(error, rel=0.15)
    assert found.public_rate.max() == 0


LABELS = {  # private labels -> rows and improbable ones of each public class, and others
    "strings": (
        ["low", "low", "high", "high"],
        Y_VAL,
        {"low": (2, 1), "high": (2, 1)},
        0,
    ),
    "new": (["low", "LOW", None, np.nan], Y_VAL, {"low": (1, 0), "high": (0, 0)}, 3),
    "floats of whole": (
        [0.0, 0.0, 1.0, np.nan],
        np.repeat([0, 1], 20),
        {0: (2, 1), 1: (1, 0)},
        1,
    ),
    "strings of whole": (
        ["0", "0", "1", "1"],
        np.repeat([0, 1], 20),
        {0: (0, 0), 1: (0, 0)},
        4,
    ),
}


@seeded
@pytest.mark.parametrize("case", LABELS)
def test_what_is_counted(case):
    labels, y_val, by_class, others = LABELS[case]
    X = np.array([[0.1], [4.0], [4.1], [0.0]])
    assert exact(X, np.array(labels, dtype=object), y_val=y_val) == (by_class, others)


@seeded
def test_rows_of_a_frame_are_encoded_by_the_public_points():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.normal(size=300), "kind": rng.choice(["a", "b"], 300)}
    )
    y = np.where(X["kind"] == "a", "yes", "no").astype(object)
    public, X, y = (X[100:], y[100:]), X[:100].copy(), y[:100]
    X.loc[0, "size"], X.loc[1, "kind"], X["more"] = np.nan, "unknown", 1.0
    swapped = X[["kind", "more", "size"]]
    after, others = exact(swapped, y, *public, estimator=None)
    assert others == 0
    assert sum(rows for rows, _ in after.values()) == 100


def test_what_is_released_and_said():
    ledger = Ledger(None, "rows", epsilon=2.0, delta=DELTA)
    X = np.array([[0.0], [4.0]] * 20)
    y = np.array(["low", "low"] * 20, dtype=object)
    found = count(X, y, epsilon=1.5, ledger=ledger)
    assert [charge.label for charge in ledger.charges] == ["improbable labels"]
    assert ledger.spent == pytest.approx(1.5)
    assert found.privacy.guarantee == "(1.5, 1e-05)-differential privacy"
    assert all(
        np.size(value) <= 2 for name, value in vars(found).items() if name != "model"
    )
    for said in (str(found), found.to_html()):
        assert "not an error rate" in said
        assert "No row is listed" in said
    assert "had one row been added or removed" in str(found)
    assert found.probability_of(X[:2], ["low", "other"]).round(2).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        count(X, y, epsilon=1.5, ledger=ledger)
    assert ledger.n_charges == 1
    with pytest.warns(VoidGuaranteeWarning, match="delta should be well below"):
        count(X, y, delta=0.1)


@pytest.mark.parametrize(
    ("match", "options"),
    [
        ("epsilon must be a finite number above 0", {"epsilon": 0.0}),
        ("y_val must hold two classes or more", {"y_val": ["low"] * 40}),
        ("y_val must hold two classes or more", {"y_val": np.linspace(0, 1, 40)}),
        ("y must have", {"y": ["low"]}),
    ],
)
def test_bad_input(match, options):
    options = {"X": X_VAL + 0.1, "y": Y_VAL, **options}
    with pytest.raises(ValueError, match=match):
        count(**options)
