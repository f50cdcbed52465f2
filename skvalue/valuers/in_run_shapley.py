"""In-Run Data Shapley: what each row adds to the utility in the steps of a training.

Wang, Mittal, Song and Jia, "Data Shapley in One Training Run" (ICLR 2025).
"""

import time
from dataclasses import replace
from functools import lru_cache
from itertools import count
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from .._utils.checks import seed_of
from .._utils.parallel import tiles
from .._utils.sklearn import Interval, StrOptions
from ..base import (
    PRIVACY_CONSTRAINTS,
    BaseValuer,
    Capabilities,
    Result,
    warn_if_noise_exceeds,
)
from ..derivatives import (
    LinearRowModel,
    Run,
    Utility,
    descend,
    gradient_event,
    point_values,
    public_run_rate,
    shuffled_batches,
    value_rows,
)
from ..privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    Release,
    SelfComposedEvent,
    calibrate,
    make_report,
    poisson_sample,
    sentences,
)
from ._gradient_models import PublicUnits, check_model, public_units

# The task of each built-in model; None if it depends on the target.
_TASKS = {"auto": None, "softmax": "classification", "linear": "regression"}

_N_TIMED = 4  # steps that are timed
_N_ERROR_DRAWS = 24  # of noise, for standard errors: each costs as much as a run
_N_ROUGH_DRAWS = 4  # of noise, for a warning


@lru_cache(maxsize=32)  # of samples it takes seconds
def run_event(n_steps, clip, probability, epsilon, delta):
    """The releases of a run: noisy sums of clipped gradients, for replacing a row.

    Each of T adaptive sums of all rows has sensitivity ``2 clip``, as the gradient of a
    party has. Poisson samples are accounted for by privacy loss distributions.
    """
    if probability is None:
        return gradient_event(n_steps, clip, epsilon=epsilon, delta=delta)

    def event(scale):
        noise = GaussianEvent(scale * clip, clip, "null")
        sampled = PoissonSampledEvent(noise, probability, "replace")
        return SelfComposedEvent(sampled, n_steps)

    return calibrate(event, epsilon, delta)


def matched_noise(rng, n_draws, n_steps, n_parameters):
    """Standard normal noise (n_draws, n_steps, n_parameters) of an exact covariance.

    Values depend on the mean of the parameters over steps above all, in which the noise
    of step s counts ``n_steps - 1 - s`` times. Over the draws, this sum has its exact
    covariance, so that few draws give precise errors. None if there are fewer draws
    than parameters.
    """
    if n_draws <= n_parameters or n_steps < 2:
        return None
    noise = rng.standard_normal((n_draws, n_steps, n_parameters))
    counts = np.arange(n_steps - 1.0, -1.0, -1.0)
    total = counts @ counts
    sums = np.einsum("s,dsp->dp", counts, noise)
    sizes, directions = np.linalg.eigh(sums.T @ sums / (n_draws * total))
    matched = (sums @ directions / np.sqrt(sizes)) @ directions.T
    return noise + counts[:, None] * (matched - sums)[:, None] / total


def noise_errors(
    run,
    rows,
    points,
    values,
    *,
    noise_std,
    batch_size,
    sum_by_group,
    n_draws=_N_ERROR_DRAWS,
):
    """Standard errors of the private values of players, over noise and samples.

    Runs are repeated with other noise. The gradient of the rows is that of the released
    run, plus the change of the gradient of the validation points, which are public. The
    gradients of the points also say how much the sum over a secret sample of rows
    varies. All rows share one run, so that the changes of a player's rows are added
    before they are squared.
    """
    n_points = len(points)
    n_steps = len(run.thetas) - 1
    rng = np.random.default_rng(0)
    fraction = 1.0 if batch_size is None else batch_size / run.n
    sample_std = np.sqrt((1 - fraction) / (fraction * run.n * n_points))  # of a mean
    public_gradients = _public_gradients(run, points)

    squares = 0.0
    matched = matched_noise(rng, n_draws, n_steps, run.utility.model.n_parameters)
    for draw in range(n_draws):
        thetas = _redrawn_thetas(
            run,
            points,
            public_gradients,
            noise_std=noise_std / run.n,
            sample_std=sample_std,
            normals=None if matched is None else matched[draw],
            rng=rng,
        )
        redrawn = value_rows(replace(run, thetas=thetas), rows)
        squares = squares + sum_by_group(redrawn - values) ** 2
    return np.sqrt(squares / n_draws)


def _mean_gradient(run, points, theta):
    """Mean clipped gradient of the validation points at theta, (p,)."""
    model = run.utility.model
    no_directions = model.vectors(np.zeros((0, model.n_parameters)))
    total, _ = model.gradient_sum_and_products(theta, points, no_directions, run.clip)
    return total / len(points)


def _public_gradients(run, points):
    """Mean gradients of the validation points before every step, a list of (p,)."""
    model = run.utility.model
    gradients = []
    for steps in _slices_of_steps(run, points):
        thetas = model.vectors(np.stack(run.thetas[steps]))
        of_steps = [_mean_gradient(run, points, theta) for theta in thetas]
        gradients += model.arrays(of_steps)
    return gradients


def _slices_of_steps(run, points):
    """Slices of steps; on a GPU, what the steps of one need goes there at once."""
    n_steps = len(run.thetas) - 1
    return tiles(n_steps, run.utility.model.steps_at_a_time(len(points)))


def _root_of_covariance(gradients, noise_std, sample_std):
    """Root (p, p) of the covariance of noise and of a sample in a mean gradient.

    The sum over a sample varies as one of the gradients (n_points, p) of the points,
    each of which has a random weight.
    """
    squares, directions = np.linalg.eigh(gradients.T @ gradients)
    variances = noise_std**2 + sample_std**2 * np.maximum(squares, 0.0)
    return (directions * np.sqrt(variances)) @ directions.T


def _redrawn_thetas(
    run, points, public_gradients, *, noise_std, sample_std, normals, rng
):
    """Parameters of a run with other noise and samples, as `Run.thetas`.

    ``noise_std`` and ``sample_std`` are those of a mean gradient. ``normals`` (n_steps,
    p) are the draws of the noise, and of the sample with it; None: they come from the
    generator.
    """
    model = run.utility.model
    thetas = run.thetas[:1]
    are_together = normals is not None and sample_std > 0
    for steps in _slices_of_steps(run, points):
        # Draws of the noise, and of the sample, in the order of the steps.
        noises = []
        samples = []
        for step in range(steps.start, steps.stop):
            if normals is None:
                normal = rng.standard_normal(model.n_parameters)
            else:
                normal = normals[step]
            noises.append(normal if are_together else noise_std * normal)
            if sample_std and not are_together:
                samples.append(sample_std * rng.standard_normal(len(points)))
        noises = model.vectors(np.stack(noises))
        if samples:
            samples = model.vectors(np.stack(samples))
        released = model.vectors(np.stack(run.thetas[steps.start : steps.stop + 1]))
        publics = model.vectors(np.stack(public_gradients[steps]))

        theta = model.vectors(thetas[-1])
        redrawn = []
        for k in range(steps.stop - steps.start):
            change = 0.0
            if steps.start + k:
                change = _mean_gradient(run, points, theta) - publics[k]
            noise = noises[k]
            if sample_std:
                gradients = model.row_gradients(theta, points)
                gradients = model.clipped(gradients, run.clip)
            if are_together:
                root = _root_of_covariance(
                    *model.arrays([gradients]), noise_std, sample_std
                )
                noise = model.vectors(root @ normals[steps.start + k])
            elif sample_std:
                noise = noise + samples[k] @ gradients
            released_step = released[k + 1] - released[k]
            step = released_step - run.learning_rate * (change + noise)
            theta = theta + step
            redrawn.append(theta)
        thetas = thetas + model.arrays(redrawn)
    return thetas


class SplitRun(NamedTuple):
    """The run of a split.

    Parameters
    ----------
    run : Run
        The run; it holds no row.
    units : PublicUnits
        Units of its rows.
    """

    run: Run
    units: PublicUnits


class InRunShapleyValuer(BaseValuer):
    """In-Run Data Shapley: what each row adds to the utility in one training run.

    A model is trained once by gradient descent. In each step a row adds to the utility
    the product of its gradient and the gradient of the utility, times the length of the
    step: the Shapley value of the step's game to first order. The value of a row is the
    sum over steps. Values say what the rows did in this run, not what other coalitions
    would have learned.

    With `epsilon`, the model is trained by differentially private gradient descent:
    gradients are clipped, and the sum of each step has Gaussian noise. All parameters
    of the run are then public, and the value of a row is a function of them and of the
    row alone: all values together are jointly private, their number costs nothing, and
    unseen rows are valued at no cost.

    Parameters
    ----------
    model : {"auto", "softmax", "linear"} or torch.nn.Module, default="auto"
        The model to train: a softmax regression, a linear regression, or a torch
        module. "auto" is "softmax" for classes and "linear" for a continuous target.
    loss : callable, default=None
        Loss of a torch module, of outputs and targets; None is the cross-entropy for
        classes and the squared error for targets. Must be None for built-in models.
    order : {1, 2}, default=1
        Order of the expansion of the utility in each step. 2 adds half the product with
        the Hessian of the utility and the step.
    n_steps : int, default=10
        Number of steps. With `epsilon`, also the number of releases: the noise of each
        grows with its square root.
    batch_size : int or None, default=None
        Number of rows in each step; None takes all. With epsilon it is the expected
        size of a secret Poisson sample, and values are for the expected weight of a row
        in a step.
    learning_rate : float or "auto", default="auto"
        Length of the steps. "auto" trains on one half of the validation points and
        evaluates on the other, with as much noise: the smallest of seven rates from
        0.01 to 10 with at least nine tenths of the best gain of utility, of those at
        which values to first order sum to at most 1.25 times the gain. Validation
        points are public, so that this has no privacy cost.
    clip : float, "auto" or None, default="auto"
        Bound of the norm of the gradient of a row. "auto" is None, no bound, without
        epsilon, and 1.0 with it.
    standardize : bool, default=True
        Whether built-in models standardise the columns by the means and standard
        deviations of the validation points, and divide by the square root of the number
        of columns; continuous targets are standardised likewise.
    epsilon : float or None, default=None
        Privacy of the parameters of all steps together, for replacing a row. None adds
        no noise.
    delta : float, default=1e-5
        Delta of (epsilon, delta)-differential privacy.
    reader : {"curator"} or None, default=None
        "curator" allows `fit_transform` with epsilon.
    ledger : skvalue.privacy.Ledger, default=None
        Charged for all steps before the first noise is drawn.
    noise_random_state : int, default=None
        For tests only: a seed of the noise, which VOIDS the guarantee.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" uses `sklearn.utils.multiclass.type_of_target` of y, with
        epsilon of y_val.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Splits used when no validation set is passed. With epsilon a validation set is
        required.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device of a torch module. Built-in models run on the CPU.
    random_state : int, RandomState or None, default=None
        Seed of batches and of the initial parameters of torch modules. It never seeds
        the noise.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`, in units of the utility;
        higher is better. After a private fit they are for the curator only, see
        `values_for`.
    utility_, empty_utility_ : float
        Minus the mean loss on the validation points after the last step, and before the
        first. The values sum to their difference up to the error of the expansion.
    trajectory_ : ndarray of shape (n_steps + 1, n_parameters)
        Parameters before every step and after the last; needs X_val in `fit`. Public
        with epsilon.
    model_ : LogisticRegression, LinearRegression or torch.nn.Module
        The trained model, for rows in the units of X; needs X_val in `fit`. Public with
        epsilon.
    learning_rate_ : float
        Length of the steps.
    clip_ : float or None
        Bound of the norm of gradients.
    baseline_ : ndarray, as `values_`
        With epsilon: values along a run on the validation points, which cost nothing.
        The first step is the same. For the curator only.
    values_error_ : ndarray, as `values_`
        With epsilon: standard errors over the noise, of 24 simulated runs: for models
        of 24 parameters or more they have a standard error of 14 % themselves, of draws
        that all rows share. For the curator only. If noise exceeds the signal
        in values of validation points in this run, `fit` warns.
    privacy_ : skvalue.privacy.PrivacyReport
        With epsilon: the guarantee.
    validation_error_ : ndarray, as `values_`
        Standard errors over the sampling of the validation points; needs X_val in
        `fit`, and no epsilon.
    classes_ : ndarray of shape (n_classes,)
        Class labels, in classification; with epsilon those of y_val.
    groups_ : ndarray of shape (n_groups,)
        Group labels, if `groups` was passed. The value of a group is the sum of those
        of its rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has string column names.

    See Also
    --------
    GradientSemivalueValuer : Values of parties that send private gradients to anyone.
    InfluenceValuer : What happens to the trained model when a row is removed.

    References
    ----------
    J. T. Wang, P. Mittal, D. Song, R. Jia: "Data Shapley in One Training Run", ICLR
    2025, Theorems 3 and 4.

    J. Hsu, Z. Huang, A. Roth, T. Roughgarden, Z. S. Wu: "Private Matchings and
    Allocations", STOC 2014, Lemma 3 (the billboard lemma).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import InRunShapleyValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import noisy_label_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, test_size=200, stratify=y, random_state=0
    ... )
    >>> y, wrong = flip_labels(y, 0.2, random_state=0)
    >>> valuer = InRunShapleyValuer(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    >>> noisy_label_auc(valuer.values_, wrong) > 0.9
    True
    """

    _parameter_constraints: dict = {
        "model": "no_validation",
        "loss": [callable, None],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "clip": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "standardize": ["boolean"],
        **{
            name: rule
            for name, rule in PRIVACY_CONSTRAINTS.items()
            if name != "relation"
        },
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "device": [str],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model: object = "auto",
        *,
        loss=None,
        order=1,
        n_steps=10,
        batch_size=None,
        learning_rate: float | str = "auto",
        clip: float | str | None = "auto",
        standardize=True,
        epsilon=None,
        delta=1e-5,
        reader=None,
        ledger=None,
        noise_random_state=None,
        task="auto",
        cv: object = 5,
        device="auto",
        random_state=None,
    ):
        self.model = model
        self.loss = loss
        self.order = order
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.standardize = standardize
        self.epsilon = epsilon
        self.delta = delta
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state
        self.task = task
        self.cv = cv
        self.device = device
        self.random_state = random_state

    @property
    def baseline_(self):
        """Values along a run on the validation points; set by private fits.

        For the curator only.
        """
        return self._for_curator("baseline_")

    @property
    def values_error_(self):
        """Standard errors over the noise; set by private fits, for the curator."""
        return self._for_curator("values_error_")

    @property
    def _is_built_in(self):
        return isinstance(self.model, str)

    @property
    def _capabilities(self):
        task = self.task
        if self._is_built_in and _TASKS.get(self.model) is not None:
            task = _TASKS[self.model]
        return Capabilities(
            regression=True,
            task=task,
            allow_nd=not self._is_built_in,
            products=True,
            means=False,
        )

    # The fit --------------------------------------------------------------------------

    def _value(self, problem, run):
        clip = self._checked_clip(problem)
        release = None
        noise_std = 0.0
        if self._is_private:
            release = self._release(problem, clip)
            noise_std = release.noise.scale
        rate = self.learning_rate
        if rate == "auto":
            rate = self._public_rate(problem, clip, noise_std, run)
        rate = float(rate)

        # The ledger is charged before the first step.
        draw = None if release is None else release.source()
        split_runs, row_values = self._train(problem, clip, rate, draw, run)
        if not split_runs:
            return None

        curator = {}
        if release is not None:
            row_values[0], curator = self._private_values(
                problem, split_runs[0], noise_std, run
            )

        # Means over the splits that have a run.
        n_runs = len(split_runs)
        values = np.zeros(len(problem.y))
        for split, in_split in zip(problem.splits, row_values):
            values[split.players] += in_split
        empty_utility, utility = _mean_ends(split_runs)
        return Result(
            problem.sum_by_group(values / n_runs),
            float(utility),
            float(empty_utility),
            replace(problem, splits=problem.splits[:n_runs]),
            statistic=split_runs,
            attributes={
                "clip_": clip,
                "learning_rate_": rate,
                **self._public_attributes(problem, split_runs[0]),
            },
            release=release,
            curator=curator,
        )

    def _train(self, problem, clip, rate, draw, run):
        """Make the steps of a run in each split, with noise if there is a ``draw``.

        Returns lists: the `SplitRun` of each split that has a step, and the values
        (n_rows,) of its rows.
        """
        n_splits = len(problem.splits)
        seeds = np.random.SeedSequence(seed_of(self.random_state)).spawn(n_splits)
        split_runs = []
        row_values = []
        with run.steps(n_splits * self.n_steps, "steps made") as done:
            for split, seed in zip(problem.splits, seeds):
                rng = np.random.default_rng(seed)
                units = self._units(problem, split.points)
                utility = self._utility_on(split.points, units, problem.n_classes)
                n_rows = problem.n_rows(split)
                training = self._start_run(utility, n_rows, clip, rate, rng)
                split_runs.append(SplitRun(training, units))
                row_values.append(np.zeros(n_rows))

                X, y = units.standardize(*problem.rows(split))
                rows = utility.model.rows(X, y)
                batches = self._batches(n_rows, rng, draw)
                for batch, products in descend(
                    training, rows, batches, self.n_steps, draw
                ):
                    in_batch = slice(None) if batch is None else batch
                    row_values[-1][in_batch] += products
                    done()

        # A fit that was stopped may have begun a run without a step.
        if split_runs and not split_runs[-1].run.batches:
            split_runs.pop()
            row_values.pop()
        return split_runs, row_values

    def _start_run(self, utility, n_rows, clip, rate, rng):
        """A run on some number of rows, without steps."""
        start = utility.model.start(rng)
        return Run(utility, n_rows, clip, rate, self.order, thetas=[start])

    def _batches(self, n_rows, rng, draw):
        """Endless batches of rows: (rows, number of rows); private ones are secret."""
        if draw is not None and self.batch_size is not None:
            return secret_samples(n_rows, self.batch_size, draw.noise_random_state)
        return shuffled_batches(n_rows, self.batch_size, rng)

    def _checked_clip(self, problem):
        """The bound of gradients; refuses parameters that do not fit the problem."""
        n_rows = min(map(problem.n_rows, problem.splits))
        if self.batch_size is not None and self.batch_size > n_rows:
            raise ValueError(
                "batch_size must be at most the number of rows that are trained on, "
                f"{n_rows}. Got {self.batch_size}."
            )
        check_model(self, _TASKS)
        if self.clip == "auto":
            return 1.0 if self._is_private else None
        if self.clip is None and self._is_private:
            raise ValueError(
                "clip must be a number with epsilon, or 'auto': the noise is based on "
                "this bound of the gradients. Got None."
            )
        return None if self.clip is None else float(self.clip)

    def _units(self, problem, points):
        """The units of rows; torch modules take them as they are."""
        standardize = self._is_built_in and self.standardize
        return public_units(points, problem.n_classes, standardize)

    def _utility_on(self, points, units, n_classes):
        """The utility of the model at some validation points."""
        X, y = units.standardize(points.X, points.y)
        weights = points.weights / (points.weights.sum() or 1.0)
        if self._is_built_in:
            model = LinearRowModel(X.shape[1], n_classes)
            scale = units.target_scale**2
            return Utility(model, model.rows(X, y), weights, scale=scale)
        from ..derivatives import TorchRowModel

        model = TorchRowModel(
            self.model, self.loss, X, n_classes=n_classes, device=self.device
        )
        rows = model.rows(X, y, "y_val")
        model.check_transforms(rows)
        return Utility(model, rows, weights)

    def _public_rate(self, problem, clip, noise_std, run):
        """The rate, from runs on the validation points with as much noise."""
        split = problem.splits[0]
        points = split.points
        units = self._units(problem, points)
        n_summed = self.batch_size or problem.n_rows(split)
        X, y = units.standardize(points.X, points.y)

        def make_utility(numbers):
            return self._utility_on(points[numbers], units, problem.n_classes)

        # It may take longer than the run. Private fits and those of modules are not
        # announced before their loop.
        options = {}
        if self._is_built_in and not self._is_private:
            seconds = self._seconds_of_runs(problem, units, clip)
            options["progress"] = lambda *numbers: run.prepared(*numbers, seconds)
        return public_run_rate(
            make_utility,
            X,
            y,
            np.random.default_rng(0),
            n_steps=self.n_steps,
            clip=clip,
            noise_std=noise_std / n_summed,
            **options,
        )

    def _seconds_of_runs(self, problem, units, clip):
        """How long the steps of all splits take, by those of a short run."""
        split = problem.splits[0]
        n_rows = problem.n_rows(split)
        utility = self._utility_on(split.points, units, problem.n_classes)
        rows = utility.model.rows(*units.standardize(*problem.rows(split)))
        rng = np.random.default_rng(0)
        training = self._start_run(utility, n_rows, clip, 0.0, rng)
        batches = self._batches(n_rows, rng, draw=None)
        steps = descend(training, rows, batches, 1 + _N_TIMED)
        next(steps)  # touches memory for the first time
        start = time.perf_counter()
        for _ in steps:
            pass
        seconds = (time.perf_counter() - start) / _N_TIMED
        return len(problem.splits) * self.n_steps * seconds

    # Privacy --------------------------------------------------------------------------

    def _release(self, problem, clip):
        """The release of all steps of the run."""
        probability = None
        if self.batch_size is not None:
            probability = self.batch_size / len(problem.y)
        event = run_event(self.n_steps, clip, probability, self.epsilon, self.delta)
        not_protected = [
            "the value of a row from its own owner",
            sentences.PUBLIC_POINTS,
            "the number of rows, and the groups",
            sentences.RUNNING_TIMES,
        ]
        if problem.groups is not None:
            not_protected.append(sentences.GROUPS)
        report = make_report(
            event,
            self.delta,
            notion="joint",
            unit="row",
            protects="the data of a row, in trajectory_, model_, the values of all "
            "other rows and the values of unseen rows",
            against="anyone who sees these, and every other owner",
            not_protected=not_protected,
            assumptions=[
                "values_, values_error_ and baseline_ are read by the curator only, "
                "and each owner gets the entries of its own rows",
                "no private row is also a validation point",
                "clip, learning rate, number of steps, model and all other parameters "
                "were chosen without using the rows",
                sentences.PREPARATION,
                sentences.OTHER_RELEASES,
            ],
            noise_random_state=self.noise_random_state,
        )
        # The ceiling holds for those who see the run alone, and a value is also a
        # function of its own row.
        report = replace(report, detection_ceiling=None)
        label = "InRunShapleyValuer: gradients of a run"
        return Release(event, self.ledger, label, self.noise_random_state, report)

    def _private_values(self, problem, split_run, noise_std, run):
        """Values of the rows, and a dict of what else only the curator sees.

        A value depends on what is public and on its own row alone.
        """
        training, units = split_run
        (split,) = problem.splits
        points = split.points
        model = training.utility.model
        rows = model.rows(*units.standardize(*problem.rows(split)))
        public = model.rows(*units.standardize(points.X, points.y))
        values = value_rows(training, rows)

        # The baseline is along a run on the validation points, of as many steps and
        # from the same start.
        n_points = len(points)
        public_run = replace(
            training, n=n_points, thetas=training.thetas[:1], batches=[]
        )
        steps = descend(
            public_run,
            public,
            shuffled_batches(n_points, None, None),
            len(training.batches),
        )
        for _ in steps:  # fills the parameters and batches of the run
            pass
        baseline = value_rows(replace(training, thetas=public_run.thetas), rows)

        options = {
            "noise_std": noise_std * training.n / (self.batch_size or training.n),
            "batch_size": self.batch_size,
        }
        errors = noise_errors(
            training,
            rows,
            public,
            values,
            sum_by_group=problem.sum_by_group,
            **options,
        )

        # Values of public rows along the run, which is public, say as much of its noise
        # as those of the private rows.
        public_values = value_rows(training, public)
        public_errors = noise_errors(
            training,
            public,
            public,
            public_values,
            sum_by_group=np.asarray,
            n_draws=_N_ROUGH_DRAWS,
            **options,
        )
        warn_if_noise_exceeds(
            public_values,
            public_errors,
            "more rows, fewer steps or a larger epsilon have less noise",
            run.warn,
            what="the values of public points in this run",
        )
        curator = {"baseline_": problem.sum_by_group(baseline), "values_error_": errors}
        return values, curator

    def _public_attributes(self, problem, split_run):
        """`trajectory_` and `model_`, if there is one run."""
        if not problem.has_validation_set:
            return {}
        training, units = split_run
        theta = training.thetas[-1]
        if self._is_built_in:
            model = linear_estimator(theta, units, problem)
        else:
            model = training.utility.model.trained(theta)
        return {"trajectory_": np.array(training.thetas), "model_": model}

    # After the fit --------------------------------------------------------------------

    def _score_new(self, fitted, number, X, y):
        """A new row has the value that it would have in every step of the run."""
        training, units = fitted.statistic[number]
        n_classes = fitted.problem.n_classes
        model = training.utility.model
        if y is None:
            # Averaged over the labels that the trained model expects.
            X_new, _ = units.standardize(X, None)
            expected = model.probabilities(training.thetas[-1], X_new)
            if n_classes:
                by_label = [
                    self._score_new(fitted, number, X, np.full(len(X), code))
                    for code in range(n_classes)
                ]
                return (expected * np.array(by_label).T).sum(axis=1)
            y = expected * units.target_scale + units.target_center
        return value_rows(training, model.rows(*units.standardize(X, y)))

    def _values_at_points(self, fitted, number):
        """Values of the rows of a split at each point, see `point_values`."""
        problem = fitted.problem
        training, units = fitted.statistic[number]
        X, y = units.standardize(*problem.rows(problem.splits[number]))
        return point_values(training, training.utility.model.rows(X, y))

    def _point_values(self, fitted, number, players):
        tiles = [
            values[:, players].sum(axis=1)
            for _, values in self._values_at_points(fitted, number)
        ]
        return np.concatenate(tiles)

    def _point_moments(self, fitted):
        problem = fitted.problem
        weights = problem.splits[0].points.weights
        moments = np.zeros((2, problem.n_players))
        for tile, row_values in self._values_at_points(fitted, 0):
            values = np.array(
                [problem.sum_by_group(at_point) for at_point in row_values]
            )
            squares = weights[tile] ** 2
            moments += np.array([squares @ values, squares @ values**2])
        return moments


def _mean_ends(split_runs):
    """Mean utilities (2,) before the first step of runs and after the last."""
    ends = np.zeros(2)
    for training, _ in split_runs:
        start = training.thetas[0]
        end = training.thetas[-1]
        ends += training.utility.value(start), training.utility.value(end)
    return ends / len(split_runs)


def secret_samples(n, size, noise_random_state):
    """Endless Poisson samples of the rows, with their expected size."""
    for number in count():
        seed = None
        if noise_random_state is not None:
            # Neighbouring seeds share no samples.
            words = [noise_random_state % 2**64, number]
            seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        sample = poisson_sample(n, size / n, noise_random_state=seed)
        yield np.flatnonzero(sample), size


def linear_estimator(theta, units, problem):
    """The built-in model as an estimator of scikit-learn, in the units of X and y."""
    theta = theta.reshape(-1, problem.n_classes or 1)
    coef = theta[:-1].T
    intercept = theta[-1]
    if units.column_means is not None:
        coef = coef / units.column_scales
        intercept = intercept - coef @ units.column_means
    if not problem.n_classes:
        model = LinearRegression()
        model.coef_ = units.target_scale * coef[0]
        model.intercept_ = float(
            units.target_scale * intercept[0] + units.target_center
        )
    else:
        if problem.n_classes == 2:
            coef = coef[1:] - coef[:1]
            intercept = intercept[1:] - intercept[:1]
        model = LogisticRegression()
        model.coef_ = coef
        model.intercept_ = intercept
        model.classes_ = problem.classes
    for name, value in problem.columns.items():
        setattr(model, name, value)
    return model
