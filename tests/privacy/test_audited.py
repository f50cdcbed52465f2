"""One table of everything private, put through all audits; and broken things, which must fail.

A private estimator joins by one entry of AUDITED. Scores come from its releases at epsilon = 8,
where the game has most power: the constants of a mechanism do not depend on epsilon.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import clone

from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.exceptions import NormalApproximationWarning
from skvalue.privacy import (
    DiscreteGaussianEvent,
    GaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    calibrate,
    calibrate_counts,
    calibrate_discrete_laplace,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    mu_from_epsilon,
    poisson_sample,
)
from skvalue.privacy.audit import check_variance, distinguish_scores, search_sensitivity

from . import audited_layered as layered
from . import audited_samples as samples
from . import audited_sellers as sellers
from . import audited_valuers as valuers

N_RUNS = 20_000
EPSILON, DELTA = 8.0, 1e-5


@dataclass(frozen=True)
class Audited:
    """One private mechanism or estimator.

    claim() is the event that it states (as `privacy_` does). scores(claim, n) gives n scores of its
    releases on the worst data and n on their neighbour. noise(claim, n), where there is any to see,
    gives releases less the clear statistic; sensitivity(claim) searches a small domain.
    """

    name: str
    claim: Callable
    scores: Callable
    noise: Callable | None = None
    sensitivity: Callable | None = None

    def audits(self):
        """(audit, report) pairs."""
        claim = self.claim()
        yield "game", distinguish_scores(*self.scores(claim, N_RUNS), claim)
        if self.noise is not None:
            noise_event = getattr(claim, "event", claim)
            noise_event = getattr(noise_event, "event", noise_event)
            yield "variance", check_variance(self.noise(claim, N_RUNS), noise_event)
        if self.sensitivity is not None:
            yield "sensitivity", self.sensitivity(claim)


# Counts in balls: V validation points, two counts each; the canary is in all balls. --------------

V = 6


def noisy_counts(scale, clean, n, clip=False):
    """n releases of the same counts, (n, counts)."""
    released = clean + draw_noise(DiscreteGaussianEvent(scale), (n, len(clean)), engine="table")
    return np.maximum(released, 0) if clip else released


def present_or_absent(scale, n, clip=False):
    """Scores with and without a row that adds to the first of the two counts of every ball."""
    absent = np.tile([3, 2], V)
    return [
        noisy_counts(scale, absent + present * np.tile([1, 0], V), n, clip)[:, ::2].sum(axis=1)
        for present in (1, 0)
    ]


def relabelled(scale, n):
    """Scores with a row and with the same row under another label: a replacement."""
    agree, other = np.tile([4, 2], V), np.tile([3, 3], V)
    return [noisy_counts(scale, clean, n) @ np.tile([1, -1], V) for clean in (agree, other)]


def in_balls(rows):
    """Counts of a row's label in 2 balls; a record says which balls it is in, and its label."""
    return [
        sum(label == kind and ball in balls for balls, label in rows)
        for ball in (0, 1)
        for kind in "ab"
    ]


RECORDS = [(balls, label) for balls in ((), (0,), (0, 1)) for label in "ab"]


def search_counts(claim):
    """Records are in at most 2 balls: the claim's number of counts, for V = 2."""
    return search_sensitivity(
        in_balls,
        RECORDS,
        3,
        claimed=math.sqrt(claim.contributions * 2 / V),
        relation=claim.relation,
    )


def count_noise(claim, n):
    return noisy_counts(claim.scale, np.zeros(1, np.int64), n)


# Sums of clipped rows --------------------------------------------------------------------------


def shifted(event, shift, n):
    draws = draw_noise(event, (2, n), engine="table")
    return draws[0] + shift, draws[1]


def search_clipped_sum(claim):
    rows = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.6, 0.8), (-0.6, -0.8)]
    return search_sensitivity(
        lambda some: np.sum(some, axis=0), rows, 3, claimed=claim.sensitivity, relation="replace"
    )


# Secret samples: V counts, each on a fresh sample, or all on one. -------------------------------

RATE, N_SAMPLED = 0.05, 50


def fresh_samples(epsilon=1.0):
    def event(scale):
        once = PoissonSampledEvent(GaussianEvent(scale, relation="null"), RATE)
        return SelfComposedEvent(once, N_SAMPLED)

    return calibrate(event, epsilon, DELTA, tol=0.02)


def one_sample():
    return PoissonSampledEvent(GaussianEvent(10.0, math.sqrt(N_SAMPLED), relation="null"), RATE)


def sampled_scores(scale, n, fresh):
    draws = draw_noise(GaussianEvent(scale), (2, n, N_SAMPLED)).sum(axis=2)
    if fresh:
        seen = poisson_sample(n * N_SAMPLED, RATE).reshape(n, N_SAMPLED).sum(axis=1)
    else:
        seen = N_SAMPLED * poisson_sample(n, RATE)
    return draws[0] + seen, draws[1]


# Releases of parties, through the estimators: the rows are neighbours, as far apart as can be. ----

RENYI = mu_from_epsilon(EPSILON, DELTA) ** 2  # of order 2
PARTIES = {
    "linear": (GramRelease(RENYI), ([[1.0, 0.0]], [1.0]), ([[-1.0, 0.0]], [1.0])),
    "logistic": (LogisticRelease(RENYI), ([[1.0, 0.0]], [1]), ([[0.5, 0.75**0.5]], [0])),
    "intercept": (
        LogisticRelease(RENYI, fit_intercept=True),
        ([[1.0, 0.0]], [1]),
        ([[-0.5, 0.75**0.5]], [0]),
    ),
    "moments": (
        GramRelease(RENYI, moments_fraction=0.3),
        ([[1.0, 0.0]], [1.0]),
        ([[0.0, 1.0]], [1.0]),
    ),
    "mean": (MeanRelease(RENYI, lower=-2, upper=1), ([-2.0],), ([1.0],)),
}


def released(kind, place, n):
    """n statistics that leave the party."""
    party, *neighbours = PARTIES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalApproximationWarning)
        return np.array([party.fit(*neighbours[place]).release_.vector for _ in range(n)])


def clean_release(kind, place):
    party, *neighbours = PARTIES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalApproximationWarning)
        return clone(party).set_params(epsilon=None).fit(*neighbours[place]).release_


def release_claim(kind):
    """The event of a release, from which `privacy_` is made."""
    clean = clean_release(kind, 0)
    return replace(clean, epsilon=RENYI).event


def release_scores(kind, n):
    direction = clean_release(kind, 0).vector - clean_release(kind, 1).vector
    return [released(kind, place, min(n, 1500)) @ direction for place in (0, 1)]


def release_noise(kind, n):
    return released(kind, 0, min(n, 700)) - clean_release(kind, 0).vector


AUDITED = [
    Audited(
        "counts, a row added or removed",
        lambda: calibrate_counts(EPSILON, DELTA, V),
        lambda claim, n: present_or_absent(claim.scale, n),
        count_noise,
        search_counts,
    ),
    Audited(
        "counts clipped at zero",
        lambda: calibrate_counts(EPSILON, DELTA, V),
        lambda claim, n: present_or_absent(claim.scale, n, clip=True),
    ),
    Audited(
        "counts, a row replaced",
        lambda: calibrate_counts(EPSILON, DELTA, V, "replace"),
        lambda claim, n: relabelled(claim.scale, n),
        count_noise,
        search_counts,
    ),
    Audited(
        "one count, calibrated on the lattice",
        lambda: calibrate_counts(EPSILON, DELTA, 1),
        lambda claim, n: shifted(claim, 1, n),
        count_noise,
    ),
    Audited(
        "Gaussian noise on a clipped sum",
        lambda: calibrate_gaussian(EPSILON, DELTA, sensitivity=2.0),
        lambda claim, n: shifted(claim, 2.0, n),
        draw_noise,
        search_clipped_sum,
    ),
    Audited(
        "Laplace noise",
        lambda: calibrate_laplace(1.0, sensitivity=2.0),
        lambda claim, n: shifted(claim, 2.0, n),
        draw_noise,
    ),
    Audited(
        "discrete Laplace noise",
        lambda: calibrate_discrete_laplace(1.0, sensitivity=2),
        lambda claim, n: shifted(claim, 2, n),
        lambda claim, n: draw_noise(claim, n, engine="table"),
    ),
    Audited(
        "a fresh sample for every count",
        fresh_samples,
        lambda claim, n: sampled_scores(claim.event.event.scale, n, fresh=True),
        lambda claim, n: draw_noise(claim.event.event, n),
    ),
    Audited(
        "one sample for all counts, stated as one event",
        one_sample,
        lambda claim, n: sampled_scores(claim.event.scale, n, fresh=False),
    ),
    *(
        Audited(
            f"release of a party, {kind}",
            lambda kind=kind: release_claim(kind),
            lambda claim, n, kind=kind: release_scores(kind, n),
            lambda claim, n, kind=kind: release_noise(kind, n),
        )
        for kind in PARTIES
    ),
    *(
        Audited(
            f"SellerRelease, {relation}",
            lambda relation=relation: sellers.claim(relation),
            lambda claim, n, relation=relation: sellers.scores(relation),
            noise and (lambda claim, n, relation=relation: sellers.noise(relation)),
            sellers.search,
        )
        for relation, noise in (("replace", True), ("null", True), ("add_remove", None))
    ),
    Audited(
        "SellerRelease, a secret subset",
        lambda: sellers.claim(subset_size=16),
        lambda claim, n: sellers.scores(subset_size=16),
    ),
    Audited(
        "SellerRelease, noise on every row",
        lambda: sellers.claim(mechanism="local"),
        lambda claim, n: sellers.scores(mechanism="local"),
    ),
    Audited(
        "TKNNShapleyValuer, a row added or removed",
        valuers.tknn_claim,
        lambda claim, n: valuers.tknn_scores(),
        lambda claim, n: valuers.tknn_noise(),
        valuers.search_tknn,
    ),
    Audited(
        "TKNNShapleyValuer, a row replaced",
        lambda: valuers.tknn_claim("replace"),
        lambda claim, n: valuers.tknn_scores("replace"),
        lambda claim, n: valuers.tknn_noise("replace"),
        lambda claim: valuers.search_tknn(claim),
    ),
    Audited(
        "GradientSemivalueValuer, nobody trusted",
        valuers.gradient_claim,
        lambda claim, n: valuers.gradient_scores(),
        lambda claim, n: valuers.gradient_noise(),
        valuers.search_gradients,
    ),
    Audited(
        "GradientSemivalueValuer, along a public direction",
        lambda: valuers.gradient_claim(**valuers.PROJECTED),
        lambda claim, n: valuers.projected_scores(),
        lambda claim, n: valuers.projected_noise(),
        valuers.search_projected,
    ),
    Audited(
        "GradientSemivalueValuer, a trusted server",
        lambda: valuers.gradient_claim(trust="server"),
        lambda claim, n: valuers.gradient_scores(1.0, "server"),
        lambda claim, n: valuers.gradient_noise(1.0, "server"),
    ),
    Audited(
        "LayeredShapleyValuer, one value",
        layered.one_claim,
        lambda claim, n: layered.one_scores(n),
        lambda claim, n: layered.one_noise(n),
        layered.search_one,
    ),
    Audited(
        "LayeredShapleyValuer, one value on secret coalitions",
        layered.secret_claim,
        lambda claim, n: layered.secret_scores(2000),
    ),
    Audited(
        "LayeredShapleyValuer, all values",
        layered.all_claim,
        lambda claim, n: layered.all_scores(),
        lambda claim, n: layered.all_noise(),
    ),
    Audited(
        "LayeredShapleyValuer, the vector of all values",
        layered.vector_claim,
        lambda claim, n: layered.vector_scores(),
        lambda claim, n: layered.vector_noise(),
    ),
    Audited(
        "TKNNShapleyValuer, a fresh sample in every ball",
        samples.balls_claim,
        lambda claim, n: samples.ball_scores(),
        lambda claim, n: samples.ball_noise(),
    ),
    Audited(
        "FederatedSemivalueValuer, a party's updates",
        valuers.federated_claim,
        lambda claim, n: valuers.federated_scores(),
        lambda claim, n: valuers.federated_noise(),
        valuers.search_updates,
    ),
    Audited(
        "FederatedSemivalueValuer, a fit along a public direction",
        valuers.federated_projected_claim,
        lambda claim, n: valuers.federated_projected_scores(),
        lambda claim, n: valuers.federated_projected_noise(),
        valuers.search_projected,
    ),
]

BROKEN = [
    (
        Audited(
            "noise short by sqrt 2",
            lambda: calibrate_counts(EPSILON, DELTA, V),
            lambda claim, n: present_or_absent(claim.scale / math.sqrt(2), n),
            lambda claim, n: noisy_counts(claim.scale / math.sqrt(2), np.zeros(1, np.int64), n),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "noise that forgets V",
            lambda: calibrate_counts(EPSILON, DELTA, V),
            lambda claim, n: present_or_absent(claim.scale / math.sqrt(V), n),
            lambda claim, n: noisy_counts(claim.scale / math.sqrt(V), np.zeros(1, np.int64), n),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "noise that forgets V, and so does the statement",
            lambda: calibrate_counts(EPSILON, DELTA, 1),
            lambda claim, n: present_or_absent(claim.scale, n),
            count_noise,
            search_counts,
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "one shared sample claimed as fresh ones",
            fresh_samples,
            lambda claim, n: sampled_scores(claim.event.event.scale, n, fresh=False),
            lambda claim, n: draw_noise(claim.event.event, n),
        ),
        {"game"},
    ),
    (
        Audited(
            "noise for add-or-remove claimed for replace",
            lambda: DiscreteGaussianEvent(
                calibrate_counts(EPSILON, DELTA, V).scale, V, relation="replace"
            ),
            lambda claim, n: relabelled(claim.scale, n),
            count_noise,
            search_counts,
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "SellerRelease with a third of the noise",
            sellers.claim,
            lambda claim, n: sellers.scores(short=1 / 3),
            lambda claim, n: sellers.noise(short=1 / 3),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "TKNNShapleyValuer with noise that forgets M",
            valuers.tknn_claim,
            lambda claim, n: valuers.tknn_scores("add_remove", "M"),
            lambda claim, n: valuers.tknn_noise("add_remove", "M"),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "GradientSemivalueValuer with noise for C in place of 2 C",
            valuers.gradient_claim,
            lambda claim, n: valuers.gradient_scores(0.5),
            lambda claim, n: valuers.gradient_noise(0.5),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "GradientSemivalueValuer whose gradients are not clipped",
            valuers.gradient_claim,
            lambda claim, n: valuers.gradient_scores(),
            None,
            lambda claim: valuers.search_gradients(claim, None),
        ),
        {"sensitivity"},
    ),
    (
        Audited(
            "FederatedSemivalueValuer whose updates are not clipped",
            valuers.federated_claim,
            lambda claim, n: valuers.federated_scores(),
            None,
            lambda claim: valuers.search_updates(claim, None),
        ),
        {"sensitivity"},
    ),
    (
        Audited(
            "GradientSemivalueValuer along a public direction, noise for C in place of 2 C",
            lambda: valuers.gradient_claim(**valuers.PROJECTED),
            lambda claim, n: valuers.projected_scores(0.5),
            lambda claim, n: valuers.projected_noise(0.5),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with noise for a row left out",
            layered.one_claim,
            lambda claim, n: layered.one_scores(n, halved=True),
            lambda claim, n: layered.one_noise(n, halved=True),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "TKNNShapleyValuer, samples, noise that forgets M",
            samples.balls_claim,
            lambda claim, n: samples.ball_scores(1),
            lambda claim, n: samples.ball_noise(1),
        ),
        {"game", "variance"},
    ),
    *(
        (
            Audited(
                f"TKNNShapleyValuer, {sample.__name__}",
                samples.balls_claim,
                lambda claim, n, sample=sample: samples.ball_scores(samples.M, sample),
            ),
            {"game"},
        )
        for sample in (samples.shared_sample, samples.whole_sample)
    ),
    (
        Audited(
            "LayeredShapleyValuer with noise for a row left out, and so is the statement",
            lambda: layered.one_scale(halved=True),
            lambda claim, n: layered.one_scores(n, halved=True),
            lambda claim, n: layered.one_noise(n, halved=True),
            layered.search_one,
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with a number of blocks that is random",
            layered.one_claim,
            lambda claim, n: layered.random_scores(n),
            lambda claim, n: layered.one_noise(n),
            layered.search_random,
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with an intercept that is not penalised",
            layered.intercept_noise,
            lambda claim, n: layered.intercept_scores(n, layered.free_intercept),
            None,
            lambda claim: layered.search_intercept(claim, layered.free_intercept),
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with coalitions that are known, claimed secret",
            layered.secret_claim,
            lambda claim, n: layered.secret_scores(n, public=True),
        ),
        {"game"},
    ),
    (
        Audited(
            "LayeredShapleyValuer, all values, with half the noise",
            layered.all_claim,
            lambda claim, n: layered.all_scores(halved=True),
            lambda claim, n: layered.all_noise(halved=True),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "LayeredShapleyValuer, the vector, with noise that forgets a row's own value",
            layered.vector_claim,
            lambda claim, n: layered.vector_scores(others_only=True),
            lambda claim, n: layered.vector_noise(others_only=True),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "FederatedSemivalueValuer with noise for one round on every round",
            valuers.federated_claim,
            lambda claim, n: valuers.federated_scores(valuers.PERMUTATIONS**-0.5),
            lambda claim, n: valuers.federated_noise(valuers.PERMUTATIONS**-0.5),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "FederatedSemivalueValuer along a public direction, noise for C in place of 2 C",
            valuers.federated_projected_claim,
            lambda claim, n: valuers.federated_projected_scores(0.5),
            lambda claim, n: valuers.federated_projected_noise(0.5),
        ),
        {"game", "variance"},
    ),
]


def entry_id(entry):
    """Name of an entry of a table, as a parameter of a test."""
    name = entry[0].name if isinstance(entry, tuple) else entry.name
    values = entry if isinstance(entry, tuple) else (entry,)
    return pytest.param(*values, id=name)


@pytest.mark.parametrize("audited", [entry_id(entry) for entry in AUDITED])
def test_audits_pass(audited):
    for audit, report in audited.audits():
        assert report.passed, (audit, report)
        if audit == "sensitivity":
            assert report.tight, report
        if audit == "variance":
            assert not report.wasteful, report


@pytest.mark.parametrize(("broken", "caught_by"), [entry_id(entry) for entry in BROKEN])
def test_audits_catch(broken, caught_by):
    assert {audit for audit, report in broken.audits() if not report.passed} == caught_by
