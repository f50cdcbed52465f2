"""Semivalues from gradients against plain loops and enumeration, traps and errors."""

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
    X, X_val = rng.normal(size=(n, d)), rng.normal(size=(n_val, d))
    if not n_classes:
        return X, X @ [1, -2, 0.5] + rng.normal(size=n), X_val, X_val @ [1, -2, 0.5]
    y, y_val = (np.r_[np.arange(n_classes), rng.integers(0, n_classes, m - n_classes)]
                for m in (n, n_val))  # fmt: skip
    return X, y, X_val, y_val


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
        best = z == z.max(axis=1, keepdims=True)
        return weights @ (best / best.sum(axis=1, keepdims=True))[np.arange(len(y)), y]
    probabilities = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return weights @ np.log(probabilities[np.arange(len(y)), y])


def clipped(g, clip):
    return g / max(1.0, np.linalg.norm(g) / clip)


def plain_values(
    kind,
    X,
    y,
    groups,
    X_val,
    y_val,
    weights,
    *,
    rate,
    clip,
    unit,
    utility,
    orders,
    semivalue,
):
    """The definition, one step after another."""
    n_classes, n = KINDS[kind], int(groups.max()) + 1
    values, at = np.zeros(n), n * size_weights(semivalue, n)
    for order in orders:
        theta = np.zeros((X.shape[1] + 1, n_classes if kind == "softmax" else 1))
        before = plain_utility(kind, theta, X_val, y_val, weights, utility)
        for position, j in enumerate(order):
            gs = [
                plain_gradient(kind, theta, X[i], y[i], n_classes)
                for i in np.flatnonzero(groups == j)
            ]
            if unit == "example":
                g = np.mean([clipped(g, clip) for g in gs], axis=0)
            else:
                g = clipped(np.mean(gs, axis=0), clip)
            theta = theta - rate * g
            after = plain_utility(kind, theta, X_val, y_val, weights, utility)
            values[j] += at[position] * (after - before) / len(orders)
            before = after
    return values


def drawn_orders(random_state, n, n_permutations):
    """The orders of a fit on one game."""
    game = np.random.SeedSequence(random_state).spawn(2)[1]
    return [
        np.random.default_rng(child).permutation(n)
        for child in game.spawn(n_permutations)
    ]


# Values -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["party", "example"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_plain_loop(rng, kind, unit, grouped, weighted):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    groups = rng.permutation(np.arange(24) % 7) if grouped else np.arange(24)
    weights = rng.uniform(size=15) if weighted else np.ones(15)
    valuer = GradientSemivalueValuer(
        kind, (4, 1), n_permutations=3, learning_rate=0.7, clip=0.8, unit=unit, standardize=False,
        random_state=5,
    )  # fmt: skip
    valuer.fit(
        X, y, X_val=X_val, y_val=y_val, groups=groups if grouped else None,
        sample_weight_val=weights if weighted else None,
    )  # fmt: skip
    expected = plain_values(
        kind, X, y, groups, X_val, y_val, weights / weights.sum(), rate=0.7, clip=0.8, unit=unit,
        utility="neg_loss", orders=drawn_orders(5, groups.max() + 1, 3), semivalue=(4, 1),
    )  # fmt: skip
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_accuracy_of_a_plain_loop(rng, kind):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    valuer = GradientSemivalueValuer(
        kind, utility="accuracy", n_permutations=3, learning_rate=0.7, standardize=False,
        clip=1.0, random_state=5,
    ).fit(X, y, X_val=X_val, y_val=y_val)  # fmt: skip
    expected = plain_values(
        kind, X, y, np.arange(24), X_val, y_val, np.full(15, 1 / 15), rate=0.7, clip=1.0,
        unit="party", utility="accuracy", orders=drawn_orders(5, 24, 3), semivalue="shapley",
    )  # fmt: skip
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)
    assert valuer.empty_utility_ == pytest.approx(1 / KINDS[kind])


def test_standardized_by_public_data(rng):
    X, y, X_val, y_val = problem(rng, 0)
    X, X_val, y, y_val = 1e4 * X + 7, 1e4 * X_val + 7, 50 * y + 900, 50 * y_val + 900
    options = dict(n_permutations=4, learning_rate=0.3, random_state=0)
    inside = GradientSemivalueValuer(**options).fit(X, y, X_val=X_val, y_val=y_val)
    scale = np.sqrt(3) * X_val.std(axis=0)
    by_hand = GradientSemivalueValuer(standardize=False, **options).fit(
        (X - X_val.mean(axis=0)) / scale, (y - y_val.mean()) / y_val.std(),
        X_val=(X_val - X_val.mean(axis=0)) / scale, y_val=(y_val - y_val.mean()) / y_val.std(),
    )  # fmt: skip
    np.testing.assert_allclose(inside.values_, by_hand.values_ * y_val.var(), rtol=1e-9)
    assert inside.empty_utility_ == pytest.approx(-y_val.var())


def test_shapley_values_add_up(rng):
    X, y, X_val, y_val = problem(rng, 3)
    valuer = GradientSemivalueValuer(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    gained = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gained, abs=1e-12)
    assert valuer.empty_utility_ == pytest.approx(-np.log(3))
    assert valuer.n_evaluations_ == 100 * 25
    assert (valuer.values_error_ > 0).all()
    split = GradientSemivalueValuer(random_state=0, cv=3).fit(X, y)
    assert split.values_.sum() == pytest.approx(
        split.utility_ - split.empty_utility_, abs=1e-12
    )


def test_values_and_errors_are_means_over_permutations_and_splits(rng):
    X, y, _, _ = problem(rng, 2)
    options = dict(learning_rate=0.5, standardize=False, random_state=0)
    held = list(KFold(3).split(X))
    marginals = np.zeros((3, 3, 24))
    for number, (train, test) in enumerate(held):
        children = np.random.SeedSequence(0).spawn(4)[1 + number].spawn(3)
        for t, child in enumerate(children):
            order = np.random.default_rng(child).permutation(16)
            marginals[number, t, train] = plain_values(
                "logistic", X[train], y[train], np.arange(16), X[test], y[test],
                np.full(8, 1 / 8), rate=0.5, clip=np.inf, unit="party", utility="neg_loss",
                orders=[order], semivalue="shapley",
            )  # fmt: skip
    valuer = GradientSemivalueValuer(
        "logistic", n_permutations=3, cv=held, **options
    ).fit(X, y)
    np.testing.assert_allclose(valuer.values_, marginals.mean(axis=(0, 1)), atol=1e-12)
    error = np.sqrt((marginals.var(axis=1, ddof=1) / 3).sum(axis=0)) / 3
    np.testing.assert_allclose(valuer.values_error_, error, atol=1e-12)
    assert valuer.n_evaluations_ == 3 * 3 * 17


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["party", "example"])
def test_coordinates_of_a_plain_loop(rng, kind, unit):
    n_classes, r, clip = KINDS[kind], 3, 0.4
    X, y, X_val, y_val = problem(rng, n_classes)
    groups = rng.permutation(np.arange(24) % 7)
    outputs = n_classes if kind == "softmax" else 1
    # The mean public gradient at zero, and the directions of most of the rest, by hand.
    zero = np.zeros((4, outputs))
    G = np.array([plain_gradient(kind, zero, x, t, n_classes).T.ravel()
                  for x, t in zip(X_val, y_val)])  # fmt: skip
    u = G.mean(axis=0) / np.linalg.norm(G.mean(axis=0))
    rest = G - np.outer(G @ u, u)
    basis = np.column_stack([u, np.linalg.eigh(rest.T @ rest)[1][:, :-r:-1]])
    valuer = GradientSemivalueValuer(
        kind, n_permutations=3, learning_rate=0.7, clip=clip, n_components=r, unit=unit,
        standardize=False, random_state=5,
    ).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)  # fmt: skip
    expected, weights = np.zeros(7), np.full(15, 1 / 15)
    for order in drawn_orders(5, 7, 3):
        z = np.zeros(r)
        before = plain_utility(kind, zero, X_val, y_val, weights, "neg_loss")
        for j in order:
            theta = (basis @ z).reshape(outputs, 4).T
            gs = [
                basis.T @ plain_gradient(kind, theta, X[i], y[i], n_classes).T.ravel()
                for i in np.flatnonzero(groups == j)
            ]
            if unit == "example":
                z = z - 0.7 * np.mean([clipped(g, clip) for g in gs], axis=0)
            else:
                z = z - 0.7 * clipped(np.mean(gs, axis=0), clip)
            theta = (basis @ z).reshape(outputs, 4).T
            after = plain_utility(kind, theta, X_val, y_val, weights, "neg_loss")
            expected[j] += (after - before) / 3
            before = after
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(valuer.values_, expected, rtol=0, atol=1e-10)
    # The median norm of what the validation points would send.
    auto = clone(valuer).set_params(clip="median", unit="example")
    auto.fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    assert auto.clip_ == pytest.approx(np.median(np.linalg.norm(G @ basis, axis=1)))
    party = (
        clone(auto)
        .set_params(unit="party")
        .fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    )
    assert 0 < party.clip_ < auto.clip_  # of means of 24 / 7 of them


def test_all_coordinates_are_the_gradient(rng):
    X, y, X_val, y_val = problem(rng, 2)
    options = dict(n_permutations=4, learning_rate=0.7, random_state=0)
    whole = GradientSemivalueValuer(**options).fit(X, y, X_val=X_val, y_val=y_val)
    rotated = GradientSemivalueValuer(n_components=4, **options)
    rotated.fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(rotated.values_, whole.values_, atol=1e-12)
    split = GradientSemivalueValuer(n_components=1, clip="median", cv=3, **options).fit(
        X, y
    )
    assert split.values_.sum() == pytest.approx(
        split.utility_ - split.empty_utility_, abs=1e-12
    )


@pytest.mark.parametrize("noise", [None, "iid", "correlated"])
@seeded
def test_the_same_bits_for_any_jobs_and_blocks(rng, noise):
    X, y, X_val, y_val = problem(rng, 2, n=60)
    private = {} if noise is None else dict(noise_multiplier=0.5, noise=noise, burn_in=0.3,
                                            noise_random_state=3)  # fmt: skip
    valuer = GradientSemivalueValuer(n_permutations=12, random_state=0, **private)
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    again = (
        clone(valuer).set_params(n_jobs=2).fit(X, y, X_val=X_val, y_val=y_val).values_
    )
    np.testing.assert_array_equal(values, again)
    if noise is None:  # noise is drawn by block
        with config_context(working_memory=1e-3):
            blocks = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
        np.testing.assert_allclose(values, blocks, atol=1e-14)


@pytest.mark.parametrize("noise", [None, "iid", "correlated"])
def test_callbacks(rng, noise):
    X, y, X_val, y_val = problem(rng, 2)
    points = dict(X_val=X_val, y_val=y_val)
    private = {} if noise is None else dict(epsilon=1.0, noise=noise)
    valuer = GradientSemivalueValuer(
        n_permutations=20, random_state=0, burn_in=0.5, **private
    )
    watch = Watch()
    valuer.set_callbacks(watch).fit(X, y, **points)
    assert watch.begun == watch.ended == watch.expected == 20
    valuer.set_callbacks(Watch(stop_at=14))
    with pytest.warns(IncompleteFitWarning, match="the permutations walked until then"):
        valuer.fit(X, y, **points)
    assert valuer.n_evaluations_ == 4 * 25
    gained = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gained, abs=1e-9)
    valuer.set_callbacks(Watch(interrupt_at=16))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, **points)
    assert valuer.n_evaluations_ >= 5 * 25
    valuer.set_callbacks(Watch(stop_at=9))
    with pytest.raises(RuntimeError, match="in the burn-in, the first 10 permutations"):
        valuer.fit(X, y, **points)


def test_no_clip_without_noise_and_one_with_it(rng):
    X, y, X_val, y_val = problem(rng, 0)
    X, y = 20 * X, 50 * y
    points = dict(X_val=X_val, y_val=y_val)
    options = dict(n_permutations=3, learning_rate=0.001, random_state=0)
    found = {clip: GradientSemivalueValuer(clip=clip, **options).fit(X, y, **points)
             for clip in ("auto", None, 1.0)}  # fmt: skip
    assert (found["auto"].clip_, found[1.0].clip_) == (None, 1.0)
    np.testing.assert_array_equal(found["auto"].values_, found[None].values_)
    assert np.abs(found["auto"].values_ - found[1.0].values_).max() > 1e-3
    private = GradientSemivalueValuer(epsilon=1.0, **options).fit(X, y, **points)
    assert private.clip_ == 1.0


def test_utilities_where_there_is_no_weight_are_not_computed(rng):
    X, y, X_val, y_val = problem(rng, 2, n=80)
    points = dict(X_val=X_val, y_val=y_val)
    for semivalue, most in (
        ((16, 1), 60),
        ("leave-one-out", 3),
        ((4, 1), 81),
        ("shapley", 81),
    ):
        options = dict(n_permutations=5, learning_rate=0.3, random_state=0)
        valuer = GradientSemivalueValuer(semivalue=semivalue, **options).fit(
            X, y, **points
        )
        whole = GradientSemivalueValuer(**options).fit(X, y, **points)
        assert valuer.n_evaluations_ <= 5 * most
        assert (valuer.utility_, valuer.empty_utility_) == (
            whole.utility_,
            whole.empty_utility_,
        )
        expected = plain_values(
            "logistic", (X - X_val.mean(0)) / X_val.std(0) / np.sqrt(3), y, np.arange(80),
            (X_val - X_val.mean(0)) / X_val.std(0) / np.sqrt(3), y_val, np.full(15, 1 / 15),
            rate=0.3, clip=np.inf, unit="party", utility="neg_loss",
            orders=drawn_orders(0, 80, 5), semivalue=semivalue,
        )  # fmt: skip
        np.testing.assert_allclose(valuer.values_, expected, atol=1e-6)


# Rows that join -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_joining_rows_are_those_of_a_refit(rng, kind):
    X, y, X_val, y_val = problem(rng, KINDS[kind], n=36, n_val=30)
    points = dict(X_val=X_val, y_val=y_val)
    valuer = GradientSemivalueValuer(
        kind, (2, 1), n_permutations=200, learning_rate=0.01 if kind == "linear" else 0.2,
        random_state=0,
    ).fit(X[:-4], y[:-4], **points)  # fmt: skip
    joined = valuer.score_samples(X[-4:], y[-4:])
    refits = [
        clone(valuer).fit(X[[*range(32), i]], y[[*range(32), i]], **points)
        for i in range(32, 36)
    ]
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
        [valuer.score_samples(X[40:], np.full(20, c)) for c in range(3)]
    )
    found = valuer.transform(X[40:])[:, 0]
    assert (by_label.min(axis=0) < found).all()
    assert (found < by_label.max(axis=0)).all()
    weights = np.linalg.lstsq(by_label.T, found, rcond=None)[0]
    assert 0.5 < weights.sum() < 1.5
    # A target that is predicted leaves little to gain; of fit, rows keep theirs.
    X, y, X_val, y_val = problem(rng, 0, n=60, n_val=40)
    valuer = GradientSemivalueValuer(
        n_permutations=10, learning_rate=0.1, random_state=0
    )
    valuer.fit(X[:40], 100 + y[:40], X_val=X_val, y_val=100 + y_val)
    predicted = valuer.score_samples(X[40:])
    assert (
        np.corrcoef(predicted, valuer.score_samples(X[40:], 100 + y[40:]))[0, 1] > 0.5
    )


def test_a_middle_step_of_a_pipeline(rng):
    X, y, *_ = problem(rng, 2, n=120)
    valuer = GradientSemivalueValuer(n_permutations=3, learning_rate=0.1, cv=2)
    pipeline = make_pipeline(
        StandardScaler(), FeatureUnion([
            ("rows", "passthrough"), ("value", valuer)
        ]), LogisticRegression(),
    )  # fmt: skip
    pipeline.fit(X[:90], y[:90])
    assert pipeline[-1].n_features_in_ == 4
    assert np.isfinite(pipeline.predict_proba(X[90:])).all()
    search = GridSearchCV(
        make_pipeline(valuer, LogisticRegression()),
        {"gradientsemivaluevaluer__semivalue": ["shapley", (4, 1)]}, cv=2,
    )  # fmt: skip
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


# Traps and errors ---------------------------------------------------------------------


def test_constant_columns_blow_nothing_up(rng):
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
    with pytest.warns(ConstantColumnsWarning):
        assert column_scales(np.zeros((4, 1))) == ([0.0], [1.0])


def test_learning_rate_from_public_data(rng):
    X, y, X_val, y_val = problem(rng, 0, n=100, n_val=80)
    points = dict(X_val=X_val, y_val=y_val)
    rates = {}
    for n, multiplier in ((10, None), (100, None), (100, 3.0)):
        valuer = GradientSemivalueValuer(
            noise_multiplier=multiplier, n_permutations=10, clip=1.0, random_state=0
        )
        rates[n, multiplier] = valuer.fit(X[:n], y[:n], **points).learning_rate_
    assert rates[10, None] > rates[100, None] > rates[100, 3.0]
    X[:], y[:] = 0.0, 1e6 + 0.5  # the rows themselves do not matter
    assert (
        GradientSemivalueValuer(clip=1.0, random_state=0)
        .fit(X, y, **points)
        .learning_rate_
        == (rates[100, None])
    )
    # Clipped by nothing, the larger rates end in infinity: they are not taken.
    wild = GradientSemivalueValuer(
        clip=None, standardize=False, n_permutations=1, random_state=0
    )
    X, y = 30 * rng.normal(size=(100, 3)), rng.normal(size=100)
    with np.errstate(all="ignore"):
        wild.fit(X, y, X_val=30 * X_val, y_val=y_val)
    assert wild.learning_rate_ == 0.001


def test_a_gradient_that_is_not_finite():
    X = np.array([[1.0], [2.0], [1e70], [3.0]])
    y, X_val, y_val = np.array([0, 1, 0, 1]), np.array([[1.0], [2.0]]), np.array([0, 1])
    valuer = GradientSemivalueValuer(learning_rate=0.1, clip=None, standardize=False)
    with np.errstate(all="ignore"):
        bad = GradientSemivalueValuer(
            "linear", learning_rate=1e300, clip=None, standardize=False
        )
        with pytest.raises(
            ValueError, match="Every party's gradient must be finite. .* the party"
        ):
            bad.fit(X * [[1e3]], y, X_val=X_val, y_val=y_val)
    assert np.isfinite(valuer.fit(X[:2], y[:2], X_val=X_val, y_val=y_val).values_).all()


@pytest.mark.parametrize(
    ("params", "message"),
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
def test_errors(rng, params, message):
    X, y, X_val, y_val = problem(rng, 2)
    with pytest.raises(ValueError, match=message):
        GradientSemivalueValuer(**params).fit(X, y, X_val=X_val, y_val=y_val)


def test_errors_of_targets(rng):
    X, y, X_val, y_val = problem(rng, 0)
    with pytest.raises(
        ValueError, match="clip must be a number if the gradients of the"
    ):
        GradientSemivalueValuer(clip="median").fit(
            X, y, X_val=X_val, y_val=np.zeros(15)
        )
    with pytest.raises(
        ValueError, match="y must hold classes when task='classification'"
    ):
        GradientSemivalueValuer("logistic").fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(
        ValueError, match="utility must be 'neg_loss' for a continuous target"
    ):
        GradientSemivalueValuer(utility="accuracy").fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(ValueError, match="X_val and y_val must be passed with epsilon"):
        GradientSemivalueValuer(epsilon=1.0).fit(X, y)
