"""
The privacy-reward trade-off of a party
=======================================

Three clinics predict recovery from two measurements with one linear model, which is
more accurate than the model of any single clinic. No rows are shared: each clinic
publishes its noisy sufficient statistics once. A mediator values these releases and
returns to every clinic a model whose value matches the clinic's Shapley value. The
example shows how the reward of clinic B depends on its epsilon.
"""

# %%
# Three clinics
# -------------
# The bounds of features and targets are public: they were chosen without looking at the
# rows.
import numpy as np

rng = np.random.default_rng(4)
weights = np.array([0.45, -0.35])


def draw_patients(n):
    """Measurements and recoveries of n patients."""
    X = 0.39 * rng.normal(size=(n, 2))
    y = X @ weights + 0.16 * rng.normal(size=n)
    return X, y


clinics = {"A": draw_patients(100), "B": draw_patients(200), "C": draw_patients(400)}
X_test, y_test = draw_patients(2000)

# %%
# At each clinic
# --------------
# The attribute `release_` is the only thing that a clinic publishes. `privacy_` states
# its guarantee.
from skvalue.collaborative import GramRelease

party = GramRelease(renyi_epsilon=0.2, x_bound=1, y_bound=1)
releases = {name: party.fit(*clinics[name]).release_ for name in ("A", "C")}
print(party.privacy_)

# %%
# Clinic B computes releases for several values of epsilon before it chooses one. Their
# noise is nested: each release is the next one with more noise added, so that the
# curves below are smooth. B publishes only one of them.
import warnings

epsilons = [0.004, 0.02, 0.1, 0.5, 2.5, 12.5]
with warnings.catch_warnings():
    # The warning says that only one may be published.
    warnings.simplefilter("ignore")
    path = party.path(*clinics["B"], renyi_epsilons=epsilons)

# %%
# At the mediator
# ---------------
# The value of a coalition is the Bayesian surprise of its releases: the divergence
# between posterior and prior of the model, with the noise taken into account. The
# mediator has the releases only.
from skvalue.collaborative import (
    BayesianLinear,
    BayesianSurpriseScorer,
    RhoShapleyReward,
)

releases = {"A": releases["A"], "B": path[2], "C": releases["C"]}
scorer = BayesianSurpriseScorer(BayesianLinear(precision=0.1), random_state=0)
scheme = RhoShapleyReward(rho=0.2, random_state=0)
scorer.fit(releases)
scheme.fit(scorer)
print("clinic  Shapley value  alone  reward  MNLP of the reward")
for i, name in enumerate(scorer.parties_):
    mnlp = scheme.rewards_[name].mnlp(X_test, y_test)
    print(
        f"{name:6} {scorer.values_[i]:10.2f} {scorer.standalone_values_[i]:11.2f} "
        f"{scheme.attained_rewards_[i]:7.2f} {mnlp:12.3f}"
    )

# %%
# Values and rewards
# ------------------
# Left: with a smaller epsilon the value of B's release alone falls fast, and its reward
# slowly, because the reward includes the releases of the other clinics. Middle: the
# values of all coalitions. Right: the posterior of one weight of the model for B alone,
# for B's reward, and for all clinics together.
import matplotlib.pyplot as plt

from skvalue.collaborative import (
    CoalitionValueDisplay,
    PosteriorMarginalsDisplay,
    PrivacyTradeOffDisplay,
)

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13, 4.2), layout="constrained"
)
others = {"A": releases["A"], "C": releases["C"]}
PrivacyTradeOffDisplay.from_releases(path, others, scorer, scheme, party="B", ax=left)
left.set_title("Epsilon of clinic B")
CoalitionValueDisplay.from_scorer(scorer, ax=middle)
middle.set_title("Coalitions, epsilon of B = 0.1")
PosteriorMarginalsDisplay.from_scheme(
    scorer, scheme, "B", name="first weight", random_state=0, ax=right
)
right.axvline(weights[0], color="0.2", linewidth=0.8, linestyle=":")
right.set(title="Posterior of a weight (dotted: truth)", xlim=(-1, 1))
plt.show()
