"""Batched solvers give what the loop gives."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, matthews_corrcoef, r2_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid

from skvalue.games import ModelGame
from skvalue.games.solvers import SOLVED

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

EXACT = dict(tol=1e-9, max_iter=5000)


def coalitions(rng, n, kind):
    """A permutation, random ones, leave-one-out, and small ones."""
    if kind == "permutation":
        order = rng.permutation(n)
        return np.argsort(order)[None] <= np.arange(n)[:, None]
    if kind == "random":
        return rng.random((20, n)) < rng.random((20, 1))
    if kind == "leave-one-out":
        return ~np.eye(n, dtype=bool)
    masks = np.zeros((40, n), dtype=bool)
    for mask in masks:
        mask[rng.choice(n, rng.integers(1, 6), replace=False)] = True
    return np.unique(masks, axis=0)


def some(masks, count):
    """At least so many of the masks, evenly spread."""
    return masks[:: max(1, len(masks) // count)]


KINDS = ["permutation", "random", "leave-one-out", "small"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def classes(n_classes, seed=0):
    if n_classes == 3:
        X, y = load_iris(return_X_y=True)
        X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)  # no ties
    else:
        X, y = make_classification(
            160, 5, n_informative=4, n_redundant=0, random_state=seed
        )
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], np.array(["b", "a", "c"])[y[order]]
    return X[:50], y[:50], X[50:], y[50:]


def targets(n_features=5):
    X, y = make_regression(90, n_features, noise=20.0, random_state=0)
    return X[:40] + 3, y[:40] / 50, X[40:] + 3, y[40:] / 50


def check_same(estimator, data, masks, settings, **parameters):
    """The games of two settings have the same utilities, to 1e-6; return both."""
    games = [ModelGame(estimator, *data, **given, **parameters) for given in settings]
    found = [game.utility(masks) for game in games]
    np.testing.assert_allclose(*found, atol=1e-6)
    assert games[0].n_failed == games[1].n_failed
    assert games[0].n_one_class == games[1].n_one_class
    assert np.ptp(found[0]) > 0
    return games


def check_equal(estimator, data, masks, **parameters):
    """The batched game equals the loop; return it."""
    batched, loop = check_same(
        estimator, data, masks, ({}, {"batch": "never"}), **parameters
    )
    assert batched.solver != loop.solver == "loop"
    return batched


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_logistic(n_classes, kind, rng):
    masks = some(coalitions(rng, 50, kind), 12)
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    for scoring in (None, "neg_log_loss", "balanced_accuracy"):
        game = check_equal(model, classes(n_classes), masks, scoring=scoring)
        assert game.solver == "logistic"


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "neg_brier_score", make_scorer(matthews_corrcoef)]
)
def test_logistic_with_any_scorer(scoring, rng):
    masks, data = some(coalitions(rng, 50, "permutation"), 12), classes(2)
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    if scoring == "neg_brier_score":
        data = [part if part.ndim == 2 else (part == "a") * 1 for part in data]
    check_equal(model, data, masks, scoring=scoring, empty_utility=0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [{"C": 100.0}, {"C": 1e-3}, {"fit_intercept": False}, {"solver": "lbfgs"}],
)
def test_logistic_parameters(n_classes, parameters, rng):
    masks = np.concatenate([some(coalitions(rng, 50, kind), 4) for kind in KINDS])
    model = LogisticRegression(**{"solver": "newton-cholesky", **EXACT, **parameters})
    check_equal(model, classes(n_classes), masks, scoring="neg_log_loss")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_weights_and_groups(n_classes, rng):
    X, y, X_val, y_val = classes(n_classes)
    weights = rng.random(50) * 3
    weights[::7] = 0
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    check_equal(
        model, (X, y, X_val, y_val), rng.random((12, 10)) < 0.5, scoring="neg_log_loss",
        sample_weight=weights, groups=np.arange(50) % 10,
        sample_weight_val=rng.random(len(y_val)),
    )  # fmt: skip
    wide = (rng.normal(size=(50, 150)), y, rng.normal(size=(len(y_val), 150)), y_val)
    if n_classes == 2:  # more have no batched solver for so many columns
        masks = rng.random((4, 50)) < 0.5
        check_equal(model, wide, masks, scoring="neg_log_loss", sample_weight=weights)


def test_logistic_of_rows_on_all_scales(rng):
    # scikit-learn's own solvers may give up here: the better of them is the measure.
    X, y, _, _ = classes(2)
    X = X * [1e-3, 1, 1, 30, 1e3] + [0, 1, 100, 0, 0]
    masks = coalitions(rng, 50, "permutation")
    game = ModelGame(LogisticRegression(C=1e3), X, y, X, y)
    game.utility(masks)
    solver = game._solver
    coefs, status = solver.engine.solve(masks, solver.counts(masks))
    coefs = coefs[:, 0]
    assert (status == SOLVED).mean() > 0.9

    def loss(coef, rows):
        z = solver.X[rows] @ coef
        return (
            np.sum(np.logaddexp(0, z) - z * (solver.y[rows] == 1))
            + coef[:-1] @ coef[:-1] / 2e3
        )

    for mask, coef in zip(
        some(masks[status == SOLVED], 5), some(coefs[status == SOLVED], 5)
    ):
        best = min(
            loss(np.r_[model.coef_[0], model.intercept_], mask)
            for name in ("newton-cholesky", "lbfgs")
            for model in [
                LogisticRegression(C=1e3, solver=name, **EXACT).fit(X[mask], y[mask])
            ]
        )
        assert loss(coef, mask) <= best + 1e-9 * (1 + best)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.inf},
        {"class_weight": "balanced"},
        {"l1_ratio": 0.5, "solver": "saga"},
        {"solver": "liblinear"},
        {"warm_start": True},
    ],
)
def test_what_logistic_leaves_to_the_loop(parameters):
    assert ModelGame(LogisticRegression(**parameters), *classes(2)).solver == "loop"


def test_subclasses_and_strange_scorers_are_left_to_the_loop():
    class Mine(LogisticRegression):
        pass

    assert ModelGame(Mine(), *classes(2)).solver == "loop"
    scored = ModelGame(
        LogisticRegression(),
        *classes(2),
        scoring=lambda m, X, y: m.coef_[0, 0],
        empty_utility=0,
    )
    assert scored.solver == "loop"
    assert ModelGame(LogisticRegression(), *classes(2), batch="never").solver == "loop"


@pytest.mark.parametrize("n_jobs", [2, None])
def test_same_bits_for_any_workers(n_jobs, rng):
    masks = np.concatenate([coalitions(rng, 50, kind) for kind in KINDS] * 4)
    one = ModelGame(LogisticRegression(), *classes(2), scoring="neg_log_loss", n_jobs=1)
    many = ModelGame(
        LogisticRegression(), *classes(2), scoring="neg_log_loss", n_jobs=n_jobs
    )
    expected = one.utility(masks)
    np.testing.assert_array_equal(many.utility(masks), expected)
    np.testing.assert_array_equal(one.utility(masks), expected)  # and once more
    assert one.n_evaluations == 2 * np.count_nonzero(
        masks.any(axis=1)
    )  # nothing is remembered


# Regression ---------------------------------------------------------------------------

LINEAR = [
    Ridge(),
    Ridge(alpha=1e-4),
    Ridge(alpha=50, fit_intercept=False),
    LinearRegression(),
    LinearRegression(fit_intercept=False),
]


@each_kind
@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_linear(estimator, kind, rng):
    for scoring in (None, "neg_mean_squared_error", "neg_median_absolute_error"):
        check_equal(
            estimator,
            targets(),
            some(coalitions(rng, 40, kind), 10),
            scoring=scoring,
            empty_utility=0,
        )


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression()], ids=str)
def test_linear_weights_and_groups(estimator, rng):
    weights = rng.random(40) * 2
    weights[::9] = 0
    check_equal(
        estimator, targets(), rng.random((40, 20)) < 0.3, sample_weight=weights,
        groups=np.arange(40) % 20, sample_weight_val=rng.random(50),
    )  # fmt: skip


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression()], ids=str)
def test_linear_of_many_rows_and_columns(estimator, rng):
    # Products of pairs of columns would be more than 20 million: each Gram matrix by
    # itself.
    X, y = make_regression(1050, 200, noise=20.0, random_state=0)
    along = np.argsort(rng.permutation(1000))[None] <= np.arange(900, 908)[:, None]
    masks = np.concatenate([along, rng.random((4, 1000)) < 0.5])
    check_equal(
        estimator, (X[:1000] + 3, y[:1000] / 50, X[1000:] + 3, y[1000:] / 50), masks
    )


def test_linear_of_columns_that_depend(rng):
    X, y, X_val, y_val = targets()
    twice = [np.c_[part, part[:, 0] * 2, np.ones(len(part))] for part in (X, X_val)]
    masks = coalitions(rng, 40, "permutation")
    check_equal(LinearRegression(), (twice[0], y, twice[1], y_val), masks)
    check_equal(Ridge(alpha=1e-3), (twice[0], y, twice[1], y_val), masks)


@pytest.mark.parametrize("n_equal", [1, 7, 12])
def test_equal_rows_have_no_slope(n_equal, rng):
    X, y, X_val, y_val = targets()
    X = np.repeat(X[:20], n_equal, axis=0)
    weights, groups = rng.random(len(X)) + 0.1, np.repeat(np.arange(20), n_equal)
    data = X, np.repeat(y[:20], n_equal), X_val, y_val
    game = ModelGame(LinearRegression(), *data, sample_weight=weights, groups=groups)
    expected = [r2_score(y_val, np.full(len(y_val), target)) for target in y[:20]]
    np.testing.assert_allclose(game.utility(np.eye(20, dtype=bool)), expected)


def test_least_squares_cuts_small_singular_values(rng):
    X, y, X_val, y_val = targets()
    scale = np.array(
        [1, 1, 1, 1, 1e-8]
    )  # `tol` of the estimator leaves the last column out
    y = y + 3 * X[:, 4]
    masks = coalitions(rng, 40, "permutation")
    check_equal(LinearRegression(), (X * scale, y, X_val * scale, y_val), masks)


@pytest.mark.parametrize(
    "estimator", [Ridge(alpha=0), Ridge(positive=True, solver="lbfgs")]
)
def test_what_ridge_leaves_to_the_loop(estimator):
    assert ModelGame(estimator, *targets()).solver == "loop"


def test_r2_of_one_validation_point_is_an_error():
    X, y, X_val, y_val = targets()
    game = ModelGame(Ridge(), X, y, X_val[:1], y_val[:1])
    with pytest.raises(
        ValueError, match="scoring must return a finite number. Got nan"
    ):
        game.utility(np.ones((1, 40), dtype=bool))


# Centroids, Bayes, neighbours ---------------------------------------------------------

CLASSIFIERS = [
    NearestCentroid(),
    GaussianNB(),
    GaussianNB(var_smoothing=1e-2),
    KNeighborsClassifier(1),
    KNeighborsClassifier(4),
    KNeighborsClassifier(3, weights="distance"),
    KNeighborsClassifier(3, metric="manhattan", algorithm="brute"),
]


@each_kind
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings(
    "ignore:divide by zero|invalid value|self.within_class_std_dev_"
)
def test_classifiers(estimator, kind, rng):
    masks = some(coalitions(rng, 50, kind), 10 if kind == "leave-one-out" else 5)
    has_probabilities = not isinstance(estimator, NearestCentroid)
    check_equal(
        estimator,
        classes(2),
        masks,
        scoring="neg_log_loss" if has_probabilities else None,
    )
    check_equal(estimator, classes(3), masks, scoring="balanced_accuracy")


def test_bayes_weights(rng):
    weights = rng.random(50)
    weights[::4] = 0
    check_equal(
        GaussianNB(), classes(3), coalitions(rng, 50, "random"), scoring="neg_log_loss",
        sample_weight=weights,
    )  # fmt: skip


def test_bayes_of_given_priors(rng):
    check_equal(
        GaussianNB(priors=[0.7, 0.3]), classes(2), coalitions(rng, 50, "random"),
        scoring="neg_log_loss",
    )  # fmt: skip


def test_neighbours_too_max_dual_rows():
    model = KNeighborsClassifier(3, weights="distance")
    X, y, X_val, y_val = classes(2)
    masks = np.zeros((1, 50), dtype=bool)  # two rows of two classes, and n_neighbors=3
    masks[0, [np.argmax(y == "a"), np.argmax(y == "b")]] = True
    for batch in ("auto", "never"):
        game = ModelGame(model, X, y, X_val, y_val, batch=batch, error_score=-1)
        assert game.utility(masks).tolist() == [-1]
        assert game.n_failed == 1
    for estimator, rows, match, options in [
        (
            model,
            masks,
            "Expected n_neighbors <= n_samples_fit",
            {"error_score": "raise"},
        ),
        (
            KNeighborsClassifier(60),
            masks | True,
            "estimator must train on all 50 rows",
            {},
        ),
    ]:
        texts = []
        for batch in ("auto", "never"):
            with pytest.raises(ValueError, match=match) as caught:
                ModelGame(
                    estimator, X, y, X_val, y_val, batch=batch, **options
                ).utility(rows)
            texts.append([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "error_score", [-1.0, pytest.param("empty", marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(),
        KNeighborsClassifier(metric="manhattan"),  # predicts from any number of rows
        *(
            pytest.param(KNeighborsClassifier(**given), marks=pytest.mark.slow)
            for given in ({"p": 1}, {"n_neighbors": 2})
        ),
        KNeighborsRegressor(),
        KNeighborsRegressor(1, weights="distance"),
    ],
    ids=str,
)
def test_neighbours_of_few_rows_are_those_of_the_loop(model, error_score, rng):
    classifies = isinstance(model, KNeighborsClassifier)
    data = classes(3) if classifies else targets()
    n = len(data[0])
    masks = np.argsort(rng.random((15, n)), axis=1) < rng.integers(1, 7, 15)[:, None]
    masks = np.unique(masks, axis=0)  # the loop counts those that are the same once
    for scoring in (None, "neg_log_loss" if classifies else "neg_mean_absolute_error"):
        games = [
            ModelGame(
                model,
                *data,
                scoring=scoring,
                batch=batch,
                error_score=error_score,
                empty_utility=0,
            )
            for batch in ("auto", "never")
        ]
        np.testing.assert_allclose(*(game.utility(masks) for game in games), atol=1e-12)
        assert games[0].n_failed == games[1].n_failed
        assert games[0].n_one_class == games[1].n_one_class


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_of_targets(weights, rng):
    masks = coalitions(rng, 40, "random")
    for scoring in (None, "neg_mean_absolute_error"):
        check_equal(
            KNeighborsRegressor(3, weights=weights), targets(), masks, scoring=scoring,
            empty_utility=0,
        )  # fmt: skip


@pytest.mark.parametrize("model", [KNeighborsClassifier, KNeighborsRegressor])
def test_neighbours_at_distance_zero_count_alone(model, rng):
    X, y, _, _ = classes(2) if model is KNeighborsClassifier else targets()
    masks = coalitions(rng, len(X), "random")
    again = np.repeat(
        np.arange(len(X)), 1 + np.arange(len(X)) % 2
    )  # some are there twice
    masks = masks[:, again]
    data = X[again], y[again], X, y
    check_equal(model(4, weights="distance"), data, masks)


@pytest.mark.parametrize(
    "estimator",
    [
        NearestCentroid(shrink_threshold=0.1),
        NearestCentroid(metric="manhattan"),
        NearestCentroid(priors="empirical"),
        KNeighborsClassifier(weights=lambda distances: distances),
    ],
    ids=["shrinkage", "metric", "priors", "weights"],
)
def test_what_is_left_to_the_loop(estimator):
    assert ModelGame(estimator, *classes(2)).solver == "loop"
