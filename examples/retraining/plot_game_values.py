"""
Values of the passages of a prompt
==================================

Players need not be rows. Here they are 14 passages that are put before a question, and
the utility of a coalition is how well the question is answered with them, which takes a
call of a language model each time. To keep this example short a function stands in for
the model: some passages hold a fact, some repeat it, and one misleads. `game_values`
estimates the value of every passage from 150 of the 16,384 coalitions.
"""

# %%
# A game without a model of scikit-learn
# --------------------------------------
# A question has three facts, and the answer is right with probability 1 / (1 + e^-z).
# Passages 0 to 2 hold the first fact, 3 and 4 the second one, 5 the third; 6 denies it.
import numpy as np

FACTS = np.zeros((3, 14), dtype=bool)
FACTS[0, [0, 1, 2]] = True
FACTS[1, [3, 4]] = True
FACTS[2, 5] = True


def quality(masks):
    """Probability of a right answer for each coalition of passages."""
    n_facts = sum((masks & fact).any(axis=1) for fact in FACTS)
    denies = masks[:, 6] & masks[:, 5]
    n_distracting = masks[:, 7:].sum(axis=1)
    z = 2.0 * n_facts - 2.5 * denies - 0.15 * n_distracting - 3.0
    return 1 / (1 + np.exp(-z))


# %%
# Values, their errors and interactions
# -------------------------------------
# The values sum to the quality with all passages less that with none.
from skvalue import game_values

result = game_values(
    quality, 14, max_evaluations=150, interactions=True, random_state=0
)
print(result.sampler, result.n_evaluations)
for passage, (value, error) in enumerate(zip(result.values, result.errors)):
    print(f"passage {passage:2d}: {value:6.3f} +- {error:.3f}")

# %%
# Passages that repeat one another share the value of their fact, and their interaction
# is negative; so is that of the third fact with the passage that denies it.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].bar(np.arange(14), result.values, yerr=2 * result.errors, color="C0")
axes[0].axhline(0, color="black", linewidth=0.8)
axes[0].set(xlabel="passage", ylabel="Shapley value, two standard errors")
largest = np.abs(result.interactions).max()
image = axes[1].imshow(result.interactions, cmap="RdBu", vmin=-largest, vmax=largest)
axes[1].set(xlabel="passage", ylabel="passage", title="Shapley interactions")
fig.colorbar(image, ax=axes[1])
plt.show()

# %%
# How far off are they?
# ---------------------
# This game is cheap enough to be enumerated. Random subsets, which are unbiased, would
# need many more evaluations: with the same 150 their error is several times as large.
exact = game_values(quality, 14, sampler="exact", max_evaluations=2**14)
subsets = game_values(
    quality, 14, sampler="stratified", max_evaluations=150, random_state=0
)
for name, estimate in (("process", result), ("stratified", subsets)):
    error = np.sqrt(np.mean((estimate.values - exact.values) ** 2))
    print(f"{name:10s} root mean squared error {error:.4f}")
