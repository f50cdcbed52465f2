"""Valuers that train an estimator take what it takes: frames, texts, sparse rows,
gaps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    GradientSemivalueValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
    TKNNShapleyValuer,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)
from skvalue.exceptions import ManyClassesWarning, UnbatchedFitWarning
from skvalue.games import ModelGame

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)).round(2)
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
CUT = [("part", StandardScaler(), [0, 2])]
BY_NUMBER = make_pipeline(ColumnTransformer(CUT), LogisticRegression())
BY_NAME = make_pipeline(
    ColumnTransformer([("part", StandardScaler(), ["a", "c"])]), LogisticRegression()
)
WORDS = [
    " ".join(["left"] * (i % 5) + ["right"] * (5 - i % 5) + [f"row{i}"])
    for i in range(24)
]
FITS = {"batch": "never", "max_evaluations": 30, "cv": 2, "random_state": 0}
VALUERS = {
    "shapley": DataShapleyValuer(BY_NAME, **FITS),
    "one-out": LeaveOneOutValuer(BY_NAME, cv=2, batch="never"),
    "layered": LayeredShapleyValuer(BY_NAME, **FITS),
    "oob": DataOOBValuer(BY_NAME, n_estimators=12, random_state=0),
}
each = pytest.mark.parametrize("name", VALUERS)


def frame_of(container, rows=X, names=NAMES):
    return container.DataFrame(dict(zip(names, rows.T)))


@each
def test_columns_by_name(name):
    plain = clone(VALUERS[name]).set_params(estimator=BY_NUMBER).fit(X, Y)
    for container in (pd, pl):
        valuer, kind = clone(VALUERS[name]), container.__name__
        values = valuer.set_output(transform=kind).fit_transform(frame_of(container), Y)
        assert isinstance(values, container.DataFrame)
        assert list(valuer.feature_names_in_) == NAMES
        np.testing.assert_array_equal(valuer.values_, plain.values_)
        assert valuer.n_features_in_ == 3


@each
def test_one_row_is_too_few(name):
    with pytest.raises(ValueError, match="X must have at least 2 rows. Got 1."):
        VALUERS[name].fit(pd.DataFrame(X[:1], columns=NAMES), Y[:1])


@each
def test_groups_weights_and_validation_set_of_frames(name):
    frame, groups = frame_of(pd), np.arange(24) % 6
    given = {} if name == "oob" else {"X_val": frame[16:], "y_val": Y[16:]}
    rows = slice(None) if name == "oob" else slice(16)
    valuer = clone(VALUERS[name]).fit(
        frame[rows], Y[rows], groups=groups[rows], **given
    )
    given = {name: np.asarray(part) for name, part in given.items()}
    plain = clone(VALUERS[name]).set_params(estimator=BY_NUMBER)
    plain.fit(X[rows], Y[rows], groups=groups[rows], **given)
    assert valuer.values_.shape == (6,)
    np.testing.assert_array_equal(valuer.values_, plain.values_)


@pytest.mark.parametrize("name", ["shapley", "oob"])
def test_sample_weight_of_sparse_rows(name):
    weights = np.arange(24) % 3
    for rows in (X, sparse.coo_matrix(X), sparse.csc_array(X)):
        valuer = clone(VALUERS[name]).set_params(estimator=GaussianNB())
        if sparse.issparse(rows):
            valuer.set_params(estimator=DecisionTreeClassifier(random_state=0))
        valuer.fit(rows, Y, sample_weight=weights)
        assert valuer.n_features_in_ == 3
    dense = clone(valuer).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(valuer.values_, dense.values_)


@pytest.mark.parametrize("name", ["shapley", "layered", "oob"])
def test_texts(name):
    texts = make_pipeline(CountVectorizer(), LogisticRegression())
    y = np.arange(24) % 5 > 2
    valuer = clone(VALUERS[name]).set_params(estimator=texts).fit(WORDS, y)
    counts = CountVectorizer().fit_transform(WORDS)
    plain = (
        clone(VALUERS[name]).set_params(estimator=LogisticRegression()).fit(counts, y)
    )
    np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-12)
    assert not hasattr(valuer, "n_features_in_")


def test_missing_values_and_three_dimensions():
    gaps = np.where(X > 1, np.nan, X)
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
    shapley = clone(VALUERS["shapley"]).set_params(estimator=model)
    shapley.set_params(sampler="permutation", max_evaluations=17)
    assert shapley.fit(gaps[:16], Y[:16], X_val=gaps[16:], y_val=Y[16:]).values_.any()
    trees = DataOOBValuer(n_estimators=20, random_state=0)
    frame = trees.fit(frame_of(pd, gaps), Y)
    np.testing.assert_array_equal(frame.values_, clone(trees).fit(gaps, Y).values_)
    match = "LogisticRegression, which raised ValueError: Found array with dim 3"
    with pytest.raises(ValueError, match=match):
        DataShapleyValuer().fit(X.reshape(24, 3, 1), Y)


def test_a_numeric_frame_uses_the_batched_solver():
    valuer = DataShapleyValuer(
        LogisticRegression(), max_evaluations=200, random_state=0
    )
    assert valuer.estimate_cost(frame_of(pd), Y).solver == "logistic"
    np.testing.assert_array_equal(
        valuer.fit(frame_of(pd), Y).values_, valuer.fit(X, Y).values_
    )


@pytest.mark.parametrize(
    "rows",
    [
        "frame",
        pytest.param("polars", marks=pytest.mark.slow),
        "texts",
        "sparse",
        "gaps",
    ],
)
def test_rows_that_join_and_rows_of_fit(rows):
    y, model = Y, BY_NAME
    if rows in ("frame", "polars"):
        data = frame_of(pd if rows == "frame" else pl)
    elif rows == "texts":
        data, y = WORDS, np.arange(24) % 5 > 2
        model = make_pipeline(CountVectorizer(), LogisticRegression())
    elif rows == "sparse":
        data, model = sparse.csr_array(X), LogisticRegression()
    else:
        data, model = np.where(X > 1.5, np.nan, X), DecisionTreeClassifier()
    valuer = LayeredShapleyValuer(model, n_layers=1, **FITS)
    first, last = slice(0, 16), slice(16, 24)
    valuer.fit(data[first], y[first], X_val=data[last], y_val=y[last])
    np.testing.assert_allclose(
        valuer.score_samples(data[first], y[first]), valuer.values_
    )
    assert np.isfinite(valuer.transform(data[last])).all()
    core = valuer.core_sets()[0]
    np.testing.assert_allclose(
        core.score_samples(data[last], y[last]),
        valuer.score_samples(data[last], y[last]),
    )


@pytest.mark.parametrize("rows", ["frame", "texts", "sparse"])
def test_checkpoint(rows, tmp_path):
    data = {"frame": frame_of(pd), "texts": WORDS, "sparse": sparse.csr_array(X)}[rows]
    other = {
        "frame": frame_of(pd, X + 1),
        "texts": WORDS[::-1],
        "sparse": sparse.csr_array(X + 1),
    }
    model = {
        "texts": make_pipeline(CountVectorizer(), LogisticRegression()),
        "frame": BY_NAME,
    }
    options = {
        **FITS,
        "sampler": "permutation",
        "estimator": model.get(rows, LogisticRegression()),
    }
    whole = SemivalueValuer(**{**options, "max_evaluations": 60}).fit(data, Y)
    path = tmp_path / "state.npz"
    SemivalueValuer(**options, checkpoint=path).fit(data, Y)
    options["max_evaluations"] = 60
    resumed = SemivalueValuer(**options, checkpoint=path).fit(data, Y)
    np.testing.assert_array_equal(resumed.values_, whole.values_)
    with pytest.raises(ValueError, match="checkpoint resumes a fit on the same data"):
        resumed.fit(other[rows], Y)


def test_the_validation_set_is_of_the_same_kind():
    frame = frame_of(pd)
    valuer = clone(VALUERS["shapley"])
    for wrong, message in [
        (X, "X is a pandas frame. Got an array of numbers"),
        (frame_of(pl), "X is a pandas frame. Got a polars frame"),
        (WORDS, "Got one text or object per row"),
        (frame[["b", "a", "c"]], "feature names should match"),
        (frame[["a", "c"]], "feature names should match|has 2 features"),
    ]:
        with pytest.raises(ValueError, match=f"X_val must be like X: .*({message})"):
            valuer.fit(frame, Y, X_val=wrong, y_val=Y)
    plain = DataShapleyValuer(max_evaluations=100)
    with pytest.raises(
        ValueError, match="X_val must be like X: X is an array of numbers. Got one"
    ):
        plain.fit(X, Y, X_val=WORDS, y_val=Y)
    sparse_val = plain.set_params(random_state=0).fit(
        X, Y, X_val=sparse.csr_array(X), y_val=Y
    )
    np.testing.assert_array_equal(
        sparse_val.values_, plain.fit(X, Y, X_val=X, y_val=Y).values_
    )


@pytest.mark.parametrize(
    "valuer", [DataShapleyValuer(), DataOOBValuer(), LayeredShapleyValuer()]
)
def test_an_estimator_that_cannot_take_the_rows(valuer):
    with pytest.raises(
        ValueError, match="estimator must train on all .* need a pipeline"
    ):
        valuer.fit(frame_of(pd).assign(a=WORDS), Y)
    if not isinstance(valuer, DataOOBValuer):
        with pytest.raises(
            ValueError, match="LogisticRegression, which raised"
        ) as raised:
            valuer.fit(X, Y, X_val=np.where(X > 1, np.nan, X), y_val=Y)
        assert "NaN" in str(raised.value.__cause__)


class Shows(DecisionTreeClassifier):
    """Its errors show the first entry of X."""

    def fit(self, X, y):
        raise ValueError(f"cannot train on {X[0, 0]}")


SECRET = 12345.678
SHOWN = {
    "fit": (clone(VALUERS["shapley"]).set_params(estimator=Shows()), X + SECRET, Y),
    "oob": (DataOOBValuer(Shows()), frame_of(pd) + SECRET, Y),
    "y": (KNNShapleyValuer(), X, X[:, 0] + SECRET * 1j),
    "estimator's y": (DataShapleyValuer(Ridge()), X, X[:, 0] + SECRET * 1j),
    "filter's y": (ValueFilteredRegressor(Ridge()), X, X[:, 0] + SECRET * 1j),
    "X": (KNNShapleyValuer(), X + SECRET * 1j, Y),
    "strings": (DataShapleyValuer(Ridge()), X, np.full(24, f"{SECRET}?")),
}


@pytest.mark.parametrize("name", SHOWN)
def test_messages_show_no_entry(name):
    valuer, rows, y = SHOWN[name]
    with pytest.raises(
        ValueError, match="numbers|the cause of this error|Complex data"
    ) as raised:
        valuer.fit(rows, y)
    assert "12345" not in str(raised.value)


def test_input_tags_follow_the_estimator():
    class Words(DecisionTreeClassifier):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
            return tags

    for valuer in (DataShapleyValuer(), DataOOBValuer(), LayeredShapleyValuer()):
        assert not get_tags(valuer.set_params(estimator=GaussianNB())).input_tags.sparse
        tags = get_tags(
            valuer.set_params(estimator=HistGradientBoostingClassifier())
        ).input_tags
        assert tags.allow_nan
        filtered = ValueFilteredClassifier(HistGradientBoostingClassifier(), valuer)
        assert get_tags(filtered).input_tags.allow_nan
        tags = get_tags(valuer.set_params(estimator=Words())).input_tags
        assert tags.string
        assert not tags.two_d_array
    assert not get_tags(LayeredShapleyValuer(l2=1.0)).input_tags.sparse


def test_hint_of_what_keeps_models_from_batches():
    scaled = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced")
    )
    for estimator, what in [
        (scaled, "the steps before LogisticRegression .* and class_weight: transform"),
        (
            LogisticRegression(class_weight="balanced"),
            "of class_weight: pass sample_weight",
        ),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
            "before KNeighborsClassifier",
        ),
    ]:
        for cls in (SemivalueValuer, LayeredShapleyValuer):
            with pytest.warns(UnbatchedFitWarning, match=what) as told:
                cls(estimator, max_evaluations=12, cv=2, random_state=0).fit(
                    X[:8], Y[:8]
                )
            hints = [w for w in told if w.category is UnbatchedFitWarning]
            assert len(hints) == 1
            assert hints[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnbatchedFitWarning)
        for model, batch in [
            (scaled, "never"),
            (make_pipeline(StandardScaler(), DecisionTreeClassifier()), "auto"),
            (LogisticRegression(l1_ratio=1.0, solver="liblinear"), "auto"),
        ]:
            SemivalueValuer(model, batch=batch, max_evaluations=12, cv=2).fit(
                X[:8], Y[:8]
            )


def test_the_task_is_that_of_the_estimator():
    y = np.arange(24) % 4
    assert not hasattr(DataOOBValuer(DecisionTreeRegressor(), 20).fit(X, y), "classes_")
    assert hasattr(DataOOBValuer(DecisionTreeClassifier(), 20).fit(X, y), "classes_")
    assert not hasattr(LayeredShapleyValuer(Ridge(), n_layers=1).fit(X, y), "classes_")
    with pytest.raises(
        ValueError, match="estimator must be a classifier for classes.* Got Ridge"
    ):
        DataOOBValuer(Ridge(), task="classification").fit(X, y)
    for valuer in (DataOOBValuer(GaussianNB()), DataShapleyValuer(GaussianNB())):
        with pytest.raises(
            ValueError, match="must be a regressor with task='regression'"
        ):
            ValueFilteredRegressor(Ridge(), valuer).fit(X, y)


def test_whole_numbers_that_may_be_a_regression():
    rows = RNG.normal(size=(200, 2))
    years, codes = RNG.integers(0, 40, 200) * 10, np.arange(200) % 40
    with pytest.warns(
        ManyClassesWarning, match="y has 40 different whole numbers"
    ) as told:
        KNNShapleyValuer().fit(rows, years)
    assert told[0].filename == __file__
    with pytest.warns(ManyClassesWarning, match="use a valuer with task='regression'"):
        TKNNShapleyValuer(epsilon=1.0).fit(rows, years, X_val=rows + 1, y_val=years)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManyClassesWarning)
        KNNShapleyValuer().fit(rows, codes)
        KNNShapleyValuer().fit(rows, years.astype(str))
        KNNShapleyValuer().fit(rows[:20], np.arange(20) * 3 % 11)


REFUSED = [
    (frame_of(pd).assign(a=WORDS), "columns of other types: a", "ColumnTransformer"),
    (
        frame_of(pl).with_columns(pl.Series("b", WORDS)),
        "other types: b",
        "ColumnTransformer",
    ),
    (np.c_[X.astype(object), WORDS], "Got an array of objects", "ColumnTransformer"),
    (WORDS, "Got one text or object per row", "TfidfVectorizer"),
    (np.where(X > 1, np.nan, X), "Input X contains NaN", "SimpleImputer"),
]


@pytest.mark.parametrize(
    ("rows", "what", "cure"), REFUSED, ids=lambda part: str(part)[:9]
)
def test_refused_rows_name_the_cure(rows, what, cure):
    for valuer, how in [
        (KNNShapleyValuer(), "Pass embedding="),
        (TKNNShapleyValuer(0.5), "Pass embedding="),
        (GradientSemivalueValuer(), "Transform the rows first, for example by "),
    ]:
        with pytest.raises(ValueError, match=f"{what}.*{how}.*{cure}") as told:
            valuer.fit(rows, Y)
        message = "".join(map(str, [told.value, told.value.__cause__]))
        assert "left right" not in message  # no entry is shown
        assert "HistGradientBoosting" not in message
        with pytest.raises(ValueError, match=f"X_val must be like X.*{cure}"):
            valuer.fit(X, Y, X_val=rows, y_val=Y)
    with pytest.raises(ValueError, match="embedding must return finite numbers"):
        KNNShapleyValuer(embedding=lambda rows: np.full((len(rows), 2), np.nan)).fit(
            rows, Y
        )


@pytest.mark.parametrize(
    "valuer",
    [
        DataShapleyValuer(cv=2),
        DataOOBValuer(),
        KNNShapleyValuer(),
        KNNShapleyValuer(embedding=len),
    ],
    ids=["shapley", "oob", "knn", "embedding"],
)
def test_a_dict_of_arrays_is_refused(valuer):
    columns = {"left": X[:, :1], "right": X[:, 1:]}
    match = (
        "X must have one entry per row, .* Got a dict: pass its arrays as the columns"
    )
    with pytest.raises(TypeError, match=match):
        valuer.fit(columns, Y)
    with pytest.raises(TypeError, match=match):
        ValueFilteredClassifier(LogisticRegression(), valuer).fit(columns, Y)
    with pytest.raises(TypeError, match="X_val must have one entry per row"):
        DataShapleyValuer().fit(X, Y, X_val=columns, y_val=Y)


def test_games_of_frames_and_texts():
    masks = np.tri(24, dtype=bool)[[5, 11, 23]]
    frame = ModelGame(BY_NAME, frame_of(pd), Y, frame_of(pd), Y)
    np.testing.assert_array_equal(
        frame.utility(masks), ModelGame(BY_NUMBER, X, Y, X, Y).utility(masks)
    )
    assert frame.n_failed == 0
    frame.require_trainable()
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    texts = ModelGame(model, WORDS, Y, pd.Series(WORDS), Y)
    assert texts.utility(masks).shape == (3,)
    with pytest.warns(UnbatchedFitWarning):
        ModelGame(
            make_pipeline(StandardScaler(), GaussianNB()), X, Y, X, Y
        ).warn_unbatched()
    with pytest.raises(ValueError, match="A regression needs a regressor"):
        ModelGame(LogisticRegression(), X, np.arange(24), X, np.arange(24) + 2)
