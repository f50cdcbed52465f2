"""
Layered Shapley: small coalitions and private values
====================================================

The marginal contribution of a row decreases with the size of the coalition. Layered
Shapley therefore trains many models on few rows and few models on many rows. Small
coalitions also reduce the noise that differential privacy needs: a row is in few of the
coalitions that determine the value of another row.
"""

# %%
# Values by layer
# ---------------
# A value is the sum of its layers: the mean marginal contributions to coalitions of 0,
# 1, 2, ... other rows, each divided by the number of rows.
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skvalue import LayeredShapleyValuer

X, y = load_breast_cancer(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, train_size=200, stratify=y, random_state=0)

# Scaled with statistics of the validation points, which are public.
center = X_val.mean(axis=0)
scale = X_val.std(axis=0) * np.sqrt(X.shape[1])
X = (X - center) / scale
X_val = (X_val - center) / scale
validation = {"X_val": X_val, "y_val": y_val}

valuer = LayeredShapleyValuer(
    LogisticRegression(),
    scoring="neg_log_loss",
    allocation="neyman",
    max_evaluations=10_000,
    random_state=0,
)
valuer.fit(X[:60], y[:60], **validation)
layers = np.abs(valuer.layer_values_).mean(axis=1) * 60
fraction = valuer.counts_[:10].sum() / valuer.counts_.sum()
print(
    f"{valuer.n_evaluations_} coalitions; {fraction:.0%} of those of a row have fewer "
    "than 10 others"
)

# %%
# The private value of one row
# ----------------------------
# With ``l2`` the sensitivity of the utility to one row has a proved bound. A fit with
# ``epsilon`` publishes nothing; `values_for` releases the noisy value of a row to its
# owner. Here it is released several times, by new fits, to show the noise; each release
# would count against the budget. The value without privacy is an estimate as well, from
# other coalitions.
game = {"l2": 1.0, "max_norm": 1.0, "n_layers": 3, "random_state": 0}
exact = LayeredShapleyValuer(**game).fit(X, y, **validation).values_
row = int(np.argsort(exact)[len(X) * 3 // 4])
epsilons = [0.3, 1.0, 3.0, 10.0]
released = []
for epsilon in epsilons:
    private = LayeredShapleyValuer(**game, epsilon=epsilon)
    values = []
    for _ in range(5):
        private.fit(X, y, **validation)
        values.append(private.values_for(row))
    released.append(values)
    noise = private.noise_scale_
    print(f"epsilon {epsilon}: noise {noise:.1e}, value {exact[row]:.1e}")

# %%
# Layers and private values
# -------------------------
# Left: the mean absolute layer by coalition size. Right: the released values of one
# row.
import matplotlib.pyplot as plt

BLUE = "#30638e"
RED = "#d1495b"
GREY = "#b8b8b8"
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
sizes = np.arange(1, len(layers) + 1)
is_positive = layers > 0
left.scatter(sizes[is_positive], layers[is_positive], s=14, color=BLUE)
left.plot(sizes, layers[1] * 2 / sizes, color=GREY, zorder=0)
left.text(1.15, layers[1] * 2, "1 / size", color="0.4")
left.set(
    xscale="log",
    yscale="log",
    xlabel="rows in the coalition, including the row",
    ylabel="mean contribution",
)
left.set_title("Marginal contributions (log-loss)", loc="left", fontsize=11)
for place, values in enumerate(released):
    x = np.full(len(values), place)
    right.scatter(x, values, s=26, color=RED, alpha=0.7, linewidth=0)
right.axhline(exact[row], color=BLUE)
right.text(len(epsilons) - 0.45, exact[row], "no privacy", color=BLUE, va="center")
right.axhline(0, color="0.2", linewidth=0.8)
right.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
right.set(
    xlabel="epsilon of one release",
    ylabel="released value",
    xlim=(-0.5, len(epsilons) - 0.5),
)
right.set_title(f"Private value of row {row}: five releases", loc="left", fontsize=11)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
