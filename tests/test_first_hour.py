"""Ordinary calls of a new user: frames with gaps, texts, images, whole dollars."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)
from skvalue.datasets import flip_labels
from skvalue.exceptions import ImpreciseValuesWarning, ManyClassesWarning
from skvalue.inspection import noisy_label_auc, value_removal_curve


def census(n=160):
    """Rows like those of Adult, with labels of which a tenth is wrong."""
    rng = np.random.default_rng(0)
    ages = rng.normal(40, 12, n).round()
    hours = rng.normal(40, 8, n).round()
    classes = rng.choice(["Private", "State-gov", None], n, p=[0.7, 0.2, 0.1])
    education = pd.Categorical(rng.choice(["Bachelors", "HS-grad", "11th"], n))
    frame = pd.DataFrame(
        {"age": ages, "hours": hours, "workclass": classes, "education": education}
    )
    score = (frame.age - 40) / 6 + (frame.education == "Bachelors") * 4 - 1
    y = np.where(score + rng.normal(0, 0.2, n) > 0, ">50K", "<=50K")
    frame.loc[::9, "age"] = np.nan
    return frame, *flip_labels(y, 0.1, random_state=0)


FRAME, LABELS, IS_WRONG = census()
COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours"]),
        ("classes", OneHotEncoder(handle_unknown="ignore"), ["workclass", "education"]),
    ]
)
MODEL = make_pipeline(COLUMNS, LogisticRegression())
TREE = make_pipeline(COLUMNS, DecisionTreeClassifier(max_depth=4))
OOB = DataOOBValuer(TREE, n_estimators=12, random_state=0)
SHAPLEY = DataShapleyValuer(MODEL, max_evaluations=60, random_state=0, batch="never")
few_coalitions = pytest.mark.filterwarnings(
    "ignore::skvalue.exceptions.FailedCoalitionsWarning"
)


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(embedding=COLUMNS), OOB], ids=["knn", "oob"]
)
def test_wrong_labels_in_a_frame_have_low_values(valuer):
    values = valuer.fit(FRAME, LABELS).values_
    assert noisy_label_auc(values, IS_WRONG) > 0.8


@few_coalitions
def test_data_shapley_shares_the_gain_of_a_frame():
    valuer = clone(SHAPLEY)
    valuer.fit(FRAME[:20], LABELS[:20], X_val=FRAME[20:], y_val=LABELS[20:])
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)
    assert gain > 0.1
    assert list(valuer.feature_names_in_) == list(FRAME.columns)


@few_coalitions
def test_gradient_boosting_takes_categories_and_gaps():
    frame = FRAME.astype({"workclass": "category"})
    model = HistGradientBoostingClassifier(
        max_iter=3, categorical_features="from_dtype"
    )
    valuer = DataOOBValuer(model, n_estimators=6, random_state=0).fit(frame, LABELS)
    assert noisy_label_auc(valuer.values_, IS_WRONG) > 0.7


@few_coalitions
def test_gradient_boosting_takes_gaps_in_arrays():
    model = HistGradientBoostingClassifier(
        max_iter=3, categorical_features="from_dtype"
    )
    numbers = FRAME[["age", "hours"]].to_numpy()
    shapley = DataShapleyValuer(
        model, sampler="permutation", max_evaluations=9, random_state=0
    )
    shapley.fit(numbers[:8], LABELS[:8], X_val=numbers, y_val=LABELS)
    assert shapley.values_.shape == (8,)


@few_coalitions
@pytest.mark.parametrize(
    "valuer",
    [KNNShapleyValuer(embedding=COLUMNS), pytest.param(OOB, marks=pytest.mark.slow)],
    ids=["knn", "oob"],
)
def test_filters_and_searches_take_frames(valuer):
    kept, labels = ValueFilter(valuer, drop=0.1).fit_resample(FRAME, LABELS)
    assert isinstance(kept, pd.DataFrame)
    assert len(kept) == len(labels) == 144
    model = ValueFilteredClassifier(MODEL, valuer, drop=0.1)
    search = GridSearchCV(model, {"drop": [0, 0.1]}, cv=2, error_score="raise")
    assert search.fit(FRAME, LABELS).best_score_ > 0.7


SENTENCES = {
    "sport": "the match and the cup final of day",
    "business": "oil prices and the stock market of day",
}
TRUE_TOPICS = np.tile(["sport", "business"], 30)
TEXTS = [f"{SENTENCES[topic]} {day}" for day, topic in enumerate(TRUE_TOPICS)]
TOPICS, IS_WRONG_TOPIC = flip_labels(TRUE_TOPICS, 0.1, random_state=0)
OF_TEXTS = make_pipeline(TfidfVectorizer(), LogisticRegression())
KNN_OF_TEXTS = KNNShapleyValuer(embedding=TfidfVectorizer())
VALUERS_OF_TEXTS = {
    "knn": (KNN_OF_TEXTS, TEXTS),
    "shapley": (
        clone(SHAPLEY).set_params(
            estimator=OF_TEXTS, cv=2, max_evaluations=200, random_state=2
        ),
        TEXTS,
    ),
    "oob": (DataOOBValuer(OF_TEXTS, n_estimators=12, random_state=0), pd.Series(TEXTS)),
}


@few_coalitions
@pytest.mark.parametrize("name", VALUERS_OF_TEXTS)
def test_wrong_topics_of_texts_have_low_values(name):
    valuer, texts = VALUERS_OF_TEXTS[name]
    values = valuer.fit(texts, TOPICS).values_
    assert noisy_label_auc(values, IS_WRONG_TOPIC) > 0.6


@pytest.mark.parametrize("container", [list, pd.Series])
def test_a_classifier_is_trained_on_filtered_texts(container):
    texts = container(TEXTS)
    model = ValueFilteredClassifier(OF_TEXTS, KNN_OF_TEXTS)
    assert cross_val_score(model, texts, TOPICS, cv=2).mean() > 0.8


@pytest.fixture(scope="module")
def dollars():
    """Rows, and prices in whole dollars."""
    X, y = load_diabetes(return_X_y=True)
    return X[:200], y[:200].astype(int)


@pytest.fixture
def no_warnings():
    """Warnings are errors, but for that of few fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ImpreciseValuesWarning)
        yield


def test_a_regressor_makes_targets_of_whole_dollars(dollars, no_warnings):
    X, y = dollars
    oob = DataOOBValuer(Ridge(), n_estimators=20, random_state=0).fit(X, y)
    assert (oob.values_ < 0).all()
    assert not hasattr(oob, "classes_")


def test_whole_dollars_have_the_values_of_floats(dollars, no_warnings):
    X, y = dollars
    shapley = DataShapleyValuer(Ridge(), max_evaluations=700, random_state=0)
    values = []
    for prices in (y, y.astype(float)):
        valuer = clone(shapley)
        valuer.fit(X[:100], prices[:100], X_val=X[100:], y_val=prices[100:])
        values.append(valuer.values_)
    np.testing.assert_array_equal(*values)


def test_a_filtered_regressor_takes_whole_dollars(dollars, no_warnings):
    model = ValueFilteredRegressor(Ridge(), KNNShapleyValuer(), drop=0.1).fit(*dollars)
    assert len(model.dropped_indices_) == 20


def test_a_filter_of_a_regression_keeps_no_row_of_each_price(dollars, no_warnings):
    valuer = DataShapleyValuer(Ridge(), max_evaluations=900)
    row_filter = ValueFilter(valuer, drop=199).fit(*dollars)
    assert len(row_filter.sample_indices_) == 1


def test_whole_dollars_without_a_task_warn(dollars):
    with pytest.warns(ManyClassesWarning, match="for classes. Pass task='regression'"):
        KNNShapleyValuer().fit(*dollars)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_whole_dollars_with_a_task_do_not_warn(task, dollars, no_warnings):
    KNNShapleyValuer(task=task).fit(*dollars)


def test_a_refusal_of_new_prices_names_the_task(dollars):
    X, y = dollars
    message = "unseen labels: .* pass task='regression'"
    with (
        pytest.warns(ManyClassesWarning),
        pytest.raises(ValueError, match=message),
    ):
        DataShapleyValuer().fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])


IMAGES, DIGITS = load_digits(n_class=4, return_X_y=True)
ANNOTATORS = np.array(["ann", "bob", "carl", "dora", "eve"])[np.arange(len(DIGITS)) % 5]
# Eve names the wrong digit.
ANNOTATED = np.where(ANNOTATORS == "eve", (DIGITS + 1) % 4, DIGITS)


def flat(images):
    return images.reshape(len(images), -1)


def annotated(images):
    """Rows and validation points, with the annotators as groups."""
    points = {"X_val": images[200:], "y_val": DIGITS[200:]}
    rows = images[:200], ANNOTATED[:200]
    return rows, {**points, "groups": ANNOTATORS[:200]}


VALUERS_OF_IMAGES = {
    "shapley": (DataShapleyValuer(NearestCentroid()), IMAGES),
    "knn": (KNNShapleyValuer(embedding=flat), IMAGES.reshape(-1, 8, 8)),
}


@pytest.mark.parametrize("name", VALUERS_OF_IMAGES)
def test_the_annotator_of_wrong_digits_has_a_negative_value(name):
    valuer, images = VALUERS_OF_IMAGES[name]
    rows, options = annotated(images)
    valuer = clone(valuer).fit(*rows, **options)
    assert valuer.groups_[valuer.values_ < 0].tolist() == ["eve"]
    row_filter = ValueFilter(valuer, drop="negative").fit(*rows, **options)
    assert set(row_filter.report_.group) == {"eve"}
    np.testing.assert_array_equal(ANNOTATORS[row_filter.dropped_indices_], "eve")
    curve = value_removal_curve(
        NearestCentroid(),
        IMAGES[:200],
        ANNOTATED[:200],
        valuer.values_,
        IMAGES[200:],
        DIGITS[200:],
        groups=ANNOTATORS[:200],
        fractions=[0, 0.2],
        n_repeats=1,
        random_state=0,
    )
    assert curve.scores[0, 1] >= curve.scores[0, 0]


def test_the_annotator_of_wrong_digits_is_harmful():
    valuer, images = VALUERS_OF_IMAGES["knn"]
    rows, options = annotated(images)
    valuer = clone(valuer).fit(*rows, **options)
    assert valuer.groups_[valuer.harmful()].tolist() == ["eve"]
    contributions = valuer.contributions("eve").contributions
    assert contributions.sum() == pytest.approx(valuer.values_[4])


@pytest.fixture(scope="module")
def imbalanced():
    """Clean rows of which a twentieth is of one class; scores of a drop of rows."""
    shape = {"n_informative": 5, "weights": [0.95], "flip_y": 0, "class_sep": 0.8}
    X, y = make_classification(2000, 10, **shape, random_state=0)

    def score(drop, **params):
        model = ValueFilteredClassifier(LogisticRegression(), drop=drop, **params)
        predicted = model.fit(X[:1000], y[:1000]).predict(X[1000:])
        return balanced_accuracy_score(y[1000:], predicted)

    return score


def test_a_filter_that_drops_a_rare_class_warns(imbalanced):
    with pytest.warns(UserWarning, match="class 1"):
        score = imbalanced(0.05)
    assert score < imbalanced(0) - 0.05


@pytest.mark.parametrize(
    "params",
    [{"stratify": True}, {"valuer": KNNShapleyValuer(class_weight="balanced")}],
    ids=["stratify", "class_weight"],
)
def test_a_filter_can_keep_a_rare_class(params, imbalanced, no_warnings):
    assert imbalanced(0.05, **params) > imbalanced(0) - 0.01
