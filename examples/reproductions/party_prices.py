"""What parties are worth by predictions, with the prior and the scaling of features.

Two tables of ``doc/user_guide/collaborative.rst``: values of a logistic regression with
a prior at 1/2, with an intercept, and with an intercept at the public base rate; and
of a linear regression of unscaled features, without and with a public map. Run it as
``python examples/reproductions/party_prices.py``.
"""

import warnings

import numpy as np

from skvalue import PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    GramRelease,
    LogisticRelease,
)
from skvalue.privacy import SeededNoiseWarning

N_DRAWS = 5
N_PARTICLES = 160
PARTIES = {"honest": 500, "small": 150, "irrelevant": 400}
PRIORS = {
    "at 1/2": (False, False),
    "at 1/2, intercept": (True, False),
    "base rate, intercept": (True, True),
}


def classified_rows(kind, n, rng):
    """Features that are mostly positive, and labels of which about 0.8 are 1."""
    X = 0.3 + 0.3 * rng.normal(size=(n, 4))
    logits = 1 + X @ [3.0, -2.0, 1.5, 0.0]
    y = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)
    if kind == "irrelevant":
        X = rng.permutation(X)
    if kind == "flipped":
        y = 1 - y
    return X, y


def values_of_priors(kinds, epsilon, seed):
    """Values (n_priors, n_parties) of one draw of the rows and the noise."""
    rng = np.random.default_rng(seed)
    rows = [classified_rows(kind, n, rng) for kind, n in kinds.items()]
    X_val, y_val = classified_rows("honest", 300, rng)
    base_rate = classified_rows("honest", 10_000, rng)[1].mean()
    values = []
    for has_intercept, has_base_rate in PRIORS.values():
        releases = []
        for i, (X, y) in enumerate(rows):
            party = LogisticRelease(
                epsilon, fit_intercept=has_intercept, noise_random_state=10 * seed + i
            )
            releases.append(party.fit(X, y).release_)
        model = BayesianLogistic(base_rate=float(base_rate) if has_base_rate else None)
        scorer = PredictiveValueScorer(
            model, n_particles=N_PARTICLES, random_state=seed
        )
        values.append(scorer.fit(releases, X_val=X_val, y_val=y_val).values_)
    return np.array(values)


def print_values_of_priors():
    for kinds in (PARTIES, {**PARTIES, "flipped": 400}):
        for epsilon in (None, 1.0):
            draws = np.array(
                [values_of_priors(kinds, epsilon, seed) for seed in range(N_DRAWS)]
            )
            print(f"epsilon {epsilon}: {', '.join(kinds)}")
            errors = draws.std(axis=0, ddof=1) / np.sqrt(N_DRAWS)
            for name, row, error in zip(PRIORS, draws.mean(axis=0), errors):
                print(f"  {name:22} {row.round(3)}, standard errors up to", end=" ")
                print(f"{error.max():.3f}", flush=True)


def print_values_of_units():
    """Values of two parties whose second feature is in other units."""
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 300.0])

    def draw(n):
        X = rng.normal(size=(n, 2))
        y = X @ [0.2, -0.15] + 0.15 * rng.normal(size=n)
        return X * scale, np.clip(y, -1, 1)

    rows = [draw(300), draw(300)]
    X_val, y_val = draw(200)
    for name, x_scale in (("unscaled", None), ("public x_scale", 3 * scale)):
        parties = [GramRelease(None, x_scale=x_scale).fit(X, y) for X, y in rows]
        scorer = PredictiveValueScorer(BayesianLinear(), random_state=0)
        scorer.fit([party.release_ for party in parties], X_val=X_val, y_val=y_val)
        print(
            f"{name}: {parties[0].n_clipped_rows_} of 300 rows clipped, values "
            f"{scorer.values_.round(3)}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print_values_of_units()
    print_values_of_priors()
