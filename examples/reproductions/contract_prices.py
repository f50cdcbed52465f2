"""
Prices for a contract: six organisations at epsilon 1
=====================================================

Six parties release a noisy statistic of their rows, and a mediator values them by what
their releases add to predictions of its own points:

- "large" and "small" have 1,200 and 250 right rows;
- "copy" has 400 rows of "large" again;
- "noisy" has 600 rows, of which 35 % have a wrong label;
- "irrelevant" has 600 rows whose labels belong to other rows;
- "flipped" has 600 rows, all with the wrong label.

All use a model that the mediator made of public rows. It leaves out parties of negative
value and fits again, before anyone is paid.
Printed are, over draws of the rows and fresh releases of each:

- the values by retraining on the rows themselves (exact Shapley values of 64 fits), and
  by the releases without noise;
- the mean of the private values, their root mean squared difference from those without
  noise, the median stated error, and how many values without noise are within two of
  them;
- how many pairs of parties differ by more than two stated errors, and how many of these
  are in the order of retraining;
- in the second fit, how often the irrelevant party is above 0 by more than its stated
  error;
- CPU seconds of the two fits.

    python contract_prices.py --draws 5 --releases 10
"""

import argparse
import time
import warnings
from itertools import combinations

import numpy as np
from sklearn.linear_model import LogisticRegression

from skvalue import DataShapleyValuer, PredictiveValueScorer
from skvalue.collaborative import MediatorModel
from skvalue.exceptions import ClippedRowsWarning, NoiseExceedsSignalWarning
from skvalue.privacy import SeededNoiseWarning

EPSILON = 1.0
COLUMNS = ["age", "distance", "height"]
SIZES = {
    "large": 1200,
    "small": 250,
    "copy": 400,
    "noisy": 600,
    "irrelevant": 600,
    "flipped": 600,
}


def draw_rows(n, rng):
    """Rows of three columns in units of their own, and labels of two classes."""
    standard = rng.normal(size=(n, 3))
    logits = 0.6 + standard @ [2.0, -1.5, 1.0]
    y = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)
    return standard * [15.0, 1.0, 0.1] + [50.0, 0.0, 1.7], y


def draw_parties(rng):
    """Rows of the six parties, by name."""
    rows = {name: draw_rows(n, rng) for name, n in SIZES.items()}
    X, y = rows["large"]
    rows["copy"] = X[: SIZES["copy"]], y[: SIZES["copy"]]
    X, y = rows["noisy"]
    wrong = rng.random(len(y)) < 0.35
    rows["noisy"] = X, np.where(wrong, 1 - y, y)
    X, y = rows["irrelevant"]
    rows["irrelevant"] = X, rng.permutation(y)
    X, y = rows["flipped"]
    rows["flipped"] = X, 1 - y
    return rows


def values_by_retraining(model, rows, X_val, y_val):
    """Exact Shapley values of the parties' rows by name, by logistic regressions."""
    X = np.concatenate([X for X, _ in rows.values()])
    y = np.concatenate([y for _, y in rows.values()])
    groups = np.repeat(np.arange(len(rows)), [len(y) for _, y in rows.values()])
    valuer = DataShapleyValuer(
        LogisticRegression(),
        scoring="neg_log_loss",
        empty_utility="prior",
        sampler="exact",
    )
    points = {"X_val": model.transform(X_val), "y_val": y_val}
    valuer.fit(model.transform(X), y, **points, groups=groups)
    return dict(zip(rows, valuer.values_))


def release(model, rows, epsilon, seed):
    """The release of each party by name, with noise of its own."""
    releases = {}
    for number, (name, (X, y)) in enumerate(rows.items()):
        party = model.make_party(epsilon, noise_random_state=1000 * seed + number)
        releases[name] = party.fit(model.transform(X), y).release_
    return releases


def prices(model, releases, X_val, y_val, seed):
    """Values and their errors by name, in a list: of all parties, and without those
    of negative value."""
    points = {"X_val": model.transform(X_val), "y_val": y_val}
    fits = []
    for _ in range(2):
        scorer = PredictiveValueScorer(model.make_model(), random_state=seed)
        scorer.fit(releases, **points)
        values = dict(zip(releases, scorer.values_))
        fits.append((values, dict(zip(releases, scorer.values_error_))))
        releases = {name: releases[name] for name in releases if values[name] >= 0}
    return fits


def count_pairs(values, errors, truth):
    """Pairs that differ by more than two errors, and those in the order of truth."""
    n_told = 0
    n_right = 0
    for one, other in combinations(values, 2):
        difference = values[one] - values[other]
        if abs(difference) > 2 * np.hypot(errors[one], errors[other]):
            n_told += 1
            n_right += difference * (truth[one] - truth[other]) > 0
    return n_told, n_right


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5, help="of the parties' rows")
    parser.add_argument("--releases", type=int, default=10, help="of each draw")
    return parser.parse_args(arguments)


def main():
    args = parse_arguments()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    warnings.simplefilter("ignore", NoiseExceedsSignalWarning)
    warnings.simplefilter("ignore", ClippedRowsWarning)

    truths = []
    exact = []
    private = []
    stated = []
    pairs = np.zeros(2, dtype=int)
    n_refits = 0
    n_paid = 0
    seconds = []
    for draw in range(args.draws):
        rng = np.random.default_rng(draw)
        rows = draw_parties(rng)
        X_val, y_val = draw_rows(500, rng)
        model = MediatorModel.from_points(
            *draw_rows(300, rng), columns=COLUMNS, target="cured"
        )
        truth = values_by_retraining(model, rows, X_val, y_val)
        exact_releases = release(model, rows, None, draw)
        without_noise = prices(model, exact_releases, X_val, y_val, draw)[0][0]
        truths.append(list(truth.values()))
        for number in range(args.releases):
            seed = draw * args.releases + number
            releases = release(model, rows, EPSILON, seed)
            start = time.process_time()
            (values, errors), refit = prices(model, releases, X_val, y_val, seed)
            seconds.append(time.process_time() - start)

            exact.append(list(without_noise.values()))
            private.append(list(values.values()))
            stated.append(list(errors.values()))
            pairs += count_pairs(values, errors, truth)
            n_refits += 1
            if "irrelevant" in refit[0]:
                n_paid += refit[0]["irrelevant"] > refit[1]["irrelevant"]

    covered = np.abs(np.subtract(private, exact)) <= 2 * np.array(stated)
    print_parties(truths, exact, private, stated, covered)
    print(f"Within two errors, all parties: {covered.mean():.2f}")
    print(f"Pairs that differ by more than two errors: {pairs[0]}, ", end="")
    print(f"in the order of retraining: {pairs[1]}")
    print(f"Irrelevant party paid after the second fit: {n_paid} of {n_refits}")
    print(f"CPU seconds of two fits, median: {np.median(seconds):.1f}")


def print_parties(truths, exact, private, stated, covered):
    """A row for each party: means over draws and releases."""
    columns = {
        "retraining": np.mean(truths, axis=0),
        "no noise": np.mean(exact, axis=0),
        "epsilon 1": np.mean(private, axis=0),
        "error": np.sqrt(np.mean(np.square(np.subtract(private, exact)), axis=0)),
        "stated": np.median(stated, axis=0),
        "within 2": covered.mean(axis=0),
    }
    print(f"{'':12}" + "".join(f"{name:>12}" for name in columns))
    for number, name in enumerate(SIZES):
        cells = "".join(f"{column[number]:12.3f}" for column in columns.values())
        print(f"{name:12}{cells}")


if __name__ == "__main__":
    main()
