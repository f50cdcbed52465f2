"""How often a list named with ``confidence=0.95`` holds too many right labels.

Lists are drawn from the model that `LabelErrorDetector.review` assumes: the log odds
that the label of rank r is right are ``slope * log(r / middle)``. Printed is the
fraction of 400 draws in which more than a tenth of the named rows without a verdict are
right; 0.05 is meant. Takes ten seconds.
"""

import numpy as np

from skvalue.labels import draw_rows, fit_curve, list_qvalues

# Length of the list, rank of even odds, slope, and number of verdicts.
SETTINGS = [
    (500, 120, 2, 50),
    (200, 60, 2, 50),
    (1000, 200, 1.5, 50),
    (2000, 600, 2, 80),
    (120, 40, 2, 30),
    (500, 250, 3, 50),
    (3000, 300, 1, 100),
]
N_DRAWS = 400


def draw_list(n_listed, middle, slope, n_verdicts, rng):
    """Whether too many rows named without a verdict are right, and how many are named.

    Too many are more than a tenth.
    """
    ranks = np.arange(1, n_listed + 1)
    is_right = rng.random(n_listed) < 1 / (1 + (middle / ranks) ** slope)
    places = draw_rows(n_listed, n_verdicts, rng)
    curve = fit_curve(n_listed, places, ~is_right[places])
    is_named = list_qvalues(curve, 1.645) <= 0.1
    is_named[places] = False
    is_above = bool(is_named.any()) and is_right[is_named].mean() > 0.1
    return is_above, is_named.sum()


def main():
    """Print a line for each setting."""
    for setting in SETTINGS:
        rng = np.random.default_rng(1)
        draws = [draw_list(*setting, rng) for _ in range(N_DRAWS)]
        is_above, n_named = np.mean(draws, axis=0)
        print(
            f"{setting}: above in {is_above:.3f} of the draws, {n_named:.1f} rows "
            "named on average"
        )


if __name__ == "__main__":
    main()
