"""Runs of the private valuers for the table of audits: what whole fits publish.

A faulty fit is one with the noise of another event: noise that is short by a factor is
the noise of a larger epsilon.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer, TKNNShapleyValuer
from skvalue.derivatives import LinearGradientModel
from skvalue.privacy import Ledger, calibrate_counts, get_epsilon
from skvalue.privacy.audit import search_sensitivity

EPSILON = 8.0
DELTA = 1e-5


def charged(fit, **parameters):
    """The event that a fit charges to its ledger."""
    ledger = Ledger(None, "audit", epsilon=100.0, delta=DELTA)
    fit(ledger=ledger, **parameters)
    return ledger.charges[0].event


# Threshold-KNN ------------------------------------------------------------------------

# Four overlapping balls, and two that hold other rows; the canary is in four balls, M
# of them. Copies of these rows, far from each other, are independent runs.
X_VAL = np.array([0.0, 0.2, 0.4, 0.6, 5.0, 7.0])
Y_VAL = np.array([0, 1, 0, 1, 0, 1])
ROWS = [(0.05, 0), (0.3, 1), (5.0, 1), (20.0, 0)]
CANARY = (0.3, 0)
N_TKNN_FITS = 4
N_COPIES = 200


def tknn(rows, epsilon=EPSILON, runs=1, points=(X_VAL, Y_VAL), **parameters):
    """Counts of a fit, (2, runs, n_points), with and without the label of each point.

    They are noisy, unless ``epsilon`` is None.
    """
    offsets = 100.0 * np.arange(runs)[:, None]
    x, y = np.array(rows).T
    x_val, y_val = points
    valuer = TKNNShapleyValuer(
        0.5,
        metric="euclidean",
        epsilon=epsilon,
        delta=DELTA,
        denoise=False,
        **parameters,
    )
    valuer.fit(
        (offsets + x).reshape(-1, 1),
        np.tile(y.astype(int), runs),
        X_val=(offsets + x_val).reshape(-1, 1),
        y_val=np.tile(y_val, runs),
    )
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
    with_canary = [*ROWS, CANARY]
    if relation == "replace":
        return with_canary, [*ROWS, (0.3, 1)]
    return with_canary, ROWS


@lru_cache
def tknn_runs(relation="add_remove", forgets=None):
    """Counts on the data with the canary, and on their neighbour."""
    epsilon = EPSILON
    if forgets == "M":
        one_ball = calibrate_counts(EPSILON, DELTA, 1, relation).scale
        epsilon = get_epsilon(replace(tknn_claim(relation), scale=one_ball), DELTA)
    counts = []
    for rows in tknn_neighbours(relation):
        fits = [
            tknn(rows, epsilon, N_COPIES, relation=relation) for _ in range(N_TKNN_FITS)
        ]
        counts.append(np.concatenate(fits, axis=1))
    return counts


def tknn_scores(relation="add_remove", forgets=None):
    """The runs, projected on the direction in which the neighbours differ."""
    direction = np.subtract(*map(tknn_clean, tknn_neighbours(relation)))
    return [
        np.einsum("crv,cv->r", counts, direction)
        for counts in tknn_runs(relation, forgets)
    ]


def tknn_noise(relation="add_remove", forgets=None):
    counts, _ = tknn_runs(relation, forgets)
    rows, _ = tknn_neighbours(relation)
    return counts - tknn_clean(rows)[:, None]


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


# A fresh sample of the rows for every ball. Copies of a canary, far from each other,
# are alone in balls of their own: each is a run. The epsilon of a fit is that of a row
# in all balls of all runs; that of a row in the balls of one run is about 5.
SAMPLED_EPSILON = 45.0
SAMPLING_RATE = 0.2
N_BALLS_OF_RUN = 20
N_SAMPLED_COPIES = 50
N_SAMPLED_FITS = 60
SAMPLED_CENTERS = 100.0 * np.arange(N_SAMPLED_COPIES)
FAR_ROWS = [(-50.0, 0), (-50.0, 1)]
SAMPLED_CANARIES = [(center + 0.3, 0) for center in SAMPLED_CENTERS]


def sampled_counts(rows, epsilon=SAMPLED_EPSILON, **parameters):
    """Noisy counts of rows of label 0, (runs, balls), that a fit publishes."""
    x, y = np.array(rows).T
    x_val = np.repeat(SAMPLED_CENTERS, N_BALLS_OF_RUN)
    y_val = np.arange(len(x_val)) % 2
    valuer = TKNNShapleyValuer(
        0.5,
        metric="euclidean",
        epsilon=epsilon,
        delta=DELTA,
        sampling_rate=SAMPLING_RATE,
        denoise=False,
        max_contributions=None,
        **parameters,
    )
    valuer.fit(x[:, None], y.astype(int), X_val=x_val[:, None], y_val=y_val)
    own_label, other_label = valuer.counts_
    counts = np.where(y_val == 0, own_label, other_label)
    return counts.reshape(N_SAMPLED_COPIES, N_BALLS_OF_RUN)


@lru_cache
def sampled_charge():
    return charged(partial(sampled_counts, FAR_ROWS))


def sampled_claim():
    """What a fit states of a row that is in the balls of one run."""
    return replace(sampled_charge(), count=N_BALLS_OF_RUN)


@lru_cache
def sampled_runs(short=1.0):
    """Counts (runs, balls) with the canaries, and without them.

    Their noise is ``short`` times that of the charge.
    """
    epsilon = SAMPLED_EPSILON
    if short != 1.0:
        charge = sampled_charge()
        noise = replace(charge.event.event, scale=short * charge.event.event.scale)
        sampled = replace(charge.event, event=noise)
        epsilon = get_epsilon(replace(charge, event=sampled), DELTA)
    return [
        np.concatenate([sampled_counts(rows, epsilon) for _ in range(N_SAMPLED_FITS)])
        for rows in (FAR_ROWS + SAMPLED_CANARIES, FAR_ROWS)
    ]


def sampled_scores(short=1.0):
    """Log-likelihood ratios of the runs with the canary, and of those without it."""
    scale = short * sampled_charge().event.event.scale
    scores = []
    for counts in sampled_runs(short):
        ratio = np.exp((counts - 0.5) / scale**2)
        mixture = 1 - SAMPLING_RATE + SAMPLING_RATE * ratio
        scores.append(np.log(mixture).sum(axis=1))
    return scores


def sampled_noise(short=1.0):
    """Noise of all counts without the canaries: their balls are empty."""
    return sampled_runs(short)[1]


# Gradients of a linear regression -----------------------------------------------------

# Gradients of canaries are as long as can be, one way or the other. Steps are so short
# that parameters stay at zero: a value is a number times the sum of what the canary has
# released along the gradient of the utility, the way of all canaries.
N_PERMUTATIONS = 4
N_CANARIES = 2000
CLIP = 0.7
SETTING = {
    "learning_rate": 1e-6,
    "standardize": False,
    "delta": DELTA,
    "noise": "iid",
    "random_state": 0,
}

# On -(1, 1) / sqrt(2), the direction of the public gradients. The bound is the median
# of 0 and sqrt(2), the norms at the two validation points.
PROJECTED = {"n_components": 1, "clip": "median"}
PROJECTED_CLIP = 0.5**0.5


def gradient_fit(X_val=3.0, **parameters):
    """Values (2, n) of canaries that pull one way, and of as many others.

    The others pull the other way, or do nothing if a server is trusted.
    """
    other_target = 0.0 if parameters.get("trust") == "server" else 1e9
    valuer = GradientSemivalueValuer(
        "linear",
        n_permutations=N_PERMUTATIONS,
        n_jobs=1,
        **{"clip": CLIP, **SETTING, **parameters},
    )
    valuer.fit(
        np.full((2 * N_CANARIES, 1), 3.0),
        np.tile([-1e9, other_target], N_CANARIES),
        X_val=np.full((2, 1), X_val),
        y_val=[0.0, 0.5],
    )
    return valuer.values_.reshape(-1, 2).T


def federated_fit(**parameters):
    """As `gradient_fit`, from rounds in which all canaries take part."""
    valuer = FederatedSemivalueValuer(
        "linear",
        n_rounds=N_PERMUTATIONS,
        n_permutations=1,
        semivalue="leave-one-out",
        burn_in=0.0,
        **{**SETTING, **PROJECTED, **parameters},
    )
    valuer.fit(
        np.full((2 * N_CANARIES, 1), 3.0),
        np.tile([-1e9, 1e9], N_CANARIES),
        X_val=np.ones((2, 1)),
        y_val=[0.0, 0.5],
    )
    return valuer.values_.reshape(-1, 2).T


def rounds_elsewhere(**parameters):
    """As `gradient_fit`, of parties that send too long updates to a server."""
    direction = np.array([3.0, 1.0]) / 10**0.5
    updates = np.outer(np.tile([-9.0, 9.0], N_CANARIES), direction)
    valuer = FederatedSemivalueValuer(
        n_rounds=N_PERMUTATIONS,
        n_permutations=1,
        semivalue="leave-one-out",
        burn_in=0.0,
        clip=CLIP,
        noise="iid",
        delta=DELTA,
        **parameters,
    )
    valuer.start(lambda thetas: thetas @ direction, 2 * N_CANARIES)
    for _ in range(N_PERMUTATIONS):
        valuer.add_round(np.zeros(2), updates)
    return valuer.values_.reshape(-1, 2).T


class Fit(NamedTuple):
    """A function that fits, its clip, and half the distance between the canaries."""

    fit: Callable
    clip: float
    half_distance: float


FITS = {
    "gradients": Fit(gradient_fit, CLIP, CLIP),
    "server": Fit(partial(gradient_fit, trust="server"), CLIP, CLIP / 2),
    "projected": Fit(
        partial(gradient_fit, 1.0, **PROJECTED), PROJECTED_CLIP, PROJECTED_CLIP
    ),
    "rounds": Fit(rounds_elsewhere, CLIP, CLIP),
    "federated": Fit(federated_fit, PROJECTED_CLIP, PROJECTED_CLIP),
}


@lru_cache
def gradient_claim(kind):
    return charged(FITS[kind].fit, epsilon=EPSILON)


@lru_cache
def gradient_runs(kind, short=1.0):
    """Sums of what canaries of both ways released along it, with noise and without.

    (2, n) and (2,), in units of one release.
    """
    fit, clip, half_distance = FITS[kind]
    scale = gradient_claim(kind).event.scale
    exact = fit().mean(axis=1)
    noisy = fit(noise_multiplier=short * scale / (N_PERMUTATIONS**0.5 * clip))
    unit = (exact[0] - exact[1]) / (2 * half_distance * N_PERMUTATIONS)
    return noisy / unit, exact / unit


def gradient_scores(kind, short=1.0):
    return gradient_runs(kind, short)[0]


def gradient_noise(kind, short=1.0):
    """Noise of the sum of all releases, in units of one."""
    noisy, exact = gradient_runs(kind, short)
    return (noisy - exact[:, None]) / N_PERMUTATIONS**0.5


def search_projected(claim):
    return search_gradients(claim, PROJECTED_CLIP, np.full((2, 1), -(0.5**0.5)))


def search_gradients(claim, clip=CLIP, basis=None):
    """The sum of clipped gradients of a party's three rows, one of them replaced."""

    def summed(rows):
        X, y = np.array(rows).T
        X = X[:, None]
        model = LinearGradientModel(
            X,
            y,
            np.zeros(3, int),
            X_val=X,
            y_val=y,
            weights=np.full(3, 1 / 3),
            kind="linear",
            n_classes=0,
            clip=clip,
            unit="example",
            utility="neg_loss",
            basis=basis,
        )
        return 3 * model.gradient(np.zeros(model.n_parameters), 0)

    return search_sensitivity(
        summed,
        list(product((0.0, 2.0), (-9.0, 0.01, 9.0))),
        3,
        claimed=claim.event.sensitivity,
        relation="replace",
    )


def search_updates(claim, clip=CLIP):
    """One party's update, of any size, is replaced."""
    party = FederatedSemivalueValuer(n_rounds=N_PERMUTATIONS, clip=clip)

    def released(updates):
        return np.ravel([party.release(update) for update in updates])

    return search_sensitivity(
        released,
        [(0.0, 0.0), (9.0, 0.0), (-9.0, 0.0), (0.1, 0.2), (3.0, 4.0)],
        2,
        claimed=claim.event.sensitivity,
        relation="replace",
    )
