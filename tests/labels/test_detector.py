"""LabelErrorDetector: scores, lists, conflicts, verdicts and reasons."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
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


def blobs(n=200, seed=0, spread=1.0, rate=0.1):
    """Rows of three classes, given labels that are strings, true labels, and which
    differ."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    centers = np.array([[0, 0, 0, 0, 0], [6, 0, 0, 0, 0], [0, 6, 0, 0, 0]])
    X = centers[codes] + spread * rng.normal(size=(n, 5))
    true = np.array(["red", "green", "blue"])[codes]
    given, wrong = flip_labels(true, rate, random_state=seed)
    return X, given, true, wrong


def detector(estimator=None, **parameters):
    return LabelErrorDetector(estimator, random_state=0, **parameters)


QUICK = GaussianNB()


@pytest.mark.parametrize("factor", [1e160, 1e300])
def test_entries_too_large_to_be_squared_are_refused(factor):
    X, y, *_ = blobs(30)
    for rows in (factor * X, sparse.csr_array(factor * X)):
        with pytest.raises(
            ValueError, match=r"X must hold numbers of at most 1e\+150 in absolute"
        ):
            detector().fit(rows, y)


# Scores and lists ---------------------------------------------------------------------


def test_default_finds_wrong_labels_and_suggests_right_ones():
    X, y, true, wrong = blobs()
    found = detector().fit(X, y)
    assert average_precision_score(wrong, -found.values_) > 0.9
    assert (found.suggested_label_ == true).mean() > 0.95
    assert_array_equal(found.classes_, np.unique(y))
    assert_allclose(found.label_scores_.sum(axis=1), 1)
    assert 0 <= found.mixture_ <= 1
    report = found.report_
    assert (np.diff(report.value) >= 0).all()
    assert (report.suggestion != report.y).all()
    assert_array_equal(report.y, y[report.row])
    assert_allclose(report.probability, found.label_scores_[report.row].max(axis=1))
    own = np.searchsorted(found.classes_, y[report.row])
    a = found.mixture_
    mixed = a * report.forest + (1 - a) * report.logistic
    assert_allclose(mixed, found.label_scores_[report.row, own])
    assert set(found.to_review_) <= set(report.row)


def test_rows_and_their_groups_are_held_out():
    """A nearest row would know the label of each row it has seen, and so would its
    pair."""
    X, y, _, wrong = blobs(80)
    nearest, rng = KNeighborsClassifier(1), np.random.default_rng(0)
    assert detector(nearest, cv=4).fit(X, y).values_[wrong].mean() < 0.3
    pairs = np.concatenate([X, X + 0.3 * rng.normal(size=X.shape)]), np.tile(y, 2)
    alone = detector(nearest, cv=4).fit(*pairs)
    together = detector(nearest, cv=4).fit(*pairs, groups=np.tile(np.arange(80), 2))
    wrong = np.tile(wrong, 2)
    assert together.values_[wrong].mean() < alone.values_[wrong].mean() - 0.3


def test_probabilities_from_outside_train_nothing():
    X, y, _, _ = blobs(60)
    inside = detector(QUICK).fit(X, y)
    outside = detector(QUICK).fit(X, y, pred_probs=inside.label_scores_)
    assert_array_equal(outside.values_, inside.values_)
    alone = detector().fit(None, y, pred_probs=inside.label_scores_)
    assert_array_equal(alone.report_.row, inside.report_.row)
    with pytest.raises(ValueError, match="fit had no X"):
        alone.reasons()


@pytest.mark.parametrize("row", [[0.5, 0.5], [1, 1, 1], [1.5, -0.5, 0]])
def test_what_is_no_probability_is_refused(row):
    X, y, _, _ = blobs(60)
    with pytest.raises(ValueError, match="pred_probs must"):
        detector(QUICK).fit(X, y, pred_probs=np.tile(row, (60, 1)))


class Blind(KernelDensity):
    """A density, which does not depend on the label."""

    def score_samples(self, X, y=None):
        return super().score_samples(X)


def test_any_valuer_whose_scores_depend_on_the_label():
    X, y, _, wrong = blobs(60)
    found = detector(KNNShapleyValuer(5), cv=2).fit(X, y)
    assert average_precision_score(wrong, -found.values_) > 0.8
    assert found.label_scores_.shape == (60, 3)
    with pytest.raises(ValueError, match="score_samples.* ignores y"):
        detector(Blind(), cv=2).fit(X, y)
    for estimator in (KernelDensity(), DataOOBValuer()):
        with pytest.raises(
            ValueError, match="estimator must be a classifier with predict_proba"
        ):
            detector(estimator, cv=2).fit(X, y)


def test_regression_scales_residuals_by_their_spread(rng):
    X = rng.normal(size=(300, 2))
    noise = np.exp(1.5 * X[:, 1]) * rng.normal(size=300)
    y = 3 * X[:, 0] + 0.3 * noise
    wrong = rng.random(300) < 0.08
    y[wrong] += 5 * rng.choice([-1, 1], wrong.sum())
    found = detector(LinearRegression()).fit(X, y)
    residual = np.abs(y - found.suggested_label_)
    scaled = average_precision_score(wrong, -found.values_)
    assert scaled > average_precision_score(wrong, residual) + 0.1
    assert_allclose(found.values_, -residual / found.spread_)
    assert np.median(residual / found.spread_) == pytest.approx(1)
    assert not hasattr(found, "classes_")
    assert not hasattr(found, "label_scores_")
    found.review(found.to_review_, wrong[found.to_review_])
    assert wrong[found.label_error_].mean() > 0.8
    said = found.reasons([3])
    assert said.neighbors.shape == (1,)
    with pytest.raises(ValueError, match="pred_probs must be None"):
        found.fit(X, y, pred_probs=np.ones((300, 2)))


def test_whole_numbers_with_gaps_warn():
    X = np.arange(60.0)[:, None]
    with pytest.warns(ManyClassesWarning):
        detector(QUICK, cv=2).fit(X, (np.arange(60) // 2) * 7)


# Rows of any kind ---------------------------------------------------------------------


def test_categories_and_missing_values(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"age": rng.normal(size=120), "job": np.tile(["a", "b", None], 40)}
    )
    frame.loc[::7, "age"] = np.nan
    y = np.where(frame["job"] == "a", "yes", "no")
    y[:4] = np.where(y[:4] == "yes", "no", "yes")
    found = detector(cv=3).fit(frame, y)
    assert set(found.values_.argsort()[:4]) == {0, 1, 2, 3}
    assert len(found.preparation_) == 2
    assert list(found.feature_names_in_) == ["age", "job"]


def test_texts_by_an_embedding_that_sees_no_label():
    texts = [f"{word} {word} number{i}" for i in range(40) for word in ("dog", "cat")]
    y = np.tile(["dogs", "cats"], 40)
    y[:2] = "cats", "dogs"

    class Unsupervised(TfidfVectorizer):
        def fit(self, X, y=None):
            assert y is None
            return super().fit(X)

    found = detector(LogisticRegression(), embedding=Unsupervised()).fit(texts, y)
    assert set(found.values_.argsort()[:2]) == {0, 1}
    with pytest.raises(ValueError, match="pass embedding="):
        detector().fit(texts, y)
    as_it_is = make_pipeline(TfidfVectorizer(), LogisticRegression())
    alone = detector(as_it_is).fit(texts, y)  # the pipeline looks at texts
    assert set(alone.values_.argsort()[:2]) == {0, 1}
    assert "only equal rows count as duplicates" in alone.preparation_[0]


def test_sparse_rows_give_what_dense_rows_give():
    X, y, _, _ = blobs(60)
    model = LogisticRegression()
    dense, thin = (
        detector(model, cv=2).fit(rows, y) for rows in (X, sparse.csr_array(X))
    )
    assert_allclose(thin.values_, dense.values_, atol=1e-3)
    assert thin.reasons(thin.to_review_[:1]).supporters[0].size


# Duplicates ---------------------------------------------------------------------------


def test_conflicts_are_held_out_together_and_reported_apart():
    X, _, y, _ = blobs(100)
    rows = np.concatenate(
        [np.arange(100), np.arange(10)]
    )  # ten copies, two of them wrong
    X, y = X[rows], y[rows]
    X[105:] += 1e-9  # equal to six digits
    for row in (100, 107):
        y[row] = np.setdiff1d(["red", "green", "blue"], y[row])[0]
    found = detector(QUICK).fit(X, y)
    assert sorted(map(sorted, found.conflicts_)) == [[0, 100], [7, 107]]
    assert {group[0] for group in found.conflicts_} == {100, 107}  # most doubtful first
    assert not set(found.report_.row) & {0, 7, 100, 107}
    # A copy in the training rows of the fold would speak for the wrong label.
    nearest = KNeighborsClassifier(1)
    assert detector(nearest).fit(X, y).suggested_label_[100] == y[0]


def test_rows_that_columns_do_not_tell_apart_are_no_duplicates(rng):
    X = rng.integers(0, 2, size=(200, 2)).astype(float)
    y = np.where(rng.random(200) < 0.3, 1 - X[:, 0], X[:, 0])
    found = detector(QUICK).fit(X, y)
    assert found.conflicts_ == []
    assert "do not count as duplicates" in found.preparation_[-1]


def test_equal_rows_are_equal_and_near_pairs_are_near():
    X = np.array([[0.0], [0.0], [5.0], [5.01], [9.0], [9.0], [20.0]])
    assert find_duplicates(X).codes.tolist() == [0, 0, 1, 2, 3, 3, 4]
    assert find_duplicates(X, X).near.tolist() == [[2, 3]]
    wide = np.random.default_rng(0).normal(size=(100, 80))
    wide[1] = wide[0] + 1e-3
    found = find_duplicates(wide, wide)
    assert found.near.tolist() == [[0, 1]]
    assert found.codes.tolist() == list(range(100))


def planted(kind, n=300, seed=0):
    """A table of which the last 12 rows are the first ones again, in a way."""
    rng = np.random.default_rng(seed)
    frame = {
        "key": rng.permutation(n) + 100,
        "name": rng.choice(["Ann", "Bo", "Cy"], n),
    }
    frame |= {f"x{j}": rng.lognormal(3, 1, n).round(3) for j in range(4)}
    frame = pd.DataFrame(frame)
    copies = frame[:12].copy()
    if kind == "respelled":
        copies["name"] = copies["name"].str.upper() + " "
    elif kind == "seventh digit":
        copies["x1"] *= 1 + 1e-8
    elif kind == "jittered":
        copies[["x0", "x1", "x2", "x3"]] *= 1 + rng.normal(0, 1e-4, (12, 4))
    elif kind == "another cell":
        copies["x2"] *= 2
    copies["key"] = n + 100 + np.arange(12)
    return pd.concat([frame, copies], ignore_index=True)


@pytest.mark.parametrize(
    ("kind", "equal", "similar"),
    [
        ("same", 12, 0), ("respelled", 12, 0), ("seventh digit", 12, 0), ("jittered", 0, 12),
        ("another cell", 0, 0),
    ],
)  # fmt: skip
def test_only_equal_rows_are_duplicates(kind, equal, similar):
    frame = planted(kind)
    y = np.where(frame["x0"] > 20, "more", "less")
    y[-3:] = np.where(y[-3:] == "more", "less", "more")
    found = detector(cv=2).fit(frame, y)
    pairs = [[i, 300 + i] for i in range(12)]
    duplicates = found.duplicates_
    assert [group.tolist() for group in duplicates.groups] == pairs[:equal]
    assert duplicates.verdict == ("copies" if equal else "none")
    assert sorted(map(sorted, duplicates.similar.tolist()))[:12] == pairs[:similar]
    assert sorted(map(sorted, found.conflicts_)) == pairs[9:equal]


def test_equal_rows_of_coarse_columns_may_be_different_cases(rng):
    X = pd.DataFrame({f"c{j}": rng.integers(0, 3, 400) for j in range(5)})
    y = np.where(rng.random(400) < 0.05, 1 - X["c0"] // 2, X["c0"] // 2)
    found = detector(QUICK).fit(X, y)
    assert found.duplicates_.verdict == "perhaps coincidence"
    named = np.concatenate(found.conflicts_)
    assert np.isin(
        named, found.report_.row
    ).any()  # equality says nothing: they stay in the list


def test_too_few_groups_for_folds():
    X, y, _, _ = blobs(40)
    with pytest.raises(ValueError, match="needs two rows of a class .* Got 2 groups"):
        detector(QUICK).fit(X, y, groups=np.arange(40) % 2)


def test_a_label_that_no_fold_could_learn_is_not_listed():
    X, y, _, _ = blobs(60)
    y = y.astype(object)
    y[5] = "rare"
    found = detector(QUICK).fit(X, y)
    assert 5 not in found.report_.row
    assert found.values_[5] > 0.5  # it was not to be predicted: no evidence against it


# Verdicts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once_fitted():
    X, y, _, wrong = blobs(400, spread=2.5, rate=0.15)
    return detector(QUICK).fit(X, y), wrong


@pytest.fixture
def fitted(once_fitted):
    """A detector before verdicts, and which labels are wrong."""
    return pickle.loads(pickle.dumps(once_fitted))


def test_before_verdicts_there_is_no_list(fitted):
    found, _ = fitted
    for name in ("label_error_", "q_values_", "error_rate_", "threshold_", "verdicts_"):
        with pytest.raises(AttributeError, match=f"{name} needs verdicts.*to_review_"):
            getattr(found, name)
    found._repr_html_()


def test_review_makes_a_list_a_statement(fitted):
    found, wrong = fitted
    scores = found.label_scores_
    rows = found.to_review_
    assert found.review(rows, wrong[rows]) is found
    assert found.label_scores_ is scores
    assert_array_equal(found.label_error_, found.q_values_ <= found.fdr)
    assert found.label_error_[rows[wrong[rows]]].all()
    assert not found.label_error_[rows[~wrong[rows]]].any()
    unseen = np.setdiff1d(np.flatnonzero(found.label_error_), rows)
    assert (found.values_[unseen] <= found.threshold_).all()
    assert len(unseen)
    assert wrong[found.label_error_].mean() > 0.8
    outside = np.setdiff1d(np.arange(400), [*found.report_.row, *rows])
    assert (found.q_values_[outside] == 1).all()
    rate, listed = found.error_rate_, wrong[found.report_.row].sum() / 400
    assert rate.low <= listed <= rate.high
    assert rate.confidence == 0.95
    careful = (
        clone(found)
        .set_params(confidence=0.99)
        .fit(*blobs(400, spread=2.5, rate=0.15)[:2])
    )
    careful.review(rows, wrong[rows])
    assert not (careful.label_error_ & ~found.label_error_).any()
    assert careful.label_error_.sum() < found.label_error_.sum()


def test_verdicts_add_up(fitted):
    at_once, wrong = fitted
    in_two, rows = pickle.loads(pickle.dumps(at_once)), at_once.to_review_
    at_once.review(rows, wrong[rows])
    in_two.review(rows[:20], ~wrong[rows[:20]]).review(
        rows, wrong[rows]
    )  # the later one counts
    assert_array_equal(in_two.q_values_, at_once.q_values_)
    assert_array_equal(np.sort(in_two.verdicts_.row), np.sort(rows))
    in_two.fit(*blobs(60)[:2])
    assert not hasattr(in_two, "label_error_")


def test_few_verdicts_say_nothing_about_other_rows(fitted):
    found, wrong = fitted
    rows = found.report_.row[:3]
    with pytest.warns(UserWarning, match="3 verdicts on rows of the list say nothing"):
        found.review(rows, wrong[rows])
    assert set(np.flatnonzero(found.label_error_)) == set(rows[wrong[rows]])
    assert found.threshold_ == -np.inf
    assert found.error_rate_.low == found.error_rate_.rate < found.error_rate_.high


def test_verdicts_that_are_refused(fitted):
    for row in (400, -1, 0.5):
        with pytest.raises(ValueError, match="rows must be row numbers"):
            fitted[0].review([row], [True])
    for rows, is_error in (([0, 1], [True]), ([0], [2])):
        with pytest.raises(ValueError, match="is_error must"):
            fitted[0].review(rows, is_error)


# Reasons ------------------------------------------------------------------------------


def test_reasons_are_the_rows_for_and_against():
    X, y, true, wrong = blobs(90)
    found = detector(QUICK).fit(X, y)
    rows = np.flatnonzero(wrong)[:3]
    said = found.reasons(rows, n_rows=4, influence=True)
    assert_array_equal(said.row, rows)
    for i, row in enumerate(rows):
        assert (y[said.supporters[i]] == y[row]).all()
        assert (y[said.opponents[i]] != y[row]).all()
        assert (true[said.opponents[i]] == true[row]).mean() > 0.5  # its own neighbours
        assert (said.supporter_contributions[i] > 0).all()
        assert (np.diff(said.opponent_contributions[i]) >= 0).all()
        assert row not in [*said.supporters[i], *said.opponents[i]]
    scaled = StandardScaler().fit_transform(X)
    near = np.linalg.norm(scaled - scaled[rows[0]], axis=1).argsort()[1:11]
    assert said.neighbors[0] == pytest.approx((y[near] == y[rows[0]]).mean())
    assert (said.influence < 0.3).all()
    assert len(found.reasons().row) == len(found.to_review_)


# scikit-learn -----------------------------------------------------------------------------------


def test_in_a_filter_and_a_pipeline():
    X, y, _, wrong = blobs(100)
    kept = ValueFilter(detector(QUICK), drop=0.1).fit(X, y)
    assert wrong[kept.dropped_indices_].mean() > 0.8
    last = make_pipeline(StandardScaler(), detector(QUICK)).fit(X, y)[-1]
    assert_allclose(last.values_, detector(QUICK).fit(X, y).values_, atol=1e-6)
    with pytest.raises(ValueError, match="one value per group"):
        ValueFilter(detector(QUICK)).fit(X, y, groups=np.arange(100) % 20)


def test_any_number_of_jobs_gives_the_same_bits():
    X, y, _, _ = blobs(60)
    one, two = (detector(n_jobs=n, cv=2).fit(X, y) for n in (1, 2))
    assert_array_equal(one.values_, two.values_)
    assert_array_equal(one.to_review_, two.to_review_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_default_passes_the_checks_of_scikit_learn():
    for estimator, check in estimator_checks_generator(detector(cv=2)):
        check(estimator)
