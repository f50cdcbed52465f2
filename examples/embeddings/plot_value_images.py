"""
Value images through a network
==============================

A digit that moves by two pixels has hardly a pixel in common with itself: pixels are a poor measure
of how alike two images are, and the last layer but one of a network is a better one. `embedding`
takes any torch module: it is applied in evaluation mode, in batches, on the device where its
weights are. (Needs the extra `torch`.)
"""

# %%
# Digits with wrong labels
# ------------------------
# Each digit stands somewhere on a larger sheet. Images keep their shape, one channel of 14 by 14
# pixels. A third of them is somebody else's: the network learns from those, never from the rows to
# value.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
sheets = np.zeros((len(X), 1, 14, 14), dtype=np.float32)
corners = np.random.default_rng(0).integers(0, 7, (len(X), 2))
for sheet, digit, (row, column) in zip(sheets, X.reshape(-1, 8, 8) / 16, corners):
    sheet[0, row : row + 8, column : column + 8] = digit
X = sheets
X, X_other, y, y_other = train_test_split(X, y, test_size=600, stratify=y, random_state=0)
X, X_val, y_true, y_val = train_test_split(X, y, test_size=100, stratify=y, random_state=0)
y, flipped = flip_labels(y_true, 0.2, random_state=0)
print(f"{len(y)} digits, {flipped.sum()} of them mislabelled; {len(y_val)} checked ones.")

# %%
# A small network
# ---------------
import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
)  # fmt: skip
model = nn.Sequential(features, nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
images, labels = torch.from_numpy(X_other), torch.from_numpy(y_other)
for _ in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()

# %%
# Values by pixels and by features
# --------------------------------
from skvalue import KNNShapleyValuer
from skvalue.inspection import noisy_label_auc


def pixels(images):
    return images.reshape(len(images), -1)


values = {}
for name, embedding in [("pixels", pixels), ("network", features)]:
    valuer = KNNShapleyValuer(n_neighbors=5, embedding=embedding)
    values[name] = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    print(
        f"{name:7s} {valuer.n_features_in_:3d} features, utility {valuer.utility_:.3f}, AUROC of "
        f"finding the mislabelled digits: {noisy_label_auc(values[name], flipped):.3f}"
    )

# %%
# How many of the wrong labels are met when rows are read again in ascending order of value:
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
share = np.arange(1, len(y) + 1) / len(y)
for (name, value), color in zip(values.items(), ["#edae49", "#30638e"]):
    found = np.cumsum(flipped[value.argsort(kind="stable")]) / flipped.sum()
    axes.plot(share, found, color=color, label=f"values by {name}")
axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="at random")
axes.set(
    xlabel="share of the rows read",
    ylabel="share of the wrong labels met",
    xlim=(0, 1),
    ylim=(0, 1),
)
axes.legend(frameon=False, loc="lower right")
figure.savefig("value_images.png", dpi=120)
