"""
Data sets of private parties
============================

Twenty parties hold small data sets, and show them to nobody. Some have wrong labels throughout.
Each sends gradients with noise that protects every one of its rows: can we still tell whose data
are bad? A guarantee for one row bounds what anybody can say of that row, but a data set speaks with
all of its rows. `detection_curve` measures it, and draws the line that no method can cross.
"""

# %%
# Digits, odd or even, in twenty hands
# ------------------------------------
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
y = y % 2
X, X_val, y, y_val = train_test_split(
    X / 16, y, train_size=20 * 64, test_size=400, stratify=y, random_state=0
)
drawn_on = X_val.std(axis=0) > 0.03  # pixels all but blank in public digits have no scale
X, X_val = X[:, drawn_on], X_val[:, drawn_on]
parties = np.arange(len(y)) % 20
wrong = np.arange(20) < 6
y = np.where(wrong[parties], 1 - y, y)

# %%
# One fit, and what it promises
# -----------------------------
from skvalue import GradientSemivalueValuer

valuer = GradientSemivalueValuer(
    "logistic", unit="example", epsilon=1.0, delta=1e-4, n_permutations=50, learning_rate=0.3
)
valuer.fit(X, y, groups=parties, X_val=X_val, y_val=y_val)
print(valuer.privacy_)

# %%
# How many rows it takes
# ----------------------
# Every permutation costs a release, and all of them together the same epsilon. With independent
# noise values average what noise does to a model; with noise averaged first, less is done.
from skvalue.inspection import detection_curve

curves = {
    label: detection_curve(
        valuer.set_params(**noise), X, y, groups=parties, wrong=wrong, X_val=X_val, y_val=y_val,
        epsilons=[1.0], sizes=[1, 4, 16, 32, 64], n_repeats=3, random_state=0,
    )
    for label, noise in {
        "averaged noise": {"noise": "correlated", "burn_in": 0.9},
        "independent noise": {"noise": "iid", "burn_in": 0.0},
    }.items()
}  # fmt: skip

# %%
# A step along a gradient is no training
# --------------------------------------
# These values come from one step a party. The Shapley values of the game of training a model on the
# rows of a coalition (`DataShapleyValuer`) are something else. Here both say who is bad, and little
# that agrees about the others (of which 300 coalitions do not tell much either).
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from skvalue import DataShapleyValuer

judged = dict(groups=parties, X_val=X_val, y_val=y_val)
steps = valuer.set_params(epsilon=None, random_state=0).fit(X, y, **judged).values_
training = DataShapleyValuer(
    LogisticRegression(), scoring="neg_log_loss", max_evaluations=300, random_state=0
)
training.fit(X, y, **judged)
everyone = spearmanr(steps, training.values_).statistic
honest = spearmanr(steps[~wrong], training.values_[~wrong]).statistic
print(f"Rank correlation: {everyone:.2f} over all parties, {honest:.2f} over the honest ones.")

# %%
# The pictures
# ------------
import matplotlib.pyplot as plt

from skvalue.inspection import DetectionDisplay

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
DetectionDisplay(curves).plot(axes[0])
axes[0].legend(frameon=False, loc="lower right")
axes[0].set_title("Finding bad data sets, (1, 1e-4) for every row")
for mask, color, label in ((~wrong, "#30638e", "honest"), (wrong, "#d1495b", "wrong labels")):
    axes[1].scatter(training.values_[mask], steps[mask], color=color, label=label)
axes[1].set(xlabel="Shapley value by retraining", ylabel="value by gradient steps, no noise")
axes[1].set_title(f"Rank correlation {everyone:.2f}; among the honest {honest:.2f}")
axes[1].spines[["top", "right"]].set_visible(False)
axes[1].legend(frameon=False)
figure.savefig("data_sets_as_parties.png", dpi=110)
plt.show()
