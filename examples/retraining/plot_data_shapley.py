"""
Data Shapley with error bars
============================

Data Shapley values measure the contribution of each row to a given estimator and score,
by training the estimator on thousands of coalitions of rows. They are estimates, so
every value has a standard error, and a fit can stop as soon as the signs of the values
are known. This example values 200 rows, some with wrong labels, for a logistic
regression, with an increasing number of coalitions.
"""

# %%
# Rows with wrong labels
# ----------------------
# 200 rows to value; one label in ten is flipped. The other rows are the validation set.
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
# Cost of a fit
# -------------
# `estimate_cost` times a few coalitions before a long fit.
from skvalue import DataShapleyValuer

validation = {"X_val": X_val, "y_val": y_val}
valuer = DataShapleyValuer(
    LogisticRegression(C=0.1),
    scoring="neg_log_loss",
    max_evaluations=1000,
    random_state=0,
)
cost = valuer.estimate_cost(X, y_noisy, **validation)
print(
    f"{cost.n_evaluations} coalitions by {cost.sampler!r} subsets, solver: {cost.solver}"
)

# %%
# Standard errors by number of coalitions
# ---------------------------------------
# With ``warm_start`` each fit continues the stream of random numbers and adds
# coalitions to the last.
valuer.set_params(warm_start=True)
history = []
for count in (1000, 4000, 16_000):
    valuer.set_params(max_evaluations=count).fit(X, y_noisy, **validation)
    interval = valuer.confidence_interval(0.95)
    history.append(
        (valuer.n_evaluations_, valuer.values_.copy(), interval, valuer.sign_decided())
    )
    print(
        f"{valuer.n_evaluations_:6d} coalitions: standard error "
        f"{valuer.values_error_.mean():.4f}, sign decided for {history[-1][3].sum()} of 200 rows"
    )

lowest = np.argsort(valuer.values_)
print(
    f"{flipped[lowest[:20]].sum()} of the 20 rows of lowest value have a wrong label."
)

# %%
# Values with confidence intervals
# --------------------------------
# The 60 rows of lowest value, in all three fits. The sign of most wrong labels is known
# early; the remaining coalitions are needed for rows whose value is near zero.
import matplotlib.pyplot as plt

BLUE, RED, GREY = "#30638e", "#d1495b", "#b8b8b8"
shown = lowest[:60]
place = np.arange(len(shown))
figure, rows = plt.subplots(
    3, 1, figsize=(9, 8), sharex=True, sharey=True, layout="constrained"
)
for axes, (count, values, interval, decided) in zip(rows, history):
    for mask, color, label in (
        (flipped, RED, "wrong label"),
        (~flipped, BLUE, "right label"),
    ):
        here = mask[shown]
        low, high = interval[shown[here]].T
        axes.vlines(place[here], low, high, color=color, alpha=0.35, linewidth=3)
        sure = here & decided[shown]
        axes.scatter(
            place[sure], values[shown[sure]], s=22, color=color, zorder=3, label=label
        )
        unsure = here & ~decided[shown]
        axes.scatter(
            place[unsure],
            values[shown[unsure]],
            s=22,
            color="white",
            edgecolor=color,
            zorder=3,
        )
    axes.axhline(0, color="0.2", linewidth=0.8)
    axes.set_title(f"{count:,} coalitions", loc="left", fontsize=11)
    axes.set_ylabel("value (log-loss)")
    axes.spines[["top", "right"]].set_visible(False)
rows[0].legend(frameon=False, loc="lower right", title="open: sign not decided at 95 %")
rows[-1].set_xlabel("rows, by value after 16,000 coalitions")
plt.show()
