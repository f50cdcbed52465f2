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
X = scaler.transform(X)
X_val = scaler.transform(X_val)
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
    f"{cost.n_evaluations} coalitions by {cost.sampler!r} subsets, solver: "
    f"{cost.solver}"
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
    is_decided = valuer.sign_decided()
    history.append(
        {
            "count": valuer.n_evaluations_,
            "values": valuer.values_.copy(),
            "interval": valuer.confidence_interval(0.95),
            "is_decided": is_decided,
        }
    )
    error = valuer.values_error_.mean()
    print(
        f"{valuer.n_evaluations_:6d} coalitions: standard error {error:.4f}, sign "
        f"decided for {is_decided.sum()} of 200 rows"
    )

order = np.argsort(valuer.values_)
n_wrong = flipped[order[:20]].sum()
print(f"{n_wrong} of the 20 rows of lowest value have a wrong label.")

# %%
# Values with confidence intervals
# --------------------------------
# The 60 rows of lowest value, in all three fits. The sign of most wrong labels is known
# early; the remaining coalitions are needed for rows whose value is near zero.
import matplotlib.pyplot as plt

lowest = order[:60]
places = np.arange(len(lowest))


def draw_values(axes, fit, mask, color, label):
    """Draw the values of a fit of some of the lowest rows; open: sign not decided."""
    is_drawn = mask[lowest]
    low, high = fit["interval"][lowest[is_drawn]].T
    axes.vlines(places[is_drawn], low, high, color=color, alpha=0.35, linewidth=3)

    values = fit["values"][lowest]
    style = {"s": 22, "zorder": 3}
    closed = is_drawn & fit["is_decided"][lowest]
    axes.scatter(places[closed], values[closed], color=color, label=label, **style)
    opened = is_drawn & ~fit["is_decided"][lowest]
    axes.scatter(
        places[opened], values[opened], color="white", edgecolor=color, **style
    )


figure, panels = plt.subplots(
    3, 1, figsize=(9, 8), sharex=True, sharey=True, layout="constrained"
)
for axes, fit in zip(panels, history):
    draw_values(axes, fit, flipped, "#d1495b", "wrong label")
    draw_values(axes, fit, ~flipped, "#30638e", "right label")
    axes.axhline(0, color="0.2", linewidth=0.8)
    axes.set_title(f"{fit['count']:,} coalitions", loc="left", fontsize=11)
    axes.set_ylabel("value (log-loss)")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].legend(
    frameon=False, loc="lower right", title="open: sign not decided at 95 %"
)
panels[-1].set_xlabel("rows, by value after 16,000 coalitions")
plt.show()
