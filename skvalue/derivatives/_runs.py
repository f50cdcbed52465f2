"""A run of gradient descent, and what each row adds to the utility in its steps.

A step from theta along the clipped gradients g_j of the rows B is ``theta - eta / |B|
sum_j g_j``. To first order the utility increases by ``-eta / |B| sum_j <g_j, grad
U(theta)>``: row j adds its term, the Shapley value of the game of the step. To second
order it adds ``-eta / |B| <g_j, grad U + H d / 2>``, for the step d and the Hessian H
of the utility (J. T. Wang, P. Mittal, D. Song, R. Jia: "Data Shapley in One Training
Run", ICLR 2025, Theorems 3 and 4).
"""

from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from .._utils.parallel import tiles
from ..privacy import clip_and_noise, clipping_margin
from ._public import smallest_rate
from ._row_models import Utility

RUN_RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_BLOCK = 2**21  # numbers in a block
_REPEATS = 3
_MOST = 1.25  # largest sum of values to first order over the gain of utility


@dataclass(eq=False)
class Run:
    """A run so far, which `descend` extends. It holds no row."""

    utility: Utility
    n: int  # number of rows
    clip: float | None
    learning_rate: float
    order: int
    thetas: list  # parameters (p,) before every step and after the last
    batches: list = field(
        default_factory=list
    )  # rows of each step; None: all, or secret

    @property
    def max_norm(self):
        """Bound to clip to, so that the computed sum of gradients changes by at most
        ``2 clip``.

        The relative rounding error of a sum of n numbers, in any order, is at most n
        times the machine epsilon, so that of the sum of n vectors of norm ``clip`` is
        at most ``n^2`` times.
        """
        if self.clip is None:
            return None
        n, eps = self.n, np.finfo(np.float64).eps
        if n > (most := int(np.sqrt(0.5 / eps))):
            raise ValueError(
                f"X must have at most {most:,} rows with clip: the rounding of a sum of more "
                f"gradients is not covered by any noise. Got {n:,}."
            )
        return self.clip * (
            1 - clipping_margin(self.utility.model.n_parameters) - n**2 * eps
        )

    def direction(self, t):
        """The step t, if it enters values (order 2)."""
        return self.thetas[t + 1] - self.thetas[t] if self.order == 2 else None


def descend(run, rows, batches, n_steps, draw=None):
    """Make the steps of a run; after each, yield the batch and the products of its
    rows.

    ``rows`` are those of the model. ``batches`` yields indices of rows, or None for
    all. With ``draw``, noise is added to the sum of clipped gradients of each step,
    which is divided by the public size of `batches`.
    """
    utility, model, max_norm = run.utility, run.utility.model, run.max_norm
    for t, (batch, size) in zip(range(n_steps), batches):
        theta, some = run.thetas[t], rows if batch is None else rows[batch]
        direction = utility.gradient(theta)[None]
        total, products = model.gradient_sum_and_products(
            theta, some, direction, max_norm
        )
        if draw is not None:
            noise = draw((1, len(total)), (t,))
            total = clip_and_noise(total[None], None, noise, draw.scale)[0]
        step = -run.learning_rate / size * total
        if not np.isfinite(step).all():
            raise ValueError(
                f"learning_rate must be smaller: the parameters diverged in step {t}. Got "
                f"{run.learning_rate:g}."
            )
        if run.order == 2:
            direction = utility.gradient(theta, step)[None]
            products = model.gradient_sum_and_products(
                theta, some, direction, max_norm
            )[1]
        run.thetas.append(theta + step)
        run.batches.append(
            batch if draw is None else None
        )  # samples of a private run are secret
        yield batch, -run.learning_rate / size * products[0]


def value_rows(run, rows):
    """Values of rows along a run in which each is in every step, with weight ``1 /
    run.n``."""
    utility, model, values = run.utility, run.utility.model, np.zeros(len(rows))
    for t, theta in enumerate(run.thetas[:-1]):
        direction = utility.gradient(theta, run.direction(t))[None]
        products = model.gradient_sum_and_products(
            theta, rows, direction, run.max_norm
        )[1]
        values -= run.learning_rate / run.n * products[0]
    return values


def point_values(run, rows):
    """Yield a slice of the validation points and the values of the run's rows at each,
    (k, n)."""
    utility, model, n = run.utility, run.utility.model, run.n
    for part in tiles(
        len(utility.points), max(1, _BLOCK // max(model.n_parameters, n))
    ):
        values = np.zeros((part.stop - part.start, n))
        for t, (theta, batch) in enumerate(zip(run.thetas, run.batches)):
            directions = utility.point_gradients(theta, part, run.direction(t))
            some = rows if batch is None else rows[batch]
            where = slice(None) if batch is None else batch
            products = model.gradient_sum_and_products(
                theta, some, directions, run.max_norm
            )[1]
            values[:, where] -= run.learning_rate / products.shape[1] * products
        yield part, values


def shuffled_batches(n, size, rng):
    """Endless batches of an epoch after the other: (rows, number of rows)."""
    if size is None or size >= n:
        yield from repeat((None, n))
    while True:
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            yield np.sort(order[start : start + size]), size


def public_run_rate(make_utility, X, y, rng, *, n_steps, clip, noise_std):
    """Learning rate of a run, from runs on validation points (X, y), which are public.

    ``make_utility(part)`` evaluates on a part of the points; the run is on the others,
    with noise of standard deviation ``noise_std`` on the mean gradient. The result is
    the smallest of `RUN_RATES` with at least nine tenths of the best gain of utility,
    among those at which values to first order sum to at most 1.25 times the gain: of
    larger rates values say little.
    """
    gains, sums, n = np.zeros(len(RUN_RATES)), np.zeros(len(RUN_RATES)), len(y)
    for _ in range(_REPEATS):
        order = rng.permutation(n)
        train, test = np.sort(order[: (n + 1) // 2]), np.sort(order[n // 2 :])
        utility = make_utility(test)
        rows, theta = utility.model.rows(X[train], y[train]), utility.model.start(rng)
        noise = noise_std * rng.standard_normal((n_steps, len(theta)))
        for number, rate in enumerate(RUN_RATES):
            with np.errstate(over="ignore", invalid="ignore"):
                run = Run(utility, len(rows), clip, rate, 1, [theta])
                found = _rehearsal(run, rows, noise)
            gains[number], sums[number] = [gains[number], sums[number]] + found
    usable = np.isfinite(gains) & (sums <= _MOST * gains)
    return smallest_rate(RUN_RATES, np.where(usable, gains, -np.inf), 0.9)


def _rehearsal(run, rows, noise):
    """Gain of utility in a run on public rows, and the sum of the values to first
    order."""
    utility, model, max_norm = run.utility, run.utility.model, run.max_norm
    (theta,), total = run.thetas, 0.0
    none, empty = np.zeros((0, len(theta))), utility.value(theta)
    for extra in noise:
        mean = model.gradient_sum_and_products(theta, rows, none, max_norm)[0] / run.n
        step = -run.learning_rate * (mean + extra)
        total += utility.gradient(theta) @ step
        theta = theta + step
    return np.array([utility.value(theta) - empty, total])
