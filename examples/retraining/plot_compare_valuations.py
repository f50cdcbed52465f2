"""
Compare five valuation methods
==============================

Data Shapley measures the contribution of a row to a given model, which is trained on
thousands of coalitions of rows. KNN-Shapley measures the contribution to a
nearest-neighbour model, exactly and in milliseconds. Five methods value the same rows,
one in ten of them mislabelled. The example compares their ranks, how well they find the
wrong labels, and the score of a model without the rows of lowest value.
"""

# %%
# Rows with wrong labels
# ----------------------
# 240 rows to value, 160 validation points, and the others as test set.
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue.datasets import flip_labels

X, y = load_breast_cancer(return_X_y=True)
X, X_rest, y_true, y_rest = train_test_split(
    X, y, train_size=240, stratify=y, random_state=0
)
X_val, X_test, y_val, y_test = train_test_split(
    X_rest, y_rest, train_size=160, random_state=0
)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
scaler = StandardScaler().fit(X)
X = scaler.transform(X)
X_val = scaler.transform(X_val)
X_test = scaler.transform(X_test)

# %%
# Five methods
# ------------
# Logistic regressions of many coalitions are trained at once, so that ten thousand of
# them take about a second. Data-OOB needs no validation set: each row is predicted by
# the trees that were not trained on it.
from skvalue import (
    DataBanzhafValuer,
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
)

model = LogisticRegression(random_state=0)
scoring = "neg_log_loss"
sampling = {"max_evaluations": 10_000, "random_state": 0}
valuers = {
    "KNN-Shapley": KNNShapleyValuer(n_neighbors=5),
    "Data Shapley": DataShapleyValuer(model, scoring=scoring, **sampling),
    "Data Banzhaf": DataBanzhafValuer(model, scoring=scoring, **sampling),
    "Leave-one-out": LeaveOneOutValuer(model, scoring=scoring),
    "Data-OOB": DataOOBValuer(n_estimators=100, random_state=0),
}

# %%
# One call
# --------
# :func:`~skvalue.inspection.compare` fits them, trains the logistic regression without
# increasing fractions of the rows of lowest value, and counts the wrong labels among
# the rows that are inspected first.
import numpy as np

from skvalue.inspection import ComparisonDisplay, compare

comparison = compare(
    valuers,
    X,
    y,
    X_val=X_val,
    y_val=y_val,
    X_test=X_test,
    y_test=y_test,
    wrong=flipped,
    estimator=model,
    fractions=np.linspace(0, 0.4, 5),
    scoring=scoring,
    random_state=0,
)
print("method         seconds  AUROC of finding wrong labels")
for name, seconds in comparison.seconds.items():
    print(f"{name:13}  {seconds:7.2f}  {comparison.detection[name].auc:.3f}")

# %%
# Good methods can disagree, because they value rows for different models:
correlation = comparison.correlations[0, 1]
print(f"\nRank correlation of KNN-Shapley with Data Shapley: {correlation:.2f}")

# %%
# The score does not decrease as long as the rows removed are those with wrong labels.
import matplotlib.pyplot as plt

ComparisonDisplay(comparison, score_name="minus log-loss on test rows").plot()
plt.show()
