import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvalue import KNNShapleyValuer, LeaveOneOutValuer, TKNNShapleyValuer
from skvalue.datasets import flip_labels
from skvalue.selection import ValueFilter, ValueFilteredClassifier


# The checks of the defaults are in tests/test_common.py.
@pytest.mark.slow
@parametrize_with_checks(
    [
        ValueFilter(TKNNShapleyValuer(), drop=2),
        ValueFilter(drop="auto", estimator=LogisticRegression(), cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("drop", "dropped"),
    [
        (0, []),
        (0.0, []),
        (1, [0]),
        (3, [0, 2, 3]),
        (0.34, [0, 2]),
        (0.3, [0]),
        ("negative", [0, 2]),
    ],
)
def test_drop_selects_the_lowest_values(first_column, rows, drop, dropped):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop=drop)
    X_kept, y_kept = row_filter.fit_resample(X, y)
    kept = np.setdiff1d(np.arange(6), dropped)
    assert row_filter.dropped_indices_.tolist() == dropped
    np.testing.assert_array_equal(row_filter.sample_indices_, kept)
    np.testing.assert_array_equal(X_kept, X[kept])
    np.testing.assert_array_equal(y_kept, y[kept])
    if drop:
        np.testing.assert_array_equal(row_filter.values_, X[:, 0])


@pytest.mark.parametrize("drop", [0, 0.0, np.float32(0)])
def test_with_zero_rows_are_not_valued(counting, rows, drop):
    dropping = ValueFilteredClassifier(LogisticRegression(), counting(), drop=drop)
    weighing = clone(dropping).set_params(mode="weight")
    for model in (ValueFilter(counting(), drop), dropping, weighing):
        model.fit(*rows)
        assert counting.fits == 0
        assert model.dropped_indices_.tolist() == []
        assert model.report_.row.tolist() == []
        assert not {"values_", "valuer_"} & set(dir(model))
        message = "values_ is not available with drop=0"
        with pytest.raises(AttributeError, match=message):
            model.values_  # noqa: B018
        model._repr_html_()
        unpickled = pickle.loads(pickle.dumps(model))
        assert unpickled.sample_indices_.tolist() == list(range(6))


@pytest.mark.parametrize(("fdr", "dropped"), [(0.05, [0, 2]), (0.1, [0]), (0.3, [])])
def test_significant_asks_the_valuer(first_column, rows, fdr, dropped):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop="significant", fdr=fdr)
    row_filter.fit(X, y, X_val=X, y_val=y)
    assert row_filter.dropped_indices_.tolist() == dropped
    expected = f"value below zero, significant at a false discovery rate of {fdr}: rank"
    reasons = [f"{expected} {rank + 1} of 6 values" for rank in range(len(dropped))]
    assert row_filter.report_.reason.tolist() == reasons


def test_significant_is_the_valuers_harmful():
    X, y = make_classification(
        900, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=0
    )
    points = {"X_val": X[300:], "y_val": y[300:]}
    X = X[:300]
    y, flipped = flip_labels(y[:300], 0.2, random_state=0)
    valuer = KNNShapleyValuer()
    row_filter = ValueFilter(valuer, drop="significant").fit(X, y, **points)
    mask = valuer.fit(X, y, **points).harmful(fdr=0.1)
    assert row_filter.dropped_indices_.tolist() == np.flatnonzero(mask).tolist()
    assert 0 < mask.sum() < (valuer.values_ < 0).sum()
    assert flipped[mask].mean() > 0.8
    groups = np.arange(300) // 2
    row_filter.fit(X, y, **points, groups=groups)
    mask = valuer.fit(X, y, **points, groups=groups).harmful(fdr=0.1)
    assert row_filter.dropped_indices_.tolist() == np.flatnonzero(mask[groups]).tolist()


def test_auto_cross_validates_the_estimator(noisy):
    X, y, flipped = noisy
    row_filter = ValueFilter(
        KNNShapleyValuer(10), "auto", estimator=KNeighborsClassifier(1)
    )
    row_filter.fit(X, y)
    assert row_filter.drop_ in (0.05, 0.1, 0.2, 0.3, 0.4)
    assert row_filter.drop_scores_.shape == (6, 5)
    assert len(row_filter.dropped_indices_) == int(row_filter.drop_ * len(y))
    assert flipped[row_filter.dropped_indices_].mean() > 0.5
    suffix = f"(drop={row_filter.drop_} chosen by 'auto')"
    assert row_filter.report_.reason[0].endswith(suffix)


def test_report_is_a_table_of_the_dropped_rows(first_column, rows):
    X, y = rows
    table = pd.DataFrame(ValueFilter(first_column(), drop=3).fit(X, y).report_)
    assert table.columns.tolist() == ["row", "y", "value", "weight", "reason"]
    assert table.row.tolist() == [0, 2, 3]
    assert table.y.tolist() == ["a", "b", "a"]
    assert table.value.tolist() == [-2, -1, 0]
    assert table.weight.tolist() == [0, 0, 0]
    reasons = [
        f"rank {rank} of 6 values; drop selects the lowest 3" for rank in (1, 2, 3)
    ]
    assert table.reason.tolist() == reasons


def test_a_printed_report_is_short(first_column):
    X = np.c_[np.arange(900.0)]
    y = np.linspace(0, 1, 900)
    report = ValueFilter(first_column(), drop=0.5).fit(X, y).report_
    lines = repr(report).splitlines()
    assert lines[0] == "450 rows, lowest value first"
    assert lines[1].split() == ["row", "y", "value", "weight", "reason"]
    assert len(lines) == 13
    assert lines[-1] == "... and 440 more"
    unpickled = pickle.loads(pickle.dumps(report))
    assert repr(unpickled) == repr(report)


def test_equal_values_have_the_same_reason(first_column):
    X = np.c_[[1.0, 0.0, 0.0, 2.0, -1.0]]
    y = np.linspace(0, 1, 5)
    message = "drop=2 cuts through ties: 1 of 2 equal values are"
    with pytest.warns(UserWarning, match=message):
        report = ValueFilter(first_column(), drop=2).fit(X, y).report_
    assert report.reason.tolist() == [
        "rank 1 of 5 values; drop selects the lowest 2",
        "ranks 2 to 3, which tie, of 5 values; drop selects the lowest 2",
    ]


def test_groups_are_dropped_as_a_whole(first_column, rows):
    X, y = rows
    # Values of the groups: -3, 6 and 3.
    groups = np.array(["u", "v", "u", "w", "w", "v"])
    y = np.array(["a", "b", "b", "a", "a", "b"])
    row_filter = ValueFilter(first_column(), drop=0.34).fit(X, y, groups=groups)
    assert row_filter.dropped_indices_.tolist() == [0, 2]
    np.testing.assert_array_equal(row_filter.values_, [-3, 6, -3, 3, 3, 6])
    assert row_filter.report_.group.tolist() == ["u", "u"]
    reason = "rank 1 of 3 values of groups; drop selects the lowest 1"
    assert set(row_filter.report_.reason) == {reason}
    with pytest.raises(ValueError, match="less than the number of groups, 3. Got 3."):
        ValueFilter(first_column(), drop=3).fit(X, y, groups=groups)


def test_pandas_frames_keep_index_and_names(noisy):
    X, y, _ = noisy
    index = pd.Index([f"row {i}" for i in range(len(y))])
    frame = pd.DataFrame(X, columns=list("abcdef"), index=index)
    target = pd.Series(np.where(y, "yes", "no"), index=index)
    row_filter = ValueFilter(drop=0.2)
    X_kept, y_kept = row_filter.fit_resample(frame, target)
    assert X_kept.index.equals(index[row_filter.sample_indices_])
    assert y_kept.index.equals(X_kept.index)
    assert row_filter.feature_names_in_.tolist() == list("abcdef")


def test_polars_frames_stay_polars_frames(noisy):
    X, y, _ = noisy
    labels = np.where(y, "yes", "no")
    frame = pl.DataFrame(X, schema=list("abcdef"))
    X_kept, y_kept = ValueFilter(drop=0.2).fit_resample(frame, pl.Series("y", labels))
    kept = ValueFilter(drop=0.2).fit(X, labels).sample_indices_
    assert isinstance(X_kept, pl.DataFrame)
    np.testing.assert_array_equal(X_kept.to_numpy(), X[kept])
    assert y_kept.to_list() == labels[kept].tolist()


def test_the_validation_set_and_its_weights_reach_the_valuer(first_column, rows):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop=2)
    points = {"X_val": X, "y_val": y, "sample_weight_val": np.arange(6.0)}
    row_filter.fit_resample(X, y, **points)
    assert all(row_filter.valuer_.seen_[name] is points[name] for name in points)


@pytest.mark.parametrize("routing", [False, True])
def test_sample_weight_reaches_a_valuer_that_trains(noisy, routing):
    X, y, _ = noisy
    X = X[:30]
    y = y[:30]
    weights = np.random.default_rng(0).random(30)
    valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
    expected = clone(valuer).fit(X, y, sample_weight=weights).values_
    with config_context(enable_metadata_routing=routing):
        requesting = clone(valuer)
        if routing:
            requesting.set_fit_request(sample_weight=True)
        row_filter = ValueFilter(requesting, drop=5).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(row_filter.values_, expected)
        X_kept, _ = row_filter.fit_resample(X, y, sample_weight=weights)
        assert len(X_kept) == 25
    assert (ValueFilter(valuer, drop=5).fit(X, y).values_ != expected).any()


def test_sample_weight_that_the_valuer_does_not_request_is_refused(noisy):
    X, y, _ = noisy
    valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
    message = "sample_weight.* not explicitly set as request"
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=message),
    ):
        ValueFilter(valuer).fit(X, y, sample_weight=np.ones(len(y)))


def test_sample_weight_is_refused_for_a_valuer_without(noisy):
    X, y, _ = noisy
    message = "sample_weight needs a valuer whose fit.* Got KNNShapl"
    with pytest.raises(ValueError, match=message):
        ValueFilter().fit(X, y, sample_weight=np.ones(len(y)))


def test_a_step_of_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = noisy
    row_filter = ValueFilter(KNNShapleyValuer(), drop=0.2)
    model = pipeline.make_pipeline(StandardScaler(), row_filter, LogisticRegression())
    scaled = StandardScaler().fit_transform(X)
    kept = clone(row_filter).fit(scaled, y).sample_indices_
    expected = LogisticRegression().fit(scaled[kept], y[kept])
    np.testing.assert_allclose(model.fit(X, y)[-1].coef_, expected.coef_)
    assert len(kept) == 192
    # No row is dropped in predict.
    assert model.predict(X).shape == y.shape
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()


def test_a_grid_search_of_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = noisy
    row_filter = ValueFilter(KNNShapleyValuer(), drop=0.2)
    model = pipeline.make_pipeline(StandardScaler(), row_filter, LogisticRegression())
    grid = {"valuefilter__drop": [0, 0.2], "valuefilter__valuer__n_neighbors": [3, 5]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) > 1


def test_a_validation_set_through_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = noisy
    row_filter = ValueFilter(KNNShapleyValuer(), drop=0.2)
    model = pipeline.make_pipeline(StandardScaler(), row_filter, LogisticRegression())
    scaled = StandardScaler().fit_transform(X)
    points = {"X_val": scaled[:50], "y_val": y[:50]}
    with config_context(enable_metadata_routing=True):
        model.fit(X, y, **points)
    alone = clone(row_filter).fit(scaled, y, **points)
    np.testing.assert_array_equal(model[1].sample_indices_, alone.sample_indices_)
    without_points = clone(row_filter).fit(scaled, y)
    assert not np.array_equal(alone.sample_indices_, without_points.sample_indices_)


def test_weights_through_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = noisy
    X = X[:60]
    y = y[:60]
    weights = np.random.default_rng(0).random(60)
    with config_context(enable_metadata_routing=True):
        valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
        valuer.set_fit_request(sample_weight=True)
        model = pipeline.make_pipeline(
            ValueFilter(valuer, drop=5), KNeighborsClassifier()
        )
        model.fit(X, y, sample_weight=weights)
    expected = clone(valuer).fit(X, y, sample_weight=weights).values_
    np.testing.assert_array_equal(model[0].values_, expected)


def test_a_fit_that_fails_leaves_the_former_fit(first_column, rows):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop="auto", estimator=GaussianNB(), cv=2)
    row_filter.fit(X, y)
    before = dict(vars(row_filter))
    negative = -np.abs(X[:, :1]) - 1
    with pytest.raises(ValueError, match="selects all"):
        row_filter.set_params(drop="negative").fit(negative, np.linspace(0, 1, 6))
    row_filter.set_params(drop="auto")
    assert vars(row_filter).keys() == before.keys()
    for name in before:
        if name.endswith("_"):
            assert vars(row_filter)[name] is before[name]


def test_a_fit_deletes_attributes_of_the_former_fit(first_column, rows):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop="auto", estimator=GaussianNB(), cv=2)
    row_filter.fit(X, y)
    assert hasattr(row_filter, "drop_scores_")
    row_filter.set_params(drop=1).fit(X, y)
    assert not hasattr(row_filter, "drop_scores_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"drop": 1.0}, "'drop' parameter"),
        ({"drop": -0.1}, "'drop' parameter"),
        ({"drop": -1}, "'drop' parameter"),
        ({"drop": "harmful"}, "'drop' parameter"),
        ({"drop": None}, "'drop' parameter"),
        ({"drop": True}, "'drop' parameter"),
        ({"drop": False}, "'drop' parameter"),
        ({"drop": 6}, "drop must be less than the number of rows, 6"),
        ({"drop": "auto"}, "drop must not be 'auto' without an estimator"),
        (
            {"drop": "significant"},
            "drop must not be 'significant' without validation points",
        ),
        ({"fdr": 0}, "'fdr' parameter"),
    ],
)
def test_wrong_parameters_are_refused_before_any_fit(
    counting, rows, parameters, message
):
    # A valuer that has what "significant" asks for.
    valuer = type("Valuer", (counting,), {"harmful": lambda self, fdr: None})()
    with pytest.raises(ValueError, match=message):
        ValueFilter(valuer, **parameters).fit(*rows)
    assert counting.fits == type(valuer).fits == 0


def test_a_rule_that_leaves_no_row_is_refused(first_column):
    row_filter = ValueFilter(first_column(), drop="negative")
    with pytest.raises(ValueError, match="at least one row.* Got 'negative'"):
        row_filter.fit(-np.ones((4, 2)), [0.1, 0.2, 0.3, 0.4])


def test_significant_needs_a_valuer_with_harmful(rows):
    message = "drop must not be 'significant' unless .* harmful.. Got StandardS"
    with pytest.raises(ValueError, match=message):
        ValueFilter(StandardScaler(), drop="significant").fit(*rows)


class TestPrivateValuers:
    @pytest.mark.filterwarnings("ignore:The rows are chosen by private values")
    @pytest.mark.parametrize("epsilon", [None, 1.0])
    @pytest.mark.parametrize("mode", [None, "drop", "weight"])
    def test_values_stay_with_the_curator(self, epsilon, mode):
        X, y = make_classification(60, 3, n_redundant=0, random_state=0)
        valuer = TKNNShapleyValuer(1.0, metric="euclidean", epsilon=epsilon)
        row_filter = ValueFilter(valuer)
        if mode is not None:
            row_filter = ValueFilteredClassifier(
                LogisticRegression(), valuer, mode=mode
            )
        row_filter.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
        is_public = epsilon is None
        assert ("values_" in dir(row_filter)) == is_public
        assert ("report_" in dir(row_filter)) == is_public
        assert (">values_" in row_filter._repr_html_()) == is_public

        unpickled = pickle.loads(pickle.dumps(row_filter))
        unpickled = pickle.loads(pickle.dumps(unpickled))
        np.testing.assert_array_equal(
            unpickled.sample_indices_, row_filter.sample_indices_
        )
        assert len(row_filter.report_.row) > 0
        if is_public:
            np.testing.assert_array_equal(unpickled.values_, row_filter.values_)
            assert unpickled.report_.row.tolist() == row_filter.report_.row.tolist()
            return
        for name in ("values_", "report_"):
            message = f"{name} is based on .* for the curator"
            with pytest.raises(AttributeError, match=message):
                getattr(unpickled, name)

    def test_the_model_is_said_not_to_be_private(self, first_column, rows):
        message = "with epsilon=1.*but a model trained on them is not"
        with pytest.warns(UserWarning, match=message):
            ValueFilter(first_column(epsilon=1), drop=2).fit(*rows)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_search_warns_once(self, first_column, noisy, recwarn, n_jobs):
        X, y, _ = noisy
        model = ValueFilteredClassifier(GaussianNB(), first_column(epsilon=1), drop=2)
        with parallel_config("threading"):
            GridSearchCV(model, {"drop": [1, 2, 3]}, cv=3, n_jobs=n_jobs).fit(X, y)
        messages = [str(warning.message) for warning in recwarn]
        assert sum("is not private" in message for message in messages) == 1

    def test_a_filter_without_clones_warns_every_time(
        self, first_column, noisy, recwarn
    ):
        X, y, _ = noisy
        row_filter = ValueFilter(first_column(epsilon=1), drop=2)
        row_filter.fit(X, y)
        row_filter.fit(X, y)
        messages = [str(warning.message) for warning in recwarn]
        assert sum("is not private" in message for message in messages) == 2

    def test_memory_is_refused(self, first_column, rows, tmp_path):
        row_filter = ValueFilter(first_column(epsilon=1), memory=str(tmp_path))
        with pytest.raises(ValueError, match="memory must be None .* epsilon=1"):
            row_filter.fit(*rows)
        assert list(tmp_path.iterdir()) == []

    def test_auto_which_would_release_in_every_fold_is_refused(
        self, first_column, rows
    ):
        row_filter = ValueFilter(
            first_column(epsilon=1), drop="auto", estimator=LogisticRegression()
        )
        with pytest.raises(ValueError, match="drop must not be 'auto' .* epsilon=1"):
            row_filter.fit(*rows)

    def test_nothing_is_said_without_epsilon(self, first_column, rows, recwarn):
        ValueFilter(first_column(), drop=2).fit(*rows)
        assert len(recwarn) == 0
