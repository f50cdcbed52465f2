"""Statistics of private methods before their noise, and rows that are odd."""

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
    InRunShapleyValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.labels import count_improbable_labels
from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.seller import (
    COUNT_WEIGHT,
    Moments,
    half_surplus,
    isotropic_statistic,
    moment_statistic,
    n_radius_counts,
    own_radii,
    release_event,
    surplus_weight,
)
from skvalue.privacy import (
    DiscreteGaussianEvent,
    LaplaceEvent,
    Release,
    clip_rows,
)

N_ROWS = 12
N_FEATURES = 3
CLIP = 0.7
FIRST_WEIGHTS = {"add_round, light": 0.01, "add_round, heavy": 100.0}
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

# Those of the default tier; the others are slow, as tables of many cases are.
_USUAL = ("nan", "1e200", "1e200, whose loss overflows")


def _cases(names):
    return [
        name if name in _USUAL else pytest.param(name, marks=pytest.mark.slow)
        for name in names
    ]


each_row = pytest.mark.parametrize("bad", _cases(BAD_ROWS))
each_target = pytest.mark.parametrize("bad", _cases(BAD_TARGETS))


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


def releases_of(party, path=False):
    """As `fits_of`, of a party's release, or of the first of a path of releases."""

    def run(data):
        rows = (data.X, data.y)
        if isinstance(party, MeanRelease):
            rows = (data.X[:, 0],)
        with no_noise() as released:
            if path:
                clone(party).path(*rows, renyi_epsilons=[0.1, 0.5])
            else:
                clone(party).fit(*rows)
        return released[0]

    return run


def rounds_of(valuer, elsewhere):
    """As `fits_of`, of a training that runs elsewhere, whose updates are the rows.

    `elsewhere`: "add_round", which releases the updates of all parties, "add_round,
    light" or "add_round, heavy" by the weight of the first, "release" or
    "answer_round".
    """
    names = [f"party {i}" for i in range(N_ROWS)]
    theta = np.zeros(N_FEATURES)

    def utility(thetas):
        return -thetas[:, 0]

    def run(data):
        asked = None
        if elsewhere == "answer_round":
            asked = clone(valuer).start(utility, names).announce_round(theta)
        with no_noise() as released:
            if elsewhere == "release":
                statistic = clone(valuer).release(data.X[0])
            elif asked is not None:
                sent = clone(valuer).answer_round(
                    asked, data.X[0], party=names[0], n_samples=N_ROWS
                )
                statistic = sent.update
            else:
                # The server's step is the weighted mean of the updates: in units of the
                # weight of the first, its update and those of the others.
                weights = np.ones(N_ROWS)
                weights[0] = FIRST_WEIGHTS.get(elsewhere, 1.0)
                training = clone(valuer).start(utility, N_ROWS)
                step = training.add_round(theta, data.X, weights=weights)
                statistic = step * weights.sum() / weights[0]
        ((_, event),) = released
        return statistic, event

    return run


def summary_of(relation):
    """As `fits_of`, of the moments of a seller's summary."""

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


def own_radius_of(relation, cell):
    """As `fits_of`, of a seller's counts of norms and moments with one of its radii."""

    def run(data):
        model = PriArTaScorer(random_state=0).fit(data.X_val).model_
        rows, is_null = model.private_rows(data.X)
        with np.errstate(over="ignore"):
            norms = np.where(is_null, np.nan, np.linalg.norm(rows, axis=1))
        radii = own_radii(model)
        n_counts = n_radius_counts(model)
        thresholds = radii[:: len(radii) // n_counts][:n_counts]
        weight = surplus_weight(model.mean_weight, relation)
        counts = [weight * half_surplus(norms, threshold) for threshold in thresholds]
        unit_rows = clip_rows(rows, radii[cell]) / radii[cell]
        moments = moment_statistic(unit_rows, model.mean_weight, relation)
        event = release_event(1.0, 1e-5, model.mean_weight, relation, n_counts)
        return np.concatenate([counts, moments]), event

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
    **{
        f"counts in balls, by torch, {metric}, {cap}": (
            fits_of(
                TKNNShapleyValuer(
                    1.5 if metric == "euclidean" else 0.4,
                    metric=metric,
                    epsilon=1.0,
                    relation="replace",
                    max_contributions=cap,
                    engine="torch",
                )
            ),
            2,
            False,
        )
        for metric, cap in product(("euclidean", "cosine"), (2, None))
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
    "layered, query of secret coalitions": (
        fits_of(layered(design="iid", tol=0.5, noise_random_state=0)),
        2,
        False,
    ),
    "layered, tuned": (
        fits_of(layered(release="all", max_norm=0.5, fit_intercept=False, tol=0.3)),
        2,
        False,
    ),
    "layered, all": (fits_of(layered(release="all")), 2, False),
    "layered, publish": (fits_of(layered(release="publish")), 2, False),
    **{
        f"{name}, {how}": (
            releases_of(clone(party).set_params(**parameters), how == "path"),
            n_classes,
            False,
        )
        for (name, party, n_classes), (how, parameters) in product(
            [
                ("Gram matrix", GramRelease(), 0),
                ("Gram matrix with intercept", GramRelease(fit_intercept=True), 0),
                ("Gram matrix, large bounds", GramRelease(x_bound=3.0, y_bound=9.0), 0),
                ("Gram matrix, small bounds", GramRelease(x_bound=0.1, y_bound=0.2), 0),
                ("sums of classes", LogisticRelease(), 2),
                (
                    "sums of classes with intercept",
                    LogisticRelease(fit_intercept=True),
                    2,
                ),
                ("sums of classes, large bound", LogisticRelease(x_bound=3.0), 2),
                ("mean", MeanRelease(), 0),
                ("mean of ones", MeanRelease(family="bernoulli"), 0),
                ("mean of counts", MeanRelease(family="poisson", upper=5), 0),
                ("mean, bounds", MeanRelease(lower=-0.5, upper=4.0), 0),
            ],
            [
                ("epsilon", {}),
                ("renyi_epsilon", {"renyi_epsilon": 0.5}),
                # A path has noise whatever `epsilon` is.
                ("path", {"epsilon": None}),
            ],
        )
    },
    **{
        f"federated {elsewhere}, {trust}": (
            rounds_of(
                FederatedSemivalueValuer(
                    epsilon=1.0, n_rounds=2, trust=trust, clip=CLIP, random_state=0
                ),
                elsewhere,
            ),
            2,
            False,
        )
        for elsewhere, trust in product(
            ("add_round", *FIRST_WEIGHTS, "release", "answer_round"),
            ("local", "server"),
        )
    },
    "summary, replace": (summary_of("replace"), 2, False),
    "summary, null": (summary_of("null"), 2, False),
    "summary, add_remove": (summary_of("add_remove"), 2, True),
    **{
        f"summary, radius {cell}, {relation}": (
            own_radius_of(relation, cell),
            2,
            relation == "add_remove",
        )
        for cell, relation in product((0, 20, 63), ("replace", "null", "add_remove"))
    },
    "improbable labels, forest": (
        counts_of(RandomForestClassifier(5, random_state=0)),
        2,
        True,
    ),
    "improbable labels, linear": (counts_of(LogisticRegression()), 2, True),
}
OF_OWNERS = ("layered, all", "layered, tuned")
REMOVES = [name for name, (*_, removes) in FITS.items() if removes]
NULLS = [name for name in FITS if name.endswith(("null", "server"))]


def check_statistics(name, data, other, n_changes=None):
    """Compare the statistics of two data sets with the sensitivity of the event.

    A replaced row is one removed and one added, where these are the neighbours.
    """
    run, _, _ = FITS[name]
    statistic, event = run(data)
    moved, _ = run(other)
    if n_changes is None:
        is_replaced = len(data.y) == len(other.y)
        n_changes = 2 if is_replaced and event.relation != "replace" else 1
    assert np.isfinite(moved).all()
    change = np.abs(np.subtract(moved, statistic, dtype=float)).ravel()
    if name in OF_OWNERS:  # the value of the row itself is for its owner
        change[0] = 0.0
    if isinstance(event, DiscreteGaussianEvent):
        assert change.max() <= n_changes * event.step
        assert np.count_nonzero(change) <= n_changes * event.contributions
        return
    norm = np.linalg.norm(change, 1 if isinstance(event, LaplaceEvent) else 2)
    # Sums of a dozen rows are rounded, and so are the parameters of in-run fits, from
    # which their sums are computed.
    rounding = 1e-12
    if name.startswith("in-run"):
        rounding = 1e-5 if "torch" in name else 1e-10
    assert norm <= n_changes * event.sensitivity * (1 + rounding)
