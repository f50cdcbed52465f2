"""Ordinary calls of a new user: frames with categories and gaps, texts, whole
dollars."""

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
    frame = pd.DataFrame({
        "age": rng.normal(40, 12, n).round(),
        "hours": rng.normal(40, 8, n).round(),
        "workclass": rng.choice(["Private", "State-gov", None], n, p=[0.7, 0.2, 0.1]),
        "education": pd.Categorical(rng.choice(["Bachelors", "HS-grad", "11th"], n)),
    })  # fmt: skip
    score = (frame.age - 40) / 6 + (frame.education == "Bachelors") * 4 - 1
    y = np.where(score + rng.normal(0, 0.2, n) > 0, ">50K", "<=50K")
    frame.loc[::9, "age"] = np.nan
    return frame, *flip_labels(y, 0.1, random_state=0)


FRAME, LABELS, WRONG = census()
COLUMNS = ColumnTransformer([
    ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours"]),
    ("classes", OneHotEncoder(handle_unknown="ignore"), ["workclass", "education"]),
])  # fmt: skip
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
def test_wrong_labels_in_a_frame(valuer):
    values = valuer.fit(FRAME, LABELS).values_
    assert noisy_label_auc(values, WRONG) > 0.8


@few_coalitions
def test_data_shapley_of_a_frame():
    train, val = slice(0, 20), slice(20, None)
    valuer = clone(SHAPLEY).fit(
        FRAME[train], LABELS[train], X_val=FRAME[val], y_val=LABELS[val]
    )
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
    assert noisy_label_auc(valuer.values_, WRONG) > 0.7
    ages = frame[["age", "hours"]].to_numpy()
    shapley = DataShapleyValuer(
        model, sampler="permutation", max_evaluations=9, random_state=0
    )
    shapley.fit(ages[:8], LABELS[:8], X_val=ages, y_val=LABELS)
    assert shapley.values_.shape == (8,)


@few_coalitions
@pytest.mark.parametrize(
    "valuer",
    [KNNShapleyValuer(embedding=COLUMNS), pytest.param(OOB, marks=pytest.mark.slow)],
    ids=["knn", "oob"],
)
def test_filters_and_searches_of_frames(valuer):
    kept, labels = ValueFilter(valuer, drop=0.1).fit_resample(FRAME, LABELS)
    assert isinstance(kept, pd.DataFrame)
    assert len(kept) == len(labels) == 144
    model = ValueFilteredClassifier(MODEL, valuer, drop=0.1)
    search = GridSearchCV(model, {"drop": [0, 0.1]}, cv=2, error_score="raise")
    assert search.fit(FRAME, LABELS).best_score_ > 0.7


TEXTS = [
    f"{'oil prices and the stock market' if i % 2 else 'the match and the cup final'} of day {i}"
    for i in range(60)
]
TOPICS, TURNED = flip_labels(
    np.where(np.arange(60) % 2, "business", "sport"), 0.1, random_state=0
)
OF_TEXTS = make_pipeline(TfidfVectorizer(), LogisticRegression())
KNN_OF_TEXTS = KNNShapleyValuer(embedding=TfidfVectorizer())
VALUERS_OF_TEXTS = {
    "knn": (KNN_OF_TEXTS, TEXTS),
    "shapley": (
        clone(SHAPLEY).set_params(estimator=OF_TEXTS, cv=2, max_evaluations=120),
        TEXTS,
    ),
    "oob": (DataOOBValuer(OF_TEXTS, n_estimators=12, random_state=0), pd.Series(TEXTS)),
}


@few_coalitions
@pytest.mark.parametrize("name", VALUERS_OF_TEXTS)
def test_texts(name):
    valuer, texts = VALUERS_OF_TEXTS[name]
    assert noisy_label_auc(valuer.fit(texts, TOPICS).values_, TURNED) > 0.6
    model = ValueFilteredClassifier(OF_TEXTS, KNN_OF_TEXTS)
    assert cross_val_score(model, texts, TOPICS, cv=2).mean() > 0.8


def test_prices_in_whole_dollars():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ImpreciseValuesWarning)  # few fits
        oob = DataOOBValuer(Ridge(), n_estimators=20, random_state=0).fit(X, y)
        assert (oob.values_ < 0).all()
        assert not hasattr(oob, "classes_")
        shapley = DataShapleyValuer(Ridge(), max_evaluations=700, random_state=0)
        whole, floats = (
            clone(shapley).fit(X[:100], to[:100], X_val=X[100:], y_val=to[100:]).values_
            for to in (y, y + 0.0)
        )
        np.testing.assert_array_equal(whole, floats)
        model = ValueFilteredRegressor(Ridge(), KNNShapleyValuer(), drop=0.1).fit(X, y)
        assert len(model.dropped_indices_) == 20
        dropped = ValueFilter(DataShapleyValuer(Ridge(), max_evaluations=900), drop=199)
        assert (
            len(dropped.fit(X, y).sample_indices_) == 1
        )  # no class of which a row must stay
    with pytest.warns(ManyClassesWarning, match="for classes. Pass task='regression'"):
        KNNShapleyValuer().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KNNShapleyValuer(task="regression").fit(X, y)
        KNNShapleyValuer(task="classification").fit(X, y)
    refusal = pytest.raises(
        ValueError, match="unseen labels: .* pass task='regression'"
    )
    with pytest.warns(ManyClassesWarning), refusal:
        DataShapleyValuer().fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])


IMAGES, DIGITS = load_digits(n_class=4, return_X_y=True)
ANNOTATORS = np.array(["ann", "bob", "carl", "dora", "eve"])[np.arange(len(DIGITS)) % 5]
NAMED = np.where(ANNOTATORS == "eve", (DIGITS + 1) % 4, DIGITS)


@pytest.mark.parametrize("knn", [False, True])
def test_images_with_annotators(knn):
    valuer, images = DataShapleyValuer(NearestCentroid()), IMAGES
    if knn:
        valuer = KNNShapleyValuer(
            embedding=lambda images: images.reshape(len(images), -1)
        )
        images = IMAGES.reshape(-1, 8, 8)
    data = {"X_val": images[200:], "y_val": DIGITS[200:], "groups": ANNOTATORS[:200]}
    valuer.fit(images[:200], NAMED[:200], **data)
    assert valuer.groups_[valuer.values_ < 0].tolist() == ["eve"]
    if knn:
        assert valuer.groups_[valuer.harmful()].tolist() == ["eve"]
        split = valuer.contributions("eve").contributions
        assert split.sum() == pytest.approx(valuer.values_[4])
    rows = ValueFilter(valuer, drop="negative").fit(images[:200], NAMED[:200], **data)
    assert set(rows.report_.group) == {"eve"}
    np.testing.assert_array_equal(ANNOTATORS[rows.dropped_indices_], "eve")
    curve = value_removal_curve(
        NearestCentroid(), IMAGES[:200], NAMED[:200], valuer.values_, IMAGES[200:], DIGITS[200:],
        groups=data["groups"], fractions=[0, 0.2], n_repeats=1, random_state=0,
    )  # fmt: skip
    assert curve.scores[0, 1] >= curve.scores[0, 0]


def test_clean_data_of_which_a_twentieth_is_of_one_class():
    shape = {"n_informative": 5, "weights": [0.95], "flip_y": 0, "class_sep": 0.8}
    X, y = make_classification(2000, 10, **shape, random_state=0)

    def score(drop, **params):
        model = ValueFilteredClassifier(LogisticRegression(), drop=drop, **params)
        predicted = model.fit(X[:1000], y[:1000]).predict(X[1000:])
        return balanced_accuracy_score(y[1000:], predicted)

    plain = score(0)
    with pytest.warns(UserWarning, match="class 1"):
        assert score(0.05) < plain - 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(0.05, stratify=True) > plain - 0.01
        assert (
            score(0.05, valuer=KNNShapleyValuer(class_weight="balanced")) > plain - 0.01
        )
