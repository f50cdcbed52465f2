"""
Audit texts
===========

A list of strings is audited by the TF-IDF weights of their words, or by a sentence
encoder passed as `embedding`. The report shows each doubtful text with its label, a
suggestion, and the texts nearby that speak for and against the label.
"""

# %%
# Texts with wrong labels
# -----------------------
# Paragraphs of scikit-learn's docstrings, labelled by module. One label in ten is
# replaced.
import re
from inspect import getdoc

import numpy as np
from sklearn.utils.discovery import all_estimators

from skvalue.datasets import flip_labels

texts = []
labels = []
for _, estimator in all_estimators():
    module = estimator.__module__.split(".")[1]
    if module in ("cluster", "ensemble", "linear_model"):
        for paragraph in re.split(r"\n\s*\n", getdoc(estimator)):
            words = re.findall("[a-zA-Z]{2,}", paragraph)
            if len(words) > 25:
                texts.append(" ".join(words))
                labels.append(module)

# Classes share paragraphs, of which the first is kept.
texts, first = np.unique(texts, return_index=True)
y, wrong = flip_labels(np.array(labels)[first], 0.1, random_state=0)
print(f"{len(texts)} texts, {wrong.sum()} wrong labels")

# %%
# The report
# ----------
# TF-IDF weights reduced to 30 components: a forest splits on few of thousands of words.
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from skvalue import LabelErrorDetector
from skvalue.audit import audit_table

embedding = make_pipeline(
    TfidfVectorizer(stop_words="english", sublinear_tf=True),
    TruncatedSVD(30, random_state=0),
)
detector = LabelErrorDetector(embedding=embedding, random_state=0)
report = audit_table(list(texts), y, detector=detector, title="Docstrings", n_rows=40)
report

# %%
# The first texts of the list
# ---------------------------
for row in report.listed[:6]:
    mark = "wrong" if wrong[row] else "right"
    print(f"{y[row]:>12} -> {report.suggestions[row]:<12} {mark}  {texts[row][:60]}")

# %%
# How many wrong labels are found
# -------------------------------
# Reading the list from its top, and in random order.
import matplotlib.pyplot as plt

by_value = np.argsort(report.values, kind="stable")
n_read = np.arange(1, len(y) + 1)
n_found = np.cumsum(wrong[by_value])
n_expected = n_read * wrong.mean()
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(n_read, n_found, color="#30638e", linewidth=2, label="by value")
axes.plot(n_read, n_expected, color="#8d8d8d", linestyle="--", label="at random")
axes.axvline(len(report.listed), color="0.2", linewidth=0.8, label="end of the list")
axes.set(xlabel="texts read", ylabel="wrong labels found")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
