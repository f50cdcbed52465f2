"""
What parties that send garbage are worth
========================================

Five parties of 200 rows each: two honest ones, one with shuffled targets, one with
targets of pure noise, one with targets of the wrong sign; a sixth sends 20 good rows
ten times. This script prints what each is worth by surprise (Sim et al., NeurIPS 2023)
and by the log predictive density of 100 validation points (Sim et al., "Incentivizing
Truthfulness and Collaborative Fairness in Bayesian Learning", ICML 2026), without noise
and at a Renyi epsilon of 0.5, as means over draws of all data:

    python examples/reproductions/predictive_parties.py --draws 20

- "predictive": `PredictiveValueScorer` with the default prior, in nats per validation
  point;
- "noise-blind": the same, where noisy statistics are taken for exact ones;
- "surprise": `BayesianSurpriseScorer` with the default prior, in nats;
- "a0=20": the same with a prior of the variance that is worth 40 rows.

What should be seen: by predictions, none of the three that send garbage is worth half
of an honest party, and none has much effect on what the others are worth; by surprise
they are worth as much, and under a strong prior many times more. Copies are worth about
what as many new rows are.
"""

import argparse
import warnings

import numpy as np

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import BayesianLinear, GramRelease
from skvalue.exceptions import PriorOutweighsWarning
from skvalue.privacy import SeededNoiseWarning

KINDS = [
    "honest",
    "honest",
    "shuffled targets",
    "pure noise",
    "flipped sign",
    "20 rows, ten times",
]
WEIGHTS = np.array([0.5, -0.3])
SD = 0.16


def rows_of(kind, rng, n=200):
    """Rows of a party; their targets are within [-1, 1]."""
    X = 0.39 * rng.normal(size=(n, 2))
    signal = X @ WEIGHTS
    noise = SD * rng.standard_normal(n)
    if kind == "20 rows, ten times":
        first = np.arange(n) % (n // 10)
        return X[first], np.clip((signal + noise)[first], -1, 1)
    y = {"pure noise": noise / SD / 2, "flipped sign": noise - signal}.get(
        kind, signal + noise
    )
    return X, np.clip(rng.permutation(y) if kind == "shuffled targets" else y, -1, 1)


def scorers(epsilon):
    """Scorers by column; those that are compared with the default have fewer
    particles."""
    few = {"n_particles": 80, "min_ess": 30, "random_state": 0}
    blind = {}
    if epsilon is not None:
        blind = {
            "noise-blind": PredictiveValueScorer(
                BayesianLinear(noise_aware=False), **few
            )
        }
    return {
        "predictive": PredictiveValueScorer(BayesianLinear(), random_state=0),
        **blind,
        "surprise": BayesianSurpriseScorer(BayesianLinear(), **few),
        "a0=20": BayesianSurpriseScorer(BayesianLinear(a0=20, b0=0.5), **few),
    }


def values(epsilon, n_parties, draws, columns=None):
    """Values by column (draws, n_parties): new rows, new noise and new points in every
    draw."""
    found = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        parties = [rows_of(kind, rng) for kind in KINDS]
        points = dict(zip(("X_val", "y_val"), rows_of("honest", rng, 100)))
        releases = []
        for i, rows in enumerate(parties[:n_parties]):
            seed = None if epsilon is None else 10 * draw + i
            releases.append(
                GramRelease(None, renyi_epsilon=epsilon, noise_random_state=seed)
                .fit(*rows)
                .release_
            )
        chosen = scorers(epsilon)
        for name in columns or chosen:
            given = points if isinstance(chosen[name], PredictiveValueScorer) else {}
            found.setdefault(name, []).append(
                chosen[name].fit(releases, **given).values_
            )
    return {name: np.array(table) for name, table in found.items()}


def print_values(found, n_parties):
    print(f"{'party':20}", *(f"{name:>18}" for name in found))
    for i, kind in enumerate(KINDS[:n_parties]):
        cells = (
            f"{table[:, i].mean():9.3f} "
            f"({table[:, i].std(ddof=1) / len(table) ** 0.5:.3f})"
            for table in found.values()
        )
        print(f"{kind:20}", *(f"{cell:>18}" for cell in cells))
    mean = found["predictive"].mean(axis=0)
    ratio = mean[2:5].max() / mean[:2].min()
    print(
        f"largest predictive value of the three over that of an honest party: "
        f"{ratio:.2f}\n",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draws", type=int, default=20, help="draws of rows and noise, at least 2"
    )
    args = parser.parse_args()
    if args.draws < 2:
        parser.error(
            f"--draws must be at least 2, for a standard error. Got {args.draws}."
        )
    warnings.simplefilter(
        "ignore", SeededNoiseWarning
    )  # an experiment with made-up rows
    warnings.simplefilter(
        "ignore", PriorOutweighsWarning
    )  # what the last column is for
    for epsilon in (None, 0.5):
        print("without noise" if epsilon is None else f"Renyi epsilon {epsilon:g}")
        for n_parties in (5, 6):
            found = values(epsilon, n_parties, args.draws)
            print_values(found, n_parties)


if __name__ == "__main__":
    main()
