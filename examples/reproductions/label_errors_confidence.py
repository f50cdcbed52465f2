"""How often a list that was named with ``confidence=0.95`` holds more right labels than
allowed.

Lists are drawn from the model that `LabelErrorDetector.review` assumes: the log odds
that the label of rank r is right are ``slope * log(r / turn)``. Printed is the fraction
of 400 draws in which more than a tenth of the named rows without a verdict are right;
0.05 is meant. Takes ten seconds.
"""

import numpy as np

from skvalue.labels import draw_rows, fit_curve, list_qvalues

SETTINGS = [  # length of the list, rank of even odds, slope, number of verdicts
    (500, 120, 2, 50), (200, 60, 2, 50), (1000, 200, 1.5, 50), (2000, 600, 2, 80),
    (120, 40, 2, 30), (500, 250, 3, 50), (3000, 300, 1, 100),
]  # fmt: skip


def named_by_chance(n, turn, slope, n_verdicts, rng):
    """Whether more than a tenth of the rows named without a verdict are right, and how
    many."""
    right = rng.random(n) < 1 / (1 + (turn / np.arange(1, n + 1)) ** slope)
    places = draw_rows(n, n_verdicts, rng)
    named = list_qvalues(fit_curve(n, places, ~right[places]), 1.645) <= 0.1
    named[places] = False
    return bool(named.any()) and right[named].mean() > 0.1, named.sum()


def main():
    """Print a line for each setting."""
    for setting in SETTINGS:
        rng = np.random.default_rng(1)
        above, named = np.mean(
            [named_by_chance(*setting, rng) for _ in range(400)], axis=0
        )
        print(
            f"{setting}: above in {above:.3f} of the draws, {named:.1f} rows named on average"
        )


if __name__ == "__main__":
    main()
