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

import numpy as np
from sklearn.base import clone
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
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, y = X / 16, (y >= 5).astype(int)
    else:
        with np.load(Path(folder) / f"{name}.npz") as arrays:
            X, y, columns = (
                arrays["X"],
                arrays["y"],
                np.flatnonzero(arrays.get("is_cat", [])),
            )
        y = (y == 2).astype(int) if name == "covertype" else y.astype(int)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n]
    X, y = X[order].astype(float), y[order]
    if name != "digits":
        if len(columns):
            codes = OneHotEncoder(sparse_output=False)
            X = make_column_transformer(
                (codes, columns), remainder="passthrough"
            ).fit_transform(X)
        X = StandardScaler().fit(X[n:]).transform(X)
    return Submission(X[:n], y[:n], PARTIES[:n], X[n:], y[n:])


def report(promise, name, figure, holds):
    print(
        f"{'holds' if holds else 'FAILS':6} {name:10} {promise}: {figure}", flush=True
    )


def fitted(valuer, sent):
    """Values of the party, and of the others."""
    valuer.fit(sent.X, sent.y, groups=sent.names, X_val=sent.X_val, y_val=sent.y_val)
    return valuer.values_[valuer.groups_ <= 0], valuer.values_[valuer.groups_ > 0]


def share_of(valuer, sent):
    own, others = fitted(valuer, sent)
    return shares([*own, *others], 1.0)[: len(own)].sum()


def faithful(name, folder, draws):
    """Random games of ten rows in four groups."""
    owner, n, z, worst = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3]), 10, [], 0.0
    for number in range(6):
        table = np.random.default_rng(number).normal(size=2**n).cumsum() / 30
        truth = np.bincount(owner, tabulated_semivalue(table))
        for sampler, seeds in (("exact", 1), ("stratified", 40)):
            for seed in range(seeds):
                design = make_design(
                    sampler, "shapley", n, seed=seed, empty_utility=table[0]
                )
                design.limit = None if sampler == "exact" else 400
                while (masks := design.ask()) is not None:
                    design.tell(table[masks @ (1 << np.arange(n))])
                values, covariance, _ = group_values(design, owner)
                if sampler == "exact":
                    worst = max(worst, np.abs(values - truth).max())
                else:
                    z.append((values - truth) / np.sqrt(np.diag(covariance)))
    z, bound = np.array(z), 3 / np.sqrt(960)
    report(
        "exact sums of row values",
        "random",
        f"largest difference {worst:.1e}",
        worst < 1e-10,
    )
    figure = (
        f"mean {z.mean():.3f} (at most {bound:.3f}), standard deviation {z.std():.2f}"
    )
    report(
        "z of sampled sums",
        "random",
        figure,
        abs(z.mean()) < bound and 0.9 < z.std() < 1.2,
    )


def names(name, folder, draws):
    gains, exact, across, pairs = [], 0.0, [], 0.0
    for seed in range(draws):
        honest, rng = load(name, folder, seed), np.random.default_rng(seed)
        split, two = shells(honest, rng, n=10), shells(honest, rng, n=2)
        valuer = DataShapleyValuer(
            MODEL, group_values="faithful", max_evaluations=4000, random_state=seed
        )
        total = np.concatenate(fitted(valuer, honest)).sum()
        before, error = valuer.values_[0], valuer.values_error_[0]
        exact = max(exact, abs(fitted(valuer, split)[0].sum() - before) / total)
        others = [
            fitted(valuer.set_params(random_state=1000 + 4 * seed + k), split)[0].sum()
            for k in range(4)
        ]
        across.append((np.mean(others) - before) / (np.sqrt(1 + 1 / 4) * error))
        shapley = DataShapleyValuer(MODEL, sampler="exact")
        sampled = DataShapleyValuer(MODEL, sampler="stratified", max_evaluations=6000,
                                    random_state=seed)  # fmt: skip
        gains.append(share_of(sampled, split) / share_of(shapley, honest) - 1)
        banzhaf = DataBanzhafValuer(MODEL, sampler="exact")
        pairs = max(
            pairs, abs(fitted(banzhaf, two)[0].sum() - fitted(banzhaf, honest)[0][0])
        )
    gains = 100 * np.array(gains)
    report(
        "ten names, faithful, same seed",
        name,
        f"{exact:.1e} of the total",
        exact <= 1e-12,
    )
    figure = f"{np.round(across, 1).tolist()} standard errors"
    largest = np.sqrt(np.mean(np.square(across)))
    report("ten names, faithful, four other seeds", name, figure, largest < 2)
    figure = f"gain in share {np.round(gains).astype(int).tolist()} %"
    report("ten names as players gain", name, figure, gains.mean() > 10)
    report("two names, Banzhaf", name, f"{pairs:.1e}", pairs <= 1e-12)


def copying(name, folder, draws):
    exact, beyond = 0.0, []
    for seed in range(draws):
        honest = load(name, folder, seed)
        radius = copy_radius(honest.X_val, honest.y_val, len(honest.y))
        valuer = KNNShapleyValuer(duplicates="quotient", duplicate_radius=radius)
        before, share = np.concatenate(fitted(valuer, honest)), share_of(valuer, honest)
        sent = copies(honest, np.random.default_rng(seed))
        exact = max(
            exact, np.max(np.abs(np.concatenate(fitted(valuer, sent)) / before - 1))
        )
        more = sent.names[500:]
        steps = np.random.default_rng(seed).normal(size=(len(more), honest.X.shape[1]))
        steps *= 1.5 * radius / np.linalg.norm(steps, axis=1, keepdims=True)
        moved = sent._replace(X=np.vstack([honest.X, sent.X[500:] + steps]))
        beyond.append(100 * (share_of(valuer, moved) / share - 1))
    report("exact copies, quotient", name, f"{exact:.1e} relative", exact <= 1e-12)
    figure = f"gain {np.round(beyond).astype(int).tolist()} %"
    report(
        "copies moved by 1.5 radii are paid",
        name,
        figure,
        name != "digits" or min(beyond) > 50,
    )


def twins(name, folder, draws):
    honest, thieves, start = [], [], process_time()
    for seed in range(25 * draws):
        sent, rng = load(name, folder, 100 + seed), np.random.default_rng(seed)
        honest.append(np.nanmax(twin_parties(sent.X, sent.y, sent.names).z))
        if seed < 10:
            sent = stolen(sent, rng, only=True, spacings=1.0)
            thieves.append(np.nanmax(twin_parties(sent.X, sent.y, sent.names).z))
    seconds = (process_time() - start) / (25 * draws + 10)
    figure = f"largest z {max(honest):.1f} in {len(honest)} draws, {seconds:.2f} s each"
    report("honest parties", name, figure, max(honest) < 4.5)
    figure = f"smallest z {min(thieves):.1f} in {len(thieves)} draws"
    report("stolen rows, moved by a spacing", name, figure, min(thieves) > 5)


def released(name, folder, seed):
    """Releases of 200 rows a party, one of garbage, with a Renyi divergence of at most
    4.

    Both classes have equally many rows, and the features are three public components.
    """
    whole = load(name, folder, seed, 800 if name == "digits" else 4000)
    few = [np.flatnonzero(whole.y == label)[:350] for label in (0, 1)]
    public = [np.flatnonzero(whole.y_val == label)[:200] for label in (0, 1)]
    rows, points = np.sort(np.concatenate(few)), np.sort(np.concatenate(public))
    components = PCA(3).fit(whole.X_val[points])
    X, X_val = (
        components.transform(part) for part in (whole.X[rows], whole.X_val[points])
    )
    scale = np.quantile(np.linalg.norm(X_val, axis=1), 0.95)
    owner = np.random.default_rng(seed).permutation(len(rows)) % 5
    sent = Submission(
        X / scale, whole.y[rows], owner, X_val / scale, whole.y_val[points]
    )
    sent = garbage(sent, np.random.default_rng(seed))
    party = LogisticRelease(renyi_epsilon=4.0)
    releases = {
        name: clone(party)
        .fit(sent.X[sent.names == name], sent.y[sent.names == name])
        .release_
        for name in range(5)
    }
    norms = np.linalg.norm(sent.X_val, axis=1, keepdims=True)
    return releases, sent.X_val / np.maximum(norms, 1.0), sent.y_val


def garbage_paid(name, folder, draws):
    rules = (
        "Shapley, parties play",
        "Banzhaf, parties play",
        "predictive value",
        "predictive, Banzhaf",
    )
    paid = {rule: [] for rule in rules}
    for seed in range(4 * draws):
        sent = garbage(load(name, folder, seed), np.random.default_rng(seed))
        for rule, cls in zip(rules, (DataShapleyValuer, DataBanzhafValuer)):
            own, others = fitted(
                cls(MODEL, sampler="exact", empty_utility="prior"), sent
            )
            paid[rule].append([payments(own, 1.0)[0], payments(others, 1.0).mean()])
        releases, X_val, y_val = released(name, folder, seed)
        for rule, semivalue in zip(rules[2:], ("shapley", "banzhaf")):
            scorer = PredictiveValueScorer(
                BayesianLogistic(precision=0.3), semivalue=semivalue, n_particles=200, min_ess=30,
                random_state=seed,
            )  # fmt: skip
            values = payments(
                scorer.fit(releases, X_val=X_val, y_val=y_val).values_, 1.0
            )
            paid[rule].append([values[0], values[1:].mean()])
    for rule, found in paid.items():
        own, others = np.array(found).T
        error = 100 * own.std(ddof=1) / np.sqrt(len(own)) / others.mean()
        figure = f"{100 * own.mean() / others.mean():.0f} % of an honest party (error {error:.0f})"
        report(
            f"garbage, {rule}",
            name,
            figure,
            100 * own.mean() / others.mean() <= 2 * error,
        )


def error(name, folder, draws):
    sent = load(name, folder, 0)
    model = LogisticRegression().fit(sent.X, sent.y)
    total = model.score(sent.X_val, sent.y_val) - 0.5
    start = process_time()
    valuer = DataShapleyValuer(
        MODEL,
        group_values="faithful",
        tol=0.01 * total,
        max_evaluations=120_000,
        random_state=0,
    )
    fitted(valuer, sent)
    seconds, reached = process_time() - start, valuer.values_error_.max() / total
    figure = f"{seconds:.0f} CPU s, {valuer.n_evaluations_:,} fits, error {100 * reached:.2f} %"
    report(
        "error of 1 % of the total in 60 CPU s",
        name,
        figure,
        seconds <= 60 and reached <= 0.0101,
    )


def gain(name, folder, draws):
    sent, start = load(name, folder, 0), process_time()
    result = manipulation_gain(
        KNNShapleyValuer(), sent.X, sent.y, sent.names, party=0, X_val=sent.X_val,
        y_val=sent.y_val, random_state=0,
    )  # fmt: skip
    seconds = process_time() - start
    report("14 manipulations, KNN, in 60 s", name, f"{seconds:.1f} CPU s", seconds < 60)
    print(f"       {result.sentence}")
    if name != "digits":
        return
    proved, honest = 0, {"honest": lambda sent, rng: sent}
    for seed in range(200):
        rows = np.random.default_rng(seed).permutation(500)
        valuer = DataShapleyValuer(
            sampler="stratified", max_evaluations=66, adjust=False
        )
        result = manipulation_gain(
            valuer, sent.X[rows[:24]], sent.y[rows[:24]], np.arange(24) % 8, party=0,
            X_val=sent.X_val[:60], y_val=sent.y_val[:60], attacks=honest, pay="value",
            random_state=seed,
        )  # fmt: skip
        proved += int(result.proved[0])
    report("'proved' of the honest rows", name, f"{proved} of 200 draws", proved <= 10)


PARTS = {
    "faithful": faithful, "names": names, "copies": copying, "twins": twins,
    "garbage": garbage_paid, "error": error, "gain": gain,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", help="folder with adult.npz and covertype.npz")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.parts:
        for name in options.sets if part != "faithful" else ["digits"]:
            file = Path(options.data or ".") / f"{name}.npz"
            if name != "digits" and not file.exists():
                print(f"{name}: no {file.name} in --data={options.data}: left out")
                continue
            PARTS[part](name, options.data, options.draws)


if __name__ == "__main__":
    main()
