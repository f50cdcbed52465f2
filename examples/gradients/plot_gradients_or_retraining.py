"""
A step along a gradient is no retraining
========================================

Gradient Shapley values (G-Shapley) ask what one step along a row's gradient adds to a model that is
on its way; Data Shapley asks what the row adds to models that are trained to the end, on thousands
of coalitions. Both find wrong labels. How far do they agree on which row is worth what?
"""

# %%
# Rows with wrong labels
# ----------------------
# 240 rows to value, one label in ten wrong, and 160 rows that judge.
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
X, X_val = scaler.transform(X), scaler.transform(X_val)

# %%
# Both values
# -----------
# The same model and the same utility, the negated log-loss. Two gradient valuations with other
# permutations say how much of a difference is chance.
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
    "gradients": GradientSemivalueValuer("logistic", n_permutations=400, random_state=0),
    "gradients, again": GradientSemivalueValuer("logistic", n_permutations=400, random_state=1),
}
values = {}
print("                  seconds  AUROC of wrong labels  rank correlation with retraining")
for name, valuer in valuers.items():
    start = perf_counter()
    values[name] = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    seconds = perf_counter() - start
    rank = spearmanr(values[name], values["retraining"]).statistic
    auc = noisy_label_auc(values[name], flipped)
    print(f"{name:16}  {seconds:7.2f}  {auc:21.3f}  {rank:32.3f}")
again = spearmanr(values["gradients"], values["gradients, again"]).statistic
clean = spearmanr(values["gradients"][~flipped], values["retraining"][~flipped]).statistic
print(f"\nrank correlation of gradients and gradients, again: {again:.3f}")
print(f"rank correlation of gradients and retraining, among rows with the right label: {clean:.3f}")

# %%
# What they see
# -------------
# Both put rows with wrong labels at the bottom. A model that takes a few hundred small steps is far
# from trained, so that what is redundant for a trained model still helps it: use gradient values
# for what they say themselves, not as an estimate of what retraining would give.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for wrong, label, color in ((False, "right label", "0.6"), (True, "wrong label", "C3")):
    rows = flipped == wrong
    ax.plot(
        values["retraining"][rows], values["gradients"][rows], "o", ms=4, color=color, label=label
    )
ax.axhline(0, lw=0.5, color="k")
ax.axvline(0, lw=0.5, color="k")
ax.set(xlabel="value by retraining", ylabel="value by gradients")
ax.legend()
plt.show()
