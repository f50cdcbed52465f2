"""Ways to make a posterior of a given value, smaller than that of the posterior of all parties."""

from typing import NamedTuple

import numpy as np

from ..models import loglik_table
from ._gibbs import check_gibbs, divergences, gibbs_draws
from ._pool import Pool

_TAUS = np.geomspace(1e-3, 1e5, 33)
_NOISE_POOL = 6000  # particles for the search over tau
_KAPPAS = np.array([0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])


class Rewards(NamedTuple):
    """How each party's posterior was made, its value and its draws."""

    setting: dict  # fitted attribute `temper_` or `tau_`
    attained: np.ndarray
    similarity: np.ndarray
    samples: list
    weak: list  # indices of the parties with few effective draws


def tempered(evidence, targets, grand_value, n_draws, min_ess, rng):
    """Raise the likelihood to a power in [0, 1]; surprise provably increases with it.

    A predictive value may not: the first crossing of the target on a grid of powers is taken.
    """
    pool, powers = evidence.pool, np.ones(len(evidence.releases))
    whole, values_of = pool.loglik @ powers, evidence.measure.on(pool)

    def value_at(kappa):
        return values_of(kappa * whole[None])[0]

    kappas, attained, similarity, samples = [], [], [], []
    for target in targets:
        kappa = 1.0
        if target < grand_value:
            kappa = _power(value_at, target, evidence.measure.powers) if target > 0 else 0.0
        kappas.append(kappa)
        value = grand_value if kappa == 1 else value_at(kappa)
        attained.append(value if kappa else 0.0)
        away = pool.divergence_between(whole, kappa * whole) if kappa < 1 else 0.0
        similarity.append(0.0 - away)
        samples.append(pool.sample(evidence.model, evidence.releases, kappa * powers, n_draws, rng))
    setting = {"temper_": np.array(kappas)}
    return Rewards(setting, np.array(attained, dtype=float), np.array(similarity), samples, [])


def noisy(evidence, targets, grand_value, n_draws, min_ess, rng):
    """Add noise to all releases; the first crossing of the target on a grid is taken."""
    model, pool, thin = evidence.model, evidence.pool, _thinned(evidence.pool, rng)
    whole = pool.loglik.sum(axis=1)
    values_of = {id(some): evidence.measure.on(some) for some in (thin, pool)}
    taus, attained, similarity, samples, weak = [], [], [], [], []
    for place, target in enumerate(targets):
        units = [rng.standard_normal(len(r.statistic)) for r in evidence.releases]

        def releases(tau, units=units):
            return [_with_noise(r, tau, u) for r, u in zip(evidence.releases, units)]

        def value(tau, some, releases=releases):
            row = _loglik_of_all(model, releases(tau), some.phi)
            return float(values_of[id(some)](row[None])[0])

        tau = 0.0
        if target <= 0:
            tau = np.inf
        elif target < grand_value:
            tau = _first_crossing(lambda t: value(t, thin), target)
            tau = _bisect(lambda t: value(t, pool), target, tau / 1.5, tau * 1.5, 12)
        taus.append(tau)
        if not np.isfinite(tau):
            attained.append(0.0)
            similarity.append(-pool.divergence_between(whole, 0 * whole))
            samples.append(model.sample_prior(n_draws, rng))
            continue
        given = releases(tau)
        row = _loglik_of_all(model, given, pool.phi)
        ess = pool.divergences(row[None])[1]
        if ess[0] < min_ess and tau > 0:
            weak.append(place)
        attained.append(grand_value if tau == 0 else value(tau, pool))
        # Without noise only the order of the sum differs: set the distance to 0, not to rounding.
        similarity.append(0.0 - pool.divergence_between(whole, row) if tau > 0 else 0.0)
        there = Pool(pool.phi, row[:, None], pool.log_base)
        samples.append(there.sample(_Joint(model, given), [None], [1.0], n_draws, rng))
    setting = {"tau_": np.array(taus)}
    return Rewards(setting, np.array(attained), np.array(similarity), samples, weak)


def scaled(evidence, targets, grand_value, n_draws, min_ess, rng):
    """Scale counts, sums and sensitivity, and sample by Gibbs sampling, as the paper does."""
    model, releases = evidence.model, evidence.releases
    check_gibbs(model, releases)
    all_parties = np.ones((1, len(releases)))
    rows = np.repeat(all_parties, len(_KAPPAS), axis=0)
    draws = gibbs_draws(model, releases, rows, _KAPPAS, 1000, rng)
    curve = [divergences(model, d, "one-sample", rng)[0].mean() for d in draws]
    curve = np.maximum.accumulate(np.maximum(curve, 0.0))
    # The largest value of the curve is v_N up to sampling error: rescaled, targets are attainable.
    curve *= grand_value / curve[-1]
    logs = np.interp(targets, [0.0, *curve], np.log([1e-4, *_KAPPAS]))
    kappas = np.where(targets >= grand_value, 1.0, np.exp(logs))
    kappas[targets == 0] = 0.0
    sampled = np.flatnonzero(kappas)
    draws = gibbs_draws(
        model, releases, np.repeat(all_parties, len(sampled), axis=0), kappas[sampled],
        max(n_draws, 200), rng,
    )  # fmt: skip
    samples = [model.sample_prior(n_draws, rng) for _ in targets]
    attained, top = np.zeros(len(targets)), kappas == 1
    for place, some in zip(sampled, draws):
        attained[place] = max(divergences(model, some, "one-sample", rng)[0].mean(), 0.0)
        samples[place] = some.reshape(-1, some.shape[-1])[:n_draws]
    attained[top] = grand_value
    return Rewards({"temper_": kappas}, attained, np.where(top, 0.0, np.nan), samples, [])


CONTROLS = {"temper": tempered, "noise": noisy, "scaled": scaled}


class _Joint:
    """A model of one party: several releases taken together as one."""

    def __init__(self, model, releases):
        self.model, self.releases = model, releases
        self.log_prior, self.sample_prior = model.log_prior, model.sample_prior

    def party_loglik(self, phi, release):
        return loglik_table(self.model, self.releases, phi).sum(axis=1)


def _with_noise(release, tau, unit):
    if tau == 0:
        return release
    scale = np.sqrt(0.5 * release.renyi_order * tau) * release.sensitivity
    return release.shifted(float(tau), scale * unit)


def _loglik_of_all(model, releases, phi):
    row = loglik_table(model, releases, phi).sum(axis=1)
    return row - row.max()


def _thinned(pool, rng):
    """A pool of at most `_NOISE_POOL` particles, for the search over tau."""
    if len(pool.phi) <= _NOISE_POOL:
        return Pool(pool.phi, pool.loglik, pool.log_base)
    keep = np.sort(rng.choice(len(pool.phi), _NOISE_POOL, replace=False))
    return Pool(pool.phi[keep], pool.loglik[keep], pool.log_base[keep])


def _first_crossing(value, target):
    """The tau at which the value first falls to the target: bracketed on a grid, then bisected."""
    low = 0.0
    for high in _TAUS:
        if value(high) <= target:
            break
        low = high
    else:
        return float(_TAUS[-1])
    return _bisect(value, target, low, high, 12)


def _power(value, target, grid):
    """The least power at which the value reaches the target, on a grid that ends at 1; bisected."""
    low = 0.0
    for high in grid:
        if value(high) > target:
            break
        low = high
    else:
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(middle) < target else (low, middle)
    return 0.5 * (low + high)


def _bisect(value, target, low, high, steps):
    for _ in range(steps):
        middle = 0.5 * (low + high) if low == 0 else np.sqrt(low * high)
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return float(0.5 * (low + high))
