"""The game of training a model: the loop over fits, weights, groups, failures,
scorers."""

import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    make_scorer,
    precision_score,
    roc_auc_score,
)
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skvalue import LeaveOneOutValuer
from skvalue.exceptions import FailedCoalitionsWarning
from skvalue.games import ModelGame, failed_warnings

from ..problems import two_classes

TREE = DecisionTreeClassifier(max_depth=2, random_state=0)


@pytest.fixture
def data(rng):
    return two_classes(rng, 40, 20)


@pytest.fixture
def masks(rng):
    return rng.random((15, 40)) < 0.4


def by_hand(estimator, X, y, X_val, y_val, masks):
    return [clone(estimator).fit(X[m], y[m]).score(X_val, y_val) for m in masks]


@pytest.mark.parametrize("estimator", [TREE, GaussianNB(), LogisticRegression()])
def test_labels_that_only_uint64_holds(data, masks, estimator):
    X, y, X_val, y_val = data
    large = np.array([5, 2**64 - 1], dtype=np.uint64)
    games = [
        ModelGame(
            estimator, X, labels[(y == "yes") * 1], X_val, labels[(y_val == "yes") * 1]
        )
        for labels in (np.array([0, 1]), large)
    ]
    np.testing.assert_array_equal(*(game.utility(masks) for game in games))


@pytest.mark.parametrize(
    "estimator", [TREE, make_pipeline(StandardScaler(), LinearSVC(random_state=0))]
)
def test_utility_is_the_score_of_a_fit(estimator, data, masks):
    game = ModelGame(estimator, *data)
    assert game.solver == "loop"
    np.testing.assert_array_equal(game.utility(masks), by_hand(estimator, *data, masks))
    assert (game.n_evaluations, game.n_failed) == (len(masks), 0)
    game.utility(masks)
    assert game.n_evaluations == len(masks)


def test_regression(data, masks):
    X, _, X_val, _ = data
    model = DecisionTreeRegressor(max_depth=2, random_state=0)
    game = ModelGame(model, X, X[:, 1], X_val, X_val[:, 1])
    expected = by_hand(model, X, X[:, 1], X_val, X_val[:, 1], masks)
    np.testing.assert_array_equal(game.utility(masks), expected)
    assert game.utility(np.zeros((1, 40), dtype=bool)) == [0]


@pytest.mark.parametrize(
    "backend",
    [
        "threading",
        *(pytest.param(b, marks=pytest.mark.slow) for b in ("loky", "multiprocessing")),
    ],
)
def test_same_bits_for_any_workers(backend, data, masks):
    game = ModelGame(
        SGDClassifier(), *data, scoring="balanced_accuracy", random_state=3
    )
    one = game.utility(masks)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        many = ModelGame(
            SGDClassifier(), *data, scoring="balanced_accuracy", random_state=3
        )
        np.testing.assert_array_equal(many.utility(masks), one)
    other = ModelGame(
        SGDClassifier(), *data, scoring="balanced_accuracy", random_state=4
    )
    assert (other.utility(masks) != one).any()


def test_on_a_dask_cluster(data, masks):
    distributed = pytest.importorskip("distributed")
    expected = ModelGame(TREE, *data).utility(masks)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        np.testing.assert_array_equal(ModelGame(TREE, *data).utility(masks), expected)


def test_random_state_is_given_to_what_has_none():
    X, y = np.arange(8.0)[:, None], np.tile([0, 1], 4)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(2))
    game = ModelGame(pipeline, X, y, X, y, random_state=5)
    assert game._training.estimator[-1].random_state == 5
    assert pipeline[-1].random_state is None
    fixed = RandomForestClassifier(2, random_state=1)
    assert (
        ModelGame(fixed, X, y, X, y, random_state=5)._training.estimator.random_state
        == 1
    )


def test_sample_weight_is_cut_with_the_coalition(data, masks, rng):
    X, y, X_val, y_val = data
    weights = rng.random(40)
    game = ModelGame(TREE, *data, sample_weight=weights)
    expected = [
        clone(TREE).fit(X[m], y[m], sample_weight=weights[m]).score(X_val, y_val)
        for m in masks
    ]
    np.testing.assert_array_equal(game.utility(masks), expected)


def test_rows_of_weight_zero_are_not_there(data):
    X, y, X_val, y_val = data
    weights = np.r_[np.zeros(20), np.ones(20)]
    game = ModelGame(TREE, *data, sample_weight=weights)
    masks = np.arange(40) < [[25], [20]]
    expected = clone(TREE).fit(X[20:25], y[20:25]).score(X_val, y_val)
    assert len(set(y[20:25])) == 2
    assert game.utility(masks).tolist() == [expected, 0.5]
    assert (game.n_evaluations, game.n_failed, game.n_one_class) == (2, 0, 0)

    game = ModelGame(TREE, *data, sample_weight=(y == "yes").astype(float))
    game.utility(np.ones((1, 40), dtype=bool))
    assert (game.n_failed, game.n_one_class) == (0, 1)


def test_a_split_may_have_rows_of_weight_zero_alone(data):
    X, y, *_ = data
    y = np.where(np.arange(40) % 2, "yes", "no")
    valuer = LeaveOneOutValuer(GaussianNB(), cv=KFold(2))
    values = valuer.fit(X, y, sample_weight=np.repeat([0.0, 1.0], 20)).values_
    assert (values[:20] == 0).all()


def test_validation_weights(data, masks, rng):
    X, y, X_val, y_val = data
    weights = rng.random(20)
    game = ModelGame(TREE, *data, scoring="neg_log_loss", sample_weight_val=weights)
    expected = [
        -log_loss(
            y_val,
            clone(TREE).fit(X[m], y[m]).predict_proba(X_val),
            sample_weight=weights,
        )
        for m in masks
    ]
    np.testing.assert_allclose(game.utility(masks), expected)
    # Equal weights are none, so that any scorer goes.
    ModelGame(
        TREE,
        *data,
        scoring=lambda m, X, y: 1.0,
        empty_utility=0,
        sample_weight_val=[2] * 20,
    )


def test_weights_that_are_refused(data):
    with pytest.raises(
        ValueError, match="sample_weight needs an estimator whose fit takes it. Go"
    ):
        ModelGame(KNeighborsClassifier(), *data, sample_weight=np.ones(40))
    with pytest.raises(
        ValueError, match="sample_weight_val, .* need a scorer that takes"
    ):
        ModelGame(
            TREE,
            *data,
            scoring=lambda m, X, y: 1.0,
            empty_utility=0,
            sample_weight_val=range(20),
        )
    with pytest.raises(ValueError, match="sample_weight must be non-negative. Got -1"):
        ModelGame(TREE, *data, sample_weight=-np.ones(40))


def test_weights_through_a_pipeline(data, masks, rng):
    weights = rng.random(40)
    with (
        config_context(enable_metadata_routing=True),
        joblib.parallel_config("threading"),
    ):
        tree = clone(TREE).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        game = ModelGame(
            make_pipeline(scaler, tree), *data, sample_weight=weights, n_jobs=2
        )
        plain = ModelGame(TREE, *data, sample_weight=weights)
        np.testing.assert_array_equal(game.utility(masks), plain.utility(masks))


def test_weights_that_no_step_of_a_pipeline_requests(data):
    weights = np.ones(40)
    pipeline = make_pipeline(StandardScaler(), clone(TREE))
    with pytest.raises(
        ValueError, match="(?s)sample_weight needs.*A pipeline takes it"
    ):
        ModelGame(pipeline, *data, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(
            ValueError, match="sample_weight.* not explicitly set as requested"
        ):
            ModelGame(pipeline, *data, sample_weight=weights)
        with pytest.raises(
            ValueError, match="sample_weight needs an estimator whose fit takes it"
        ):
            ModelGame(KNeighborsClassifier(), *data, sample_weight=weights)


def test_groups_are_players(data):
    X, y, X_val, y_val = data
    groups = np.repeat(["b", "a", "c", "d"], 10)
    game = ModelGame(TREE, *data, groups=groups)
    assert game.n_players == 4
    assert game.groups_.tolist() == ["a", "b", "c", "d"]
    rows = np.isin(groups, ["a", "d"])
    expected = clone(TREE).fit(X[rows], y[rows]).score(X_val, y_val)
    assert game.utility([[True, False, False, True]]) == [expected]


def test_data_frames_and_sparse_rows(data, masks):
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_array

    X, y, X_val, y_val = data
    expected = ModelGame(TREE, *data).utility(masks)
    frames = [pandas.DataFrame(part, columns=["a", "b", "c"]) for part in (X, X_val)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # about feature names
        got = ModelGame(TREE, frames[0], y, frames[1], y_val).utility(masks)
    np.testing.assert_array_equal(got, expected)
    got = ModelGame(TREE, csr_array(X), y, csr_array(X_val), y_val).utility(masks)
    np.testing.assert_array_equal(got, expected)


# Coalitions that lack classes ---------------------------------------------------------


@pytest.fixture
def three():
    """Three classes; the players are sorted by class, eight each."""
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 8)
    X = rng.normal(size=(24, 2)) + np.repeat([[0, 0], [2, 0], [0, 2]], 8, axis=0)
    return X, y, X[::2] + 0.1, y[::2]


def members(*rows):
    mask = np.zeros((1, 24), dtype=bool)
    mask[0, list(rows)] = True
    return mask


@pytest.mark.parametrize("batch", ["auto", "never"])
def test_one_class_predicts_itself(three, batch):
    game = ModelGame(LogisticRegression(), *three, batch=batch)
    assert game.utility(members(0, 1)) == [1 / 3]
    game = ModelGame(LogisticRegression(), *three, scoring="neg_log_loss", batch=batch)
    expected = (
        np.log(3 / 5) + 2 * np.log(1 / 5)
    ) / 3  # (count + 1) / (n + C), n = 2, C = 3
    np.testing.assert_allclose(game.utility(members(0, 1)), expected)
    assert (game.n_evaluations, game.n_failed, game.n_one_class) == (1, 0, 1)
    game = ModelGame(
        LinearSVC(), *three, scoring="top_k_accuracy", batch=batch, empty_utility=0
    )
    assert game.utility(members(0, 1)) == [
        2 / 3
    ]  # of three classes with equal decisions
    assert (game.n_failed, game.n_one_class) == (0, 1)


@pytest.mark.parametrize("batch", ["auto", "never"])
def test_a_class_not_seen_keeps_a_probability(three, batch):
    X, y, X_val, y_val = three
    game = ModelGame(
        LogisticRegression(tol=1e-10), *three, scoring="neg_log_loss", batch=batch
    )
    rows = [0, 1, 2, 8, 9]
    model = LogisticRegression(tol=1e-10).fit(X[rows], y[rows])
    probabilities = np.full((12, 3), 1 / (5 + 3))
    probabilities[:, :2] = model.predict_proba(X_val) * (5 + 2) / (5 + 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    expected = -log_loss(y_val, probabilities, labels=["a", "b", "c"])
    np.testing.assert_allclose(game.utility(members(*rows)), expected, rtol=1e-6)
    assert game.n_failed == 0


@pytest.mark.parametrize("batch", ["auto", "never"])
@pytest.mark.parametrize(
    "scoring", ["neg_log_loss", "neg_brier_score", "top_k_accuracy"]
)
def test_validation_points_may_lack_a_class(three, batch, scoring):
    X, y, X_val, y_val = three
    some = y_val != "c"
    options = dict(
        scoring=scoring, empty_utility=-2.0, batch=batch, error_score="raise"
    )
    model = LogisticRegression(tol=1e-9)
    game = ModelGame(model, X, y, X_val[some], y_val[some], **options)
    probabilities = model.fit(X, y).predict_proba(X_val[some])
    codes = np.searchsorted(["a", "b", "c"], y_val[some])
    hits = np.eye(3)[codes]
    expected = {
        "neg_log_loss": np.log(probabilities[hits == 1]).mean(),
        "neg_brier_score": -((probabilities - hits) ** 2).sum(axis=1).mean(),
        "top_k_accuracy": (np.argsort(probabilities)[:, 1:] == codes[:, None])
        .any(axis=1)
        .mean(),
    }
    np.testing.assert_allclose(
        game.utility(members(*range(24))), expected[scoring], atol=1e-5
    )


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
def test_one_class_has_an_auc_of_a_half(data, model):
    game = ModelGame(model, *data, scoring="roc_auc", batch="never")
    mask = (data[1] == "yes")[None]
    assert game.utility(mask) == [0.5]
    assert (game.n_failed, game.n_one_class) == (0, 1)


# Failures -----------------------------------------------------------------------------


class Fragile(ClassifierMixin, BaseEstimator):
    """Refuses to be fitted on an even number of rows."""

    def fit(self, X, y):
        if len(X) % 2 == 0:
            raise RuntimeError("even")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[-1:], len(X))


@pytest.mark.parametrize(("error_score", "expected"), [("empty", 0.5), (-3, -3.0)])
def test_failing_coalitions_are_counted(data, error_score, expected):
    game = ModelGame(Fragile(), *data, error_score=error_score)
    yes = np.mean(data[3] == "yes")
    masks = np.zeros((2, 40), dtype=bool)
    masks[0, :6] = masks[1, :7] = True
    assert game.utility(masks).tolist() == [expected, yes]
    assert (game.n_evaluations, game.n_failed) == (2, 1)
    ((message, category),) = failed_warnings([game])
    assert message.startswith("1 of 2 coalitions")
    assert message.endswith(f"has utility {expected:g}.")
    assert category is FailedCoalitionsWarning
    with pytest.raises(
        ValueError, match="all 40 rows.*Fragile, which raised RuntimeError, the"
    ):
        game.utility(np.ones((1, 40), dtype=bool))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            LogisticRegression(C=-1),
            "The 'C' parameter of LogisticRegression must be a float",
        ),
        (
            LogisticRegression(C="x"),
            "The 'C' parameter of LogisticRegression must be a float",
        ),
        (
            LogisticRegression(max_iter=-5),
            "The 'max_iter' parameter of LogisticRegression",
        ),
    ],
)
def test_parameters_are_checked_before_a_batched_solver_takes_over(
    data, estimator, message
):
    with pytest.raises(ValueError, match=message):
        ModelGame(estimator, *data)


def test_a_game_warns_once_a_call(data, masks):
    game = ModelGame(LogisticRegression(max_iter=1), *data, batch="never", cache_size=0)
    with pytest.warns(ConvergenceWarning, match=r"\[\d+ times in fits") as found:
        game.utility(masks)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_failing_coalitions_raise(data):
    game = ModelGame(Fragile(), *data, error_score="raise")
    with pytest.raises(RuntimeError, match="even") as error:
        game.utility(np.arange(40)[None] < 6)
    assert error.value.__notes__ == ["The coalition had 6 rows."]


@pytest.mark.parametrize("error_score", ["empty", "raise"])
@pytest.mark.parametrize(
    ("score", "message"),
    [
        (
            np.nan,
            "scoring must return a finite number. Got nan for a coalition of 6 rows",
        ),
        (
            -np.inf,
            "scoring must return a finite number. Got -inf for a coalition of 6 rows",
        ),
        (
            {"a": 1.0},
            "scoring must return one number. Got dict for a coalition of 6 rows",
        ),
        (
            np.zeros(2),
            "scoring must return one number. Got ndarray for a coalition of 6 rows",
        ),
    ],
)
def test_scorer_that_gives_no_number(data, score, message, error_score):
    game = ModelGame(
        TREE,
        *data,
        scoring=lambda m, X, y: score,
        empty_utility=0,
        error_score=error_score,
    )
    with pytest.raises(ValueError, match=message):
        game.utility(np.arange(40)[None] < 6)


# Scorers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring",
    [None, "accuracy", "balanced_accuracy", "roc_auc", make_scorer(accuracy_score)],
)
def test_empty_utility(data, scoring):
    game = ModelGame(GaussianNB(), *data, scoring=scoring)
    assert game.utility(np.zeros((1, 40), dtype=bool)) == [0.5]
    assert (
        ModelGame(
            GaussianNB(), *data, scoring=scoring, empty_utility=0.25
        ).empty_utility
        == 0.25
    )


def by_dummy(scoring, y_val, weights=None, labels=None):
    """Score of the class of largest weight, or of the frequencies or the mean, by
    definition."""
    weights = np.ones(len(y_val)) if weights is None else weights
    if labels is None:
        return -np.average(
            (y_val - np.average(y_val, weights=weights)) ** 2, weights=weights
        )
    prior = (
        np.array([weights[y_val == label].sum() for label in labels]) / weights.sum()
    )
    if scoring == "neg_log_loss":
        return prior[prior > 0] @ np.log(prior[prior > 0])
    predicted = np.full(len(y_val), labels[prior.argmax()])
    return f1_score(y_val, predicted, average="macro", sample_weight=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", ["f1_macro", "neg_log_loss"])
def test_empty_utility_is_the_score_of_the_constant_prediction(
    rng, data, scoring, weighted
):
    X, y, X_val, y_val = data
    y_val = np.array(["yes"] * 14 + ["no"] * 6)
    y = np.append(y[:-1], "perhaps")  # a class that no validation point has
    weights = np.where(y_val == "no", 10.0, rng.random(20)) if weighted else None
    game = ModelGame(
        GaussianNB(), X, y, X_val, y_val, scoring=scoring, sample_weight_val=weights
    )
    expected = by_dummy(scoring, y_val, weights, ["no", "perhaps", "yes"])
    assert game.empty_utility == pytest.approx(expected, abs=1e-12)


def test_empty_utility_of_class_frequencies(data):
    X, y, X_val, _ = data
    y_val = np.r_[np.zeros(15, int), np.ones(5, int)] == 1
    y_val = np.unique(y)[y_val.astype(int)]
    game = ModelGame(GaussianNB(), X, y, X_val, y_val, empty_utility="prior")
    assert game.empty_utility == 0.75
    assert game.utility([[False] * len(y)])[0] == 0.75
    balanced = ModelGame(
        GaussianNB(),
        X,
        y,
        X_val,
        y_val,
        scoring="balanced_accuracy",
        empty_utility="prior",
    )
    assert balanced.empty_utility == pytest.approx(0.5)
    with pytest.raises(
        ValueError, match="empty_utility must be a number, 'prior' or None"
    ):
        ModelGame(GaussianNB(), *data, empty_utility="mean")


@pytest.mark.parametrize("weights", [None, np.linspace(0, 1, 20)])
def test_empty_utility_of_a_regression(data, weights):
    X, _, X_val, _ = data
    options = {"scoring": "neg_mean_squared_error", "sample_weight_val": weights}
    game = ModelGame(LinearRegression(), X, X[:, 1], X_val, X_val[:, 1], **options)
    assert game.empty_utility == pytest.approx(by_dummy(None, X_val[:, 1], weights))


@pytest.mark.parametrize("label", ["yes", "no"])
def test_empty_utility_of_a_scorer_of_one_label(data, label, recwarn):
    y_val = data[3]
    most = max(["no", "yes"], key=list(y_val).count)
    for metric in (f1_score, precision_score):
        game = ModelGame(
            GaussianNB(), *data, scoring=make_scorer(metric, pos_label=label)
        )
        predicted = np.full(len(y_val), most)
        expected = metric(y_val, predicted, pos_label=label, zero_division=0)
        assert game.empty_utility == expected
    assert not recwarn.list


@pytest.mark.parametrize(
    ("scoring", "cause"),
    [
        (lambda model, X, y: model.coef_[0, 0], "no attribute 'coef_'"),
        (
            make_scorer(roc_auc_score, response_method="decision_function"),
            "decision_function",
        ),
        ("f1", "pos_label=1 is not a valid label"),
        (lambda model, X, y: np.nan, "scoring must return a finite number"),
    ],
)
def test_unknown_empty_utility(data, scoring, cause):
    with pytest.raises(
        ValueError, match=f"empty_utility must be given with this.*{cause}.* Got"
    ):
        ModelGame(LogisticRegression(), *data, scoring=scoring)


def test_callable_scorer(data, masks):
    def size_of_tree(model, X, y):
        return model.get_n_leaves()

    game = ModelGame(TREE, *data, scoring=size_of_tree, empty_utility=0)
    X, y = data[:2]
    expected = [clone(TREE).fit(X[m], y[m]).get_n_leaves() for m in masks]
    assert game.utility(masks).tolist() == expected


# Wrong parameters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch": "always"}, "batch must be 'auto', 'torch' or 'never'. Got 'always'"),
        (
            {"error_score": "nan"},
            "error_score must be 'empty', 'raise' or a finite number. Got 'nan'",
        ),
        (
            {"error_score": np.nan},
            "error_score must be 'empty', 'raise' or a finite number. Got nan",
        ),
        ({"groups": [1, 2]}, "inconsistent numbers of samples"),
        (
            {"sample_weight": [1.0]},
            "sample_weight must have one entry per row of X .40.. Got 1",
        ),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        ModelGame(TREE, *data, **parameters)


def test_bad_labels_and_models(data):
    X, y, X_val, y_val = data
    with pytest.raises(
        ValueError, match="labels that y has. Got unseen labels: 'maybe'"
    ):
        ModelGame(TREE, X, y, X_val, np.where(y_val == "yes", "maybe", y_val))
    with pytest.raises(
        ValueError, match="estimator must be a regressor for a continuous target"
    ):
        ModelGame(TREE, X, X[:, 0], X_val, X_val[:, 0])
    with pytest.raises(
        ValueError, match="estimator must be a classifier or a regressor. Got Stan"
    ):
        ModelGame(StandardScaler(), *data)


# Overhead -----------------------------------------------------------------------------


class Slow(ClassifierMixin, BaseEstimator):
    """Takes two milliseconds to fit."""

    fits = 0

    def fit(self, X, y):
        Slow.fits += 1
        time.sleep(0.002)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def test_cost_is_measured(data):
    game = ModelGame(Slow(), *data, empty_utility=0)
    Slow.fits, start = 0, time.perf_counter()
    cost = game.evaluation_cost()
    # One fit to warm up, and four times as many until they took long enough.
    assert Slow.fits in (4, 16, 64)
    assert 0.002 <= cost <= (time.perf_counter() - start) / (0.75 * Slow.fits)
    assert cost * 0.75 * Slow.fits > 0.05
    assert game.n_evaluations == 0


def test_linear_regression_of_one_row(data):
    X, _, X_val, _ = data
    game = ModelGame(LinearRegression(), X, X[:, 0], X_val, X_val[:, 0])
    assert np.isfinite(game.utility(np.eye(40, dtype=bool))).all()
    assert game.n_failed == 0
