"""Noise on gradients: what a walk releases, what it costs, and how releases are averaged."""

from dataclasses import replace

import numpy as np

from ..privacy import GaussianEvent, SelfComposedEvent, make_report, mu_from_epsilon

SCHEDULES = ("iid", "correlated", "optimal")


def gradient_event(
    n_permutations, clip, *, epsilon=None, delta=None, noise_multiplier=None, trust="local"
):
    """What a party gives away over all permutations.

    Once a permutation it releases the sum of its clipped gradients (of one, with unit "party")
    with Gaussian noise. Replacing what is protected moves the sum by at most ``2 clip`` (trust
    "local"); blanking it out, by ``clip`` (trust "server", relation "null"). Over k releases,
    adaptive ones too, noise of deviation ``sqrt(k) * clip * noise_multiplier`` is exactly mu-GDP
    with mu = sensitivity / (clip * noise_multiplier), whatever k.

    Parameters
    ----------
    n_permutations : int
        Number of releases, k.
    clip : float
        Bound of the norm of one gradient.
    epsilon, delta : float, default=None
        The privacy asked of all releases together.
    noise_multiplier : float, default=None
        In place of epsilon and delta.
    trust : {"local", "server"}, default="local"
        Whether nobody is trusted, or a server that adds the noise.

    Returns
    -------
    event : SelfComposedEvent
        k times a `GaussianEvent`.

    References
    ----------
    J. Dong, A. Roth, W. Su, JRSS-B 2022, Corollary 2 (exact, adaptive composition).

    Examples
    --------
    >>> event = gradient_event(100, 1.0, epsilon=1.0, delta=5e-5)
    >>> round(event.event.scale / 10, 2), event.event.sensitivity
    (6.71, 2.0)
    """
    sensitivity, relation = (clip, "null") if trust == "server" else (2 * clip, "replace")
    if noise_multiplier is None:
        # A part in 10^12 more, so that the k-fold composition rounds to the safe side.
        total = sensitivity / mu_from_epsilon(epsilon, delta) * (1 + 1e-12)
    else:
        total = clip * noise_multiplier
    release = GaussianEvent(np.sqrt(n_permutations) * total, sensitivity, relation)
    return SelfComposedEvent(release, n_permutations)


def own_shares(noise, n_permutations, noise_variance=None, gradient_variance=None):
    """Share of a party's own gradient in what a walk steps along, for every permutation.

    In permutation t a walk steps along ``W_t = X_tt A_t + (1 - X_tt) mean(A_1, ..., A_{t-1})``,
    where A are the party's releases: a post-processing W = X A of them, each row of X with the sum
    one.

    Parameters
    ----------
    noise : {"iid", "correlated", "optimal"}, callable or array-like
        "iid": one. "correlated": ``X_tt = 1 / t``, the running mean of all releases, whose noise
        has the variance ``k (C sigma)^2 / t``. "optimal": Proposition C.10, for gradients that vary
        with a known variance. A callable gives ``X_tt`` from (t, k); an array holds them.
    n_permutations : int
        Number of permutations, k.
    noise_variance : float or ndarray of shape (n_players,), default=None
        Of every coordinate of a release, S; for "optimal".
    gradient_variance : float, default=None
        Of every coordinate of a party's gradient over permutations, s; for "optimal".

    Returns
    -------
    shares : ndarray of shape (n_permutations,) or (n_permutations, n_players)
        ``X_tt``; the first is one.

    Raises
    ------
    ValueError
        If a schedule of one's own is no k numbers, not finite, or does not start at one.

    References
    ----------
    The paper of `GradientSemivalueValuer`, Section 5.2 and Proposition C.10 (its printed
    denominators are garbled: ``X_tt = (S + t s) / (t (S + s))``).

    Examples
    --------
    >>> own_shares("correlated", 4).round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    >>> own_shares("optimal", 3, 3.0, 1.0).round(2).tolist()
    [1.0, 0.62, 0.5]
    >>> own_shares(lambda t, k: 1.0 if t == 1 else 0.75 - 0.7 * t / k, 4).round(3).tolist()
    [1.0, 0.4, 0.225, 0.05]
    """
    t = np.arange(1, n_permutations + 1.0)
    if isinstance(noise, str):
        if noise == "iid":
            return np.ones(n_permutations)
        if noise == "correlated":
            return 1 / t
        total = np.asarray(noise_variance, dtype=np.float64)
        return optimal_share(t.reshape(-1, *[1] * total.ndim), total, gradient_variance)
    if callable(noise):
        noise = [noise(int(step), n_permutations) for step in t]
    shares = np.asarray(noise, dtype=np.float64)
    if shares.shape != (n_permutations,):
        raise ValueError(
            f"noise must give one share for each of {n_permutations} permutations. Got shape "
            f"{shares.shape}."
        )
    if not np.isfinite(shares).all() or shares[0] != 1:
        raise ValueError(
            "noise must give finite shares, the first of them 1: there is nothing to average with "
            f"yet. Got {shares[0]:g} first."
        )
    return shares


def optimal_share(t, noise_variance, gradient_variance):
    """``X_tt`` of Proposition C.10: (S + t s) / (t (S + s))."""
    total = noise_variance + gradient_variance
    return (noise_variance + t * gradient_variance) / (t * total)


def step_deviation(noise, deviation, n_permutations, skip):
    """Root mean square of the noise in what steps go along, over permutations that count.

    Parameters
    ----------
    noise : {"iid", "correlated", "optimal"}, callable or array-like
        Of `own_shares`; "optimal" is taken for "correlated".
    deviation : float
        Standard deviation of the noise of one release.
    n_permutations, skip : int
        Number of permutations, and of those that do not count.

    Returns
    -------
    deviation : float
        The standard deviation.

    Examples
    --------
    >>> round(step_deviation("correlated", 3.0, 100, 99), 3)
    0.3
    """
    if isinstance(noise, str) and noise == "iid":
        return float(deviation)
    shares = own_shares("correlated" if isinstance(noise, str) else noise, n_permutations)
    before = np.maximum(np.arange(n_permutations), 1)  # releases that share the rest alike
    variances = shares**2 + (1 - shares) ** 2 / before
    return float(deviation * np.sqrt(variances[skip:].mean()))


def gradient_report(
    event, delta, *, trust, unit, groups=False, trained_on_rows=False, noise_random_state=None
):
    """The report of a private fit."""
    whole = "row" if not groups else "party" if unit == "party" else "row of a party"
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "how many parties there are, and how many rows each has",
        "running times and error messages",
    ]
    if groups and unit == "example":
        not_protected.append("parties as wholes: the unit is one row of a party")
    assumptions = [
        "no party's row is also a validation point",
        "clip, learning rate, number of permutations, model and all other parameters were chosen "
        "without looking at the rows",
        "so was whatever prepared the columns (scaling, selection, embeddings)",
        "no row is held by two parties",
        "other releases on the same rows are accounted for together with this one (Ledger)",
    ]
    if trust == "server":
        assumptions.insert(0, "the server sees clipped gradients in the clear, and adds the noise")
    report = make_report(
        event,
        delta,
        notion="central" if trust == "server" else "local",
        unit=whole,
        protects=f"what a {whole} holds, in values_, in all perturbed gradients and in every model "
        "on the way",
        against="everybody but the server" if trust == "server" else "everybody, the server too",
        not_protected=not_protected,
        assumptions=assumptions,
        noise_random_state=noise_random_state,
    )
    if groups and unit == "example":
        noise = f"{report.noise}, on the sum of a party's clipped gradients, which is then averaged"
        report = replace(report, noise=noise)
    return report
