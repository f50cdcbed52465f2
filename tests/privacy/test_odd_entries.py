"""An entry of a private row that is no number makes its row null, and is not refused.

What a fit releases, without noise, is compared with what it releases of NaN in place of
the entry, bit for bit: the entry decides nothing of other rows either, such as their
type. A container whose type has no numbers is refused, whatever it holds.
"""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.labels import count_improbable_labels
from skvalue.priarta import PriArTaScorer, SellerRelease
from tests.privacy.one_row import (
    NO_CLASS,
    draw_data,
    in_run,
    layered,
    linear_module,
    no_noise,
)

MODEL = PriArTaScorer(max_norm=1.0).fit(draw_data(2).X_val).model_


class Other:
    """An object of a class that nobody knows."""

    def __float__(self):
        raise RuntimeError("987654.321")


# Entries that are no numbers, by name.
ENTRIES = {
    "text": "large",
    "empty text": "",
    "bytes": b"large",
    "date": date(2026, 1, 1),
    "timestamp": pd.Timestamp("2026-01-01"),
    "numpy date": np.datetime64(1, "ns"),
    "numpy duration": np.timedelta64(1, "ns"),
    "complex": 1j,
    "complex of a real": np.complex128(1.0),
    "dict": {"a": 1},
    "list": [1.0],
    "array": np.array([1.0]),
    "None": None,
    "NA": pd.NA,
    "another object": Other(),
}


def objects(entries):
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def with_entry(X, entry):
    """Rows as an array of objects, with an entry in the first."""
    rows = X.astype(object)
    rows[0, 1] = entry
    return rows


def frame_of(rows):
    """A frame in which the column of the entry has objects."""
    columns = {f"x{i}": rows[:, i] for i in range(rows.shape[1])}
    frame = pd.DataFrame(columns)
    return frame.astype({"x0": np.float64, "x2": np.float64})


def polars_of(rows):
    polars = pytest.importorskip("polars")
    columns = {}
    for i in range(rows.shape[1]):
        dtype = polars.Object if i == 1 else polars.Float64
        columns[f"x{i}"] = polars.Series(rows[:, i].tolist(), dtype=dtype)
    return polars.DataFrame(columns)


CONTAINERS = {
    "array": np.asarray,
    "list": lambda rows: rows.tolist(),
    "frame": frame_of,
    "polars": polars_of,
}


def of_valuer(valuer):
    def fit(X, y, data):
        fitted = clone(valuer).fit(X, y, X_val=data.X_val, y_val=data.y_val)
        return np.ravel(fitted.values_)

    return fit


def of_party(party):
    def fit(X, y, data):
        return np.array(clone(party).fit(X, y).release_.statistic)

    return fit


def of_mean(X, y, data):
    if hasattr(X, "columns"):
        column = X["x1"]
    else:
        column = [row[1] for row in X]
        if isinstance(X, np.ndarray):
            column = objects(column)
    return np.array(MeanRelease().fit(column).release_.statistic)


def of_seller(X, y, data):
    summary = SellerRelease(MODEL, 1.0).fit(X).summary_
    return np.append(summary.mean, summary.moment)


def of_counts(X, y, data):
    public = np.vstack([data.X_val] * 6), np.tile(data.y_val, 6)
    counts = count_improbable_labels(
        X, y, *public, epsilon=1.0, estimator=LogisticRegression()
    )
    return np.append(counts.n_rows, counts.n_improbable)


def of_update(method):
    """A training that runs elsewhere, whose updates are the rows."""
    valuer = FederatedSemivalueValuer(epsilon=1.0, n_rounds=2, clip=1.0)

    def fit(X, y, data):
        n_parameters = data.X.shape[1]
        training = clone(valuer).start(lambda thetas: -thetas[:, 0], len(data.X))
        if method == "release":
            return training.release(X[0])
        return training.add_round(np.zeros(n_parameters), X)

    return fit


# Case -> what is released of rows and targets, without noise.
FITS = {
    "federated": of_valuer(
        FederatedSemivalueValuer(epsilon=1.0, n_rounds=2, random_state=0)
    ),
    "gradient": of_valuer(
        GradientSemivalueValuer(epsilon=1.0, n_permutations=3, random_state=0)
    ),
    "gradient, torch": of_valuer(
        GradientSemivalueValuer(
            linear_module(), epsilon=1.0, n_permutations=3, random_state=0
        )
    ),
    "in-run": of_valuer(in_run()),
    "layered": of_valuer(layered(release="publish")),
    "tknn": of_valuer(TKNNShapleyValuer(1.5, metric="euclidean", epsilon=1.0)),
    "gram": of_party(GramRelease()),
    "logistic": of_party(LogisticRelease()),
    "mean": of_mean,
    "seller": of_seller,
    "improbable labels": of_counts,
    "add_round": of_update("add_round"),
    "release": of_update("release"),
}
OF_UPDATES = ("add_round", "release")
NO_LABELS = ("seller", "mean", "gram", *OF_UPDATES)
OF_TARGETS = ("gradient", "in-run", "gram")


def each_of(names, entries):
    """Each case with each entry; in the default tier text, and all of a fast one."""
    cases = []
    for name in names:
        for entry in entries:
            is_usual = (entry == "text" and "torch" not in name) or name == "gram"
            marks = [] if is_usual else [pytest.mark.slow]
            cases.append(pytest.param(name, entry, marks=marks))
    return pytest.mark.parametrize(("name", "entry"), cases)


def released(name, X, y, data):
    with no_noise() as releases:
        values = FITS[name](X, y, data)
    statistics = [statistic for statistic, _ in releases if statistic is not None]
    return np.concatenate([np.ravel(values), *map(np.ravel, statistics)])


@each_of(FITS, ENTRIES)
def test_an_entry_that_is_no_number_is_nan(name, entry):
    data = draw_data(2)
    expected = released(name, with_entry(data.X, np.nan).astype(float), data.y, data)
    X = with_entry(data.X, ENTRIES[entry])
    np.testing.assert_array_equal(released(name, X, data.y, data), expected)


@pytest.mark.parametrize("container", CONTAINERS)
@each_of(FITS, ["text", "complex", "None"])
def test_the_entry_is_nan_in_every_container(name, container, entry):
    if name in OF_UPDATES and container in ("frame", "polars"):
        pytest.skip("updates are no frames")
    data = draw_data(2)
    expected = released(name, with_entry(data.X, np.nan).astype(float), data.y, data)
    X = CONTAINERS[container](with_entry(data.X, ENTRIES[entry]))
    if container in ("frame", "polars"):
        data = data._replace(X_val=CONTAINERS[container](data.X_val.astype(object)))
    if name == "improbable labels":
        if container == "polars":
            pytest.skip("takes frames of pandas")
        data = draw_data(2)
    # Sums over the rows of a frame are in another order.
    rounding = 1e-12 if name == "seller" else 0.0
    actual = released(name, X, data.y, data)
    np.testing.assert_allclose(actual, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("as_list", [False, True])
@each_of(
    [name for name in FITS if name not in NO_LABELS],
    # A complex number that is equal to a class is of this class.
    [entry for entry in ENTRIES if entry != "complex of a real"],
)
def test_a_label_that_is_none_is_another_class(name, entry, as_list):
    data = draw_data(2)
    expected = released(name, data.X, data.with_target(NO_CLASS).y, data)
    y = objects([ENTRIES[entry], *data.y[1:].tolist()])
    if as_list:
        y = y.tolist()
        if entry in ("list", "array"):
            y[0] = [1.0, 2.0]  # of one entry, it is a row of a column
    np.testing.assert_array_equal(released(name, data.X, y, data), expected)


@pytest.mark.parametrize("as_list", [False, True])
@each_of(OF_TARGETS, ENTRIES)
def test_a_target_that_is_no_number_is_nan(name, entry, as_list):
    data = draw_data(0)
    expected = released(name, data.X, data.with_target(np.nan).y, data)
    y = objects([ENTRIES[entry], *data.y[1:].tolist()])
    y = y.tolist() if as_list else y
    if as_list and entry in ("list", "array"):
        y[0] = [1.0, 2.0]
    np.testing.assert_array_equal(released(name, data.X, y, data), expected)


@pytest.mark.parametrize("number", [True, 2, np.float32(2), Decimal("0.5"), "0.5"])
@pytest.mark.parametrize("name", ["gradient", "gram", "mean", "seller"])
def test_an_object_that_is_a_number_is_this_number(name, number):
    data = draw_data(2)
    X = with_entry(data.X, number)
    expected = released(name, X.astype(np.float64), data.y, data)
    np.testing.assert_array_equal(released(name, X, data.y, data), expected)


# Containers without numbers, and what the error says of them.
REFUSED = {
    "strings": (lambda X: X.astype(str), "must hold numbers"),
    "digits": (lambda X: np.ones(X.shape).astype(str), "must hold numbers"),
    "bytes": (lambda X: X.astype("S"), "must hold numbers"),
    "dates": (lambda X: X.astype("M8[s]"), "must hold numbers"),
    "durations": (lambda X: X.astype("m8[s]"), "must hold numbers"),
    "complex": (lambda X: X.astype(complex), "Complex data not supported"),
    "column of strings": (
        lambda X: pd.DataFrame(X).astype({1: str}).rename(columns=str),
        "other types: 1",
    ),
    "column of digits": (
        lambda X: pd.DataFrame(np.ones(X.shape)).astype({1: str}).rename(columns=str),
        "other types: 1",
    ),
    "column of dates": (
        lambda X: pd.DataFrame(X).astype({1: "M8[s]"}).rename(columns=str),
        "other types: 1",
    ),
}


@pytest.mark.parametrize("container", REFUSED)
@pytest.mark.parametrize("name", ["gradient", "in-run", "layered", "tknn", "gram"])
def test_a_container_whose_type_has_no_numbers_is_refused(name, container):
    data = draw_data(2)
    make, words = REFUSED[container]
    with pytest.raises(ValueError, match=words):
        released(name, make(data.X), data.y, data)


def test_a_list_of_texts_is_refused_for_its_shape():
    data = draw_data(2)
    with pytest.raises(ValueError, match="one text or object per row.*TfidfVectorizer"):
        released("tknn", ["a text"] * len(data.y), data.y, data)


@pytest.mark.parametrize("container", ["array", "list", "frame"])
def test_a_row_that_is_refused_leaves_the_bits_of_others(container):
    """The model of public points gets as many rows together, whatever they hold."""
    data = draw_data(2)

    class Total(LogisticRegression):
        """Probabilities that depend on how many rows there are."""

        def predict_proba(self, X):
            return super().predict_proba(X) + (0.0 if len(X) == len(data.y) else 1.0)

    def counts(X):
        public = np.vstack([data.X_val] * 6), np.tile(data.y_val, 6)
        with no_noise() as releases:
            count_improbable_labels(X, data.y, *public, epsilon=1.0, estimator=Total())
        return releases[0][0]

    usual = counts(data.X)
    unusual = counts(CONTAINERS[container](with_entry(data.X, "large")))
    assert np.abs(unusual - usual).sum() == 2  # one count less, and one more
