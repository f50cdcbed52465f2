"""
What more privacy costs a party
===============================

Three clinics predict recovery from two measurements, by one linear model that none could learn well
alone. No clinic shows a row: each releases a noisy sum once. A mediator values the releases and
returns to every clinic a model worth its share. Clinic B wonders how much privacy to ask for.
"""

# %%
# Three clinics
# -------------
# Bounds of rows and targets are public: nobody looked at the rows to choose them.
import numpy as np

rng = np.random.default_rng(4)
weights, noise = np.array([0.45, -0.35]), 0.16


def rows_of(n):
    X = 0.39 * rng.normal(size=(n, 2))
    return X, X @ weights + noise * rng.normal(size=n)


clinics = {"A": rows_of(100), "B": rows_of(200), "C": rows_of(400)}
X_test, y_test = rows_of(2000)

# %%
# At each clinic
# --------------
# What leaves a clinic is one `release_`. `privacy_` is the statement that goes with it.
from skvalue.collaborative import GramRelease

party = GramRelease(epsilon=0.2, x_bound=1, y_bound=1)
releases = {name: party.fit(*clinics[name]).release_ for name in ("A", "C")}
print(party.privacy_)

# %%
# Clinic B looks at several levels before it decides. The noise of one level is within the noise of
# the next, so that the curves below are not blurred by luck. B publishes none of these but one.
import warnings

epsilons = [0.004, 0.02, 0.1, 0.5, 2.5, 12.5]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that says just this
    path = party.path(*clinics["B"], epsilons=epsilons)

# %%
# At the mediator
# ---------------
# The value of a coalition is how far its releases move the belief about the model, noise included.
# The mediator has releases only.
from skvalue.collaborative import BayesianLinear, BayesianSurpriseScorer, RhoShapleyReward

releases = {"A": releases["A"], "B": path[2], "C": releases["C"]}
scorer = BayesianSurpriseScorer(BayesianLinear(precision=0.1, a0=20, b0=0.5), random_state=0)
scheme = RhoShapleyReward(rho=0.2, random_state=0)
scorer.fit(releases)
scheme.fit(scorer)
print("clinic  Shapley value  alone  reward  MNLP of the reward")
for i, name in enumerate(scorer.parties_):
    print(
        f"{name:6} {scorer.values_[i]:10.2f} {scorer.standalone_values_[i]:11.2f} "
        f"{scheme.attained_rewards_[i]:7.2f} {scheme.rewards_[name].mnlp(X_test, y_test):12.3f}"
    )

# %%
# The pictures
# ------------
# Left, what B gives up by asking for more privacy: its value alone falls fast, its reward slowly,
# since the others' releases are in it. In the middle, the values of all coalitions; right, one
# weight of the model as B would know it alone, as rewarded, and as all know it together.
import matplotlib.pyplot as plt

from skvalue.collaborative import (
    CoalitionValueDisplay,
    PosteriorMarginalsDisplay,
    PrivacyTradeOffDisplay,
)

figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
others = {name: releases[name] for name in ("A", "C")}
PrivacyTradeOffDisplay.from_releases(path, others, scorer, scheme, party="B", ax=axes[0])
axes[0].set_title("B's choice")
CoalitionValueDisplay.from_scorer(scorer, ax=axes[1])
axes[1].set_title("coalitions, epsilon of B = 0.1")
PosteriorMarginalsDisplay.from_scheme(
    scorer, scheme, "B", name="first weight", random_state=0, ax=axes[2]
)
axes[2].axvline(weights[0], color="0.2", linewidth=0.8, linestyle=":")
axes[2].set(title="what B learns (dotted: the truth)", xlim=(-1, 1))
figure.savefig("price_of_privacy.png", dpi=100)
