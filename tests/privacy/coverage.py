"""Releases of private values beside the values without noise: a table of coverages.

A method is a function of `Parties` and epsilon that returns `Releases`: the values
without noise, and a function that makes one release. An error is right if about .95 of
the released values are within two stated errors of the values without noise.

``python -m tests.privacy.coverage`` prints the table, or the lines of the methods whose
names begin with an argument.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from skvalue import (
    BayesianSurpriseScorer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    LayeredShapleyValuer,
    PredictiveValueScorer,
    PriArTaScorer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import GaussianMean, MeanRelease, RhoShapleyReward
from skvalue.rewards import rho_targets
from tests.collaborative.coverage import closed_form_values

N_POINTS = 200
TINY = np.finfo(float).tiny
WEIGHTS = np.array([2.0, -1.0, 0.5])
MODEL_OF_LABELS = GaussianMean(0.25)

# Rows of each of six parties.
SIZES = {"equal": (60,) * 6, "unequal": (15, 25, 40, 60, 90, 130)}
LABELS = ("clean", "noisy", "flipped")
EPSILONS = (0.5, 1.0, 2.0, 8.0)


class Parties(NamedTuple):
    """Rows of six parties with 0 or 1 as labels, and public validation points.

    Labels are "clean"; "noisy", with 15 % of all of them wrong; or "flipped", with all
    those of party 0 wrong.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray

    def fit(self, valuer, **fit_params):
        return valuer.fit(
            self.X, self.y, X_val=self.X_val, y_val=self.y_val, **fit_params
        )

    def data_sets(self):
        """Pairs (X, y) of the rows of each party."""
        return [
            (self.X[self.groups == party], self.y[self.groups == party])
            for party in np.unique(self.groups)
        ]


def draw_parties(sizes, labels):
    """The `Parties` of a name of `SIZES` and one of `LABELS`; always the same."""
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.normal(size=(n, len(WEIGHTS)))
        y = (X @ WEIGHTS + rng.logistic(size=n) > 0).astype(int)
        return X, y

    groups = np.repeat(np.arange(len(SIZES[sizes])), SIZES[sizes])
    X, y = draw(len(groups))
    X_val, y_val = draw(N_POINTS)
    is_wrong = np.zeros(len(y), dtype=bool)
    if labels == "noisy":
        is_wrong = rng.random(len(y)) < 0.15
    if labels == "flipped":
        is_wrong = groups == 0
    return Parties(X, np.where(is_wrong, 1 - y, y), groups, X_val, y_val)


class Releases(NamedTuple):
    """The values without noise, and a function that makes one release of them.

    `release` takes the seed of its noise and returns two arrays of the shape of
    `exact`: values and their stated errors.
    """

    exact: np.ndarray
    release: Callable


class Coverage(NamedTuple):
    """What is measured of one cell of the table, over all its releases.

    Parameters
    ----------
    share : float
        Fraction of the values that are within two stated errors of those without noise.
    sampling_error : float
        Standard error of the fraction, over releases.
    error_ratio : float
        Root mean square of the true errors over that of the stated ones.
    noise_ratio : float
        Root mean square of the stated errors over that of the values without noise.
    """

    share: float
    sampling_error: float
    error_ratio: float
    noise_ratio: float


def measure(method, sizes, labels, epsilon, n_releases):
    """The `Coverage` of a method of `METHODS` in one cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact, release = METHODS[method](draw_parties(sizes, labels), epsilon)
        # The noise of each cell is another one.
        first = 1000 * cells().index((sizes, labels, epsilon))
        drawn = [release(seed) for seed in range(first, first + n_releases)]
    values, errors = np.array(drawn).swapaxes(0, 1)
    differences = values - exact
    by_release = (np.abs(differences) <= 2 * errors).mean(axis=1)
    # At least that of independent values of which .95 are within.
    variance = max(by_release.var(), 0.95 * 0.05 / len(exact))
    stated = np.sqrt(np.mean(errors**2))
    return Coverage(
        share=float(by_release.mean()),
        sampling_error=float(np.sqrt(variance / n_releases)),
        error_ratio=float(np.sqrt(np.mean(differences**2)) / max(stated, TINY)),
        noise_ratio=float(stated / np.sqrt(np.mean(exact**2))),
    )


# Methods ------------------------------------------------------------------------------


def releases_of_fits(valuer, parties, groups=None, **exact_parameters):
    """The `Releases` of private fits, each with another seed.

    They, and the training without noise, have the learning rate and the clip that
    "auto" is for the first of them; that without noise has `exact_parameters`, too.
    """
    first = clone(valuer).set_params(noise_random_state=0, random_state=0)
    parties.fit(first, groups=groups)
    valuer = clone(valuer).set_params(
        clip=first.clip_, learning_rate=first.learning_rate_
    )
    exact = clone(valuer).set_params(epsilon=None, random_state=0, **exact_parameters)
    parties.fit(exact, groups=groups)

    def release(seed):
        private = clone(valuer).set_params(noise_random_state=seed, random_state=seed)
        parties.fit(private, groups=groups)
        return private.values_, private.values_error_

    return Releases(exact.values_, release)


def federated(unit, **parameters):
    """Of a training in rounds; all coalitions of six parties are evaluated."""

    def releases(parties, epsilon):
        valuer = FederatedSemivalueValuer(
            unit=unit, epsilon=epsilon, n_rounds=20, burn_in=0.2, **parameters
        )
        return releases_of_fits(valuer, parties, parties.groups)

    return releases


def federated_elsewhere(parties, epsilon):
    """As `federated`, of logistic regressions that are trained by the caller."""
    signs = 2 * parties.y_val - 1

    def utility(thetas):
        margins = signs * (thetas @ parties.X_val.T)
        return -np.logaddexp(0.0, -margins).mean(axis=1)

    def train(epsilon, seed):
        valuer = FederatedSemivalueValuer(
            epsilon=epsilon, n_rounds=20, burn_in=0.2, clip=1.0, random_state=seed
        )
        if epsilon is not None:
            valuer.set_params(noise_random_state=seed)
        data_sets = parties.data_sets()
        n_rows = [len(y) for _, y in data_sets]
        valuer.start(utility, len(data_sets))
        theta = np.zeros(len(WEIGHTS))
        for _ in range(20):
            updates = [(y - expit(X @ theta)) @ X / len(y) for X, y in data_sets]
            theta = theta + valuer.add_round(theta, updates, weights=n_rows)
        return valuer

    def release(seed):
        private = train(epsilon, seed)
        return private.values_, private.values_error_

    return Releases(train(None, 0).values_, release)


def gradients(unit, **parameters):
    """Of a step along each party; without noise along many more permutations."""

    def releases(parties, epsilon):
        valuer = GradientSemivalueValuer(unit=unit, epsilon=epsilon, **parameters)
        return releases_of_fits(valuer, parties, parties.groups, n_permutations=2000)

    return releases


def in_run(by_party, **parameters):
    """Of the rows, or of the parties, in one run; without samples, if there are any."""

    def releases(parties, epsilon):
        valuer = InRunShapleyValuer(epsilon=epsilon, **parameters)
        groups = parties.groups if by_party else None
        return releases_of_fits(valuer, parties, groups, batch_size=None)

    return releases


def threshold(by_party, **parameters):
    """Of the rows, or of the parties, in balls around the points."""

    def releases(parties, epsilon):
        groups = parties.groups if by_party else None
        valuer = TKNNShapleyValuer(epsilon=epsilon, **parameters)

        def release(seed, epsilon=epsilon):
            private = clone(valuer).set_params(noise_random_state=seed, epsilon=epsilon)
            parties.fit(private, groups=groups)
            return private.values_, private.values_error_

        if "sampling_rate" in parameters:
            # The mean over secret samples, with almost no noise.
            by_sample = [release(10**6 + seed, epsilon=1e4)[0] for seed in range(40)]
            return Releases(np.mean(by_sample, axis=0), release)
        exact = parties.fit(TKNNShapleyValuer(), groups=groups).values_
        return Releases(exact, release)

    return releases


def layered(kind):
    """Of every sixth row: of the layers that are released, from many coalitions."""

    def releases(parties, epsilon):
        few = parties._replace(X=parties.X[::6], y=parties.y[::6])
        game = {"l2": 1.0, "n_layers": 5}
        valuer = LayeredShapleyValuer(**game, epsilon=epsilon, release=kind)
        exact = few.fit(
            LayeredShapleyValuer(**game, max_evaluations=6_000, random_state=0)
        ).values_
        rows = np.arange(len(few.y))
        if kind == "query":
            rows = rows[::5]
            valuer.set_params(max_queries=len(rows))

        def release(seed):
            private = clone(valuer).set_params(
                noise_random_state=1000 * seed, random_state=seed
            )
            few.fit(private)
            if kind == "query":
                for row in rows:
                    private.values_for(row)
            return private.values_[rows], private.values_error_[rows]

        return Releases(exact[rows], release)

    return releases


def sellers(*kinds, scales=(1.0, 1.0, 1.0)):
    """Of sellers of these kinds, with fresh rows for each release.

    Columns have these scales.

    A seller has eight times as many rows as its party, and 20 if that is the smallest;
    the scores without noise are those of populations.
    """

    def releases(parties, epsilon):
        rng = np.random.default_rng(0)
        n_columns = len(scales)
        rows = normal_rows(rng, 1000, n_columns) * scales
        buyer = PriArTaScorer().fit(rows)
        private = PriArTaScorer(epsilon=epsilon).fit(rows)
        counts = 8 * np.bincount(parties.groups)
        if np.ptp(counts):
            counts[0] = 20
        named = [SELLERS[kind] for kind in kinds]
        populations = [make(rng, 100_000, n_columns) * scales for make in named]
        exact = buyer.transform(populations)[:, 0]

        def release(seed):
            rng = np.random.default_rng(seed + 1)
            rows = [
                make(rng, count, n_columns) * scales
                for make, count in zip(named, counts)
            ]
            private.set_params(noise_random_state=1000 * seed)
            summaries = private.summarize(rows)
            scores = private.score_summaries(summaries)[:, 0]
            return scores, private.score_errors(summaries)

        return Releases(exact, release)

    return releases


def normal_rows(rng, n, n_columns, shift=0.0, spread=1.0):
    """Rows of a seller whose mean is shifted along the first column."""
    rows = spread * rng.normal(size=(n, n_columns))
    rows[:, 0] += shift
    return rows


def two_modes(rng, n, n_columns):
    """Rows of which half are like the buyer's, and half 8 deviations from them."""
    rows = normal_rows(rng, n, n_columns)
    rows[: n // 2, 1] += 8
    return rows


# Kind of seller -> a function of a generator and a number of rows.
SELLERS = {
    "alike": normal_rows,
    "near": partial(normal_rows, shift=1.0),
    "far": partial(normal_rows, shift=3.0),
    "wide": partial(normal_rows, spread=2.0),
    "narrow": partial(normal_rows, spread=0.6),
    "two modes": two_modes,
}


def releases_of_parties(parties, epsilon, seed=0):
    """Releases of the sums of the parties' labels."""
    releases = []
    for i, (_, y) in enumerate(parties.data_sets()):
        party = MeanRelease(epsilon, lower=0, noise_random_state=1000 * seed + i)
        releases.append(party.fit(y).release_)
    return releases


def collaborative(scorer_class):
    """Of parties, by the mean of their labels; other models have their own table."""

    def releases(parties, epsilon):
        scorer = scorer_class(MODEL_OF_LABELS)
        points = None
        if scorer_class is PredictiveValueScorer:
            points = {"X_val": None, "y_val": parties.y_val}
        exact = closed_form_values(
            scorer.model, releases_of_parties(parties, None), points
        )

        def release(seed):
            fitted = clone(scorer)
            fitted.fit(releases_of_parties(parties, epsilon, seed), **(points or {}))
            return fitted.values_, fitted.values_error_

        return Releases(exact, release)

    return releases


def rewards(parties, epsilon):
    """Of parties, the values of the models that they receive."""
    scheme = RhoShapleyReward(0.5, n_draws=10, random_state=0)
    points = {"X_val": None, "y_val": parties.y_val}
    values = closed_form_values(
        MODEL_OF_LABELS, releases_of_parties(parties, None), points
    )

    def release(seed):
        scorer = PredictiveValueScorer(MODEL_OF_LABELS)
        scorer.fit(releases_of_parties(parties, epsilon, seed), **points)
        rewarded = clone(scheme).fit(scorer)
        return rewarded.target_rewards_, rewarded.target_rewards_error_

    return Releases(rho_targets(values, values.sum(), scheme.rho), release)


# The first word is the public name of the class.
METHODS = {
    "PriArTaScorer": sellers("near", "alike", "far", "wide", "narrow", "near"),
    "PriArTaScorer, two modes": sellers(*["two modes"] * 6, scales=(1.5, 0.5)),
    "FederatedSemivalueValuer, unit='example'": federated("example"),
    "FederatedSemivalueValuer, unit='party'": federated("party"),
    "FederatedSemivalueValuer, add_round": federated_elsewhere,
    "GradientSemivalueValuer, unit='example'": gradients("example"),
    "GradientSemivalueValuer, unit='party'": gradients("party"),
    "InRunShapleyValuer, rows": in_run(by_party=False),
    "InRunShapleyValuer, parties": in_run(by_party=True),
    "InRunShapleyValuer, samples": in_run(by_party=False, batch_size=60),
    "TKNNShapleyValuer, rows": threshold(by_party=False),
    "TKNNShapleyValuer, parties": threshold(by_party=True),
    "TKNNShapleyValuer, denoise=False": threshold(by_party=False, denoise=False),
    "TKNNShapleyValuer, sampling_rate": threshold(
        by_party=False, denoise=False, sampling_rate=0.2, max_contributions=None
    ),
    "LayeredShapleyValuer, release='all'": layered("all"),
    "LayeredShapleyValuer, release='publish'": layered("publish"),
    "LayeredShapleyValuer, release='query'": layered("query"),
    "BayesianSurpriseScorer, parties": collaborative(BayesianSurpriseScorer),
    "PredictiveValueScorer, parties": collaborative(PredictiveValueScorer),
    "RhoShapleyReward, parties": rewards,
}


class KnownLimit(NamedTuple):
    """Where the errors of a method do not hold, which the docstring of its class says.

    `holds_in` is a function of (sizes, labels, epsilon); there, the share may be from
    `lowest` to `highest`. `figures` are words of the docstring.
    """

    holds_in: Callable
    lowest: float
    highest: float
    figures: tuple


# Methods whose errors do not hold in all cells.
EXCEPTIONS: dict[str, KnownLimit] = {
    "PriArTaScorer, two modes": KnownLimit(
        lambda sizes, labels, epsilon: True,
        lowest=0.7,
        highest=1.0,
        figures=("of sellers with two modes far apart .70 to 1.00",),
    ),
    **{
        f"TKNNShapleyValuer, {what}": KnownLimit(
            lambda sizes, labels, epsilon: True,
            lowest=0.77,
            highest=1.0,
            figures=(".77 to 1.00 were at epsilon .5 to 8",),
        )
        for what in ("denoise=False", "sampling_rate")
    },
    **{
        f"TKNNShapleyValuer, {what}": KnownLimit(
            lambda sizes, labels, epsilon: True,
            lowest=0.9,
            highest=1.0,
            figures=("Most errors are too large",),
        )
        for what in ("rows", "parties")
    },
    **{
        f"LayeredShapleyValuer, release={kind!r}": KnownLimit(
            lambda sizes, labels, epsilon: True,
            lowest=0.9,
            highest=1.0,
            figures=("between .9 and 1 of the values are within two errors",),
        )
        for kind in ("all", "publish", "query")
    },
}


def cells():
    """All cells of a method, as tuples (sizes, labels, epsilon)."""
    return list(product(SIZES, LABELS, EPSILONS))


def print_table(prefix, n_releases):
    """Print a line for each method and cell."""
    for method in METHODS:
        if not method.startswith(prefix):
            continue
        print(method)
        for sizes, labels, epsilon in cells():
            line = measure(method, sizes, labels, epsilon, n_releases)
            print(
                f"  {sizes:8} {labels:8} epsilon {epsilon:<4g} within two errors "
                f"{line.share:.2f} +- {line.sampling_error:.2f}, true over stated "
                f"{line.error_ratio:.2f}, stated over size {line.noise_ratio:.2g}",
                flush=True,
            )


if __name__ == "__main__":
    print_table(
        sys.argv[1] if len(sys.argv) > 1 else "",
        int(sys.argv[2]) if len(sys.argv) > 2 else 50,
    )
