"""
Errata of the papers, checked
=============================

Prints what is behind every erratum of the user guide ("Errata of the papers"), by a few
lines of arithmetic, enumeration or simulation. It needs no data and half a minute, most
of it for T6:

    python examples/reproductions/errata.py
    python examples/reproductions/errata.py T2 L7

Every line starts with the label of the erratum.
"""

import argparse
import math
from fractions import Fraction
from itertools import product

import numpy as np
from layered_figures import published_scale
from private_knn import value_sensitivity
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.collaborative import GramRelease
from skvalue.privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    calibrate,
    calibrate_gaussian,
    epsilon_from_mu,
    get_epsilon,
    mu_from_epsilon,
)
from skvalue.rewards import largest_rho, rho_targets
from skvalue.semivalues import enumerate_semivalue
from skvalue.valuers import public_baseline
from skvalue.valuers.tknn_shapley import neighbour_values

DELTA = 1e-5

# Threshold-KNN-Shapley ----------------------------------------------------------------


def T1():
    """Noise of sqrt(3 log(1.25 / delta)) / epsilon, without the factor sqrt 2, on
    counts."""
    for epsilon in (0.1, 0.5, 1.0, 5.0, 10.0):
        mu = epsilon / math.sqrt(math.log(1.25 / DELTA))
        three = epsilon_from_mu(mu, DELTA)
        two = epsilon_from_mu(mu * math.sqrt(2 / 3), DELTA)
        yield (
            f"stated epsilon {epsilon:g}: {three:.3f} for three counts, {two:.3f} "
            f"for two"
        )


def T2():
    """A2 of Theorem 13 in rationals, for any number n of rows, c of them in the
    ball."""

    def a2(n, c):
        brackets = (
            1 - Fraction(math.comb(n - 1 - k, c), math.comb(n, c)) for k in range(n)
        )
        return (
            sum(Fraction(1, k + 1) * bracket for k, bracket in enumerate(brackets)) - 1
        )

    cases = [(n, c) for n in range(1, 26) for c in range(1, n + 1)]
    equal = sum(
        a2(n, c) == sum(Fraction(1, j) for j in range(2, c + 1)) for n, c in cases
    )
    yield (
        f"A2 is a harmonic number less 1 in {equal} of {len(cases)} cases, c <= n <= 25"
    )


def T3():
    """Squared L2 sensitivities, by all kinds of rows: outside, or inside with or
    without match."""
    kinds = {
        "rows, in the ball, with the label": [(1, 0, 0), (1, 1, 1), (1, 1, 0)],
        "in the ball, with the label": [(0, 0), (1, 1), (1, 0)],
        "with the label, with another": [(0, 0), (1, 0), (0, 1)],
    }
    for counts, terms in kinds.items():
        terms = np.array(terms)
        added = (terms**2).sum(axis=1).max()
        replaced = max(((a - b) ** 2).sum() for a, b in product(terms, terms))
        yield (
            f"counts ({counts}): {added} for an added row, {replaced} for a replaced "
            f"one"
        )


def T4():
    """1,000 counts with noise 1, each on a fresh Poisson sample: two neighbouring
    relations."""
    for relation in ("add_remove", "replace"):
        once = PoissonSampledEvent(
            GaussianEvent(1.0, 1.0, "add_remove"), 0.01, relation
        )
        epsilon = get_epsilon(SelfComposedEvent(once, 1000), DELTA)
        yield f"1,000 points, rate 0.01, noise 1, {relation}: epsilon {epsilon:.2f}"


def T5():
    """200 counts with noise 1: a fresh sample for each, and one sample for all."""
    fresh = PoissonSampledEvent(GaussianEvent(1.0, 1.0, "add_remove"), 0.01)
    one = PoissonSampledEvent(GaussianEvent(1.0, math.sqrt(200), "add_remove"), 0.01)
    epsilon = get_epsilon(SelfComposedEvent(fresh, 200), DELTA)
    yield f"200 points, a sample for each: epsilon {epsilon:.2f}"
    yield f"200 points, one sample for all: epsilon {get_epsilon(one, DELTA):.0f}"


def T6():
    """What a sample does: to the error at epsilon 1 of a count of 50 rows, if it is
    rescaled (which the paper does not do), and to values without any noise."""
    for n_points in (100, 1000):
        exact = calibrate_gaussian(1.0, DELTA, math.sqrt(n_points), "add_remove").scale
        found = [f"{exact:.1f} without samples"]
        for rate in (0.1, 0.01):

            def event(scale, rate=rate, n_points=n_points):
                once = PoissonSampledEvent(
                    GaussianEvent(scale, 1.0, "add_remove"), rate
                )
                return SelfComposedEvent(once, n_points)

            scale = calibrate(event, 1.0, DELTA, tol=0.01).event.event.scale
            error = math.hypot(scale / rate, math.sqrt(50 * (1 - rate) / rate))
            found.append(f"{error:.1f} at rate {rate:g}")
        yield f"{n_points} points: standard error {', '.join(found)}"

    # Values of rows that join samples of these counts, on average over the samples.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    X_val = rng.normal(size=(100, 4))
    y, y_val = (rows[:, 0] + rng.normal(size=len(rows)) > 0 for rows in (X, X_val))
    valuer = TKNNShapleyValuer(1.0, metric="euclidean")
    exact = valuer.fit(X, y.astype(int), X_val=X_val, y_val=y_val.astype(int)).values_
    baseline = public_baseline(
        X, y.astype(int), X_val, y_val.astype(int), 1.0, "euclidean"
    )
    inside = np.linalg.norm(X[:, None] - X_val, axis=2) <= 1.0
    is_same = y[:, None] == y_val
    same = (inside & is_same).sum(axis=0)
    other = (inside & ~is_same).sum(axis=0)
    for rate in (0.1, 0.01):
        samples = (
            rng.binomial(same, rate, (200, 100)),
            rng.binomial(other, rate, (200, 100)),
        )
        worth = neighbour_values(*samples, 2, joins=True)
        of_same, of_other = (part.mean(axis=0) for part in worth)
        values = (inside * np.where(is_same, of_same, of_other)).mean(axis=1)
        errors = [
            np.abs(values / np.abs(values).sum() - part / np.abs(part).sum()).sum()
            for part in (exact, baseline)
        ]
        yield (
            f"rate {rate:g}, no noise: L1 distance from exact values {errors[0]:.2f}, "
            f"from the row against public points {errors[1]:.2f}, each scaled to norm 1"
        )


def T7():
    """The value of a neighbour is never 0, whatever the counts; that of any other row
    always is."""
    same, other = np.meshgrid(np.arange(1, 301), np.arange(1, 301))
    least = min(np.abs(values).min() for values in neighbour_values(same, other, 2))
    yield (
        f"smallest value of a neighbour, counts up to 300: {least:.1e}; of a row "
        f"outside: 0"
    )


def T8():
    """Noise N(0, 1 / (K (K + 1))) on a value that moves by up to 1 / (K (K + 1)); no
    epsilon."""
    for k in (1, 5, 11):
        moved = value_sensitivity(k)
        scales = math.sqrt(moved), moved
        as_variance, as_sd = (epsilon_from_mu(moved / scale, DELTA) for scale in scales)
        yield (
            f"K = {k}: epsilon {as_variance:.2f} if it is the variance, {as_sd:.2f} "
            f"if its root"
        )


def T9():
    """Algorithm 1 run as printed, and with line 6 mended."""
    for name, target in (("as printed", "in"), ("mended", "out")):
        lists = {"in": [], "out": []}
        for _ in range(32):
            lists["in"].append("with")
            lists[target].append("without")
        sizes = {kind: len(values) for kind, values in lists.items()}
        yield f"values of 32 shadow data sets, {name}: {sizes}"


def T10():
    """Theorem 7 as printed, k = min(K, N) throughout, and enumeration: one row right,
    one wrong."""

    def utility(players):
        return sum(i == 0 for i in players) / len(players) if players else 1 / 2

    match = [1, 0]
    n = 2
    k = 4
    n_classes = 2
    half = sum(1 / (j + 1) for j in range(1, min(k, n)))
    last = (match[1] - match[0]) / n * half + (match[1] - 1 / n_classes) / n
    bracket = sum(
        1 / j for j in range(1, min(k, n) + 1)
    )  # its last term is for N >= K only
    printed = [last + (match[0] - match[1]) / (n - 1) * bracket, last]
    ours = (
        KNNShapleyValuer(k).fit([[0.0], [1.0]], match, X_val=[[0.0]], y_val=[1]).values_
    )
    right = enumerate_semivalue(utility, n)
    yield (
        f"2 rows, K = 4: printed {printed}, enumerated {right.tolist()}, ours "
        f"{ours.tolist()}"
    )


# Layered Shapley values ---------------------------------------------------------------


def L1():
    """An additive game of 4 rows: Shapley values with and without the coalitions of
    size 0."""
    worth = np.array([0.4, 0.3, 0.2, 0.1])
    without = (worth * 3 / 4).round(3).tolist()
    yield f"additive game: values {worth.tolist()}, without size 0 {without}"

    def utility(players):  # any row will do: all of the value is in the first layer
        return float(len(players) > 0)

    values = enumerate_semivalue(utility, 4).tolist()
    yield f"one row is enough: values {values}, without size 0 all 0"


def L2():
    """How often a mean of m values of +-c / k is off by more than alpha: m as stated,
    and 4 m."""
    c = 0.5
    k = 1
    alpha = 0.05
    failure = 0.05
    stated = math.ceil(c**2 / (2 * alpha**2 * k**2) * math.log(2 / failure))
    for m in (stated, 4 * stated):
        # The mean of m signs times c / k: 2 B / m - 1 of a binomial B.
        beyond = math.floor(m / 2 * (1 - alpha * k / c) - 1e-9)
        found = 2 * binom.cdf(beyond, m, 0.5)
        yield f"m = {m}: wrong with probability {found:.3f}, stated {failure}"


def L3():
    """What one sampled coalition moves where m_k is far below 1."""
    c = 0.1
    k = 99
    n = 100
    m = 0.0017
    moved = 2 * c / k / (n * m)
    yield (
        f"c = {c}, k = {k}, n = {n}, m_k = {m}: one coalition moves a value by up to "
        f"{moved:.4f}"
    )


def L4():
    """The ratio of two numbers of coalitions, and a sum of 1 / k."""
    n = 100
    k = 50
    ratio = math.comb(n - 1, k - 1) / math.comb(n - 1, k)
    yield f"C(n-1, k-1) / C(n-1, k) at n = {n}, k = {k}: {ratio:g}, stated {k / n:g}"
    yield (
        f"sum of 1/k, k < {n}: {sum(1 / k for k in range(1, n)):.2f}, ln n "
        f"{math.log(n):.2f}"
    )


def L5():
    """The scale of Appendix D at the paper's setting, with its probability and with 1
    at most."""
    n = 100
    bound = 0.5
    alpha = 0.05
    failure = 0.05
    p = bound**2 * math.log(n) / (2 * alpha**2 * n) * math.log(2 * n / failure)
    scales = [
        published_scale(n, 1.0, bound=bound, clamp=clamp) for clamp in (False, True)
    ]
    yield (
        f"probability {p:.0f}; scale {scales[0]:.3f}, with a probability of 1 "
        f"{scales[1]:.4f}"
    )


def one_weight(n_right, n_wrong, penalty):
    """Logistic regression of one weight: rows x = 1 of either label, and a penalty w^2
    / 2."""

    def slope(w):
        return penalty * w + n_wrong * expit(w) - n_right * expit(-w)

    return brentq(slope, -100, 100)


def L6():
    """The largest change of a mean of numbers in [-1, 1] whose other numbers add up to
    0."""
    k = 11
    rest = np.resize([1.0, -1.0], k - 1)
    with_row, without, replaced = (
        np.mean(x) for x in ([*rest, 1.0], rest, [*rest, -1.0])
    )
    left_out = abs(with_row - without)
    other = abs(with_row - replaced)
    yield (
        f"a mean of {k}: {left_out:.3f} if a number is left out, {other:.3f} if it "
        f"is replaced"
    )


def L7():
    """One informative row among k, replaced: change of a loss, at C = 1 and at C = 1 /
    k."""
    for k in (5, 20, 100):
        X = np.zeros((k, 1))
        y = np.arange(k) % 2
        X[0], changes = 1.0, []
        for C in (1.0, 1 / k):
            w = [
                LogisticRegression(C=C, fit_intercept=False, tol=1e-8)
                .fit(X, np.append(label, y[1:]))
                .coef_[0, 0]
                for label in (0, 1)
            ]
            changes.append(np.logaddexp(0, -w[0]) - np.logaddexp(0, -w[1]))
        yield (
            f"{k} rows: {changes[0]:.3f} at C = 1, {changes[1]:.3f} at C = 1/k, "
            f"stated {2 / k:g}"
        )


def L8():
    """Intercept where one row has another label: it grows with k, and is infinite
    without it."""
    for k in (10, 100, 1000):
        model = LogisticRegression(C=1.0).fit(np.zeros((k, 1)), np.arange(k) > 0)
        yield f"{k} rows, all but one of a class: intercept {model.intercept_[0]:.2f}"


def L9():
    """Accuracy of one weight on points of one class, where one of k balanced rows is
    replaced."""
    k = 101
    for n_right in (k // 2, k // 2 + 1):
        w = one_weight(n_right, k - n_right, k)
        yield f"{n_right} of {k} rows right: weight {w:+.4f}, accuracy {float(w > 0):g}"


def L10():
    """The largest value that the assumed bound allows, and the accuracy that is asked
    for."""
    largest = 0.5 * sum(1 / k for k in range(1, 100)) / 100
    yield (
        f"values of 100 rows are at most {largest:.3f}, the accuracy asked for is 0.05"
    )


# Private gradients --------------------------------------------------------------------


def G1():
    """Probability of a rank in a permutation, by the printed formula and the right
    one."""
    n = 5
    for name, weight in (
        ("Shapley", lambda r: 1 / (n * math.comb(n - 1, r - 1))),
        ("Banzhaf", lambda r: 1 / 2 ** (n - 1)),
    ):
        stated = [2 ** (n - 1) * weight(r) / n for r in range(1, n + 1)]
        right = [weight(r) * math.comb(n - 1, r - 1) for r in range(1, n + 1)]
        for kind, weights in (("stated", stated), ("right", right)):
            shown = ", ".join(f"{w:.3f}" for w in weights)
            yield f"{name}, n = {n}, {kind}: {shown}; sum {sum(weights):.3f}"


def G2():
    """Weights of k gradients in the running mean of lines 9 and 10, printed and
    mended."""
    k = 200
    for name, overwritten in (("as printed", True), ("of raw gradients", False)):
        mean = np.zeros(k)
        for t in range(1, k + 1):
            raw = np.eye(k)[t - 1]
            averaged = (1 - 1 / t) * mean + raw / t
            mean = (1 - 1 / t) * mean + (averaged if overwritten else raw) / t
        yield (
            f"k = {k}, {name}: first weight {mean[0]:.3f}, variance "
            f"{(mean**2).sum():.3f}"
        )


def G3():
    """A message that is replaced moves by 2 C, not by C."""
    for epsilon in (0.5, 1.0):
        true = epsilon_from_mu(2 * mu_from_epsilon(epsilon, 5e-5), 5e-5)
        yield f"stated epsilon {epsilon:g} at delta 5e-5: {true:.2f}"


def G4():
    """Best weight of the newest of t releases by search, and by the formula with S(t)(S
    + s)."""
    # variances S of the noise and s of a gradient over permutations
    noise = 4.0
    spread = 1.0
    for t in (2, 5, 20):
        grid = np.linspace(0, 1, 100_001)
        # Error of (1 - w) mean(t - 1 others) + w newest, as an estimate of the newest
        # gradient.
        error = (1 - grid) ** 2 * (
            (noise + spread) / (t - 1) + spread
        ) + grid**2 * noise
        formula = (noise + t * spread) / (t * (noise + spread))
        yield (
            f"t = {t}: {grid[error.argmin()]:.3f} by search, {formula:.3f} by the "
            f"formula"
        )


def G5():
    """Variance of a mean over permutations that share their noise, and as if they did
    not."""
    for k in (50, 200):
        weights = (
            np.tril(np.ones((k, k))) / np.arange(1, k + 1)[:, None]
        )  # running means
        shared = (weights.mean(axis=0) ** 2).sum()
        rows = weights - weights.mean(axis=0)
        apart = (rows**2).sum() / (k - 1) / k
        yield (
            f"k = {k}: variance {shared:.4f}, stated {apart:.5f}: "
            f"{shared / apart:.0f} times"
        )


# Incentives in private collaborative machine learning ---------------------------------


def S1():
    """Noise of variance alpha D^2 / (2 epsilon): its Renyi divergence at distance D."""
    for alpha, epsilon in ((2, 0.1), (2, 12.5)):
        variance = alpha / (2 * epsilon)
        yield (
            f"order {alpha}, epsilon {epsilon:g}: divergence {alpha / (2 * variance):g}"
        )


def S2():
    """(2, epsilon)-Renyi privacy by one order, and by the mechanism itself."""
    for epsilon in (0.1, 0.2, 12.5):
        one_order = epsilon + math.log(1 / DELTA)
        exact = epsilon_from_mu(math.sqrt(epsilon), DELTA)
        yield (
            f"Renyi epsilon {epsilon:g}: {one_order:.1f} by one order, {exact:.2f} "
            f"exactly"
        )


def S3():
    """The number of rows is part of a release, without noise."""
    X = np.full((200, 1), 0.5)
    y = np.full(200, 0.1)
    counts = [GramRelease().fit(X[:n], y[:n]).release_.n_samples for n in (200, 199)]
    yield (
        f"numbers of rows in the releases of 200 and of 199 rows: {counts[0]} and "
        f"{counts[1]}"
    )


def S4():
    """Rewards below a party's own value, at the bound of rho with and without
    logarithms."""
    rng = np.random.default_rng(0)
    games = below = 0
    for _ in range(300):
        v = np.zeros(8)
        for mask in range(1, 8):
            v[mask] = max(v[mask & ~(1 << i)] for i in range(3) if mask >> i & 1)
            v[mask] += rng.exponential()
        phi = enumerate_semivalue(
            lambda players, v=v: v[sum(1 << i for i in players)], 3
        )
        alone = v[[1, 2, 4]]
        others = phi < phi.max()
        without_logs = np.min((alone / v[-1])[others] / (phi / phi.max())[others])
        games += np.any(
            rho_targets(phi, v[-1], largest_rho(phi, alone, v[-1])) < alone - 1e-9
        )
        below += np.any(rho_targets(phi, v[-1], without_logs) < alone - 1e-9)
    yield f"of 300 random games, irrational with logarithms: {games}, without: {below}"


# PriArTa ------------------------------------------------------------------------------


def P1():
    """Noise on rows that is calibrated to their covariance: what the mean reveals for
    rows of norm R, and what the variance along one direction does."""
    epsilon = 0.8

    def noise(n, radius):
        moved = 4 * radius**2 / n + 8 * radius**2 / n**2
        return math.sqrt(2 * math.log(1.25 / DELTA)) * moved / epsilon

    sizes = [(100, 1), (500, 1), (1000, 1), (5000, 1), (500, 8), (500, 10)]
    for n, radius in sizes:
        true = epsilon_from_mu(2 * radius / (noise(n, radius) * math.sqrt(n)), DELTA)
        yield f"stated {epsilon:g}, {n} rows, R = {radius}: mean at least {true:.2f}"

    # A row of norm R or 0: the sum of squares moves by R^2, and is nearly normal.
    n = 1000
    radius = 8
    scale = noise(n, radius)
    deviation = math.sqrt(2 * n * scale**4 + 4 * scale**2 * radius**2)
    true = epsilon_from_mu(radius**2 / deviation, DELTA)
    yield f"stated {epsilon:g}, {n} rows, R = {radius}: variance about {true:.1f}"


def P2():
    """The largest change of a covariance by search: n times it over R^2."""
    rng = np.random.default_rng(0)
    n = 20
    largest = 0.0
    for trial in range(4000):
        rest = rng.normal(size=(n - 1, 2))
        rest *= rng.random() / np.linalg.norm(rest, axis=1).max()
        if trial % 2:  # the others together at one point of the sphere: the extreme
            rest = np.tile(rest[0] / np.linalg.norm(rest[0]), (n - 1, 1))
        new = rng.normal(size=(2, 2))
        new /= np.linalg.norm(new, axis=1, keepdims=True)
        if trial % 4 == 1:
            new[0] = -rest[0]
            new[1] = rest[0]
        covariances = [np.cov(np.vstack([rest, row]).T, bias=False) for row in new]
        largest = max(largest, n * np.linalg.norm(covariances[0] - covariances[1]))
    yield (
        f"{n} rows in a ball of radius 1: {largest:.4f} found, {4 + 8 / n:.2f} "
        f"stated, 4 exact"
    )


def P3():
    """The covariance of rows with noise, from which the variance of the noise must be
    taken."""
    rng = np.random.default_rng(0)
    n = 100_000
    scale = 0.5
    X = rng.normal(size=(n, 2)) * [1.0, 0.5]
    for name, rows in (
        ("rows", X),
        ("noisy rows", X + scale * rng.normal(size=X.shape)),
    ):
        shown = ", ".join(f"{v:.2f}" for v in np.cov(rows.T).diagonal())
        yield f"variances of {name}: {shown}; the noise has {scale**2:.2f}"


ERRATA = {
    function.__name__: function
    for function in (
        *(T1, T2, T3, T4, T5, T6, T7, T8, T9, T10),
        *(L1, L2, L3, L4, L5, L6, L7, L8, L9, L10),
        *(G1, G2, G3, G4, G5),
        *(S1, S2, S3, S4),
        *(P1, P2, P3),
    )
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "labels", nargs="*", metavar="LABEL", help="errata to show; default: all"
    )
    args = parser.parse_args()
    unknown = [label for label in args.labels if label not in ERRATA]
    if unknown:
        parser.error(
            f"LABEL must be one of {', '.join(ERRATA)}. Got {', '.join(unknown)}."
        )
    for label in args.labels or ERRATA:
        for line in ERRATA[label]():
            print(label, line, flush=True)


if __name__ == "__main__":
    main()
