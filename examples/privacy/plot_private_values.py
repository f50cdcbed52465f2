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
y = y % 2
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

data = dict(X=X, y=y, X_val=X_val, y_val=y_val)


def private_scores(denoise):
    """AUROC of three draws at every epsilon, of shape (n_epsilons, 3)."""
    scores = np.empty((len(epsilons), 3))
    for i, epsilon in enumerate(epsilons):
        private = TKNNShapleyValuer(
            radius=0.2, epsilon=epsilon, delta=1e-4, denoise=denoise
        )
        for draw in range(3):
            values = private.fit(**data).values_
            scores[i, draw] = noisy_label_auc(values, flipped)
    return scores


epsilons = np.geomspace(0.03, 30, 10)
smoothed = private_scores(denoise=True)
unsmoothed = private_scores(denoise=False)
exact = noisy_label_auc(TKNNShapleyValuer(radius=0.2).fit(**data).values_, flipped)
baseline = noisy_label_auc(public_baseline(**data, radius=0.2), flipped)
print(f"AUROC: exact {exact:.3f}, public baseline {baseline:.3f}.")

# %%
# Private values between two references
# -------------------------------------
# Lines are means over the draws, bands the range from the lowest to the highest.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")


def draw_band(scores, color, label):
    mean = scores.mean(axis=1)
    low = scores.min(axis=1)
    high = scores.max(axis=1)
    axes.plot(epsilons, mean, color=color, linewidth=2, marker="o", label=label)
    axes.fill_between(epsilons, low, high, color=color, alpha=0.15)


draw_band(smoothed, "#30638e", "private, smoothed")
draw_band(unsmoothed, "#d1495b", "private, noisy counts as they are")
axes.axhline(exact, color="0.2", linewidth=1.2, label="exact, no privacy")
axes.axhline(
    baseline, color="0.2", linewidth=1.2, linestyle="--", label="public baseline"
)
axes.set_xscale("log")
axes.set(xlabel="epsilon (delta = 0.0001)", ylabel="AUROC of finding wrong labels")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
