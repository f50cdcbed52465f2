"""
A network of skorch as the model that values rows
=================================================

Methods that train a model on coalitions of rows take any classifier of scikit-learn's
kind, so also a network of torch that skorch wraps. Here leave-one-out asks what ten
groups of rows are worth to it: one of them has wrong labels.
"""

# %%
# Ten groups, the last with wrong labels
# --------------------------------------
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

X, y = make_moons(600, noise=0.25, random_state=0)
X = X.astype(np.float32)
X, X_val, y, y_val = train_test_split(X, y, train_size=200, random_state=0)
groups = np.arange(len(y)) // 20
y[groups == 9] = 1 - y[groups == 9]

# %%
# The network
# -----------
# Its seed is set in each fit, so that equal coalitions give equal networks.
import torch
from skorch import NeuralNetClassifier
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, X):
        return self.layers(X)


network = NeuralNetClassifier(
    Network,
    criterion=nn.CrossEntropyLoss,
    max_epochs=30,
    lr=0.5,
    batch_size=64,
    train_split=None,
    verbose=0,
)

# %%
# Values of the groups
# --------------------
# Sixty utilities cost sixty trainings, and the values have standard errors.
from skvalue import DataShapleyValuer

valuer = DataShapleyValuer(
    network, scoring="neg_log_loss", max_evaluations=60, random_state=0
)
valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
for group, value, error in zip(valuer.groups_, valuer.values_, valuer.values_error_):
    print(f"group {group}: {value:+.3f} +- {error:.3f}")
worst = valuer.groups_[valuer.values_.argmin()]
print(f"Lowest value: group {worst}.")

# %%
# The group with wrong labels stands apart
# ----------------------------------------
import matplotlib.pyplot as plt

errors = 2 * valuer.values_error_
plt.errorbar(valuer.groups_, valuer.values_, errors, fmt="o", capsize=3)
plt.axhline(0, color="gray", linewidth=0.8)
plt.xlabel("group")
plt.ylabel("value, with two standard errors")
plt.show()
