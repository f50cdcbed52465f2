"""
Choose a radius
===============

Threshold-KNN-Shapley values a row by the validation points within a radius of it. With
a small radius most rows have no validation point in range and get the value 0; with a
large one every row is near every point, and its value reflects little more than the
frequency of its label. `suggest_radius` uses the validation points only, so the choice
has no privacy cost for the training rows. This example compares the suggested radius
with all others on data whose wrong labels are known.
"""

# %%
# Digits with 10 % wrong labels
# -----------------------------
# 200 digits with correct labels are the validation set; one in ten of the other labels
# is flipped.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, test_size=200, stratify=y, random_state=0)
y, flipped = flip_labels(y, 0.1, random_state=0)

# %%
# The suggested radius
# --------------------
# `suggest_radius` tries many radii and returns the largest with which the validation
# points predict each other's labels as well as with any radius, up to two standard
# errors. It is the default of `TKNNShapleyValuer`.
from skvalue.valuers.tknn_shapley import suggest_radius

suggested = suggest_radius(X_val, y_val, metric="cosine")
print(f"Suggested radius: {suggested:.3f}, in cosine distance.")

# %%
# All radii
# ---------
# Three quantities for each radius: how well low values find the wrong labels, the
# fraction of rows with a validation point in range, and the utility, which is the mean
# probability that the threshold classifier gives to the label of a validation point.
import numpy as np

from skvalue import TKNNShapleyValuer
from skvalue.inspection import noisy_label_auc

radii = np.linspace(0.01, 0.7, 36)
areas = []
fractions_in_range = []
utilities = []
for radius in radii:
    valuer = TKNNShapleyValuer(radius=radius, metric="cosine")
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    areas.append(noisy_label_auc(valuer.values_, flipped))
    fractions_in_range.append(np.mean(valuer.values_ != 0))
    utilities.append(valuer.utility_)
area = np.interp(suggested, radii, areas)
print(
    f"AUROC of finding wrong labels: {area:.3f} suggested, {max(areas):.3f} at the "
    "best radius."
)

# %%
# The curves and three distributions
# ----------------------------------
# Left: the three curves; the vertical line is the suggested radius. Right: the values
# for a radius that is too small, for the suggested one, and for one that is too large.
import matplotlib.pyplot as plt

from skvalue.inspection import ValueDistributionDisplay

BLUE = "#30638e"
RED = "#d1495b"
GREY = "#8d8d8d"
figure = plt.figure(figsize=(11.5, 5), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
axes = left.subplots()
axes.plot(radii, areas, color=RED, label="AUROC of finding wrong labels", linewidth=2)
axes.plot(radii, utilities, color=BLUE, label="utility of all rows", linewidth=2)
axes.plot(
    radii,
    fractions_in_range,
    color=GREY,
    label="fraction of rows in range",
    linewidth=2,
)
axes.axvline(suggested, color="0.2", linewidth=0.8)
axes.annotate(
    f"suggested: {suggested:.2f}",
    (suggested, 0),
    (5, 4),
    textcoords="offset points",
    color="0.2",
)
axes.set(
    xlabel="radius (cosine distance)",
    ylabel="score or fraction",
    ylim=(0, 1.03),
    xlim=(0, radii[-1]),
)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.18))

kinds = np.where(flipped, "wrong label", "right label")
panels = right.subplots(3, 1)
choices = [(0.03, "too small"), (suggested, "suggested"), (0.6, "too large")]
for axes, (radius, description) in zip(panels, choices):
    valuer = TKNNShapleyValuer(radius=radius).fit(X, y, X_val=X_val, y_val=y_val)
    values = 1000 * valuer.values_
    ValueDistributionDisplay.from_values(values, by=kinds, bins=60, ax=axes)
    axes.set(xlabel="", ylabel="", yticks=[])
    axes.set_title(f"radius {radius:.2f}, {description}", loc="left", fontsize=10)
    axes.spines["left"].set_visible(False)
    if axes is not panels[0]:
        axes.get_legend().remove()
panels[1].set_ylabel("density")
panels[-1].set_xlabel("value, in thousandths")
plt.show()
