"""Noise on gradients: the releases of a walk, their privacy cost, and their averages."""

from dataclasses import dataclass, replace

import numpy as np

from ..privacy import GaussianEvent, SelfComposedEvent, make_report, mu_from_epsilon

SCHEDULES = ("iid", "correlated", "optimal")


def gradient_event(
    n_permutations, clip, *, epsilon=None, delta=None, noise_multiplier=None, trust="local"
):
    """The releases of a party over k permutations, as k times a `GaussianEvent`.

    In each it releases the sum of its clipped gradients (one, with unit "party") with Gaussian
    noise. The sensitivity is ``2 clip`` for replacing the protected unit (trust "local"), ``clip``
    for relation "null" (trust "server"). Noise of standard deviation ``sqrt(k) * clip *
    noise_multiplier`` is exactly mu-GDP, mu = sensitivity / (clip * noise_multiplier), over k
    adaptive releases (J. Dong, A. Roth, W. Su, JRSS-B 2022, Corollary 2).
    """
    sensitivity, relation = (clip, "null") if trust == "server" else (2 * clip, "replace")
    if noise_multiplier is None:
        # Larger by a factor 1 + 1e-12, so that the k-fold composition rounds to the safe side.
        total = sensitivity / mu_from_epsilon(epsilon, delta) * (1 + 1e-12)
    else:
        total = clip * noise_multiplier
    release = GaussianEvent(np.sqrt(n_permutations) * total, sensitivity, relation)
    return SelfComposedEvent(release, n_permutations)


@dataclass(frozen=True)
class GradientNoise:
    """How the gradients of the players of a walk are released, and how releases are averaged."""

    draw: object  # ``draw(shape, stream)`` returns noise, see `skvalue.privacy.noise_source`
    noise_std: float  # of `draw`
    clip: float
    factors: np.ndarray  # of the noise of each player: one over the number of averaged examples
    schedule: object = "correlated"  # as in `own_fractions`
    gradient_variance: float | None = None  # for "optimal"; None estimates it from releases

    @property
    def averages(self):
        """Whether steps are along averages of releases."""
        return not (isinstance(self.schedule, str) and self.schedule == "iid")


def own_fractions(schedule, n_permutations, noise_variance=None, gradient_variance=None):
    """Weights ``X_tt`` of a party's newest release in the step of permutation t = 1..k.

    The step is along ``W_t = X_tt A_t + (1 - X_tt) mean(A_1, ..., A_{t-1})`` for the releases A of
    the party: a post-processing W = X A with row sums one. ``X_tt`` is 1 for "iid", ``1 / t`` for
    "correlated" (the running mean), and by Proposition C.10 for "optimal"; a callable returns it
    from (t, k). Shape (k,), or (k, n_players) for "optimal" with one noise variance per player.
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
            f"noise must have one weight for each of {n_permutations} permutations. Got shape "
            f"{fractions.shape}."
        )
    if not np.isfinite(fractions).all() or fractions[0] != 1:
        raise ValueError(
            "noise must have finite weights, the first of them 1, since there are no previous "
            f"releases. Got {fractions[0]:g} first."
        )
    return fractions


def optimal_fraction(t, noise_variance, gradient_variance):
    """``X_tt`` of Proposition C.10, (S + t s) / (t (S + s)); the printed denominators are wrong."""
    total = noise_variance + gradient_variance
    return (noise_variance + t * gradient_variance) / (t * total)


def step_noise_std(schedule, noise_std, n_permutations, skip):
    """Root mean square of the noise in the steps of the permutations after the first `skip`.

    ``noise_std`` is that of one release; the schedule "optimal" is treated as "correlated".
    """
    if isinstance(schedule, str):
        if schedule == "iid":
            return float(noise_std)
        schedule = "correlated"
    fractions = own_fractions(schedule, n_permutations)
    before = np.maximum(np.arange(n_permutations), 1)  # previous releases, of equal weights
    variances = fractions**2 + (1 - fractions) ** 2 / before
    return float(noise_std * np.sqrt(variances[skip:].mean()))


class RunningReleases:
    """Means of the players' previous releases, and the weights of the newest ones in steps."""

    def __init__(self, noise, n, p, n_permutations):
        self.averages = noise is not None and noise.averages
        self.past = np.zeros((n if self.averages else 0, p))
        self.used = []  # the fractions of every permutation so far, (n,) or (1,)
        self._n, self._p, self._squares, self._count = n, p, 0.0, 0
        self.noise_std = None if noise is None else noise.noise_std * noise.factors
        self._fractions = np.ones((n_permutations, 1))
        if not self.averages:
            return
        schedule, self._fractions = noise.schedule, None
        self._noise_variance = self.noise_std**2
        optimal = isinstance(schedule, str) and schedule == "optimal"
        if not optimal or noise.gradient_variance is not None:
            # Fixed before any gradient is computed, so that W = X A is a post-processing.
            self._fractions = own_fractions(
                schedule, n_permutations, self._noise_variance, noise.gradient_variance
            ).reshape(n_permutations, -1)
            # Rows of X sum to one: the weight of the newest release, the rest in equal parts.
            assert np.isfinite(self._fractions).all()
            assert (self._fractions[0] == 1).all()
            self._fractions.flags.writeable = False

    def fractions(self, t):
        """Weights of the newest releases of all players in permutation t, from 0."""
        if self._fractions is not None:
            found = self._fractions[t]
        elif t == 0:
            found = np.ones(1)
        else:  # estimated from previous releases only, which are public
            total = self._squares / max(self._count, 1)
            gradient_variance = max(total - self._noise_variance.mean(), 0.0)
            found = optimal_fraction(t + 1, self._noise_variance, gradient_variance)
        self.used.append(found)
        return np.full(self._n, found)

    def learn(self, t, scatter):
        """Add the squared distances of the releases of permutation t from the previous means."""
        if t and self.averages:
            self._squares += scatter * t / (t + 1)
            self._count += self._n * self._p


def gradient_report(
    event, delta, *, trust, unit, groups=False, elsewhere=False, noise_random_state=None
):
    """The privacy report of a fit, or of a training that runs elsewhere."""
    whole = "row" if not groups else "party" if unit == "party" else "row of a party"
    not_protected = [
        "the data that the utility uses, such as validation points: they must be public"
        if elsewhere
        else "the validation points X_val and y_val, which are public",
        "the number of parties, their names, and their numbers of rows",
        "running times and error messages",
    ]
    if groups and unit == "example":
        not_protected.append("parties as wholes: the unit is one row of a party")
    assumptions = [
        "no party's row is also a validation point",
        "clip, learning rate, number of permutations, model and all other parameters were chosen "
        "without using the rows",
        "so was the preparation of the columns (scaling, selection, embeddings)",
        "no row is held by two parties",
        "other releases on the same rows are accounted for together with this one (Ledger)",
    ]
    if elsewhere:
        assumptions.insert(0, "of an update, nothing but the output of this valuer is released")
    if trust == "server":
        assumptions.insert(0, "the server sees clipped gradients without noise and adds the noise")
    report = make_report(
        event,
        delta,
        notion="central" if trust == "server" else "local",
        unit=whole,
        protects=f"the data of a {whole}, in values_, in all perturbed gradients and in all models "
        "of the training",
        against="anyone except the server" if trust == "server" else "anyone, including the server",
        not_protected=not_protected,
        assumptions=assumptions,
        noise_random_state=noise_random_state,
    )
    if groups and unit == "example":
        noise = f"{report.noise}, on the sum of a party's clipped gradients, which is then averaged"
        report = replace(report, noise=noise)
    return report
