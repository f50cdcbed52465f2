"""LabelErrorDetector: scores, lists, conflicts, verdicts and reasons."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from skvalue import DataOOBValuer, KNNShapleyValuer, LabelErrorDetector, ValueFilter
from skvalue.datasets import flip_labels
from skvalue.exceptions import ManyClassesWarning
from skvalue.labels import find_duplicates

pd = pytest.importorskip("pandas")

BAYES = GaussianNB()


def blobs(n=200, seed=0, spread=1.0, rate=0.1):
    """Rows of three classes, noisy labels, true labels, and which labels are wrong."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    centers = np.array([[0, 0, 0, 0, 0], [6, 0, 0, 0, 0], [0, 6, 0, 0, 0]])
    X = centers[codes] + spread * rng.normal(size=(n, 5))
    y_true = np.array(["red", "green", "blue"])[codes]
    y, is_wrong = flip_labels(y_true, rate, random_state=seed)
    return X, y, y_true, is_wrong


def detector(estimator=None, **parameters):
    return LabelErrorDetector(estimator, random_state=0, **parameters)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("factor", [1e160, 1e300])
def test_entries_too_large_to_be_squared_are_refused(factor, container):
    X, y, *_ = blobs(30)
    message = r"X must hold numbers of at most 1e\+150 in absolute"
    with pytest.raises(ValueError, match=message):
        detector().fit(container(factor * X), y)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
@pytest.mark.parametrize("container", [list, np.array])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_of_one_dimension_are_refused_without_their_values(
    task, container, estimator
):
    if task == "regression" and estimator is not None:
        estimator = LinearRegression()
    X = container([0.0, 1.25, 2.5, 3.75] * 3)
    message = r"^X must have two dimensions\. .*X\.reshape\(-1, 1\)"
    with pytest.raises(ValueError, match=message) as info:
        detector(estimator, task=task).fit(X, [0, 1] * 6)
    assert "1.25" not in str(info.value)


@pytest.mark.parametrize("n_rows", [3, 4, 9])
def test_a_class_of_one_row_beside_another_is_refused(n_rows):
    """The fold that holds it out is trained on one class."""
    X = np.arange(float(n_rows))[:, None]
    y = ["a"] * (n_rows - 1) + ["b"]
    with pytest.raises(ValueError, match=f"y must have two rows .* Got {n_rows} rows"):
        detector().fit(X, y)
    # An estimator may be trained on one class.
    assert detector(GaussianNB()).fit(X, y).values_.shape == (n_rows,)


# Probabilities of columns with names --------------------------------------------------

LABELS = {
    "strings": ["cat", "dog", "owl"],
    "whole numbers": [1, 2, 3],
    "whole floats": [1.0, 2.0, 3.0],
    "fractions as strings": ["0.1", "0.2", "1"],
    "digits of two lengths": ["1", "10", "2"],
}


def pandas_frame(columns, names):
    return pd.DataFrame(columns, columns=names)


def pandas_frame_of_text(columns, names):
    texts = [str(int(name)) if isinstance(name, float) else str(name) for name in names]
    return pd.DataFrame(columns, columns=texts)


def polars_frame(columns, names):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(dict(zip(map(str, names), columns.T)))


FRAMES = [pandas_frame, pandas_frame_of_text, polars_frame]


class TestNamedProbabilities:
    @pytest.fixture(params=LABELS.values(), ids=LABELS)
    def classes(self, request):
        return np.array(request.param)

    @pytest.fixture
    def probabilities(self, rng):
        return rng.dirichlet([0.3, 0.3, 0.3], 120)

    @pytest.fixture
    def y(self, classes, rng):
        return classes[rng.integers(0, 3, 120)]

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
    @pytest.mark.parametrize("frame", FRAMES)
    def test_columns_are_matched_by_name(self, frame, order, classes, probabilities, y):
        if frame is polars_frame and classes.dtype.kind == "f":
            classes = classes.astype(int)
        columns = frame(probabilities[:, order], classes[order].tolist())
        by_name = detector().fit(None, y, pred_probs=columns)
        by_place = detector().fit(None, y, pred_probs=probabilities)
        assert_array_equal(by_name.values_, by_place.values_)

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize(
        "names", [["Cat", "Dog", "Owl"], ["cat", "dog", "cow"], [7, 8, 9], [2, 0, 1]]
    )
    def test_other_names_are_refused(self, frame, names, probabilities):
        y = np.repeat(["cat", "dog", "owl"], 40)
        with pytest.raises(ValueError, match="a column for each label, of its name"):
            detector().fit(None, y, pred_probs=frame(probabilities, names))

    @pytest.mark.parametrize("names", [range(3), ["column_0", "column_1", "column_2"]])
    def test_columns_without_names_are_in_the_order_of_labels(
        self, names, classes, probabilities, y
    ):
        columns = pd.DataFrame(probabilities, columns=names)
        counted = detector().fit(None, y, pred_probs=columns)
        by_place = detector().fit(None, y, pred_probs=probabilities)
        assert_array_equal(counted.values_, by_place.values_)

    def test_a_name_twice_is_refused(self, probabilities):
        y = np.repeat(["cat", "dog", "owl"], 40)
        columns = pd.DataFrame(probabilities, columns=["cat", "cat", "owl"])
        with pytest.raises(ValueError, match="Got columns cat, cat, owl"):
            detector().fit(None, y, pred_probs=columns)

    def test_the_order_of_labels_is_in_the_refusal_of_an_array(self):
        y = np.repeat(["cat", "dog", "owl"], 40)
        with pytest.raises(ValueError, match="in the order of cat, dog, owl"):
            detector().fit(None, y, pred_probs=np.full((120, 2), 0.5))


# Scores and lists ---------------------------------------------------------------------


class TestDefault:
    """The default models on rows of three classes."""

    @pytest.fixture(scope="module")
    def fitted(self):
        X, y, _, _ = blobs()
        return detector().fit(X, y)

    def test_wrong_labels_have_low_values(self, fitted):
        _, _, _, is_wrong = blobs()
        assert average_precision_score(is_wrong, -fitted.values_) > 0.9

    def test_suggestions_are_right(self, fitted):
        _, _, y_true, _ = blobs()
        assert (fitted.suggested_label_ == y_true).mean() > 0.95

    def test_scores_are_probabilities_of_the_classes(self, fitted):
        _, y, _, _ = blobs()
        assert_array_equal(fitted.classes_, np.unique(y))
        assert_allclose(fitted.label_scores_.sum(axis=1), 1)

    def test_report_lists_rows_of_another_suggestion_most_doubtful_first(self, fitted):
        _, y, _, _ = blobs()
        report = fitted.report_
        assert (np.diff(report.value) >= 0).all()
        assert (report.suggestion != report.y).all()
        assert_array_equal(report.y, y[report.row])
        best_scores = fitted.label_scores_[report.row].max(axis=1)
        assert_allclose(report.probability, best_scores)

    def test_scores_are_the_mixture_of_the_models(self, fitted):
        _, y, _, _ = blobs()
        report = fitted.report_
        a = fitted.mixture_
        assert 0 <= a <= 1
        mixture = a * report.forest + (1 - a) * report.logistic
        codes = np.searchsorted(fitted.classes_, y[report.row])
        assert_allclose(mixture, fitted.label_scores_[report.row, codes])

    def test_rows_to_review_are_in_the_list(self, fitted):
        assert set(fitted.to_review_) <= set(fitted.report_.row)


def test_rows_are_held_out():
    """A nearest row would know the label of each row that it has seen."""
    X, y, _, is_wrong = blobs(80)
    fitted = detector(KNeighborsClassifier(1), cv=4).fit(X, y)
    assert fitted.values_[is_wrong].mean() < 0.3


def test_groups_are_held_out_together():
    """A nearest row would know the label of a row by the other row of its pair."""
    X, y, _, is_wrong = blobs(80)
    rng = np.random.default_rng(0)
    X = np.concatenate([X, X + 0.3 * rng.normal(size=X.shape)])
    y = np.tile(y, 2)
    is_wrong = np.tile(is_wrong, 2)
    nearest = detector(KNeighborsClassifier(1), cv=4)
    alone = clone(nearest).fit(X, y)
    together = clone(nearest).fit(X, y, groups=np.tile(np.arange(80), 2))
    assert together.values_[is_wrong].mean() < alone.values_[is_wrong].mean() - 0.3


class TestProbabilitiesFromOutside:
    @pytest.fixture(scope="module")
    def inside(self):
        X, y, _, _ = blobs(60)
        return detector(BAYES).fit(X, y)

    def test_values_are_those_of_the_probabilities(self, inside):
        X, y, _, _ = blobs(60)
        outside = detector(BAYES).fit(X, y, pred_probs=inside.label_scores_)
        assert_array_equal(outside.values_, inside.values_)

    def test_no_rows_are_needed(self, inside):
        _, y, _, _ = blobs(60)
        alone = detector().fit(None, y, pred_probs=inside.label_scores_)
        assert_array_equal(alone.report_.row, inside.report_.row)

    def test_without_rows_there_are_no_reasons(self, inside):
        _, y, _, _ = blobs(60)
        alone = detector().fit(None, y, pred_probs=inside.label_scores_)
        with pytest.raises(ValueError, match="fit had no X"):
            alone.reasons()

    @pytest.mark.parametrize("row", [[0.5, 0.5], [1, 1, 1], [1.5, -0.5, 0]])
    def test_what_is_no_probability_is_refused(self, row):
        X, y, _, _ = blobs(60)
        with pytest.raises(ValueError, match="pred_probs must"):
            detector(BAYES).fit(X, y, pred_probs=np.tile(row, (60, 1)))


class IgnoresLabels(KernelDensity):
    """A density, which does not depend on the label."""

    def score_samples(self, X, y=None):
        return super().score_samples(X)


def test_a_valuer_replaces_probabilities_by_values():
    X, y, _, is_wrong = blobs(60)
    fitted = detector(KNNShapleyValuer(5), cv=2).fit(X, y)
    assert average_precision_score(is_wrong, -fitted.values_) > 0.8
    assert fitted.label_scores_.shape == (60, 3)


def test_values_that_do_not_depend_on_the_label_are_refused():
    X, y, _, _ = blobs(60)
    with pytest.raises(ValueError, match="score_samples.* ignores y"):
        detector(IgnoresLabels(), cv=2).fit(X, y)


@pytest.mark.parametrize("estimator", [KernelDensity(), DataOOBValuer()])
def test_an_estimator_that_scores_no_labels_is_refused(estimator):
    X, y, _, _ = blobs(60)
    message = "estimator must be a classifier with predict_proba"
    with pytest.raises(ValueError, match=message):
        detector(estimator, cv=2).fit(X, y)


class TestRegression:
    """Targets whose noise depends on the row, of which 8 % are wrong."""

    @pytest.fixture
    def data(self, rng):
        X = rng.normal(size=(300, 2))
        noise = np.exp(1.5 * X[:, 1]) * rng.normal(size=300)
        y = 3 * X[:, 0] + 0.3 * noise
        is_wrong = rng.random(300) < 0.08
        y[is_wrong] += 5 * rng.choice([-1, 1], is_wrong.sum())
        return X, y, is_wrong

    @pytest.fixture
    def fitted(self, data):
        X, y, _ = data
        return detector(LinearRegression()).fit(X, y)

    def test_values_are_residuals_in_multiples_of_the_spread(self, data, fitted):
        _, y, _ = data
        residuals = np.abs(y - fitted.suggested_label_)
        assert_allclose(fitted.values_, -residuals / fitted.spread_)
        assert np.median(residuals / fitted.spread_) == pytest.approx(1)

    def test_values_find_more_wrong_targets_than_residuals(self, data, fitted):
        _, y, is_wrong = data
        residuals = np.abs(y - fitted.suggested_label_)
        precision = average_precision_score(is_wrong, -fitted.values_)
        assert precision > average_precision_score(is_wrong, residuals) + 0.1

    def test_a_few_wrong_targets_hardly_change_the_spread(self, data):
        X, y, is_wrong = data
        wild = np.where(is_wrong, 1e6, y)
        regressor = HuberRegressor()
        ratios = (
            detector(regressor).fit(X, wild).spread_[~is_wrong]
            / detector(regressor).fit(X, y).spread_[~is_wrong]
        )
        assert 0.5 < np.median(ratios) < 2

    def test_the_default_models_find_targets_that_are_ten_times_too_large(self, rng):
        X = rng.uniform(size=(300, 3))
        y = np.exp(3 * X[:, 0] + 0.1 * rng.normal(size=300))
        is_wrong = np.arange(300) % 20 == 0
        y[is_wrong] *= rng.choice([10, 0.1], is_wrong.sum())
        values = detector().fit(X, y).values_
        assert average_precision_score(is_wrong, -values) > 0.9

    def test_the_list_has_predictions_of_both_default_models(self, data):
        X, y, _ = data
        fitted = detector().fit(X, y)
        report = fitted.report_
        mixture = fitted.mixture_ * report.boosting
        mixture = mixture + (1 - fitted.mixture_) * report.ridge
        assert_allclose(report.suggestion, mixture)

    def test_a_sparse_matrix_is_taken(self, data):
        X, y, is_wrong = data
        fitted = detector().fit(sparse.csr_array(X), y)
        assert "forest" in fitted.report_
        assert average_precision_score(is_wrong, -fitted.values_) > 0.3

    def test_there_are_no_attributes_of_classes(self, fitted):
        assert not hasattr(fitted, "classes_")
        assert not hasattr(fitted, "label_scores_")

    def test_verdicts_name_wrong_targets(self, data, fitted):
        _, _, is_wrong = data
        fitted.review(fitted.to_review_, is_wrong[fitted.to_review_])
        assert is_wrong[fitted.label_error_].mean() > 0.8

    def test_reasons_have_one_entry_per_row(self, fitted):
        assert fitted.reasons([3]).neighbors.shape == (1,)

    def test_probabilities_from_outside_are_refused(self, data, fitted):
        X, y, _ = data
        with pytest.raises(ValueError, match="pred_probs must be None"):
            fitted.fit(X, y, pred_probs=np.ones((300, 2)))


def test_whole_numbers_with_gaps_warn():
    X = np.arange(60.0)[:, None]
    with pytest.warns(ManyClassesWarning):
        detector(BAYES, cv=2).fit(X, (np.arange(60) // 2) * 7)


# Rows of any kind ---------------------------------------------------------------------


def test_categories_and_missing_values_are_taken(rng):
    frame = pd.DataFrame(
        {"age": rng.normal(size=120), "job": np.tile(["a", "b", None], 40)}
    )
    frame.loc[::7, "age"] = np.nan
    y = np.where(frame["job"] == "a", "yes", "no")
    y[:4] = np.where(y[:4] == "yes", "no", "yes")
    fitted = detector(cv=3).fit(frame, y)
    assert set(fitted.values_.argsort()[:4]) == {0, 1, 2, 3}
    assert len(fitted.preparation_) == 2
    assert list(fitted.feature_names_in_) == ["age", "job"]


class TestTexts:
    """Texts of two classes, of which the labels of the first two are wrong."""

    texts = [f"{word} {word} number{i}" for i in range(40) for word in ("dog", "cat")]
    y = np.array(["cats", "dogs", *["dogs", "cats"] * 39])

    def test_an_embedding_sees_no_label(self):
        class Unsupervised(TfidfVectorizer):
            def fit(self, X, y=None):
                assert y is None
                return super().fit(X)

        fitted = detector(LogisticRegression(), embedding=Unsupervised())
        fitted.fit(self.texts, self.y)
        assert set(fitted.values_.argsort()[:2]) == {0, 1}

    def test_without_an_embedding_they_are_refused(self):
        with pytest.raises(ValueError, match="pass embedding="):
            detector().fit(self.texts, self.y)

    def test_an_estimator_may_take_texts(self):
        pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
        fitted = detector(pipeline).fit(self.texts, self.y)
        assert set(fitted.values_.argsort()[:2]) == {0, 1}
        assert "only equal rows count as duplicates" in fitted.preparation_[0]


class TestSparseRows:
    def test_values_are_those_of_dense_rows(self):
        X, y, _, _ = blobs(60)
        dense = detector(LogisticRegression(), cv=2).fit(X, y)
        fitted = detector(LogisticRegression(), cv=2).fit(sparse.csr_array(X), y)
        assert_allclose(fitted.values_, dense.values_, atol=1e-3)

    def test_they_have_reasons(self):
        X, y, _, _ = blobs(60)
        fitted = detector(LogisticRegression(), cv=2).fit(sparse.csr_array(X), y)
        assert fitted.reasons(fitted.to_review_[:1]).supporters[0].size


# Duplicates ---------------------------------------------------------------------------


class TestCopies:
    """Rows 100 to 109 are copies of the first ten; two of them have another label."""

    @pytest.fixture
    def data(self):
        X, _, y, _ = blobs(100)
        rows = np.concatenate([np.arange(100), np.arange(10)])
        X = X[rows]
        y = y[rows]
        # Some are equal to six digits only.
        X[105:] += 1e-9
        for row in (100, 107):
            y[row] = np.setdiff1d(["red", "green", "blue"], y[row])[0]
        return X, y

    def test_those_of_another_label_are_conflicts(self, data):
        conflicts = detector(BAYES).fit(*data).conflicts_
        assert sorted(map(sorted, conflicts)) == [[0, 100], [7, 107]]

    def test_the_most_doubtful_row_of_a_conflict_is_the_first(self, data):
        conflicts = detector(BAYES).fit(*data).conflicts_
        assert {group[0] for group in conflicts} == {100, 107}

    def test_conflicts_are_not_in_the_list(self, data):
        fitted = detector(BAYES).fit(*data)
        assert not set(fitted.report_.row) & {0, 7, 100, 107}

    def test_they_are_held_out_together(self, data):
        # A copy among the training rows of the fold would speak for the wrong label.
        _, y = data
        fitted = detector(KNeighborsClassifier(1)).fit(*data)
        assert fitted.suggested_label_[100] == y[0]


def test_rows_that_columns_do_not_tell_apart_are_no_duplicates(rng):
    X = rng.integers(0, 2, size=(200, 2)).astype(float)
    y = np.where(rng.random(200) < 0.3, 1 - X[:, 0], X[:, 0])
    fitted = detector(BAYES).fit(X, y)
    assert fitted.conflicts_ == []
    assert "do not count as duplicates" in fitted.preparation_[-1]


def test_equal_rows_have_equal_codes():
    X = np.array([[0.0], [0.0], [5.0], [5.01], [9.0], [9.0], [20.0]])
    assert find_duplicates(X).codes.tolist() == [0, 0, 1, 2, 3, 3, 4]


def test_near_rows_are_pairs():
    X = np.array([[0.0], [0.0], [5.0], [5.01], [9.0], [9.0], [20.0]])
    assert find_duplicates(X, X).near.tolist() == [[2, 3]]


def test_near_rows_of_many_columns_are_pairs():
    X = np.random.default_rng(0).normal(size=(100, 80))
    X[1] = X[0] + 1e-3
    duplicates = find_duplicates(X, X)
    assert duplicates.near.tolist() == [[0, 1]]
    assert duplicates.codes.tolist() == list(range(100))


@pytest.mark.parametrize("size", [1e-320, 1.0, 1e9, 1e300])
def test_rare_amounts_of_any_size_are_compared(size, rng):
    """The range of nearly all numbers of such a column is zero."""
    X = rng.lognormal(3, 1, size=(1000, 7))
    X[:, 6] = np.where(np.arange(1000) % 30 == 0, size * rng.random(1000), 0.0)
    jittered = X[:12].copy()
    jittered[:, :6] *= 1 + rng.normal(0, 1e-4, (12, 6))
    duplicates = find_duplicates(np.vstack([X, jittered]))
    pairs = sorted(map(sorted, duplicates.similar.tolist()))
    assert pairs == [[i, 1000 + i] for i in range(12)]


def frame_with_copies(change):
    """A table of 300 rows, and the first 12 again, changed in a way."""
    rng = np.random.default_rng(0)
    columns = {
        "key": rng.permutation(300) + 100,
        "name": rng.choice(["Ann", "Bo", "Cy"], 300),
    }
    for j in range(4):
        columns[f"x{j}"] = rng.lognormal(3, 1, 300).round(3)
    frame = pd.DataFrame(columns)
    copies = frame[:12].copy()
    if change == "respelled":
        copies["name"] = copies["name"].str.upper() + " "
    elif change == "seventh digit":
        copies["x1"] *= 1 + 1e-8
    elif change == "jittered":
        copies[["x0", "x1", "x2", "x3"]] *= 1 + rng.normal(0, 1e-4, (12, 4))
    elif change == "another cell":
        copies["x2"] *= 2
    copies["key"] = 400 + np.arange(12)
    return pd.concat([frame, copies], ignore_index=True)


@pytest.mark.parametrize(
    ("change", "n_equal", "n_similar"),
    [
        ("none", 12, 0),
        ("respelled", 12, 0),
        ("seventh digit", 12, 0),
        ("jittered", 0, 12),
        ("another cell", 0, 0),
    ],
)
class TestChangedCopies:
    pairs = [[i, 300 + i] for i in range(12)]

    @pytest.fixture
    def fitted(self, change):
        frame = frame_with_copies(change)
        y = np.where(frame["x0"] > 20, "more", "less")
        y[-3:] = np.where(y[-3:] == "more", "less", "more")
        return detector(cv=2).fit(frame, y)

    def test_equal_rows_are_duplicates(self, fitted, n_equal, n_similar):
        duplicates = fitted.duplicates_
        groups = [group.tolist() for group in duplicates.groups]
        assert groups == self.pairs[:n_equal]
        assert duplicates.verdict == ("copies" if n_equal else "none")

    def test_nearly_equal_rows_are_similar(self, fitted, n_equal, n_similar):
        similar = sorted(map(sorted, fitted.duplicates_.similar.tolist()))
        assert similar[:12] == self.pairs[:n_similar]

    def test_equal_rows_of_another_label_are_conflicts(
        self, fitted, n_equal, n_similar
    ):
        assert sorted(map(sorted, fitted.conflicts_)) == self.pairs[9:n_equal]


def test_equal_rows_of_coarse_columns_may_be_different_cases(rng):
    X = pd.DataFrame({f"c{j}": rng.integers(0, 3, 400) for j in range(5)})
    y = np.where(rng.random(400) < 0.05, 1 - X["c0"] // 2, X["c0"] // 2)
    fitted = detector(BAYES).fit(X, y)
    assert fitted.duplicates_.verdict == "perhaps coincidence"
    # Equality says nothing about their labels: conflicts stay in the list.
    rows_of_conflicts = np.concatenate(fitted.conflicts_)
    assert np.isin(rows_of_conflicts, fitted.report_.row).any()


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_as_many_folds_as_groups_that_have_all_classes(n_groups):
    X, y, _, _ = blobs(40)
    fitted = detector(BAYES).fit(X, y, groups=np.arange(40) % n_groups)
    assert np.isfinite(fitted.values_).all()


@pytest.mark.parametrize(
    ("y", "groups", "got"),
    [
        (np.arange(40) % 2, np.arange(40) % 2, "2 classes of 40 rows"),
        (np.arange(40) // 10, np.arange(40) // 5 // 2, "4 classes of 40 rows"),
        ([f"row {i}" for i in range(40)], None, "40 classes of 40 rows"),
        ([f"row {i}" for i in range(40)], np.arange(40) % 4, "40 classes of 40 rows"),
    ],
)
def test_classes_of_one_group_each_are_refused(y, groups, got):
    X = blobs(40)[0]
    message = f"y must have a class with two rows .* Got {got}, none"
    with pytest.raises(ValueError, match=message):
        detector(BAYES, task="classification").fit(X, y, groups=groups)


def test_a_label_that_no_fold_could_learn_is_not_listed():
    X, y, _, _ = blobs(60)
    y = y.astype(object)
    y[5] = "rare"
    fitted = detector(BAYES).fit(X, y)
    assert 5 not in fitted.report_.row
    # It could not be predicted, which is no evidence against it.
    assert fitted.values_[5] > 0.5


# Verdicts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted_once():
    X, y, _, is_wrong = blobs(400, spread=2.5, rate=0.15)
    return detector(BAYES).fit(X, y), is_wrong


@pytest.fixture
def fitted(fitted_once):
    """A detector before verdicts, and which labels are wrong."""
    return pickle.loads(pickle.dumps(fitted_once))


@pytest.mark.parametrize(
    "name", ["label_error_", "q_values_", "error_rate_", "threshold_", "verdicts_"]
)
def test_an_attribute_of_verdicts_says_that_it_needs_them(fitted, name):
    fitted, _ = fitted
    with pytest.raises(AttributeError, match=f"{name} needs verdicts.*to_review_"):
        getattr(fitted, name)


def test_the_representation_needs_no_verdicts(fitted):
    fitted[0]._repr_html_()


class TestReview:
    """Verdicts on the rows to review."""

    @pytest.fixture
    def reviewed(self, fitted):
        fitted, is_wrong = fitted
        rows = fitted.to_review_
        return fitted.review(rows, is_wrong[rows])

    @pytest.fixture
    def is_wrong(self, fitted_once):
        return fitted_once[1]

    def test_nothing_is_fitted_again(self, fitted):
        fitted, is_wrong = fitted
        scores = fitted.label_scores_
        rows = fitted.to_review_
        assert fitted.review(rows, is_wrong[rows]) is fitted
        assert fitted.label_scores_ is scores

    def test_named_rows_have_q_values_of_at_most_the_rate(self, reviewed):
        assert_array_equal(reviewed.label_error_, reviewed.q_values_ <= reviewed.fdr)

    def test_a_verdict_decides_about_its_row(self, reviewed, is_wrong):
        rows = reviewed.to_review_
        assert_array_equal(reviewed.label_error_[rows], is_wrong[rows])

    def test_rows_named_without_a_verdict_are_below_the_threshold(self, reviewed):
        named = np.flatnonzero(reviewed.label_error_)
        unseen = np.setdiff1d(named, reviewed.to_review_)
        assert len(unseen)
        assert (reviewed.values_[unseen] <= reviewed.threshold_).all()

    def test_named_labels_are_wrong(self, reviewed, is_wrong):
        assert is_wrong[reviewed.label_error_].mean() > 0.8

    def test_rows_outside_of_the_list_are_not_named(self, reviewed):
        outside = np.setdiff1d(
            np.arange(400), [*reviewed.report_.row, *reviewed.to_review_]
        )
        assert (reviewed.q_values_[outside] == 1).all()

    def test_the_interval_holds_the_error_rate_of_the_list(self, reviewed, is_wrong):
        error_rate = reviewed.error_rate_
        true_rate = is_wrong[reviewed.report_.row].sum() / 400
        assert error_rate.low <= true_rate <= error_rate.high
        assert error_rate.confidence == 0.95

    def test_with_confidence_fewer_rows_are_named(self, reviewed, is_wrong):
        X, y, _, _ = blobs(400, spread=2.5, rate=0.15)
        careful = clone(reviewed).set_params(confidence=0.99).fit(X, y)
        rows = reviewed.to_review_
        careful.review(rows, is_wrong[rows])
        assert not (careful.label_error_ & ~reviewed.label_error_).any()
        assert careful.label_error_.sum() < reviewed.label_error_.sum()

    def test_later_verdicts_replace_earlier_ones(self, fitted, reviewed, is_wrong):
        again = pickle.loads(pickle.dumps(fitted[0]))
        rows = again.to_review_
        again.review(rows[:20], ~is_wrong[rows[:20]])
        again.review(rows, is_wrong[rows])
        assert_array_equal(again.q_values_, reviewed.q_values_)
        assert_array_equal(np.sort(again.verdicts_.row), np.sort(rows))

    def test_a_fit_forgets_verdicts(self, reviewed):
        X, y, _, _ = blobs(60)
        assert not hasattr(reviewed.fit(X, y), "label_error_")


def test_few_verdicts_say_nothing_about_other_rows(fitted):
    fitted, is_wrong = fitted
    rows = fitted.report_.row[:3]
    with pytest.warns(UserWarning, match="3 verdicts on rows of the list say nothing"):
        fitted.review(rows, is_wrong[rows])
    assert set(np.flatnonzero(fitted.label_error_)) == set(rows[is_wrong[rows]])
    assert fitted.threshold_ == -np.inf
    error_rate = fitted.error_rate_
    assert error_rate.low == error_rate.rate < error_rate.high


@pytest.mark.parametrize("row", [400, -1, 0.5])
def test_verdicts_on_rows_that_do_not_exist_are_refused(fitted, row):
    with pytest.raises(ValueError, match="rows must be row numbers"):
        fitted[0].review([row], [True])


@pytest.mark.parametrize(("rows", "is_error"), [([0, 1], [True]), ([0], [2])])
def test_verdicts_that_are_not_true_or_false_are_refused(fitted, rows, is_error):
    with pytest.raises(ValueError, match="is_error must"):
        fitted[0].review(rows, is_error)


# Reasons ------------------------------------------------------------------------------


class TestReasons:
    """Reasons of three wrong labels."""

    @pytest.fixture(scope="module")
    def fitted(self):
        X, y, _, _ = blobs(90)
        return detector(BAYES).fit(X, y)

    @pytest.fixture(scope="module")
    def rows(self):
        _, _, _, is_wrong = blobs(90)
        return np.flatnonzero(is_wrong)[:3]

    @pytest.fixture
    def reasons(self, fitted, rows):
        return fitted.reasons(rows, n_rows=4, influence=True)

    def test_supporters_have_the_label_and_contribute_to_it(self, reasons, rows):
        _, y, _, _ = blobs(90)
        assert_array_equal(reasons.row, rows)
        for i, row in enumerate(rows):
            assert (y[reasons.supporters[i]] == y[row]).all()
            assert (reasons.supporter_contributions[i] > 0).all()
            assert row not in reasons.supporters[i]

    def test_opponents_have_other_labels_most_of_them_the_true_one(self, reasons, rows):
        _, y, y_true, _ = blobs(90)
        for i, row in enumerate(rows):
            opponents = reasons.opponents[i]
            assert (y[opponents] != y[row]).all()
            assert (y_true[opponents] == y_true[row]).mean() > 0.5
            assert row not in opponents

    def test_the_strongest_opponents_are_the_first(self, reasons):
        for contributions in reasons.opponent_contributions:
            assert (np.diff(contributions) >= 0).all()

    def test_neighbors_is_the_fraction_of_ten_with_the_label(self, reasons, rows):
        X, y, _, _ = blobs(90)
        X = StandardScaler().fit_transform(X)
        distances = np.linalg.norm(X - X[rows[0]], axis=1)
        nearest = distances.argsort()[1:11]
        expected = (y[nearest] == y[rows[0]]).mean()
        assert reasons.neighbors[0] == pytest.approx(expected)

    def test_wrong_labels_have_a_low_influence(self, reasons):
        assert (reasons.influence < 0.3).all()

    def test_default_rows_are_those_to_review(self, fitted):
        assert len(fitted.reasons().row) == len(fitted.to_review_)


# scikit-learn -------------------------------------------------------------------------


def test_a_filter_drops_rows_of_wrong_labels():
    X, y, _, is_wrong = blobs(100)
    row_filter = ValueFilter(detector(BAYES), drop=0.1).fit(X, y)
    assert is_wrong[row_filter.dropped_indices_].mean() > 0.8


def test_it_is_the_last_step_of_a_pipeline():
    X, y, _, _ = blobs(100)
    pipeline = make_pipeline(StandardScaler(), detector(BAYES)).fit(X, y)
    alone = detector(BAYES).fit(X, y)
    assert_allclose(pipeline[-1].values_, alone.values_, atol=1e-6)


def test_a_filter_of_groups_is_refused():
    X, y, _, _ = blobs(100)
    with pytest.raises(ValueError, match="one value per group"):
        ValueFilter(detector(BAYES)).fit(X, y, groups=np.arange(100) % 20)


def test_any_number_of_jobs_gives_the_same_bits():
    X, y, _, _ = blobs(60)
    alone = detector(n_jobs=1, cv=2).fit(X, y)
    parallel = detector(n_jobs=2, cv=2).fit(X, y)
    assert_array_equal(alone.values_, parallel.values_)
    assert_array_equal(alone.to_review_, parallel.to_review_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_default_passes_the_checks_of_scikit_learn():
    for estimator, check in estimator_checks_generator(detector(cv=2)):
        check(estimator)
