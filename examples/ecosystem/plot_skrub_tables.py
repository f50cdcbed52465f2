"""
Wrong labels of a table that skrub encodes
==========================================

skrub's `tabular_pipeline` turns a data frame with categories, dates and missing values
into numbers for a model. `LabelErrorDetector` takes such a pipeline as its estimator:
one line lists the doubtful labels of the frame, with the pipeline trained in each fold
on the other rows. The detector's own encoding is tried beside it.
"""

# %%
# A frame with categories and missing values
# ------------------------------------------
# Penguins of three species are made from the means of their measurements, and a
# twelfth of the labels is made wrong.
import numpy as np
import pandas as pd

from skvalue.datasets import flip_labels

rng = np.random.default_rng(0)
start = pd.Timestamp("2008-11-01")
species = np.repeat(["Adelie", "Chinstrap", "Gentoo"], [150, 70, 120])
bill = pd.Series(species).map({"Adelie": 38.8, "Chinstrap": 48.8, "Gentoo": 47.5})
mass = pd.Series(species).map({"Adelie": 3700, "Chinstrap": 3730, "Gentoo": 5080})
islands = {
    "Adelie": ["Torgersen", "Biscoe", "Dream"],
    "Chinstrap": ["Dream"],
    "Gentoo": ["Biscoe"],
}
frame = pd.DataFrame(
    {
        "bill_length_mm": bill + rng.normal(0, 2.8, len(species)),
        "body_mass_g": mass + rng.normal(0, 420, len(species)),
        "island": [rng.choice(islands[name]) for name in species],
        "seen": start + pd.to_timedelta(rng.integers(0, 60, len(species)), "D"),
    }
)
frame.loc[rng.random(len(frame)) < 0.05, "body_mass_g"] = np.nan
labels, flipped = flip_labels(species, 1 / 12, random_state=0)
print(frame.head())

# %%
# One line
# --------
from skrub import tabular_pipeline

from skvalue import LabelErrorDetector

detector = LabelErrorDetector(tabular_pipeline("classifier")).fit(frame, labels)
columns = {name: detector.report_[name][:10] for name in ("row", "y", "suggestion")}
print(pd.DataFrame(columns))

# %%
# How good the list is
# --------------------
import matplotlib.pyplot as plt
from sklearn.metrics import PrecisionRecallDisplay, average_precision_score

default = LabelErrorDetector(random_state=0).fit(frame, labels)
axes = plt.gca()
for name, fitted in {"skrub's pipeline": detector, "default": default}.items():
    precision = average_precision_score(flipped, -fitted.values_)
    print(f"{name}: average precision {precision:.2f}")
    PrecisionRecallDisplay.from_predictions(
        flipped, -fitted.values_, name=name, ax=axes
    )
plt.show()

# %%
# The same frame, audited as a whole
# ----------------------------------
# `audit_table` looks at more than labels: leaks, copies, spellings.
from skvalue.audit import audit_table

report = audit_table(frame, labels, random_state=0)
print(report)
