"""
Data Shapley with error bars
============================

What is each row worth to *this* model and *this* score? Values by retraining answer that for any
estimator, by training it on thousands of coalitions of rows. They are estimates, so every value
comes with a standard error, and a fit may stop as soon as the rows that one would drop are known.
We plant wrong labels, value 200 rows for a logistic regression, and watch the doubt go.
"""

# %%
# Data with planted faults
# ------------------------
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue.datasets import flip_labels

X, y = load_breast_cancer(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_val = scaler.transform(X), scaler.transform(X_val)
y_noisy, flipped = flip_labels(y, 0.1, random_state=0)

# %%
# What will it cost?
# ------------------
# ``estimate_cost`` times a few coalitions before a long fit.
from skvalue import DataShapleyValuer

judges = {"X_val": X_val, "y_val": y_val}
valuer = DataShapleyValuer(
    LogisticRegression(C=0.1), scoring="neg_log_loss", max_evaluations=1000, random_state=0
)
cost = valuer.estimate_cost(X, y_noisy, **judges)
print(f"{cost.n_evaluations} coalitions by {cost.sampler!r} subsets, solver: {cost.solver}")

# %%
# Less and less doubt
# -------------------
# ``warm_start`` goes on with the same random numbers: each fit adds coalitions to the last.
valuer.set_params(warm_start=True)
history = []
for count in (1000, 4000, 16_000):
    valuer.set_params(max_evaluations=count).fit(X, y_noisy, **judges)
    interval = valuer.confidence_interval(0.95)
    history.append((valuer.n_evaluations_, valuer.values_.copy(), interval, valuer.sign_decided()))
    print(
        f"{valuer.n_evaluations_:6d} coalitions: standard error "
        f"{valuer.values_error_.mean():.4f}, sign decided for {history[-1][3].sum()} of 200 rows"
    )

lowest = np.argsort(valuer.values_)
print(f"Of the 20 lowest values {flipped[lowest[:20]].sum()} are of planted faults.")

# %%
# Values by rank, with intervals
# ------------------------------
# The same 60 lowest rows in the three fits. Most wrong labels are told from the others early; the
# rest of the work goes into rows whose value is near zero, where it hardly matters.
import matplotlib.pyplot as plt

BLUE, RED, GREY = "#30638e", "#d1495b", "#b8b8b8"
shown = lowest[:60]
place = np.arange(len(shown))
figure, rows = plt.subplots(3, 1, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
for axes, (count, values, interval, decided) in zip(rows, history):
    for mask, color, label in ((flipped, RED, "wrong label"), (~flipped, BLUE, "right label")):
        here = mask[shown]
        low, high = interval[shown[here]].T
        axes.vlines(place[here], low, high, color=color, alpha=0.35, linewidth=3)
        sure = here & decided[shown]
        axes.scatter(place[sure], values[shown[sure]], s=22, color=color, zorder=3, label=label)
        unsure = here & ~decided[shown]
        axes.scatter(
            place[unsure], values[shown[unsure]], s=22, color="white", edgecolor=color, zorder=3
        )
    axes.axhline(0, color="0.2", linewidth=0.8)
    axes.set_title(f"{count:,} coalitions", loc="left", fontsize=11)
    axes.set_ylabel("value (log-loss)")
    axes.spines[["top", "right"]].set_visible(False)
rows[0].legend(frameon=False, loc="lower right", title="open: sign not decided at 95 %")
rows[-1].set_xlabel("rows, by value after 16,000 coalitions")
figure.savefig("data_shapley.png", dpi=110)
plt.show()
