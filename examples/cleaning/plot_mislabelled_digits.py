"""
Find mislabelled digits
=======================

Somebody labels images of handwritten digits and gets one in ten wrong. A hundred digits whose
labels were checked by hand say what each of the others is worth: one with a wrong label speaks
against the checked digits around it and gets a low value. Whoever reads the rows again in ascending
order of value meets the wrong labels first.
"""

# %%
# Digits with wrong labels
# ------------------------
# A hundred digits are the checked part, the validation set. Of the other labels we flip 10 %, and
# keep in mind which.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_val, y_true, y_val = train_test_split(X, y, test_size=100, stratify=y, random_state=0)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
print(f"{len(y)} digits, {flipped.sum()} of them mislabelled; {len(y_val)} checked ones.")

# %%
# One value a row
# ---------------
# The Shapley value of a row is what it adds, on average over coalitions of the other rows, to a
# 5-nearest-neighbour classifier judged on the checked digits. It is computed exactly, from one
# pass over the distances.
from skvalue import KNNShapleyValuer

valuer = KNNShapleyValuer(n_neighbors=5).fit(X, y, X_val=X_val, y_val=y_val)
values = valuer.values_

# %%
# How well do low values point at wrong labels? The area under the ROC curve is the chance that a
# mislabelled row has a lower value than a clean one.
from skvalue.inspection import noisy_label_auc

auc = noisy_label_auc(values, flipped)
print(f"AUROC of finding the mislabelled digits: {auc:.3f}")

# %%
# The rows to look at first. Here their true labels are known; in real work this is the list for
# the person who labels.
worst = values.argsort(kind="stable")

print("\nThe 15 rows of lowest value:")
print("  row  given  true    value")
for row in worst[:15]:
    mark = "mislabelled" if flipped[row] else "right"
    print(f"{row:5d}  {y[row]:5d}  {y_true[row]:4d}  {values[row]:7.4f}  {mark}")

found = flipped[worst[: flipped.sum()]].mean()
print(f"\nOf the {flipped.sum()} rows of lowest value, {found:.0%} are mislabelled.")

# %%
# A picture of them
# -----------------
# Above, the lowest values; a digit whose label is right but which stands among them is an odd one.
# Below, all values, mislabelled and clean rows scaled to the same area.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

WRONG, RIGHT = "#d1495b", "#30638e"
N_ROWS, N_COLUMNS = 4, 10

figure = plt.figure(figsize=(11, 7), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=[5, 2], hspace=0.04)

title = {"x": 0.01, "ha": "left"}
upper.suptitle(f"The {N_ROWS * N_COLUMNS} lowest of {len(y)} values: given → true label", **title)
for axes, row in zip(upper.subplots(N_ROWS, N_COLUMNS).flat, worst):
    color = WRONG if flipped[row] else RIGHT
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=color, linewidth=2)
    axes.set_title(f"{y[row]} → {y_true[row]}", color=color, fontsize=11, pad=4)

lower.suptitle(f"All values, each kind of row scaled to the same area: AUROC {auc:.3f}", **title)
axes = lower.subplots()
bins = np.linspace(values.min(), values.max(), 61)
for rows, color in ((flipped, WRONG), (~flipped, RIGHT)):
    axes.hist(values[rows], bins, density=True, color=color, alpha=0.7)
axes.axvline(0, color="0.2", linewidth=0.8)
axes.set(xlabel="value", yticks=[])
axes.spines[["left", "top", "right"]].set_visible(False)
axes.legend(
    handles=[Patch(color=WRONG, label="mislabelled"), Patch(color=RIGHT, label="label is right")],
    frameon=False,
    loc="upper left",
)

figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
figure.savefig("mislabelled_digits.png", dpi=110)
plt.show()
