"""
Clean, then train
=================

A quarter of the training labels is wrong. `ValueFilteredClassifier` drops the rows of
low value before it fits a model, inside an ordinary scikit-learn pipeline. The number
of wrong labels is usually unknown: ``drop="auto"`` chooses the fraction by
cross-validation, and a removal curve shows the test accuracy of every choice.
"""

# %%
# Digits with wrong labels
# ------------------------
# A quarter of the training labels is flipped. The test labels are correct.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = load_digits(return_X_y=True)
X, X_test, y_true, y_test = train_test_split(X, y, stratify=y, random_state=0)
y, flipped = flip_labels(y_true, 0.25, random_state=0)
print(f"{len(y)} rows to train on, {flipped.sum()} of them mislabelled.")

# %%
# Drop the lowest quarter
# -----------------------
# The filter values the scaled rows inside ``fit`` and drops those of lowest value.
# ``predict`` drops nothing. Without a validation set, each row is a validation point
# for all the others.
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skvalue.selection import ValueFilteredClassifier

model = LogisticRegression(max_iter=300, random_state=0)
plain = make_pipeline(MinMaxScaler(), model)
plain.fit(X, y)
print(f"Test accuracy with all rows: {plain.score(X_test, y_test):.3f}")

clean = make_pipeline(MinMaxScaler(), ValueFilteredClassifier(model, drop=0.25))
clean.fit(X, y)
print(f"Test accuracy without the lowest 25 %: {clean.score(X_test, y_test):.3f}")

# %%
# The fitted filter lists the rows it dropped, with the reason.
dropped = clean[-1].dropped_indices_
fraction = flipped[dropped].mean()
print(f"Of the {len(dropped)} rows dropped, {fraction:.0%} were mislabelled.")
print(clean[-1].report_)

# %%
# Choose the fraction by cross-validation
# ---------------------------------------
# ``drop="auto"`` compares several fractions by cross-validation on the training rows.
# It drops nothing unless the improvement is larger than two standard errors.
automatic = make_pipeline(MinMaxScaler(), ValueFilteredClassifier(model, drop="auto"))
automatic.fit(X, y)
chosen = automatic[-1].drop_
accuracy = automatic.score(X_test, y_test)
print(f"Test accuracy with drop='auto': {accuracy:.3f} (drop={chosen})")

# %%
# Values and removal curves
# -------------------------
# Left: the values of rows with correct and with wrong labels. Right: the test accuracy
# after removing the rows of lowest value, of highest value, or random rows.
import matplotlib.pyplot as plt
import numpy as np

from skvalue.inspection import ValueDistributionDisplay, ValueRemovalDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
values = clean[-1].values_
kinds = np.where(flipped, "wrong label", "right label")
ValueDistributionDisplay.from_values(values, by=kinds, bins=60, ax=left)
left.set(title="Values of the rows", yticks=[], ylabel="density")

scaler = MinMaxScaler().fit(X)
ValueRemovalDisplay.from_estimator(
    model,
    scaler.transform(X),
    y,
    values,
    X_test=scaler.transform(X_test),
    y_test=y_test,
    fractions=np.arange(0, 0.55, 0.1),
    n_repeats=2,
    random_state=0,
    score_name="test accuracy",
    ax=right,
)
right.axvline(chosen, color="0.2", linewidth=0.8)
right.annotate(
    "drop='auto'",
    (chosen, right.get_ylim()[0]),
    (4, 4),
    textcoords="offset points",
    color="0.2",
)
right.set_title("Test accuracy without some rows")
right.legend(loc="center left", fontsize=9, frameon=False)
plt.show()
