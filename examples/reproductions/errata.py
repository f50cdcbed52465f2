"""
Errata of the papers, checked
=============================

Prints the figures of those errata of the user guide ("Errata of the papers") that follow from a few
lines of arithmetic. It needs no data:

    python examples/reproductions/errata.py

Every line starts with the label of the erratum.
"""

import math

from skvalue.privacy import epsilon_from_mu, mu_from_epsilon


def classical_noise():
    """T1: noise of sqrt(3 log(1.25 / delta)) / epsilon, without the factor sqrt 2, on counts."""
    for epsilon in (0.1, 0.5, 1.0, 5.0, 10.0):
        mu = epsilon / math.sqrt(math.log(1.25 / 1e-5))
        three, two = epsilon_from_mu(mu, 1e-5), epsilon_from_mu(mu * math.sqrt(2 / 3), 1e-5)
        print(f"T1 stated epsilon {epsilon:g}: {three:.3f} for three counts, {two:.3f} for two")


def probability_of_exclusion():
    """L4: the ratio of two numbers of coalitions, and a sum of 1 / k."""
    n, k = 100, 50
    ratio = math.comb(n - 1, k - 1) / math.comb(n - 1, k)
    print(f"L4 C(n-1, k-1) / C(n-1, k) at n = {n}, k = {k}: {ratio:g}, stated {k / n:g}")
    print(f"L4 sum of 1/k, k < {n}: {sum(1 / k for k in range(1, n)):.2f}, ln n {math.log(n):.2f}")


def weights_of_ranks():
    """G1: probability of a rank in a permutation, by the printed formula and the right one."""
    n = 5
    for name, weight in (
        ("Shapley", lambda r: 1 / (n * math.comb(n - 1, r - 1))),
        ("Banzhaf", lambda r: 1 / 2 ** (n - 1)),
    ):
        stated = [2 ** (n - 1) * weight(r) / n for r in range(1, n + 1)]
        right = [weight(r) * math.comb(n - 1, r - 1) for r in range(1, n + 1)]
        for kind, weights in (("stated", stated), ("right", right)):
            shown = ", ".join(f"{w:.3f}" for w in weights)
            print(f"G1 {name}, n = {n}, {kind}: {shown}; sum {sum(weights):.3f}")


def replaced_message():
    """G3: a message that is replaced moves by 2 C, not by C."""
    for epsilon in (0.5, 1.0):
        true = epsilon_from_mu(2 * mu_from_epsilon(epsilon, 5e-5), 5e-5)
        print(f"G3 stated epsilon {epsilon:g} at delta 5e-5: {true:.2f}")


def renyi_epsilon():
    """S2: (2, epsilon)-Renyi privacy by one order, and by the mechanism itself."""
    for epsilon in (0.1, 0.2, 12.5):
        one_order = epsilon + math.log(1e5)
        exact = epsilon_from_mu(math.sqrt(epsilon), 1e-5)
        print(f"S2 Renyi epsilon {epsilon:g}: {one_order:.1f} by one order, {exact:.2f} exactly")


def noise_on_rows():
    """P1: noise on rows that is calibrated to their covariance; the mean alone reveals more."""
    epsilon, delta, radius = 0.8, 1e-5, 1.0
    for n in (100, 500, 1000, 5000):
        moved = 4 * radius**2 / n + 8 * radius**2 / n**2
        scale = math.sqrt(2 * math.log(1.25 / delta)) * moved / epsilon
        true = epsilon_from_mu(2 * radius / (scale * math.sqrt(n)), delta)
        print(f"P1 stated epsilon {epsilon:g}, {n} rows: at least {true:.1f}")


def main():
    for erratum in (
        classical_noise,
        probability_of_exclusion,
        weights_of_ranks,
        replaced_message,
        renyi_epsilon,
        noise_on_rows,
    ):
        erratum()


if __name__ == "__main__":
    main()
