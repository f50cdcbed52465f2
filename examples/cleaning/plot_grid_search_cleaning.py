"""
Grid-search the cleaning
========================

The fraction of rows to drop and the parameters of the valuer can be tuned by
`GridSearchCV` like those of any estimator. With ``memory``, the rows of a fold are
valued once for each setting of the valuer, and the values are reused for every
fraction.
"""

# %%
# Two moons with wrong labels
# ---------------------------
# Two classes in the plane, and one label in five wrong.
import numpy as np
from sklearn.datasets import make_moons

from skvalue.datasets import flip_labels

X, y_true = make_moons(600, noise=0.2, random_state=0)
y, flipped = flip_labels(y_true, 0.2, random_state=0)

# %%
# The grid
# --------
# The model is a 1-nearest-neighbour classifier, which reproduces every wrong label.
from tempfile import mkdtemp

from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilteredClassifier

clean = ValueFilteredClassifier(
    KNeighborsClassifier(1), KNNShapleyValuer(), memory=mkdtemp()
)
drops = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4]
numbers_of_neighbors = [2, 5, 10, 20, 40]
search = GridSearchCV(
    make_pipeline(StandardScaler(), clean),
    {
        "valuefilteredclassifier__drop": drops,
        "valuefilteredclassifier__valuer__n_neighbors": numbers_of_neighbors,
    },
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
)
search.fit(X, y)
for name, setting in search.best_params_.items():
    print(f"{name.rsplit('__')[-1]}: {setting}")
score = search.best_score_
print(f"Cross-validated accuracy: {score:.3f} (20 % of these labels are wrong)")

# %%
# The same models on new rows with correct labels:
X_test, y_test = make_moons(2000, noise=0.2, random_state=1)
best = search.best_estimator_
plain = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(X, y)
print(f"Test accuracy with all rows: {plain.score(X_test, y_test):.3f}")
print(f"Test accuracy of the best setting: {best.score(X_test, y_test):.3f}")

# %%
# Scores and decision boundaries
# ------------------------------
# Left: the score of every setting; many settings score almost the same. Right: the rows
# that the best setting drops, and the decision boundary before and after dropping them.
import matplotlib.pyplot as plt
from sklearn.inspection import DecisionBoundaryDisplay

BLUE = "#30638e"
RED = "#d1495b"
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11.5, 4.6), width_ratios=[1, 1.25], layout="constrained"
)
scores = search.cv_results_["mean_test_score"]
scores = scores.reshape(len(drops), len(numbers_of_neighbors)).T
left.imshow(scores, cmap="viridis", aspect="auto", origin="lower")
for (row, column), score in np.ndenumerate(scores):
    is_dark = score < scores.min() + 0.6 * np.ptp(scores)
    left.text(
        column,
        row,
        f"{score:.2f}"[1:],
        ha="center",
        va="center",
        color="w" if is_dark else "k",
    )
left.set_xticks(range(len(drops)), drops)
left.set_yticks(range(len(numbers_of_neighbors)), numbers_of_neighbors)
left.set(
    xlabel="drop (fraction of rows)",
    ylabel="n_neighbors of the valuer",
    title="Cross-validated accuracy",
)

dropped = best[-1].dropped_indices_
kept = best[-1].sample_indices_
colors = np.where(y == 1, RED, BLUE)
right.scatter(*X[kept].T, s=14, c=colors[kept], linewidths=0)
right.scatter(
    *X[dropped].T, s=26, c=colors[dropped], marker="x", linewidths=1.2, alpha=0.7
)


def draw_boundary(model, style, width, label):
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict",
        plot_method="contour",
        grid_resolution=300,
        levels=[0.5],
        colors="k",
        linestyles=style,
        linewidths=width,
        ax=right,
    )
    right.plot([], [], "k" + style, linewidth=width, label=label)


draw_boundary(plain, ":", 0.7, "all rows")
draw_boundary(best, "-", 2, "after dropping")
fraction = flipped[dropped].mean()
right.scatter([], [], marker="x", c="0.3", label=f"dropped, {fraction:.0%} wrong")
x_low, y_low = X.min(axis=0) - 0.15
x_high, y_high = X.max(axis=0) + 0.15
right.set(
    xlim=(x_low, x_high),
    ylim=(y_low, y_high + 0.3),
    xlabel="first feature",
    ylabel="second feature",
    title="The best setting",
)
right.legend(loc="upper left", frameon=True, ncols=3, framealpha=1, fontsize=9)
plt.show()
