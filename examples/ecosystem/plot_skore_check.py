"""
Doubtful labels in a report of skore
====================================

A report of skore says how good a model is, and its checks say what may be wrong with
the evaluation. None of them looks at the labels. `LabelErrorCheck` does: it is added to
a report like any other check, and names the rows that a model would better be trained
without.
"""

# %%
# A tenth of the labels is wrong
# ------------------------------
import skore
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue.datasets import flip_labels

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y, flipped = flip_labels(y.to_numpy(), 0.1, random_state=1)
model = make_pipeline(StandardScaler(), LogisticRegression())
report = skore.evaluate(model, X, y, splitter=5)

# %%
# The check
# ---------
# It is slow, for it trains the models of a `LabelErrorDetector`. skore runs slow checks
# when a summary is asked for, and not in its fast mode.
from skvalue.labels import LabelErrorCheck

check = LabelErrorCheck()
report.checks.add([check])
summary = report.checks.summarize(ignore=[f"SKD{i:03}" for i in range(1, 17)])
issues = summary.frame(section="issue")
print(issues["explanation"].item())

# %%
# After the summary the check has the rows, most doubtful first. Which labels are really
# wrong is known here:
n_wrong = flipped[check.rows_].sum()
print(f"{n_wrong} of {len(check.rows_)} doubtful labels are wrong.")

# %%
# The check passes where nothing is wrong
# ---------------------------------------
# With the labels as they were measured:
_, y_measured = load_breast_cancer(return_X_y=True)
measured = skore.evaluate(model, X, y_measured, splitter=5)
measured.checks.add([LabelErrorCheck()])
summary = measured.checks.summarize(ignore=[f"SKD{i:03}" for i in range(1, 17)])
print(summary.frame().query("code == 'SKV001'")["section"].item())

# %%
# The doubtful rows among all
# ---------------------------
import matplotlib.pyplot as plt
import numpy as np

from skvalue.inspection import ValueDistributionDisplay

kinds = np.where(flipped, "mislabelled", "right")

ValueDistributionDisplay(check.detector_.values_, by=kinds).plot()
plt.xlabel("held-out probability of the given label")
plt.show()
