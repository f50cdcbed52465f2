"""
Clean, then train
=================

A quarter of the labels is wrong. Two lines drop the rows of low value before a model is fitted, in
a pipeline that any scikit-learn tool can hold. How many rows should go? As many as are wrong, but
nobody knows how many are: ``drop="auto"`` asks cross-validation, and a curve shows what it chose
from.
"""

# %%
# Digits with wrong labels
# ------------------------
# A quarter of the training labels is flipped. The test labels are right.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_test, y_true, y_test = train_test_split(X, y, stratify=y, random_state=0)
y, flipped = flip_labels(y_true, 0.25, random_state=0)
print(f"{len(y)} rows to train on, {flipped.sum()} of them mislabelled.")

# %%
# Two lines
# ---------
# The rows of lowest value are dropped inside ``fit``, from the scaled features, and nowhere else:
# every row that comes to ``predict`` gets a prediction. Without a validation set the rows judge
# each other.
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skvalue.selection import ValueFilteredClassifier

model = LogisticRegression(max_iter=300, random_state=0)
plain = make_pipeline(MinMaxScaler(), model).fit(X, y)
clean = make_pipeline(MinMaxScaler(), ValueFilteredClassifier(model, drop=0.25)).fit(X, y)
print(f"Test accuracy with all rows:  {plain.score(X_test, y_test):.3f}")
print(f"Test accuracy, a quarter gone: {clean.score(X_test, y_test):.3f}")

# %%
# The filter remembers what it dropped, and why.
dropped = clean[-1].dropped_indices_
print(f"Of the {len(dropped)} rows dropped, {flipped[dropped].mean():.0%} were mislabelled.")
print(clean[-1].report_)

# %%
# How many?
# ---------
# ``drop="auto"`` tries some fractions by cross-validation on the training rows, and takes none at
# all unless dropping clearly helps.
automatic = make_pipeline(MinMaxScaler(), ValueFilteredClassifier(model, drop="auto", n_jobs=2))
automatic.fit(X, y)
chosen = automatic[-1].drop_
print(f"Test accuracy, drop='auto':   {automatic.score(X_test, y_test):.3f} (chose {chosen})")

# %%
# What it chose from
# ------------------
# Left, the values of right and wrong rows. Right, the test accuracy as rows go: the lowest values
# first, the highest first, or any.
import matplotlib.pyplot as plt
import numpy as np

from skvalue.inspection import ValueDistributionDisplay, ValueRemovalDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
values = clean[-1].values_
kinds = np.where(flipped, "wrong label", "right label")
ValueDistributionDisplay.from_values(values, by=kinds, bins=60, ax=left)
left.set(title="Values of the rows", yticks=[], ylabel="")
left.spines["left"].set_visible(False)

scale = MinMaxScaler().fit(X)
ValueRemovalDisplay.from_estimator(
    model, scale.transform(X), y, values, scale.transform(X_test), y_test,
    fractions=np.arange(0, 0.55, 0.05), n_repeats=3, random_state=0, n_jobs=2,
    score_name="test accuracy", ax=right,
)  # fmt: skip
right.axvline(chosen, color="0.2", linewidth=0.8)
right.annotate(
    "drop='auto'", (chosen, right.get_ylim()[0]), (4, 4), textcoords="offset points", color="0.2"
)
right.set_title("Test accuracy as rows go")
right.legend(loc="center left", fontsize=9, frameon=False)
figure.savefig("clean_then_train.png", dpi=110)
plt.show()
