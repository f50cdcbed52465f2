"""
Distances of PriArTa, without noise and with
============================================

What the scores of PriArTa are worth, on made rows (no data is read):

    python examples/reproductions/priarta_distances.py

- Without noise a score is the paper's equation 1 of the two samples. The largest
  relative difference from a plain computation is printed, and how far the score is from
  the distance of the distributions, by the number of rows.
- With (0.8, 1e-5) and 500 rows, ten sellers have shifts from 0 to 20, spreads of 1.5, 3
  and 5, and two modes. Spearman's correlation of their scores with the distances of the
  samples is printed by the way rows are clipped, and the root mean squared error of
  each score; clipping alone, almost without noise, shows what noise adds.
- The errors that `score_errors` states, over those from the distances of the
  distributions.
- A membership attack by an attacker who knows all other rows: on the mean of rows with
  the published noise, and on a release of `SellerRelease`; area under the ROC curve.
"""

import argparse

import numpy as np
from priarta_mechanisms import DELTA, EPSILON, paper_scale
from scipy.linalg import sqrtm
from scipy.stats import norm, spearmanr

from skvalue.priarta import (
    PriArTaScorer,
    SellerRelease,
    membership_attack,
    wasserstein,
)

SHIFTS = [0, 1, 2, 4, 8, 20]
SPREADS = [1.5, 3, 5]
PARTS = ["exact", "order", "errors", "membership"]


def ten_sellers(rng, n, d):
    """Rows of ten sellers."""
    first = np.eye(d)[0]
    shifted = [rng.normal(size=(n, d)) + shift * first for shift in SHIFTS]
    spread = [times * rng.normal(size=(n, d)) for times in SPREADS]
    modes = 6 * first * rng.choice([-1, 1], (n, 1))
    return [*shifted, *spread, rng.normal(size=(n, d)) + modes]


def ten_distributions(d):
    """Means and covariances of the rows of the ten sellers."""
    first = np.eye(d)[0]
    shifted = [(shift * first, np.eye(d)) for shift in SHIFTS]
    spread = [(0 * first, times**2 * np.eye(d)) for times in SPREADS]
    return [*shifted, *spread, (0 * first, np.eye(d) + 36 * np.outer(first, first))]


def plain_wasserstein(X, Z):
    """Equation 1 for the moments of two samples, by matrix square roots."""
    covariances = [np.cov(rows.T) for rows in (X, Z)]
    root = sqrtm(covariances[0]).real
    cross = np.trace(sqrtm(root @ covariances[1] @ root).real)
    shift = ((X.mean(axis=0) - Z.mean(axis=0)) ** 2).sum()
    return np.sqrt(shift + sum(map(np.trace, covariances)) - 2 * cross)


def sample_distances(buyer, sellers):
    own = buyer.mean(axis=0), np.cov(buyer.T)
    return np.array([wasserstein(*own, X.mean(axis=0), np.cov(X.T)) for X in sellers])


def rms(values, axis=None):
    return np.sqrt(np.mean(np.square(values), axis=axis))


def print_exact(d, arguments):
    """The score without noise, and how far it is from that of the distributions."""
    rng = np.random.default_rng(d)
    buyer = rng.normal(size=(1000, d))
    scorer = PriArTaScorer(mean_weight=0.6).fit(buyer)
    sellers = ten_sellers(rng, arguments.n, d)
    scores = scorer.transform(sellers)[:, 0]
    plain = np.array([plain_wasserstein(buyer, X) for X in sellers])
    print(
        f"d = {d:2}: largest relative difference {np.abs(scores / plain - 1).max():.1e}"
    )
    origin = np.zeros(d), np.eye(d)
    distances = np.array([wasserstein(*origin, *each) for each in ten_distributions(d)])
    for n in (100, 500, 2000, 10000):
        scorer = PriArTaScorer(mean_weight=0.6).fit(rng.normal(size=(n, d)))
        scores = scorer.transform(ten_sellers(rng, n, d))[:, 0]
        print(
            f"   n = {n:5}: score less distance of the distributions "
            + " ".join(f"{gap:6.3f}" for gap in scores - distances),
            flush=True,
        )


def print_order(d, arguments):
    """Order and errors of private scores, by the radius."""
    rng = np.random.default_rng(5)
    buyer = rng.normal(size=(1000, d))
    norms = np.linalg.norm(buyer - buyer.mean(axis=0), axis=1)
    radius = float(np.quantile(norms, 0.95))
    settings = {
        "95 % norm of the buyer": {"max_norm": radius},
        "four times that": {"max_norm": 4 * radius},
        "own radius, unshrunk": {"shrink": False},
        "own radius (default)": {},
        "own radius, epsilon 1000": {"epsilon": 1000.0},
    }
    scorers = {
        name: PriArTaScorer(**{"epsilon": EPSILON, "delta": DELTA, **setting})
        for name, setting in settings.items()
    }
    scores = {name: [] for name in settings}
    distances = []
    for scorer in scorers.values():
        scorer.fit(buyer)
    for _ in range(arguments.draws):
        sellers = ten_sellers(rng, arguments.n, d)
        distances.append(sample_distances(buyer, sellers))
        for name, scorer in scorers.items():
            scores[name].append(scorer.transform(sellers)[:, 0])
    mean = np.mean(distances, axis=0)
    print(f"d = {d:2}: distances{'':15}" + " ".join(f"{x:6.2f}" for x in mean))
    for name, rows in scores.items():
        ranks = [spearmanr(a, b).statistic for a, b in zip(rows, distances)]
        error = np.std(ranks, ddof=1) / np.sqrt(len(ranks))
        print(
            f"   {name:25} {np.mean(ranks):.3f} ({error:.3f})  rmse "
            + " ".join(f"{x:6.2f}" for x in rms(np.subtract(rows, distances), axis=0)),
            flush=True,
        )


def print_errors(d, arguments):
    """Root mean squared errors over the stated ones, of each seller and of all."""
    rng = np.random.default_rng(6)
    buyer = rng.normal(size=(1000, d))
    own = buyer.mean(axis=0), np.cov(buyer.T)
    distances = np.array([wasserstein(*own, *each) for each in ten_distributions(d)])
    scorer = PriArTaScorer(epsilon=EPSILON, delta=DELTA).fit(buyer)
    scores = []
    stated = []
    for _ in range(arguments.draws):
        summaries = scorer.summarize(ten_sellers(rng, arguments.n, d))
        scores.append(scorer.score_summaries(summaries)[:, 0])
        stated.append(scorer.score_errors(summaries))
    ratios = rms(np.subtract(scores, distances), axis=0) / rms(stated, axis=0)
    print(
        f"d = {d:2}: true error over the stated one "
        + " ".join(f"{ratio:5.2f}" for ratio in ratios)
        + f"; all {rms(ratios):.2f}",
        flush=True,
    )


def print_membership(arguments):
    """The published noise on rows, and a release of the library."""
    n = arguments.n
    for radius in (1.0, 8.0, 10.0):
        scale = paper_scale(EPSILON, DELTA, n, radius) / np.sqrt(n)
        area = norm.cdf(2 * radius / n / scale / np.sqrt(2))
        print(f"published, mean of {n} rows of norm {radius:g}: {area:.3f}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    model = PriArTaScorer(epsilon=EPSILON, delta=DELTA).fit(X).model_
    seller = SellerRelease(model, EPSILON, delta=DELTA)
    far = 100 * np.eye(8)[0]
    attack = membership_attack(seller, X, rows=(far, 0 * far), n_runs=1000)
    print(
        f"SellerRelease, a row far away or at the centre: {attack.auroc:.3f} "
        f"({attack.auroc_error:.3f}), at most {attack.ceiling:.3f} by the guarantee"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 8, 32, 64])
    parser.add_argument("--draws", type=int, default=50, help="of all sellers")
    parser.add_argument("--n", type=int, default=500, help="rows of a seller")
    arguments = parser.parse_args()
    printers = {"exact": print_exact, "order": print_order, "errors": print_errors}
    for part in arguments.parts:
        print(f"\n{part}")
        if part == "membership":
            print_membership(arguments)
            continue
        for d in arguments.dimensions:
            printers[part](d, arguments)


if __name__ == "__main__":
    main()
