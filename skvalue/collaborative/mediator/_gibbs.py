"""The paper's Gibbs sampler: exact statistics given parameters, then parameters given statistics.

After G. Bernstein and D. Sheldon, "Differentially Private Bayesian Linear Regression" (NeurIPS
2019). All coalitions, temperatures and chains are sampled at once.
"""

import numpy as np

from ..models import BayesianLinear, inverse_wishart_prior, joint_moments, nig_sample, nig_update
from ._divergence import one_sample_divergence, two_sample_divergence

_CHAINS, _BURN_IN, _THIN = 20, 1500, 10


def _symmetric(shape, rng):
    noise = rng.standard_normal(shape)
    return 0.5 * (noise + np.swapaxes(noise, -1, -2))


def _positive(matrices, floor):
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, -1, -2)))
    return (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _inverse_wishart(degrees, scale, rng):
    """Draws by the Bartlett decomposition, for stacked degrees of freedom and scale matrices."""
    p = scale.shape[-1]
    factor = np.tril(rng.standard_normal(scale.shape), -1)
    for i in range(p):
        factor[..., i, i] = np.sqrt(2 * rng.gamma(0.5 * (degrees - i)))
    root = np.linalg.solve(factor, np.swapaxes(np.linalg.cholesky(scale), -1, -2))
    return np.swapaxes(root, -1, -2) @ root


def gibbs_draws(model, releases, coalitions, kappas, n_draws, rng, *, burn_in=_BURN_IN, thin=_THIN):
    """Draws from the posteriors of coalitions, with counts, sums and noise scaled by kappas.

    `coalitions` (n_rows, n_parties) and `kappas` (n_rows,) have one row per coalition (the paper's
    App. E.3). Returns an array (n_rows, n_chains, ceil(n_draws / n_chains), d).
    """
    coalitions = np.repeat(np.asarray(coalitions, float), _CHAINS, axis=0)
    kappas = np.repeat(np.asarray(kappas, float), _CHAINS)[:, None]
    n_rows, n_parties = coalitions.shape
    facts = [model.release_facts(release) for release in releases]
    grams = np.array([gram for gram, *_ in facts])
    # For an exact statistic the noise is 0, and the second moments of x have no effect.
    second = np.array(
        [
            gram[:-1, :-1] / max(release.n_samples, 1)
            if some is None
            else some.reshape(-1, *some.shape[-2:]).mean(axis=0)
            for (gram, some, _), release in zip(facts, releases)
        ]
    )
    moments_prior = None
    if model.moments == "hierarchical" and model.x_covariance is None:
        moments_prior = inverse_wishart_prior(releases[0].n_features, releases[0].bounds[0])
        second = np.repeat(second[None], n_rows, axis=0)
    counts = np.array([release.n_samples for release in releases], float)
    noise = np.array([release.noise_scale**2 for release in releases])
    scaled_counts, scaled_noise = kappas * counts, kappas**2 * noise
    size, p = grams.shape[1], grams.shape[1] - 1
    c = scaled_counts[:, :, None, None]
    variance = scaled_noise[:, :, None, None]
    z = kappas[:, :, None, None] * grams
    phi = nig_sample(model.prior_, n_rows, rng)
    kept = []
    n_kept = -(-n_draws // _CHAINS)
    for sweep in range(burn_in + n_kept * thin):
        w, s2 = phi[:, :-1], np.exp(phi[:, -1])
        moments = np.stack(
            [joint_moments(w, s2, second[..., i, :, :]) for i in range(n_parties)], axis=1
        )
        values, vectors = np.linalg.eigh(moments)
        roots = np.sqrt(np.maximum(values, 1e-12))
        # Matheron's rule in the eigenbasis: draw sums and noise, then correct by the residual.
        scales = roots[..., :, None] * roots[..., None, :]
        sums = np.sqrt(2 * c) * scales * _symmetric((n_rows, n_parties, size, size), rng)
        errors = np.sqrt(variance) * _symmetric((n_rows, n_parties, size, size), rng)
        residual = np.swapaxes(vectors, 2, 3) @ (z - c * moments) @ vectors
        signal = 2 * c * scales**2
        gain = signal / np.maximum(signal + variance, 1e-300)
        sums += gain * (residual - sums - errors)
        exact = c * moments + vectors @ sums @ np.swapaxes(vectors, 2, 3)
        if moments_prior is not None:
            degrees, scale = moments_prior
            inner = _positive(exact[..., :p, :p], 1e-6) + scale * np.eye(p)
            second = _inverse_wishart(degrees + scaled_counts, inner, rng)
        total = np.einsum("bn,bnij->bij", coalitions, exact)
        total = _positive(total, 1e-9)
        posterior = nig_update(model.prior_, total, np.sum(coalitions * scaled_counts, axis=1))
        s2 = np.maximum(posterior.b, 1e-3 * model.prior_.b) / rng.gamma(posterior.a)
        factors = np.linalg.cholesky(posterior.precision)
        jump = np.linalg.solve(np.swapaxes(factors, 1, 2), rng.standard_normal((n_rows, p, 1)))[
            :, :, 0
        ]
        phi = np.column_stack([posterior.mean + np.sqrt(s2)[:, None] * jump, np.log(s2)])
        if sweep >= burn_in and (sweep - burn_in) % thin == 0:
            kept.append(phi)
    draws = np.array(kept).reshape(n_kept, -1, _CHAINS, p + 1)
    return draws.transpose(1, 2, 0, 3)


def check_gibbs(model, releases):
    """Raise a ValueError if the sampler does not support the model or the releases."""
    if not isinstance(model, BayesianLinear):
        raise ValueError(f"method='gibbs' is for BayesianLinear models. Got {model!r}.")
    if releases[0].intercept or releases[0].layout != "svec":
        raise ValueError(
            "method='gibbs' needs releases of layout 'svec' without an intercept. Got "
            f"{releases[0].layout!r} and intercept={releases[0].intercept}."
        )
    if model.moments == "noisy":
        raise ValueError("method='gibbs' needs moments 'plugin' or 'hierarchical'. Got 'noisy'.")


def chain_ess(draws):
    """Effective sample size by the variance of the chains' means: the minimum over parameters."""
    n_chains, n_kept, _ = draws.shape
    within = draws.var(axis=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    total = within * (n_kept - 1) / max(n_kept, 1) + between
    ess = n_chains * total / np.maximum(between, 1e-300)
    return float(np.min(np.minimum(ess, n_chains * n_kept)))


def divergences(model, draws, kind, rng):
    """Four estimates of the divergence from the prior, whose mean is that of all draws; the ESS."""
    ess = chain_ess(draws)
    flat = draws.reshape(-1, draws.shape[-1])
    order = rng.permutation(len(flat))
    parts = np.array_split(order, 4)

    def estimate(some):
        if kind == "two-sample":
            return two_sample_divergence(some, model.sample_prior(len(flat), rng))
        return one_sample_divergence(some, model.log_prior(some))

    whole = estimate(flat)
    estimates = np.array([estimate(flat[part]) for part in parts])
    # Their mean is the estimate from all draws; their standard deviation gives its error.
    return whole + estimates - estimates.mean(), ess


def gibbs_values(model, releases, coalitions, n_draws, kind, rng):
    """Four estimates of each coalition's value, see `divergences`, and the ESS of its draws."""
    check_gibbs(model, releases)
    rows = np.flatnonzero(coalitions.any(axis=1))
    draws = gibbs_draws(model, releases, coalitions[rows], np.ones(len(rows)), n_draws, rng)
    values, ess = np.zeros((len(coalitions), 4)), np.full(len(coalitions), np.inf)
    for row, some in zip(rows, draws):
        values[row], ess[row] = divergences(model, some, kind, rng)
    return values, ess
