"""
Audit images
============

An array of images is audited like a table, and its report shows pictures. Without an
embedding the vectors are the pixels; `LabelErrorDetector(embedding=...)` takes a
network. The suggestion is another label for each doubtful image, together with its
probability.
"""

# %%
# Digits with wrong labels
# ------------------------
import numpy as np
from sklearn.datasets import load_digits

from skvalue.datasets import flip_labels

X, y_true = load_digits(return_X_y=True)
X = X[:700].reshape(-1, 8, 8)
y_true = y_true[:700]
y, wrong = flip_labels(y_true, 0.08, random_state=0)
print(f"{len(X)} images, {wrong.sum()} wrong labels")

# %%
# The report
# ----------
from skvalue.audit import audit_table

report = audit_table(X, y, title="Digits", n_rows=30, random_state=0)
report

# %%
# Suggestions
# -----------
# How many of the first rows of the list are wrong, and how many suggestions are the
# true label.
first = report.listed[: wrong.sum()]
print(f"Wrong among the first {len(first)}: {wrong[first].mean():.0%}")
wrong_rows = first[wrong[first]]
is_right = report.suggestions[wrong_rows] == y_true[wrong_rows]
print(f"Suggestions for these that are the true label: {is_right.mean():.0%}")

# %%
# The first images of the list
# ----------------------------
# Given label and suggestion; red frames mark wrong labels.
import matplotlib.pyplot as plt

figure, panels = plt.subplots(3, 8, figsize=(8, 4), layout="constrained")
for axes, row in zip(panels.flat, report.listed):
    color = "#d1495b" if wrong[row] else "#30638e"
    axes.imshow(X[row], cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=color, linewidth=2)
    title = f"{y[row]} → {report.suggestions[row]}"
    axes.set_title(title, color=color, fontsize=11, pad=4)
plt.show()

# %%
# Verdicts from Label Studio
# --------------------------
# ``report.to_label_studio("tasks.json")`` writes the images to review as tasks, with
# the suggestion as a prediction; ``report.read_verdicts("export.json")`` reads what
# annotators chose.
task = report.to_label_studio()[0]
prediction = task["predictions"][0]["result"][0]
print(task["data"]["given"], prediction["value"], np.shape(X[0]))
