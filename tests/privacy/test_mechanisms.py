"""Noise: as stated, from the operating system, and with a warning where it is not."""

import math
import secrets
import sys
import warnings
from decimal import Decimal, localcontext
from functools import partial
from itertools import accumulate
from unittest.mock import MagicMock

import numpy as np
import pytest
from scipy.special import chdtri

from skvalue.privacy import (
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    OpaqueEvent,
    PoissonSampledEvent,
    Release,
    SeededNoiseWarning,
    SelfComposedEvent,
    add_noise,
    clip_and_noise,
    clip_rows,
    draw_noise,
    grid_width,
    on_grid,
    poisson_sample,
)
from skvalue.privacy.audit import check_variance

DISCRETE = [DiscreteGaussianEvent(scale) for scale in (0.4, 3.74, 53.0, 2500.0)]
CONTINUOUS = [GaussianEvent(3.0), LaplaceEvent(3.0)]
FAIL = 1e-8  # probability of failing a correct sampler in one of its tests


@pytest.fixture(params=["table", "opendp"])
def sampler(request, monkeypatch):
    """Which sampler draws integer noise."""
    if request.param == "opendp":
        pytest.importorskip(
            "opendp", reason="the extra 'secure' (opendp) is not installed"
        )
    else:
        monkeypatch.setitem(sys.modules, "opendp", None)
    return request.param


# Distributions ------------------------------------------------------------------------


def probabilities(event, x):
    weights = np.exp(-0.5 * (x / event.scale) ** 2)
    radius = 40 * max(event.scale, 1)
    support = np.round(np.arange(-radius, radius + 1))
    return weights / np.exp(-0.5 * (support / event.scale) ** 2).sum()


@pytest.mark.parametrize("event", DISCRETE, ids=repr)
def test_integer_noise_has_the_distribution_stated(event, sampler):
    n = 20_000 if sampler == "table" else 4_000
    noise = draw_noise(event, n)
    assert noise.dtype == np.int64
    report = check_variance(noise, event, fail=FAIL)
    assert report.passed
    assert not report.wasteful
    # Chi-square over cells of ample mass.
    edges = np.unique(np.round(np.quantile(noise, np.linspace(0, 1, 13)[1:-1])))
    n_cells = len(edges) + 1
    observed = np.bincount(np.searchsorted(edges, noise), minlength=n_cells)
    margin = 200 * int(event.scale + 1)
    x = np.arange(noise.min() - margin, noise.max() + margin)
    expected = n * np.bincount(
        np.searchsorted(edges, x), probabilities(event, x), n_cells
    )
    is_ample = expected > 20
    statistic = ((observed - expected)[is_ample] ** 2 / expected[is_ample]).sum()
    assert statistic < chdtri(is_ample.sum(), FAIL)


def steps(scale):
    """(x, probability of at most x, in units of 2^-128), for x of some weight.

    That is one above 2^-140.
    """
    with localcontext(prec=90):
        weights = [Decimal(1)]
        while weights[-1] > Decimal(2) ** -140:
            weights.append((-(len(weights) ** 2) / (2 * Decimal(scale) ** 2)).exp())
        first = 1 - len(weights)
        weights = weights[:0:-1] + weights
        total = sum(weights)
        cumulative = [
            int(weight / total * 2**128) for weight in accumulate(weights[:-1])
        ]
    return list(enumerate(cumulative, start=first))


@pytest.mark.parametrize("scale", [0.1, 0.7, 3.74, 30.0])
def test_draws_change_where_the_distribution_says(scale, monkeypatch):
    """A uniform number of 128 bits decides a draw: look 2^-114 around every step.

    There are fewer than 2^11 steps, so that the distribution is within 2^-103 in total
    variation: less than the 2^-100 that accounting allows for. Steps near 0 and 1 share
    their high words.
    """
    all_steps = steps(scale)
    assert len(all_steps) < 1 << 11
    distance = 1 << 14
    ends = [0, *(step for _, step in all_steps), 1 << 128]
    uniform = []
    expected = []
    for (x, step), before, after in zip(all_steps, ends, ends[2:]):
        if min(step - before, after - step) > 2 * distance:
            uniform += [step - distance, step + distance]
            expected += [x, x + 1]
    assert len(uniform) >= len(all_steps)
    high = [number >> 64 for number in uniform]
    low = [number & (2**64 - 1) for number in uniform]
    words = np.array(high + low, dtype="<u8")
    monkeypatch.setattr(secrets, "token_bytes", lambda n: words.tobytes())
    monkeypatch.setitem(sys.modules, "opendp", None)
    draws = draw_noise(DiscreteGaussianEvent(scale), len(uniform))
    assert draws.tolist() == expected


@pytest.mark.parametrize("event", CONTINUOUS, ids=repr)
def test_continuous_noise_has_the_distribution_stated(event):
    noise = draw_noise(event, (200, 100))
    assert noise.shape == (200, 100)
    report = check_variance(noise, event, fail=FAIL)
    assert report.passed
    assert not report.wasteful
    assert abs(np.median(noise)) < 0.2


# Where randomness comes from ----------------------------------------------------------


@pytest.mark.parametrize("event", DISCRETE[1:2] + CONTINUOUS, ids=repr)
def test_seeded_noise_repeats_and_warns(event):
    with pytest.warns(SeededNoiseWarning, match="NOTHING is guaranteed"):
        first = draw_noise(event, 50, noise_random_state=3)
    with pytest.warns(SeededNoiseWarning):
        assert (draw_noise(event, 50, noise_random_state=3) == first).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (draw_noise(event, 50) != first).any()


def test_numpy_seeds_do_not_reach_the_noise(sampler):
    event = DiscreteGaussianEvent(50.0)
    np.random.seed(0)  # noqa: NPY002
    first = draw_noise(event, 50)
    np.random.seed(0)  # noqa: NPY002
    assert (draw_noise(event, 50) != first).any()


def test_random_bytes_are_those_of_the_operating_system(monkeypatch):
    asked = []

    def token_bytes(n):
        asked.append(n)
        return b"\x07" * n

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    monkeypatch.setitem(sys.modules, "opendp", None)
    draws = [partial(draw_noise, event) for event in (DISCRETE[1], *CONTINUOUS)]
    for draw in (*draws, lambda n: poisson_sample(n, 0.5)):
        asked.clear()
        draw(10)
        assert sum(asked) >= 80
    assert sum(asked) == 80


# Releases -----------------------------------------------------------------------------


def test_add_noise_adds_what_draw_noise_draws():
    event = DiscreteGaussianEvent(3.0)
    values = np.arange(6, dtype=np.int8).reshape(2, 3)
    with pytest.warns(SeededNoiseWarning):
        noise = draw_noise(event, (2, 3), noise_random_state=1)
    with pytest.warns(SeededNoiseWarning):
        noisy = add_noise(values, event, noise_random_state=1)
    assert (noisy == values + noise).all()
    assert noisy.dtype == np.int64


def test_add_noise_to_real_numbers():
    assert (add_noise([2.5, 2.5], GaussianEvent(1.0)) != 2.5).any()


@pytest.mark.parametrize("scale", [1.9, 1e-9, 3e12])
@pytest.mark.parametrize("kind", [GaussianEvent, LaplaceEvent])
def test_noise_fills_a_grid_around_every_value(kind, scale):
    # Products of the scale with a standard draw leave every second number out: had it
    # been added to 1/3 of the scale, a sum to the last bit could not have come from
    # -1/5 of it.
    noisy = add_noise(np.repeat([scale / 3, -scale / 5], 500), kind(scale))
    grid = 2.0 ** (math.floor(math.log2(scale)) - 20)
    np.testing.assert_array_equal(noisy % grid, 0)
    assert check_variance(noisy[:500], kind(scale), fail=FAIL).passed


def test_a_grid_for_each_scale():
    rounded = on_grid(np.array([0.6, 1.4]), np.array([2.0**20, 2.0**21]))
    assert rounded.tolist() == [1.0, 2.0]


def test_grids_of_extreme_scales():
    extreme = np.array([1e300, -1e-310, 0.0])
    assert on_grid(extreme, 1e-320).tolist() == [1e300, -0.0, 0.0]
    np.testing.assert_allclose(on_grid(extreme, 1e300), [1e300, 0.0, 0.0], rtol=1e-6)


def test_a_release_clips_adds_noise_and_rounds(rng):
    vectors = 3 * rng.normal(size=(50, 7))
    noise = rng.normal(size=(50, 7))
    vectors[0] = np.nan
    vectors[1, 3] = np.inf
    stds = rng.uniform(1, 9, size=(50, 1))
    released = clip_and_noise(vectors, 2.0, stds * noise, stds)
    # Vectors that are not finite are zero: an error would tell of them.
    clean = clip_rows(np.vstack([np.zeros((2, 7)), vectors[2:]]), 2.0)
    np.testing.assert_array_equal(released, on_grid(clean + stds * noise, stds))
    assert not (released % grid_width(stds)).any()
    assert np.abs(released - clean - stds * noise).max() < 1e-6 * stds.max()


def test_without_noise_vectors_are_clipped_and_not_rounded(rng):
    vectors = 3 * rng.normal(size=(50, 7))
    clean = clip_rows(vectors, 2.0)
    np.testing.assert_array_equal(clip_and_noise(vectors, 2.0), clean)
    np.testing.assert_array_equal(clip_and_noise(vectors, None), vectors)


@pytest.mark.parametrize(
    ("error", "message", "event", "values", "seed"),
    [
        (
            TypeError,
            "values must be integers",
            DiscreteGaussianEvent(50.0),
            [1.5],
            None,
        ),
        (
            ValueError,
            "values must be finite",
            GaussianEvent(50.0),
            [1.0, math.nan],
            None,
        ),
        (TypeError, "noise_random_state", GaussianEvent(50.0), [1], "7"),
        (TypeError, "event must be one noise event", OpaqueEvent(1.0), [1], None),
        (ValueError, "coarser grid", DiscreteGaussianEvent(1e15), [1], None),
    ],
)
def test_what_a_release_refuses_is_not_charged(error, message, event, values, seed):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    with pytest.raises(error, match=message):
        Release(event, ledger, noise_random_state=seed).of(values)
    if "values" not in message:
        with pytest.raises(error, match=message):
            Release(event, ledger, noise_random_state=seed).source()
    assert ledger.n_charges == 0


def test_a_release_is_charged_and_opened_once():
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    release = Release(DiscreteGaussianEvent(50.0), ledger, "counts")
    assert release.of([1]).dtype == np.int64
    for again in (lambda: release.of([1]), release.source):
        with pytest.raises(RuntimeError, match="charged once"):
            again()
    assert [charge.label for charge in ledger.charges] == ["counts"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda noise: noise,
        lambda noise: SelfComposedEvent(PoissonSampledEvent(noise, 0.1), 7),
        lambda noise: OpaqueEvent(1.0, event=noise),
    ],
    ids=["one", "sampled", "opaque"],
)
def test_noise_is_that_of_the_event_charged(wrap):
    noise = GaussianEvent(50.0, relation="null")
    release = Release(wrap(noise), noise_random_state=3)
    assert release.noise is noise
    with pytest.warns(SeededNoiseWarning):
        assert check_variance(release.of(np.zeros(2000)), noise).passed
    with pytest.warns(SeededNoiseWarning):
        draw = Release(wrap(noise), noise_random_state=3).source()
    assert draw.scale == 50.0


def test_opendp_draws_integer_noise_where_it_is_installed(monkeypatch):
    calls = []

    def make_gaussian(domain, distance, scale):
        def draw(zeros):
            calls.append((scale, len(zeros)))
            return zeros

        return draw

    opendp = MagicMock()
    opendp.prelude.m.make_gaussian = make_gaussian
    monkeypatch.setitem(sys.modules, "opendp", opendp)
    monkeypatch.setitem(sys.modules, "opendp.prelude", opendp.prelude)
    draw_noise(DISCRETE[0], 3)
    assert calls == [(0.4, 3)]
    with pytest.warns(SeededNoiseWarning):
        draw_noise(DISCRETE[0], 3, noise_random_state=0)  # opendp takes no seed
    monkeypatch.setitem(sys.modules, "opendp", None)
    draw_noise(DISCRETE[0], 3)
    assert len(calls) == 1


def test_a_sample_has_each_row_with_the_probability():
    sample = poisson_sample(100_000, 0.1)
    assert sample.dtype == bool
    assert abs(sample.mean() - 0.1) < 6 * math.sqrt(0.09 / 100_000)


def test_a_sample_of_probability_one_has_all_rows():
    assert poisson_sample(10, 1.0).all()


@pytest.mark.parametrize("probability", [0, 1.1, -1])
def test_a_probability_out_of_range_is_refused(probability):
    with pytest.raises(ValueError, match="probability must be"):
        poisson_sample(3, probability)
