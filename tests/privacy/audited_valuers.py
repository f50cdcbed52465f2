"""Runs of the private valuers that the table of audits asks for: whole fits, on tiny data."""

from dataclasses import replace
from functools import lru_cache
from unittest.mock import patch

import numpy as np

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    TKNNShapleyValuer,
)
from skvalue.gradients import LinearGradientModel, gradient_event
from skvalue.privacy import Ledger
from skvalue.privacy.audit import search_sensitivity
from skvalue.valuers.federated_semivalue._rounds import Rounds, release_updates
from skvalue.valuers.tknn_shapley._private import ball_event

EPSILON, DELTA = 8.0, 1e-5
RUNS = 600

# Threshold-KNN: four overlapping balls, and two that hold other rows.
X_VAL = np.array([[0.0], [0.2], [0.4], [0.6], [5.0], [7.0]])
Y_VAL = np.array([0, 1, 0, 1, 0, 1])
ROWS = [(0.1, 0), (0.3, 1), (5.0, 1), (20.0, 0)]
CANARY = (0.3, 0)  # in four balls, M of them


def tknn(rows, **parameters):
    x, y = np.array(rows).T
    valuer = TKNNShapleyValuer(
        0.5, metric="euclidean", epsilon=EPSILON, delta=DELTA, denoise=False, **parameters
    )
    return valuer.fit(x[:, None], y.astype(int), X_val=X_VAL, y_val=Y_VAL)


def clean_counts(rows):
    """Counts that a fit would have made noisy."""
    with patch(
        "skvalue.valuers.tknn_shapley._private.release_counts",
        lambda clean, *args, **kwargs: clean,
    ):
        return tknn(rows).counts_


def tknn_claim(relation="add_remove"):
    """What a fit charges to its ledger."""
    ledger = Ledger(None, "audit", epsilon=10.0, delta=DELTA)
    tknn(ROWS, relation=relation, ledger=ledger)
    return ledger.charges[0].event


@lru_cache
def tknn_runs(relation="add_remove", forgets=None):
    """Counts of many fits on the data with the canary, and on their neighbour."""
    other = [(0.3, 1)] if relation == "replace" else []  # relabelled, or not there
    event = ball_event
    if forgets == "M":

        def event(epsilon, delta, contributions, *args):
            return ball_event(epsilon, delta, 1, *args)

    with patch("skvalue.valuers.tknn_shapley._private.ball_event", event):
        return [
            np.array([
                tknn(rows, relation=relation).counts_
                for _ in range(RUNS)
            ])
            for rows in ([*ROWS, CANARY], [*ROWS, *other])
        ]  # fmt: skip


def tknn_scores(*run):
    """The runs, projected on the direction in which the neighbours differ."""
    with_canary, without = tknn_runs(*run)
    if run and run[0] == "replace":
        direction = clean_counts([*ROWS, CANARY]) - clean_counts([*ROWS, (0.3, 1)])
    else:
        direction = clean_counts([*ROWS, CANARY]) - clean_counts(ROWS)
    return [(runs * direction).sum(axis=(1, 2)) for runs in (with_canary, without)]


def tknn_noise(*run):
    return tknn_runs(*run)[0] - clean_counts([*ROWS, CANARY])


def search_tknn(claim):
    records = [(0.3, 0), (0.3, 1), (0.65, 1), (20.0, 1)]
    if claim.relation == "replace":
        records = [(0.3, 0), (0.3, 1), (20.0, 1)]
    return search_sensitivity(
        clean_counts, records, 3, claimed=claim.contributions**0.5, relation=claim.relation
    )


# Gradients of a linear regression: canaries, each as long as can be, one way or the other ---------

GRADIENT_WAY = np.array([3.0, 1.0]) / 10**0.5
PROJECTED = {"n_components": 1, "clip": "auto"}  # on -(1, 1) / sqrt(2), the public gradients' way
PROJECTED_CLIP = 0.5**0.5  # the median of 0 and sqrt(2), which those of the two judges are long
RATE, PERMUTATIONS, CANARIES, CLIP = 1e-3, 4, 200, 0.7


def gradient_fit(target, short=1.0, **parameters):
    """Fit on canaries only, and return all that each released, (canaries, permutations, 2)."""
    thetas = []
    utilities = LinearGradientModel.utilities

    def watched(self, some):
        thetas.append(np.array(some))
        return utilities(self, some)

    def event(*args, **kwargs):
        true = gradient_event(*args, **kwargs)
        return replace(true, event=replace(true.event, scale=short * true.event.scale))

    valuer = GradientSemivalueValuer(
        "linear", n_permutations=PERMUTATIONS, learning_rate=RATE, standardize=False,
        epsilon=EPSILON, delta=DELTA, noise="iid", n_jobs=1, random_state=0,
        **{"clip": CLIP, **parameters},
    )  # fmt: skip
    X, y = np.full((CANARIES, 1), 3.0), np.full(CANARIES, target)
    with (
        patch.object(LinearGradientModel, "utilities", watched),
        patch("skvalue.valuers._gradients.gradient_event", event),
    ):
        valuer.fit(X, y, X_val=np.ones((2, 1)), y_val=np.array([0.0, 0.5]))
    game = np.random.SeedSequence(0).spawn(2)[1]
    found = np.empty((CANARIES, PERMUTATIONS, thetas[0].shape[1]))
    for t, (walk, child) in enumerate(zip(thetas, game.spawn(PERMUTATIONS))):
        found[np.random.default_rng(child).permutation(CANARIES), t] = -np.diff(walk, axis=0) / RATE
    return found


def gradient_claim(**parameters):
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    gradient_fit(100.0, ledger=ledger, **parameters)
    return ledger.charges[0].event


@lru_cache
def gradient_runs(short=1.0, trust="local"):
    """Releases of many canaries; with a trusted server, those of the neighbour are blanked out."""
    runs = [
        np.concatenate([gradient_fit(target, short, trust=trust) for _ in range(10)])
        for target in (-1e3, 1e3)
    ]
    if trust == "server":
        runs[1] = runs[1] + CLIP * GRADIENT_WAY
    return runs


def gradient_scores(*run):
    return [(runs @ GRADIENT_WAY).sum(axis=1) for runs in gradient_runs(*run)]


def gradient_noise(*run):
    return gradient_runs(*run)[0] - CLIP * GRADIENT_WAY


@lru_cache
def projected_runs(short=1.0):
    """Releases of many canaries, along one public direction."""
    return [
        np.concatenate([gradient_fit(target, short, **PROJECTED) for _ in range(10)])
        for target in (-1e3, 1e3)
    ]


def projected_scores(short=1.0):
    return [-runs[:, :, 0].sum(axis=1) for runs in projected_runs(short)]


def projected_noise(short=1.0):
    return projected_runs(short)[0] + PROJECTED_CLIP


def search_projected(claim):
    return search_gradients(claim, PROJECTED_CLIP, np.full((2, 1), -(0.5**0.5)))


def search_gradients(claim, clip=CLIP, basis=None):
    """The sum of the clipped gradients of a party of three rows: one of them is replaced."""

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


# Updates in federated rounds: every party sends the longest one there is, one way or the other ----


@lru_cache
def federated_runs(short=1.0):
    """What many parties have sent over all rounds, on either side."""

    def event(*args, **kwargs):
        true = gradient_event(*args, **kwargs)
        return replace(true, event=replace(true.event, scale=short * true.event.scale))

    runs = []
    for sign in (1, -1):
        sent = np.empty((PERMUTATIONS, 10 * CANARIES, 2))
        with patch("skvalue.valuers._gradients.gradient_event", event):
            valuer = FederatedSemivalueValuer(
                n_rounds=PERMUTATIONS, n_permutations=1, clip=CLIP, epsilon=EPSILON, delta=DELTA,
                noise="iid", semivalue="leave-one-out", burn_in=0.9,
            ).start(lambda thetas: np.zeros(len(thetas)), 10 * CANARIES)  # fmt: skip
        for t in range(PERMUTATIONS):
            updates = np.tile(sign * 9 * GRADIENT_WAY, (10 * CANARIES, 1))
            valuer.add_round(np.zeros(2), updates)
            sent[t] = valuer._fitted.statistic.rounds.used
        runs.append(sent.transpose(1, 0, 2))
    return runs


@lru_cache
def federated_projected_runs(short=1.0):
    """What canaries send over all rounds of a fit, along one public direction."""

    def event(*args, **kwargs):
        true = gradient_event(*args, **kwargs)
        return replace(true, event=replace(true.event, scale=short * true.event.scale))

    runs = []
    for target in (-1e3, 1e3):
        sent, add = [], Rounds.add

        def watched(self, theta, released, sent=sent, add=add):
            sent.append(released.copy())
            return add(self, theta, released)

        with (
            patch.object(Rounds, "add", watched),
            patch("skvalue.valuers._gradients.gradient_event", event),
        ):
            federated_fit(target)
        runs.append(np.stack(sent, axis=1))
    return runs


def federated_fit(target, **parameters):
    n = 10 * CANARIES
    FederatedSemivalueValuer(
        "linear", n_rounds=PERMUTATIONS, n_permutations=1, learning_rate=RATE, standardize=False,
        epsilon=EPSILON, delta=DELTA, noise="iid", semivalue="leave-one-out", burn_in=0.9,
        **PROJECTED, **parameters,
    ).fit(np.full((n, 1), 3.0), np.full(n, target), X_val=np.ones((2, 1)),
          y_val=np.array([0.0, 0.5]))  # fmt: skip


def federated_projected_claim():
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    federated_fit(100.0, ledger=ledger)
    return ledger.charges[0].event


def federated_projected_scores(short=1.0):
    return [runs[:, :, 0].sum(axis=1) for runs in federated_projected_runs(short)]


def federated_projected_noise(short=1.0):
    return federated_projected_runs(short)[0] - PROJECTED_CLIP


def federated_claim():
    ledger = Ledger(None, "audit", epsilon=20.0, delta=DELTA)
    FederatedSemivalueValuer(
        n_rounds=PERMUTATIONS, clip=CLIP, epsilon=EPSILON, delta=DELTA, ledger=ledger
    ).start(len, 2)
    return ledger.charges[0].event


def federated_scores(*run):
    return [(runs @ GRADIENT_WAY).sum(axis=1) for runs in federated_runs(*run)]


def federated_noise(*run):
    return federated_runs(*run)[0] - CLIP * GRADIENT_WAY


def search_updates(claim, clip=CLIP):
    """One party's update, of any size, is replaced."""
    return search_sensitivity(
        lambda updates: release_updates(updates, clip).ravel(),
        [(0.0, 0.0), (9.0, 0.0), (-9.0, 0.0), (0.1, 0.2), (3.0, 4.0)],
        2,
        claimed=claim.event.sensitivity,
        relation="replace",
    )
