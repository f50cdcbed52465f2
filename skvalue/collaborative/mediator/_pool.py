"""One pool of weighted particles, from which the posterior of every coalition is computed.

The particles of all temperatures between the prior and a few posteriors are one sample from the
mixture of these distributions. Weights with respect to the prior (Shirts and Chodera,
"Statistically optimal analysis of samples from multiple equilibrium states", 2008) make the sample
a discrete prior; multiplied by likelihoods, it is a discrete posterior of any coalition, at any
temperature. Every value is the divergence between two discrete distributions on the same particles:
it is never negative, grows with the power of the likelihood, is equal for parties with equal
releases, and does not change when a party with a constant likelihood joins.
"""

import numpy as np
from scipy.special import logsumexp

from ..models import loglik_table, metropolis

_BLOCK = 4_000_000  # entries of a block of weights
_WIDENINGS = 60  # most doublings of the range of a grid
_POWER = 1 / 3  # of the densities that grid nodes follow, so that tails have enough nodes
_TOGETHER, _MORE_NODES = 64, 20_000  # coalitions per block and most new nodes of a refinement


def coalition_rows(loglik):
    """Log-likelihoods of all 2^n coalitions, in blocks of (start, rows), rows (<= 256, J).

    Bit i of a coalition's number is party i. Parties are added one after another, so that a column
    of zeros does not change the rounding of a sum.
    """
    n_parties = loglik.shape[1]
    columns = np.ascontiguousarray(loglik.T)
    low = min(n_parties, 8, max(0, int(np.log2(max(_BLOCK // len(loglik), 1)))))
    for high in range(2 ** (n_parties - low)):
        rows = np.zeros((2**low, len(loglik)))
        for i in range(n_parties - low):
            if high >> i & 1:
                rows[0] += columns[low + i]
        for i in range(low):
            np.add(rows[: 2**i], columns[i], out=rows[2**i : 2 ** (i + 1)])
        yield high << low, rows


class Pool:
    """Particles, their log-likelihoods by party, and log weights that make them a discrete prior.

    Particles are sorted by island; `starts` has the first index of each. `log_ratio` is the log
    of the weight within the island minus `log_base`. Both are None for a grid.
    """

    def __init__(self, phi, loglik, log_base, starts=None, log_ratio=None):
        self.phi, self.loglik = phi, loglik
        self.log_base = log_base - logsumexp(log_base)
        self.starts, self.log_ratio = starts, log_ratio

    def divergences(self, rows):
        """Divergence from the prior, effective sample size, and the divergences by island.

        ``rows`` (R, J) are log-likelihoods of posteriors. The last result is (R, G) for G islands,
        and (R, 1) for a grid.
        """
        log_weights = rows + self.log_base
        top = log_weights.max(axis=1, keepdims=True)
        weights = np.exp(log_weights - top)
        totals = weights.sum(axis=1)
        means = np.einsum("rj,rj->r", weights, rows) / totals
        values = np.maximum(means - np.log(totals) - top[:, 0], 0.0)
        ess = totals**2 / np.einsum("rj,rj->r", weights, weights)
        if self.starts is None:
            return values, ess, values[:, None]
        weights *= np.exp(self.log_ratio)
        totals = np.add.reduceat(weights, self.starts, axis=1)
        weights *= rows
        means = np.add.reduceat(weights, self.starts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            islands = means / totals - np.log(totals) - top
        return values, ess, np.where(np.isfinite(islands), islands, values[:, None])

    def coalitions(self):
        """`divergences` of all coalitions, in the order of their numbers."""
        n = self.loglik.shape[1]
        values, ess, islands = np.zeros(2**n), np.zeros(2**n), None
        for start, rows in coalition_rows(self.loglik):
            part = slice(start, start + len(rows))
            values[part], ess[part], some = self.divergences(rows)
            islands = np.zeros((2**n, some.shape[1])) if islands is None else islands
            islands[part] = some
        values[0] = islands[0] = 0.0
        return values, ess, islands

    def masks(self, masks):
        """`divergences` of some coalitions: rows of zeros and ones, or of powers in [0, 1]."""
        masks = np.asarray(masks, dtype=float)
        step = max(1, _BLOCK // len(self.phi))
        parts = [
            self.divergences(masks[start : start + step] @ self.loglik.T)
            for start in range(0, len(masks), step)
        ]
        return tuple(np.concatenate(column) for column in zip(*parts))

    def weights(self, row):
        """Weights of the posterior with log-likelihood `row`; they sum to 1."""
        log_weights = row + self.log_base
        return np.exp(log_weights - logsumexp(log_weights))

    def divergence_between(self, row, other):
        """Kullback-Leibler divergence of the posterior `row` from the posterior `other`."""
        log_p, log_q = row + self.log_base, other + self.log_base
        log_p, log_q = log_p - logsumexp(log_p), log_q - logsumexp(log_q)
        return float(max(np.sum(np.exp(log_p) * (log_p - log_q)), 0.0))

    def sample(self, model, releases, powers, size, rng, n_moves=20):
        """Draws from a posterior: resampled particles, then Metropolis moves against duplicates."""
        powers = np.asarray(powers, dtype=float)
        if not powers.any():
            return model.sample_prior(size, rng)
        row = self.loglik @ powers
        w = self.weights(row)
        places = rng.choice(len(w), size=size, p=w)
        mean = w @ self.phi
        centred = (self.phi - mean) * np.sqrt(w)[:, None]
        covariance = centred.T @ centred
        d = len(mean)
        jitter = 1e-9 * np.trace(covariance) / d + 1e-300
        factor = np.linalg.cholesky(covariance + jitter * np.eye(d))
        phi = metropolis(
            model, releases, powers[None], self.phi[places][None], None, factor[None],
            np.full(1, 2.38 / np.sqrt(d)), n_moves, rng,
        )[0]  # fmt: skip
        return phi[0]


def _mixture_weights(logs, counts, log_z):
    """Log weights of a sample from a mixture with respect to its first component.

    ``logs`` (J, K) are log density ratios of the components to the first one, each up to a constant
    of which ``log_z`` is a first guess. Also returns the constants found.
    """
    logs = logs - log_z
    top = logs.max(axis=1)
    densities = np.exp(logs - top[:, None])
    change = np.zeros(len(counts))
    for _ in range(500):
        mixture = densities @ (counts * np.exp(-change))
        new = np.log(densities.T @ (1 / mixture))
        new -= new[0]
        step = np.abs(new - change).max()
        change = new
        if step < 1e-5:
            break
    log_weights = -np.log(densities @ (counts * np.exp(-change))) - top
    return log_weights - logsumexp(log_weights), log_z + change


def sampled_pool(model, releases, stages, prior, n_islands):
    """Pool of the particles of all stages of `anneal` and of draws from the prior."""
    phi = np.concatenate([prior, *(stage[0] for stage in stages)])
    powers = np.array([np.zeros(len(releases)), *(stage[1] for stage in stages)])
    log_z = np.array([0.0, *(stage[2] for stage in stages)])
    counts = np.array([len(prior), *(len(stage[0]) for stage in stages)], dtype=float)
    island = np.concatenate(
        [np.repeat(np.arange(n_islands), int(count) // n_islands) for count in counts]
    )
    order = np.argsort(island, kind="stable")
    phi, island = phi[order], island[order]
    loglik = loglik_table(model, releases, phi)
    shift = loglik.max(axis=0)
    loglik -= shift
    logs = loglik @ powers.T
    log_z -= powers @ shift
    log_base, log_z = _mixture_weights(logs, counts, log_z)
    starts = np.searchsorted(island, np.arange(n_islands))
    log_island = np.concatenate(
        [
            _mixture_weights(logs[island == g], counts / n_islands, log_z)[0]
            for g in range(n_islands)
        ]
    )
    return Pool(phi, loglik, log_base, starts, log_island - log_base)


def _node_masses(model, releases, phi, power=1.0):
    """Mass of each node under the prior, each party's posterior, and the posterior of all parties.

    Densities are raised to `power`: below 1, tails get more weight.
    """
    loglik = loglik_table(model, releases, phi[:, None])
    logs = np.column_stack([np.zeros(len(phi)), loglik, loglik.sum(axis=1)])
    logs += model.log_prior(phi[:, None])[:, None]
    logs = power * logs + np.log(np.gradient(phi))[:, None]
    return np.exp(logs - logsumexp(logs, axis=0))


def grid_pool(model, releases, size=4001):
    """Pool of grid nodes, dense where the prior, a party's or all parties' posterior has mass."""
    ends = model.prior_quantile(np.array([1e-12, 1 - 1e-12]))
    for _ in range(_WIDENINGS):
        mass = _node_masses(model, releases, np.linspace(*ends, 501))[[0, -1]]
        # Where a posterior has far more mass at an end than the prior, the grid is too short.
        cut = mass[:, 1:].max(axis=1) > 10 * mass[:, 0] + 1e-10
        if not cut.any():
            break
        ends = ends + cut * np.array([-1, 1]) * (ends[1] - ends[0])
    phi = np.linspace(*ends, size)
    for _ in range(3):
        phi = _denser(phi, _node_masses(model, releases, phi, _POWER).mean(axis=1), size)
    return _nodes(model, releases, phi)


def refined_pool(model, releases, pool, coalitions):
    """A grid with more nodes where the posteriors of `coalitions` (m, n_parties) have mass.

    Where parties disagree, these differ from the posteriors that the first grid was made for.
    """
    phi, mass = pool.phi[:, 0], 0.0
    widths = np.log(np.gradient(phi))
    for start in range(0, len(coalitions), _TOGETHER):
        rows = coalitions[start : start + _TOGETHER].astype(float) @ pool.loglik.T + pool.log_base
        rows = _POWER * (rows - widths) + widths
        mass = mass + np.exp(rows - logsumexp(rows, axis=1, keepdims=True)).sum(axis=0)
    size = min(_MORE_NODES, 100 * len(coalitions))
    return _nodes(model, releases, _denser(phi, mass / len(coalitions), size, keep=len(phi)))


def _denser(phi, weights, size, keep=None):
    """At least `keep` of the given nodes, and more where the weights are large."""
    places = np.concatenate([[0.0], np.cumsum(weights)[:-1] + weights[1:] * 0.5])
    nodes = np.interp(np.linspace(0, 1, size), places, phi)
    return np.unique(np.concatenate([phi[:: max(1, len(phi) // (keep or size))], nodes]))


def _nodes(model, releases, phi):
    """Pool of grid nodes."""
    loglik = loglik_table(model, releases, phi[:, None])
    loglik -= loglik.max(axis=0)
    log_base = model.log_prior(phi[:, None]) + np.log(np.gradient(phi))
    return Pool(phi[:, None], loglik, log_base - logsumexp(log_base))
