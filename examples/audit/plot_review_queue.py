"""
Relabel in batches
==================

`ReviewQueue` asks a person for the labels of the most doubtful rows, forty at a time.
After each batch its detector is fitted again with these labels; answers that change a
label against the models are asked for a second time. It says when to stop. Afterwards,
verdicts on a draw of the list decide which of the other suggestions may be accepted
unseen.
"""

# %%
# Digits with 20 % wrong labels, and a person
# -------------------------------------------
# The person says a wrong label in 5 % of the answers.
import numpy as np
from sklearn.datasets import load_digits

from skvalue.datasets import flip_labels

rng = np.random.default_rng(0)
X, y_true = load_digits(return_X_y=True)
X = X[:600] / 16
y_true = y_true[:600]
y, wrong = flip_labels(y_true, 0.2, random_state=0)


def ask_person(rows):
    """The labels that the person says."""
    is_mistaken = rng.random(len(rows)) < 0.05
    other_labels = (y_true[rows] + rng.integers(1, 10, len(rows))) % 10
    return np.where(is_mistaken, other_labels, y_true[rows])


def count_wrong(queue):
    """Number of labels of a queue that are wrong."""
    return (queue.labels_ != y_true).sum()


print(f"{wrong.sum()} of {len(y)} labels are wrong.")

# %%
# The queue
# ---------
# `next` gives the rows to look at, `answer` takes their labels. Without an estimator
# the detector fits a forest and a logistic regression; one linear model is enough here.
from sklearn.linear_model import LogisticRegression

from skvalue import LabelErrorDetector
from skvalue.labels import ReviewQueue

detector = LabelErrorDetector(LogisticRegression(C=0.1), random_state=0)
queue = ReviewQueue(detector).fit(X, y)
suggested = queue.detector_.suggested_label_
first_rows = queue.next()
n_answers = [0]
n_wrong = [wrong.sum()]
while not queue.done_:
    rows = queue.next()
    queue.answer(rows, ask_person(rows))
    n_answers.append(queue.n_answers_)
    n_wrong.append(count_wrong(queue))
    kind = "batch" if len(rows) == queue.batch_size else "second answers"
    print(f"{kind} of {len(rows)}: {n_wrong[-1]} labels are wrong")

# %%
# Suggestions that are accepted unseen
# ------------------------------------
# A new queue: verdicts on 80 rows of its list, drawn so that the first rows are more
# probable, say to which rank the suggestions can be trusted. `accept` takes these over.
drawn_queue = ReviewQueue(detector).fit(X, y)
drawn_queue.draw()
while len(drawn_queue.pending_):
    rows = drawn_queue.pending_
    drawn_queue.answer(rows, ask_person(rows))
changed = drawn_queue.accept()
is_wrong = drawn_queue.labels_[changed] != y_true[changed]
print(
    f"After {drawn_queue.n_answers_} answers {len(changed)} more labels are changed, "
    f"{is_wrong.mean():.0%} of them wrongly; {count_wrong(drawn_queue)} labels are "
    "wrong then."
)

# %%
# Wrong labels by answers
# -----------------------
# Left: the first rows of the queue, with given and suggested label. Right: the wrong
# labels that are left, compared with answers on rows in random order.
import matplotlib.pyplot as plt

BLUE = "#30638e"
RED = "#d1495b"
GREY = "#8d8d8d"

figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
for axes, row in zip(left.subplots(3, 5).flat, first_rows):
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_title(f"{y[row]} → {suggested[row]}", color=RED if wrong[row] else BLUE)

# What an answer on a random row corrects on average.
gain = 0.95 * wrong.mean() - 0.05 * np.mean(~wrong)
n_expected = wrong.sum() - gain * np.array(n_answers)
axes = right.subplots()
axes.plot(n_answers, n_wrong, color=BLUE, marker="o", markersize=4, label="queue")
axes.plot(n_answers, n_expected, "--", color=GREY, label="random rows, expected")
axes.plot(
    drawn_queue.n_answers_,
    count_wrong(drawn_queue),
    "s",
    color=RED,
    label="80 verdicts, then accepted together",
)
axes.set(xlabel="answers", ylabel="wrong labels", ylim=(0, None))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
