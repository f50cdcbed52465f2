"""A run of gradient descent, and what each row adds to the utility in its steps.

A step from theta along the clipped gradients g_j of the rows B is ``theta - eta / |B|
sum_j g_j``. To first order the utility increases by ``-eta / |B| sum_j <g_j, grad
U(theta)>``: row j adds its term, the Shapley value of the game of the step. To second
order it adds ``-eta / |B| <g_j, grad U + H d / 2>``, for the step d and the Hessian H
of the utility (J. T. Wang, P. Mittal, D. Song, R. Jia: "Data Shapley in One Training
Run", ICLR 2025, Theorems 3 and 4).
"""

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count, islice, repeat

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from ._noise import summed_bound
from ._public import smallest_rate
from ._row_models import Utility

RUN_RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_BLOCK = 2**21  # numbers in a block
_REPEATS = 3

# Largest sum of values to first order over the gain of utility.
_MAX_RATIO = 1.25


@dataclass(eq=False)
class Run:
    """A run so far, which `descend` extends. It holds no row.

    Parameters
    ----------
    utility : Utility
        What the rows are valued by.
    n : int
        Number of rows.
    clip : float or None
        Norm to which gradients are clipped.
    learning_rate : float
        Factor of the steps.
    order : {1, 2}
        Order of the values.
    thetas : list of ndarray of shape (p,)
        Parameters before every step and after the last.
    batches : list
        Rows of each step; None: all of them, or a sample that is secret.
    """

    utility: Utility
    n: int
    clip: float | None
    learning_rate: float
    order: int
    thetas: list
    batches: list = field(default_factory=list)

    @property
    def max_norm(self):
        """Bound to which gradients are clipped, see `summed_bound`."""
        if self.clip is None:
            return None
        return summed_bound(self.clip, self.n, self.utility.model.n_parameters)


def descend(run, rows, batches, n_steps, draw=None):
    """Make the steps of a run; after each, yield the batch and its rows' products.

    ``rows`` are those of the model. ``batches`` yields indices of rows, or None for
    all. With ``draw``, noise is added to the sum of clipped gradients of each step,
    which is divided by the public size of `batches`. On a GPU some steps are taken
    before the first of them is yielded.
    """
    n_at_a_time = run.utility.model.steps_at_a_time(len(rows))
    for steps in tiles(n_steps, n_at_a_time):
        drawn = list(islice(batches, steps.stop - steps.start))
        with run.utility.model.taking_steps():
            taken = _take_steps(run, rows, drawn, range(steps.start, steps.stop), draw)
        for t, (batch, size), theta, products in zip(count(steps.start), drawn, *taken):
            if not np.isfinite(theta).all():
                raise ValueError(
                    "learning_rate must be smaller: the parameters diverged in step "
                    f"{t}. Got {run.learning_rate:g}."
                )
            run.thetas.append(theta)
            # Samples of a private run are secret.
            run.batches.append(batch if draw is None else None)
            yield batch, -run.learning_rate / size * products[0]


def _take_steps(run, rows, batches, steps, draw):
    """The steps of a run with some numbers, without an end in between.

    ``batches`` has an index of rows, or None, and a size for each. Returns the
    parameters after each step, and the products of the rows of each batch, as arrays.
    """
    model = run.utility.model
    utility = run.utility.on_device()
    max_norm = run.max_norm
    theta = model.vectors(run.thetas[-1])
    noise = None
    if draw is not None:
        noise = np.stack([draw((1, model.n_parameters), (t,))[0] for t in steps])
        noise = model.vectors(noise)
    is_secret = draw is not None and batches[0][0] is not None

    thetas = []
    products = []
    indices = [batch for batch, _ in batches]
    for number, batch_rows in enumerate(model.batches(rows, indices, is_secret)):
        _, size = batches[number]
        direction = utility.gradient(theta)[None]
        total, of_batch = model.gradient_sum_and_products(
            theta, batch_rows, direction, max_norm, is_secret
        )
        if draw is not None:
            total = model.noisy(total, noise[number], draw.scale)
        step = -run.learning_rate / size * total
        if run.order == 2:
            # To second order, products are with the gradient in the middle of the step.
            direction = utility.gradient(theta, step)[None]
            _, of_batch = model.gradient_sum_and_products(
                theta, batch_rows, direction, max_norm
            )
        theta = theta + step
        thetas.append(theta)
        products.append(of_batch)
    n_steps = len(thetas)
    results = model.arrays(thetas + products)
    return results[:n_steps], results[n_steps:]


def value_rows(run, rows):
    """Values of rows along a run; each is in every step, with weight ``1 / run.n``."""
    model = run.utility.model
    utility = run.utility.on_device()
    values = model.vectors(np.zeros(len(rows)))
    max_norm = run.max_norm
    n_steps = len(run.thetas) - 1
    for steps in tiles(n_steps, model.steps_at_a_time(0)):
        thetas = model.vectors(np.stack(run.thetas[steps.start : steps.stop + 1]))
        with model.taking_steps():
            for t in range(steps.stop - steps.start):
                step = None if run.order == 1 else thetas[t + 1] - thetas[t]
                direction = utility.gradient(thetas[t], step)[None]
                _, products = model.gradient_sum_and_products(
                    thetas[t], rows, direction, max_norm
                )
                values = values - run.learning_rate / run.n * products[0]
    return model.arrays([values])[0]


def point_values(run, rows):
    """Yield slices of validation points and the values (k, n) of rows at each."""
    utility = run.utility
    model = utility.model
    max_norm = run.max_norm
    n_steps = len(run.batches)
    size = max(1, _BLOCK // max(model.n_parameters, run.n))
    for points in tiles(len(utility.points), size):
        n_points = points.stop - points.start
        values = np.zeros((n_points, run.n))
        n_at_a_time = model.steps_at_a_time(n_points * run.n)
        for steps in tiles(n_steps, n_at_a_time):
            thetas = model.vectors(np.stack(run.thetas[steps.start : steps.stop + 1]))
            batches = run.batches[steps]
            products = []
            with model.taking_steps():
                for t, batch_rows in enumerate(model.batches(rows, batches)):
                    step = None if run.order == 1 else thetas[t + 1] - thetas[t]
                    directions = utility.point_gradients(thetas[t], points, step)
                    _, of_step = model.gradient_sum_and_products(
                        thetas[t], batch_rows, directions, max_norm
                    )
                    products.append(of_step)
            for batch, of_step in zip(batches, model.arrays(products)):
                places = slice(None) if batch is None else batch
                values[:, places] -= run.learning_rate / of_step.shape[1] * of_step
        yield points, values


def shuffled_batches(n, size, rng):
    """Endless batches of one epoch after the other: (rows, number of rows)."""
    if size is None or size >= n:
        yield from repeat((None, n))
    while True:
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            yield np.sort(order[start : start + size]), size


def public_run_rate(
    make_utility,
    X,
    y,
    rng,
    *,
    n_steps,
    clip,
    noise_std,
    progress=lambda n_done, n_runs: None,
):
    """Learning rate of a run, from runs on validation points (X, y), which are public.

    ``make_utility(points)`` evaluates on those points; the run is on the others, with
    noise of standard deviation ``noise_std`` on the mean gradient. The result is the
    smallest of `RUN_RATES` with at least nine tenths of the best gain of utility, among
    those at which values to first order sum to at most 1.25 times the gain: of larger
    rates values say little.

    ``progress(n_done, n_runs)`` is called before the first run and after each.
    """
    n_rates = len(RUN_RATES)
    gains = np.zeros(n_rates)
    sums = np.zeros(n_rates)
    n = len(y)
    n_runs = _REPEATS * n_rates
    progress(0, n_runs)
    for repeat_number in range(_REPEATS):
        order = rng.permutation(n)
        train = np.sort(order[: (n + 1) // 2])
        test = np.sort(order[n // 2 :])
        utility = make_utility(test)
        rows = utility.model.rows(X[train], y[train])
        theta = utility.model.start(rng)
        # The same noise for all rates.
        noise = _Noise(rng, noise_std, (n_steps, len(theta)))
        for number, rate in enumerate(RUN_RATES):
            with np.errstate(over="ignore", invalid="ignore"):
                run = Run(utility, len(rows), clip, rate, 1, [theta])
                gain, total = _gain_and_sum(run, rows, noise)
            gains[number] += gain
            sums[number] += total
            progress(repeat_number * n_rates + number + 1, n_runs)
    usable = np.isfinite(gains) & (sums <= _MAX_RATIO * gains)
    return smallest_rate(RUN_RATES, np.where(usable, gains, -np.inf), 0.9)


class _Noise:
    """Normal noise (n_steps, p) of the steps of a run, the same in each run.

    The generator goes on behind the noise. If it does not fit into a quarter of
    scikit-learn's `working_memory`, it is drawn again, block by block, each time.
    """

    def __init__(self, rng, std, shape):
        self.std = std
        self.n_steps, self.n_parameters = shape
        room = int(get_config()["working_memory"] * 2**18 // (8 * self.n_parameters))
        self.steps_in_memory = max(1, room)
        self.values = None
        if self.n_steps <= self.steps_in_memory:
            self.values = std * rng.standard_normal(shape)
            return
        self._rng = deepcopy(rng)
        for steps in tiles(self.n_steps, self.steps_in_memory):
            rng.standard_normal((steps.stop - steps.start, self.n_parameters))

    def blocks(self, n_at_a_time):
        """Yield the noise of at most ``n_at_a_time`` steps after the other."""
        if self.values is not None:
            for steps in tiles(self.n_steps, n_at_a_time):
                yield self.values[steps]
            return
        rng = deepcopy(self._rng)
        for steps in tiles(self.n_steps, min(n_at_a_time, self.steps_in_memory)):
            yield self.std * rng.standard_normal(
                (steps.stop - steps.start, self.n_parameters)
            )


def _gain_and_sum(run, rows, noise):
    """Gain of utility in a run on public rows, and the sum of first-order values.

    ``noise``, a `_Noise`, is added to the mean gradients.
    """
    model = run.utility.model
    utility = run.utility.on_device()
    max_norm = run.max_norm
    (start,) = run.thetas
    no_directions = model.vectors(np.zeros((0, len(start))))
    theta = model.vectors(start)
    total = model.vectors(np.zeros(1))
    for of_steps in noise.blocks(model.steps_at_a_time(0)):
        for of_step in model.vectors(of_steps):
            gradient, _ = model.gradient_sum_and_products(
                theta, rows, no_directions, max_norm
            )
            step = -run.learning_rate * (gradient / run.n + of_step)
            total = total + utility.gradient(theta) @ step
            theta = theta + step
    end, total = model.arrays([theta, total])
    return run.utility.value(end) - run.utility.value(start), float(total[0])
