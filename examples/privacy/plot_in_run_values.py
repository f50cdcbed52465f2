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
X = X[:, X.std(axis=0) > 1]  # without the columns at the edges
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

exact = (
    InRunShapleyValuer(clip=1.0, **setting).fit(X, y, X_val=X_val, y_val=y_val).values_
)
epsilons = np.geomspace(0.1, 10, 9)
found, free = [], []
for epsilon in epsilons:
    private = InRunShapleyValuer(epsilon=epsilon, delta=1e-4, **setting)
    private.fit(X, y, X_val=X_val, y_val=y_val)
    for values, to in ((private.values_, found), (private.baseline_, free)):
        error = np.abs(values - exact).sum() / np.abs(exact).sum()
        to.append([spearmanr(values, exact)[0], error])

# %%
# Where the line of the private values is above that of the baseline on the left, and below it on
# the right, the budget pays.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for i, (axis, title) in enumerate(
    zip(axes, ("Spearman correlation", "Relative L1 error"))
):
    axis.plot(epsilons, np.array(found)[:, i], "o-", label="private in-run values")
    axis.plot(
        epsilons, np.array(free)[:, i], "--", color="0.5", label="baseline, at no cost"
    )
    axis.set(xscale="log", xlabel="epsilon", title=title)
    axis.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="lower right")
axes[1].set_ylim(0)
plt.show()
