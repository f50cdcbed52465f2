"""
Value images through a network
==============================

Two images of the same digit, shifted by two pixels, have few pixels in common, so
distances between pixels are a poor measure of similarity. Distances in the feature
space of a network are better. The parameter `embedding` takes any torch module and
applies it in evaluation mode, in batches, on the device of its weights. (This example
needs the extra `torch`.)
"""

# %%
# Digits with wrong labels
# ------------------------
# Each digit is at a random place of a larger image: one channel of 14 by 14 pixels. A
# third of the images trains the network; they are not among the rows to value.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
images = np.zeros((len(X), 1, 14, 14), dtype=np.float32)
corners = np.random.default_rng(0).integers(0, 7, (len(X), 2))
for image, digit, (row, column) in zip(images, X.reshape(-1, 8, 8) / 16, corners):
    image[0, row : row + 8, column : column + 8] = digit
X, X_other, y, y_other = train_test_split(
    images, y, test_size=600, stratify=y, random_state=0
)
X, X_val, y_true, y_val = train_test_split(
    X, y, test_size=100, stratify=y, random_state=0
)
y, flipped = flip_labels(y_true, 0.2, random_state=0)
n_wrong = flipped.sum()
print(f"{len(y)} digits, {n_wrong} of them mislabelled; {len(y_val)} checked ones.")

# %%
# A small network
# ---------------
# Three convolutions and a linear layer. The values below use the output of the
# convolutions.
import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(1),
    nn.Flatten(),
)
model = nn.Sequential(features, nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
batch = torch.from_numpy(X_other)
labels = torch.from_numpy(y_other)
for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch), labels)
    loss.backward()
    optimizer.step()

# %%
# Values from pixels and from features
# ------------------------------------
# The same valuer with two embeddings: the pixels as they are, and the trained features.
from skvalue import KNNShapleyValuer
from skvalue.inspection import noisy_label_auc


def pixels(images):
    return images.reshape(len(images), -1)


values = {}
for name, embedding in [("pixels", pixels), ("network", features)]:
    valuer = KNNShapleyValuer(n_neighbors=5, embedding=embedding)
    values[name] = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    auc = noisy_label_auc(values[name], flipped)
    print(
        f"{name:7s} {valuer.n_features_in_:3d} features, utility "
        f"{valuer.utility_:.3f}, AUROC of finding the mislabelled digits: {auc:.3f}"
    )

# %%
# Wrong labels found
# ------------------
# The fraction of wrong labels found when rows are checked in ascending order of value.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
checked = np.arange(1, len(y) + 1) / len(y)
colors = {"pixels": "#edae49", "network": "#30638e"}
for name, color in colors.items():
    order = values[name].argsort(kind="stable")
    found = np.cumsum(flipped[order]) / n_wrong
    axes.plot(checked, found, color=color, linewidth=2, label=f"values from {name}")
axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="random order")
axes.set(
    xlabel="fraction of rows checked",
    ylabel="fraction of wrong labels found",
    xlim=(0, 1),
    ylim=(0, 1),
)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
