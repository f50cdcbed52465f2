"""
Finding bad data sets from private gradients
============================================

Twenty parties hold small data sets, which they do not show. In six of them all labels
are wrong. Each party sends gradients with noise that protects every one of its rows.
The guarantee bounds what can be inferred from one row, but the noise averages out over
the rows of a data set. `detection_curve` measures how well data sets with wrong labels
are found as their size grows, and draws the bound that no method can exceed.
"""

# %%
# Digits of twenty parties
# ------------------------
# The classes are odd and even digits. Each party has 64 rows; the first six parties
# have the wrong label in every row.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
y = y % 2
X, X_val, y, y_val = train_test_split(
    X / 16, y, train_size=20 * 64, test_size=400, stratify=y, random_state=0
)

# Pixels that are blank in the public digits are left out.
pixels = X_val.std(axis=0) > 0.03
X = X[:, pixels]
X_val = X_val[:, pixels]

parties = np.arange(len(y)) % 20
wrong = np.arange(20) < 6
y = np.where(wrong[parties], 1 - y, y)

# %%
# A private fit
# -------------
# `privacy_` states the guarantee of every row.
from skvalue import GradientSemivalueValuer

valuer = GradientSemivalueValuer(
    "logistic",
    unit="example",
    epsilon=1.0,
    delta=1e-4,
    n_permutations=50,
    learning_rate=0.3,
)
valuer.fit(X, y, groups=parties, X_val=X_val, y_val=y_val)
print(valuer.privacy_)

# %%
# Detection by data set size
# --------------------------
# Every permutation releases noisy gradients, and all releases together satisfy the same
# epsilon. With independent noise, each gradient step uses one noisy release. With
# averaged noise, each step uses the average of the releases so far, and the model is
# disturbed less.
from skvalue.inspection import detection_curve

kinds_of_noise = {
    "averaged noise": {"noise": "correlated", "burn_in": 0.9},
    "independent noise": {"noise": "iid", "burn_in": 0.0},
}
curves = {}
for label, noise in kinds_of_noise.items():
    curves[label] = detection_curve(
        valuer.set_params(**noise),
        X,
        y,
        groups=parties,
        wrong=wrong,
        X_val=X_val,
        y_val=y_val,
        epsilons=[1.0],
        sizes=[1, 4, 16, 32, 64],
        n_repeats=3,
        random_state=0,
    )

# %%
# Comparison with retraining
# --------------------------
# Gradient values measure one gradient step per party; `DataShapleyValuer` trains a
# model on the rows of each coalition. Both find the parties with wrong labels. They
# hardly agree on the order of the others, whose values are imprecise after 300
# coalitions.
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from skvalue import DataShapleyValuer

valuer.set_params(epsilon=None, random_state=0)
valuer.fit(X, y, groups=parties, X_val=X_val, y_val=y_val)
by_gradients = valuer.values_
retrained = DataShapleyValuer(
    LogisticRegression(), scoring="neg_log_loss", max_evaluations=300, random_state=0
)
retrained.fit(X, y, groups=parties, X_val=X_val, y_val=y_val)
by_retraining = retrained.values_
rank_of_all = spearmanr(by_gradients, by_retraining).statistic
rank_of_correct = spearmanr(by_gradients[~wrong], by_retraining[~wrong]).statistic
print(
    f"Rank correlation: {rank_of_all:.2f} over all parties, {rank_of_correct:.2f} with "
    "correct labels."
)

# %%
# Detection curves and both values
# --------------------------------
import matplotlib.pyplot as plt

from skvalue.inspection import DetectionDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
DetectionDisplay(curves).plot(left)
left.legend(frameon=False, loc="lower right")
left.set_title("Finding bad data sets, epsilon = 1 for every row")

is_shown = {"correct labels": ~wrong, "wrong labels": wrong}
for (label, rows), color in zip(is_shown.items(), ("#30638e", "#d1495b")):
    right.scatter(by_retraining[rows], by_gradients[rows], color=color, label=label)
right.set(
    xlabel="Shapley value by retraining", ylabel="value by gradient steps, no noise"
)
right.set_title(
    f"Rank correlation {rank_of_all:.2f}; correct labels only {rank_of_correct:.2f}"
)
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()
