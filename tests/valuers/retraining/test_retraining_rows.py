"""Valuers that train an estimator take what it takes: frames, texts, sparse rows."""

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
SLOW = pytest.mark.slow

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(size=(24, 3)).round(2)
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
WITH_GAPS = np.where(X > 1, np.nan, X)
WORDS = [
    " ".join(["left"] * (i % 5) + ["right"] * (5 - i % 5) + [f"row{i}"])
    for i in range(24)
]
MANY_LEFT = np.arange(24) % 5 > 2  # labels of the texts

OF_TEXTS = make_pipeline(CountVectorizer(), LogisticRegression())
BY_NUMBER = make_pipeline(
    ColumnTransformer([("scaled", StandardScaler(), [0, 2])]), LogisticRegression()
)
BY_NAME = make_pipeline(
    ColumnTransformer([("scaled", StandardScaler(), ["a", "c"])]), LogisticRegression()
)

SMALL = {"batch": "never", "max_evaluations": 30, "cv": 2, "random_state": 0}
VALUERS = {
    "shapley": DataShapleyValuer(BY_NAME, **SMALL),
    "one-out": LeaveOneOutValuer(BY_NAME, cv=2, batch="never"),
    "layered": LayeredShapleyValuer(BY_NAME, **SMALL),
    "oob": DataOOBValuer(BY_NAME, n_estimators=12, random_state=0),
}
ALL_VALUERS = pytest.mark.parametrize("name", VALUERS)


def frame_of(container, rows=X, names=NAMES):
    return container.DataFrame(dict(zip(names, rows.T)))


def valuer_of(name, **parameters):
    return clone(VALUERS[name]).set_params(**parameters)


# Containers ---------------------------------------------------------------------------


@pytest.mark.parametrize("container", [pd, pl])
@ALL_VALUERS
def test_frames_have_the_values_of_arrays(name, container):
    valuer = valuer_of(name).set_output(transform=container.__name__)
    values = valuer.fit_transform(frame_of(container), Y)
    assert isinstance(values, container.DataFrame)
    assert list(valuer.feature_names_in_) == NAMES
    assert valuer.n_features_in_ == 3
    of_array = valuer_of(name, estimator=BY_NUMBER).fit(X, Y)
    np.testing.assert_array_equal(valuer.values_, of_array.values_)


@ALL_VALUERS
def test_one_row_is_refused(name):
    with pytest.raises(ValueError, match="X must have at least 2 rows. Got 1."):
        VALUERS[name].fit(pd.DataFrame(X[:1], columns=NAMES), Y[:1])


@pytest.mark.parametrize("name", ["shapley", "one-out", "layered"])
def test_groups_and_points_of_frames_have_the_values_of_arrays(name):
    frame = frame_of(pd)
    groups = np.arange(16) % 6
    valuer = valuer_of(name)
    valuer.fit(frame[:16], Y[:16], X_val=frame[16:], y_val=Y[16:], groups=groups)
    of_array = valuer_of(name, estimator=BY_NUMBER)
    of_array.fit(X[:16], Y[:16], X_val=X[16:], y_val=Y[16:], groups=groups)
    assert valuer.values_.shape == (6,)
    np.testing.assert_array_equal(valuer.values_, of_array.values_)


def test_groups_of_frames_have_the_values_of_arrays_out_of_bag():
    groups = np.arange(24) % 6
    valuer = valuer_of("oob").fit(frame_of(pd), Y, groups=groups)
    of_array = valuer_of("oob", estimator=BY_NUMBER).fit(X, Y, groups=groups)
    assert valuer.values_.shape == (6,)
    np.testing.assert_array_equal(valuer.values_, of_array.values_)


@pytest.mark.parametrize("container", [sparse.coo_matrix, sparse.csc_array])
@pytest.mark.parametrize("name", ["shapley", "oob"])
def test_sparse_rows_with_weights_have_the_values_of_dense_ones(name, container):
    weights = np.arange(24) % 3
    valuer = valuer_of(name, estimator=DecisionTreeClassifier(random_state=0))
    dense = clone(valuer).fit(X, Y, sample_weight=weights)
    valuer.fit(container(X), Y, sample_weight=weights)
    assert valuer.n_features_in_ == 3
    np.testing.assert_array_equal(valuer.values_, dense.values_)


@pytest.mark.parametrize("name", ["shapley", "oob"])
def test_rows_may_have_weights(name):
    valuer = valuer_of(name, estimator=GaussianNB())
    valuer.fit(X, Y, sample_weight=np.arange(24) % 3)
    assert valuer.n_features_in_ == 3


@pytest.mark.parametrize("name", ["shapley", "layered", "oob"])
def test_texts_have_the_values_of_their_counts(name):
    valuer = valuer_of(name, estimator=OF_TEXTS).fit(WORDS, MANY_LEFT)
    counts = CountVectorizer().fit_transform(WORDS)
    of_counts = valuer_of(name, estimator=LogisticRegression()).fit(counts, MANY_LEFT)
    np.testing.assert_allclose(valuer.values_, of_counts.values_, atol=1e-12)
    assert not hasattr(valuer, "n_features_in_")


def test_rows_with_gaps_are_valued_by_an_estimator_that_takes_them():
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
    valuer = valuer_of(
        "shapley", estimator=model, sampler="permutation", max_evaluations=17
    )
    rows = WITH_GAPS[:16]
    points = WITH_GAPS[16:]
    assert valuer.fit(rows, Y[:16], X_val=points, y_val=Y[16:]).values_.any()


def test_frames_with_gaps_have_the_values_of_arrays():
    valuer = DataOOBValuer(n_estimators=20, random_state=0)
    of_frame = clone(valuer).fit(frame_of(pd, WITH_GAPS), Y)
    np.testing.assert_array_equal(of_frame.values_, valuer.fit(WITH_GAPS, Y).values_)


def test_three_dimensions_are_refused_by_the_estimator():
    match = "LogisticRegression, which raised ValueError: Found array with dim 3"
    with pytest.raises(ValueError, match=match):
        DataShapleyValuer().fit(X.reshape(24, 3, 1), Y)


class TestANumericFrame:
    valuer = DataShapleyValuer(
        LogisticRegression(), max_evaluations=200, random_state=0
    )

    def test_it_is_valued_by_the_batched_solver(self):
        assert self.valuer.estimate_cost(frame_of(pd), Y).solver == "logistic"

    def test_it_has_the_values_of_an_array(self):
        of_frame = clone(self.valuer).fit(frame_of(pd), Y)
        of_array = clone(self.valuer).fit(X, Y)
        np.testing.assert_array_equal(of_frame.values_, of_array.values_)


ROWS = {  # rows, labels and an estimator
    "frame": (frame_of(pd), Y, BY_NAME),
    "polars": (frame_of(pl), Y, BY_NAME),
    "texts": (WORDS, MANY_LEFT, OF_TEXTS),
    "sparse": (sparse.csr_array(X), Y, LogisticRegression()),
    "gaps": (np.where(X > 1.5, np.nan, X), Y, DecisionTreeClassifier(random_state=0)),
}


@pytest.mark.parametrize(
    "rows", ["frame", pytest.param("polars", marks=SLOW), "texts", "sparse", "gaps"]
)
class TestRowsThatJoin:
    @pytest.fixture
    def fitted(self, rows):
        data, y, model = ROWS[rows]
        valuer = LayeredShapleyValuer(model, n_layers=1, **SMALL)
        return valuer.fit(data[:16], y[:16], X_val=data[16:], y_val=y[16:])

    def test_rows_of_fit_have_their_values(self, rows, fitted):
        data, y, _ = ROWS[rows]
        scores = fitted.score_samples(data[:16], y[:16])
        np.testing.assert_allclose(scores, fitted.values_)

    def test_other_rows_have_values_without_labels(self, rows, fitted):
        data, _, _ = ROWS[rows]
        assert np.isfinite(fitted.transform(data[16:])).all()

    def test_the_core_set_values_other_rows_alike(self, rows, fitted):
        data, y, _ = ROWS[rows]
        (core,) = fitted.core_sets()
        np.testing.assert_allclose(
            core.score_samples(data[16:], y[16:]),
            fitted.score_samples(data[16:], y[16:]),
        )


OTHER_ROWS = {
    "frame": frame_of(pd, X + 1),
    "texts": WORDS[::-1],
    "sparse": sparse.csr_array(X + 1),
}


@pytest.mark.parametrize("rows", OTHER_ROWS)
class TestCheckpoints:
    def valuer(self, rows, max_evaluations, **options):
        _, _, model = ROWS[rows]
        parameters = {**SMALL, "max_evaluations": max_evaluations, **options}
        return SemivalueValuer(model, sampler="permutation", **parameters)

    def test_a_fit_of_the_same_rows_resumes(self, rows, tmp_path):
        data, _, _ = ROWS[rows]
        path = tmp_path / "state.npz"
        self.valuer(rows, 30, checkpoint=path).fit(data, Y)
        resumed = self.valuer(rows, 60, checkpoint=path).fit(data, Y)
        uninterrupted = self.valuer(rows, 60).fit(data, Y)
        np.testing.assert_array_equal(resumed.values_, uninterrupted.values_)

    def test_a_fit_of_other_rows_is_refused(self, rows, tmp_path):
        data, _, _ = ROWS[rows]
        valuer = self.valuer(rows, 60, checkpoint=tmp_path / "state.npz").fit(data, Y)
        with pytest.raises(
            ValueError, match="checkpoint resumes a fit on the same data"
        ):
            valuer.fit(OTHER_ROWS[rows], Y)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (X, "X is a pandas frame. Got an array of numbers"),
        (frame_of(pl), "X is a pandas frame. Got a polars frame"),
        (WORDS, "Got one text or object per row"),
        (frame_of(pd)[["b", "a", "c"]], "feature names should match"),
        (frame_of(pd)[["a", "c"]], "feature names should match|has 2 features"),
    ],
    ids=["array", "polars", "texts", "order of columns", "missing column"],
)
def test_points_of_another_kind_than_a_frame_are_refused(points, message):
    with pytest.raises(ValueError, match=f"X_val must be like X: .*({message})"):
        valuer_of("shapley").fit(frame_of(pd), Y, X_val=points, y_val=Y)


def test_points_of_another_kind_than_an_array_are_refused():
    with pytest.raises(
        ValueError, match="X_val must be like X: X is an array of numbers. Got one"
    ):
        DataShapleyValuer(max_evaluations=100).fit(X, Y, X_val=WORDS, y_val=Y)


def test_sparse_points_of_dense_rows_are_taken():
    valuer = DataShapleyValuer(max_evaluations=100, random_state=0)
    dense = clone(valuer).fit(X, Y, X_val=X, y_val=Y)
    valuer.fit(X, Y, X_val=sparse.csr_array(X), y_val=Y)
    np.testing.assert_array_equal(valuer.values_, dense.values_)


# Errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "valuer", [DataShapleyValuer(), DataOOBValuer(), LayeredShapleyValuer()]
)
def test_an_estimator_that_cannot_take_the_rows_is_named_with_a_cure(valuer):
    with pytest.raises(
        ValueError, match="estimator must train on all .* need a pipeline"
    ):
        valuer.fit(frame_of(pd).assign(a=WORDS), Y)


@pytest.mark.parametrize("valuer", [DataShapleyValuer(), LayeredShapleyValuer()])
def test_an_estimator_that_cannot_take_the_points_is_named(valuer):
    with pytest.raises(ValueError, match="LogisticRegression, which raised") as raised:
        valuer.fit(X, Y, X_val=WITH_GAPS, y_val=Y)
    assert "NaN" in str(raised.value.__cause__)


class Revealing(DecisionTreeClassifier):
    """Its errors show the first entry of X."""

    def fit(self, X, y):
        raise ValueError(f"cannot train on {X[0, 0]}")


SECRET = 12345.678
REVEALED = {  # valuer, rows and labels whose errors could show them
    "fit": (valuer_of("shapley", estimator=Revealing()), X + SECRET, Y),
    "oob": (DataOOBValuer(Revealing()), frame_of(pd) + SECRET, Y),
    "y": (KNNShapleyValuer(), X, X[:, 0] + SECRET * 1j),
    "estimator's y": (DataShapleyValuer(Ridge()), X, X[:, 0] + SECRET * 1j),
    "filter's y": (ValueFilteredRegressor(Ridge()), X, X[:, 0] + SECRET * 1j),
    "X": (KNNShapleyValuer(), X + SECRET * 1j, Y),
    "strings": (DataShapleyValuer(Ridge()), X, np.full(24, f"{SECRET}?")),
}


@pytest.mark.parametrize("name", REVEALED)
def test_no_message_shows_an_entry(name):
    valuer, rows, y = REVEALED[name]
    with pytest.raises(
        ValueError, match="numbers|the cause of this error|Complex data"
    ) as raised:
        valuer.fit(rows, y)
    assert "12345" not in str(raised.value)


# Tags and hints -----------------------------------------------------------------------


class OfTexts(DecisionTreeClassifier):
    """Says that it takes texts."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@pytest.mark.parametrize(
    "cls", [DataShapleyValuer, DataOOBValuer, LayeredShapleyValuer]
)
class TestInputTags:
    def test_they_are_dense_for_an_estimator_of_dense_rows(self, cls):
        assert not get_tags(cls(GaussianNB())).input_tags.sparse

    def test_they_allow_gaps_for_an_estimator_that_takes_them(self, cls):
        assert get_tags(cls(HistGradientBoostingClassifier())).input_tags.allow_nan

    def test_a_filter_allows_gaps_with_such_a_valuer(self, cls):
        model = HistGradientBoostingClassifier()
        filtered = ValueFilteredClassifier(model, cls(model))
        assert get_tags(filtered).input_tags.allow_nan

    def test_they_are_texts_for_an_estimator_of_texts(self, cls):
        tags = get_tags(cls(OfTexts())).input_tags
        assert tags.string
        assert not tags.two_d_array


def test_input_tags_are_dense_for_the_stable_estimator():
    assert not get_tags(LayeredShapleyValuer(l2=1.0)).input_tags.sparse


BALANCED = LogisticRegression(class_weight="balanced")
SCALED = make_pipeline(StandardScaler(), BALANCED)
FEW = {"max_evaluations": 12, "cv": 2, "random_state": 0}


@pytest.mark.parametrize("cls", [SemivalueValuer, LayeredShapleyValuer])
@pytest.mark.parametrize(
    ("estimator", "obstacle"),
    [
        (
            SCALED,
            "the steps before LogisticRegression .* and class_weight: transform",
        ),
        (BALANCED, "of class_weight: pass sample_weight"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
            "before KNeighborsClassifier",
        ),
    ],
    ids=["scaled and balanced", "balanced", "scaled"],
)
def test_a_hint_says_once_what_keeps_models_from_batches(cls, estimator, obstacle):
    with pytest.warns(UnbatchedFitWarning, match=obstacle) as caught:
        cls(estimator, **FEW).fit(X[:8], Y[:8])
    (warning,) = (w for w in caught if w.category is UnbatchedFitWarning)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("estimator", "batch"),
    [
        (SCALED, "never"),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()), "auto"),
        (LogisticRegression(l1_ratio=1.0, solver="liblinear"), "auto"),
    ],
    ids=["no batches wanted", "no solver", "no solver for the parameters"],
)
def test_no_hint_is_given_where_models_cannot_be_batched(estimator, batch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnbatchedFitWarning)
        SemivalueValuer(estimator, batch=batch, **FEW).fit(X[:8], Y[:8])


# The task -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("valuer", "is_classification"),
    [
        (DataOOBValuer(DecisionTreeRegressor(), 20), False),
        (DataOOBValuer(DecisionTreeClassifier(), 20), True),
        (LayeredShapleyValuer(Ridge(), n_layers=1), False),
    ],
    ids=["regression trees", "trees", "ridge"],
)
def test_the_task_is_that_of_the_estimator(valuer, is_classification):
    valuer.fit(X, np.arange(24) % 4)
    assert hasattr(valuer, "classes_") == is_classification


def test_a_regressor_of_classes_is_refused():
    with pytest.raises(
        ValueError, match="estimator must be a classifier for classes.* Got Ridge"
    ):
        DataOOBValuer(Ridge(), task="classification").fit(X, np.arange(24) % 4)


@pytest.mark.parametrize("cls", [DataOOBValuer, DataShapleyValuer])
def test_a_classifier_of_targets_is_refused(cls):
    filtered = ValueFilteredRegressor(Ridge(), cls(GaussianNB()))
    with pytest.raises(ValueError, match="must be a regressor with task='regression'"):
        filtered.fit(X, np.arange(24) % 4)


class TestWholeNumbers:
    """Labels that may be the targets of a regression."""

    rows = np.random.default_rng(1).normal(size=(200, 2))
    years = np.random.default_rng(2).integers(0, 40, 200) * 10

    def test_many_of_them_are_warned_of_at_the_users_line(self):
        n_labels = len(np.unique(self.years))
        with pytest.warns(
            ManyClassesWarning, match=f"y has {n_labels} different whole numbers"
        ) as caught:
            KNNShapleyValuer().fit(self.rows, self.years)
        assert caught[0].filename == __file__

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float16])
    def test_small_integers_are_warned_of(self, dtype):
        """The differences of some overflow."""
        low = 0 if dtype is np.uint8 else -120
        y = np.random.default_rng(2).integers(low, 121, 200).astype(dtype)
        y[:2] = low, 120
        with pytest.warns(ManyClassesWarning):
            KNNShapleyValuer().fit(self.rows, y)

    def test_the_warning_of_a_method_of_classes_names_a_valuer(self):
        valuer = TKNNShapleyValuer(epsilon=1.0)
        with pytest.warns(
            ManyClassesWarning, match="use a valuer with task='regression'"
        ):
            valuer.fit(self.rows, self.years, X_val=self.rows + 1, y_val=self.years)

    @pytest.mark.parametrize(
        ("rows", "y"),
        [
            (rows, np.arange(200) % 40),
            (rows, years.astype(str)),
            (rows[:20], np.arange(20) * 3 % 11),
        ],
        ids=["codes", "strings", "few rows"],
    )
    def test_those_that_are_labels_are_not(self, rows, y):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ManyClassesWarning)
            KNNShapleyValuer().fit(rows, y)


# Rows that other valuers refuse -------------------------------------------------------

REFUSED_ROWS = pytest.mark.parametrize(
    ("rows", "message", "cure"),
    [
        (
            frame_of(pd).assign(a=WORDS),
            "columns of other types: a",
            "ColumnTransformer",
        ),
        (
            frame_of(pl).with_columns(pl.Series("b", WORDS)),
            "other types: b",
            "ColumnTransformer",
        ),
        (
            np.c_[X.astype(object), WORDS],
            "Got an array of objects",
            "ColumnTransformer",
        ),
        (WORDS, "Got one text or object per row", "TfidfVectorizer"),
        (WITH_GAPS, "Input X contains NaN", "SimpleImputer"),
    ],
    ids=["pandas", "polars", "objects", "texts", "gaps"],
)
REFUSING = pytest.mark.parametrize(
    ("valuer", "advice"),
    [
        (KNNShapleyValuer(), "Pass embedding="),
        (TKNNShapleyValuer(0.5), "Pass embedding="),
        (GradientSemivalueValuer(), "Transform the rows first, for example by "),
    ],
    ids=["knn", "tknn", "gradients"],
)


@REFUSING
@REFUSED_ROWS
def test_refused_rows_name_the_cure_and_show_no_entry(
    rows, message, cure, valuer, advice
):
    with pytest.raises(ValueError, match=f"{message}.*{advice}.*{cure}") as raised:
        valuer.fit(rows, Y)
    text = f"{raised.value}{raised.value.__cause__}"
    assert "left right" not in text
    assert "HistGradientBoosting" not in text


@REFUSING
@REFUSED_ROWS
def test_refused_points_name_the_cure(rows, message, cure, valuer, advice):
    with pytest.raises(ValueError, match=f"X_val must be like X.*{cure}"):
        valuer.fit(X, Y, X_val=rows, y_val=Y)


@REFUSED_ROWS
def test_an_embedding_of_such_rows_must_be_finite(rows, message, cure):
    valuer = KNNShapleyValuer(embedding=lambda rows: np.full((len(rows), 2), np.nan))
    with pytest.raises(ValueError, match="embedding must return finite numbers"):
        valuer.fit(rows, Y)


COLUMNS = {"left": X[:, :1], "right": X[:, 1:]}


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
@pytest.mark.parametrize("is_filter", [False, True], ids=["valuer", "filter"])
def test_a_dict_of_arrays_is_refused(valuer, is_filter):
    if is_filter:
        valuer = ValueFilteredClassifier(LogisticRegression(), valuer)
    match = (
        "X must have one entry per row, .* Got a dict: pass its arrays as the columns"
    )
    with pytest.raises(TypeError, match=match):
        valuer.fit(COLUMNS, Y)


def test_a_dict_of_points_is_refused():
    with pytest.raises(TypeError, match="X_val must have one entry per row"):
        DataShapleyValuer().fit(X, Y, X_val=COLUMNS, y_val=Y)


# Games --------------------------------------------------------------------------------

MASKS = np.tri(24, dtype=bool)[[5, 11, 23]]


def test_a_game_of_a_frame_has_the_utilities_of_an_array():
    game = ModelGame(BY_NAME, frame_of(pd), Y, frame_of(pd), Y)
    of_array = ModelGame(BY_NUMBER, X, Y, X, Y)
    np.testing.assert_array_equal(game.utility(MASKS), of_array.utility(MASKS))
    assert game.n_failed == 0
    game.require_trainable()


def test_a_game_takes_texts():
    game = ModelGame(OF_TEXTS, WORDS, Y, pd.Series(WORDS), Y)
    assert game.utility(MASKS).shape == (3,)


def test_a_game_says_that_its_fits_are_not_batched():
    scaled = make_pipeline(StandardScaler(), GaussianNB())
    with pytest.warns(UnbatchedFitWarning):
        ModelGame(scaled, X, Y, X, Y).warn_unbatched()


def test_a_game_of_targets_needs_a_regressor():
    with pytest.raises(ValueError, match="A regression needs a regressor"):
        ModelGame(LogisticRegression(), X, np.arange(24), X, np.arange(24) + 2)
