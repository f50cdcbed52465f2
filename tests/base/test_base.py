"""The contract that every per-row valuer inherits, on the two neighbour methods."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from oracles import enumerate_game, knn_utility, tknn_utility
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_axioms import EXACT, by_name, problem

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.exceptions import (
    IncompleteFitWarning,
    QuadraticCostWarning,
    UnseenLabelsWarning,
)

from ..watch import Watch


def data(name, rng, **sizes):
    valuer, given = problem(name, rng, **sizes)
    return valuer, *given


# Players and points -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name, (_, n_classes) in EXACT.items() if n_classes]
)
def test_leave_one_out_is_the_mean_of_n_games(name, rng):
    # The regression, whose prior mean is that of all rows, is compared with
    # enumeration.
    n = 12
    valuer, X, y, *_ = data(name, rng, n=n)
    y[:8] = np.tile(np.arange(4), 2) % len(set(y))  # no class of a single row
    total = np.zeros(n)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        game = clone(valuer).fit(X[rest], y[rest], X_val=X[[i]], y_val=y[[i]])
        total[rest] += game.values_ / n
    np.testing.assert_allclose(valuer.fit(X, y).values_, total, atol=1e-13)
    assert valuer.set_params(cv=LeaveOneOut()).fit(X, y).values_ == pytest.approx(
        total, abs=1e-13
    )


@pytest.mark.parametrize(
    "cv", [4, KFold(5), RepeatedStratifiedKFold(n_splits=3, n_repeats=2)], ids=str
)
@pytest.mark.parametrize("name", ["knn", "tknn-euclidean"])
def test_cross_validation_is_the_mean_over_splits(name, cv, rng):
    valuer, X, y, *_ = data(name, rng)
    if isinstance(cv, RepeatedStratifiedKFold):
        cv.random_state = 0
    splits = list((StratifiedKFold(4) if cv == 4 else cv).split(X, y))
    total, utility = np.zeros(len(X)), []
    for players, points in splits:
        game = clone(valuer).fit(
            X[players], y[players], X_val=X[points], y_val=y[points]
        )
        total[players] += game.values_ / len(splits)
        utility.append(game.utility_)
    valuer.set_params(cv=cv).fit(X, y)
    np.testing.assert_allclose(valuer.values_, total, atol=1e-13)
    assert valuer.utility_ == pytest.approx(np.mean(utility))
    assert clone(valuer).set_params(cv=splits).fit(X, y).values_ == pytest.approx(total)


@by_name
def test_groups_sum_their_rows(name, rng):
    valuer, X, y, X_val, y_val = data(name, rng)
    groups = np.array(["north", "south", "east"])[rng.integers(0, 3, len(X))]
    rows = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    values = valuer.fit_transform(X, y, X_val=X_val, y_val=y_val, groups=groups)
    assert list(valuer.groups_) == ["east", "north", "south"]
    expected = {g: rows[groups == g].sum() for g in valuer.groups_}
    np.testing.assert_allclose(valuer.values_, list(expected.values()))
    np.testing.assert_allclose(values[:, 0], [expected[g] for g in groups])
    valuer.fit(X, y)
    assert not hasattr(valuer, "groups_")


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning")  # few rows
@pytest.mark.parametrize("cls", [KNNShapleyValuer, TKNNShapleyValuer])
def test_a_class_that_only_validation_points_have_counts_as_one(cls, rng):
    X, X_val, y_val = (
        rng.normal(size=(6, 2)),
        rng.normal(size=(5, 2)),
        np.array(list("abzzq")),
    )
    y = np.array(list("ababab"))
    if cls is KNNShapleyValuer:
        valuer = cls(2)
        game = partial(knn_utility, k=2, utility="soft", n_classes=4, prior=0)
    else:
        valuer = cls(1.0, metric="euclidean")
        game = partial(tknn_utility, radius=1.0, n_classes=4)
    expected = enumerate_game(game, X, y, X_val, y_val)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-13)
    assert valuer.classes_.tolist() == list("abqz")
    assert valuer.empty_utility_ == 1 / 4
    later = clone(valuer).fit(X, y, X_val=X_val[:2], y_val=y_val[:2])
    assert later.empty_utility_ == 1 / 2
    later.add_validation(X_val[2:], y_val[2:])
    np.testing.assert_allclose(later.values_, expected, atol=1e-13)
    assert np.isfinite(later.score_samples(X_val[:2], ["z", "b"])).all()
    if cls is TKNNShapleyValuer:  # the private game has the same classes
        private = clone(valuer).set_params(radius=1.0, epsilon=1.0)
        private.fit(X, y, X_val=X_val, y_val=y_val)
        assert private.classes_.tolist() == list("abqz")
        assert private.empty_utility_ == 1 / 4


def test_a_group_is_no_validation_point_of_itself(rng):
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    groups = np.arange(30) // 3
    valuer = KNNShapleyValuer(1).fit(X, y, groups=groups)
    doubled = np.r_[X, X + 1e-9]  # a twin in another group would be the nearest row
    twins = KNNShapleyValuer(1).fit(doubled, np.r_[y, y], groups=np.r_[groups, groups])
    assert twins.utility_ == pytest.approx(valuer.utility_)
    assert KNNShapleyValuer(1).fit(doubled, np.r_[y, y]).utility_ == pytest.approx(1)


# Rows that were not in fit ------------------------------------------------------------


@by_name
@pytest.mark.parametrize("points_of", ["validation", "leave-one-out"])
def test_unseen_rows_are_valued_by_the_game_with_them(name, rng, points_of):
    valuer, X, y, X_val, y_val = data(name, rng, n=30)
    extra = {"X_val": X_val, "y_val": y_val} if points_of == "validation" else {}
    X_new, y_new = rng.integers(-2, 3, (6, 3)) / 2.0 + 0.25, rng.choice(y, 6)
    scores = valuer.fit(X, y, **extra).score_samples(X_new, y_new)
    for score, row, label in zip(scores, X_new, y_new):
        if points_of == "leave-one-out" and name.startswith("knn-regression"):
            # The prior mean stays that of the fitted rows, see the docstring.
            label = y.mean()
            score = valuer.score_samples([row], [label])[0]
        grown = clone(valuer).fit(np.r_[X, [row]], np.r_[y, label], **extra)
        assert grown.values_[-1] == pytest.approx(score, abs=1e-12)


@by_name
def test_seen_rows_have_their_fitted_values(name, rng):
    valuer, X, y, X_val, y_val = data(name, rng)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    same = (X[:, None] == X).all(axis=2)
    np.testing.assert_allclose(
        valuer.transform(X)[:, 0], same @ valuer.values_ / same.sum(axis=1)
    )
    same &= y[:, None] == y
    zeros = np.where(X == 0, rng.choice([-0.0, 0.0], X.shape), X)
    scores = valuer.score_samples(zeros, y)
    np.testing.assert_allclose(scores, same @ valuer.values_ / same.sum(axis=1))


@pytest.mark.parametrize("name", ["knn", "tknn", "tknn-euclidean"])
def test_unknown_labels_are_averaged(name, rng):
    valuer, X, y, X_val, y_val = data(name, rng)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    X_new = np.r_[rng.integers(-2, 3, (8, 3)) / 2.0 + 0.25, [[99.0, -3, 5]]]
    by_label = np.array(
        [valuer.score_samples(X_new, np.full(9, c)) for c in valuer.classes_]
    )
    metric = valuer.metric
    distances = 1 - X_new @ X.T / np.outer(
        np.linalg.norm(X_new, axis=1), np.maximum(np.linalg.norm(X, axis=1), 1e-9)
    )
    if metric == "euclidean":
        distances = np.sqrt(((X_new[:, None] - X) ** 2).sum(axis=2))
    for score, labels, d in zip(valuer.score_samples(X_new), by_label.T, distances):
        if name.startswith("tknn"):
            weights = (d <= valuer.radius + 1e-12).astype(float)
        else:
            cut = np.sort(d)[valuer.n_neighbors - 1]
            inside, tied = d < cut - 1e-12, np.abs(d - cut) < 1e-12
            weights = inside + tied * (valuer.n_neighbors - inside.sum()) / tied.sum()
        fractions = np.bincount(y, weights, minlength=len(labels))
        fractions = (
            fractions / weights.sum()
            if weights.any()
            else np.full(len(labels), 1 / len(labels))
        )
        assert score == pytest.approx(fractions @ labels, abs=1e-13)


@pytest.mark.parametrize("name", ["score_samples", "transform"])
def test_a_method_of_the_rows_of_fit_alone_names_those_of_unseen_rows(name):
    assert not hasattr(DataShapleyValuer, name)
    with pytest.raises(
        AttributeError, match=f"DataShapleyValuer has no {name}.*KNNShapleyValuer"
    ):
        getattr(DataShapleyValuer(), name)


def test_float32_rows_are_found_again(rng):
    X, y = rng.normal(size=(20, 3)).astype(np.float32), rng.integers(0, 2, 20)
    valuer = KNNShapleyValuer().fit(X, y)
    np.testing.assert_allclose(
        valuer.transform(X.astype(np.float64))[:, 0], valuer.values_
    )


# Data that changes --------------------------------------------------------------------


@by_name
@pytest.mark.parametrize(("weighted", "grouped"), [(False, True), (True, False)])
def test_adding_validation_points_equals_a_refit(name, rng, weighted, grouped):
    valuer, X, y, X_val, y_val = data(name, rng)
    w = rng.random(30) if weighted else None
    groups = {"groups": np.arange(80) % 4} if grouped else {}
    whole = clone(valuer).fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=w, **groups
    )
    first, second = (None, None) if w is None else (w[:20], w[20:])
    part = clone(valuer).fit(
        X, y, X_val=X_val[:20], y_val=y_val[:20], sample_weight_val=first, **groups
    )
    assert (
        part.validation_error_.shape == part.values_.shape
    )  # must not survive the change
    part.add_validation(X_val[20:], y_val[20:], sample_weight_val=second)
    for attribute in ("values_", "utility_", "empty_utility_", "validation_error_"):
        np.testing.assert_allclose(
            getattr(part, attribute),
            getattr(whole, attribute),
            atol=1e-13,
            err_msg=attribute,
        )
    np.testing.assert_allclose(
        part.transform(X[:5] + 0.1), whole.transform(X[:5] + 0.1)
    )
    if hasattr(whole, "counts_"):
        np.testing.assert_array_equal(part.counts_, whole.counts_)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
def test_dates_that_are_missing(kind, rng):
    X, y = rng.normal(size=(20, 2)), np.array([1, 2] * 10).astype(kind)
    missing = y.copy()
    missing[3] = "NaT"
    message = "must hold no missing labels. Got .*NaT.* at place 3."
    for valuer in (KNNShapleyValuer(2), DataOOBValuer(n_estimators=2)):
        for labels in (missing, pd.Series(missing), pd.Series(missing).astype(object)):
            with pytest.raises(ValueError, match=f"y {message}"):
                valuer.fit(X, labels)
    valuer = KNNShapleyValuer(2).fit(X, y)
    with pytest.raises(ValueError, match=f"y {message}"):
        valuer.score_samples(X, missing)
    valuer.fit(X, y, X_val=X, y_val=y)
    for use in (
        valuer.add_validation,
        lambda *points: valuer.fit(X, y, X_val=X, y_val=missing),
    ):
        with pytest.raises(ValueError, match=f"y_val {message}"):
            use(X, missing)


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer()])
@pytest.mark.parametrize("first", [1e308, 1.0, 0.0])
def test_huge_validation_weights(valuer, first, rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    points, labels = rng.normal(size=(8, 2)), np.arange(8) % 2
    weights = np.r_[np.full(4, first), np.full(4, 1e308)]
    weights[0] = 1e308
    whole = clone(valuer).fit(
        X, y, X_val=points, y_val=labels, sample_weight_val=weights
    )
    valuer = clone(valuer).fit(
        X, y, X_val=points[:4], y_val=labels[:4], sample_weight_val=weights[:4]
    )
    for start in (4, 6):
        part = slice(start, start + 2)
        valuer.add_validation(
            points[part], labels[part], sample_weight_val=weights[part]
        )
    if not isinstance(
        valuer, TKNNShapleyValuer
    ):  # the radius is that of the first points
        np.testing.assert_allclose(valuer.values_, whole.values_, atol=1e-14)
        assert valuer.utility_ == pytest.approx(whole.utility_)
    assert np.isfinite(valuer.values_).all()
    assert np.isfinite(valuer.validation_error_).all()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", ["object", "str", "string", "category"])
def test_labels_that_are_missing(missing, kind, rng):
    X, y = rng.normal(size=(20, 2)), pd.Series(["a", "b"] * 10, dtype=kind)
    y[3] = missing
    with pytest.raises(
        ValueError, match="y must hold no missing labels. Got .* at place 3."
    ):
        KNNShapleyValuer().fit(X, y)


# Callbacks and interruptions ----------------------------------------------------------


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer()])
@pytest.mark.parametrize("cv", ["leave-one-out", 3])
def test_callbacks_see_every_task(valuer, cv, rng):
    X, y = rng.normal(size=(900, 2)), rng.integers(0, 2, 900)
    watch = Watch()
    plain = clone(valuer).set_params(cv=cv).fit(X, y).values_
    watched = clone(valuer).set_params(cv=cv).set_callbacks(watch).fit(X, y)
    assert watch.begun == watch.ended == watch.expected > 1
    assert watch.set_up == watch.torn_down == 1
    np.testing.assert_array_equal(watched.values_, plain)


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(n_jobs=2), TKNNShapleyValuer(0.5, n_jobs=2)]
)
def test_a_callback_stops_the_fit_and_values_are_of_the_points_done(valuer, rng):
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    X_val, y_val = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000)
    valuer.set_callbacks(Watch(stop_at=2))
    with pytest.warns(
        IncompleteFitWarning, match="stopped by a callback: .* evaluated until then"
    ):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    done = len(valuer.contributions(0).contributions)
    assert 0 < done < 3000
    part = (
        clone(valuer).set_callbacks().fit(X, y, X_val=X_val[:done], y_val=y_val[:done])
    )
    np.testing.assert_allclose(valuer.values_, part.values_, atol=1e-13)
    assert valuer.utility_ == pytest.approx(part.utility_)
    np.testing.assert_allclose(valuer.transform(X + 1), part.transform(X + 1))


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(n_jobs=2), TKNNShapleyValuer(0.5, n_jobs=2)]
)
def test_updates_after_an_early_stop(valuer, rng):
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    X_val, y_val = rng.normal(size=(6000, 2)), rng.integers(0, 2, 6000)
    w = rng.random(6000)
    valuer.set_callbacks(Watch(stop_at=2))
    with pytest.warns(IncompleteFitWarning):
        valuer.fit(
            X, y, X_val=X_val[:3000], y_val=y_val[:3000], sample_weight_val=w[:3000]
        )
    first = len(valuer.contributions(0).contributions)
    valuer.set_callbacks(Watch(stop_at=1))
    with pytest.warns(IncompleteFitWarning):
        valuer.add_validation(X_val[3000:], y_val[3000:], sample_weight_val=w[3000:])
    second = len(valuer.contributions(0).contributions) - first
    assert 0 < first < 3000
    assert 0 < second < 3000
    done = np.r_[:first, 3000 : 3000 + second]
    whole = clone(valuer).set_callbacks()
    whole.fit(X, y, X_val=X_val[done], y_val=y_val[done], sample_weight_val=w[done])
    np.testing.assert_allclose(valuer.values_, whole.values_, atol=1e-13)
    assert valuer.utility_ == pytest.approx(whole.utility_)


def test_control_c_keeps_what_is_done(rng):
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    X_val, y_val = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000)
    watch = Watch(interrupt_at=3)
    valuer = KNNShapleyValuer().set_callbacks(watch)
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert watch.torn_down == 1
    gap = valuer.values_.sum() - (valuer.utility_ - valuer.empty_utility_)
    assert abs(gap) < 1e-12
    assert np.count_nonzero(valuer.values_) == 50


class Impatient(Watch):
    """Interrupts a task before it has begun."""

    def on_fit_task_begin(self, estimator, context):
        super().on_fit_task_begin(estimator, context)
        if self.begun == self.interrupt_at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer(0.1)])
def test_control_c_before_any_point_is_done(valuer, rng):
    X, y = rng.normal(size=(900, 2)), rng.integers(0, 2, 900)
    valuer = clone(valuer).set_callbacks(Impatient(interrupt_at=1))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, X_val=X, y_val=y)
    assert not hasattr(valuer, "values_")
    # The first fold is done, the second is left out of the means.
    folds = [
        (np.arange(450), np.arange(450, 900)),
        (np.arange(450, 900), np.arange(450)),
    ]
    watch = Watch()
    valuer.set_params(cv=folds).set_callbacks(watch).fit(X, y)
    assert watch.begun % 2 == 0
    valuer.set_callbacks(Impatient(interrupt_at=watch.begun // 2 + 1))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y)
    first = (
        clone(valuer)
        .set_callbacks()
        .fit(X[:450], y[:450], X_val=X[450:], y_val=y[450:])
    )
    np.testing.assert_allclose(valuer.values_[:450], first.values_)
    np.testing.assert_array_equal(valuer.values_[450:], 0)
    assert valuer.utility_ == pytest.approx(first.utility_)
    assert len(valuer.contributions(3).contributions) == 900


def test_progress_bar(rng, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    KNNShapleyValuer().set_callbacks(ProgressBar()).fit(X, y)
    assert "KNNShapleyValuer" in capsys.readouterr().out


# Metadata -----------------------------------------------------------------------------


def test_grid_search_slices_a_validation_set_as_long_as_x(rng):
    # scikit-learn's rule for metadata; the user guide warns of it.
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    seen = []

    class Spy(KNNShapleyValuer):
        def fit(self, X, y, *, X_val=None, y_val=None):
            seen.append(len(X_val))
            return super().fit(X, y, X_val=X_val, y_val=y_val)

        def score(self, X, y):
            return self.utility_

    for n_val, expected in [(40, 20), (30, 30)]:
        seen.clear()
        search = GridSearchCV(Spy(), {"n_neighbors": [1, 2]}, cv=2, refit=False)
        with config_context(enable_metadata_routing=True):
            search.estimator.set_fit_request(X_val=True, y_val=True)
            search.fit(X, y, X_val=X[:n_val], y_val=y[:n_val])
        assert seen == [expected] * 4


def test_pipeline_with_groups(rng):
    X, y, groups = rng.normal(size=(40, 2)), np.arange(40) % 2, np.arange(40) % 5
    with config_context(enable_metadata_routing=True):
        step = KNNShapleyValuer(cv=GroupKFold(5)).set_fit_request(groups=True)
        values = make_pipeline(StandardScaler(), step).fit_transform(
            X, y, groups=groups
        )
    assert len(np.unique(values)) == 5


def test_weights_whose_sum_overflows_are_weights(rng):
    X, y, w = rng.normal(size=(20, 2)), np.arange(20) % 2, rng.random(20)
    expected = KNNShapleyValuer().fit(X, y, X_val=X, y_val=y, sample_weight_val=w)
    for scale in (1e308, 1e-300):
        huge = KNNShapleyValuer().fit(
            X, y, X_val=X, y_val=y, sample_weight_val=w * scale
        )
        np.testing.assert_allclose(huge.values_, expected.values_, rtol=1e-12)


# Bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_bad_number_among_many_is_found(bad):
    X = np.zeros((1050, 1000), dtype=np.float32)
    y = np.arange(1050) % 2
    X[-1, -1] = bad
    with pytest.raises(ValueError, match="Input X contains (NaN|infinity)"):
        KNNShapleyValuer().fit(X, y)
    X[-1, -1] = 1e30  # finite, though its square is not
    with pytest.raises(ValueError, match="squared norms that fit its precision"):
        KNNShapleyValuer().fit(X, y)


X0 = np.arange(20.0).reshape(10, 2)
Y0 = np.array(["a", "b"] * 5)
NAN = np.where(X0 == 4, np.nan, X0)

TEN = {"X_val": X0, "y_val": Y0}
TWO_COLUMNS = np.ones((10, 2))
BAD = {  # what is passed to fit, and the message
    "NaN in X": ({"X": NAN}, "Input X contains NaN"),
    "NaN in X_val": (TEN | {"X_val": NAN}, "X_val must be like X: Input.*NaN"),
    "one class": ({"y": ["a"] * 10}, "y must have at least 2 classes. Got one class: 'a'"),
    "one class, of numpy": (
        {"y": np.array([np.str_("a")] * 10, dtype=object)}, "Got one class: 'a' ",
    ),
    "other labels, of numpy": (
        TEN | {"y_val": np.array([np.str_("c")] * 10, dtype=object)}, "labels: 'c'. Labels of y: ",
    ),
    "no y": ({"y": None}, "requires y to be passed, but the target y is None"),
    "X_val alone": ({"X_val": X0}, "X_val and y_val must be passed together. Got X_val"),
    "y_val alone": ({"y_val": Y0}, "X_val and y_val must be passed together. Got y_val"),
    "empty": ({"X_val": X0[:0], "y_val": Y0[:0]}, "Got an empty validation set"),
    "a number for X_val": (TEN | {"X_val": 3}, "X_val must be like X: Expected 2D array"),
    "lengths": (TEN | {"y_val": Y0[:3]}, "must have the same length. Got 10 and 3"),
    "columns": (TEN | {"X_val": X0[:, :1]}, "X_val must be like X: X_val has 1 features"),
    "other kind": ({"X_val": X0[:2], "y_val": [1, 2]}, "labels that y has. Got unseen"),
    "groups": ({"groups": [1, 2]}, r"groups must have one entry per row of X \(10\). Got 2"),
    "one group": ({"groups": [1] * 10}, "groups must name at least 2 groups. Got one: 1"),
    "groups of two columns": ({"groups": np.c_[Y0, Y0]}, "groups must be one column"),
    **{
        f"groups with {name}": (
            {"groups": np.array([name, *rest], dtype=object)},
            "groups must hold names of one kind, and no None, NaN or NA",
        )
        for name, rest in [(None, "a" * 9), (np.nan, range(9)), (pd.NA, "a" * 9), (1, "a" * 9)]
    },
    "weights": (TEN | {"sample_weight_val": [1.0]}, r"\(10\). Got 1"),
    "weights of two columns": (
        TEN | {"sample_weight_val": TWO_COLUMNS}, "sample_weight_val must be one column",
    ),
    "y_val of two columns": (TEN | {"y_val": np.c_[Y0, Y0]}, "y_val must be one column"),
    "negative weight": (
        TEN | {"sample_weight_val": [-1.0] * 10},
        "sample_weight_val must be non-negative and not all zero",
    ),
    "weights without points": ({"sample_weight_val": [1] * 10}, "sample_weight_val needs X_val"),
    "labels of no type": ({"y": np.arange(10).astype(object)}, r"objects .* y\.astype\(int\)\."),
    "one row": ({"X": X0[:1], "y": Y0[:1]}, "minimum of 2 is required"),
}  # fmt: skip


@pytest.mark.parametrize("cls", [KNNShapleyValuer, TKNNShapleyValuer])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_work_starts(cls, case):
    given, message = BAD[case]
    watch = Watch()
    with pytest.raises(ValueError, match=message):
        cls().set_callbacks(watch).fit(**{"X": X0, "y": Y0, **given})
    assert watch.begun == 0


@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (
            ShuffleSplit(3, random_state=0),
            None,
            "must let every row play equally often",
        ),
        (
            [(np.arange(5), np.arange(5))],
            None,
            "must not put a row on both sides of a split",
        ),
        (
            [(np.arange(5), np.arange(5, 10))] * 2,
            np.arange(10) % 3,
            "must keep every group on one",
        ),
        (20, None, "n_splits=20"),
        ("leave-two-out", None, "'cv' parameter of KNNShapleyValuer must be"),
    ],
)
def test_uneven_splitters_are_refused(cv, groups, message):
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(cv=cv).fit(X0, Y0, groups=groups)


def test_messages_after_fit():
    valuer = KNNShapleyValuer()
    for call in (valuer.transform, valuer.score_samples, valuer.contributions):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(X0)
    valuer.fit(X0, Y0)
    cases = [
        (lambda: valuer.transform(X0[:, :1]), "X has 1 features, but .* expecting 2"),
        (
            lambda: valuer.score_samples(X0, Y0[:3]),
            r"y must have one entry .* \(10\). Got 3",
        ),
        (
            lambda: valuer.score_samples(X0[:1], ["q"]),
            "y must hold only labels that y has. Got",
        ),
        (
            lambda: valuer.add_validation(X0, Y0),
            "add_validation needs a validation set",
        ),
    ]
    before = valuer.values_.copy()
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(valuer.values_, before)  # nothing is lost
    with_points = clone(valuer).fit(X0, Y0, X_val=X0, y_val=Y0)
    for weights, message in [
        ([np.nan], "sample_weight_val contains NaN"),
        ([-1.0], "must be non-negative"),
        ([[1.0, 1.0]], "must be one column"),
        ([1.0, 1.0], r"\(1\). Got 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            with_points.add_validation(X0[:1], Y0[:1], sample_weight_val=weights)
    with pytest.raises(ValueError, match="y_val must have the same type as in fit"):
        with_points.add_validation(X0[:2], [1, 2])


def test_a_refused_change_leaves_all_attributes_of_a_fit(rng):
    X, y, groups = rng.normal(size=(12, 2)), np.arange(12) % 3, np.arange(12) // 3
    valuer = KNNShapleyValuer(2, cv=4).fit(X, y, groups=groups)
    scores = valuer.score_samples(X[:2] + 9, y[:2])
    for refused in (
        dict(y=np.zeros(12)),
        dict(y=y, groups=groups % 2),
    ):  # 4 folds of 2 groups
        with pytest.raises(ValueError, match="2 classes|number of groups"):
            valuer.fit(X, **refused)
    assert valuer.classes_.tolist() == [0, 1, 2]
    assert valuer.groups_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(valuer.score_samples(X[:2] + 9, y[:2]), scores)


def test_leave_one_out_of_many_rows_warns():
    n = 50_001
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    valuer = KNNShapleyValuer().set_callbacks(Impatient(interrupt_at=1))
    message = "compares 2,500,100,001 pairs of rows. Pass X_val and y_val"
    with (
        pytest.warns(QuadraticCostWarning, match=message),
        pytest.raises(KeyboardInterrupt),
    ):
        valuer.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cv, n_rows in ((5, n), ("leave-one-out", n - 1)):
            with pytest.raises(KeyboardInterrupt):
                valuer.set_params(cv=cv).fit(X[:n_rows], y[:n_rows])


@pytest.mark.parametrize(
    "labels", [["x", "y"], [3, 17], [True, False], [1.0, 2.0], ["1", "10"]]
)
def test_labels_of_any_kind(labels, rng):
    X, codes = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    y = np.array(labels)[codes]
    plain = KNNShapleyValuer().fit(X, codes, X_val=X[:9] + 0.1, y_val=codes[:9])
    order = 1 if labels == sorted(labels) else -1
    valuer = KNNShapleyValuer().fit(
        X, pd.Series(y), X_val=X[:9] + 0.1, y_val=list(y[:9])
    )
    np.testing.assert_array_equal(valuer.classes_, labels[::order])
    np.testing.assert_allclose(valuer.values_, plain.values_)
    np.testing.assert_allclose(
        valuer.score_samples(X, y), plain.score_samples(X, codes)
    )


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (
            np.array([1, 2], dtype=object),
            ValueError,
            "convert them, for example with y.astype",
        ),
        (
            np.array([1, "a"], dtype=object),
            ValueError,
            "convert them, for example with y.astype",
        ),
        (np.array([b"a", b"b"]), TypeError, "Convert the labels to a string"),
    ],
)
def test_labels_that_are_refused(labels, error, message):
    with pytest.raises(error, match=message):
        KNNShapleyValuer().fit(X0, labels[np.arange(10) % 2])


@pytest.mark.parametrize("cls", [KNNShapleyValuer, TKNNShapleyValuer])
@pytest.mark.parametrize(
    ("names", "new"),
    [(["no", "yes"], ["No ", "YES"]), ([0, 1], [7, 8]), ([0.0, 1.0], [2.0, 3.0])],
)
def test_validation_labels_that_no_row_has(cls, names, new, rng):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    names, new = np.array(names), np.array(new)
    with pytest.raises(
        ValueError, match="y_val must hold only labels that y has.*Labels of y"
    ):
        cls().fit(X, names[y], X_val=X[:8] + 0.1, y_val=new[y[:8]])
    y_val = np.where(np.arange(8) < 4, names[y[:8]], new[y[:8]])
    hint = r"Up to case and spaces y has 'no', 'yes'" if new.dtype.kind == "U" else ""
    with pytest.warns(UnseenLabelsWarning, match=f"labels that no row has.*{hint}"):
        cls().fit(X, names[y], X_val=X[:8] + 0.1, y_val=y_val)
