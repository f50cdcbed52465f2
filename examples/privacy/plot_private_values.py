"""
Accuracy of differentially private values
=========================================

`TKNNShapleyValuer(epsilon=...)` computes values from noisy counts of neighbours, so
that the value of one row reveals little about the other rows. This example measures how
well such values find wrong labels. Two references are drawn: the exact values, which
have no privacy, and a public baseline, which uses a row and the public validation
points only. A private fit is useful where it is above the baseline.
"""

# %%
# Digits with 10 % wrong labels
# -----------------------------
# The classes are odd and even digits. The 200 validation points are public.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
y = y % 2  # odd or even
X, X_val, y, y_val = train_test_split(X, y, test_size=200, stratify=y, random_state=0)
y, flipped = flip_labels(y, 0.1, random_state=0)

# %%
# A private fit
# -------------
# The fit releases noisy counts, and `privacy_` states what this protects and what it
# does not. `values_for` computes the value of a row from the row itself and the counts
# of the others: it is meant for the owner of that row.
from skvalue import TKNNShapleyValuer

valuer = TKNNShapleyValuer(radius=0.2, epsilon=1.0, delta=1e-4)
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print(valuer.privacy_)
print(f"\nValue of row 0, for its owner: {valuer.values_for(0):.5f}.")

# %%
# Detection of wrong labels by epsilon
# ------------------------------------
# Three draws of the noise at every epsilon, with smoothing (the default) and
# without.
import numpy as np

from skvalue.inspection import noisy_label_auc
from skvalue.valuers import public_baseline

fit_args = dict(X=X, y=y, X_val=X_val, y_val=y_val)
exact = noisy_label_auc(TKNNShapleyValuer(radius=0.2).fit(**fit_args).values_, flipped)
baseline = noisy_label_auc(public_baseline(**fit_args, radius=0.2), flipped)
epsilons = np.geomspace(0.03, 30, 10)
found = {True: [], False: []}
for denoise, draws in found.items():
    for epsilon in epsilons:
        private = TKNNShapleyValuer(
            radius=0.2, epsilon=epsilon, delta=1e-4, denoise=denoise
        )
        draws.append(
            [
                noisy_label_auc(private.fit(**fit_args).values_, flipped)
                for _ in range(3)
            ]
        )
print(f"AUROC: exact {exact:.3f}, public baseline {baseline:.3f}.")

# %%
# Private values between two references
# -------------------------------------
# Lines are means over the draws, bands the range from the lowest to the highest.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
for denoise, color, label in (
    (True, "#30638e", "private, smoothed"),
    (False, "#d1495b", "private, noisy counts as they are"),
):
    draws = np.array(found[denoise])
    axes.plot(
        epsilons, draws.mean(axis=1), color=color, linewidth=2, marker="o", label=label
    )
    axes.fill_between(
        epsilons, draws.min(axis=1), draws.max(axis=1), color=color, alpha=0.15
    )
axes.axhline(exact, color="0.2", linewidth=1.2, label="exact, no privacy")
axes.axhline(
    baseline, color="0.2", linewidth=1.2, linestyle="--", label="public baseline"
)
axes.set_xscale("log")
axes.set(xlabel="epsilon (delta = 0.0001)", ylabel="AUROC of finding wrong labels")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
