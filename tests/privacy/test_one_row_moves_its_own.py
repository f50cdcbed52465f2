"""One private row moves its own contribution to what is released, and nothing else.

The statistics of private methods are computed before their noise, with a row and with
another in its place, or without it. They must differ by at most the sensitivity of the
event that is charged, whatever the row is. Nothing is refused, and no number of a
private row is in a message.
"""

import warnings
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.derivatives import LinearGradientModel, TorchGradientModel
from skvalue.labels import count_improbable_labels
from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.seller import COUNT_WEIGHT, Moments, isotropic_statistic
from skvalue.privacy import DiscreteGaussianEvent, LaplaceEvent, Ledger, Release

N_ROWS = 12
N_FEATURES = 3
CLIP = 0.7
NO_CLASS = 987654.321  # and a number that no message may have

# Rows by name: what every number of the row is.
BAD_ROWS = {
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "1e200": 1e200,
    "1e308": 1e308,
    "-1e308": -1e308,
    "1e160, whose score overflows": 1e160,
    "denormal": 5e-324,
    "odd": 987654.321,
    "small": 0.1,
}
# Targets by name, for methods of numbers.
BAD_TARGETS = {
    "nan": np.nan,
    "inf": np.inf,
    "1e200, whose loss overflows": 1e200,
    "-1e308": -1e308,
    "odd": 987654.321,
}

each_row = pytest.mark.parametrize("bad", BAD_ROWS)
each_target = pytest.mark.parametrize("bad", BAD_TARGETS)


class Data(NamedTuple):
    """Private rows with targets, and public points."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray

    def fit(self, estimator, **fit_params):
        return estimator.fit(
            self.X, self.y, X_val=self.X_val, y_val=self.y_val, **fit_params
        )

    def with_row(self, number, target=None):
        """The data with another first row, in which each entry is a number."""
        X = self.X.copy()
        y = self.y.astype(np.float64)
        X[0] = number
        if target is not None:
            y[0] = target
        return self._replace(X=X, y=y)

    def with_target(self, target):
        """The data with another target of the first row."""
        y = self.y.astype(np.float64)
        y[0] = target
        return self._replace(y=y)

    def without_row(self):
        return self._replace(X=self.X[1:], y=self.y[1:])


def draw_data(n_classes):
    """Rows on a grid, so that distances are tied; 0 classes are a regression."""
    rng = np.random.default_rng(n_classes)

    def draw(n):
        X = np.round(2 * rng.normal(size=(n, N_FEATURES))) / 2
        if n_classes:
            return X, np.arange(n) % n_classes
        return X, X[:, 0] + 0.1 * rng.normal(size=n)

    return Data(*draw(N_ROWS), *draw(9))


# Sums of gradients of players ---------------------------------------------------------

KINDS = {"logistic": 2, "softmax": 3, "linear": 0}  # and their numbers of classes
ENGINES = ("compiled", "torch float32", "torch float64")
PLAYERS = np.arange(N_ROWS) % 3


def gradient_model(engine, kind, unit, data, has_basis):
    """The model of three players, as private fits make it."""
    n_classes = KINDS[kind]
    n_outputs = n_classes if kind == "softmax" else 1
    if engine != "compiled" and n_classes:
        n_outputs = n_classes
    options = {"X_val": data.X_val, "y_val": data.y_val, "clip": CLIP, "unit": unit}
    n_parameters = n_outputs * (N_FEATURES + 1)
    if has_basis:
        square = np.random.default_rng(0).normal(size=(n_parameters, 2))
        options["basis"] = np.linalg.qr(square)[0]
    y = data.y
    if n_classes:
        y = np.where(np.isin(y, range(n_classes)), y, n_classes).astype(int)
    rows = (data.X, y, PLAYERS)
    if engine == "compiled":
        weights = np.full(len(data.y_val), 1 / len(data.y_val))
        return LinearGradientModel(
            *rows,
            weights=weights,
            kind=kind,
            n_classes=n_classes,
            utility="neg_loss",
            private=True,
            **options,
        )
    dtype = torch.float32 if engine.endswith("32") else torch.float64
    module = torch.nn.Linear(N_FEATURES, n_outputs, dtype=dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    if not n_classes:
        module = torch.nn.Sequential(module, torch.nn.Flatten(0))
    return TorchGradientModel(
        module, None, *rows, n_classes=n_classes, private=True, **options
    )


def released_gradients(model, unit):
    """What the players release at some parameters, before noise, in two ways.

    Sums of clipped gradients of rows, or clipped means: (2, n_thetas, 3, p).
    """
    n_rows = N_ROWS // 3 if unit == "example" else 1
    releases = []
    for size in (0.0, 1.0, 1e3):
        theta = np.linspace(-size, size, model.n_parameters)
        thetas = np.tile(theta, (3, 1))
        at_once = model.gradients(thetas, np.arange(3))

        # A walk along each player, with noise of zero.
        path, _, lost = model.walk(
            orders=np.arange(3)[:, None],
            rates=np.ones(3),
            noise=np.zeros((3, 1, model.n_parameters)),
            noise_std=np.full(3, 1e-30),
            thetas=thetas,
        )
        assert (lost == -1).all()
        steps = np.diff(model.as_array(path), axis=1)[:, 0]
        releases.append([n_rows * at_once, -n_rows * steps])
    return np.moveaxis(np.array(releases), 1, 0)


def check_gradients(engine, kind, unit, has_basis, data, other):
    """Compare what the three players release of two data sets."""
    gradients = [
        released_gradients(gradient_model(engine, kind, unit, d, has_basis), unit)
        for d in (data, other)
    ]
    at_once, by_steps = gradients[0] - gradients[1]

    # The parties of the other rows release the same bits.
    assert not at_once[:, 1:].any()
    assert not by_steps[:, 1:].any()
    bound = 2 * CLIP * (1 + 1e-12)
    assert np.linalg.norm(at_once[:, 0], axis=1).max() <= bound
    # Parameters of walks are rounded.
    rounding = 1e-2 if engine == "torch float32" else 1e-9
    assert np.linalg.norm(by_steps[:, 0], axis=1).max() <= bound + rounding
    return gradients[1][0]


each_model = pytest.mark.parametrize(
    ("engine", "kind", "unit", "has_basis"),
    [*product(ENGINES, KINDS, ("example", "party"), (False, True))],
)


@each_model
@each_row
def test_a_row_moves_the_sum_of_its_party_by_its_own_gradient(
    engine, kind, unit, has_basis, bad
):
    data = draw_data(KINDS[kind])
    other = data.with_row(BAD_ROWS[bad])
    released = check_gradients(engine, kind, unit, has_basis, data, other)
    # The other rows of the party are still there.
    assert released[:, 0].any()


@pytest.mark.parametrize("has_basis", [False, True])
@pytest.mark.parametrize("unit", ["example", "party"])
@pytest.mark.parametrize("engine", ENGINES)
@each_target
def test_a_target_moves_the_sum_of_its_party_by_its_own_gradient(
    engine, unit, has_basis, bad
):
    data = draw_data(0)
    other = data.with_target(BAD_TARGETS[bad])
    released = check_gradients(engine, "linear", unit, has_basis, data, other)
    assert released[:, 0].any()


@pytest.mark.parametrize(
    ("engine", "kind"),
    [*product(ENGINES[1:], ["logistic", "softmax"]), ("compiled", "logistic")],
)
def test_a_label_of_no_class_leaves_the_others_of_the_party(engine, kind):
    data = draw_data(KINDS[kind])
    other = data.with_target(NO_CLASS)
    model = gradient_model(engine, kind, "example", other, False)
    rest = data.with_row(0.0, NO_CLASS)
    expected = gradient_model(engine, kind, "example", rest, False)
    thetas = np.tile(np.linspace(-1, 1, model.n_parameters), (3, 1))
    np.testing.assert_array_equal(
        model.gradients(thetas, np.arange(3)), expected.gradients(thetas, np.arange(3))
    )


# Statistics of whole fits -------------------------------------------------------------


@contextmanager
def no_noise():
    """Releases without noise; yields a list of the statistics and their events."""
    released = []

    def of(release, statistic):
        statistic = np.asarray(statistic)
        released.append((statistic, release.noise))
        return statistic

    class Zeros:
        noise_random_state = 0
        scale = 1e-30

        def __call__(self, size, stream):
            return np.zeros(size)

    def source(release):
        released.append((None, release.noise))
        return Zeros()

    with (
        patch.object(Release, "of", of),
        patch.object(Release, "source", source),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield released


def fits_of(estimator):
    """A function from data to the released vector of a fit, and its event."""

    def run(data):
        with no_noise() as released:
            fitted = data.fit(clone(estimator))
            if getattr(estimator, "release", "") == "query":
                fitted.values_for(1)
        ((statistic, event),) = released
        if isinstance(fitted, InRunShapleyValuer):
            # The first step is minus the mean of the released sum.
            start, end = fitted.trajectory_[:2]
            size = fitted.batch_size or len(data.y)
            statistic = (start - end) * size / fitted.learning_rate_
        return statistic, event

    return run


def releases_of(party):
    def run(data):
        y = data.y
        with no_noise() as released:
            if isinstance(party, MeanRelease):
                clone(party).fit(data.X[:, 0])
            else:
                clone(party).fit(data.X, y)
        return released[0]

    return run


def summary_of(relation):
    def run(data):
        scorer = PriArTaScorer(max_norm=1.0, random_state=0)
        scorer.fit(np.vstack([data.X_val, 2 * data.X_val, -data.X_val]))
        with no_noise() as released:
            seller = SellerRelease(scorer.model_, relation=relation).fit(data.X)
        ((_, event),) = released
        sent = seller.summary_
        moments = Moments(sent.mean, sent.moment, sent.n_samples)
        statistic = isotropic_statistic(moments, sent.mean_weight, sent.max_norm)
        if relation == "add_remove":
            statistic = np.append(statistic, COUNT_WEIGHT * sent.n_samples)
        return statistic, event

    return run


def counts_of(estimator):
    def run(data):
        public = np.vstack([data.X_val] * 6), np.tile(data.y_val, 6)
        with no_noise() as released:
            count_improbable_labels(
                data.X, data.y, *public, epsilon=1.0, estimator=estimator
            )
        return released[0]

    return run


def in_run(**parameters):
    return InRunShapleyValuer(
        **{"epsilon": 1.0, "n_steps": 2, "learning_rate": 0.1, **parameters},
        random_state=0,
    )


def layered(**parameters):
    parameters = {"epsilon": 1.0, "l2": 1.0, "n_layers": 2, **parameters}
    return LayeredShapleyValuer(random_state=0, **parameters)


def linear_module():
    return torch.nn.Linear(N_FEATURES, 2)


# Runs by name, the number of classes of their data, and whether a row may be removed.
FITS = {
    **{
        f"counts in balls, {metric}, {relation}, {cap}": (
            fits_of(
                TKNNShapleyValuer(
                    1.5 if metric != "cosine" else 0.4,
                    metric=metric,
                    epsilon=1.0,
                    relation=relation,
                    max_contributions=cap,
                )
            ),
            2,
            relation == "add_remove",
        )
        for metric, relation, cap in product(
            ("euclidean", "cosine", "manhattan"),
            ("null", "add_remove", "replace"),
            (2, None),
        )
    },
    "in-run": (fits_of(in_run()), 3, False),
    "in-run, second order": (fits_of(in_run(order=2)), 2, False),
    "in-run, samples": (fits_of(in_run(batch_size=N_ROWS)), 2, False),
    "in-run, targets": (fits_of(in_run()), 0, False),
    "in-run, torch": (fits_of(in_run(model=linear_module())), 2, False),
    "in-run, torch, second order": (
        fits_of(in_run(model=linear_module(), order=2)),
        2,
        False,
    ),
    "layered, query": (fits_of(layered()), 2, False),
    "layered, all": (fits_of(layered(release="all")), 2, False),
    "layered, publish": (fits_of(layered(release="publish")), 2, False),
    "Gram matrix": (releases_of(GramRelease()), 0, False),
    "Gram matrix with intercept": (
        releases_of(GramRelease(fit_intercept=True)),
        0,
        False,
    ),
    "sums of classes": (releases_of(LogisticRelease()), 2, False),
    "sums of classes with intercept": (
        releases_of(LogisticRelease(fit_intercept=True)),
        2,
        False,
    ),
    "mean": (releases_of(MeanRelease()), 0, False),
    "count of ones": (releases_of(MeanRelease(family="bernoulli")), 0, False),
    "sum of counts": (releases_of(MeanRelease(family="poisson", upper=5)), 0, False),
    "summary, replace": (summary_of("replace"), 2, False),
    "summary, null": (summary_of("null"), 2, False),
    "summary, add_remove": (summary_of("add_remove"), 2, True),
    "improbable labels, forest": (
        counts_of(RandomForestClassifier(5, random_state=0)),
        2,
        True,
    ),
    "improbable labels, linear": (counts_of(LogisticRegression()), 2, True),
}
REMOVES = [name for name, (*_, removes) in FITS.items() if removes]


def check_statistics(name, data, other):
    """Compare the statistics of two data sets with the sensitivity of the event.

    A replaced row is one removed and one added, where these are the neighbours.
    """
    run, _, _ = FITS[name]
    statistic, event = run(data)
    moved, _ = run(other)
    is_replaced = len(data.y) == len(other.y)
    n_changes = 2 if is_replaced and event.relation != "replace" else 1
    assert np.isfinite(moved).all()
    change = np.abs(np.subtract(moved, statistic, dtype=float)).ravel()
    if isinstance(event, DiscreteGaussianEvent):
        assert change.max() <= n_changes * event.step
        assert np.count_nonzero(change) <= n_changes * event.contributions
        return
    norm = np.linalg.norm(change, 1 if isinstance(event, LaplaceEvent) else 2)
    # Differences of in-run parameters are rounded.
    rounding = 1e-5 if "torch" in name else 1e-10
    assert norm <= n_changes * event.sensitivity * (1 + rounding)


@pytest.mark.parametrize("name", FITS)
@each_row
def test_a_row_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(FITS[name][1])
    check_statistics(name, data, data.with_row(BAD_ROWS[bad]))


@pytest.mark.parametrize("name", [n for n, (_, c, _) in FITS.items() if c])
@pytest.mark.parametrize("label", [NO_CLASS, np.nan])
def test_a_label_moves_the_statistic_by_its_sensitivity(name, label):
    data = draw_data(FITS[name][1])
    check_statistics(name, data, data.with_target(label))


@pytest.mark.parametrize("name", [n for n, (_, c, _) in FITS.items() if not c])
@each_target
def test_a_target_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(0)
    check_statistics(name, data, data.with_target(BAD_TARGETS[bad]))


@pytest.mark.parametrize("name", REMOVES)
@each_row
def test_a_row_less_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(2).with_row(BAD_ROWS[bad])
    check_statistics(name, data, data.without_row())


# Samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("make_model", [lambda: "auto", linear_module])
def test_an_empty_sample_is_a_step_of_noise(make_model, order):
    data = draw_data(2)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = in_run(
        model=make_model(), order=order, batch_size=1, n_steps=25, ledger=ledger
    )
    data.fit(valuer)  # a sample is empty with probability 0.35
    assert np.isfinite(valuer.values_).all()
    assert (np.diff(valuer.trajectory_, axis=0) != 0).any(axis=1).all()
    assert ledger.n_charges == 1


# Messages -----------------------------------------------------------------------------

PRIVATE = {
    "federated": FederatedSemivalueValuer(epsilon=1.0, n_rounds=2),
    "federated, torch": FederatedSemivalueValuer(
        linear_module(), epsilon=1.0, n_rounds=2, unit="example"
    ),
    "gradient": GradientSemivalueValuer(epsilon=1.0, n_permutations=3, unit="example"),
    "gradient, torch": GradientSemivalueValuer(
        linear_module(), epsilon=1.0, n_permutations=3
    ),
    "in-run": in_run(),
    "in-run, torch": in_run(model=linear_module()),
    "layered": layered(release="publish"),
    "tknn": TKNNShapleyValuer(0.4, epsilon=1.0),
    "tknn, euclidean": TKNNShapleyValuer(1.0, metric="euclidean", epsilon=1.0),
}
PARTIES = {
    "gram": GramRelease(),
    "logistic": LogisticRelease(),
    "mean": MeanRelease(),
    "count of ones": MeanRelease(family="bernoulli"),
    "sum of counts": MeanRelease(family="poisson", upper=5),
}
ODD = "987654"
ODD_ROWS = {
    "number": lambda X: np.where(X[0] == X, 987654.321, X),
    "huge": lambda X: np.where(X[0] == X, 9.87654321e200, X),
    "words": lambda X: np.where(X[0] == X, "987654.321x", X.astype(object)),
    "complex": lambda X: np.where(X[0] == X, 987654.321j, X),
}
ODD_TARGETS = {
    "number": lambda y: np.r_[987654.321, y[1:]],
    "huge": lambda y: np.r_[9.87654321e300, y[1:]],
    "words": lambda y: np.r_[["987654.321x"], y[1:].astype(str)].astype(object),
    "mixed": lambda y: np.array(["987654.321x", *y[1:]], dtype=object),
    "missing": lambda y: np.array([None, *y[1:]], dtype=object),
}


def messages_of(run):
    """All that a run says: its warnings, its error, and its report."""
    messages = []
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        try:
            fitted = run()
            messages += [str(fitted.privacy_), fitted.privacy_.to_html(), repr(fitted)]
        except Exception as error:  # a refusal is allowed for columns of another type
            while error is not None:
                messages.append(f"{type(error).__name__}: {error}")
                error = error.__cause__
    return [*messages, *[str(warning.message) for warning in record]]


def fit_private(name, X, y, data):
    if name in PARTIES:
        rows = (X[:, 0],) if name == "mean" else (X, y)
        return clone(PARTIES[name]).fit(*rows)
    return clone(PRIVATE[name]).fit(X, y, X_val=data.X_val, y_val=data.y_val)


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("name", [*PRIVATE, *PARTIES])
@pytest.mark.parametrize("odd", ODD_ROWS)
def test_no_message_has_a_number_of_a_row(name, odd, n_classes):
    data = draw_data(n_classes)
    X = ODD_ROWS[odd](data.X)
    messages = messages_of(lambda: fit_private(name, X, data.y, data))
    assert not [message for message in messages if ODD in message]


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("name", [*PRIVATE, *PARTIES])
@pytest.mark.parametrize("odd", ODD_TARGETS)
def test_no_message_has_a_target(name, odd, n_classes):
    data = draw_data(n_classes)
    y = ODD_TARGETS[odd](data.y)
    messages = messages_of(lambda: fit_private(name, data.X, y, data))
    assert not [message for message in messages if ODD in message]


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("name", [*PRIVATE, *PARTIES])
def test_no_row_of_numbers_is_refused_or_warned_of(name, bad):
    data = draw_data(2)
    usual = messages_of(lambda: fit_private(name, data.X, data.y, data))
    other = data.with_row(BAD_ROWS[bad])
    unusual = messages_of(lambda: fit_private(name, other.X, other.y, data))
    assert [m[:40] for m in unusual[3:]] == [m[:40] for m in usual[3:]]
    assert unusual[:1] == usual[:1]
