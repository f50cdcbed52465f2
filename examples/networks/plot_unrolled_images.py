"""
A network's most helpful and most harmful images
================================================

A small network is trained on handwritten digits, one in ten of them mislabelled. The
derivatives of its mean validation loss by the weights of all images, back through every
step of the training, say which images help this network and which harm it. Training
without the most harmful ones confirms it.
"""

# %%
# A network and its training
# --------------------------
# 400 digits are the validation set. Of the labels of the others 10 % are flipped; the
# mask ``flipped`` is used only to evaluate the result. The activation is smooth, so
# that derivatives predict well what small changes of the training set do.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_val, y_true, y_val = train_test_split(
    X / 16, y, test_size=400, stratify=y, random_state=0
)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
network = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))

# %%
# One value per image
# -------------------
# The value of an image is, to first order, what the utility (minus the mean validation
# loss) loses when the image is removed. One pass back through the training gives all of
# them; the values are means over two trainings, which differ in their start and their
# batches.
from skvalue import UnrolledValuer

valuer = UnrolledValuer(network, n_epochs=15, n_runs=2, random_state=0)
valuer.fit(X, y, X_val=X_val, y_val=y_val)
order = valuer.values_.argsort()
print(
    f"Utility of the network: {valuer.utility_:.3f}, before training "
    f"{valuer.empty_utility_:.3f}"
)
print(f"Images that harm it: {(valuer.values_ < 0).sum()} of {len(y)}")
print(f"Of the 40 most harmful images, {flipped[order[:40]].sum()} are mislabelled.")

# %%
# Training without them
# ---------------------
# The utility of the network when it is trained again without the most harmful images,
# without the most helpful ones and without random ones.
import numpy as np

random = np.random.default_rng(0).permutation(len(y))
orders = {"most harmful": order, "random": random, "most helpful": order[::-1]}
counts = [60, 120]
utilities = {}
for name, rows in orders.items():
    utilities[name] = []
    for count in counts:
        kept = np.setdiff1d(np.arange(len(y)), rows[:count])
        retrained = UnrolledValuer(network, n_epochs=15, n_runs=2, random_state=0)
        retrained.fit(X[kept], y[kept], X_val=X_val, y_val=y_val)
        utilities[name].append(retrained.utility_)
    printed = ", ".join(f"{utility:.3f}" for utility in utilities[name])
    print(f"Utility without {counts} {name} images: {printed}")

# %%
# The images
# ----------
# Top: the most harmful images, most of them mislabelled. Middle: the most helpful ones,
# whose labels are right. Bottom: what training without such images does.
import matplotlib.pyplot as plt

RED = "#d1495b"
BLUE = "#30638e"


def draw_images(figure, title, rows):
    """Draw the first 20 rows, wrong labels in red."""
    figure.suptitle(title, x=0.01, ha="left")
    for axes, row in zip(figure.subplots(2, 10).flat, rows):
        color = RED if flipped[row] else BLUE
        axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(color=color, linewidth=2)
        axes.set_title(f"{y[row]} → {y_true[row]}", color=color, fontsize=10, pad=3)


figure = plt.figure(figsize=(10, 8), layout="constrained")
upper, middle, lower = figure.subfigures(3, 1, height_ratios=[3, 3, 4], hspace=0.04)
draw_images(upper, "Most harmful: given → true label", order)
draw_images(middle, "Most helpful: given → true label", order[::-1])

axes = lower.subplots()
colors = {"most harmful": RED, "random": "0.5", "most helpful": BLUE}
for name, color in colors.items():
    line = [valuer.utility_, *utilities[name]]
    axes.plot([0, *counts], line, "o-", color=color)
    axes.text(counts[-1] + 2, line[-1], name, color=color, va="center")
axes.set(
    xlabel="images removed",
    ylabel="utility",
    xlim=(-2, counts[-1] + 25),
    xticks=[0, *counts],
)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
