"""
Figures 1 and 2 of the paper on data values from private gradients
==================================================================

"Data Value Estimation on Private Gradients": closeness of what a party releases to its
clean gradients, on simulated ones (Figure 1), and the uncertainty of values against the
number of permutations (Figure 2, whose numbers gradient_tables.py prints). This script
prints Figure 1:

    python examples/reproductions/gradient_figures.py

`plot_closeness` and `plot_uncertainty` draw them, where matplotlib is installed.
"""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state
from tknn_tables import print_table

from skvalue.derivatives import newest_weights, optimal_weights
from skvalue.inspection import mean_adjusted_variance

NOISES = ("iid", "correlated", "optimal")
COLORS = ("#30638e", "#d1495b", "#edae49", "#8d8d8d", "#00798c")


def own_weights(noise, n_permutations, noise_variance=None, gradient_variance=None):
    """Weight of a party's newest release in what is stepped along, by permutation."""
    if noise == "optimal":
        return optimal_weights(n_permutations, noise_variance, gradient_variance)
    return newest_weights(noise, n_permutations)


def release_closeness(
    n_permutations=100,
    *,
    noise="correlated",
    n_parties=50,
    n_parameters=20,
    noise_multiplier=1.0,
    gradient_sd=0.05,
    random_state=None,
):
    """Figure 1: how close what is stepped along is to the clean gradient, on simulated
    gradients.

    A party's gradients over permutations are a direction of its own plus independent
    normal noise, clipped at norm one; noise on each release has the standard deviation
    ``sqrt(n_permutations) * noise_multiplier``. Averaging over permutations takes noise
    away, and what changes from permutation to permutation with it. Returned are the
    mean over parties of the cosine and of the L2 distance between what is stepped along
    and the clean gradient, one number a permutation.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    scale = np.sqrt(n_permutations) * noise_multiplier
    weights = own_weights(noise, n_permutations, scale**2, gradient_sd**2)
    shape = n_parties, n_parameters
    direction = rng.normal(size=shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    past = np.zeros(shape)
    found = np.empty((2, n_permutations))
    for t, weight in enumerate(weights):
        clean = direction + gradient_sd * rng.normal(size=shape)
        clean /= np.maximum(np.linalg.norm(clean, axis=1, keepdims=True), 1.0)
        release = clean + scale * rng.normal(size=shape)
        step = (1 - weight) * past + weight * release
        past += (release - past) / (t + 1)
        sizes = np.linalg.norm(clean, axis=1) * np.linalg.norm(step, axis=1)
        found[:, t] = (
            np.mean((clean * step).sum(axis=1) / sizes),
            np.mean(np.linalg.norm(clean - step, axis=1)),
        )
    return Bunch(cosine=found[0], distance=found[1])


def uncertainty_curve(
    valuer,
    X,
    y,
    *,
    n_permutations,
    noises,
    n_repeats=1,
    random_state=None,
    **fit_params,
):
    """Figure 2: uncertainty and mean of values against the number of permutations.

    ``noises`` has the valuer's parameters by the name of a curve. At a fixed guarantee
    noise on every release grows with the number of releases: independent noise makes
    values worse with every permutation, noise that is averaged does not. Returned are
    dicts by name of arrays of shape (n_repeats, n_points); fits of a repeat have the
    same seed.
    """
    rng = check_random_state(random_state)
    counts = np.asarray(n_permutations)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_repeats)
    shape = n_repeats, len(counts)
    found = Bunch(n_permutations=counts, uncertainty={}, mean_value={})
    for name, parameters in noises.items():
        found.uncertainty[name], found.mean_value[name] = (
            np.empty(shape),
            np.empty(shape),
        )
        for place in np.ndindex(shape):
            fitted = (
                clone(valuer)
                .set_params(
                    n_permutations=int(counts[place[1]]),
                    random_state=int(seeds[place[0]]),
                    **parameters,
                )
                .fit(X, y, **fit_params)
            )
            found.uncertainty[name][place] = mean_adjusted_variance(
                fitted.values_, fitted.values_error_
            )
            found.mean_value[name][place] = fitted.values_.mean()
    return found


def plot_closeness(ax, curves, what="cosine"):
    """Lines of `release_closeness` by name; what: "cosine" or "distance"."""
    for (name, curve), color in zip(curves.items(), COLORS):
        ax.plot(
            np.arange(1, len(curve[what]) + 1), curve[what], color=color, label=name
        )
    ax.set(xlabel="permutation", ylabel=f"{what} to the clean gradient")
    if what == "distance":
        ax.set_yscale("log")
    ax.legend(frameon=False)


def plot_uncertainty(ax, curves, what="uncertainty"):
    """Means over repeats and their range; what: "uncertainty" or "mean_value"."""
    for (name, numbers), color in zip(curves[what].items(), COLORS):
        ax.plot(
            curves.n_permutations, numbers.mean(axis=0), "o-", color=color, label=name
        )
        low = numbers.min(axis=0)
        high = numbers.max(axis=0)
        ax.fill_between(curves.n_permutations, low, high, color=color, alpha=0.2, lw=0)
    ax.set(xlabel="permutations, each with a release")
    if what == "uncertainty":
        ax.set(yscale="log", ylabel="variance of a value / its size")
    else:
        ax.set(ylabel="mean value")
    ax.legend(frameon=False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--permutations", type=int, default=200)
    args = parser.parse_args()
    k = args.permutations
    at = sorted({0, k // 10, k // 2, k - 1})
    curves = {
        noise: release_closeness(k, noise=noise, noise_multiplier=0.1, random_state=0)
        for noise in NOISES
    }
    for what in ("cosine", "distance"):
        print(f"\nFigure 1, simulated gradients, k={k}: {what} to the clean gradient\n")
        rows = [
            [noise, *(f"{curves[noise][what][t]:.3f}" for t in at)] for noise in NOISES
        ]
        print_table(["noise", *(f"permutation {t + 1}" for t in at)], rows)


if __name__ == "__main__":
    main()
