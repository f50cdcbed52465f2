"""
Choose a radius
===============

Threshold-KNN-Shapley judges a row by the validation points within a radius of it. If the radius is
too small most rows are near no validation point and get the value 0; if it is too large every row
is near every point, and its value says little more than how common its label is.
`suggest_radius` chooses by the validation points alone, so that the choice costs no privacy of the
rows to value. Here we look over its shoulder, with wrong labels that we know.
"""

# %%
# Digits, one label in ten wrong
# ------------------------------
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, test_size=200, stratify=y, random_state=0)
y, flipped = flip_labels(y, 0.1, random_state=0)

# %%
# The suggestion
# --------------
# Of many radii it takes the one under which the validation points predict each other best.
from skvalue.valuers.tknn_shapley import suggest_radius

suggested = suggest_radius(X_val, y_val, metric="cosine")
print(f"Suggested radius: {suggested:.3f}, in cosine distance.")

# %%
# All radii
# ---------
# For every radius: how well low values find the wrong labels, what share of rows has a validation
# point within reach, and the utility, which is the mean probability that the threshold classifier
# gives the right label of a validation point.
import numpy as np

from skvalue import TKNNShapleyValuer
from skvalue.inspection import noisy_label_auc

radii = np.linspace(0.01, 0.7, 36)
found, reached, utilities = [], [], []
for radius in radii:
    valuer = TKNNShapleyValuer(radius=radius, metric="cosine").fit(X, y, X_val=X_val, y_val=y_val)
    found.append(noisy_label_auc(valuer.values_, flipped))
    reached.append(np.mean(valuer.values_ != 0))
    utilities.append(valuer.utility_)
best = int(np.argmax(found))
there = np.interp(suggested, radii, found)
print(f"AUROC of finding wrong labels: {there:.3f} there, {found[best]:.3f} at the best radius.")

# %%
# The picture
# -----------
# Left, the three curves; the suggestion is the line. Right, the values at a radius too small, at
# the suggestion and at one too large.
import matplotlib.pyplot as plt

from skvalue.inspection import ValueDistributionDisplay

BLUE, RED, GREY = "#30638e", "#d1495b", "#8d8d8d"
figure = plt.figure(figsize=(11.5, 5), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
axes = left.subplots()
for curve, color, label in (
    (found, RED, "AUROC of finding wrong labels"),
    (utilities, BLUE, "utility of all rows"),
    (reached, GREY, "share of rows within reach"),
):
    axes.plot(radii, curve, color=color, label=label, linewidth=2)
axes.axvline(suggested, color="0.2", linewidth=0.8)
axes.annotate(
    f"suggested: {suggested:.2f}", (suggested, 0), (5, 4), textcoords="offset points", color="0.2"
)
axes.set(xlabel="radius", ylim=(0, 1.03), xlim=(0, radii[-1]))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.18))

kinds = np.where(flipped, "wrong label", "right label")
panels = right.subplots(3, 1)
for axes, (radius, what) in zip(
    panels, ((0.03, "too small"), (suggested, "suggested"), (0.6, "too large"))
):
    values = TKNNShapleyValuer(radius=radius).fit(X, y, X_val=X_val, y_val=y_val).values_
    ValueDistributionDisplay.from_values(1000 * values, by=kinds, bins=60, ax=axes)
    axes.set(xlabel="", ylabel="", yticks=[])
    axes.set_title(f"radius {radius:.2f}, {what}", loc="left", fontsize=10)
    axes.spines["left"].set_visible(False)
    if axes is not panels[0]:
        axes.get_legend().remove()
panels[-1].set_xlabel("value, in thousandths")
figure.savefig("choose_radius.png", dpi=110)
plt.show()
