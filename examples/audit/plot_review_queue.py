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
X, y_true = X[:600] / 16, y_true[:600]
y, wrong = flip_labels(y_true, 0.2, random_state=0)


def person(rows):
    """The labels that the person sees."""
    errs = rng.random(len(rows)) < 0.05
    return np.where(
        errs, (y_true[rows] + rng.integers(1, 10, len(rows))) % 10, y_true[rows]
    )


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
first, track = queue.next(), [(0, wrong.sum())]
while not queue.done_:
    rows = queue.next()
    queue.answer(rows, person(rows))
    track.append((queue.n_answers_, (queue.labels_ != y_true).sum()))
    what = "batch" if len(rows) == queue.batch_size else "second answers"
    print(f"{what} of {len(rows)}: {track[-1][1]} labels are wrong")

# %%
# Suggestions that are accepted unseen
# ------------------------------------
# A new queue: verdicts on 80 rows of its list, drawn so that the first rows are more
# probable, say to which rank the suggestions can be trusted. `accept` takes these over.
together = ReviewQueue(detector).fit(X, y)
together.draw()
while len(together.pending_):
    together.answer(together.pending_, person(together.pending_))
changed = together.accept()
print(
    f"After {together.n_answers_} answers {len(changed)} more labels are changed, "
    f"{np.mean(together.labels_[changed] != y_true[changed]):.0%} of them wrongly; "
    f"{(together.labels_ != y_true).sum()} labels are wrong then."
)

# %%
# Wrong labels by answers
# -----------------------
# Left: the first rows of the queue, with given and suggested label. Right: the wrong
# labels that are left, compared with answers on rows in random order.
import matplotlib.pyplot as plt

BLUE, RED, GREY = "#30638e", "#d1495b", "#8d8d8d"
figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
suggested = (
    LabelErrorDetector(LogisticRegression(C=0.1), random_state=0)
    .fit(X, y)
    .suggested_label_
)
for axes, row in zip(left.subplots(3, 5).flat, first):
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_title(f"{y[row]} → {suggested[row]}", color=RED if wrong[row] else BLUE)
axes = right.subplots()
answers, left_over = np.transpose(track)
axes.plot(answers, left_over, color=BLUE, marker="o", markersize=4, label="queue")
gain = 0.95 * wrong.mean() - 0.05 * np.mean(~wrong)  # of an answer on a random row
axes.plot(
    answers,
    wrong.sum() - gain * answers,
    "--",
    color=GREY,
    label="random rows, expected",
)
after = together.n_answers_, (together.labels_ != y_true).sum()
axes.plot(*after, "s", color=RED, label="80 verdicts, then accepted together")
axes.set(xlabel="answers", ylabel="wrong labels", ylim=(0, None))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
