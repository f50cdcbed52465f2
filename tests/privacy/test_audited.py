"""One table of everything private, for all audits; and of broken things, which fail.

A private estimator joins by one entry of AUDITED. Scores come from its releases at
epsilon = 8, where the game has most power: the constants of a mechanism do not depend
on epsilon.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.exceptions import NormalApproximationWarning
from skvalue.privacy import (
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    calibrate_counts,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    epsilon_from_mu,
    mu_from_epsilon,
    poisson_sample,
)
from skvalue.privacy.audit import check_variance, distinguish_scores, search_sensitivity

from . import audited_in_run as in_run
from . import audited_layered as layered
from . import audited_sellers as sellers
from . import audited_valuers as valuers

EPSILON = 8.0
DELTA = 1e-5
N_RUNS = 20_000
# At half the noise the audit of a radius of its own does not always see it.
THIRD_OF_THE_NOISE = epsilon_from_mu(3 * mu_from_epsilon(EPSILON, DELTA), DELTA)

# Noise has no seed, so that each test fails with some probability: one of a correct
# mechanism with the first of these at most.
FAIL = 1e-7
# More Laplace noise than is stated is found in the variance of 250 correct draws with a
# probability of 1.4e-6 if the level is 1e-7, and of 4e-8 at this one.
FAIL_OF_LAPLACE = 1e-10

# Noise that is half of what it should be: 1200 runs on either side show it in the game,
# by a lower bound on delta that is too large by 8 of its standard deviations (30
# repetitions); 100 draws show it in the variance.
N_FITS = 1200
N_FEW_FITS = 100


@dataclass(frozen=True)
class Audited:
    """One private mechanism or estimator.

    Parameters
    ----------
    claim : callable
        ``claim()`` is the event that it states (as `privacy_` does).
    scores : callable
        ``scores(claim, n)`` are n scores of its releases on the worst data, and n on
        their neighbour.
    noise : callable or None
        ``noise(claim, n)`` are releases less the exact statistic, where noise is seen.
    sensitivity : callable or None
        ``sensitivity(claim)`` searches a small domain.
    n : int
        Number of scores. One may take a whole fit: they are few then, and more in the
        slow tests.
    """

    claim: Callable
    scores: Callable
    noise: Callable | None = None
    sensitivity: Callable | None = None
    n: int = N_RUNS

    def audits(self, n=None):
        """Reports by the name of the audit."""
        claim = self.claim()
        n = n or self.n
        scores = self.scores(claim, n)
        reports = {"game": distinguish_scores(*scores, claim, fail=FAIL)}
        if self.noise is not None:
            noise_event = getattr(claim, "event", claim)
            noise_event = getattr(noise_event, "event", noise_event)
            fail = FAIL
            if isinstance(noise_event, LaplaceEvent):
                fail = FAIL_OF_LAPLACE
            reports["variance"] = check_variance(
                self.noise(claim, n), noise_event, fail=fail
            )
        if self.sensitivity is not None:
            reports["sensitivity"] = self.sensitivity(claim)
        return reports


# Counts in balls ----------------------------------------------------------------------

V = 6  # validation points, with two counts each; the canary is in all of their balls


def noisy_counts(scale, clean, n, clip=False):
    """n releases of the same counts, (n, counts)."""
    released = clean + draw_noise(DiscreteGaussianEvent(scale), (n, len(clean)))
    return np.maximum(released, 0) if clip else released


def present_or_absent(scale, n, clip=False):
    """Scores with and without a row that adds to the first count of every ball."""
    absent = np.tile([3, 2], V)
    present = absent + np.tile([1, 0], V)
    return [
        noisy_counts(scale, clean, n, clip)[:, ::2].sum(axis=1)
        for clean in (present, absent)
    ]


def relabelled(scale, n):
    """Scores with a row and with the same row under another label: a replacement."""
    same_label = np.tile([4, 2], V)
    other_label = np.tile([3, 3], V)
    direction = np.tile([1, -1], V)
    return [
        noisy_counts(scale, clean, n) @ direction for clean in (same_label, other_label)
    ]


def in_balls(rows):
    """Counts of both labels in 2 balls, of rows (balls that they are in, label)."""
    return [
        sum(label == counted and ball in balls for balls, label in rows)
        for ball, counted in product((0, 1), "ab")
    ]


RECORDS = list(product(((), (0,), (0, 1)), "ab"))


def search_counts(claim):
    """Records are in at most 2 balls: the claim's number of counts, for V = 2."""
    claimed = math.sqrt(claim.contributions * 2 / V)
    return search_sensitivity(
        in_balls, RECORDS, 3, claimed=claimed, relation=claim.relation
    )


# Sums of clipped rows -----------------------------------------------------------------


def shifted(event, shift, n):
    draws = draw_noise(event, (2, n))
    return draws[0] + shift, draws[1]


def search_clipped_sum(claim):
    rows = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.6, 0.8), (-0.6, -0.8)]
    return search_sensitivity(
        partial(np.sum, axis=0),
        rows,
        3,
        claimed=claim.sensitivity,
        relation="replace",
    )


# Secret samples -----------------------------------------------------------------------

# Counts on fresh samples, or all on one, and the probability of a row.
N_SAMPLED = 50
RATE = 0.05


def fresh_samples():
    """At epsilon 1."""
    once = PoissonSampledEvent(GaussianEvent(1.7, relation="null"), RATE)
    return SelfComposedEvent(once, N_SAMPLED)


def one_sample():
    together = GaussianEvent(10.0, math.sqrt(N_SAMPLED), relation="null")
    return PoissonSampledEvent(together, RATE)


def n_samples_with_row(n, kind):
    """Number of counts that have a row in their sample, in each of n runs.

    Samples are "fresh", "shared" by all counts, or "whole": all rows.
    """
    if kind == "whole":
        return np.full(n, N_SAMPLED)
    if kind == "shared":
        return N_SAMPLED * poisson_sample(n, RATE)
    return poisson_sample(n * N_SAMPLED, RATE).reshape(n, N_SAMPLED).sum(axis=1)


def sampled_scores(event, n, kind):
    """Sums of noisy counts with a row that is in some samples, and without it."""
    noise = draw_noise(event, (2, n, N_SAMPLED)).sum(axis=2)
    return noise[0] + n_samples_with_row(n, kind), noise[1]


# Releases of parties, through the estimators ------------------------------------------

RENYI = mu_from_epsilon(EPSILON, DELTA) ** 2  # of order 2


class PartyCase(NamedTuple):
    """A party, and two neighbouring sets of rows that are as far apart as can be."""

    party: object
    rows: tuple
    neighbour: tuple


PARTIES = {
    "linear": PartyCase(
        GramRelease(renyi_epsilon=RENYI),
        ([[1.0, 0.0]], [1.0]),
        ([[-1.0, 0.0]], [1.0]),
    ),
    "logistic": PartyCase(
        LogisticRelease(renyi_epsilon=RENYI),
        ([[1.0, 0.0]], [1]),
        ([[0.5, 0.75**0.5]], [0]),
    ),
    "intercept": PartyCase(
        LogisticRelease(renyi_epsilon=RENYI, fit_intercept=True),
        ([[1.0, 0.0]], [1]),
        ([[-0.5, 0.75**0.5]], [0]),
    ),
    "mean": PartyCase(
        MeanRelease(renyi_epsilon=RENYI, lower=-2, upper=1), ([-2.0],), ([1.0],)
    ),
    "ones": PartyCase(
        MeanRelease(renyi_epsilon=RENYI, family="bernoulli"), ([0.0],), ([1.0],)
    ),
    "counts": PartyCase(
        MeanRelease(renyi_epsilon=RENYI, family="poisson", upper=5), ([0.0],), ([5.0],)
    ),
}


def release_of(party, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalApproximationWarning)
        return clone(party).fit(*rows).release_


@lru_cache
def released(kind, n):
    """n statistics that leave a party with a row, and n of its neighbour."""
    party, *neighbours = PARTIES[kind]
    return [
        np.array([release_of(party, rows).vector for _ in range(n)])
        for rows in neighbours
    ]


@lru_cache
def clean_releases(kind):
    """The releases of both neighbours, without noise."""
    party, *neighbours = PARTIES[kind]
    without_noise = clone(party).set_params(renyi_epsilon=None, epsilon=None)
    return [release_of(without_noise, rows) for rows in neighbours]


def release_claim(kind):
    """The event of a release, from which `privacy_` is made."""
    return replace(clean_releases(kind)[0], renyi_epsilon=RENYI).event


def release_scores(kind, n):
    clean, clean_neighbour = (release.vector for release in clean_releases(kind))
    return [vectors @ (clean - clean_neighbour) for vectors in released(kind, n)]


def release_noise(kind, n):
    return released(kind, n)[0] - clean_releases(kind)[0].vector


# Entries of the table -----------------------------------------------------------------


def counts(m=V, relation="add_remove", score=present_or_absent, short=1.0, **options):
    return Audited(
        partial(calibrate_counts, EPSILON, DELTA, m, relation),
        lambda claim, n: score(short * claim.scale, n, **options),
        lambda claim, n: noisy_counts(short * claim.scale, np.zeros(1, np.int64), n),
        search_counts,
    )


def shifted_draws(calibrated, shift, search=None):
    return Audited(
        calibrated,
        lambda claim, n: shifted(claim, shift, n),
        draw_noise,
        sensitivity=search,
    )


def samples(kind):
    return Audited(
        fresh_samples,
        lambda claim, n: sampled_scores(claim.event.event, n, kind),
        lambda claim, n: draw_noise(claim.event.event, n),
        n=2 * N_RUNS,
    )


def party(kind):
    return Audited(
        partial(release_claim, kind),
        lambda claim, n: release_scores(kind, n),
        lambda claim, n: release_noise(kind, n),
        n=N_FITS if kind == "linear" else N_FEW_FITS,  # one kind for the game
    )


def seller(relation="replace", short=1.0):
    def noise(claim, n):
        return sellers.noise(n, relation, short)

    return Audited(
        partial(sellers.claim, relation),
        lambda claim, n: sellers.scores(n, relation, short),
        None if relation == "add_remove" else noise,
        sellers.search,
        n=N_FITS if relation == "replace" else N_FEW_FITS,
    )


def own_radius(relation, epsilon=EPSILON):
    """A seller that also releases its radius, and has noise for some epsilon."""
    return Audited(
        partial(sellers.own_claim, relation),
        lambda claim, n: sellers.own_ratios(n, relation, epsilon),
        n=N_FITS if relation == "replace" else N_FEW_FITS,
    )


def tknn(*setting):
    return Audited(
        partial(valuers.tknn_claim, setting[0]),
        lambda claim, n: valuers.tknn_scores(*setting),
        lambda claim, n: valuers.tknn_noise(*setting),
        valuers.search_tknn,
    )


def sampled_tknn(short=1.0):
    """Counts of fresh samples."""
    return Audited(
        valuers.sampled_claim,
        lambda claim, n: valuers.sampled_scores(short),
        lambda claim, n: valuers.sampled_noise(short),
    )


def gradients(kind, search=None, short=1.0):
    return Audited(
        partial(valuers.gradient_claim, kind),
        lambda claim, n: valuers.gradient_scores(kind, short),
        lambda claim, n: valuers.gradient_noise(kind, short),
        search,
    )


def trajectory(claim=in_run.claim, search=in_run.search, short=1.0):
    return Audited(
        claim,
        lambda claim, n: in_run.scores(short),
        lambda claim, n: in_run.noise(short),
        search,
    )


def layered_value(
    noise=None, claim=layered.one_claim, clean=layered.one_clean, halved=False
):
    return Audited(
        claim,
        lambda claim, n: layered.one_scores(n, halved, clean),
        noise,
        partial(layered.search_one, clean=clean),
    )


def layered_sum(single=False):
    return Audited(
        partial(layered.sum_claim, single),
        lambda claim, n: layered.sum_scores(n, single),
        None if single else lambda claim, n: layered.sum_noise(250),
        partial(layered.search_one, clean=layered.sum_clean),
    )


def layered_secret(n, public=False):
    return Audited(
        layered.secret_claim, lambda claim, n: layered.secret_scores(n, public), n=n
    )


def layered_values(release, n, short=lambda claim: 1.0):
    return Audited(
        partial(layered.values_claim, release),
        lambda claim, n: layered.values_scores(release, n, short(claim)),
        lambda claim, n: layered.values_noise(release, n, short(claim)),
        n=n,
    )


GRADIENTS = "GradientSemivalueValuer"
FEDERATED = "FederatedSemivalueValuer"
IN_RUN = "InRunShapleyValuer"
LAYERED = "LayeredShapleyValuer"
AUDITED = {
    "counts, a row added or removed": counts(),
    "counts clipped at zero": counts(clip=True),
    "counts, a row replaced": counts(relation="replace", score=relabelled),
    "one count, calibrated on the lattice": shifted_draws(
        partial(calibrate_counts, EPSILON, DELTA, 1), 1
    ),
    "Gaussian noise on a clipped sum": shifted_draws(
        partial(calibrate_gaussian, EPSILON, DELTA, 2.0), 2.0, search_clipped_sum
    ),
    "Laplace noise": shifted_draws(partial(calibrate_laplace, 1.0, 2.0), 2.0),
    "a fresh sample for every count": samples("fresh"),
    "one sample for all counts, stated as one event": Audited(
        one_sample, lambda claim, n: sampled_scores(claim.event, n, "shared")
    ),
    **{f"release of a party, {kind}": party(kind) for kind in PARTIES},
    "SellerRelease, replace": seller("replace"),
    "SellerRelease, null": seller("null"),
    "SellerRelease, add_remove": seller("add_remove"),
    "SellerRelease of its own radius, replace": own_radius("replace"),
    "SellerRelease of its own radius, null": own_radius("null"),
    "SellerRelease of its own radius, add_remove": own_radius("add_remove"),
    "TKNNShapleyValuer, a row added or removed": tknn("add_remove"),
    "TKNNShapleyValuer, a row replaced": tknn("replace"),
    "TKNNShapleyValuer, fresh samples": sampled_tknn(),
    f"{GRADIENTS}, local noise": gradients("gradients", valuers.search_gradients),
    f"{GRADIENTS}, along a public direction": gradients(
        "projected", valuers.search_projected
    ),
    f"{GRADIENTS}, a trusted server": gradients("server"),
    f"{FEDERATED}, a party's updates": gradients("rounds", valuers.search_updates),
    f"{FEDERATED}, a fit along a public direction": gradients(
        "federated", valuers.search_projected
    ),
    f"{IN_RUN}, the parameters of a run": trajectory(),
    # Of Laplace noise more draws are needed.
    f"{LAYERED}, one value": layered_value(lambda claim, n: layered.one_noise(250)),
    f"{LAYERED}, the sum of two values": layered_sum(),
    f"{LAYERED}, one value on secret coalitions": layered_secret(150),
    f"{LAYERED}, all values": layered_values("all", N_FEW_FITS),
    f"{LAYERED}, the vector of all values": layered_values("publish", N_FEW_FITS),
}


class Broken(NamedTuple):
    """A broken mechanism, and the names of the audits that catch it."""

    audited: Audited
    caught_by: set


NOISE = {"game", "variance"}  # what catches noise that is too small
STATED = {"game", "sensitivity"}  # what catches a claim that is too small
WITHOUT_NOISE_FOR_REPLACING = replace(
    counts(score=relabelled),
    claim=lambda: replace(calibrate_counts(EPSILON, DELTA, V), relation="replace"),
)
BROKEN = {
    "noise short by sqrt 2": Broken(counts(short=2**-0.5), NOISE),
    "noise that forgets V": Broken(counts(short=V**-0.5), NOISE),
    "noise that forgets V, and so does the statement": Broken(counts(1), STATED),
    "a shared sample claimed as fresh ones": Broken(samples("shared"), {"game"}),
    "a whole sample claimed as fresh ones": Broken(samples("whole"), {"game"}),
    "noise for add-or-remove claimed for replace": Broken(
        WITHOUT_NOISE_FOR_REPLACING, STATED
    ),
    "SellerRelease with half the noise": Broken(seller(short=0.5), NOISE),
    "SellerRelease of its own radius with a third of the noise": Broken(
        own_radius("replace", THIRD_OF_THE_NOISE), {"game"}
    ),
    "TKNNShapleyValuer with noise that forgets M": Broken(
        tknn("add_remove", "M"), NOISE
    ),
    "TKNNShapleyValuer, fresh samples with half the noise": Broken(
        sampled_tknn(short=0.5), NOISE
    ),
    # Noise of one round, for all rounds, is short by the same factor.
    f"{GRADIENTS} with noise for C in place of 2 C, gradients": Broken(
        gradients("gradients", short=0.5), NOISE
    ),
    f"{GRADIENTS} with noise for C in place of 2 C, projected": Broken(
        gradients("projected", short=0.5), NOISE
    ),
    f"{FEDERATED} with noise for C in place of 2 C, rounds": Broken(
        gradients("rounds", short=0.5), NOISE
    ),
    f"{FEDERATED} with noise for C in place of 2 C, federated": Broken(
        gradients("federated", short=0.5), NOISE
    ),
    "gradients that are not clipped": Broken(
        gradients("gradients", partial(valuers.search_gradients, clip=None)),
        {"sensitivity"},
    ),
    "rounds that are not clipped": Broken(
        gradients("rounds", partial(valuers.search_updates, clip=None)), {"sensitivity"}
    ),
    f"{IN_RUN} with noise for C in place of 2 C": Broken(trajectory(short=0.5), NOISE),
    f"{IN_RUN} with a sensitivity that is stated short by sqrt 2": Broken(
        trajectory(in_run.short_claim), {"sensitivity"}
    ),
    f"{IN_RUN} with gradients that are not clipped": Broken(
        trajectory(search=partial(in_run.search, clip=None)), {"sensitivity"}
    ),
    f"{LAYERED} with noise for a row left out": Broken(
        layered_value(lambda claim, n: draw_noise(claim, n) / 2, halved=True), NOISE
    ),
    f"{LAYERED} with noise for a row left out, and so is the statement": Broken(
        layered_value(claim=partial(layered.one_claim, halved=True), halved=True),
        STATED,
    ),
    f"{LAYERED} with a number of blocks that is random": Broken(
        layered_value(clean=layered.random_clean), STATED
    ),
    f"{LAYERED} with an intercept that is not penalised": Broken(
        Audited(
            layered.intercept_noise,
            lambda claim, n: layered.intercept_scores(n),
            None,
            layered.search_intercept,
        ),
        STATED,
    ),
    f"{LAYERED} with the noise of one value on the sum of two": Broken(
        layered_sum(single=True), STATED
    ),
    f"{LAYERED} with coalitions that are known, claimed secret": Broken(
        layered_secret(2 * N_RUNS, public=True), {"game"}
    ),
    # At epsilon 8, the game shows Laplace noise that is too small in no few fits.
    f"{LAYERED}, all values, with half the noise": Broken(
        layered_values("all", N_FEW_FITS, lambda claim: 0.5), {"variance"}
    ),
    # The game shows it where fits are many.
    f"{LAYERED}, the vector, with noise that forgets a row's own value": Broken(
        layered_values("publish", N_FEW_FITS, layered.without_own), {"variance"}
    ),
}


def check_audits(audited, n=None):
    for name, report in audited.audits(n).items():
        assert report.passed, (name, report)
        if name == "sensitivity":
            assert report.tight, report
        if name == "variance":
            assert not report.wasteful, report


@pytest.mark.parametrize("name", AUDITED)
def test_what_is_private_passes_all_audits(name):
    check_audits(AUDITED[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, audited in AUDITED.items() if audited.n < N_RUNS]
)
def test_what_is_private_passes_all_audits_of_more_fits(name):
    check_audits(AUDITED[name], 2000)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_caught_by_its_audits(name):
    audited, expected = BROKEN[name]
    reports = audited.audits()
    caught_by = {name for name, report in reports.items() if not report.passed}
    assert caught_by == expected


@pytest.mark.parametrize(("release", "fraction"), [("all", 0.999), ("publish", 0.6)])
def test_layered_values_move_as_far_as_is_claimed(release, fraction):
    """Noise moves them by a thousandth at most: games come near the bound, not beyond.

    Of the vector, no game moves both the row's own value and those of others by all of
    the bound.
    """
    claimed = layered.values_claim(release).sensitivity
    moved = np.abs(np.subtract(*layered.values_clean(release))).sum()
    assert fraction * claimed < moved < 1.001 * claimed
