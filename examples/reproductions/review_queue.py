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
N_ROWS, ERRS = 600, 0.05


def load(name, folder):
    """Rows, and labels as strings; None if the set is not there."""
    if name in IN_MEMORY:
        X, y = IN_MEMORY[name](return_X_y=True)
        return pd.DataFrame(X), y.astype(str)
    folder = Path(folder)
    path = folder / (f"{name}.npz" if name in ARRAYS else f"tables/{name}.csv.gz")
    if not path.exists():
        return None
    if name in ARRAYS:
        data = np.load(path)
        X = pd.DataFrame(data["X"])
        for j in np.flatnonzero(data["is_cat"]) if "is_cat" in data.files else []:
            X[j] = "c" + X[j].astype(int).astype(str)
        return X, data["y"].astype(str)
    frame = pd.read_csv(path).drop(columns="rownames", errors="ignore")
    return frame.drop(columns=FRAMES[name]), frame[FRAMES[name]].astype(str).to_numpy()


def draw(X, y, seed):
    """At most 600 rows, of classes with at least ten among them."""
    rows = np.random.default_rng(seed).permutation(len(y))[:N_ROWS]
    labels, counts = np.unique(y[rows], return_counts=True)
    rows = rows[np.isin(y[rows], labels[counts >= 10])]
    return X.iloc[rows].reset_index(drop=True), y[rows]


def say(y, rows, rng):
    """What the person says of rows with the labels y."""
    said, classes = y[rows].copy(), np.unique(y)
    for i in np.flatnonzero(rng.random(len(rows)) < ERRS):
        said[i] = rng.choice(classes[classes != said[i]])
    return said


def reviewed(queue, y, rng, n_answers=120):
    """Wrong labels after answers on 120 rows and at the stop; answers and CPU seconds
    till then."""
    start, at_limit, at_stop = process_time(), None, None
    while at_limit is None or at_stop is None:
        rows = queue.next()
        queue.answer(rows, say(y, rows, rng))
        wrong = np.sum(queue.labels_ != y)
        if (
            at_limit is None
            and queue.seen_.sum() >= n_answers
            and not len(queue.pending_)
        ):
            at_limit = wrong
        if at_stop is None and queue.done_:
            at_stop = wrong, queue.n_answers_
        if queue.seen_.all():
            at_limit = wrong if at_limit is None else at_limit
    return at_limit, *at_stop, process_time() - start


def accepted(queue, y, rng):
    """Labels changed together, how many wrong, and the wrong labels that are left."""
    rows = queue.draw()
    while len(queue.pending_):
        queue.answer(queue.pending_, say(y, queue.pending_, rng))
    rows = queue.accept()
    return len(rows), np.sum(queue.labels_[rows] != y[rows]), np.sum(queue.labels_ != y)


def measure(name, folder, seed):
    """Records of one table and seed."""
    data = load(name, folder)
    if data is None:
        return
    X, y = draw(*data, seed)
    for rate in RATES:
        given, flipped = flip_labels(y, rate, random_state=int(100 * rate) + 100 * seed)
        rng = np.random.default_rng([seed, int(100 * rate)])
        at_random = given.copy()
        rows = rng.permutation(len(y))[:120]
        at_random[rows] = say(y, rows, rng)
        queue = ReviewQueue(LabelErrorDetector(random_state=seed)).fit(X, given)
        together = accepted(copy.deepcopy(queue), y, rng)
        left, at_stop, n_answers, seconds = reviewed(queue, y, rng)
        n = flipped.sum()
        yield {
            "table": name, "rate": rate, "seed": seed, "random": np.sum(at_random != y) / n,
            "left": left / n, "at stop": at_stop / n, "answers": n_answers, "changed": together[0],
            "wrong": together[1], "left then": together[2] / n, "seconds": seconds,
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sets", nargs="+", default=[*IN_MEMORY, *ARRAYS, *FRAMES])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = [
        record
        for name in options.sets
        for seed in options.seeds
        for record in measure(name, options.data, seed)
    ]
    frame = pd.DataFrame(found)
    for keys in (["table", "rate"], ["rate"]):
        mean = frame.groupby(keys).mean(numeric_only=True).drop(columns="seed")
        summed = frame.groupby(keys)[["changed", "wrong"]].sum()
        mean["of them wrong"] = summed["wrong"] / summed["changed"].clip(lower=1)
        print(mean.drop(columns="wrong").round(2).to_string(), end="\n\n")


if __name__ == "__main__":
    main()
