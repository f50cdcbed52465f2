"""
Drop mislabelled rows before they are oversampled
=================================================

Oversampling a rare class multiplies its wrong labels too. `ValueFilter` is a sampler of
imbalanced-learn, so that it stands in a pipeline in front of one: rows of low value are
dropped within the training folds, and then the rare class is oversampled.
"""

# %%
# One row in ten is of the rare class, some labels are wrong
# -----------------------------------------------------------
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from skvalue.datasets import flip_labels

X, y = make_classification(
    2000,
    n_features=12,
    n_informative=6,
    weights=[0.9],
    class_sep=1.5,
    flip_y=0,
    random_state=0,
)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
y, flipped = flip_labels(y, 0.15, random_state=1)

# %%
# With and without the filter
# ---------------------------
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from skvalue import LabelErrorDetector, ValueFilter

model = KNeighborsClassifier()
steps = {
    "all rows": [SMOTE(random_state=0), model],
    "filtered": [
        ValueFilter(LabelErrorDetector(random_state=0), drop="auto"),
        SMOTE(random_state=0),
        model,
    ],
}
for name, of_pipeline in steps.items():
    pipeline = make_pipeline(*of_pipeline).fit(X, y)
    accuracy = balanced_accuracy_score(y_test, pipeline.predict(X_test))
    print(f"{name}: balanced accuracy {accuracy:.3f}")

# %%
# What was dropped
# ----------------
import matplotlib.pyplot as plt
import numpy as np

from skvalue.inspection import ValueDistributionDisplay

kinds = np.where(flipped, "mislabelled", "right")

dropped = pipeline[0].dropped_indices_
print(
    f"{len(dropped)} rows are dropped, {flipped[dropped].mean():.0%} are mislabelled."
)

display = ValueDistributionDisplay(pipeline[0].values_, by=kinds)
display.plot()
plt.show()
