"""
What privacy costs a buyer's distances
======================================

Prints the epsilon that the mean costs under the published mechanism of PriArTa, which claims 0.8,
and the error of private 2-Wasserstein distances by mechanism, number of rows and dimensions:

    python examples/reproductions/priarta_mechanisms.py

Rows are Gaussian, clipped to norm 1; the seller's are 0.3 off. Everything is at (0.8, 1e-5).
"""

import argparse
import warnings

import numpy as np
from sklearn.base import clone

from skvalue.exceptions import VoidGuaranteeWarning
from skvalue.priarta import PriArTaScorer
from skvalue.priarta.seller.release import paper_scale
from skvalue.privacy import epsilon_from_mu

EPSILON, DELTA = 0.8, 1e-5
MECHANISMS = {
    "as published, not private": dict(noise="paper"),
    "on every row (local)": dict(mechanism="local", shrink=False),
    "on every row, shrunk": dict(mechanism="local"),
    "on the moments, as they come": dict(shrink=False),
    "on the moments (default)": dict(),
}


def rows(rng, n, d, shift=0.0):
    X = rng.normal(size=(n, d)) * 0.6 / np.sqrt(d) * np.linspace(1.5, 0.5, d)
    X[:, 0] += shift
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--repeats", type=int, default=10, help="sellers for each figure")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[8, 16, 32])
    arguments = parser.parse_args()
    print("True epsilon of the mean under the published noise, which claims 0.8")
    for n in (100, 500, 1000, 5000):
        mu = 2 / n / (paper_scale(EPSILON, DELTA, n, 1.0) / np.sqrt(n))
        print(f"n = {n:5}: {epsilon_from_mu(mu, DELTA):6.1f}")
    warnings.simplefilter("ignore", VoidGuaranteeWarning)
    for d in arguments.dimensions:
        print(f"\nRoot mean squared error of distances, d = {d}")
        print(f"{'noise':<29}" + "".join(f"{f'n = {n}':>11}" for n in (500, 1000, 5000)))
        rng = np.random.default_rng(d)
        buyer = rows(rng, 5000, d)
        base = PriArTaScorer(max_norm=1.0, mean_weight=0.6).fit(buyer)
        for name, setting in MECHANISMS.items():
            scorer = clone(base).set_params(epsilon=EPSILON, delta=DELTA, **setting).fit(buyer)
            found = []
            for n in (500, 1000, 5000):
                sellers = [rows(rng, n, d, 0.3) for _ in range(arguments.repeats)]
                errors = scorer.transform(sellers) - base.transform(sellers)
                found.append(np.sqrt(np.mean(errors**2)))
            print(f"{name:<29}" + "".join(f"{error:11.3f}" for error in found), flush=True)


if __name__ == "__main__":
    main()
