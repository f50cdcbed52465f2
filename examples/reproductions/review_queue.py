"""
How many wrong labels are left after a review
=============================================

Labels of 600 rows of up to ten tables are flipped at rates of 5, 10 and 20 %; a person
who says a wrong label in 5 % of the answers reviews them with `ReviewQueue`. Prints the
wrong labels that are left, as a fraction of those before, with the errors of the
person: after 120 answers, and when the queue says that it is done (with the number of
answers). "random" is the same person with 120 rows drawn at random. "together": the
suggestions that `accept` takes over after verdicts on 80 drawn rows, how many of them
are wrong, and how many of the wrong labels they and the verdicts set right.

    python examples/reproductions/review_queue.py --data FOLDER --seeds 0

FOLDER holds ``NAME.npz`` with X and y, and a folder ``tables`` of CSV files; sets that
it does not hold are left out.

What should be seen: after 120 answers at most .22, .24 and .34 are left at the three
rates; at the stop of the queue at most .25, .20 and .20; at most a tenth of the changes
made together are wrong.
"""

import argparse
import copy
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

from skvalue import LabelErrorDetector
from skvalue.datasets import flip_labels
from skvalue.labels import ReviewQueue

IN_MEMORY = {"digits": load_digits, "breast": load_breast_cancer}
ARRAYS = ("covertype", "adult", "2dplanes", "phoneme", "wind", "cpu")
FRAMES = {"am_mobile_prices": "price_range", "R_modeldata_wa_churn": "churn"}
RATES = (0.05, 0.1, 0.2)
N_ROWS = 600
N_ANSWERS = 120

# Fraction of the answers of the person that are wrong.
ERROR_RATE = 0.05


def load(name, folder):
    """Rows, and labels as strings; None if the set is not there."""
    if name in IN_MEMORY:
        X, y = IN_MEMORY[name](return_X_y=True)
        return pd.DataFrame(X), y.astype(str)
    file = f"{name}.npz" if name in ARRAYS else f"tables/{name}.csv.gz"
    path = Path(folder) / file
    if not path.exists():
        return None
    if name in ARRAYS:
        return load_arrays(path)
    frame = pd.read_csv(path).drop(columns="rownames", errors="ignore")
    target = FRAMES[name]
    return frame.drop(columns=target), frame[target].astype(str).to_numpy()


def load_arrays(path):
    """Rows and labels of an npz file; categorical columns become strings."""
    data = np.load(path)
    X = pd.DataFrame(data["X"])
    if "is_cat" in data.files:
        for j in np.flatnonzero(data["is_cat"]):
            X[j] = "c" + X[j].astype(int).astype(str)
    return X, data["y"].astype(str)


def draw_rows(X, y, seed):
    """At most `N_ROWS` rows, of classes with at least ten among them."""
    rows = np.random.default_rng(seed).permutation(len(y))[:N_ROWS]
    labels, counts = np.unique(y[rows], return_counts=True)
    rows = rows[np.isin(y[rows], labels[counts >= 10])]
    return X.iloc[rows].reset_index(drop=True), y[rows]


def ask_person(y, rows, rng):
    """What the person says of rows with the true labels y."""
    answers = y[rows].copy()
    classes = np.unique(y)
    for i in np.flatnonzero(rng.random(len(rows)) < ERROR_RATE):
        answers[i] = rng.choice(classes[classes != answers[i]])
    return answers


def review(queue, y, rng):
    """Answer until the queue is done, and until the limit of answered rows.

    Returns the wrong labels at the limit and at the stop, the number of answers at the
    stop, and the CPU seconds of all.
    """
    start = process_time()
    n_at_limit = None
    n_at_stop = None
    while n_at_limit is None or n_at_stop is None:
        rows = queue.next()
        queue.answer(rows, ask_person(y, rows, rng))
        n_wrong = np.sum(queue.labels_ != y)
        is_batch_complete = not len(queue.pending_)
        if n_at_limit is None:
            is_at_limit = queue.seen_.sum() >= N_ANSWERS and is_batch_complete
            if is_at_limit or queue.seen_.all():
                n_at_limit = n_wrong
        if n_at_stop is None and queue.done_:
            n_at_stop = n_wrong
            n_answers = queue.n_answers_
    return n_at_limit, n_at_stop, n_answers, process_time() - start


def accept_suggestions(queue, y, rng):
    """Labels changed together, how many wrong, and the wrong labels that are left."""
    queue.draw()
    while len(queue.pending_):
        queue.answer(queue.pending_, ask_person(y, queue.pending_, rng))
    rows = queue.accept()
    n_changed_wrongly = np.sum(queue.labels_[rows] != y[rows])
    return len(rows), n_changed_wrongly, np.sum(queue.labels_ != y)


def measure(name, folder, seed):
    """Records of one table and seed."""
    data = load(name, folder)
    if data is None:
        return
    X, y = draw_rows(*data, seed)
    for rate in RATES:
        noise_seed = int(100 * rate) + 100 * seed
        y_noisy, flipped = flip_labels(y, rate, random_state=noise_seed)
        n_flipped = flipped.sum()
        rng = np.random.default_rng([seed, int(100 * rate)])

        at_random = y_noisy.copy()
        rows = rng.permutation(len(y))[:N_ANSWERS]
        at_random[rows] = ask_person(y, rows, rng)

        queue = ReviewQueue(LabelErrorDetector(random_state=seed)).fit(X, y_noisy)
        n_changed, n_changed_wrongly, n_left_then = accept_suggestions(
            copy.deepcopy(queue), y, rng
        )
        n_at_limit, n_at_stop, n_answers, seconds = review(queue, y, rng)
        yield {
            "table": name,
            "rate": rate,
            "seed": seed,
            "random": np.sum(at_random != y) / n_flipped,
            "left": n_at_limit / n_flipped,
            "at stop": n_at_stop / n_flipped,
            "answers": n_answers,
            "changed": n_changed,
            "wrong": n_changed_wrongly,
            "left then": n_left_then / n_flipped,
            "seconds": seconds,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sets", nargs="+", default=[*IN_MEMORY, *ARRAYS, *FRAMES])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = []
    for name in options.sets:
        for seed in options.seeds:
            records += measure(name, options.data, seed)

    frame = pd.DataFrame(records)
    for keys in (["table", "rate"], ["rate"]):
        groups = frame.groupby(keys)
        means = groups.mean(numeric_only=True).drop(columns="seed")
        sums = groups[["changed", "wrong"]].sum()
        means["of them wrong"] = sums["wrong"] / sums["changed"].clip(lower=1)
        print(means.drop(columns="wrong").round(2).to_string(), end="\n\n")


if __name__ == "__main__":
    main()
