"""
Gradient values and retraining
==============================

Gradient Shapley values (G-Shapley) measure the effect of one gradient step on a row
while a model is being trained; Data Shapley trains models to convergence on thousands
of coalitions. Both find wrong labels. This example compares their values and ranks of
the same rows.
"""

# %%
# Rows with wrong labels
# ----------------------
# 240 rows to value, one label in ten wrong, and 160 validation points.
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue.datasets import flip_labels

X, y = load_breast_cancer(return_X_y=True)
X, X_val, y, y_val = train_test_split(
    X, y, train_size=240, test_size=160, stratify=y, random_state=0
)
y, flipped = flip_labels(y, 0.1, random_state=0)
scaler = StandardScaler().fit(X)
X = scaler.transform(X)
X_val = scaler.transform(X_val)

# %%
# Both values
# -----------
# The model and the utility, the negated log-loss, are the same. Gradient values with a
# second random seed show how much of the difference is due to the random permutations.
from time import perf_counter

from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from skvalue import DataShapleyValuer, GradientSemivalueValuer
from skvalue.inspection import noisy_label_auc

retrained = DataShapleyValuer(
    LogisticRegression(), scoring="neg_log_loss", max_evaluations=5_000, random_state=0
)
valuers = {
    "retraining": retrained,
    "gradients": GradientSemivalueValuer(
        "logistic", n_permutations=400, random_state=0
    ),
    "gradients, seed 1": GradientSemivalueValuer(
        "logistic", n_permutations=400, random_state=1
    ),
}
values = {}
print(f"{'':17} seconds  AUROC of wrong labels  rank correlation with retraining")
for name, valuer in valuers.items():
    start = perf_counter()
    values[name] = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    seconds = perf_counter() - start
    rank = spearmanr(values[name], values["retraining"]).statistic
    auc = noisy_label_auc(values[name], flipped)
    print(f"{name:17} {seconds:7.2f}  {auc:21.3f}  {rank:32.3f}")
by_gradients = values["gradients"]
by_retraining = values["retraining"]
rank = spearmanr(by_gradients, values["gradients, seed 1"]).statistic
print(f"\nRank correlation of gradients with two seeds: {rank:.3f}")
rank = spearmanr(by_gradients[~flipped], by_retraining[~flipped]).statistic
print(
    "Rank correlation of gradients and retraining, rows with correct labels: "
    f"{rank:.3f}"
)

# %%
# Values of the same rows
# -----------------------
# With both methods rows with wrong labels have the lowest values. After a few hundred
# small steps a model is far from convergence, and rows that are redundant for a trained
# model still improve it. Gradient values are therefore not an estimate of the values by
# retraining.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
is_shown = {"right label": ~flipped, "wrong label": flipped}
for (label, rows), color in zip(is_shown.items(), ("#30638e", "#d1495b")):
    x = by_retraining[rows]
    ax.plot(x, by_gradients[rows], "o", markersize=4, color=color, label=label)
ax.axhline(0, linewidth=0.5, color="0.2")
ax.axvline(0, linewidth=0.5, color="0.2")
ax.set(xlabel="value by retraining", ylabel="value by gradients")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
