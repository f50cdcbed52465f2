"""
Layered Shapley: small coalitions, and one private price
=========================================================

What a row adds to a coalition falls as the coalition grows. Layered Shapley therefore trains many
models on a handful of rows and few on many. The same fact makes privacy cheap: in the small layers
one row can be kept out of nearly all coalitions of another, so that the value of one owner hardly
betrays the others' rows.
"""

# %%
# Values, layer by layer
# ----------------------
# A value is the sum of its layers: of what the row adds, in the mean, to coalitions of 0, 1, 2, ...
# others, each divided by the number of rows.
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skvalue import LayeredShapleyValuer

X, y = load_breast_cancer(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
# Scaled with the validation points alone, which are public.
centre, spread = X_val.mean(axis=0), X_val.std(axis=0) * np.sqrt(X.shape[1])
X, judges = (X - centre) / spread, {"X_val": (X_val - centre) / spread, "y_val": y_val}

valuer = LayeredShapleyValuer(
    LogisticRegression(),
    scoring="neg_log_loss",
    allocation="neyman",
    max_evaluations=20_000,
    random_state=0,
).fit(X[:60], y[:60], **judges)
layers = np.abs(valuer.layer_values_).mean(axis=1) * 60
share = valuer.counts_[:10].sum() / valuer.counts_.sum()
print(f"{valuer.n_evaluations_} coalitions; {share:.0%} of a row's are of fewer than 10 others")

# %%
# The price of one row
# --------------------
# The utility of ``l2`` has a proved bound of what one row can do. A fit with ``epsilon`` releases
# nothing; ``values_for`` does, to the owner who asks. (Here we ask again and again, with fresh
# fits, to see the noise: each would be charged to the budget. The clear value is an estimate, too,
# on other coalitions.)
game = {"l2": 1.0, "max_norm": 1.0, "n_layers": 3, "random_state": 0}
clear = LayeredShapleyValuer(**game).fit(X, y, **judges).values_
owner = int(np.argsort(clear)[len(X) * 3 // 4])
released = {}
for epsilon in (0.3, 1.0, 3.0, 10.0):
    fits = [LayeredShapleyValuer(**game, epsilon=epsilon).fit(X, y, **judges) for _ in range(8)]
    released[epsilon] = [fit.values_for(owner) for fit in fits]
    print(f"epsilon {epsilon}: noise {fits[0].noise_scale_:.1e}, value {clear[owner]:.1e}")

# %%
import matplotlib.pyplot as plt

BLUE, RED, GREY = "#30638e", "#d1495b", "#b8b8b8"
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
size = np.arange(1, len(layers) + 1)
drawn = layers > 0
left.scatter(size[drawn], layers[drawn], s=14, color=BLUE)
left.plot(size, layers[1] * 2 / size, color=GREY, zorder=0)
left.text(1.15, layers[1] * 2, "1 / size", color="0.4")
left.set(xscale="log", yscale="log", xlabel="rows in the coalition, with the row itself")
left.set_title("Mean size of what a row adds (log-loss)", loc="left", fontsize=11)
for place, values in enumerate(released.values()):
    right.scatter(np.full(len(values), place), values, s=26, color=RED, alpha=0.7, linewidth=0)
right.axhline(clear[owner], color=BLUE)
right.text(len(released) - 0.45, clear[owner], "clear value", color=BLUE, va="center")
right.axhline(0, color="0.2", linewidth=0.8)
right.set_xticks(range(len(released)), [f"{epsilon:g}" for epsilon in released])
right.set(xlabel="epsilon of the one value released", xlim=(-0.5, len(released) - 0.5))
right.set_title(f"Private values of row {owner}: eight releases", loc="left", fontsize=11)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("layered_shapley.png", dpi=110)
plt.show()
