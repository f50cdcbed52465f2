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
X, X_val, y_true, y_val = X[:200], X[200:], y_true[:200], y_true[200:]
y, flipped = flip_labels(y_true, 0.1, random_state=0)

# %%
# The value of every row
# ----------------------
# A value is the estimated decrease of the utility, here minus the log-loss at the
# validation points, when the row is removed. The largest change under refits confirms
# it.
from sklearn.linear_model import LogisticRegression

from skvalue import InfluenceValuer

valuer = InfluenceValuer(LogisticRegression(), order=2).fit(
    X, y, X_val=X_val, y_val=y_val
)
worst = int(valuer.values_.argmin())
rest = np.arange(len(y)) != worst
without = InfluenceValuer(LogisticRegression()).fit(
    X[rest], y[rest], X_val=X_val, y_val=y_val
)
change = valuer.utility_ - without.utility_
print(
    f"Row {worst}: value {valuer.values_[worst]:.5f}, change by a refit {change:.5f}."
)
print(
    f"Of the 10 lowest values, {flipped[valuer.values_.argsort()[:10]].sum()} are wrong labels."
)

# %%
# The rows behind one error
# -------------------------
# ``contributions`` splits the value of one row among the validation points. The other
# way round, a validation set of one point gives the rows that make the model right or
# wrong there.
model = LogisticRegression().fit(X, y)
of_label = model.predict_proba(X_val)[np.arange(len(y_val)), y_val]
error = int(of_label.argmin())
point = {"X_val": X_val[[error]], "y_val": y_val[[error]]}
at_point = InfluenceValuer(LogisticRegression()).fit(X, y, **point).values_

# %%
# Do the values predict retraining?
# ---------------------------------
# The linear datamodeling score is the rank correlation of the sums of the values of
# removed rows with what retraining without them does.
from skvalue.inspection import LinearDatamodelingDisplay, linear_datamodeling_score

result = linear_datamodeling_score(
    valuer.values_,
    LogisticRegression(),
    X,
    y,
    X_val,
    y_val,
    n_subsets=50,
    random_state=0,
)

# %%
# In the left picture the rows that hurt lie far on the wrong side of the boundary: most of them
# have wrong labels (rings). In the middle, rows near the error (cross) with its label help, and
# those of the other label hurt; rows with little effect are small.
import matplotlib.pyplot as plt
from matplotlib.colors import CenteredNorm

figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
line = np.array([-3.0, 3.0])
slope, intercept = (
    -model.coef_[0, 0] / model.coef_[0, 1],
    -model.intercept_[0] / model.coef_[0, 1],
)
pictures = [
    (valuer.values_, "on all validation points"),
    (at_point, "on one error of the model"),
]
for ax, (values, title) in zip(axes, pictures):
    sizes = 6 + 120 * np.abs(values) / np.abs(values).max()
    for label, marker in ((0, "o"), (1, "s")):
        some = y == label
        dots = ax.scatter(
            *X[some].T, c=values[some], s=sizes[some], marker=marker, cmap="RdBu",
            norm=CenteredNorm(halfrange=np.abs(values).max()), edgecolor="0.5", linewidth=0.3,
            label=f"label {label}",
        )  # fmt: skip
    ax.plot(line, slope * line + intercept, color="0.3", linewidth=1)
    ax.set(title=f"Influence {title}", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    figure.colorbar(dots, ax=ax, label="value: red rows hurt")
axes[0].scatter(
    *X[flipped].T,
    s=160,
    facecolor="none",
    edgecolor="black",
    linewidth=0.8,
    label="wrong label",
)
axes[0].legend(loc="lower right", fontsize=8)
axes[1].plot(*X_val[error], marker="x", color="black", markersize=10, markeredgewidth=2)
LinearDatamodelingDisplay(result).plot(ax=axes[2])
plt.show()
