"""Noise on gradients: the releases of a walk, their privacy cost, their averages."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..privacy import (
    GaussianEvent,
    SelfComposedEvent,
    clipping_margin,
    make_report,
    mu_from_epsilon,
    sentences,
)

SCHEDULES = ("iid", "correlated")


def gradient_event(
    n_permutations,
    clip,
    *,
    epsilon=None,
    delta=None,
    noise_multiplier=None,
    trust="local",
):
    """The releases of a party over k permutations, as k times a `GaussianEvent`.

    In each it releases the sum of its clipped gradients (one, with unit "party") with
    Gaussian noise. The sensitivity is ``2 clip`` for replacing the protected unit
    (trust "local"), ``clip`` for relation "null" (trust "server"). Noise of standard
    deviation ``sqrt(k) * clip * noise_multiplier`` is exactly mu-GDP, mu = sensitivity
    / (clip * noise_multiplier), over k adaptive releases (J. Dong, A. Roth, W. Su,
    JRSS-B 2022, Corollary 2).
    """
    clip = float(clip)  # in float32, the noise could be rounded down
    if trust == "server":
        sensitivity = clip
        relation = "null"
    else:
        sensitivity = 2 * clip
        relation = "replace"
    if noise_multiplier is None:
        # Larger by a factor 1 + 1e-12, so that the k-fold composition rounds to the
        # safe side.
        noise_std = sensitivity / mu_from_epsilon(epsilon, delta) * (1 + 1e-12)
    else:
        noise_std = clip * float(noise_multiplier)
    release = GaussianEvent(
        math.sqrt(n_permutations) * noise_std, sensitivity, relation
    )
    return SelfComposedEvent(release, n_permutations)


def summed_bound(clip, n_rows, n_parameters):
    """Clipping bound with which a computed sum of rows changes by at most ``2 clip``.

    If a row is replaced; by at most ``clip``, if the row becomes zero. The relative
    rounding error of a sum of n numbers, in any order, is at most n times the machine
    epsilon, so that of the sum of n vectors of norm ``clip`` is at most ``n^2`` times.
    """
    eps = np.finfo(np.float64).eps
    max_rows = int(np.sqrt(0.5 / eps))
    if n_rows > max_rows:
        raise ValueError(
            f"X must have at most {max_rows:,} rows with clip: the rounding of a sum "
            f"of more gradients is not covered by any noise. Got {n_rows:,}."
        )
    return clip * (1 - clipping_margin(n_parameters) - n_rows**2 * eps)


@dataclass(frozen=True)
class GradientNoise:
    """How the gradients of the players of a walk are released and averaged.

    Parameters
    ----------
    draw : callable
        ``draw(shape, stream)`` returns noise, see `skvalue.privacy.noise_source`.
    factors : ndarray of shape (n_players,)
        Factors of the noise of each player: one over the number of averaged examples.
    schedule : str, callable or array-like, default="correlated"
        As in `newest_weights`.
    """

    draw: object
    factors: np.ndarray
    schedule: object = "correlated"

    @property
    def noise_std(self):
        """Standard deviations of the noise of the players."""
        return self.draw.scale * self.factors

    @property
    def averages(self):
        """Whether steps are along averages of releases."""
        return not is_named(self.schedule, "iid")


def is_named(schedule, name):
    """Whether a schedule is this name, not an array."""
    return isinstance(schedule, str) and schedule == name


def newest_weights(schedule, n_permutations):
    """Weights (k,) of a party's newest release in the steps of permutations t = 1..k.

    The step is along ``W_t = w_t A_t + (1 - w_t) mean(A_1, ..., A_{t-1})`` for the
    releases A of the party: a post-processing W = X A with row sums one, which is fixed
    before any gradient is computed. The weight is 1 for "iid", ``1 / t`` for
    "correlated" (the running mean), and ``0.75 - 0.7 t / k`` after the first for
    "recent" (the paper of `FederatedSemivalueValuer`, Appendix D.2); a callable returns
    it from (t, k).
    """
    t = np.arange(1, n_permutations + 1.0)
    if isinstance(schedule, str):
        by_name = {
            "iid": t**0,
            "correlated": 1 / t,
            "recent": 0.75 - 0.7 * t / n_permutations,
        }
        return np.append(1.0, by_name[schedule][1:])
    if callable(schedule):
        schedule = [schedule(int(step), n_permutations) for step in t]
    weights = np.array(schedule, dtype=np.float64)
    if weights.shape != (n_permutations,):
        raise ValueError(
            f"noise must have one weight for each of {n_permutations} permutations. "
            f"Got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or weights[0] != 1:
        raise ValueError(
            "noise must have finite weights, the first of them 1, since there are no "
            f"previous releases. Got {weights[0]:g} first."
        )
    return weights


def optimal_weights(n_permutations, noise_variance, gradient_variance):
    """Weights (k,) of the newest release, as `newest_weights`, of least squared error.

    ``(S + t s) / (t (S + s))`` for noise of variance S per coordinate of a release and
    gradients whose coordinates vary over permutations with variance s: the minimum of
    the expected squared distance of ``W_t`` from the gradient of permutation t.
    Proposition 5.3 and C.10 of the paper, whose printed denominators are garbled. It
    is the running mean for s = 0, and the newest release alone for large s.

    >>> optimal_weights(4, noise_variance=1.0, gradient_variance=0.0).tolist()
    [1.0, 0.5, 0.3333333333333333, 0.25]
    """
    t = np.arange(1, n_permutations + 1.0)
    total = noise_variance + gradient_variance
    weights = (noise_variance + t * gradient_variance) / (t * total)
    weights[0] = 1.0
    return weights


def step_noise_std(schedule, noise_std, n_permutations, skip):
    """Root mean square noise in the steps of the permutations after the first `skip`.

    ``noise_std`` is that of one release.
    """
    weights = newest_weights(schedule, n_permutations)
    n_previous = np.maximum(np.arange(n_permutations), 1)  # releases of equal weights
    variances = weights**2 + (1 - weights) ** 2 / n_previous
    return float(noise_std * np.sqrt(variances[skip:].mean()))


def gradient_report(
    event,
    delta,
    *,
    trust,
    unit,
    groups=False,
    elsewhere=False,
    by_rows=False,
    noise_random_state=None,
):
    """The privacy report of a fit, or of a training that runs elsewhere.

    ``by_rows`` says that steps are weighted by numbers of rows.
    """
    protected = "row"
    if groups:
        protected = "party" if unit == "party" else "row of a party"

    points = sentences.PUBLIC_POINTS
    if elsewhere:
        points = (
            "the data that the utility uses, such as validation points: they must be "
            "public"
        )
    not_protected = [
        points,
        "the number of parties, their names, and their numbers of rows",
        sentences.RUNNING_TIMES,
    ]
    if groups and unit == "example":
        not_protected.append("parties as wholes: the unit is one row of a party")

    assumptions = [
        "no party's row is also a validation point",
        "clip, learning rate, number of permutations, model and all other parameters "
        "were chosen without using the rows",
        sentences.PREPARATION,
        "no row is held by two parties",
        sentences.OTHER_RELEASES,
    ]
    if by_rows and (groups or elsewhere):
        assumptions.append(
            "the number of rows of a party, by which its steps are weighted, is "
            "public: the party declares it, and no noise hides it"
        )
    if elsewhere:
        assumptions.insert(
            0, "of an update, nothing but the output of this valuer is released"
        )
    if trust == "server":
        assumptions.insert(
            0, "the server sees clipped gradients without noise and adds the noise"
        )

    notion = "local"
    against = "anyone, including the server"
    if trust == "server":
        notion = "central"
        against = "anyone except the server"
    report = make_report(
        event,
        delta,
        notion=notion,
        unit=protected,
        protects=f"the data of a {protected}, in values_, in all perturbed gradients "
        "and in all models of the training",
        against=against,
        not_protected=not_protected,
        assumptions=assumptions,
        noise_random_state=noise_random_state,
    )
    if groups and unit == "example":
        noise = (
            f"{report.noise}, on the sum of a party's clipped gradients, which is then "
            "averaged"
        )
        report = replace(report, noise=noise)
    return report
