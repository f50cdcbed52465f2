"""Runs of `InRunShapleyValuer` for the table of audits: what its trajectory publishes.

Each canary has a feature of its own, so that one fit audits many of them: its gradient
is as long as can be, one way or the other, and the noise of the coordinates is
independent.
"""

from functools import lru_cache
from itertools import product

import numpy as np

from skvalue import InRunShapleyValuer
from skvalue.derivatives import LinearRowModel, Run, Utility, descend, shuffled_batches
from skvalue.privacy import GaussianEvent, Ledger, SelfComposedEvent, get_epsilon
from skvalue.privacy.audit import search_sensitivity

EPSILON = 8.0
DELTA = 1e-5
CLIP = 0.7
N_STEPS = 3
N_CANARIES = 400
N_FITS = 6
RATE = 1e-9  # parameters stay at zero


def fit(signs, epsilon=EPSILON, **ledger):
    """Sums that a fit releases, less the rounding: (n_steps, n_features)."""
    n = len(signs)
    valuer = InRunShapleyValuer(
        "linear",
        epsilon=epsilon,
        delta=DELTA,
        clip=CLIP,
        n_steps=N_STEPS,
        learning_rate=RATE,
        standardize=False,
        **ledger,
    )
    valuer.fit(1e6 * np.eye(n), 1e3 * signs, X_val=np.ones((2, n)), y_val=[0.0, 0.5])
    return -np.diff(valuer.trajectory_, axis=0)[:, :-1] * n / RATE


@lru_cache
def claim():
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    fit(np.array([1.0, -1.0]), ledger=ledger)
    return ledger.charges[0].event


def short_claim():
    """The claim of sqrt 2 times the bound as sensitivity, where it is twice the bound.

    The noise is that of the claim.
    """
    event = claim()
    factor = 0.5**0.5
    noise = GaussianEvent(
        factor * event.event.scale, factor * 2 * CLIP, relation="replace"
    )
    return SelfComposedEvent(noise, N_STEPS)


@lru_cache
def runs(short=1.0):
    """Scores (n_steps, n) of canaries that pull one way, and of those of the other way.

    From fits with noise that is ``short`` times that of the claim.
    """
    epsilon = EPSILON
    if short != 1.0:
        noise = GaussianEvent(claim().event.scale * short, 2 * CLIP, relation="replace")
        epsilon = get_epsilon(SelfComposedEvent(noise, N_STEPS), DELTA)
    signs = np.where(np.arange(N_CANARIES) % 2, -1.0, 1.0)
    sums = np.concatenate([fit(signs, epsilon) for _ in range(N_FITS)], axis=1)
    signs = np.tile(signs, N_FITS)
    return sums[:, signs < 0], sums[:, signs > 0]


def scores(short=1.0):
    """Sums over the steps: the loss of a row with target 1 falls along its feature."""
    return [sums.sum(axis=0) for sums in runs(short)]


def noise(short=1.0):
    negative, positive = runs(short)
    return np.concatenate([negative - CLIP, positive + CLIP], axis=1).ravel()


def search(event, clip=CLIP):
    """The sum of clipped gradients of three rows, one of which is replaced."""

    def summed(rows):
        X, y = np.array(rows).T
        X = X[:, None]
        model = LinearRowModel(1)
        utility = Utility(model, model.rows(X[:1], y[:1]), np.ones(1))
        run = Run(utility, 3, clip, 1.0, 1, [np.zeros(2)])
        next(descend(run, model.rows(X, y), shuffled_batches(3, None, None), 1))
        return -3 * run.thetas[1]

    records = list(product((0.0, 2.0), (-9.0, 0.01, 9.0)))
    return search_sensitivity(
        summed, records, 3, claimed=event.event.sensitivity, relation="replace"
    )
