"""
Compare five valuation methods
==============================

Data Shapley measures the contribution of a row to a given model, which is trained on thousands
of coalitions of rows. KNN-Shapley measures the contribution to a nearest-neighbour model,
exactly and in milliseconds. Five methods value the same rows, one in ten of them mislabelled.
The example compares their ranks, how well they find the wrong labels, and the score of a model
without the rows of lowest value.
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
X, X_rest, y_true, y_rest = train_test_split(X, y, train_size=240, stratify=y, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, train_size=160, random_state=0)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
scaler = StandardScaler().fit(X)
X, X_val, X_test = (scaler.transform(part) for part in (X, X_val, X_test))

# %%
# Five methods
# ------------
# Logistic regressions of many coalitions are trained at once, so that ten thousand of them take
# about a second. Data-OOB needs no validation set: each row is predicted by the trees that were
# not trained on it.
from time import perf_counter

from skvalue import (
    DataBanzhafValuer,
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
)
from skvalue.inspection import noisy_label_auc

model = LogisticRegression(random_state=0)
drawn = {"max_evaluations": 10_000, "random_state": 0}
valuers = {
    "KNN-Shapley": KNNShapleyValuer(n_neighbors=5),
    "Data Shapley": DataShapleyValuer(model, scoring="neg_log_loss", **drawn),
    "Data Banzhaf": DataBanzhafValuer(model, scoring="neg_log_loss", **drawn),
    "Leave-one-out": LeaveOneOutValuer(model, scoring="neg_log_loss"),
    "Data-OOB": DataOOBValuer(n_estimators=100, random_state=0),
}
values, auc = {}, {}
print("method         seconds  AUROC of finding wrong labels")
for name, valuer in valuers.items():
    validation = {} if name == "Data-OOB" else {"X_val": X_val, "y_val": y_val}
    start = perf_counter()
    values[name] = valuer.fit(X, y, **validation).values_
    seconds = perf_counter() - start
    auc[name] = noisy_label_auc(values[name], flipped)
    print(f"{name:13}  {seconds:7.2f}  {auc[name]:.3f}")

# %%
# Rank correlations
# -----------------
# Spearman's correlation of the ranks for all pairs of methods. Good methods can disagree,
# because they value rows for different models.
import numpy as np
from scipy.stats import spearmanr

names = list(values)
agreement = spearmanr(np.column_stack(list(values.values()))).statistic
print(f"\nRank correlation of KNN-Shapley with Data Shapley: {agreement[0, 1]:.2f}")

# %%
# Removal curves
# --------------
# The logistic regression is fitted without increasing fractions of the rows of lowest value.
# Its score does not decrease as long as these are the rows with wrong labels.
from skvalue.inspection import value_removal_curve

fractions = np.linspace(0, 0.4, 5)
curves = {
    name: value_removal_curve(
        model, X, y, v, X_test, y_test, fractions=fractions, scoring="neg_log_loss",
        baseline=name == names[0], random_state=0,
    )
    for name, v in values.items()
}  # fmt: skip

# %%
# Ranks and removal curves of the methods
# ---------------------------------------
import matplotlib.pyplot as plt

COLORS = dict(zip(names, ["#30638e", "#d1495b", "#edae49", "#9a8c98", "#3a7d44"]))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", gridspec_kw={"width_ratios": [1, 1.25]}
)
image = left.imshow(agreement, vmin=-1, vmax=1, cmap="RdBu")
for i, row in enumerate(agreement):
    for j, value in enumerate(row):
        color = "white" if abs(value) > 0.6 else "black"
        left.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=9)
left.set_xticks(range(len(names)), names, rotation=35, ha="right")
left.set_yticks(range(len(names)), names)
left.spines[:].set_visible(False)
left.set_title("Rank correlation of values", loc="left")

for name, curve in curves.items():
    scores = curve.scores.mean(axis=0)
    label = f"{name} (AUROC {auc[name]:.2f})"
    right.plot(100 * fractions, scores, color=COLORS[name], marker="o", markersize=4, label=label)
random_scores = curves[names[0]].random_scores.mean(axis=0)
right.plot(100 * fractions, random_scores, color="0.5", linestyle="--", label="random rows")
right.set(xlabel="% of rows removed, lowest values first", ylabel="minus log-loss on test rows")
right.spines[["top", "right"]].set_visible(False)
right.set_ylim(bottom=random_scores.min() - 0.1)
right.legend(frameon=False, fontsize=9, loc="lower right", ncols=2)
right.set_title("Logistic regression without them", loc="left")
plt.show()
