"""
Figure 1 and the rank correlations of the Layered Shapley paper
===============================================================

Watson, Andreeva, Yang and Sarkar, "Differentially Private Shapley Values for Data
Evaluation" (2022), Section 4: the accuracy of a logistic regression as rows of high or
low value go, and the rank correlation of private with exact values, on 100 rows of
Adult, of Diabetes (PIMA) and of 50 standard normal features, with alpha = beta = 0.05,
lambda = 1 and epsilon = 1. This script prints both, mean (standard deviation) over
draws of the rows:

    python examples/reproductions/layered_figures.py --data FOLDER

Features are scaled to (0, 1) with all rows, as in the paper; an epsilon says nothing of
that. A utility is minus the logistic loss of 500 held-out rows (Diabetes: 300), curves
are of as many others. "Algorithm 1" has the printed numbers of coalitions with c = 1/2
(the stability for L = kappa = lambda = 1), no layer 0, and coalitions that are worse
than guessing count nothing. "All coalitions" has them and layer 0, and the numbers that
Hoeffding's inequality asks for. Synthetic labels follow Ghorbani and Zou (2019), whose
code the paper extends: a logistic function of 5 features, steeper until a model of 100
rows has an accuracy of 0.7.

The paper leaves open how Adult's categories are coded (here: one column each), which
lambda scikit-learn is given (here: C = 1), kappa, and what is released. So the first
table of correlations tries every reading of

- the utility: minus the loss, or the accuracy, where guessing is to predict the larger
  class;
- whether coalitions that are worse than guessing count;
- the value: the mean of the layers, as in Algorithm 1, or their sum;
- the noise: as in Theorem 3.5, or as in Appendix D; with p as printed (17 and 19 at
  this setting, for a probability), or 1 at most;
- kappa: 1, or the largest norm of a row;
- whether "an average over 5 runs" is one of correlations, or of the private values.

What the calibrations guarantee for n = 100 is in the user guide.
"""

import argparse
import json
import math
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import fetch_openml
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import minmax_scale

from skvalue import DataShapleyValuer, LayeredShapleyValuer
from skvalue.games import ModelGame
from skvalue.inspection import value_removal_curve
from skvalue.privacy import LaplaceEvent, SelfComposedEvent, get_epsilon
from skvalue.samplers import distinct_subsets

SETS = ["adult", "diabetes", "synthetic"]
FILES = {"adult": "adult.npz", "diabetes": "pima.npz"}
PUBLISHED = {"adult": 0.61, "diabetes": 0.89}
N = 100
ACCURACY = 0.05
FAILURE = 0.05
C = 0.5
RUNS = 5
FRACTIONS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5]
LAYERS = 3
DELTA = 1e-5
VALUES = ("mean", "sum")
NOISES = tuple(product(("Theorem 3.5", "Appendix D"), (False, True)))
LITERAL = "mean", ("Appendix D", False), "data", 1
NEAREST = "sum", ("Appendix D", True), "data", RUNS


def load(name, folder, rng):
    """Features in (0, 1), labels, and what public knowledge says of the features'
    means."""
    if name == "synthetic":
        X = rng.standard_normal((2000, 50))
        dims = rng.choice(50, 5, replace=False)
        score = X[:, dims] @ rng.standard_normal(5)
        score = score / score.std()
        steepness = 1.0
        reached = 0.0
        while reached < 0.7:
            y = (rng.random(2000) < 1 / (1 + np.exp(-steepness * score))).astype(int)
            reached = LogisticRegression().fit(X[:N], y[:N]).score(X[N:], y[N:])
            steepness *= 1.1
        return minmax_scale(X), y, np.full(50, 0.5)
    if folder is not None:
        with np.load(Path(folder) / FILES[name]) as file:
            arrays = dict(file)
        X = arrays["X"].astype(np.float64)
        y = arrays["y"]
        categories = []
        if name == "adult":
            assert len(json.loads(str(arrays["categories"]))) == arrays["is_cat"].sum()
            categories = [column.astype(int) for column in X[:, arrays["is_cat"]].T]
            X = X[:, ~arrays["is_cat"]]
    else:
        which = (
            dict(name="adult", version=2)
            if name == "adult"
            else dict(name=name, version=1)
        )
        bunch = fetch_openml(**which, as_frame=True)
        y = np.unique(bunch.target, return_inverse=True)[1]
        X = bunch.data.select_dtypes("number").to_numpy(np.float64)
        codes = [
            column.astype("category")
            .cat.codes.to_numpy()
            .astype(int)  # -1 where missing
            for _, column in bunch.data.select_dtypes(exclude="number").items()
        ]
        categories = [column - column.min() for column in codes]
    onehot = [np.eye(codes.max() + 1)[codes] for codes in categories]
    centre = [
        np.full(X.shape[1], 0.5),
        *(np.full(Z.shape[1], 1 / Z.shape[1]) for Z in onehot),
    ]
    return np.hstack([minmax_scale(X), *onehot]), y, np.concatenate(centre)


def problem(name, folder, seed):
    rng = np.random.default_rng(seed)
    X, y, centre = load(name, folder, rng)
    order = rng.permutation(len(X))
    held_out = 300 if name == "diabetes" else 500
    parts = np.split(order[: N + 2 * held_out], [N, N + held_out])
    (X, y), (X_val, y_val), (X_test, y_test) = ((X[part], y[part]) for part in parts)
    return X, y, dict(X_val=X_val, y_val=y_val), (X_test, y_test), centre


def algorithm_1(X, y, points, scoring, seed):
    """Values of Algorithm 1: of all its coalitions, and of those no worse than
    guessing."""
    y_val = points["y_val"]
    game = ModelGame(
        LogisticRegression(), X, y, *points.values(), scoring=scoring, random_state=0
    )
    guessing = -math.log(2) if scoring else max(y_val.mean(), 1 - y_val.mean())
    rng = np.random.default_rng(seed)
    values = np.zeros((2, N))
    for k in range(1, N):
        wanted = C**2 / (2 * ACCURACY**2 * k**2) * math.log(2 * N / FAILURE)
        count = min(wanted, math.comb(N - 1, k))
        sets = distinct_subsets(
            rng, N, k + 1, N * count / (k + 1)
        )  # each serves its k + 1 rows
        if len(sets) == 0:
            continue
        masks = np.zeros(
            (len(sets), k + 2, N), dtype=bool
        )  # the set, and it without each member
        np.put_along_axis(masks, sets[:, None], True, axis=2)
        row, place = np.indices(sets.shape)
        masks[row, place + 1, sets] = False
        found = game.utility(masks.reshape(-1, N)).reshape(len(sets), k + 2)
        for kept, least in enumerate((-np.inf, guessing)):
            gains = np.where(found[:, 1:] >= least, found[:, :1] - found[:, 1:], 0.0)
            values[kept] += np.bincount(sets.ravel(), gains.ravel(), N) / (count * N)
    return values


def values_without_noise(X, y, points, seed):
    """Values by each method, of the game of the paper."""
    loss = dict(scoring="neg_log_loss", random_state=seed)
    layered = LayeredShapleyValuer(
        LogisticRegression(),
        bound=C,
        tol=ACCURACY,
        confidence=1 - FAILURE,
        allocation="bound",
        **loss,
    )
    orders = DataShapleyValuer(sampler="permutation", max_evaluations=20_000, **loss)
    return {
        "Algorithm 1": algorithm_1(X, y, points, "neg_log_loss", seed)[1],
        "all coalitions": layered.fit(X, y, **points).values_,
        "Monte Carlo (orders)": orders.fit(X, y, **points).values_,
    }


def rank_correlations(values, draws):
    """Spearman's correlation of values, (N,), with each row of draws."""
    of_values, of_draws = (rankdata(a, axis=-1) - (N + 1) / 2 for a in (values, draws))
    norms = np.sqrt((of_values**2).sum() * (of_draws**2).sum(axis=1))
    return of_draws @ of_values / np.where(norms > 0, norms, 1.0)


def published_scale(
    n,
    epsilon,
    *,
    l2=1.0,
    kappa=1.0,
    lipschitz=1.0,
    bound=1.0,
    accuracy=0.05,
    failure=0.05,
    clamp=False,
):
    """Scale of Laplace noise of the paper's Appendix D, of which no guarantee is known.

    It replaces the formula of Theorem 3.5. It needs twice the bound of a row left out
    for one replaced, a number of coalitions that is not random, and a penalty that
    grows with coalitions; and p, the probability that a row is used, sums k / n in
    place of k / (n - 1): it may be 19, unless ``clamp`` says that it is at most 1.
    """
    p = bound**2 * math.log(n) / (2 * accuracy**2 * n) * math.log(2 * n / failure)
    p = min(p, 1.0) if clamp else p
    total = (1 / np.arange(1, n)).sum()
    steep = (lipschitz * kappa) ** 2 / (n * l2)
    return float(steep * total / math.log1p(math.expm1(epsilon) / p))


def scale_of(noise, kappa):
    """Scale of Laplace noise, in a formula and with the probability p as printed or 1
    at most."""
    formula, clamp = noise
    if formula == "Appendix D":
        return published_scale(
            N,
            1.0,
            kappa=kappa,
            bound=C,
            accuracy=ACCURACY,
            failure=FAILURE,
            clamp=clamp,
        )
    p = C**2 * math.log(N) / (2 * ACCURACY**2 * N) * math.log(N / FAILURE)
    k = np.arange(1.0, N)
    fraction = (1 / k**3).sum() / (
        1 / k**2
    ).sum()  # sum of m_k / k over the sum m of m_k
    return (
        kappa**2
        * fraction
        / math.log1p(math.expm1(1.0) / (min(p, 1.0) if clamp else p))
    )


def readings(of_all, kappa, rng, n_draws):
    """{(utility, coalitions, value, noise, kappa, runs): rank correlation, noise over
    values}."""
    found = {}
    for (utility, both), (kept, counted) in product(
        of_all.items(), enumerate(("all", "kept"))
    ):
        for value, noise, norm, runs in product(
            VALUES, NOISES, ("1", "data"), (1, RUNS)
        ):
            scale = scale_of(noise, kappa if norm == "data" else 1.0)
            exact = both[kept] * (N if value == "sum" else 1)
            private = exact + rng.laplace(0, scale, (n_draws, runs, N)).mean(axis=1)
            key = utility, counted, value, noise, norm, runs
            ratio = scale * math.sqrt(2 / runs) / exact.std()
            found[key] = rank_correlations(exact, private).mean(), ratio
    return found


def proved(X, y, points, centre, seed, rng, n_draws):
    """{name: (exact values, draws of private ones, noise)} of the game with proved
    bounds."""
    game = dict(
        l2=1.0, max_norm=1.0, fit_intercept=False, n_layers=LAYERS, random_state=seed
    )
    points = dict(X_val=points["X_val"] - centre, y_val=points["y_val"])
    exact = LayeredShapleyValuer(**game, max_evaluations=60_000)
    exact = exact.fit(X - centre, y, **points).values_
    one, every = (
        LayeredShapleyValuer(**game, epsilon=1.0, delta=DELTA, release=release)
        .fit(X - centre, y, **points)
        .noise_scale_
        for release in ("query", "all")
    )
    return {
        "proved, one value": (exact, exact + rng.laplace(0, one, (n_draws, N)), one),
        "proved, all values": (
            exact,
            exact + rng.normal(0, every, (n_draws, N)),
            every,
        ),
    }


def curves(X, y, values, test, seed):
    """{(method, first): accuracies as rows go}, and those of random orders."""
    found = {}
    for (method, of_rows), first in product(values.items(), ("highest", "lowest")):
        curve = value_removal_curve(
            LogisticRegression(),
            X,
            y,
            of_rows,
            *test,
            first=first,
            fractions=FRACTIONS,
            n_repeats=1 if found else 10,
            baseline=not found,
            random_state=seed,
        )
        if not found:
            found["random", "highest"] = found["random", "lowest"] = (
                curve.random_scores.mean(0)
            )
        found[method, first] = curve.scores[0]
    return found


def print_curves(name, found, lowest):
    print(
        f"\n{name}: accuracy as rows go, in percent of the rows; and its mean less "
        f"that of random"
    )
    print(f"{'':36}" + "".join(f"{100 * f:>8.0f}" for f in FRACTIONS))
    for first in ("highest", "lowest"):
        random = np.array(found["random", first])
        for method, scores in (
            (m, np.array(s)) for (m, f), s in found.items() if f == first
        ):
            gaps = (scores - random).mean(axis=1)
            cells = "".join(f"{mean:8.3f}" for mean in scores.mean(axis=0))
            error = gaps.std(ddof=1) / math.sqrt(len(gaps))
            print(
                f"{method + ', ' + first:36}{cells}   {gaps.mean():+.3f} +- {error:.3f}"
            )
    small, of_lowest, norm = np.mean(lowest, axis=0)
    print(
        f"The smaller class has {small:.2f} of the rows, and {of_lowest:.2f} of the "
        f"lowest 30."
    )
    print(f"The largest squared norm of a row is {norm:.1f}.")


def print_readings(found, sets, n_nearest):
    """The readings, the nearest to the published correlations first."""
    keys = list(next(iter(found.values()))[0])
    runs_of = {
        key: np.array([[run[key] for run in found[s]] for s in sets]) for key in keys
    }
    means = {key: runs[:, :, 0].mean(axis=1) for key, runs in runs_of.items()}
    known = [(i, PUBLISHED[s]) for i, s in enumerate(sets) if s in PUBLISHED]
    gap = {
        key: sum(abs(row[i] - rho) for i, rho in known) for key, row in means.items()
    }
    literal = ("loss", "kept", *LITERAL)
    nearest = ("loss", "kept", *NEAREST)
    path = [
        literal,
        (*literal[:3], ("Appendix D", True), *literal[4:]),
        (*nearest[:3], ("Appendix D", False), *nearest[4:5], 1),
        (*nearest[:5], 1),
        nearest,
    ]
    near = sorted(keys, key=gap.get)[:n_nearest]
    for title, chosen in (
        ("step by step", path),
        (f"the nearest of {len(keys)}", near),
    ):
        print(
            f"\nRank correlation of published private values with exact ones: {title}"
        )
        head = "".join(f"{s:>12} (sd) ratio" for s in sets)
        print(f"{'utility  counted value noise':43} kappa runs{head}")
        for key in chosen:
            utility, counted, value, (formula, clamp), norm, runs = key
            noise = formula + (", p <= 1" if clamp else "")
            spread = runs_of[key][:, :, 0].std(axis=1, ddof=1)
            ratio = runs_of[key][:, :, 1].mean(axis=1)
            cells = "".join(
                f"{rho:10.2f} ({sd:.2f}) {of:6.3g}"
                for rho, sd, of in zip(means[key], spread, ratio)
            )
            print(
                f"{utility:8} {counted:7} {value:5} {noise:20} {norm:>5} "
                f"{runs:4}{cells}"
            )
    print("ratio: the noise's standard deviation over that of the values")
    published = "".join(f"{PUBLISHED.get(s, '-'):>10}{'':14}" for s in sets)
    print(f"{'the paper':53}{published}".rstrip())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument(
        "--seeds", type=int, default=5, help="draws of the rows, at least 2"
    )
    parser.add_argument("--draws", type=int, default=20, help="draws of the noise")
    parser.add_argument("--nearest", type=int, default=8, help="readings to print")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error(
            f"--seeds must be at least 2, for a standard error. Got {args.seeds}."
        )
    for name in args.sets if args.data else ():
        if name in FILES and not (Path(args.data) / FILES[name]).is_file():
            parser.error(
                f"--data must hold {FILES[name]} for {name}. Got {args.data!r}."
            )
    warnings.simplefilter("ignore")
    of_readings = {}
    of_proofs = {}
    for name in args.sets:
        found = {}
        lowest = []
        for seed in range(args.seeds):
            X, y, points, test, centre = problem(name, args.data, seed)
            rng = np.random.default_rng(seed)
            kappa = np.linalg.norm(X, axis=1).max()
            values = values_without_noise(X, y, points, seed)
            algorithm = values["Algorithm 1"]
            of_all = {
                "loss": algorithm_1(X, y, points, "neg_log_loss", seed),
                "accuracy": algorithm_1(X, y, points, None, seed),
            }
            of_readings.setdefault(name, []).append(
                readings(of_all, kappa, rng, args.draws)
            )
            values["accuracy as utility"] = of_all["accuracy"][1]
            for label, (value, noise, _, runs) in (
                ("literal", LITERAL),
                ("nearest", NEAREST),
            ):
                scale = scale_of(noise, kappa) / (N if value == "sum" else 1)
                drawn = rng.laplace(0, scale, (runs, N)).mean(axis=0)
                values[f"private, {label} reading"] = algorithm + drawn
            of_set = proved(X, y, points, centre, seed, rng, args.draws)
            for label, (exact, draws, scale) in of_set.items():
                row = rank_correlations(exact, draws).mean(), scale, exact.std()
                of_proofs.setdefault((name, label), []).append(row)
                values[f"private, {label}"] = draws[0]
            for key, scores in curves(X, y, values, test, seed).items():
                found.setdefault(key, []).append(scores)
            smaller = y == (y.mean() < 0.5)
            of_lowest = smaller[np.argsort(algorithm)[:30]].mean()
            lowest.append((smaller.mean(), of_lowest, kappa**2))
        print_curves(name, found, lowest)
    print_readings(of_readings, args.sets, args.nearest)
    print("\nRank correlation of proved private values with exact ones, layers 0 to 3")
    print(
        f"{'set':10} {'for epsilon 1':19} {'correlation':>14} {'noise':>9} "
        f"{'values':>9}"
    )
    for (name, label), rows in of_proofs.items():
        (rho, scale, spread), sd = (
            np.mean(rows, axis=0),
            np.std(rows, axis=0, ddof=1)[0],
        )
        print(f"{name:10} {label:19} {rho:6.2f} ({sd:.2f}) {scale:9.2g} {spread:9.2g}")
    each = get_epsilon(SelfComposedEvent(LaplaceEvent(1.0), N - 1), DELTA)
    print(
        f"\nAll values at epsilon 1 each, for their owners together: {each:.1f} at "
        f"{DELTA:g}."
    )


if __name__ == "__main__":
    main()
