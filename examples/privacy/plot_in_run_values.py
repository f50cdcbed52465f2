"""
Private values of all rows from one training run
================================================

`InRunShapleyValuer(epsilon=...)` trains a model by differentially private gradient
descent. The parameters of the run are public, and the value of a row is a function of
them and of that row: the guarantee holds for all values together, whatever their
number. This example compares them with the values of the same run without noise, and
with the values along a run on the public validation points, which cost nothing.
"""

# %%
# Digits with 10 % wrong labels
# -----------------------------
# The 200 validation points are public.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)

# Without the columns at the edges.
X = X[:, X.std(axis=0) > 1]
X, X_val, y, y_val = train_test_split(X, y, test_size=200, stratify=y, random_state=0)
y, flipped = flip_labels(y, 0.1, random_state=0)

# %%
# A private fit
# -------------
# `trajectory_` and `model_` may be published. `values_for` gives an owner the value of
# its row, the baseline, and the standard error of the noise.
from skvalue import InRunShapleyValuer

setting = dict(n_steps=10, learning_rate=3.0)
valuer = InRunShapleyValuer(epsilon=1.0, delta=1e-4, **setting)
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print(valuer.privacy_)
print(f"\nAccuracy of the published model: {valuer.model_.score(X_val, y_val):.3f}.")
value, error = valuer.values_for(0, return_error=True)
print(f"Value of row 0, for its owner: {value:.6f} +- {error:.6f}.")

# %%
# Agreement with the values without noise
# ---------------------------------------
# The L1 error is divided by the sum of the absolute values without noise.
import numpy as np
from scipy.stats import spearmanr

exact_valuer = InRunShapleyValuer(clip=1.0, **setting)
exact = exact_valuer.fit(X, y, X_val=X_val, y_val=y_val).values_


def agreement(values):
    """Spearman correlation with the values without noise, and relative L1 error."""
    error = np.abs(values - exact).sum() / np.abs(exact).sum()
    return spearmanr(values, exact).statistic, error


epsilons = np.geomspace(0.1, 10, 9)
of_values = []
of_baseline = []
for epsilon in epsilons:
    private = InRunShapleyValuer(epsilon=epsilon, delta=1e-4, **setting)
    private.fit(X, y, X_val=X_val, y_val=y_val)
    of_values.append(agreement(private.values_))
    of_baseline.append(agreement(private.baseline_))

# %%
# Where the line of the private values is above that of the baseline on the left, and
# below it on the right, the budget pays.
import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
titles = ("Spearman correlation", "Relative L1 error")
columns = zip(np.transpose(of_values), np.transpose(of_baseline))
for axes, title, (value_line, baseline_line) in zip(panels, titles, columns):
    axes.plot(epsilons, value_line, "o-", label="private in-run values")
    axes.plot(epsilons, baseline_line, "--", color="0.5", label="baseline, at no cost")
    axes.set(xscale="log", xlabel="epsilon", title=title)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].legend(frameon=False, loc="lower right")
panels[1].set_ylim(0)
plt.show()
