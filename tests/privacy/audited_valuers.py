"""Runs of the private valuers for the table of audits: whole fits, through what they
publish.

A faulty fit is one with the noise of another event: noise that is short by a factor is
the noise of a larger epsilon.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer, TKNNShapleyValuer
from skvalue.derivatives import LinearGradientModel
from skvalue.privacy import Ledger, calibrate_counts, get_epsilon
from skvalue.privacy.audit import search_sensitivity

EPSILON, DELTA = 8.0, 1e-5


def charged(fit, **parameters):
    """The event that a fit charges to its ledger."""
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    fit(ledger=ledger, **parameters)
    return ledger.charges[0].event


# Threshold-KNN: copies of a small data set, far from each other, are independent runs. ------------

# Four overlapping balls, and two that hold other rows; the canary is in four balls, M
# of them.
X_VAL = np.array([0.0, 0.2, 0.4, 0.6, 5.0, 7.0])
Y_VAL = np.array([0, 1, 0, 1, 0, 1])
ROWS = [(0.05, 0), (0.3, 1), (5.0, 1), (20.0, 0)]
CANARY = (0.3, 0)
TKNN_FITS, COPIES = 3, 200


def tknn(rows, epsilon=EPSILON, runs=1, points=(X_VAL, Y_VAL), **parameters):
    """Counts of a fit, (2, runs, n_points): noisy ones with and without the label of
    each point."""
    places = 100.0 * np.arange(runs)
    x, y = np.array(rows).T
    X, X_val = ((places[:, None] + part).reshape(-1, 1) for part in (x, points[0]))
    valuer = TKNNShapleyValuer(
        0.5,
        metric="euclidean",
        epsilon=epsilon,
        delta=DELTA,
        denoise=False,
        **parameters,
    ).fit(X, np.tile(y.astype(int), runs), X_val=X_val, y_val=np.tile(points[1], runs))
    return valuer.counts_.reshape(2, runs, -1)


def tknn_clean(rows):
    """Counts without noise, (2, n_points), with and without the label of each point."""
    both_labels = [(50.0, 0), (50.0, 1)]  # far from all points
    counts = tknn([*rows, *both_labels], None)[:, 0]
    return np.where(Y_VAL == 0, counts, counts[::-1])


def tknn_claim(relation="add_remove"):
    return charged(lambda **ledger: tknn(ROWS, relation=relation, **ledger))


def tknn_neighbours(relation):
    """Rows with the canary, and with it relabelled or removed."""
    return [*ROWS, CANARY], [*ROWS, *([(0.3, 1)] if relation == "replace" else [])]


@lru_cache
def tknn_runs(relation="add_remove", forgets=None):
    """Counts on the data with the canary, and on their neighbour."""
    epsilon = EPSILON
    if forgets == "M":
        one_ball = calibrate_counts(EPSILON, DELTA, 1, relation).scale
        epsilon = get_epsilon(replace(tknn_claim(relation), scale=one_ball), DELTA)
    return [
        np.concatenate(
            [tknn(rows, epsilon, COPIES, relation=relation) for _ in range(TKNN_FITS)],
            axis=1,
        )
        for rows in tknn_neighbours(relation)
    ]


def tknn_scores(relation="add_remove", forgets=None):
    """The runs, projected on the direction in which the neighbours differ."""
    direction = np.subtract(*map(tknn_clean, tknn_neighbours(relation)))
    return [
        np.einsum("crv,cv->r", counts, direction)
        for counts in tknn_runs(relation, forgets)
    ]


def tknn_noise(relation="add_remove", forgets=None):
    return (
        tknn_runs(relation, forgets)[0]
        - tknn_clean(tknn_neighbours(relation)[0])[:, None]
    )


def search_tknn(claim):
    records = [(0.3, 0), (0.3, 1), (0.65, 1), (20.0, 1)]
    if claim.relation == "replace":
        records = [(0.3, 0), (0.3, 1), (20.0, 1)]
    return search_sensitivity(
        tknn_clean,
        records,
        3,
        claimed=claim.contributions**0.5,
        relation=claim.relation,
    )


# Gradients of a linear regression: canaries, each as long as can be, one way or the other. --------

# Steps are so short that parameters stay at zero: a value is a number times the sum of
# what the canary has released along the gradient of the utility, the way of all
# canaries.
PERMUTATIONS, CANARIES, CLIP = 4, 1000, 0.7
PROJECTED = {
    "n_components": 1,
    "clip": "median",
}  # on -(1, 1) / sqrt(2), the public gradients' way
PROJECTED_CLIP = (
    0.5**0.5
)  # the median of 0 and sqrt(2), the norms at the two validation points
SETTING = {
    "learning_rate": 1e-6, "standardize": False, "delta": DELTA, "noise": "iid", "random_state": 0,
}  # fmt: skip


def gradient_fit(X_val=3.0, **parameters):
    """Values of canaries that pull one way, and of as many that pull the other or do
    nothing."""
    blank = parameters.get("trust") == "server"
    y = np.tile([-1e9, 0.0 if blank else 1e9], CANARIES)
    valuer = GradientSemivalueValuer(
        "linear",
        n_permutations=PERMUTATIONS,
        n_jobs=1,
        **{"clip": CLIP, **SETTING, **parameters},
    )
    valuer.fit(
        np.full((2 * CANARIES, 1), 3.0),
        y,
        X_val=np.full((2, 1), X_val),
        y_val=[0.0, 0.5],
    )
    return valuer.values_.reshape(-1, 2).T


def federated_fit(**parameters):
    """As `gradient_fit`, from rounds in which all canaries take part."""
    valuer = FederatedSemivalueValuer(
        "linear", n_rounds=PERMUTATIONS, n_permutations=1, semivalue="leave-one-out", burn_in=0.0,
        **{**SETTING, **PROJECTED, **parameters},
    ).fit(np.full((2 * CANARIES, 1), 3.0), np.tile([-1e9, 1e9], CANARIES),
          X_val=np.ones((2, 1)), y_val=[0.0, 0.5])  # fmt: skip
    return valuer.values_.reshape(-1, 2).T


def rounds_elsewhere(**parameters):
    """As `gradient_fit`, of parties that send updates longer than the bound to a
    server."""
    way = np.array([3.0, 1.0]) / 10**0.5
    updates = np.outer(np.tile([-9.0, 9.0], CANARIES), way)
    valuer = FederatedSemivalueValuer(
        n_rounds=PERMUTATIONS, n_permutations=1, semivalue="leave-one-out", burn_in=0.0, clip=CLIP,
        noise="iid", delta=DELTA, **parameters,
    ).start(lambda thetas: thetas @ way, 2 * CANARIES)  # fmt: skip
    for _ in range(PERMUTATIONS):
        valuer.add_round(np.zeros(2), updates)
    return valuer.values_.reshape(-1, 2).T


FITS = {
    "gradients": (gradient_fit, CLIP),
    "server": (lambda **parameters: gradient_fit(trust="server", **parameters), CLIP / 2),
    "projected": (
        lambda **parameters: gradient_fit(1.0, **PROJECTED, **parameters), PROJECTED_CLIP
    ),
    "rounds": (rounds_elsewhere, CLIP),
    "federated": (federated_fit, PROJECTED_CLIP),
}  # fmt: skip


@lru_cache
def gradient_claim(kind):
    return charged(FITS[kind][0], epsilon=EPSILON)


@lru_cache
def gradient_runs(kind, short=1.0):
    """What canaries on either side released along their way: sums with noise, and
    without it."""
    fit, half = FITS[kind]
    scale = gradient_claim(kind).event.scale
    clip = PROJECTED_CLIP if kind in ("projected", "federated") else CLIP
    exact = fit().mean(axis=1)
    noisy = fit(noise_multiplier=short * scale / (PERMUTATIONS**0.5 * clip))
    unit = (exact[0] - exact[1]) / (
        2 * half * PERMUTATIONS
    )  # of one release, in a value
    return noisy / unit, exact / unit


def gradient_scores(kind, short=1.0):
    return gradient_runs(kind, short)[0]


def gradient_noise(kind, short=1.0):
    """Noise of the sum of all releases, in units of one."""
    noisy, exact = gradient_runs(kind, short)
    return (noisy - exact[:, None]) / PERMUTATIONS**0.5


def search_projected(claim):
    return search_gradients(claim, PROJECTED_CLIP, np.full((2, 1), -(0.5**0.5)))


def search_gradients(claim, clip=CLIP, basis=None):
    """The sum of the clipped gradients of a party of three rows: one of them is
    replaced."""

    def summed(rows):
        X, y = np.array([x for x, _ in rows]), np.array([t for _, t in rows])
        model = LinearGradientModel(
            X[:, None], y, np.zeros(3, int), X[:, None], y, np.full(3, 1 / 3), kind="linear",
            n_classes=0, clip=clip, unit="example", utility="neg_loss", basis=basis,
        )  # fmt: skip
        return 3 * model.gradient(np.zeros(model.n_parameters), 0)

    records = [(x, t) for x in (0.0, 2.0) for t in (-9.0, 0.01, 9.0)]
    return search_sensitivity(summed, records, 3, claimed=claim.event.sensitivity,
                              relation="replace")  # fmt: skip


def search_updates(claim, clip=CLIP):
    """One party's update, of any size, is replaced."""
    party = FederatedSemivalueValuer(n_rounds=PERMUTATIONS, clip=clip)
    records = [(0.0, 0.0), (9.0, 0.0), (-9.0, 0.0), (0.1, 0.2), (3.0, 4.0)]
    return search_sensitivity(
        lambda updates: np.ravel([party.release(update) for update in updates]), records, 2,
        claimed=claim.event.sensitivity, relation="replace",
    )  # fmt: skip
