"""
What privacy costs a buyer's distances
======================================

Prints the epsilon that the mean costs under the published mechanism of PriArTa, which
claims 0.8, and the error of private 2-Wasserstein distances by mechanism, number of
rows and dimensions:

    python examples/reproductions/priarta_mechanisms.py

Rows are Gaussian, clipped to norm 1; the seller's are 0.3 off. Everything is at (0.8,
1e-5).
"""

import argparse
from functools import partial

import numpy as np
from sklearn.base import clone

from skvalue.priarta import PriArTaScorer, wasserstein
from skvalue.privacy import (
    GaussianEvent,
    add_noise,
    calibrate_gaussian,
    clip_rows,
    epsilon_from_mu,
)

EPSILON = 0.8
DELTA = 1e-5
SCORERS = {
    "on the moments, as they come": dict(shrink=False),
    "on the moments (default)": dict(),
}


def rows(rng, n, d, shift=0.0):
    X = rng.normal(size=(n, d)) * 0.6 / np.sqrt(d) * np.linspace(1.5, 0.5, d)
    X[:, 0] += shift
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def paper_scale(epsilon, delta, n_samples, max_norm):
    """Standard deviation of the published noise on every row, which guarantees
    nothing."""
    sensitivity = 4 * max_norm**2 / n_samples + 8 * max_norm**2 / n_samples**2
    return sensitivity * np.sqrt(2 * np.log(1.25 / delta)) / epsilon


def published_score(model, buyer, X, noise_random_state=None):
    """Distance of a seller's rows from the buyer's, by the mechanism as published.

    The noise's own variance stays in the covariance.
    """
    event = GaussianEvent(
        paper_scale(EPSILON, DELTA, len(X), model.max_norm) / model.max_norm
    )
    return noisy_rows_score(model, buyer, X, event, 0.0, noise_random_state)


def local_score(model, buyer, X, noise_random_state=None):
    """Distance by noise on every row that makes the row itself private; its variance is
    taken off.

    Replacing a row of norm at most 1 changes it by at most 2.
    """
    event = calibrate_gaussian(EPSILON, DELTA, sensitivity=2.0)
    excess = (event.scale * model.max_norm) ** 2
    return noisy_rows_score(model, buyer, X, event, excess, noise_random_state)


def noisy_rows_score(model, buyer, X, event, excess, noise_random_state=None):
    """Distance of rows with noise, whose variance `excess` is taken off the covariance.

    What rows within the radius cannot have is cut off.
    """
    own = model.transform(buyer)
    radius = model.max_norm
    rows = clip_rows(model.transform(X), radius)
    rows = radius * add_noise(
        rows / radius, event, noise_random_state=noise_random_state
    )
    mean = rows.mean(axis=0)
    covariance = np.cov(rows.T) - excess * np.eye(rows.shape[1])
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    mean *= radius / max(radius, np.linalg.norm(mean))
    covariance *= min(
        1.0, 2 * radius**2 / np.trace(covariance)
    )  # of two rows at opposite ends
    return wasserstein(own.mean(axis=0), np.cov(own.T), mean, covariance)


def score_each(model, buyer, score, sellers):
    return np.array([[score(model, buyer, X)] for X in sellers])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument(
        "--repeats", type=int, default=10, help="sellers for each figure"
    )
    parser.add_argument("--dimensions", type=int, nargs="+", default=[8, 16, 32])
    arguments = parser.parse_args()
    print("True epsilon of the mean under the published noise, which claims 0.8")
    for n in (100, 500, 1000, 5000):
        mu = 2 / n / (paper_scale(EPSILON, DELTA, n, 1.0) / np.sqrt(n))
        print(f"n = {n:5}: {epsilon_from_mu(mu, DELTA):6.1f}")
    for d in arguments.dimensions:
        print(f"\nRoot mean squared error of distances, d = {d}")
        print(
            f"{'noise':<29}" + "".join(f"{f'n = {n}':>11}" for n in (500, 1000, 5000))
        )
        rng = np.random.default_rng(d)
        buyer = rows(rng, 5000, d)
        base = PriArTaScorer(max_norm=1.0, mean_weight=0.6).fit(buyer)
        of_rows = partial(score_each, base.model_, buyer)
        scores = {
            "as published, not private": partial(of_rows, published_score),
            "on every row (local)": partial(of_rows, local_score),
        }
        for name, setting in SCORERS.items():
            private = clone(base).set_params(epsilon=EPSILON, delta=DELTA, **setting)
            scores[name] = private.fit(buyer).transform
        for name, score in scores.items():
            found = []
            for n in (500, 1000, 5000):
                sellers = [rows(rng, n, d, 0.3) for _ in range(arguments.repeats)]
                errors = score(sellers) - base.transform(sellers)
                found.append(np.sqrt(np.mean(errors**2)))
            print(
                f"{name:<29}" + "".join(f"{error:11.3f}" for error in found), flush=True
            )


if __name__ == "__main__":
    main()
