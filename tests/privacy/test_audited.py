"""One table of everything private, put through all audits; and broken things, which must fail.

A private estimator joins by one entry of AUDITED. Scores come from its releases at epsilon = 8,
where the game has most power: the constants of a mechanism do not depend on epsilon.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

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
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    mu_from_epsilon,
    poisson_sample,
)
from skvalue.privacy.audit import check_variance, distinguish_scores, search_sensitivity

from . import audited_in_run as in_run
from . import audited_layered as layered
from . import audited_sellers as sellers
from . import audited_valuers as valuers

N_RUNS = 20_000
# Noise that is half of what it should be: 600 runs on either side show it in the game, by a lower
# bound on delta that is at least 0.07 too large (20 seeds); 100 draws show it in the variance.
FITS, FEW_FITS = 600, 120
EPSILON, DELTA = 8.0, 1e-5


@dataclass(frozen=True)
class Audited:
    """One private mechanism or estimator.

    claim() is the event that it states (as `privacy_` does). scores(claim, n) gives n scores of its
    releases on the worst data and n on their neighbour. noise(claim, n), where there is any to see,
    gives releases less the exact statistic; sensitivity(claim) searches a small domain. A score may
    take a whole fit: `n` of them then are few, and many in the slow tests.
    """

    name: str
    claim: Callable
    scores: Callable
    noise: Callable | None = None
    sensitivity: Callable | None = None
    n: int = N_RUNS

    def audits(self, n=None):
        """(audit, report) pairs."""
        claim, n = self.claim(), n or self.n
        yield "game", distinguish_scores(*self.scores(claim, n), claim)
        if self.noise is not None:
            noise_event = getattr(claim, "event", claim)
            noise_event = getattr(noise_event, "event", noise_event)
            yield "variance", check_variance(self.noise(claim, n), noise_event)
        if self.sensitivity is not None:
            yield "sensitivity", self.sensitivity(claim)


# Counts in balls: V validation points, two counts each; the canary is in all balls. --------------

V = 6


def noisy_counts(scale, clean, n, clip=False):
    """n releases of the same counts, (n, counts)."""
    released = clean + draw_noise(DiscreteGaussianEvent(scale), (n, len(clean)))
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
    draws = draw_noise(event, (2, n))
    return draws[0] + shift, draws[1]


def search_clipped_sum(claim):
    rows = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.6, 0.8), (-0.6, -0.8)]
    return search_sensitivity(
        lambda some: np.sum(some, axis=0), rows, 3, claimed=claim.sensitivity, relation="replace"
    )


# Secret samples: V counts, each on a fresh sample, or all on one. -------------------------------

RATE, N_SAMPLED = 0.05, 50


@lru_cache
def fresh_samples(epsilon=1.0):
    def event(scale):
        once = PoissonSampledEvent(GaussianEvent(scale, relation="null"), RATE)
        return SelfComposedEvent(once, N_SAMPLED)

    return calibrate(event, epsilon, DELTA, tol=0.02)


def one_sample():
    return PoissonSampledEvent(GaussianEvent(10.0, math.sqrt(N_SAMPLED), relation="null"), RATE)


def is_in_samples(n, kind):
    """In how many of the samples of some counts a row is: fresh ones, one for all, or all rows."""
    if kind == "whole":
        return np.full(n, N_SAMPLED)
    if kind == "shared":
        return N_SAMPLED * poisson_sample(n, RATE)
    return poisson_sample(n * N_SAMPLED, RATE).reshape(n, N_SAMPLED).sum(axis=1)


def sampled_scores(event, n, kind):
    """Sums of noisy counts with a row that is in some of the samples, and without it."""
    noise = draw_noise(event, (2, n, N_SAMPLED)).sum(axis=2)
    return noise[0] + is_in_samples(n, kind), noise[1]


# Releases of parties, through the estimators: the rows are neighbours, as far apart as can be. ----

RENYI = mu_from_epsilon(EPSILON, DELTA) ** 2  # of order 2
PARTIES = {
    "linear": (GramRelease(renyi_epsilon=RENYI), ([[1.0, 0.0]], [1.0]), ([[-1.0, 0.0]], [1.0])),
    "logistic": (
        LogisticRelease(renyi_epsilon=RENYI),
        ([[1.0, 0.0]], [1]),
        ([[0.5, 0.75**0.5]], [0]),
    ),
    "intercept": (
        LogisticRelease(renyi_epsilon=RENYI, fit_intercept=True),
        ([[1.0, 0.0]], [1]),
        ([[-0.5, 0.75**0.5]], [0]),
    ),
    "mean": (MeanRelease(renyi_epsilon=RENYI, lower=-2, upper=1), ([-2.0],), ([1.0],)),
}


def release_of(party, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalApproximationWarning)
        return clone(party).fit(*rows).release_


@lru_cache
def released(kind, n):
    """n statistics that leave a party with a row, and n of its neighbour."""
    party, *neighbours = PARTIES[kind]
    return [np.array([release_of(party, rows).vector for _ in range(n)]) for rows in neighbours]


@lru_cache
def clean_releases(kind):
    party, *neighbours = PARTIES[kind]
    return [
        release_of(clone(party).set_params(renyi_epsilon=None, epsilon=None), rows)
        for rows in neighbours
    ]


def release_claim(kind):
    """The event of a release, from which `privacy_` is made."""
    return replace(clean_releases(kind)[0], renyi_epsilon=RENYI).event


def release_scores(kind, n):
    here, there = (release.vector for release in clean_releases(kind))
    return [runs @ (here - there) for runs in released(kind, n)]


def release_noise(kind, n):
    return released(kind, n)[0] - clean_releases(kind)[0].vector


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
        "a fresh sample for every count",
        fresh_samples,
        lambda claim, n: sampled_scores(claim.event.event, n, "fresh"),
        lambda claim, n: draw_noise(claim.event.event, n),
    ),
    Audited(
        "one sample for all counts, stated as one event",
        one_sample,
        lambda claim, n: sampled_scores(claim.event, n, "shared"),
    ),
    *(
        Audited(
            f"release of a party, {kind}",
            partial(release_claim, kind),
            lambda claim, n, kind=kind: release_scores(kind, n),
            lambda claim, n, kind=kind: release_noise(kind, n),
            n=FITS if kind == "linear" else FEW_FITS,
        )
        for kind in PARTIES
    ),
    *(
        Audited(
            f"SellerRelease, {relation}",
            partial(sellers.claim, relation),
            lambda claim, n, relation=relation: sellers.scores(n, relation),
            noise and (lambda claim, n, relation=relation: sellers.noise(n, relation)),
            sellers.search,
            n=FITS if relation == "replace" else FEW_FITS,
        )
        for relation, noise in (("replace", True), ("null", True), ("add_remove", None))
    ),
    *(
        Audited(
            f"TKNNShapleyValuer, a row {words}",
            partial(valuers.tknn_claim, relation),
            lambda claim, n, relation=relation: valuers.tknn_scores(relation),
            lambda claim, n, relation=relation: valuers.tknn_noise(relation),
            valuers.search_tknn,
        )
        for relation, words in (("add_remove", "added or removed"), ("replace", "replaced"))
    ),
    *(
        Audited(
            name,
            partial(valuers.gradient_claim, kind),
            lambda claim, n, kind=kind: valuers.gradient_scores(kind),
            lambda claim, n, kind=kind: valuers.gradient_noise(kind),
            search,
        )
        for name, kind, search in (
            ("GradientSemivalueValuer, local noise", "gradients", valuers.search_gradients),
            (
                "GradientSemivalueValuer, along a public direction",
                "projected",
                valuers.search_projected,
            ),
            ("GradientSemivalueValuer, a trusted server", "server", None),
            ("FederatedSemivalueValuer, a party's updates", "rounds", valuers.search_updates),
            (
                "FederatedSemivalueValuer, a fit along a public direction",
                "federated",
                valuers.search_projected,
            ),
        )
    ),
    Audited(
        "InRunShapleyValuer, the parameters of a run",
        in_run.claim,
        lambda claim, n: in_run.scores(),
        lambda claim, n: in_run.noise(),
        in_run.search,
    ),
    Audited(
        "LayeredShapleyValuer, one value",
        layered.one_claim,
        lambda claim, n: layered.one_scores(n),
        lambda claim, n: layered.one_noise(400),  # of Laplace noise more draws are needed
        layered.search_one,
    ),
    Audited(
        "LayeredShapleyValuer, one value on secret coalitions",
        layered.secret_claim,
        lambda claim, n: layered.secret_scores(n),
        n=1500,
    ),
    *(
        Audited(
            f"LayeredShapleyValuer, {words}",
            partial(layered.values_claim, release),
            lambda claim, n, release=release: layered.values_scores(release, n),
            lambda claim, n, release=release: layered.values_noise(release, n),
            n=n,
        )
        for release, words, n in (
            ("all", "all values", FITS),
            ("publish", "the vector of all values", FEW_FITS),
        )
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
    *(
        (
            Audited(
                f"a {kind} sample claimed as fresh ones",
                fresh_samples,
                lambda claim, n, kind=kind: sampled_scores(claim.event.event, n, kind),
                lambda claim, n: draw_noise(claim.event.event, n),
            ),
            {"game"},
        )
        for kind in ("shared", "whole")
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
            "SellerRelease with half the noise",
            sellers.claim,
            lambda claim, n: sellers.scores(n, short=1 / 2),
            lambda claim, n: sellers.noise(n, short=1 / 2),
            n=FITS,
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
    *(
        (
            Audited(
                f"{valuer} with noise for C in place of 2 C, {kind}",
                partial(valuers.gradient_claim, kind),
                lambda claim, n, kind=kind: valuers.gradient_scores(kind, 0.5),
                lambda claim, n, kind=kind: valuers.gradient_noise(kind, 0.5),
            ),
            {"game", "variance"},
        )
        for valuer, kind in (
            ("GradientSemivalueValuer", "gradients"),
            ("GradientSemivalueValuer", "projected"),
            ("FederatedSemivalueValuer", "rounds"),  # that of one round, for all four
            ("FederatedSemivalueValuer", "federated"),
        )
    ),
    *(
        (
            Audited(
                f"{kind} that are not clipped",
                partial(valuers.gradient_claim, kind),
                lambda claim, n, kind=kind: valuers.gradient_scores(kind),
                None,
                lambda claim, search=search: search(claim, None),
            ),
            {"sensitivity"},
        )
        for kind, search in (
            ("gradients", valuers.search_gradients),
            ("rounds", valuers.search_updates),
        )
    ),
    (
        Audited(
            "InRunShapleyValuer with noise for C in place of 2 C",
            in_run.claim,
            lambda claim, n: in_run.scores(0.5),
            lambda claim, n: in_run.noise(0.5),
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "InRunShapleyValuer with a sensitivity that is stated short by sqrt 2",
            in_run.short_claim,
            lambda claim, n: in_run.scores(),
            None,
            in_run.search,
        ),
        {"sensitivity"},
    ),
    (
        Audited(
            "InRunShapleyValuer with gradients that are not clipped",
            in_run.claim,
            lambda claim, n: in_run.scores(),
            None,
            lambda claim: in_run.search(claim, None),
        ),
        {"sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with noise for a row left out",
            layered.one_claim,
            lambda claim, n: layered.one_scores(n, halved=True),
            lambda claim, n: draw_noise(claim, n) / 2,
        ),
        {"game", "variance"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with noise for a row left out, and so is the statement",
            lambda: layered.one_claim(halved=True),
            lambda claim, n: layered.one_scores(n, halved=True),
            None,
            layered.search_one,
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with a number of blocks that is random",
            layered.one_claim,
            lambda claim, n: layered.one_scores(n, clean=layered.random_clean),
            None,
            lambda claim: layered.search_one(claim, layered.random_clean),
        ),
        {"game", "sensitivity"},
    ),
    (
        Audited(
            "LayeredShapleyValuer with an intercept that is not penalised",
            layered.intercept_noise,
            lambda claim, n: layered.intercept_scores(n),
            None,
            layered.search_intercept,
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
            lambda: layered.values_claim("all"),
            lambda claim, n: layered.values_scores("all", n, 0.5),
            lambda claim, n: layered.values_noise("all", n, 0.5),
            n=FITS,
        ),
        {"variance"},  # at epsilon 8, the game shows Laplace noise that is too small in no few fits
    ),
    (
        Audited(
            "LayeredShapleyValuer, the vector, with noise that forgets a row's own value",
            lambda: layered.values_claim("publish"),
            lambda claim, n: layered.values_scores("publish", n, layered.without_own(claim)),
            lambda claim, n: layered.values_noise("publish", n, layered.without_own(claim)),
            n=FEW_FITS,
        ),
        {"variance"},  # the game shows it where fits are many
    ),
]


def entry_id(entry):
    """Name of an entry of a table, as a parameter of a test."""
    name = entry[0].name if isinstance(entry, tuple) else entry.name
    values = entry if isinstance(entry, tuple) else (entry,)
    return pytest.param(*values, id=name)


def check_audits(audited, n=None):
    for audit, report in audited.audits(n):
        assert report.passed, (audit, report)
        if audit == "sensitivity":
            assert report.tight, report
        if audit == "variance":
            assert not report.wasteful, report


@pytest.mark.parametrize("audited", [entry_id(entry) for entry in AUDITED])
def test_audits_pass(audited):
    check_audits(audited)


@pytest.mark.slow
@pytest.mark.parametrize("audited", [entry_id(entry) for entry in AUDITED if entry.n < N_RUNS])
def test_audits_of_more_fits_pass(audited):
    check_audits(audited, 2000)


@pytest.mark.parametrize(("broken", "caught_by"), [entry_id(entry) for entry in BROKEN])
def test_audits_catch(broken, caught_by):
    assert {audit for audit, report in broken.audits() if not report.passed} == caught_by


@pytest.mark.parametrize(("release", "least"), [("all", 0.999), ("publish", 0.6)])
def test_layered_values_move_as_far_as_is_claimed(release, least):
    """Noise moves them by a thousandth at most: the games come near the bound, and not beyond.

    Of the vector, no game moves both the row's own value and those of others by all of the bound.
    """
    claimed = layered.values_claim(release).sensitivity
    moved = np.abs(np.subtract(*layered.values_clean(release))).sum()
    assert least * claimed < moved < 1.001 * claimed
