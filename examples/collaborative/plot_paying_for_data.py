"""
What cheating gains under three rules of payment
================================================

Five hospitals sell images of digits to a buyer, who pays them by the values of their
data. One of them considers to cheat: to send its rows several times, under several
names, with another hospital's rows, or garbage.
:func:`~skvalue.inspection.manipulation_gain` plays these manipulations on the buyer's
data and measures what each gains.
"""

# %%
# Five hospitals
# --------------
# Each has 60 images; the buyer keeps 300 images as secret validation points and wants
# to know whether a digit is at least 5.
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skvalue import DataBanzhafValuer, DataShapleyValuer, KNNShapleyValuer
from skvalue.inspection import ManipulationDisplay, manipulation_gain, twin_parties

warnings.simplefilter("ignore")
X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(
    X / 16, y >= 5, train_size=300, test_size=300, stratify=y, random_state=0
)
hospitals = np.array(["Aue", "Bonn", "Coburg", "Duren", "Essen"])[np.arange(300) % 5]

# %%
# Three rules
# -----------
# Shares of a budget by KNN-Shapley values, which are sums of values of rows; shares by
# Data Shapley values of the hospitals; and a price per unit of their Banzhaf values,
# where a hospital of negative value is charged.
attacks = [
    "4 names, at random",
    "4 names, by label",
    "rows 4 times",
    "rows under 4 names",
    "also another's rows",
    "half withheld",
    "20 % of labels wrong",
    "garbage only",
]
exact = {"estimator": LogisticRegression(), "sampler": "exact"}
rules = {
    "KNN-Shapley,\nshares": (KNNShapleyValuer(), "share"),
    "Data Shapley of\nhospitals, shares": (DataShapleyValuer(**exact), "share"),
    "Banzhaf of hospitals,\nprice per unit": (DataBanzhafValuer(**exact), "value"),
}
results = {}
for name, (valuer, pay) in rules.items():
    results[name] = manipulation_gain(
        valuer,
        X,
        y,
        hospitals,
        party="Bonn",
        X_val=X_val,
        y_val=y_val,
        attacks=attacks,
        pay=pay,
        n_folds=8,
        n_repeats=2,
        random_state=0,
    )
    print(f"{name}: {results[name].sentence}".replace("\n", " "))
ManipulationDisplay(results).plot()

# %%
# Values of rows pay copies, and values of hospitals pay names. Where neither rows nor
# names are verified, Banzhaf values at a price per unit are left: copies and names do
# not pay there, but the sum of the payments is not fixed.

# %%
# Evidence of copies
# ------------------
# A hospital that sends another's images with noise is not found by looking for equal
# rows. The twin test compares, for each image, the nearest and second nearest one of
# the other hospital.
rng = np.random.default_rng(0)
X_sent = X.copy()
stolen = X[hospitals == "Aue"]
X_sent[hospitals == "Bonn"] = stolen + 0.05 * rng.normal(size=stolen.shape)
y_sent = y.copy()
y_sent[hospitals == "Bonn"] = y[hospitals == "Aue"]
for hospital, other, z in twin_parties(X_sent, y_sent, hospitals).pairs:
    print(f"Rows of {hospital} have twins at {other}: z = {z:.1f}")
