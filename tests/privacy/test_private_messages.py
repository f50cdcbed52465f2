"""What private fits and commands say: no number of a private row, and no refusal."""

import warnings

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
from tests.privacy.one_row import BAD_ROWS, draw_data, in_run, layered, linear_module

MODEL = PriArTaScorer(max_norm=1.0).fit(draw_data(2).X_val).model_


def of_valuer(valuer):
    def fit(X, y, data):
        return clone(valuer).fit(X, y, X_val=data.X_val, y_val=data.y_val)

    return type(valuer).__name__, fit


def of_party(party):
    def fit(X, y, data):
        rows = (X[:, 0],) if isinstance(party, MeanRelease) else (X, y)
        return clone(party).fit(*rows)

    return type(party).__name__, fit


def of_updates(valuer, method):
    """A training that runs elsewhere, whose updates are the rows."""

    def fit(X, y, data):
        training = clone(valuer).start(lambda thetas: -thetas[:, 0], len(X))
        if method == "release":
            training.release(X[0])
        else:
            training.add_round(np.zeros(X.shape[1]), X)
        return training

    return type(valuer).__name__, fit


def counts(X, y, data):
    public = np.vstack([data.X_val] * 6), np.tile(data.y_val, 6)
    return count_improbable_labels(
        X, y, *public, epsilon=1.0, estimator=LogisticRegression()
    )


# Case -> the public name, and a function of rows, targets and data with public points.
FITS = {
    "federated": of_valuer(FederatedSemivalueValuer(epsilon=1.0, n_rounds=2)),
    "federated, torch": of_valuer(
        FederatedSemivalueValuer(
            linear_module(), epsilon=1.0, n_rounds=2, unit="example"
        )
    ),
    **{
        f"federated, {method}": of_updates(
            FederatedSemivalueValuer(epsilon=1.0, n_rounds=2, clip=1.0), method
        )
        for method in ("add_round", "release")
    },
    "gradient": of_valuer(
        GradientSemivalueValuer(epsilon=1.0, n_permutations=3, unit="example")
    ),
    "gradient, directions": of_valuer(
        GradientSemivalueValuer(
            epsilon=1.0, n_permutations=3, n_components=2, clip="median"
        )
    ),
    "gradient, torch": of_valuer(
        GradientSemivalueValuer(linear_module(), epsilon=1.0, n_permutations=3)
    ),
    "in-run": of_valuer(in_run()),
    "in-run, torch": of_valuer(in_run(model=linear_module())),
    "layered": of_valuer(layered(release="publish")),
    "tknn": of_valuer(TKNNShapleyValuer(0.4, epsilon=1.0)),
    "tknn, euclidean": of_valuer(
        TKNNShapleyValuer(1.0, metric="euclidean", epsilon=1.0)
    ),
    "gram": of_party(GramRelease()),
    "logistic": of_party(LogisticRelease()),
    "mean": of_party(MeanRelease()),
    "mean of ones": of_party(MeanRelease(family="bernoulli")),
    "mean of counts": of_party(MeanRelease(family="poisson", upper=5)),
    "seller": ("SellerRelease", lambda X, y, data: SellerRelease(MODEL).fit(X)),
    "improbable labels": ("count_improbable_labels", counts),
}
ODD = "987654"
ODD_ROWS = {
    "number": lambda X: np.where(X[0] == X, 987654.321, X),
    "huge": lambda X: np.where(X[0] == X, 9.87654321e200, X),
    "words": lambda X: np.where(X[0] == X, "987654.321x", X.astype(object)),
    "complex": lambda X: np.where(X[0] == X, 987654.321j, X),
}
ODD_TARGETS = {
    "number": lambda y: np.r_[987654.321, y[1:]],
    "huge": lambda y: np.r_[9.87654321e300, y[1:]],
    "words": lambda y: np.r_[["987654.321x"], y[1:].astype(str)].astype(object),
    "mixed": lambda y: np.array(["987654.321x", *y[1:]], dtype=object),
    "missing": lambda y: np.array([None, *y[1:]], dtype=object),
}


def messages_of(run):
    """All that a run says: its warnings, its error, and its report."""
    messages = []
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        try:
            fitted = run()
            privacy = getattr(fitted, "privacy_", None) or fitted.privacy
            messages += [str(privacy), privacy.to_html(), repr(fitted)]
        except Exception as error:  # a refusal is allowed for columns of another type
            while error is not None:
                messages.append(f"{type(error).__name__}: {error}")
                error = error.__cause__
    return [*messages, *[str(warning.message) for warning in record]]


def fit_private(name, X, y, data):
    _, fit = FITS[name]
    return fit(X, y, data)


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("odd", ODD_ROWS)
def test_no_message_has_a_number_of_a_row(name, odd, n_classes):
    data = draw_data(n_classes)
    X = ODD_ROWS[odd](data.X)
    messages = messages_of(lambda: fit_private(name, X, data.y, data))
    assert not [message for message in messages if ODD in message]


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("odd", ODD_TARGETS)
def test_no_message_has_a_target(name, odd, n_classes):
    data = draw_data(n_classes)
    y = ODD_TARGETS[odd](data.y)
    messages = messages_of(lambda: fit_private(name, data.X, y, data))
    assert not [message for message in messages if ODD in message]


def strings(y):
    return np.array(["no", "yes"], dtype=object)[y]


# Case -> private labels, the first of which is none, and public ones.
ODD_LABELS = {
    "a list": lambda y: (objects([[1, 2], *strings(y)[1:]]), strings),
    "a dict": lambda y: (objects([{}, *strings(y)[1:]]), strings),
    "a number": lambda y: (objects([0.5, *strings(y)[1:]]), strings),
    "None": lambda y: (objects([None, *strings(y)[1:]]), strings),
    "NA": lambda y: (objects([pd.NA, *strings(y)[1:]]), strings),
    "NA of strings": lambda y: (
        pd.Series([pd.NA, *strings(y)[1:]], dtype="string"),
        strings,
    ),
    "NA of integers": lambda y: (pd.Series([pd.NA, *y[1:]], dtype="Int64"), np.asarray),
    "NA of categories": lambda y: (
        pd.Series([None, *strings(y)[1:]], dtype="category"),
        strings,
    ),
}


def objects(entries):
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


@pytest.mark.parametrize("odd", ODD_LABELS)
@pytest.mark.parametrize("name", ["federated", "gradient", "in-run", "layered", "tknn"])
def test_no_label_of_a_private_row_is_refused(name, odd):
    data = draw_data(2)
    y, public = ODD_LABELS[odd](data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit_private(name, data.X, y, data._replace(y_val=public(data.y_val)))
    assert len(fitted.values_) == len(data.y)


@pytest.mark.parametrize("odd", ODD_LABELS)
def test_no_label_of_a_party_is_refused(odd):
    data = draw_data(2)
    y, public = ODD_LABELS[odd](data.y)
    classes = tuple(np.unique(public(data.y)).tolist())
    for order in (classes, classes[::-1]):
        party = LogisticRelease(1e9, classes=order)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statistic = np.array(party.fit(data.X, y).release_.statistic)
            others = party.fit(data.X[1:], public(data.y[1:])).release_.statistic
        # A row of zeros adds nothing.
        np.testing.assert_allclose(statistic, others, atol=1e-2)


def sellers_rows(X, y, data, delta):
    seller = SellerRelease(MODEL, 1.0, delta=delta, relation="add_remove")
    return seller.fit(X)


def counted_rows(X, y, data, delta):
    public = np.vstack([data.X_val] * 6), np.tile(data.y_val, 6)
    return count_improbable_labels(
        X, y, *public, epsilon=1.0, delta=delta, estimator=LogisticRegression()
    )


def valued_rows(X, y, data, delta):
    valuer = TKNNShapleyValuer(0.4, epsilon=1.0, delta=delta)
    return valuer.fit(X, y, X_val=data.X_val, y_val=data.y_val)


@pytest.mark.parametrize("delta", [0.005, 0.02])
@pytest.mark.parametrize("fit", [sellers_rows, counted_rows, valued_rows])
def test_no_warning_depends_on_a_private_number_of_rows(fit, delta):
    data = draw_data(2)

    def warnings_of(n_copies):
        X = np.tile(data.X, (n_copies, 1))
        y = np.tile(data.y, n_copies)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            fit(X, y, data, delta)
        messages = [str(warning.message) for warning in issued]
        return [text for text in messages if not text.startswith("Noise exceeds")]

    few = warnings_of(1)
    assert few == warnings_of(50)
    assert any("delta should be well below" in text for text in few) == (delta > 0.01)


@pytest.mark.parametrize("n_rows", [0, 1, 12])
def test_no_number_of_groups_is_refused_where_rows_may_be_absent(n_rows):
    data = draw_data(2)
    groups = np.array(["a"] * n_rows)
    valuer = TKNNShapleyValuer(0.4, epsilon=1.0)
    public = {"X_val": data.X_val, "y_val": data.y_val}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valuer.fit(data.X[:n_rows], data.y[:n_rows], groups=groups, **public)
    assert valuer.groups_.tolist() == ["a"] * (n_rows > 0)
    assert len(valuer.values_) == len(valuer.groups_)


@pytest.mark.parametrize(
    "fit",
    [
        lambda data, y: data._replace(y=y).fit(TKNNShapleyValuer(epsilon=1.0)),
        lambda data, y: LogisticRelease().fit(data.X, y),
    ],
    ids=["valuer", "party"],
)
def test_private_strings_are_no_labels_of_numbers(fit):
    data = draw_data(2)
    with pytest.raises(ValueError, match="y must hold labels of the type of .*numbers"):
        fit(data, data.y.astype(str))


@pytest.mark.parametrize("entry", [pd.NA, None, 10**400, -(10**400)])
@pytest.mark.parametrize("container", ["frame", "array"])
@pytest.mark.parametrize("name", ["gradient", "tknn", "gram", "logistic"])
def test_an_object_that_is_no_number_is_a_row_of_zeros(name, container, entry):
    data = draw_data(2)
    X = data.X.astype(object)
    X[0, 1] = entry
    if container == "frame":
        X = pd.DataFrame(X)
        data = data._replace(X_val=pd.DataFrame(data.X_val))
    messages = messages_of(lambda: fit_private(name, X, data.y, data))
    assert not [message for message in messages if "Error" in message]


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_row_of_numbers_is_refused_or_warned_of(name, bad):
    data = draw_data(2)
    usual = messages_of(lambda: fit_private(name, data.X, data.y, data))
    other = data.with_row(BAD_ROWS[bad])
    unusual = messages_of(lambda: fit_private(name, other.X, other.y, data))
    # Whether noise exceeds the signal is a function of what was released.
    usual, unusual = (
        [message for message in messages if not message.startswith("Noise exceeds")]
        for messages in (usual, unusual)
    )
    assert [m[:40] for m in unusual[3:]] == [m[:40] for m in usual[3:]]
    assert unusual[:1] == usual[:1]


LONG = np.finfo(np.longdouble).max  # more than a float64 holds, on most machines


def with_first(array, number, dtype=np.float64):
    array = array.astype(dtype)
    array[0] = number
    return array


# Numbers of a row that overflow and underflow.
EXTREME = {
    "denormal": lambda X: with_first(X, 5e-324),
    "square is denormal": lambda X: with_first(X, 1e-160),
    "far apart": lambda X: with_first(X, [1e-300, 1e300, 1e-5]),
    "large": lambda X: with_first(X, 1e160),
    "long": lambda X: with_first(X, LONG, np.longdouble),
}


@pytest.mark.parametrize("setting", ["raise", "warn"])
@pytest.mark.parametrize("extreme", EXTREME)
@pytest.mark.parametrize(
    "name", [name for name in FITS if "torch" not in name and "directions" not in name]
)
def test_no_row_overflows_or_underflows_aloud(name, extreme, setting):
    """Also if numpy is told to raise errors."""
    data = draw_data(2)
    X = EXTREME[extreme](data.X)
    with np.errstate(all=setting):
        messages = messages_of(lambda: fit_private(name, X, data.y, data))
    assert not [text for text in messages if "encountered" in text]


@pytest.mark.parametrize("setting", ["raise", "warn"])
@pytest.mark.parametrize("number", [LONG, 1e-310])
@pytest.mark.parametrize("name", ["gram", "gradient", "in-run"])
def test_no_target_overflows_aloud(name, number, setting):
    data = draw_data(0)
    y = with_first(data.y, number, np.longdouble)
    with np.errstate(all=setting):
        messages = messages_of(lambda: fit_private(name, data.X, y, data))
    assert not [text for text in messages if "encountered" in text]
