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

AUTO = ValueFilter(drop="auto", estimator=LogisticRegression(), cv=2)


@pytest.mark.slow  # tests/test_common.py has those of the defaults
@parametrize_with_checks([ValueFilter(TKNNShapleyValuer(), drop=2), AUTO])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


DROPPED = {0: [], 1: [0], 3: [0, 2, 3], 0.34: [0, 2], 0.3: [0], "negative": [0, 2]}


@pytest.mark.parametrize(("drop", "dropped"), [*DROPPED.items(), (0.0, [])])
def test_forms_of_drop(first_column, rows, drop, dropped):
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
def test_zero_does_not_value(counting, rows, drop):
    dropping = ValueFilteredClassifier(LogisticRegression(), counting(), drop=drop)
    weighing = clone(dropping).set_params(mode="weight")
    for model in (ValueFilter(counting(), drop), dropping, weighing):
        model.fit(*rows)
        assert counting.fits == 0
        assert model.dropped_indices_.tolist() == []
        assert model.report_.row.tolist() == []
        assert not {"values_", "valuer_"} & set(dir(model))
        with pytest.raises(
            AttributeError, match="values_ is not available with drop=0"
        ):
            model.values_  # noqa: B018
        model._repr_html_()
        again = pickle.loads(pickle.dumps(model))
        assert again.sample_indices_.tolist() == list(range(6))


@pytest.mark.parametrize(("fdr", "dropped"), [(0.05, [0, 2]), (0.1, [0]), (0.3, [])])
def test_significant_asks_the_valuer(first_column, rows, fdr, dropped):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop="significant", fdr=fdr)
    row_filter.fit(X, y, X_val=X, y_val=y)
    assert row_filter.dropped_indices_.tolist() == dropped
    expected = f"value below zero, significant at a false discovery rate of {fdr}: rank"
    reasons = [f"{expected} {rank + 1} of 6 values" for rank in range(len(dropped))]
    assert row_filter.report_.reason.tolist() == reasons


def test_significant_by_a_real_valuer():
    X, y = make_classification(
        900, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=0
    )
    points = {"X_val": X[300:], "y_val": y[300:]}
    X, (y, flipped) = X[:300], flip_labels(y[:300], 0.2, random_state=0)
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


def test_auto_takes_the_estimator(noisy):
    X, y, flipped = noisy
    row_filter = ValueFilter(
        KNNShapleyValuer(10), "auto", estimator=KNeighborsClassifier(1)
    )
    row_filter.fit(X, y)
    assert row_filter.drop_ in (0.05, 0.1, 0.2, 0.3, 0.4)
    assert row_filter.drop_scores_.shape == (6, 5)
    assert len(row_filter.dropped_indices_) == int(row_filter.drop_ * len(y))
    assert flipped[row_filter.dropped_indices_].mean() > 0.5
    assert row_filter.report_.reason[0].endswith(
        f"(drop={row_filter.drop_} chosen by 'auto')"
    )


def test_report_is_a_table_of_the_rows_to_look_at(first_column, rows):
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
    X, y = np.c_[np.arange(900.0)], np.linspace(0, 1, 900)
    report = ValueFilter(first_column(), drop=0.5).fit(X, y).report_
    lines = repr(report).splitlines()
    assert lines[0] == "450 rows, lowest value first"
    assert lines[1].split() == ["row", "y", "value", "weight", "reason"]
    assert len(lines) == 13
    assert lines[-1] == "... and 440 more"
    again = pickle.loads(pickle.dumps(report))
    assert repr(again) == repr(report)


def test_equal_values_have_the_same_reason(first_column):
    X, y = np.c_[[1.0, 0.0, 0.0, 2.0, -1.0]], np.linspace(0, 1, 5)
    with pytest.warns(
        UserWarning, match="drop=2 cuts through ties: 1 of 2 equal values are"
    ):
        report = ValueFilter(first_column(), drop=2).fit(X, y).report_
    assert report.reason.tolist() == [
        "rank 1 of 5 values; drop selects the lowest 2",
        "ranks 2 to 3, which tie, of 5 values; drop selects the lowest 2",
    ]


def test_groups_go_as_wholes(first_column, rows):
    X, y = rows
    groups = np.array(["u", "v", "u", "w", "w", "v"])  # values -3, 6, 3
    y = np.array(["a", "b", "b", "a", "a", "b"])
    row_filter = ValueFilter(first_column(), drop=0.34).fit(X, y, groups=groups)
    assert row_filter.dropped_indices_.tolist() == [0, 2]
    np.testing.assert_array_equal(row_filter.values_, [-3, 6, -3, 3, 3, 6])
    assert row_filter.report_.group.tolist() == ["u", "u"]
    reason = "rank 1 of 3 values of groups; drop selects the lowest 1"
    assert set(row_filter.report_.reason) == {reason}
    with pytest.raises(ValueError, match=r"less than n_groups=3\. Got 3\."):
        ValueFilter(first_column(), drop=3).fit(X, y, groups=groups)


def test_frames_keep_index_names_and_kind(noisy):
    X, y, _ = noisy
    index = pd.Index([f"row {i}" for i in range(len(y))])
    frame = pd.DataFrame(X, columns=list("abcdef"), index=index)
    target = pd.Series(np.where(y, "yes", "no"), index=index)
    row_filter = ValueFilter(drop=0.2)
    X_kept, y_kept = row_filter.fit_resample(frame, target)
    assert X_kept.index.equals(index[row_filter.sample_indices_])
    assert y_kept.index.equals(X_kept.index)
    assert row_filter.feature_names_in_.tolist() == list("abcdef")
    polar = (
        pl.DataFrame(X, schema=list("abcdef")),
        pl.Series("y", np.where(y, "yes", "no")),
    )
    polar, polar_y = ValueFilter(drop=0.2).fit_resample(*polar)
    assert isinstance(polar, pl.DataFrame)
    np.testing.assert_array_equal(polar.to_numpy(), X_kept.to_numpy())
    assert polar_y.to_list() == y_kept.tolist()


def test_the_validation_set_and_its_weights_reach_the_valuer(first_column, rows):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop=2)
    points = {"X_val": X, "y_val": y, "sample_weight_val": np.arange(6.0)}
    row_filter.fit_resample(X, y, **points)
    assert all(row_filter.valuer_.seen_[name] is points[name] for name in points)


@pytest.mark.parametrize("routing", [False, True])
def test_sample_weight_reaches_a_valuer_that_trains(noisy, routing):
    X, y, _ = (part[:30] for part in noisy)
    weights = np.random.default_rng(0).random(30)
    valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
    expected = clone(valuer).fit(X, y, sample_weight=weights).values_
    with config_context(enable_metadata_routing=routing):
        asked = clone(valuer).set_fit_request(sample_weight=True) if routing else valuer
        row_filter = ValueFilter(asked, drop=5).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(row_filter.values_, expected)
        X_kept, _ = row_filter.fit_resample(X, y, sample_weight=weights)
        assert len(X_kept) == 25
        if routing:
            with pytest.raises(
                ValueError, match="sample_weight.* not explicitly set as request"
            ):
                ValueFilter(valuer).fit(X, y, sample_weight=weights)
    assert (ValueFilter(valuer, drop=5).fit(X, y).values_ != expected).any()
    with pytest.raises(
        ValueError, match="sample_weight needs a valuer whose fit.* Got KNNShapl"
    ):
        ValueFilter().fit(X, y, sample_weight=weights)


def test_a_step_of_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = noisy
    valuer = KNNShapleyValuer()
    steps = StandardScaler(), ValueFilter(valuer, drop=0.2), LogisticRegression()
    model = pipeline.make_pipeline(*steps)
    scaled = StandardScaler().fit_transform(X)
    kept = ValueFilter(valuer, drop=0.2).fit(scaled, y).sample_indices_
    expected = LogisticRegression().fit(scaled[kept], y[kept])
    np.testing.assert_allclose(model.fit(X, y)[-1].coef_, expected.coef_)
    assert len(kept) == 192
    assert model.predict(X).shape == y.shape  # no row is dropped in predict
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()
    grid = {"valuefilter__drop": [0, 0.2], "valuefilter__valuer__n_neighbors": [3, 5]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) > 1
    with config_context(enable_metadata_routing=True):
        model.fit(X, y, X_val=scaled[:50], y_val=y[:50])
    explicit = ValueFilter(valuer, drop=0.2).fit(
        scaled, y, X_val=scaled[:50], y_val=y[:50]
    )
    np.testing.assert_array_equal(model[1].sample_indices_, explicit.sample_indices_)
    assert not np.array_equal(explicit.sample_indices_, kept)


def test_weights_through_imbalanced_learns_pipeline(noisy):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y, _ = (part[:60] for part in noisy)
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


def test_a_fit_that_fails_leaves_the_former(first_column, rows):
    X, y = rows
    row_filter = ValueFilter(first_column(), drop="auto", estimator=GaussianNB(), cv=2)
    row_filter.fit(X, y)
    before = dict(vars(row_filter))
    with pytest.raises(ValueError, match="selects all"):
        row_filter.set_params(drop="negative").fit(
            -np.abs(X[:, :1]) - 1, np.linspace(0, 1, 6)
        )
    row_filter.set_params(drop="auto")
    assert vars(row_filter).keys() == before.keys()
    assert all(
        vars(row_filter)[name] is before[name] for name in before if name.endswith("_")
    )
    row_filter.set_params(drop=1).fit(X, y)
    assert not hasattr(row_filter, "drop_scores_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *(
            ({"drop": drop}, "'drop' parameter")
            for drop in (1.0, -0.1, -1, "harmful", None)
        ),
        *(({"drop": drop}, "'drop' parameter") for drop in (True, False)),  # no numbers
        ({"drop": 6}, "drop must be less than n_samples=6"),
        ({"drop": "auto"}, "drop='auto' needs an estimator"),
        ({"drop": "significant"}, "drop='significant' needs X_val"),
        ({"fdr": 0}, "'fdr' parameter"),
    ],
)
def test_refuses_before_any_work(counting, rows, parameters, message):
    # A valuer that has what "significant" asks for.
    valuer = type("Valuer", (counting,), {"harmful": lambda self, fdr: None})()
    with pytest.raises(ValueError, match=message):
        ValueFilter(valuer, **parameters).fit(*rows)
    assert counting.fits == type(valuer).fits == 0


def test_refuses_what_leaves_no_row(first_column):
    with pytest.raises(ValueError, match="at least one row.* Got 'negative'"):
        ValueFilter(first_column(), drop="negative").fit(
            -np.ones((4, 2)), [0.1, 0.2, 0.3, 0.4]
        )


def test_significant_needs_a_valuer_that_can(rows):
    with pytest.raises(
        ValueError, match="drop='significant' needs .* harmful. Got StandardS"
    ):
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
        assert (
            ("values_" in dir(row_filter))
            == ("report_" in dir(row_filter))
            == (epsilon is None)
        )
        assert (">values_" in row_filter._repr_html_()) == (epsilon is None)
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(row_filter))))
        np.testing.assert_array_equal(again.sample_indices_, row_filter.sample_indices_)
        n_lowered = len(row_filter.report_.row)
        assert n_lowered > 0
        if epsilon is None:
            np.testing.assert_array_equal(again.values_, row_filter.values_)
            assert again.report_.row.tolist() == row_filter.report_.row.tolist()
            return
        for name in ("values_", "report_"):
            with pytest.raises(
                AttributeError, match=f"{name} is based on .* for the curator"
            ):
                getattr(again, name)

    def test_warns_of_the_model(self, first_column, rows):
        with pytest.warns(
            UserWarning, match="with epsilon=1.*but a model trained on them is not"
        ):
            ValueFilter(first_column(epsilon=1), drop=2).fit(*rows)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_search_warns_once(self, first_column, noisy, recwarn, jobs):
        X, y, _ = noisy
        model = ValueFilteredClassifier(GaussianNB(), first_column(epsilon=1), drop=2)
        with parallel_config("threading"):
            GridSearchCV(model, {"drop": [1, 2, 3]}, cv=3, n_jobs=jobs).fit(X, y)
        assert len([w for w in recwarn if "is not private" in str(w.message)]) == 1
        again = ValueFilter(first_column(epsilon=1), drop=2)
        for fitted in range(2, 4):
            again.fit(X, y)
            assert (
                len([w for w in recwarn if "is not private" in str(w.message)])
                == fitted
            )

    def test_refuses_to_store_or_to_spend_in_every_fold(
        self, first_column, rows, tmp_path
    ):
        row_filter = ValueFilter(first_column(epsilon=1), memory=str(tmp_path))
        with pytest.raises(ValueError, match="memory must be None .* epsilon=1"):
            row_filter.fit(*rows)
        row_filter.set_params(memory=None, drop="auto", estimator=LogisticRegression())
        with pytest.raises(ValueError, match="drop must not be 'auto' .* epsilon=1"):
            row_filter.fit(*rows)
        assert list(tmp_path.iterdir()) == []

    def test_no_word_without_epsilon(self, first_column, rows, recwarn):
        ValueFilter(first_column(), drop=2).fit(*rows)
        assert len(recwarn) == 0
