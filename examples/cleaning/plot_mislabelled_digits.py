"""
Find mislabelled digits
=======================

One in ten of the labels of a set of handwritten digits is wrong. With a hundred digits
whose labels were checked by hand as validation set, KNN-Shapley gives each digit a
value: one with a wrong label contradicts the checked digits near it and gets a low
value. Sorted by value, the mislabelled digits come first.
"""

# %%
# Digits with wrong labels
# ------------------------
# A hundred digits with correct labels are the validation set. Of the other labels 10 %
# are flipped; the mask ``flipped`` is used only to evaluate the result.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_val, y_true, y_val = train_test_split(
    X, y, test_size=100, stratify=y, random_state=0
)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
n_wrong = flipped.sum()
print(f"{len(y)} digits, {n_wrong} of them mislabelled; {len(y_val)} checked ones.")

# %%
# One value per row
# -----------------
# The Shapley value of a row is its average contribution, over coalitions of the other
# rows, to the probability that a 5-nearest-neighbour classifier gives to the labels of
# the validation set. It is computed exactly, in one pass over the distances.
from skvalue import KNNShapleyValuer

valuer = KNNShapleyValuer(n_neighbors=5).fit(X, y, X_val=X_val, y_val=y_val)
values = valuer.values_

# %%
# The area under the ROC curve is the probability that a mislabelled row has a lower
# value than a correctly labelled one.
from skvalue.inspection import noisy_label_auc

auc = noisy_label_auc(values, flipped)
print(f"AUROC of finding the mislabelled digits: {auc:.3f}")

# %%
# The rows to check first. Here their true labels are known; in practice this is the
# list for the annotator.
worst = values.argsort(kind="stable")

print("\nThe 15 rows of lowest value:")
print("  row  given  true    value")
for row in worst[:15]:
    mark = "mislabelled" if flipped[row] else "right"
    print(f"{row:5d}  {y[row]:5d}  {y_true[row]:4d}  {values[row]:7.4f}  {mark}")

fraction = flipped[worst[:n_wrong]].mean()
print(f"\nOf the {n_wrong} rows of lowest value, {fraction:.0%} are mislabelled.")

# %%
# Digits of lowest value
# ----------------------
# Top: the digits of lowest value. Those with a correct label have an unusual shape.
# Bottom: the distribution of all values, for mislabelled and for correctly labelled
# rows.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

# Colours of wrong and right labels.
WRONG = "#d1495b"
RIGHT = "#30638e"

n_rows = 4
n_columns = 10
figure = plt.figure(figsize=(11, 7), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=[5, 2], hspace=0.04)

title = f"The {n_rows * n_columns} lowest of {len(y)} values: given → true label"
upper.suptitle(title, x=0.01, ha="left")
for axes, row in zip(upper.subplots(n_rows, n_columns).flat, worst):
    color = WRONG if flipped[row] else RIGHT
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=color, linewidth=2)
    axes.set_title(f"{y[row]} → {y_true[row]}", color=color, fontsize=11, pad=4)

lower.suptitle(f"All values: AUROC {auc:.3f}", x=0.01, ha="left")
axes = lower.subplots()
bins = np.linspace(values.min(), values.max(), 61)
axes.hist(values[flipped], bins, density=True, color=WRONG, alpha=0.7)
axes.hist(values[~flipped], bins, density=True, color=RIGHT, alpha=0.7)
axes.axvline(0, color="0.2", linewidth=0.8)
axes.set(xlabel="value", ylabel="density", yticks=[])
axes.spines[["left", "top", "right"]].set_visible(False)
axes.legend(
    handles=[
        Patch(color=WRONG, label="mislabelled"),
        Patch(color=RIGHT, label="label is right"),
    ],
    frameon=False,
    loc="upper left",
)

figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
plt.show()
