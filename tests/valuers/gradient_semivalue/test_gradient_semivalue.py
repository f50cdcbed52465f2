"""Semivalues from gradients against plain loops, traps and errors."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import GradientSemivalueValuer
from skvalue.derivatives import column_scales
from skvalue.exceptions import ConstantColumnsWarning, IncompleteFitWarning
from skvalue.semivalues import size_weights

from ...watch import Watch

KINDS = {"logistic": 2, "softmax": 3, "linear": 0}
SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (16, 1)]
seeded = pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")


def problem(rng, n_classes, n=24, d=3, n_val=15):
    """X, y, X_val and y_val, with every class among rows and points."""
    X = rng.normal(size=(n, d))
    X_val = rng.normal(size=(n_val, d))
    if not n_classes:
        y = X @ [1, -2, 0.5] + rng.normal(size=n)
        return X, y, X_val, X_val @ [1, -2, 0.5]
    classes = np.arange(n_classes)
    y = np.r_[classes, rng.integers(0, n_classes, n - n_classes)]
    y_val = np.r_[classes, rng.integers(0, n_classes, n_val - n_classes)]
    return X, y, X_val, y_val


# The definition, step by step ---------------------------------------------------------


def plain_gradient(kind, theta, x, y, n_classes):
    """Gradient of one row's loss, theta of shape (d + 1, outputs)."""
    x = np.append(x, 1.0)
    z = x @ theta
    if kind == "linear":
        return np.outer(x, 2 * (z - y))
    if kind == "logistic":
        return np.outer(x, 1 / (1 + np.exp(-z)) - y)
    return np.outer(x, np.exp(z) / np.exp(z).sum() - np.eye(n_classes)[y])


def plain_utility(kind, theta, X, y, weights, utility):
    z = np.column_stack([X, np.ones(len(X))]) @ theta
    if kind == "linear":
        return -weights @ (z[:, 0] - y) ** 2
    if kind == "logistic":
        z = np.column_stack([np.zeros(len(z)), z[:, 0]])
    if utility == "accuracy":
        is_best = z == z.max(axis=1, keepdims=True)
        probabilities = is_best / is_best.sum(axis=1, keepdims=True)
        return weights @ probabilities[np.arange(len(y)), y]
    probabilities = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return weights @ np.log(probabilities[np.arange(len(y)), y])


def clipped(gradient, clip):
    return gradient / max(1.0, np.linalg.norm(gradient) / clip)


def released(gradients, clip, unit):
    """What a party releases of the gradients of its rows, without noise."""
    if unit == "example":
        return np.mean([clipped(gradient, clip) for gradient in gradients], axis=0)
    return clipped(np.mean(gradients, axis=0), clip)


class Points(NamedTuple):
    """Validation points with weights, and the utility that is computed on them."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    utility: str = "neg_loss"


def equal_points(X_val, y_val, utility="neg_loss"):
    return Points(X_val, y_val, np.full(len(y_val), 1 / len(y_val)), utility)


def plain_values(
    kind,
    X,
    y,
    groups,
    points,
    *,
    rate,
    clip,
    orders,
    semivalue="shapley",
    unit="party",
    step_weights="rows",
):
    """The definition, one step after another."""
    n_classes = KINDS[kind]
    n = int(groups.max()) + 1
    rates = np.full(n, rate)
    if step_weights == "rows":
        counts = np.bincount(groups)
        rates = rate * counts / counts.mean()
    values = np.zeros(n)
    weights = n * size_weights(semivalue, n)

    def utility_of(theta):
        return plain_utility(kind, theta, *points)

    for order in orders:
        theta = np.zeros((X.shape[1] + 1, n_classes if kind == "softmax" else 1))
        before = utility_of(theta)
        for position, player in enumerate(order):
            gradients = [
                plain_gradient(kind, theta, X[i], y[i], n_classes)
                for i in np.flatnonzero(groups == player)
            ]
            theta = theta - rates[player] * released(gradients, clip, unit)
            after = utility_of(theta)
            values[player] += weights[position] * (after - before) / len(orders)
            before = after
    return values


def drawn_orders(random_state, n, n_permutations):
    """The orders of a fit on one game."""
    _, game = np.random.SeedSequence(random_state).spawn(2)
    return [
        np.random.default_rng(child).permutation(n)
        for child in game.spawn(n_permutations)
    ]


def public_basis(kind, X_val, y_val, n_components):
    """The gradients of the points at zero, and their public directions, by hand.

    These are the mean gradient, and the directions of most of the remainder.
    """
    n_classes = KINDS[kind]
    zero = np.zeros((X_val.shape[1] + 1, n_classes if kind == "softmax" else 1))
    gradients = np.array(
        [
            plain_gradient(kind, zero, x, target, n_classes).T.ravel()
            for x, target in zip(X_val, y_val)
        ]
    )
    mean = gradients.mean(axis=0)
    first = mean / np.linalg.norm(mean)
    remainder = gradients - np.outer(gradients @ first, first)
    eigenvectors = np.linalg.eigh(remainder.T @ remainder)[1]
    return gradients, np.column_stack([first, eigenvectors[:, :-n_components:-1]])


# Values -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["party", "example"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("step_weights", ["rows", "equal"])
def test_values_equal_a_plain_loop(rng, kind, unit, grouped, weighted, step_weights):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    groups = np.arange(24)
    if grouped:
        groups = rng.permutation(np.repeat(np.arange(7), [1, 1, 2, 2, 3, 5, 10]))
    weights = rng.uniform(size=15) if weighted else np.ones(15)
    valuer = GradientSemivalueValuer(
        kind,
        semivalue=(4, 1),
        n_permutations=3,
        learning_rate=0.7,
        clip=0.8,
        unit=unit,
        step_weights=step_weights,
        standardize=False,
        random_state=5,
    )
    valuer.fit(
        X,
        y,
        X_val=X_val,
        y_val=y_val,
        groups=groups if grouped else None,
        sample_weight_val=weights if weighted else None,
    )
    expected = plain_values(
        kind,
        X,
        y,
        groups,
        Points(X_val, y_val, weights / weights.sum()),
        rate=0.7,
        clip=0.8,
        unit=unit,
        step_weights=step_weights,
        orders=drawn_orders(5, groups.max() + 1, 3),
        semivalue=(4, 1),
    )
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_values_of_accuracy_equal_a_plain_loop(rng, kind):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    valuer = GradientSemivalueValuer(
        kind,
        utility="accuracy",
        n_permutations=3,
        learning_rate=0.7,
        standardize=False,
        clip=1.0,
        random_state=5,
    ).fit(X, y, X_val=X_val, y_val=y_val)
    expected = plain_values(
        kind,
        X,
        y,
        np.arange(24),
        equal_points(X_val, y_val, "accuracy"),
        rate=0.7,
        clip=1.0,
        orders=drawn_orders(5, 24, 3),
    )
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)
    assert valuer.empty_utility_ == pytest.approx(1 / KINDS[kind])


def test_columns_and_targets_are_standardized_by_public_data(rng):
    X, y, X_val, y_val = problem(rng, 0)
    X = 1e4 * X + 7
    X_val = 1e4 * X_val + 7
    y = 50 * y + 900
    y_val = 50 * y_val + 900
    options = dict(n_permutations=4, learning_rate=0.3, random_state=0)
    standardized = GradientSemivalueValuer(**options)
    standardized.fit(X, y, X_val=X_val, y_val=y_val)
    mean = X_val.mean(axis=0)
    scale = np.sqrt(3) * X_val.std(axis=0)
    by_hand = GradientSemivalueValuer(standardize=False, **options).fit(
        (X - mean) / scale,
        (y - y_val.mean()) / y_val.std(),
        X_val=(X_val - mean) / scale,
        y_val=(y_val - y_val.mean()) / y_val.std(),
    )
    expected = by_hand.values_ * y_val.var()
    np.testing.assert_allclose(standardized.values_, expected, rtol=1e-9)
    assert standardized.empty_utility_ == pytest.approx(-y_val.var())


def test_shapley_values_sum_to_the_gain_of_utility(rng):
    X, y, X_val, y_val = problem(rng, 3)
    valuer = GradientSemivalueValuer(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)
    assert valuer.empty_utility_ == pytest.approx(-np.log(3))
    assert valuer.n_evaluations_ == 100 * 25
    assert (valuer.values_error_ > 0).all()


def test_shapley_values_of_held_out_rows_sum_to_the_gain_of_utility(rng):
    X, y, _, _ = problem(rng, 3)
    valuer = GradientSemivalueValuer(random_state=0, cv=3).fit(X, y)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


def test_values_and_errors_are_means_over_permutations_and_splits(rng):
    X, y, _, _ = problem(rng, 2)
    splits = list(KFold(3).split(X))
    marginals = np.zeros((3, 3, 24))
    for number, (train, test) in enumerate(splits):
        children = np.random.SeedSequence(0).spawn(4)[1 + number].spawn(3)
        for t, child in enumerate(children):
            order = np.random.default_rng(child).permutation(16)
            marginals[number, t, train] = plain_values(
                "logistic",
                X[train],
                y[train],
                np.arange(16),
                equal_points(X[test], y[test]),
                rate=0.5,
                clip=np.inf,
                orders=[order],
            )
    valuer = GradientSemivalueValuer(
        "logistic",
        n_permutations=3,
        cv=splits,
        learning_rate=0.5,
        standardize=False,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(valuer.values_, marginals.mean(axis=(0, 1)), atol=1e-12)
    error = np.sqrt((marginals.var(axis=1, ddof=1) / 3).sum(axis=0)) / 3
    np.testing.assert_allclose(valuer.values_error_, error, atol=1e-12)
    assert valuer.n_evaluations_ == 3 * 3 * 17


def test_a_row_that_joins_is_a_party_of_one_row(rng):
    """Beside groups its step has the weight of one row; alone, that of a party."""
    X, y, X_val, y_val = problem(rng, 2)
    options = dict(n_permutations=2, learning_rate=1e-6, standardize=False)
    points = {"X_val": X_val, "y_val": y_val}
    new = X_val[:3]
    by_size = {}
    for size in (1, 4):
        valuer = GradientSemivalueValuer(random_state=0, **options)
        valuer.fit(X, y, groups=np.arange(24) // size, **points)
        by_size[size] = valuer.score_samples(new, y_val[:3])
    # Steps so small have values in proportion to their lengths.
    np.testing.assert_allclose(by_size[4], by_size[1] / 4, rtol=1e-3)
    equal = GradientSemivalueValuer(step_weights="equal", random_state=0, **options)
    equal.fit(X, y, groups=np.arange(24) // 4, **points)
    np.testing.assert_allclose(
        equal.score_samples(new, y_val[:3]), by_size[1], rtol=1e-3
    )


def test_faithful_rows_take_equal_steps(rng):
    X, y, X_val, y_val = problem(rng, 2)
    groups = np.repeat(np.arange(3), [2, 6, 16])
    values = {}
    for step_weights in ("rows", "equal"):
        valuer = GradientSemivalueValuer(
            group_values="faithful",
            step_weights=step_weights,
            n_permutations=4,
            learning_rate=0.7,
            random_state=0,
        ).fit(X, y, groups=groups, X_val=X_val, y_val=y_val)
        values[step_weights] = valuer.values_
    np.testing.assert_array_equal(values["rows"], values["equal"])


# Coordinates --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["party", "example"])
def test_values_along_public_directions_equal_a_plain_loop(rng, kind, unit):
    n_classes = KINDS[kind]
    n_components = 3
    clip = 0.4
    X, y, X_val, y_val = problem(rng, n_classes)
    groups = rng.permutation(np.repeat(np.arange(7), [1, 1, 2, 2, 3, 5, 10]))
    rates = 0.7 * np.bincount(groups) * 7 / 24
    n_outputs = n_classes if kind == "softmax" else 1
    _, basis = public_basis(kind, X_val, y_val, n_components)
    points = equal_points(X_val, y_val)

    def parameters(coordinates):
        return (basis @ coordinates).reshape(n_outputs, 4).T

    def coordinates_of(gradient):
        return basis.T @ gradient.T.ravel()

    expected = np.zeros(7)
    for order in drawn_orders(5, 7, 3):
        coordinates = np.zeros(n_components)
        before = plain_utility(kind, parameters(coordinates), *points)
        for player in order:
            theta = parameters(coordinates)
            gradients = [
                coordinates_of(plain_gradient(kind, theta, X[i], y[i], n_classes))
                for i in np.flatnonzero(groups == player)
            ]
            step = rates[player] * released(gradients, clip, unit)
            coordinates = coordinates - step
            after = plain_utility(kind, parameters(coordinates), *points)
            expected[player] += (after - before) / 3
            before = after
    valuer = GradientSemivalueValuer(
        kind,
        n_permutations=3,
        learning_rate=0.7,
        clip=clip,
        n_components=n_components,
        unit=unit,
        standardize=False,
        random_state=5,
    ).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_clip_is_that_of_what_points_would_send(rng, kind):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    groups = rng.permutation(np.arange(24) % 7)
    gradients, basis = public_basis(kind, X_val, y_val, 3)
    example = GradientSemivalueValuer(
        kind,
        n_permutations=3,
        learning_rate=0.7,
        clip="median",
        n_components=3,
        unit="example",
        standardize=False,
        random_state=5,
    ).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    norms = np.linalg.norm(gradients @ basis, axis=1)
    assert example.clip_ == pytest.approx(np.median(norms))
    party = clone(example).set_params(unit="party")
    party.fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    assert 0 < party.clip_ < example.clip_  # of means of 24 / 7 of them


def test_as_many_directions_as_parameters_change_no_value(rng):
    X, y, X_val, y_val = problem(rng, 2)
    options = dict(n_permutations=4, learning_rate=0.7, random_state=0)
    plain = GradientSemivalueValuer(**options).fit(X, y, X_val=X_val, y_val=y_val)
    rotated = GradientSemivalueValuer(n_components=4, **options)
    rotated.fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(rotated.values_, plain.values_, atol=1e-12)


def test_every_split_has_directions_of_its_own(rng):
    X, y, _, _ = problem(rng, 2)
    valuer = GradientSemivalueValuer(
        n_components=1,
        clip="median",
        cv=3,
        n_permutations=4,
        learning_rate=0.7,
        random_state=0,
    ).fit(X, y)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


# How permutations are walked ----------------------------------------------------------


def private_parameters(noise):
    if noise is None:
        return {}
    return dict(noise_multiplier=0.5, noise=noise, burn_in=0.3, noise_random_state=3)


@pytest.mark.parametrize("noise", [None, "iid", "correlated"])
@seeded
def test_values_have_the_same_bits_for_any_number_of_threads(rng, noise):
    X, y, X_val, y_val = problem(rng, 2, n=60)
    valuer = GradientSemivalueValuer(
        n_permutations=12, random_state=0, **private_parameters(noise)
    )
    one = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
    two = clone(valuer).set_params(n_jobs=2).fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(two.values_, one.values_)


def test_values_do_not_depend_on_the_working_memory(rng):
    # With noise they do: it is drawn by block.
    X, y, X_val, y_val = problem(rng, 2, n=60)
    valuer = GradientSemivalueValuer(n_permutations=12, random_state=0)
    values = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    with config_context(working_memory=1e-3):
        in_blocks = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_allclose(in_blocks, values, atol=1e-14)


def watched_fit(rng, noise, watch):
    """A valuer of 20 permutations, half of them burn-in, and a fit with a callback."""
    X, y, X_val, y_val = problem(rng, 2)
    private = {} if noise is None else {"epsilon": 1.0, "noise": noise}
    valuer = GradientSemivalueValuer(
        n_permutations=20, random_state=0, burn_in=0.5, **private
    )
    valuer.set_callbacks(watch)
    return valuer, lambda: valuer.fit(X, y, X_val=X_val, y_val=y_val)


each_noise = pytest.mark.parametrize("noise", [None, "iid", "correlated"])


@each_noise
def test_callbacks_see_every_permutation(rng, noise):
    watch = Watch()
    _, fit = watched_fit(rng, noise, watch)
    fit()
    assert watch.begun == watch.ended == watch.expected == 20


@each_noise
def test_a_stopped_fit_has_the_values_of_the_permutations_before(rng, noise):
    valuer, fit = watched_fit(rng, noise, Watch(stop_at=14))
    with pytest.warns(IncompleteFitWarning, match="the permutations walked until then"):
        fit()
    assert valuer.n_evaluations_ == 4 * 25
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-9)


@each_noise
def test_an_interrupted_fit_has_the_values_of_the_permutations_before(rng, noise):
    valuer, fit = watched_fit(rng, noise, Watch(interrupt_at=16))
    with pytest.raises(KeyboardInterrupt):
        fit()
    assert valuer.n_evaluations_ >= 5 * 25


@each_noise
def test_a_fit_that_is_stopped_in_the_burn_in_is_an_error(rng, noise):
    _, fit = watched_fit(rng, noise, Watch(stop_at=9))
    with pytest.raises(RuntimeError, match="in the burn-in, the first 10 permutations"):
        fit()


def test_no_clip_without_noise_and_one_with_it(rng):
    X, y, X_val, y_val = problem(rng, 0)
    X = 20 * X
    y = 50 * y
    options = dict(n_permutations=3, learning_rate=0.001, random_state=0)
    auto, unclipped, clipped_at_one, private = (
        GradientSemivalueValuer(**options, **parameters).fit(
            X, y, X_val=X_val, y_val=y_val
        )
        for parameters in ({}, {"clip": None}, {"clip": 1.0}, {"epsilon": 1.0})
    )
    assert auto.clip_ is None
    assert private.clip_ == clipped_at_one.clip_ == 1.0
    np.testing.assert_array_equal(auto.values_, unclipped.values_)
    assert np.abs(auto.values_ - clipped_at_one.values_).max() > 1e-3


@pytest.mark.parametrize(
    ("semivalue", "n_utilities"),
    [((16, 1), 60), ("leave-one-out", 3), ((4, 1), 81), ("shapley", 81)],
)
def test_utilities_without_weight_are_not_computed(rng, semivalue, n_utilities):
    X, y, X_val, y_val = problem(rng, 2, n=80)
    options = dict(n_permutations=5, learning_rate=0.3, random_state=0)
    valuer = GradientSemivalueValuer(semivalue=semivalue, **options)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    shapley = GradientSemivalueValuer(**options).fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.n_evaluations_ <= 5 * n_utilities
    assert valuer.utility_ == shapley.utility_
    assert valuer.empty_utility_ == shapley.empty_utility_
    mean = X_val.mean(0)
    scale = X_val.std(0)
    expected = plain_values(
        "logistic",
        (X - mean) / scale / np.sqrt(3),
        y,
        np.arange(80),
        equal_points((X_val - mean) / scale / np.sqrt(3), y_val),
        rate=0.3,
        clip=np.inf,
        orders=drawn_orders(0, 80, 5),
        semivalue=semivalue,
    )
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-6)


# Rows that join -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_joining_rows_are_those_of_a_refit(rng, kind):
    X, y, X_val, y_val = problem(rng, KINDS[kind], n=36, n_val=30)
    points = dict(X_val=X_val, y_val=y_val)
    valuer = GradientSemivalueValuer(
        kind,
        semivalue=(2, 1),
        n_permutations=200,
        learning_rate=0.01 if kind == "linear" else 0.2,
        random_state=0,
    ).fit(X[:-4], y[:-4], **points)
    joined = valuer.score_samples(X[-4:], y[-4:])
    refits = []
    for i in range(32, 36):
        rows = [*range(32), i]
        refits.append(clone(valuer).fit(X[rows], y[rows], **points))
    expected = np.array([refit.values_[-1] for refit in refits])
    errors = np.array([refit.values_error_[-1] for refit in refits])
    assert np.ptp(expected) > 8 * errors.mean()
    np.testing.assert_allclose(joined, expected, atol=5 * errors.max())
    # Rows of fit have their fitted values, with or without labels.
    np.testing.assert_array_equal(valuer.score_samples(X[:32], y[:32]), valuer.values_)


def test_values_without_labels_are_means_over_labels(rng):
    X, y, X_val, y_val = problem(rng, 3, n=60, n_val=40)
    valuer = GradientSemivalueValuer(
        n_permutations=5, learning_rate=1.0, random_state=0
    )
    valuer.fit(X[:40], y[:40], X_val=X_val, y_val=y_val)
    by_label = np.array(
        [valuer.score_samples(X[40:], np.full(20, label)) for label in range(3)]
    )
    unlabelled = valuer.transform(X[40:])[:, 0]
    assert (by_label.min(axis=0) < unlabelled).all()
    assert (unlabelled < by_label.max(axis=0)).all()
    weights = np.linalg.lstsq(by_label.T, unlabelled, rcond=None)[0]
    assert 0.5 < weights.sum() < 1.5


def test_values_without_targets_are_those_of_predicted_targets(rng):
    X, y, X_val, y_val = problem(rng, 0, n=60, n_val=40)
    valuer = GradientSemivalueValuer(
        n_permutations=10, learning_rate=0.1, random_state=0
    )
    valuer.fit(X[:40], 100 + y[:40], X_val=X_val, y_val=100 + y_val)
    of_predicted = valuer.score_samples(X[40:])
    of_targets = valuer.score_samples(X[40:], 100 + y[40:])
    # A target that is predicted leaves little to gain.
    assert np.corrcoef(of_predicted, of_targets)[0, 1] > 0.5


def test_a_feature_union_of_rows_and_values(rng):
    X, y, *_ = problem(rng, 2, n=120)
    valuer = GradientSemivalueValuer(n_permutations=3, learning_rate=0.1, cv=2)
    pipeline = make_pipeline(
        StandardScaler(),
        FeatureUnion([("rows", "passthrough"), ("value", valuer)]),
        LogisticRegression(),
    )
    pipeline.fit(X[:90], y[:90])
    assert pipeline[-1].n_features_in_ == 4
    assert np.isfinite(pipeline.predict_proba(X[90:])).all()


def test_a_grid_search_over_semivalues(rng):
    X, y, *_ = problem(rng, 2, n=120)
    valuer = GradientSemivalueValuer(n_permutations=3, learning_rate=0.1, cv=2)
    search = GridSearchCV(
        make_pipeline(valuer, LogisticRegression()),
        {"gradientsemivaluevaluer__semivalue": ["shapley", (4, 1)]},
        cv=2,
    )
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


# Traps and errors ---------------------------------------------------------------------


def test_constant_columns_are_not_scaled_up(rng):
    X, y, X_val, y_val = problem(rng, 2, n=60)
    X_val[:, 1] = 5.0
    X_val[:, 2] = 5.0 + 1e-9 * rng.normal(size=15)
    X[:, 1:] = 5.0
    X[0, 1:] = 6.0
    valuer = GradientSemivalueValuer(learning_rate=0.1, random_state=0)
    with pytest.warns(
        ConstantColumnsWarning, match="2 of 3 columns are .* constant .*: 1, 2"
    ):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert np.abs(valuer.values_).max() < 0.1


def test_the_scale_of_a_column_of_zeros_is_one():
    with pytest.warns(ConstantColumnsWarning):
        assert column_scales(np.zeros((4, 1))) == ([0.0], [1.0])


def test_the_learning_rate_falls_with_the_number_of_steps_and_with_noise(rng):
    X, y, X_val, y_val = problem(rng, 0, n=100, n_val=80)
    points = dict(X_val=X_val, y_val=y_val)
    rates = {}
    for n, multiplier in ((10, None), (100, None), (100, 3.0)):
        valuer = GradientSemivalueValuer(
            noise_multiplier=multiplier, n_permutations=10, clip=1.0, random_state=0
        )
        rates[n, multiplier] = valuer.fit(X[:n], y[:n], **points).learning_rate_
    assert rates[10, None] > rates[100, None] > rates[100, 3.0]


def test_the_learning_rate_depends_on_neither_rows_nor_permutations(rng):
    X, y, X_val, y_val = problem(rng, 0, n=100, n_val=80)
    few = GradientSemivalueValuer(clip=1.0, n_permutations=10, random_state=0)
    rate = few.fit(X, y, X_val=X_val, y_val=y_val).learning_rate_
    X[:] = 0.0
    y[:] = 1e6 + 0.5
    many = clone(few).set_params(n_permutations=100)
    assert many.fit(X, y, X_val=X_val, y_val=y_val).learning_rate_ == rate


def test_learning_rates_that_end_in_infinity_are_not_taken(rng):
    _, _, X_val, y_val = problem(rng, 0, n=100, n_val=80)
    X = 30 * rng.normal(size=(100, 3))
    y = rng.normal(size=100)
    valuer = GradientSemivalueValuer(
        clip=None, standardize=False, n_permutations=1, random_state=0
    )
    with np.errstate(all="ignore"):
        valuer.fit(X, y, X_val=30 * X_val, y_val=y_val)
    assert valuer.learning_rate_ == 0.001


def test_a_gradient_that_is_not_finite_is_an_error():
    X = np.array([[1e3], [2e3], [1e73], [3e3]])
    y = np.array([0, 1, 0, 1])
    valuer = GradientSemivalueValuer(
        "linear", learning_rate=1e300, clip=None, standardize=False
    )
    with (
        np.errstate(all="ignore"),
        pytest.raises(
            ValueError, match="Every party's gradient must be finite. .* the party"
        ),
    ):
        valuer.fit(X, y, X_val=np.array([[1.0], [2.0]]), y_val=np.array([0, 1]))


def test_two_rows_without_clip_have_finite_values():
    X = np.array([[1.0], [2.0]])
    y = np.array([0, 1])
    valuer = GradientSemivalueValuer(learning_rate=0.1, clip=None, standardize=False)
    with np.errstate(all="ignore"):
        valuer.fit(X, y, X_val=np.array([[1.0], [2.0]]), y_val=np.array([0, 1]))
    assert np.isfinite(valuer.values_).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"model": "forest"},
            "model must be 'auto', 'logistic', 'softmax', 'linear' or a torch",
        ),
        (
            {"model": "linear", "task": "classification"},
            "task must be 'auto' or 'regression' with",
        ),
        ({"loss": abs}, "loss must be None with"),
        ({"device": "cuda"}, "device must be"),
        (
            {"epsilon": 1.0, "noise_multiplier": 1.0},
            "noise_multiplier must be None if epsilon",
        ),
        ({"epsilon": 1.0, "clip": None}, "clip must be a number"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta must be"),
        ({"semivalue": "core"}, "semivalue must be"),
        ({"burn_in": 1.0}, "'burn_in' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_components": 5}, "number of directions in which .* differ, 4. Got 5."),
        ({"utility": "r2"}, "'utility' parameter"),
    ],
)
def test_parameters_out_of_range_are_refused(rng, parameters, message):
    X, y, X_val, y_val = problem(rng, 2)
    with pytest.raises(ValueError, match=message):
        GradientSemivalueValuer(**parameters).fit(X, y, X_val=X_val, y_val=y_val)


def test_a_median_clip_of_gradients_of_zero_is_refused(rng):
    X, y, X_val, _ = problem(rng, 0)
    valuer = GradientSemivalueValuer(clip="median")
    with pytest.raises(
        ValueError, match="clip must be a number if the gradients of the"
    ):
        valuer.fit(X, y, X_val=X_val, y_val=np.zeros(15))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "logistic"}, "y must hold classes when task='classification'"),
        ({"utility": "accuracy"}, "utility must be 'neg_loss' for a continuous target"),
    ],
)
def test_parameters_of_classes_are_refused_for_targets(rng, parameters, message):
    X, y, X_val, y_val = problem(rng, 0)
    with pytest.raises(ValueError, match=message):
        GradientSemivalueValuer(**parameters).fit(X, y, X_val=X_val, y_val=y_val)


def test_private_fits_without_a_validation_set_are_refused(rng):
    X, y, _, _ = problem(rng, 0)
    with pytest.raises(ValueError, match="X_val and y_val must be passed with epsilon"):
        GradientSemivalueValuer(epsilon=1.0).fit(X, y)
