"""The game of training a model: the loop over fits, weights, groups, failures."""

import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
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


def scores_of_fits(estimator, X, y, X_val, y_val, masks):
    scores = []
    for mask in masks:
        model = clone(estimator).fit(X[mask], y[mask])
        scores.append(model.score(X_val, y_val))
    return scores


def constant(value):
    """A scorer that returns the same for any model."""
    return lambda model, X, y: value


# Fits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [TREE, make_pipeline(StandardScaler(), LinearSVC(random_state=0))],
    ids=["tree", "pipeline"],
)
def test_a_utility_is_the_score_of_a_fit(estimator, data, masks):
    game = ModelGame(estimator, *data)
    assert game.solver == "loop"
    expected = scores_of_fits(estimator, *data, masks)
    np.testing.assert_array_equal(game.utility(masks), expected)
    assert (game.n_evaluations, game.n_failed) == (len(masks), 0)


def test_a_utility_is_computed_once(data, masks):
    game = ModelGame(TREE, *data)
    game.utility(masks)
    game.utility(masks)
    assert game.n_evaluations == len(masks)


def test_a_utility_of_a_regression_is_the_score_of_a_fit(data, masks):
    X, _, X_val, _ = data
    model = DecisionTreeRegressor(max_depth=2, random_state=0)
    data = X, X[:, 1], X_val, X_val[:, 1]
    game = ModelGame(model, *data)
    expected = scores_of_fits(model, *data, masks)
    np.testing.assert_array_equal(game.utility(masks), expected)
    assert game.utility(np.zeros((1, 40), dtype=bool)) == [0]


@pytest.mark.parametrize(
    "estimator", [TREE, GaussianNB(), LogisticRegression()], ids=str
)
def test_labels_that_only_uint64_holds(data, masks, estimator):
    X, y, X_val, y_val = data
    codes = (y == "yes") * 1
    codes_val = (y_val == "yes") * 1
    large = np.array([5, 2**64 - 1], dtype=np.uint64)
    game = ModelGame(estimator, X, codes, X_val, codes_val)
    of_large = ModelGame(estimator, X, large[codes], X_val, large[codes_val])
    np.testing.assert_array_equal(of_large.utility(masks), game.utility(masks))


def test_data_frames_are_passed_to_the_estimator(data, masks):
    pandas = pytest.importorskip("pandas")
    X, y, X_val, y_val = data
    names = ["a", "b", "c"]
    frame = pandas.DataFrame(X, columns=names)
    frame_val = pandas.DataFrame(X_val, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # about feature names
        utilities = ModelGame(TREE, frame, y, frame_val, y_val).utility(masks)
    np.testing.assert_array_equal(utilities, ModelGame(TREE, *data).utility(masks))


def test_sparse_rows_are_passed_to_the_estimator(data, masks):
    from scipy.sparse import csr_array

    X, y, X_val, y_val = data
    game = ModelGame(TREE, csr_array(X), y, csr_array(X_val), y_val)
    expected = ModelGame(TREE, *data).utility(masks)
    np.testing.assert_array_equal(game.utility(masks), expected)


def random_game(data, random_state):
    """A game of models that depend on random numbers."""
    return ModelGame(
        SGDClassifier(), *data, scoring="balanced_accuracy", random_state=random_state
    )


@pytest.mark.parametrize(
    "backend",
    [
        "threading",
        pytest.param("loky", marks=pytest.mark.slow),
        pytest.param("multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_utilities_have_the_same_bits_for_any_workers(backend, data, masks):
    expected = random_game(data, 3).utility(masks)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        utilities = random_game(data, 3).utility(masks)
    np.testing.assert_array_equal(utilities, expected)


def test_utilities_depend_on_the_random_state(data, masks):
    one = random_game(data, 3).utility(masks)
    other = random_game(data, 4).utility(masks)
    assert (one != other).any()


def test_utilities_on_a_dask_cluster_have_the_same_bits(data, masks):
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


def test_random_state_is_given_to_steps_that_have_none():
    X = np.arange(8.0)[:, None]
    y = np.tile([0, 1], 4)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(2))
    game = ModelGame(pipeline, X, y, X, y, random_state=5)
    assert game.estimator[-1].random_state == 5
    assert pipeline[-1].random_state is None
    fixed = RandomForestClassifier(2, random_state=1)
    game = ModelGame(fixed, X, y, X, y, random_state=5)
    assert game.estimator.random_state == 1


# Weights and groups -------------------------------------------------------------------


def test_sample_weight_is_cut_with_the_coalition(data, masks, rng):
    X, y, X_val, y_val = data
    weights = rng.random(40)
    game = ModelGame(TREE, *data, sample_weight=weights)
    expected = []
    for mask in masks:
        model = clone(TREE).fit(X[mask], y[mask], sample_weight=weights[mask])
        expected.append(model.score(X_val, y_val))
    np.testing.assert_array_equal(game.utility(masks), expected)


def test_rows_of_weight_zero_are_left_out_of_coalitions(data):
    X, y, X_val, y_val = data
    weights = np.r_[np.zeros(20), np.ones(20)]
    game = ModelGame(TREE, *data, sample_weight=weights)
    masks = np.arange(40) < [[25], [20]]
    expected = clone(TREE).fit(X[20:25], y[20:25]).score(X_val, y_val)
    assert len(set(y[20:25])) == 2
    assert game.utility(masks).tolist() == [expected, 0.5]
    assert (game.n_evaluations, game.n_failed, game.n_one_class) == (2, 0, 0)


def test_a_class_of_weight_zero_is_no_class_of_a_coalition(data):
    y = data[1]
    game = ModelGame(TREE, *data, sample_weight=(y == "yes").astype(float))
    game.utility(np.ones((1, 40), dtype=bool))
    assert (game.n_failed, game.n_one_class) == (0, 1)


def test_a_split_may_have_rows_of_weight_zero_alone(data):
    X, y, *_ = data
    y = np.where(np.arange(40) % 2, "yes", "no")
    valuer = LeaveOneOutValuer(GaussianNB(), cv=KFold(2))
    values = valuer.fit(X, y, sample_weight=np.repeat([0.0, 1.0], 20)).values_
    assert (values[:20] == 0).all()


def test_validation_weights_are_those_of_the_score(data, masks, rng):
    X, y, X_val, y_val = data
    weights = rng.random(20)
    game = ModelGame(TREE, *data, scoring="neg_log_loss", sample_weight_val=weights)
    expected = []
    for mask in masks:
        probabilities = clone(TREE).fit(X[mask], y[mask]).predict_proba(X_val)
        expected.append(-log_loss(y_val, probabilities, sample_weight=weights))
    np.testing.assert_allclose(game.utility(masks), expected)


def test_equal_validation_weights_need_no_scorer_that_takes_them(data):
    ModelGame(
        TREE, *data, scoring=constant(1.0), empty_utility=0, sample_weight_val=[2] * 20
    )


def test_weights_are_refused_for_an_estimator_that_takes_none(data):
    message = "sample_weight needs an estimator whose fit takes it. Go"
    with pytest.raises(ValueError, match=message):
        ModelGame(KNeighborsClassifier(), *data, sample_weight=np.ones(40))


def test_validation_weights_are_refused_for_a_scorer_that_takes_none(data):
    options = {"scoring": constant(1.0), "empty_utility": 0}
    message = "sample_weight_val, .* need a scorer that takes"
    with pytest.raises(ValueError, match=message):
        ModelGame(TREE, *data, **options, sample_weight_val=range(20))


def test_negative_weights_are_refused(data):
    with pytest.raises(ValueError, match="sample_weight must be non-negative. Got -1"):
        ModelGame(TREE, *data, sample_weight=-np.ones(40))


def test_weights_reach_the_step_of_a_pipeline_that_requests_them(data, masks, rng):
    weights = rng.random(40)
    with (
        config_context(enable_metadata_routing=True),
        joblib.parallel_config("threading"),
    ):
        tree = clone(TREE).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, tree)
        game = ModelGame(pipeline, *data, sample_weight=weights, n_jobs=2)
        tree_alone = ModelGame(TREE, *data, sample_weight=weights)
        np.testing.assert_array_equal(game.utility(masks), tree_alone.utility(masks))


def test_weights_of_a_pipeline_are_refused_without_metadata_routing(data):
    pipeline = make_pipeline(StandardScaler(), clone(TREE))
    message = "(?s)sample_weight needs.*A pipeline takes it"
    with pytest.raises(ValueError, match=message):
        ModelGame(pipeline, *data, sample_weight=np.ones(40))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(StandardScaler(), clone(TREE)),
            "sample_weight.* not explicitly set as requested",
        ),
        (
            KNeighborsClassifier(),
            "sample_weight needs an estimator whose fit takes it",
        ),
    ],
    ids=["pipeline", "estimator"],
)
def test_weights_that_nothing_requests_are_refused(data, estimator, message):
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=message),
    ):
        ModelGame(estimator, *data, sample_weight=np.ones(40))


def test_groups_are_players(data):
    X, y, X_val, y_val = data
    groups = np.repeat(["b", "a", "c", "d"], 10)
    game = ModelGame(TREE, *data, groups=groups)
    assert game.n_players == 4
    assert game.groups_.tolist() == ["a", "b", "c", "d"]
    rows = np.isin(groups, ["a", "d"])
    expected = clone(TREE).fit(X[rows], y[rows]).score(X_val, y_val)
    assert game.utility([[True, False, False, True]]) == [expected]


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


SIX_ROWS = np.arange(40)[None] < 6


@pytest.mark.parametrize(("error_score", "expected"), [("empty", 0.5), (-3, -3.0)])
def test_failing_coalitions_are_counted(data, error_score, expected):
    game = ModelGame(Fragile(), *data, error_score=error_score)
    score = np.mean(data[3] == "yes")
    masks = np.arange(40) < [[6], [7]]
    assert game.utility(masks).tolist() == [expected, score]
    assert (game.n_evaluations, game.n_failed) == (2, 1)
    ((message, category),) = failed_warnings([game])
    assert message.startswith("1 of 2 coalitions")
    assert message.endswith(f"has utility {expected:g}.")
    assert category is FailedCoalitionsWarning


def test_a_failure_of_all_rows_is_an_error(data):
    game = ModelGame(Fragile(), *data)
    message = "all 40 rows.*Fragile, which raised RuntimeError, the"
    with pytest.raises(ValueError, match=message):
        game.utility(np.ones((1, 40), dtype=bool))


def test_failing_coalitions_raise_their_error_if_asked_to(data):
    game = ModelGame(Fragile(), *data, error_score="raise")
    with pytest.raises(RuntimeError, match="even") as error:
        game.utility(SIX_ROWS)
    assert error.value.__notes__ == ["The coalition had 6 rows."]


@pytest.mark.parametrize("error_score", ["empty", "raise"])
@pytest.mark.parametrize(
    ("score", "message"),
    [
        (np.nan, "return a finite number. Got nan for a coalition of 6 rows"),
        (-np.inf, "return a finite number. Got -inf for a coalition of 6 rows"),
        ({"a": 1.0}, "return one number. Got dict for a coalition of 6 rows"),
        (np.zeros(2), "return one number. Got ndarray for a coalition of 6 rows"),
    ],
    ids=["nan", "-inf", "dict", "array"],
)
def test_scorers_that_return_no_number_are_refused(data, score, message, error_score):
    game = ModelGame(
        TREE, *data, scoring=constant(score), empty_utility=0, error_score=error_score
    )
    with pytest.raises(ValueError, match=f"scoring must {message}"):
        game.utility(SIX_ROWS)


def test_a_game_warns_once_a_call(data, masks):
    game = ModelGame(LogisticRegression(max_iter=1), *data, batch="never", cache_size=0)
    with pytest.warns(ConvergenceWarning, match=r"\[\d+ times in fits") as messages:
        game.utility(masks)
    assert len(messages) == 1
    assert messages[0].filename == __file__


# Wrong parameters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": -1}, "The 'C' parameter of LogisticRegression must be a float"),
        ({"C": "x"}, "The 'C' parameter of LogisticRegression must be a float"),
        ({"max_iter": -5}, "The 'max_iter' parameter of LogisticRegression"),
    ],
    ids=str,
)
def test_parameters_are_checked_before_a_batched_solver_takes_over(
    data, parameters, message
):
    with pytest.raises(ValueError, match=message):
        ModelGame(LogisticRegression(**parameters), *data)


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
    ids=str,
)
def test_wrong_parameters_are_refused(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        ModelGame(TREE, *data, **parameters)


def test_validation_labels_that_no_row_has_are_refused(data):
    X, y, X_val, y_val = data
    y_val = np.where(y_val == "yes", "maybe", y_val)
    message = "labels that y has. Got unseen labels: 'maybe'"
    with pytest.raises(ValueError, match=message):
        ModelGame(TREE, X, y, X_val, y_val)


def test_a_classifier_of_a_continuous_target_is_refused(data):
    X, _, X_val, _ = data
    message = "estimator must be a regressor for a continuous target"
    with pytest.raises(ValueError, match=message):
        ModelGame(TREE, X, X[:, 0], X_val, X_val[:, 0])


def test_a_transformer_is_refused(data):
    message = "estimator must be a classifier or a regressor. Got Stan"
    with pytest.raises(ValueError, match=message):
        ModelGame(StandardScaler(), *data)


# Cost ---------------------------------------------------------------------------------


class Slow(ClassifierMixin, BaseEstimator):
    """Takes two milliseconds to fit."""

    n_fits = 0

    def fit(self, X, y):
        Slow.n_fits += 1
        time.sleep(0.002)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def test_the_cost_is_that_of_a_fit(data):
    game = ModelGame(Slow(), *data, empty_utility=0)
    Slow.n_fits = 0
    start = time.perf_counter()
    cost = game.evaluation_cost()
    seconds = time.perf_counter() - start
    # One fit to warm up, and four times as many until they took long enough.
    n_fits = Slow.n_fits
    assert n_fits in (4, 16, 64)
    assert 0.002 <= cost <= seconds / (0.75 * n_fits)
    assert cost * 0.75 * n_fits > 0.05
    assert game.n_evaluations == 0
