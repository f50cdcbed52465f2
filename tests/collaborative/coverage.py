"""Values of private releases beside those of the same rows without noise.

``python -m tests.collaborative.coverage`` prints, for all models, scorers, parties and
epsilons, how many values are within two stated errors of those without noise; an
argument is the name of one model.
"""

import sys
import warnings
from itertools import product

import numpy as np
from sklearn.base import clone

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    MeanRelease,
)
from skvalue.semivalues import tabulated_semivalue

from .parties import every_coalition, quietly

EPSILONS = (0.5, 1.0, 2.0, 8.0)
FAST = {"n_particles": 160, "random_state": 0}
# Kinds and numbers of rows of four parties.
PARTIES = {
    "equal": (("honest", 400),) * 4,
    "mixed": (("honest", 600), ("honest", 60), ("noisy", 400), ("flipped", 400)),
}


def draw_linear(kind, n, rng):
    X = 0.4 * rng.normal(size=(n, 3))
    signal = X @ [0.4, -0.3, 0.2]
    noise = 0.15 * rng.normal(size=n)
    if kind == "noisy":
        noise *= 3
    if kind == "flipped":
        signal = -signal
    return X, np.clip(signal + noise, -1, 1)


def draw_logistic(kind, n, rng):
    X = 0.4 * rng.normal(size=(n, 3))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ [3.0, -2.0, 1.0]))
    if kind == "noisy":
        y = y ^ (rng.random(n) < 0.35)
    if kind == "flipped":
        y = ~y
    return X, y.astype(int)


def draw_mean(kind, n, rng):
    numbers = 0.4 + 0.3 * rng.normal(size=n) * (3 if kind == "noisy" else 1)
    if kind == "flipped":
        numbers = -numbers
    return np.clip(numbers, -1, 1), None


def draw_ones(kind, n, rng):
    probability = {"honest": 0.3, "noisy": 0.42, "flipped": 0.7}[kind]
    return (rng.random(n) < probability).astype(int), None


def draw_counts(kind, n, rng):
    rate = {"honest": 1.5, "noisy": 2.2, "flipped": 5.0}[kind]
    return np.minimum(rng.poisson(rate, size=n), 9), None


# Rows, the release of a party and the mediator's model, by name.
MODELS = {
    "linear": (draw_linear, GramRelease(), BayesianLinear()),
    "logistic": (draw_logistic, LogisticRelease(), BayesianLogistic(0.1)),
    "mean": (draw_mean, MeanRelease(), GaussianMean(0.1)),
    "ones": (draw_ones, MeanRelease(family="bernoulli"), BetaBernoulli()),
    "counts": (draw_counts, MeanRelease(family="poisson", upper=9), GammaPoisson()),
}


def draw_parties(name, parties, seed=0):
    """Rows of parties, a party without noise, a model, and validation points."""
    draw, party, model = MODELS[name]
    rng = np.random.default_rng(seed)
    rows = [draw(kind, n, rng) for kind, n in PARTIES[parties]]
    X, y = draw("honest", 200, rng)
    points = {"X_val": None, "y_val": X} if y is None else {"X_val": X, "y_val": y}
    return rows, party, model, points


def release_rows(party, rows, epsilon, seed):
    """Releases of the rows of parties; each has its own noise."""
    releases = []
    for i, (X, y) in enumerate(rows):
        party = clone(party).set_params(
            epsilon=epsilon, noise_random_state=1000 * seed + i
        )
        releases.append(quietly(party.fit, X, y).release_)
    return releases


def values_without_noise(model, party, rows, points):
    """Shapley values of the exact statistics of the rows of parties."""
    releases = release_rows(party, rows, None, 0)
    if not isinstance(model, BayesianLogistic):
        return closed_form_values(model, releases, points)

    # Its closed forms are approximations of these posteriors.
    precise = {"n_particles": 480, "random_state": 0}
    if points is None:
        return BayesianSurpriseScorer(model, **precise).fit(releases).values_
    return PredictiveValueScorer(model, **precise).fit(releases, **points).values_


def closed_form_values(model, releases, points):
    """Shapley values of releases without noise, by the closed forms of the model.

    `points` are X_val and y_val of predictive values, or None for surprise.
    """
    model = model.bind(releases)
    masks = every_coalition(len(releases)).astype(float)
    counts = masks @ [release.n_samples for release in releases]
    statistics = masks @ np.array([release.statistic for release in releases])
    posteriors = model.exact_posteriors(counts, statistics)
    if points is None:
        return tabulated_semivalue(posteriors.divergences())
    X = points["X_val"]
    if X is not None:
        X = model.map_features(X)
    table = posteriors.log_densities(X, points["y_val"]).mean(axis=1)
    return tabulated_semivalue(table - table[0])


def measure(name, parties, epsilon, is_predictive, n_releases):
    """Differences of values from those without noise, and stated errors."""
    rows, party, model, points = draw_parties(name, parties)
    scorer = BayesianSurpriseScorer(model, **FAST)
    fit_params = {}
    if is_predictive:
        scorer = PredictiveValueScorer(model, **FAST)
        fit_params = points
    exact = values_without_noise(model, party, rows, fit_params or None)
    differences = []
    errors = []
    for seed in range(1, n_releases + 1):
        releases = release_rows(party, rows, epsilon, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scorer.fit(releases, **fit_params)
        differences.append(scorer.values_ - exact)
        errors.append(scorer.values_error_)
    return np.array(differences), np.array(errors)


def print_table(names, n_releases):
    """Print a line for each model, scorer, parties and epsilon."""
    for name, is_predictive, parties in product(names, (True, False), PARTIES):
        for epsilon in EPSILONS:
            differences, errors = measure(
                name, parties, epsilon, is_predictive, n_releases
            )
            is_covered = np.abs(differences) <= 2 * errors
            true = np.sqrt(np.mean(differences**2))
            stated = np.sqrt(np.mean(errors**2))
            print(
                f"{name:8} {'gain' if is_predictive else 'surprise':8} {parties:6} "
                f"epsilon {epsilon:<4g} within two errors {is_covered.mean():.2f}, by "
                f"party {is_covered.mean(axis=0).round(2)}, true error {true:.3f}, "
                f"over stated {true / stated:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    print_table(sys.argv[1:2] or MODELS, int(sys.argv[2]) if len(sys.argv) > 2 else 50)
