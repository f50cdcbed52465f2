"""
Figures 2 and 3 of private collaborative machine learning
=========================================================

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine
Learning" (NeurIPS 2023): three parties release noisy sufficient statistics; the second
one varies its epsilon (of Renyi order 2), the others keep 0.2. This script prints what
their Figures 2 and 3 draw, the value of party 2 alone, its Shapley value, the value of
its reward and how well its reward predicts, as means over runs with standard errors:

    python examples/reproductions/collaborative_figures.py --data FOLDER --picture
    figures.png

FOLDER holds california_housing.npz and pima.npz, each with arrays X and y; without it
the sets come from OpenML. "syn" needs neither. Every run draws noise anew, nested over
the epsilons.

- syn: 100, 200 and 400 points of 2 features from the prior of the model;
- california: a network of 6 last hidden units trained on 60 % of the rows, which count
  as public; its units, centred and scaled by public rows, are the features of 6,581
  rows of the parties;
- pima: 4 principal components, of 77 rows that count as public, and an intercept; 614
  rows of the parties.

The paper prints no numbers for these figures, and its priors and bounds are in an
appendix that was not at hand: the shapes can be compared, not the heights. What should
be seen: value, Shapley value and reward of party 2 rise with its epsilon, and at the
right end its reward is the posterior of all parties; tempering keeps a reward closer to
that posterior than added noise does, and predicts better, at the same value; where
noise is ignored, a party gains by it. The paper tempers by scaling the statistics
(Appendix E.3), which stands beside equation (1), a power of the likelihood.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BayesianSurpriseScorer,
    GramRelease,
    LogisticRelease,
    RhoShapleyReward,
)
from skvalue.datasets import fetch_benchmark
from skvalue.exceptions import NestedReleasesWarning, PriorOutweighsWarning
from skvalue.privacy import GaussianEvent, SeededNoiseWarning, draw_noise

EPSILONS = [0.004, 0.02, 0.1, 0.5, 2.5, 12.5]
OTHERS = 0.2
RHO = 0.2
RHOS = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0]  # of Figures 2f and 3d to 3f
CONTROLS = ["temper", "scaled", "noise"]
POWERS = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0]
TAUS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
SHARES = [0.2, 0.3, 0.5]


def load(name, folder):
    if folder is not None:
        data = fetch_benchmark(name, folder)
        return np.asarray(data.X, float), np.asarray(data.y)
    number = {"california_housing": 43939, "pima": 37}[name]
    data = fetch_openml(data_id=number, as_frame=True, parser="auto")
    table = data.data.select_dtypes("number")
    keep = table.notna().all(axis=1)
    y = data.target[keep].to_numpy()
    y = (y == "tested_positive").astype(int) if name == "pima" else y.astype(float)
    return table[keep].to_numpy(float), y


def split(X, y, n_parties):
    """Rows of three parties, and the rest."""
    ends = np.cumsum(np.round(np.array(SHARES) * n_parties).astype(int))
    parts = np.split(np.arange(len(X)), [*ends[:-1], n_parties])
    return [(X[rows], y[rows]) for rows in parts[:3]], (X[parts[3]], y[parts[3]])


def syn(folder):
    """Everything from the model: weights of variance 1/4, noise of variance about
    0.026."""
    a0 = 20.0
    b0 = 0.5
    rng = np.random.default_rng(1)
    precision = b0 / (a0 - 1) / 0.25
    s2 = b0 / rng.gamma(a0)
    w = np.sqrt(s2 / precision) * rng.standard_normal(2)
    X = np.sqrt(0.15) * rng.standard_normal((1700, 2))
    X *= np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    y = np.clip(X @ w + np.sqrt(s2) * rng.standard_normal(len(X)), -1, 1)
    parts = [(X[a:b], y[a:b]) for a, b in [(0, 100), (100, 300), (300, 700)]]
    return (
        parts,
        (X[700:], y[700:]),
        GramRelease(),
        BayesianLinear(precision, a0=a0, b0=b0),
    )


def california(folder):
    """Last hidden units of a network that saw only the public 60 %."""
    X, y = load("california_housing", folder)
    order = np.random.default_rng(0).permutation(len(X))
    X = X[order]
    y = np.log(y[order])
    public = slice(0, int(0.6 * len(X)))
    scaler = StandardScaler().fit(X[public])
    center = y[public].mean()
    scale = 3 * y[public].std()
    X = scaler.transform(X)
    y = (y - center) / scale
    network = MLPRegressor(
        hidden_layer_sizes=(32, 6), activation="tanh", max_iter=60, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # 60 sweeps are enough for features
        network.fit(X[public], y[public])
    H = X
    for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1]):
        H = np.tanh(H @ weights + bias)
    # Whitened and bounded by public rows alone.
    whiten = PCA(whiten=True).fit(H[public])
    H = whiten.transform(H)
    H /= np.quantile(np.linalg.norm(H[public], axis=1), 0.95)
    rest = slice(public.stop, None)
    parts, test = split(H[rest], y[rest], 6581)
    return parts, test, GramRelease(), BayesianLinear(0.1, a0=5.0, b0=0.1)


def pima(folder):
    """Four principal components of public rows, centred and bounded by them."""
    X, y = load("pima", folder)
    order = np.random.default_rng(0).permutation(len(X))
    X = X[order]
    y = y[order]
    public = slice(len(X) - 77, None)
    scaler = StandardScaler().fit(X[public])
    components = PCA(4).fit(scaler.transform(X[public]))
    H = components.transform(scaler.transform(X))
    H /= np.quantile(np.linalg.norm(H[public], axis=1), 0.9)
    parts, test = split(H[: public.start], y[: public.start], 614)
    return parts, test, LogisticRelease(fit_intercept=True), BayesianLogistic(0.1)


SETS = {"syn": syn, "california": california, "pima": pima}


def releases_of(parts, party, run):
    """Releases of parties 1 and 3, and party 2's at every epsilon."""
    seeds = 10 * run + np.arange(3)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", SeededNoiseWarning
        )  # an experiment on public data
        warnings.simplefilter("ignore", NestedReleasesWarning)
        party.set_params(renyi_epsilon=OTHERS)
        fixed = [
            party.set_params(noise_random_state=int(seeds[i])).fit(*parts[i]).release_
            for i in (0, 2)
        ]
        path = party.set_params(noise_random_state=int(seeds[1])).path(
            *parts[1], renyi_epsilons=EPSILONS
        )
    return fixed, path


def trade_off(name, args):
    """One row an epsilon: v_2, phi_2, r_2, v_N, and MNLP of reward, all parties and
    party 2."""
    parts, test, party, model = SETS[name](args.data)
    table = np.empty((args.runs, len(EPSILONS), 7))
    for run in range(args.runs):
        (first, third), path = releases_of(parts, party, run)
        for k, second in enumerate(path):
            scorer = BayesianSurpriseScorer(model, random_state=run).fit(
                [first, second, third]
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # rho is the paper's
                scheme = RhoShapleyReward(RHO, random_state=run).fit(scorer)
                grand = RhoShapleyReward(1e-9, random_state=run).fit(scorer).rewards_[1]
            alone = BayesianSurpriseScorer(model, random_state=run).fit([second])
            alone = RhoShapleyReward(1.0, random_state=run).fit(alone).rewards_[0]
            table[run, k] = (
                scorer.standalone_values_[1],
                scorer.values_[1],
                scheme.attained_rewards_[1],
                scorer.grand_value_,
                scheme.rewards_[1].mnlp(*test),
                grand.mnlp(*test),
                alone.mnlp(*test),
            )
    return table


def controls(name, args):
    """Rewards of equal value by rho: (value, similarity, MNLP) of every control."""
    parts, test, party, model = SETS[name](args.data)
    points = []
    for run in range(args.runs):
        (first, third), path = releases_of(parts, party, run)
        scorer = BayesianSurpriseScorer(model, random_state=run)
        scorer.fit([first, path[EPSILONS.index(0.1)], third])
        for rho in args.rhos:
            cells = []
            for control in CONTROLS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    scheme = RhoShapleyReward(
                        rho, control=control, random_state=run
                    ).fit(scorer)
                least = int(np.argmin(scheme.target_rewards_))
                cells += [
                    scheme.attained_rewards_[least],
                    scheme.similarity_[least],
                    scheme.rewards_[least].mnlp(*test),
                ]
            points.append([rho, *cells])
    return np.array(points)


def by_setting(args):
    """Value of a reward of syn by the power, and by the added noise (runs,
    realizations, TAUS)."""
    parts, _, party, model = syn(args.data)
    powers = []
    noises = []
    for run in range(args.runs):
        (first, third), path = releases_of(parts, party, run)
        releases = [first, path[EPSILONS.index(0.1)], third]
        scorer = BayesianSurpriseScorer(model, random_state=run).fit(releases)
        powers.append([scorer.surprise(temper=power) for power in POWERS])
        noises.append(
            [
                [
                    noised_value(model, releases, tau, 100 * run + realization)
                    for tau in TAUS
                ]
                for realization in range(2)
            ]
        )
    return np.array(powers), np.array(noises)


def noised_value(model, releases, tau, seed):
    """v_N where all releases have more noise, in one direction for all tau."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noised = [
            release.with_noise(
                tau,
                draw_noise(
                    GaussianEvent(1.0),
                    len(release.vector),
                    noise_random_state=10 * seed + i,
                ),
            )
            for i, release in enumerate(releases)
        ]
    scorer = BayesianSurpriseScorer(model, random_state=seed).fit(noised)
    return scorer.grand_value_


def noise_ignored(args):
    """v_2 of syn where noisy statistics are taken for exact ones."""
    parts, _, party, model = syn(args.data)
    model.set_params(noise_aware=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorOutweighsWarning)  # which it is to show
        return np.array(
            [
                [
                    BayesianSurpriseScorer(model, random_state=run)
                    .fit([r])
                    .grand_value_
                    for r in path
                ]
                for run in range(args.runs)
                for path in [releases_of(parts, party, run)[1]]
            ]
        )


def print_table(header, rows):
    """A markdown table with padded cells."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    for row in (header, ["-" * width for width in widths], *rows):
        print(
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(row, widths))
            + " |"
        )
    print(flush=True)


def with_errors(runs):
    """Cells of means over the first axis, with their standard errors."""
    means = runs.mean(axis=0)
    errors = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return [[f"{m:.3f} ({e:.3f})" for m, e in zip(*row)] for row in zip(means, errors)]


def print_trade_off(name, table):
    print(
        f"{name}: party 2 by its epsilon, means over {len(table)} runs (standard "
        f"errors)\n"
    )
    header = ["epsilon_2", "v_2", "phi_2", "r_2", "v_N", "MNLP_r", "MNLP_N", "MNLP_2"]
    means = table.mean(axis=0)
    rows = [
        [f"{epsilon:g}", *cells] for epsilon, cells in zip(EPSILONS, with_errors(table))
    ]
    print_table(header, rows)
    rises = [
        ["v_2", "phi_2", "r_2"][i] for i in range(3) if np.all(np.diff(means[:, i]) > 0)
    ]
    print(f"{name}: strictly increasing: {', '.join(rises) or 'none'}", flush=True)
    print(
        f"{name}: r_2 = v_N at the top: {np.all(table[:, -1, 2] == table[:, -1, 3])}\n"
    )


def print_controls(name, points):
    print(f"{name}: the least rewarded party, epsilon_2 = 0.1, by control\n")
    header = ["rho"]
    for control in CONTROLS:
        header += [f"value, {control}", "similarity", "MNLP"]
    table = by_rho(points)
    rows = [
        [f"{rho:g}", *cells]
        for rho, cells in zip(table[0, :, 0], with_errors(table[:, :, 1:]))
    ]
    print_table(header, rows)
    means = points.mean(axis=0)
    for column, control in ((1, "a power"), (4, "scaling")):
        print(
            f"{name}: {control} is closer than noise: {means[column + 1] > means[8]}, "
            f"and predicts better: {means[column + 2] < means[9]}",
            flush=True,
        )
    print()


def by_rho(points):
    """(runs, rhos, columns)"""
    n_rhos = len(np.unique(points[:, 0]))
    return points.reshape(-1, n_rhos, points.shape[1])


def print_settings(powers, noises):
    print("syn: value of a reward by the power of the likelihood, and by added noise\n")
    print_table(
        ["power", *map(str, POWERS)], [["value", *with_errors(powers[:, None])[0]]]
    )
    print_table(
        ["tau", *map(str, TAUS)], [["value", *with_errors(noises[:, 0][:, None])[0]]]
    )
    for name, falls in (("power", -powers), ("noise", noises.reshape(-1, len(TAUS)))):
        away = (np.diff(falls, axis=1) > 0.05).any(axis=1)
        print(
            f"syn, {name}: a step of more than 0.05 in the wrong direction in "
            f"{away.sum()} of "
            f"{len(away)} draws"
        )
    print(flush=True)


def error_bars(ax, runs, columns, label):
    """Means of two columns over the runs, with one standard error on both sides."""
    x, y = (runs[:, :, column] for column in columns)
    errors = [some.std(axis=0, ddof=1) / np.sqrt(len(some)) for some in (x, y)]
    ax.errorbar(
        x.mean(axis=0), y.mean(axis=0), *errors[::-1], label=label, marker="o", ms=3
    )


def draw(tables, points, settings, path):
    import matplotlib.pyplot as plt

    from skvalue.collaborative import PrivacyTradeOffDisplay

    n_rows = 3 if settings is None else 4
    figure, axes = plt.subplots(
        n_rows,
        max(len(tables), 1 if settings is None else 3),
        layout="constrained",
        figsize=(4.2 * len(tables) if settings is None else 12.6, 3.3 * n_rows),
        squeeze=False,
    )
    for column, (name, table) in zip(axes.T, tables.items()):
        labels = ["$v_2$", r"$\phi_2$", "$r_2$", "$v_N$"]
        curves = {label: table[:, :, i] for i, label in enumerate(labels)}
        PrivacyTradeOffDisplay(EPSILONS, curves, party="party 2").plot(ax=column[0])
        column[0].set_title(name)
        labels = ["reward", "all parties", "party 2 alone"]
        curves = {label: table[:, :, 4 + i] for i, label in enumerate(labels)}
        PrivacyTradeOffDisplay(EPSILONS, curves, party="party 2").plot(ax=column[1])
        column[1].set_ylabel("MNLP")
        for first, label in ((1, "tempered"), (4, "scaled"), (7, "noise added")):
            error_bars(column[2], by_rho(points[name]), (first, first + 2), label)
        column[2].set(xlabel="value of the reward", ylabel="MNLP of the reward")
        column[2].legend()
    if settings is not None:
        powers, noises = settings
        band = np.stack([np.tile(POWERS, (len(powers), 1)), powers], axis=2)
        error_bars(axes[3, 0], band, (0, 1), "syn")
        axes[3, 0].set(
            xscale="log", xlabel=r"power $\kappa$", ylabel="value of the reward"
        )
        for realization in range(2):
            label = f"noise {realization + 1}"
            axes[3, 1].plot(TAUS, noises[0, realization], "o-", ms=3, label=label)
        axes[3, 1].set(
            xscale="log", xlabel=r"added noise $\tau$", ylabel="value of the reward"
        )
        for first, label in ((1, "tempered"), (4, "scaled"), (7, "noise added")):
            error_bars(axes[3, 2], by_rho(points["syn"]), (first, first + 1), label)
        axes[3, 2].set(xlabel="value of the reward", ylabel="similarity")
        for ax in axes[3]:
            ax.legend()
        for ax in axes[:3, len(tables) :].flat:
            ax.set_axis_off()
    figure.savefig(path, dpi=70)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--runs", type=int, default=5, help="draws of all noise, at least 2"
    )
    parser.add_argument(
        "--rhos",
        type=float,
        nargs="+",
        default=RHOS,
        help="exponents of Figures 2f and 3d to 3f",
    )
    parser.add_argument(
        "--only-controls",
        action="store_true",
        help="Figures 2f and 3d to 3f alone",
    )
    parser.add_argument("--picture", metavar="FILE", help="draw Figures 2 and 3")
    args = parser.parse_args()
    if args.runs < 2:
        parser.error(
            f"--runs must be at least 2, for a standard error. Got {args.runs}."
        )
    files = {"california": "california_housing", "pima": "pima"}
    for name in args.sets:
        file = files.get(name)
        if (
            args.data is not None
            and file
            and not (Path(args.data) / f"{file}.npz").is_file()
        ):
            parser.error(f"--data must hold {file}.npz for {name}. Got {args.data!r}.")
    return args


def main():
    args = parse_arguments()
    tables = {}
    points = {}
    settings = None
    for name in args.sets:
        if not args.only_controls:
            tables[name] = trade_off(name, args)
            print_trade_off(name, tables[name])
        points[name] = controls(name, args)
        print_controls(name, points[name])
    if args.only_controls:
        return
    if "syn" in args.sets:
        settings = by_setting(args)
        print_settings(*settings)
        ignored = with_errors(noise_ignored(args)[:, None])[0]
        print(f"syn: v_2 where noise is ignored, by epsilon_2: {', '.join(ignored)}")
    if args.picture:
        draw(tables, points, settings, args.picture)


if __name__ == "__main__":
    main()
