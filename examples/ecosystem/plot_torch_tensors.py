"""
Rows that are tensors of torch
==============================

Features of a network are tensors, often on a GPU. Valuers take them as rows, labels
and validation points, with and without scikit-learn's ``array_api_dispatch``; values
are arrays of numpy, and the same as those of arrays. Here the features of images value
these images, and a filter trains a classifier without the lowest ones.
"""

# %%
# Features of a network, as tensors
# ---------------------------------
# The first layer of a small network is trained on a third of the digits. Another third
# is to be valued, with a tenth of its labels made wrong; the last third is for tests.
# The variable of the environment is what scikit-learn's ``array_api_dispatch`` wants.
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
y = torch.tensor(y)
X_public, X, y_public, y = train_test_split(X, y, test_size=2 / 3, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=1)

torch.manual_seed(0)
layer = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
network = nn.Sequential(layer, nn.Linear(32, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(X_public), y_public).backward()
    optimizer.step()

features = layer(X).detach()
test_features = layer(X_test).detach()
labels, wrong = flip_labels(y.numpy(), 0.1, random_state=2)
labels = torch.tensor(labels)
print(type(features).__name__, tuple(features.shape), features.dtype)

# %%
# Their values
# ------------
# ``engine="torch"`` ranks neighbours with torch, on ``device="cuda"`` where there is a
# GPU; the default engine reads the tensor into memory. Both give the same values.
import numpy as np
from sklearn.metrics import roc_auc_score

from skvalue import KNNShapleyValuer

public = {"X_val": layer(X_public).detach(), "y_val": y_public}
valuer = KNNShapleyValuer(engine="torch").fit(features, labels, **public)
by_default = KNNShapleyValuer().fit(features, labels, **public)
print(f"engine {valuer.engine_} on {valuer.device_}: {type(valuer.values_).__name__}")
print(f"Largest difference: {np.abs(valuer.values_ - by_default.values_).max():.0e}")
print(
    f"AUROC of low values for wrong labels: {roc_auc_score(wrong, -valuer.values_):.3f}"
)

# %%
# In a pipeline that keeps tensors
# --------------------------------
# With ``array_api_dispatch`` the steps of scikit-learn that support it compute with
# tensors, too, so that the valuer gets one.
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skvalue import ValueFilteredClassifier

filtered = ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(), drop=0.1)
with config_context(array_api_dispatch=True):
    pipeline = make_pipeline(MinMaxScaler(), filtered).fit(features, labels)
    accuracy = pipeline.score(test_features, y_test)
print(f"What the scaler learned: {type(pipeline[0].scale_).__name__}")
print(f"Accuracy without the lowest tenth: {accuracy:.3f}")

plain = make_pipeline(MinMaxScaler(), LogisticRegression())
plain.fit(features.numpy(), labels.numpy())
accuracy = plain.score(test_features.numpy(), y_test.numpy())
print(f"Accuracy with all rows: {accuracy:.3f}")

# %%
# Values of right and wrong labels
# --------------------------------
import matplotlib.pyplot as plt

from skvalue.inspection import ValueDistributionDisplay

kinds = np.where(wrong, "wrong label", "right label")
ValueDistributionDisplay.from_estimator(valuer, by=kinds)
plt.show()
