"""Six organisations whose contract is signed on private values: order and errors.

A big and a small party, one with 35 % wrong labels, one whose features are irrelevant,
one whose labels are all flipped, and a copy of the big one release statistics for a
model that was made of public rows. Each of many releases has fresh noise; values
without noise are those of the same rows. Prints the table of
``doc/user_guide/collaborative.rst``:

    python examples/reproductions/party_contract.py --releases 50

With ``--precision 0.05`` the prior of the weights is weak.
"""

import argparse
import time
import warnings

import numpy as np

from skvalue import PredictiveValueScorer
from skvalue.collaborative import MediatorModel

EPSILON = 1.0
WEIGHTS = np.array([1.5, -1.0, 0.0])
UNITS = np.array([10.0, 1000.0, 0.01])  # of years, metres and a dose
# Party -> its number of rows and the fraction of its labels that are wrong.
PARTIES = {
    "big": (1000, 0.0),
    "small": (150, 0.0),
    "35 % wrong": (500, 0.35),
    "irrelevant": (500, 0.0),
    "flipped": (500, 1.0),
}


def rows_of(rng, n, wrong=0.0):
    """Features in their units, and labels, of which a fraction is wrong."""
    X = rng.normal(size=(n, len(WEIGHTS)))
    is_positive = rng.random(n) < 1 / (1 + np.exp(1 - X @ WEIGHTS))
    is_wrong = rng.random(n) < wrong
    return X * UNITS, np.where(is_positive ^ is_wrong, "yes", "no")


def draw_parties(rng):
    """Rows and labels of the parties by name."""
    parties = {name: rows_of(rng, *kind) for name, kind in PARTIES.items()}
    _, labels = parties["irrelevant"]
    parties["irrelevant"] = (rows_of(rng, len(labels))[0], labels)
    parties["copy of big"] = parties["big"]
    return parties


def fit(model, parties, points, epsilon, seed):
    """A scorer that is fitted to releases with fresh noise, or without noise."""
    releases = {}
    for i, (name, (X, y)) in enumerate(parties.items()):
        party = model.make_party(epsilon, noise_random_state=100 * seed + i)
        releases[name] = party.fit(model.transform(X), y).release_
    scorer = PredictiveValueScorer(model.make_model(), random_state=seed)
    X_val, y_val = points
    return scorer.fit(releases, X_val=model.transform(X_val), y_val=y_val)


def count_clear_pairs(values, errors, exact):
    """Numbers of pairs that differ by more than two errors, and of those in order."""
    i, j = np.triu_indices(len(values), 1)
    differences = values[i] - values[j]
    is_clear = np.abs(differences) > 2 * np.hypot(errors[i], errors[j])
    is_right = np.sign(differences) == np.sign(exact[i] - exact[j])
    return is_clear.sum(), (is_clear & is_right).sum()


def main(n_releases, precision):
    rng = np.random.default_rng(0)
    public = rows_of(rng, 300)
    points = rows_of(rng, 500)
    parties = draw_parties(rng)
    model = MediatorModel.from_points(
        *public,
        columns=["age", "metres", "dose"],
        target="cured",
        precision=(precision,) * (1 + len(WEIGHTS)),
    )
    exact = fit(model, parties, points, None, 0).values_
    values = []
    errors = []
    n_clear = np.zeros(2, dtype=int)
    start = time.process_time()
    for seed in range(n_releases):
        scorer = fit(model, parties, points, EPSILON, seed)
        values.append(scorer.values_)
        errors.append(scorer.values_error_)
        n_clear += count_clear_pairs(values[-1], errors[-1], exact)
    seconds = (time.process_time() - start) / n_releases

    values = np.array(values)
    errors = np.array(errors)
    is_within = np.abs(values - exact) <= 2 * errors
    print(f"{'party':12} {'rows':>5} no noise    mean      sd   error  within two")
    for i, (name, (X, _)) in enumerate(parties.items()):
        print(
            f"{name:12} {len(X):5} {exact[i]:8.3f} {values[:, i].mean():7.3f} "
            f"{values[:, i].std(ddof=1):7.3f} {errors[:, i].mean():7.3f} "
            f"{is_within[:, i].mean():11.2f}"
        )
    place = list(parties).index("irrelevant")
    n_paid = np.count_nonzero(values[:, place] > errors[:, place])
    print(f"within two errors, all parties: {is_within.mean():.2f}")
    print(f"pairs that differ by two errors: {n_clear[0]}, in order: {n_clear[1]}")
    print(f"irrelevant above 0 by more than an error: {n_paid} of {n_releases}")
    print(f"{seconds:.1f} CPU s a release")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--releases", type=int, default=50)
    parser.add_argument("--precision", type=float, default=1.0)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise with seeds
        main(options.releases, options.precision)
