"""Noise on gradients: what a walk releases, what it costs, and how releases are averaged."""

from dataclasses import dataclass, replace

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
    adaptive ones too, noise of standard deviation ``sqrt(k) * clip * noise_multiplier`` is exactly
    mu-GDP with mu = sensitivity / (clip * noise_multiplier), whatever k.

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


@dataclass(frozen=True)
class GradientNoise:
    """How the gradients of the players of a walk are released, and how releases are averaged.

    Attributes
    ----------
    draw : callable
        ``draw(shape, stream)`` gives noise, of a stream's own, see `skvalue.privacy.noise_source`.
    noise_std : float
        Standard deviation of what `draw` gives.
    clip : float
        Bound of the norm of a gradient.
    factors : ndarray of shape (n_players,)
        What a player's noise is multiplied by: one over the number of its examples that are
        averaged.
    schedule : str, callable or array
        Of `own_fractions`.
    gradient_variance : float or None
        For "optimal"; None estimates it, from releases alone.
    """

    draw: object
    noise_std: float
    clip: float
    factors: np.ndarray
    schedule: object = "correlated"
    gradient_variance: float | None = None

    @property
    def averages(self):
        """Whether steps go along averages of releases."""
        return not (isinstance(self.schedule, str) and self.schedule == "iid")


def own_fractions(schedule, n_permutations, noise_variance=None, gradient_variance=None):
    """Weight of a party's own release in what a walk steps along, for every permutation.

    In permutation t a walk steps along ``W_t = X_tt A_t + (1 - X_tt) mean(A_1, ..., A_{t-1})``,
    where A are the party's releases: a post-processing W = X A of them, each row of X with the sum
    one.

    Parameters
    ----------
    schedule : {"iid", "correlated", "optimal"}, callable or array-like
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
    fractions : ndarray of shape (n_permutations,) or (n_permutations, n_players)
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
    >>> own_fractions("correlated", 4).round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    >>> own_fractions("optimal", 3, 3.0, 1.0).round(2).tolist()
    [1.0, 0.62, 0.5]
    >>> own_fractions(lambda t, k: 1.0 if t == 1 else 0.75 - 0.7 * t / k, 4).round(3).tolist()
    [1.0, 0.4, 0.225, 0.05]
    """
    t = np.arange(1, n_permutations + 1.0)
    if isinstance(schedule, str):
        if schedule == "iid":
            return np.ones(n_permutations)
        if schedule == "correlated":
            return 1 / t
        noise_variance = np.asarray(noise_variance, dtype=np.float64)
        t = t.reshape(-1, *[1] * noise_variance.ndim)
        return optimal_fraction(t, noise_variance, gradient_variance)
    if callable(schedule):
        schedule = [schedule(int(step), n_permutations) for step in t]
    fractions = np.array(schedule, dtype=np.float64)
    if fractions.shape != (n_permutations,):
        raise ValueError(
            f"noise must give one share for each of {n_permutations} permutations. Got shape "
            f"{fractions.shape}."
        )
    if not np.isfinite(fractions).all() or fractions[0] != 1:
        raise ValueError(
            "noise must give finite shares, the first of them 1: there is nothing to average with "
            f"yet. Got {fractions[0]:g} first."
        )
    return fractions


def optimal_fraction(t, noise_variance, gradient_variance):
    """``X_tt`` of Proposition C.10: (S + t s) / (t (S + s))."""
    total = noise_variance + gradient_variance
    return (noise_variance + t * gradient_variance) / (t * total)


def step_noise_std(schedule, noise_std, n_permutations, skip):
    """Root mean square of the noise in what steps go along, over permutations that count.

    Parameters
    ----------
    schedule : {"iid", "correlated", "optimal"}, callable or array-like
        Of `own_fractions`; "optimal" is taken for "correlated".
    noise_std : float
        Standard deviation of the noise of one release.
    n_permutations, skip : int
        Number of permutations, and of those that do not count.

    Returns
    -------
    noise_std : float
        The standard deviation.

    Examples
    --------
    >>> round(step_noise_std("correlated", 3.0, 100, 99), 3)
    0.3
    """
    if isinstance(schedule, str):
        if schedule == "iid":
            return float(noise_std)
        schedule = "correlated"
    fractions = own_fractions(schedule, n_permutations)
    before = np.maximum(np.arange(n_permutations), 1)  # releases that share the rest alike
    variances = fractions**2 + (1 - fractions) ** 2 / before
    return float(noise_std * np.sqrt(variances[skip:].mean()))


class RunningReleases:
    """Means of the players' releases so far, and what part of a step the newest one is."""

    def __init__(self, noise, n, p, n_permutations):
        self.averages = noise is not None and noise.averages
        self.past = np.zeros((n if self.averages else 0, p))
        self._n, self._p, self._squares, self._count = n, p, 0.0, 0
        self._fractions = np.ones((n_permutations, 1))
        if not self.averages:
            return
        schedule, self._fractions = noise.schedule, None
        self._noise_variance = (noise.noise_std * noise.factors) ** 2
        optimal = isinstance(schedule, str) and schedule == "optimal"
        if not optimal or noise.gradient_variance is not None:
            # Settled before a gradient is seen, so that W = X A is a post-processing of releases.
            self._fractions = own_fractions(
                schedule, n_permutations, self._noise_variance, noise.gradient_variance
            ).reshape(n_permutations, -1)
            # Rows of X then sum to one: a fraction, and the rest in equal parts.
            assert np.isfinite(self._fractions).all()
            assert (self._fractions[0] == 1).all()
            self._fractions.flags.writeable = False

    def fractions(self, t):
        """Weights of the own releases of all players in permutation t, from 0."""
        if self._fractions is not None:
            return np.full(self._n, self._fractions[t])
        if t == 0:
            return np.ones(self._n)
        # Of earlier releases alone, which are public.
        total = self._squares / max(self._count, 1)
        gradient_variance = max(total - self._noise_variance.mean(), 0.0)
        return optimal_fraction(t + 1, self._noise_variance, gradient_variance)

    def learn(self, t, spread):
        """Take note of the squared distances of permutation t's releases from those before."""
        if t and self.averages:
            self._squares += spread * t / (t + 1)
            self._count += self._n * self._p


def gradient_report(
    event, delta, *, trust, unit, groups=False, elsewhere=False, noise_random_state=None
):
    """The report of a private fit, or of a training that runs elsewhere."""
    whole = "row" if not groups else "party" if unit == "party" else "row of a party"
    not_protected = [
        "what the utility looks at, such as validation points: it must be public"
        if elsewhere
        else "the validation points X_val and y_val, which are public",
        "how many parties there are, what they are called, and how many rows each has",
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
    if elsewhere:
        assumptions.insert(0, "nothing of an update leaves but what this valuer made of it")
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
