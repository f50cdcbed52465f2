"""
Markets: what a party gains by cheating, and which rules prevent it
===================================================================

Five parties hold 100 rows each of digits (5 to 9 or not), adult or covertype (class 2
or not); the buyer has 500 validation points. The script prints, for each promise of
:doc:`/user_guide/payments`, the measured figure and whether the promise holds::

    python examples/reproductions/markets.py --data FOLDER

FOLDER holds adult.npz and covertype.npz, with arrays X and y (and is_cat, a mask of
categorical columns); without it there is only digits. ``--parts`` takes some of the
parts, ``--draws`` is the number of draws of rows; two of them take about 15 CPU
minutes, of which "error" takes most.

faithful
    Sums of the values of rows: the formula, and sampled values, against enumeration.
names
    Ten names in place of one: faithful groups with the same seed and another one, and
    as players; two names under Banzhaf.
copies
    Rows sent four times under the quotient: exact, and moved by 1.5 radii.
twins
    The twin test on honest parties, and on rows that are stolen and moved by one
    spacing.
garbage
    What a party of garbage is paid: not above 0, within two standard errors.
error
    CPU seconds for a standard error of 1 % of the total.
gain
    The level of `manipulation_gain`, and its cost.
"""

import argparse
import warnings
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue import (
    DataBanzhafValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    PredictiveValueScorer,
)
from skvalue.collaborative import BayesianLogistic, LogisticRelease
from skvalue.estimation import group_values, make_design
from skvalue.inspection import manipulation_gain, twin_parties
from skvalue.inspection.manipulations import Submission, copies, garbage, shells, stolen
from skvalue.neighbors import copy_radius
from skvalue.rewards import payments, shares
from skvalue.semivalues import tabulated_semivalue

SETS = ("digits", "adult", "covertype")
PARTIES = np.arange(500) % 5
MODEL = LogisticRegression()


def load(name, folder, seed, n=500):
    """The rows of five parties, and as many validation points, scaled by the latter."""
    categories = []
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
        y = (y >= 5).astype(int)
    else:
        with np.load(Path(folder) / f"{name}.npz") as arrays:
            X = arrays["X"]
            y = arrays["y"]
            categories = np.flatnonzero(arrays.get("is_cat", []))
        y = (y == 2).astype(int) if name == "covertype" else y.astype(int)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n]
    X = X[order].astype(float)
    y = y[order]
    if len(categories):
        encoder = OneHotEncoder(sparse_output=False)
        transformer = make_column_transformer(
            (encoder, categories), remainder="passthrough"
        )
        X = transformer.fit_transform(X)
    if name != "digits":
        X = StandardScaler().fit(X[n:]).transform(X)
    return Submission(X[:n], y[:n], PARTIES[:n], X[n:], y[n:])


def report(promise, name, figure, holds):
    verdict = "holds" if holds else "FAILS"
    print(f"{verdict:6} {name:10} {promise}: {figure}", flush=True)


class Values(NamedTuple):
    """Values of the names of the party, and of the others."""

    own: np.ndarray
    others: np.ndarray

    @property
    def share(self):
        """The party's share of a budget."""
        return shares([*self.own, *self.others], 1.0)[: len(self.own)].sum()


def values_of(valuer, submission):
    valuer.fit(
        submission.X,
        submission.y,
        groups=submission.names,
        X_val=submission.X_val,
        y_val=submission.y_val,
    )
    is_own = valuer.groups_ <= 0
    return Values(valuer.values_[is_own], valuer.values_[~is_own])


# Values of groups ---------------------------------------------------------------------


def check_faithful(name, folder, draws):
    """Random games of ten rows in four groups."""
    largest = 0.0
    z = []
    for game in range(6):
        utilities = np.random.default_rng(game).normal(size=2**10).cumsum() / 30
        values, _, expected = random_game(utilities, "exact", seed=0)
        largest = max(largest, np.abs(values - expected).max())
        for seed in range(40):
            values, errors, expected = random_game(utilities, "stratified", seed)
            z.append((values - expected) / errors)
    z = np.array(z)
    bound = 3 / np.sqrt(960)
    figure = f"largest difference {largest:.1e}"
    report("exact sums of row values", "random", figure, largest < 1e-10)
    mean = z.mean()
    figure = f"mean {mean:.3f} (at most {bound:.3f}), standard deviation {z.std():.2f}"
    holds = abs(mean) < bound and 0.9 < z.std() < 1.2
    report("z of sampled sums", "random", figure, holds)


def random_game(utilities, sampler, seed):
    """Values of four groups, their errors, and the sums of the exact row values."""
    n_rows = 10
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    design = make_design(
        sampler, "shapley", n_rows, seed=seed, empty_utility=utilities[0]
    )
    design.limit = None if sampler == "exact" else 400
    while (masks := design.ask()) is not None:
        design.tell(utilities[masks @ (1 << np.arange(n_rows))])
    values, covariance, _ = group_values(design, groups)
    expected = np.bincount(groups, tabulated_semivalue(utilities))
    return values, np.sqrt(np.diag(covariance)), expected


def check_names(name, folder, draws):
    largest = 0.0
    largest_pair = 0.0
    distances = []
    gains = []
    for seed in range(draws):
        honest = load(name, folder, seed)
        rng = np.random.default_rng(seed)
        ten_names = shells(honest, rng, n=10)
        two_names = shells(honest, rng, n=2)

        # Faithful groups, with the same seed and with four other ones.
        valuer = DataShapleyValuer(
            MODEL, group_values="faithful", max_evaluations=4000, random_state=seed
        )
        total = np.concatenate(values_of(valuer, honest)).sum()
        value = valuer.values_[0]
        error = valuer.values_error_[0]
        difference = values_of(valuer, ten_names).own.sum() - value
        largest = max(largest, abs(difference) / total)
        values = []
        for k in range(4):
            valuer.set_params(random_state=1000 + 4 * seed + k)
            values.append(values_of(valuer, ten_names).own.sum())
        distance = (np.mean(values) - value) / (np.sqrt(1 + 1 / 4) * error)
        distances.append(distance)

        # Names as players.
        exact = DataShapleyValuer(MODEL, sampler="exact")
        sampled = DataShapleyValuer(
            MODEL, sampler="stratified", max_evaluations=6000, random_state=seed
        )
        share = values_of(sampled, ten_names).share
        gains.append(share / values_of(exact, honest).share - 1)
        banzhaf = DataBanzhafValuer(MODEL, sampler="exact")
        value_of_two = values_of(banzhaf, two_names).own.sum()
        difference = value_of_two - values_of(banzhaf, honest).own[0]
        largest_pair = max(largest_pair, abs(difference))

    figure = f"{largest:.1e} of the total"
    report("ten names, faithful, same seed", name, figure, largest <= 1e-12)
    figure = f"{np.round(distances, 1).tolist()} standard errors"
    mean_distance = np.sqrt(np.mean(np.square(distances)))
    report("ten names, faithful, four other seeds", name, figure, mean_distance < 2)
    gains = 100 * np.array(gains)
    figure = f"gain in share {np.round(gains).astype(int).tolist()} %"
    report("ten names as players gain", name, figure, gains.mean() > 10)
    report("two names, Banzhaf", name, f"{largest_pair:.1e}", largest_pair <= 1e-12)


# Copies and garbage -------------------------------------------------------------------


def check_copies(name, folder, draws):
    largest = 0.0
    gains = []
    for seed in range(draws):
        honest = load(name, folder, seed)
        radius = copy_radius(honest.X_val, honest.y_val, len(honest.y))
        valuer = KNNShapleyValuer(duplicates="quotient", duplicate_radius=radius)
        values = values_of(valuer, honest)

        copied = copies(honest, np.random.default_rng(seed))
        ratios = np.concatenate(values_of(valuer, copied)) / np.concatenate(values)
        largest = max(largest, np.max(np.abs(ratios - 1)))

        n_copies = len(copied.y) - len(honest.y)
        shape = (n_copies, honest.X.shape[1])
        steps = np.random.default_rng(seed).normal(size=shape)
        steps *= 1.5 * radius / np.linalg.norm(steps, axis=1, keepdims=True)
        X = np.vstack([honest.X, copied.X[len(honest.y) :] + steps])
        share = values_of(valuer, copied._replace(X=X)).share
        gains.append(100 * (share / values.share - 1))
    report("exact copies, quotient", name, f"{largest:.1e} relative", largest <= 1e-12)
    figure = f"gain {np.round(gains).astype(int).tolist()} %"
    holds = name != "digits" or min(gains) > 50
    report("copies moved by 1.5 radii are paid", name, figure, holds)


def check_twins(name, folder, draws):
    n_honest = 25 * draws
    n_stolen = 10
    honest_z = []
    stolen_z = []
    start = process_time()
    for seed in range(n_honest):
        honest = load(name, folder, 100 + seed)
        honest_z.append(largest_z(honest))
        if seed < n_stolen:
            rng = np.random.default_rng(seed)
            stolen_z.append(largest_z(stolen(honest, rng, only=True, spacings=1.0)))
    seconds = (process_time() - start) / (n_honest + n_stolen)
    figure = (
        f"largest z {max(honest_z):.1f} in {len(honest_z)} draws, {seconds:.2f} s each"
    )
    report("honest parties", name, figure, max(honest_z) < 4.5)
    figure = f"smallest z {min(stolen_z):.1f} in {len(stolen_z)} draws"
    report("stolen rows, moved by a spacing", name, figure, min(stolen_z) > 5)


def largest_z(submission):
    return np.nanmax(twin_parties(submission.X, submission.y, submission.names).z)


def release_parties(name, folder, seed):
    """Releases of parties of which the first has garbage, and validation points.

    Each party has about 140 rows, and releases them with a Renyi divergence of at most
    4. Both classes have equally many rows, and the features are three public
    components.
    """
    data = load(name, folder, seed, 800 if name == "digits" else 4000)
    rows = balanced_rows(data.y, 350)
    points = balanced_rows(data.y_val, 200)
    components = PCA(3).fit(data.X_val[points])
    X = components.transform(data.X[rows])
    X_val = components.transform(data.X_val[points])
    scale = np.quantile(np.linalg.norm(X_val, axis=1), 0.95)
    names = np.random.default_rng(seed).permutation(len(rows)) % 5
    honest = Submission(
        X=X / scale,
        y=data.y[rows],
        names=names,
        X_val=X_val / scale,
        y_val=data.y_val[points],
    )
    submission = garbage(honest, np.random.default_rng(seed))

    releases = {}
    for party in range(5):
        is_sender = submission.names == party
        release = LogisticRelease(renyi_epsilon=4.0)
        release.fit(submission.X[is_sender], submission.y[is_sender])
        releases[party] = release.release_
    norms = np.linalg.norm(submission.X_val, axis=1, keepdims=True)
    return releases, submission.X_val / np.maximum(norms, 1.0), submission.y_val


def balanced_rows(y, n_per_class):
    """The first rows of both classes, in order."""
    rows = [np.flatnonzero(y == label)[:n_per_class] for label in (0, 1)]
    return np.sort(np.concatenate(rows))


def check_garbage(name, folder, draws):
    valuers = {
        "Shapley, parties play": DataShapleyValuer,
        "Banzhaf, parties play": DataBanzhafValuer,
    }
    semivalues = {"predictive value": "shapley", "predictive, Banzhaf": "banzhaf"}

    # Payments of the party of garbage, and of an honest one on average.
    payments_by_rule = {rule: [] for rule in [*valuers, *semivalues]}
    for seed in range(4 * draws):
        submission = garbage(load(name, folder, seed), np.random.default_rng(seed))
        for rule, valuer_class in valuers.items():
            valuer = valuer_class(MODEL, sampler="exact", empty_utility="prior")
            values = values_of(valuer, submission)
            own_payment = payments(values.own, 1.0)[0]
            mean_of_others = payments(values.others, 1.0).mean()
            payments_by_rule[rule].append([own_payment, mean_of_others])

        releases, X_val, y_val = release_parties(name, folder, seed)
        for rule, semivalue in semivalues.items():
            scorer = PredictiveValueScorer(
                BayesianLogistic(precision=0.3),
                semivalue=semivalue,
                n_particles=200,
                min_ess=30,
                random_state=seed,
            )
            scorer.fit(releases, X_val=X_val, y_val=y_val)
            paid = payments(scorer.values_, 1.0)
            payments_by_rule[rule].append([paid[0], paid[1:].mean()])

    for rule, paid in payments_by_rule.items():
        own, others = np.array(paid).T
        percentage = 100 * own.mean() / others.mean()
        error = 100 * own.std(ddof=1) / np.sqrt(len(own)) / others.mean()
        figure = f"{percentage:.0f} % of an honest party (error {error:.0f})"
        report(f"garbage, {rule}", name, figure, percentage <= 2 * error)


# Costs --------------------------------------------------------------------------------


def check_error(name, folder, draws):
    honest = load(name, folder, 0)
    model = LogisticRegression().fit(honest.X, honest.y)
    total = model.score(honest.X_val, honest.y_val) - 0.5
    valuer = DataShapleyValuer(
        MODEL,
        group_values="faithful",
        tol=0.01 * total,
        max_evaluations=120_000,
        random_state=0,
    )
    start = process_time()
    values_of(valuer, honest)
    seconds = process_time() - start
    error = valuer.values_error_.max() / total
    n_fits = valuer.n_evaluations_
    figure = f"{seconds:.0f} CPU s, {n_fits:,} fits, error {100 * error:.2f} %"
    holds = seconds <= 60 and error <= 0.0101
    report("error of 1 % of the total in 60 CPU s", name, figure, holds)


def check_gain(name, folder, draws):
    honest = load(name, folder, 0)
    start = process_time()
    result = manipulation_gain(
        KNNShapleyValuer(),
        honest.X,
        honest.y,
        honest.names,
        party=0,
        X_val=honest.X_val,
        y_val=honest.y_val,
        random_state=0,
    )
    seconds = process_time() - start
    report("14 manipulations, KNN, in 60 s", name, f"{seconds:.1f} CPU s", seconds < 60)
    print(f"       {result.sentence}")
    if name != "digits":
        return

    n_proved = 0
    for seed in range(200):
        rows = np.random.default_rng(seed).permutation(500)[:24]
        valuer = DataShapleyValuer(
            sampler="stratified", max_evaluations=66, adjust=False
        )
        result = manipulation_gain(
            valuer,
            honest.X[rows],
            honest.y[rows],
            np.arange(24) % 8,
            party=0,
            X_val=honest.X_val[:60],
            y_val=honest.y_val[:60],
            attacks={"honest": lambda submission, rng: submission},
            pay="value",
            random_state=seed,
        )
        n_proved += int(result.proved[0])
    figure = f"{n_proved} of 200 draws"
    report("'proved' of the honest rows", name, figure, n_proved <= 10)


PARTS = {
    "faithful": check_faithful,
    "names": check_names,
    "copies": check_copies,
    "twins": check_twins,
    "garbage": check_garbage,
    "error": check_error,
    "gain": check_gain,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", help="folder with adult.npz and covertype.npz")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.parts:
        # The games of this part are random.
        names = ["digits"] if part == "faithful" else options.sets
        for name in names:
            file = Path(options.data or ".") / f"{name}.npz"
            if name != "digits" and not file.exists():
                print(f"{name}: no {file.name} in --data={options.data}: left out")
                continue
            PARTS[part](name, options.data, options.draws)


if __name__ == "__main__":
    main()
