"""Runs of `InRunShapleyValuer` for the table of audits: what its trajectory publishes.

Each canary has a feature of its own, so that one fit audits many of them: its gradient
is as long as can be, one way or the other, and the noise of the coordinates is
independent.
"""

from functools import lru_cache

import numpy as np

from skvalue import InRunShapleyValuer
from skvalue.derivatives import LinearRowModel, Run, Utility, descend, shuffled_batches
from skvalue.privacy import Ledger, get_epsilon
from skvalue.privacy.audit import search_sensitivity

EPSILON, DELTA, CLIP, STEPS, CANARIES, FITS = 8.0, 1e-5, 0.7, 3, 400, 6
RATE = 1e-9  # parameters stay at zero


def fit(signs, epsilon=EPSILON, **ledger):
    """Sums that a fit releases, less the rounding: (STEPS, number of features)."""
    n = len(signs)
    valuer = InRunShapleyValuer(
        "linear", epsilon=epsilon, delta=DELTA, clip=CLIP, n_steps=STEPS, learning_rate=RATE,
        standardize=False, **ledger,
    )  # fmt: skip
    valuer.fit(1e6 * np.eye(n), 1e3 * signs, X_val=np.ones((2, n)), y_val=[0.0, 0.5])
    return -np.diff(valuer.trajectory_, axis=0)[:, :-1] * n / RATE


@lru_cache
def claim():
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    fit(np.array([1.0, -1.0]), ledger=ledger)
    return ledger.charges[0].event


def short_claim():
    """The claim of a sensitivity of sqrt 2 times the bound, where it is twice the
    bound."""
    event, share = claim(), 0.5**0.5
    noise = type(event.event)(share * event.event.scale, share * 2 * CLIP, "replace")
    return type(event)(noise, STEPS)


@lru_cache
def runs(short=1.0):
    """Scores of canaries that pull one way and the other, from fits with noise
    ``short``."""
    event = claim()
    scale = event.event.scale * short
    epsilon = EPSILON
    if short != 1.0:
        weaker = type(event)(type(event.event)(scale, 2 * CLIP, "replace"), STEPS)
        epsilon = get_epsilon(weaker, DELTA)
    signs = np.where(np.arange(CANARIES) % 2, -1.0, 1.0)
    found = np.concatenate([fit(signs, epsilon) for _ in range(FITS)], axis=1)
    signs = np.tile(signs, FITS)
    return found[:, signs < 0], found[:, signs > 0]


def scores(short=1.0):
    """Sums over the steps: the loss of a row with target 1 falls along its feature."""
    return [part.sum(axis=0) for part in runs(short)]


def noise(short=1.0):
    one, other = runs(short)
    return np.concatenate([one - CLIP, other + CLIP], axis=1).ravel()


def search(event, clip=CLIP):
    """The sum of clipped gradients of three rows, one of which is replaced."""

    def summed(rows):
        X, y = np.array([x for x, _ in rows])[:, None], np.array([t for _, t in rows])
        model = LinearRowModel(1)
        utility = Utility(model, model.rows(X[:1], y[:1]), np.ones(1))
        run = Run(utility, 3, clip, 1.0, 1, [np.zeros(2)])
        next(descend(run, model.rows(X, y), shuffled_batches(3, None, None), 1))
        return -3 * run.thetas[1]

    records = [(x, t) for x in (0.0, 2.0) for t in (-9.0, 0.01, 9.0)]
    return search_sensitivity(
        summed, records, 3, claimed=event.event.sensitivity, relation="replace"
    )
