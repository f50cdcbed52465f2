"""
A logistic regression explained row by row
==========================================

What happens to a trained model if a row goes? :class:`~skvalue.InfluenceValuer` answers
this for every row from one fit and its Hessian. The picture shows the rows that make a
logistic regression worse and better, the rows behind one of its errors, and whether the
values predict what happens when the model is trained without half of the rows.
"""

# %%
# Two classes of points, of which some have wrong labels
# ------------------------------------------------------
import numpy as np

from skvalue.datasets import flip_labels

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2))
y_true = (X @ [1.5, 1.0] + 0.7 * rng.normal(size=400) > 0).astype(int)
X_val = X[200:]
y_val = y_true[200:]
X = X[:200]
y_true = y_true[:200]
y, flipped = flip_labels(y_true, 0.1, random_state=0)

# %%
# The value of every row
# ----------------------
# A value is the estimated decrease of the utility, here minus the log-loss at the
# validation points, when the row is removed. The largest change under refits confirms
# it.
from sklearn.linear_model import LogisticRegression

from skvalue import InfluenceValuer

points = {"X_val": X_val, "y_val": y_val}
valuer = InfluenceValuer(LogisticRegression(), order=2).fit(X, y, **points)
values = valuer.values_
worst = int(values.argmin())
others = np.arange(len(y)) != worst
refitted = InfluenceValuer(LogisticRegression()).fit(X[others], y[others], **points)
change = valuer.utility_ - refitted.utility_
print(f"Row {worst}: value {values[worst]:.5f}, change by a refit {change:.5f}.")
n_wrong = flipped[values.argsort()[:10]].sum()
print(f"Of the 10 lowest values, {n_wrong} are wrong labels.")

# %%
# The rows behind one error
# -------------------------
# ``contributions`` splits the value of one row among the validation points. The other
# way round, a validation set of one point gives the rows that make the model right or
# wrong there.
model = LogisticRegression().fit(X, y)
probabilities = model.predict_proba(X_val)[np.arange(len(y_val)), y_val]
error = int(probabilities.argmin())
point = {"X_val": X_val[[error]], "y_val": y_val[[error]]}
values_at_error = InfluenceValuer(LogisticRegression()).fit(X, y, **point).values_

# %%
# Do the values predict retraining?
# ---------------------------------
# The linear datamodeling score is the rank correlation of the sums of the values of
# removed rows with what retraining without them does.
from skvalue.inspection import LinearDatamodelingDisplay, linear_datamodeling_score

result = linear_datamodeling_score(
    values,
    LogisticRegression(),
    X,
    y,
    X_val,
    y_val,
    n_subsets=50,
    random_state=0,
)

# %%
# In the left picture the rows that hurt lie far on the wrong side of the boundary: most
# of them have wrong labels (rings). In the middle, rows near the error (cross) with its
# label help, and those of the other label hurt; rows with little effect are small.
import matplotlib.pyplot as plt
from matplotlib.colors import CenteredNorm

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(12, 3.9), layout="constrained"
)


def draw_values(ax, values, title):
    """Draw the rows, with their values as colour and size, and the boundary."""
    largest = np.abs(values).max()
    sizes = 6 + 120 * np.abs(values) / largest
    for label, marker in ((0, "o"), (1, "s")):
        rows = y == label
        points = ax.scatter(
            X[rows, 0],
            X[rows, 1],
            c=values[rows],
            s=sizes[rows],
            marker=marker,
            cmap="RdBu",
            norm=CenteredNorm(halfrange=largest),
            edgecolor="0.5",
            linewidth=0.3,
            label=f"label {label}",
        )
    slope = -model.coef_[0, 0] / model.coef_[0, 1]
    intercept = -model.intercept_[0] / model.coef_[0, 1]
    x = np.array([-3.0, 3.0])
    ax.plot(x, slope * x + intercept, color="0.3", linewidth=1)
    ax.set(title=title, xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    figure.colorbar(points, ax=ax, label="value: red rows hurt")


draw_values(left, values, "Influence on all validation points")
left.scatter(
    X[flipped, 0],
    X[flipped, 1],
    s=160,
    facecolor="none",
    edgecolor="black",
    linewidth=0.8,
    label="wrong label",
)
left.legend(loc="lower right", fontsize=8)
draw_values(middle, values_at_error, "Influence on one error of the model")
middle.plot(*X_val[error], marker="x", color="black", markersize=10, markeredgewidth=2)
LinearDatamodelingDisplay(result).plot(ax=right)
plt.show()
