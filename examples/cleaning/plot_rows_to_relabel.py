"""
Which rows to relabel
=====================

Dropping a mislabelled image also loses the image. If an annotator can correct labels,
`ValueFilter` only lists the rows: ``fit`` drops nothing, and its report is a list of
rows to check. This example relabels rows in the order of their values and compares the
test accuracy with relabelling random rows.
"""

# %%
# Digits with 30 % wrong labels
# -----------------------------
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_test, y_true, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
y, flipped = flip_labels(y_true, 0.3, random_state=0)

# %%
# The rows to check
# -----------------
# ``drop="negative"`` selects the rows of negative value: on average they lower the
# utility. The report converts to a table: ``pandas.DataFrame(row_filter.report_)``.
from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilter

row_filter = ValueFilter(KNNShapleyValuer(n_neighbors=10), drop="negative")
row_filter.fit(X, y)
report = row_filter.report_
print(report)
n_wrong = flipped.sum()
fraction = flipped[report.row].mean()
print(f"\n{n_wrong} labels are wrong: {fraction:.0%} of those in the list.")

# %%
# Relabelling
# -----------
# The labels are corrected in ascending order of value, and a model is fitted after
# every hundred rows; then the same for rows in random order.
import numpy as np
from sklearn.linear_model import LogisticRegression

budgets = np.arange(0, 601, 100)


def accuracy_after(order, budget):
    """Test accuracy of a model after the first rows of an order were relabelled."""
    labels = y.copy()
    labels[order[:budget]] = y_true[order[:budget]]
    return LogisticRegression(max_iter=200).fit(X, labels).score(X_test, y_test)


order = np.argsort(row_filter.values_)
by_value = [accuracy_after(order, budget) for budget in budgets]
rng = np.random.default_rng(0)
at_random = np.empty((3, len(budgets)))
for repeat in range(3):
    for i, budget in enumerate(budgets):
        at_random[repeat, i] = accuracy_after(rng.permutation(len(y)), budget)
print(f"Test accuracy before relabelling: {by_value[0]:.3f}")
mean_at_random = at_random.mean(axis=0)
print(f"after 400 rows by value: {by_value[4]:.3f}, at random: {mean_at_random[4]:.3f}")

# %%
# Rows found and accuracy gained
# ------------------------------
# Top: the first rows of the list, with their given and true labels. Bottom: the number
# of wrong labels found, and the test accuracy after relabelling.
import matplotlib.pyplot as plt

BLUE = "#30638e"
RED = "#d1495b"
GREY = "#8d8d8d"
figure = plt.figure(figsize=(11, 7), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=[1, 1.35], hspace=0.04)
upper.suptitle("First rows of the list: given → true label", x=0.01, ha="left")
for axes, row in zip(upper.subplots(2, 12).flat, report.row):
    color = RED if flipped[row] else BLUE
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=color, linewidth=2)
    axes.set_title(f"{y[row]} → {y_true[row]}", color=color, fontsize=11, pad=4)

left, right = lower.subplots(1, 2)
n_checked = np.arange(1, len(y) + 1)
n_found = np.cumsum(flipped[order])
n_expected = n_checked * flipped.mean()
n_possible = np.minimum(n_checked, n_wrong)
left.plot(n_checked, n_found, color=BLUE, linewidth=2, label="by value")
left.plot(n_checked, n_expected, color=GREY, linestyle="--", label="at random")
left.plot(n_checked, n_possible, "k:", linewidth=1, label="perfect order")
left.axvline(len(report.row), color="0.2", linewidth=0.8)
left.annotate(
    "end of the list",
    (len(report.row), 0),
    (5, 4),
    textcoords="offset points",
    color="0.2",
)
left.set(xlabel="rows checked", ylabel="wrong labels found")
left.legend(frameon=False, loc="center right")

right.plot(budgets, by_value, color=BLUE, marker="o", markersize=4, linewidth=2)
right.plot(budgets, mean_at_random, color=GREY, linestyle="--")
right.fill_between(
    budgets,
    at_random.min(axis=0),
    at_random.max(axis=0),
    color=GREY,
    alpha=0.2,
    linewidth=0,
)
right.set(xlabel="rows relabelled", ylabel="test accuracy")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
