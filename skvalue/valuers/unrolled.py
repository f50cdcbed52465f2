"""Unrolled values: derivatives of a utility by the rows' weights, through training."""

from itertools import chain
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from .._utils.checks import seed_of
from .._utils.sklearn import Interval, StrOptions, in_arrays
from ..base import BaseInSampleValuer, Capabilities, Result
from ..derivatives import LinearRowModel, Utility
from ..derivatives.optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from ..derivatives.unrolled import draw_batches, train, unrolled_derivatives
from ..exceptions import ImpreciseValuesWarning
from ._gradient_models import check_model

_EPS = 0.01  # of the model "auto", whose columns are standardised
_TORCH_EPS = 1e-8  # of torch modules, as in torch
_MAX_RATIO = 10  # of a value to the effect of a removal; larger ones are reported
_ROUNDING = 1e-6  # relative, of utilities of modules of float32


class LargestValue(NamedTuple):
    """The largest value of a training, and what the removal of its row does.

    Parameters
    ----------
    row : int
        Number of the row.
    value : float
        Its value.
    effect : float
        Decrease of the utility in a training without the row.
    rounding : float
        Bound of the rounding error of the effect.
    """

    row: int
    value: float
    effect: float
    rounding: float

    @property
    def is_far(self):
        """Whether the value has another sign than the effect, or is far larger."""
        if abs(self.value) <= self.rounding:
            return False
        ratio = self.value / (self.effect or np.nan)
        return not 0 < ratio <= _MAX_RATIO


class TrainingResult(NamedTuple):
    """What one training gives.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Derivatives of the utility by the weights of the rows.
    utility, empty_utility : float
        Utilities of the trained model, and of its start.
    effect : float
        Decrease of the utility in a training without the row of the largest value.
    """

    values: np.ndarray
    utility: float
    empty_utility: float
    effect: float


class RunResult(NamedTuple):
    """What a run gives: means over the trainings of its splits.

    Parameters
    ----------
    values : ndarray of shape (n_players,)
        Values of the players.
    utility, empty_utility : float
        Utilities of the trained models, and of their starts.
    largest : list of LargestValue
        The largest value of each training.
    """

    values: np.ndarray
    utility: float
    empty_utility: float
    largest: list


class UnrolledValuer(BaseInSampleValuer):
    """Unrolled values: what a network's training run would lose without each row.

    The model is trained by gradient descent in minibatches, with a weight of one for
    the loss of each row. The value of a row is the derivative of the utility of the
    trained model (minus its mean loss at the validation points) by this weight: to
    first order, the decrease of the utility when the row is removed. It is exact:
    reverse mode goes back through all steps of the training, for all rows in one pass.
    Values are no semivalues, and do not sum to ``utility_ - empty_utility_``. A row has
    a value only as part of the training, so there is no `transform`.

    Parameters
    ----------
    model : "auto" or torch.nn.Module, default="auto"
        The model to train: a torch module, or "auto" for a softmax regression, or a
        linear regression for continuous targets. "auto" standardises columns and
        targets by the rows, and divides by the square root of the number of columns;
        that counts as fixed. A torch module is trained on raw rows, in evaluation mode.
    loss : callable, default=None
        Loss of a torch module, of outputs and targets; None is the cross-entropy for
        classes and the squared error for targets. It is the loss at the validation
        points too.
    start : {"auto", "given", "random"}, default="auto"
        Start of a torch module in each run: its parameters ("given"), or new ones of
        its layers' `reset_parameters` ("random"). "auto" is "given" for a module that
        is partly frozen or has layers without that method, else "random".
    optimizer : {"sgd", "adamw"}, default="sgd"
        The steps: gradient descent with momentum, or AdamW.
    learning_rate : float, default=0.05
        Length of the steps.
    momentum : float, default=0.9
        Momentum of "sgd"; in "adamw" the decay rate of the mean gradient (that of the
        mean squared gradient is 0.999).
    weight_decay : float, default=0.0
        L2 penalty of "sgd", decoupled weight decay of "adamw", as in torch.
    eps : float or "auto", default="auto"
        Added to the mean squared gradient of "adamw" under its root. Steps are
        proportional to mean gradients that are smaller than the root of `eps`: a
        smaller `eps` amplifies these, and what removals do is then not of first order.
        "auto" is 0.01 for the model "auto", whose columns are standardised, and 1e-8,
        as in torch, for torch modules.
    schedule : {"constant", "linear", "cosine"} or callable, default="constant"
        Factor of the learning rate. "linear" and "cosine" fall to 0 at the end. A
        callable maps the fraction of steps that are done to the factor.
    batch_size : int or None, default=100
        Number of rows in a step; None is all rows.
    n_epochs : int, default=20
        Number of passes through the rows.
    n_runs : int, default=1
        Number of trainings, whose values are averaged. They differ in batches and
        random start.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" is regression if y is continuous.
    cv : int, splitter or "leave-one-out", default=5
        Which rows are held out in turn, if there is no validation set.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device of a torch module. The models of "auto" run on the CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of batches and of random starts.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. The value of
        a group is the sum over its rows.
    values_error_ : ndarray of the same shape as `values_`
        Standard errors over the runs; set for `n_runs` of at least 2.
    utility_, empty_utility_ : float
        Utility of the trained model, and of its start; means over runs.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    InfluenceValuer : The same of a linear model that is trained to its optimum.
    skvalue.inspection.linear_datamodeling_score : Whether values predict retraining.

    Notes
    -----
    Of T steps, the states at every sqrt(T)-th are kept, or fewer if more steps fit into
    `working_memory` of :func:`sklearn.set_config`; the steps between them are taken
    again on the way back. All values cost 4 to 6 times one training: the training
    itself is one, and one is without the row of the largest value. An
    `ImpreciseValuesWarning` is issued if this value has another sign than the effect of
    the removal, or is more than ten times as large.

    References
    ----------
    D. Maclaurin, D. Duvenaud, R. P. Adams: "Gradient-based Hyperparameter Optimization
    through Reversible Learning", ICML 2015.

    A. Ilyas, L. Engstrom: "MAGIC: Near-Optimal Data Attribution for Deep Learning",
    2025, Section 3 (which goes back once for each validation point; here, once for
    their mean).

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import UnrolledValuer
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [1.5]])
    >>> y = ["no", "no", "yes", "yes", "no"]
    >>> valuer = UnrolledValuer(random_state=0)
    >>> valuer.fit(X, y, X_val=[[-1.5], [1.2]], y_val=["no", "yes"]).values_.argmin()
    np.int64(4)
    """

    _parameter_constraints: dict = {
        "model": "no_validation",
        "loss": [callable, None],
        "start": [StrOptions({"auto", "given", "random"})],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "eps": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "schedule": [StrOptions(set(SCHEDULES)), callable],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "device": [StrOptions({"auto", "cpu", "cuda"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model: object = "auto",
        *,
        loss=None,
        start="auto",
        optimizer="sgd",
        learning_rate=0.05,
        momentum=0.9,
        weight_decay=0.0,
        eps: float | str = "auto",
        schedule: object = "constant",
        batch_size: int | None = 100,
        n_epochs=20,
        n_runs=1,
        task="auto",
        cv: object = 5,
        device="auto",
        random_state=None,
    ):
        self.model = model
        self.loss = loss
        self.start = start
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.eps = eps
        self.schedule = schedule
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_runs = n_runs
        self.task = task
        self.cv = cv
        self.device = device
        self.random_state = random_state

    @property
    def _is_built_in(self):
        return isinstance(self.model, str)

    @property
    def _capabilities(self):
        return Capabilities(
            regression=True,
            task=self.task,
            products=True,
            squares=False,
            allow_nd=not self._is_built_in,
        )

    def _value(self, problem, run):
        self._check_model()
        optimizer = self._optimizer()
        seeds = np.random.SeedSequence(seed_of(self.random_state)).spawn(self.n_runs)
        results = []
        with run.steps(self.n_runs, "runs") as done:
            for seed in seeds:
                results.append(self._run(problem, optimizer, seed))
                done()
        if not results:
            return None

        self._warn_of_far_values(results, optimizer, run)
        values = np.array([result.values for result in results])
        attributes = {}
        if len(results) > 1:
            deviations = values.std(axis=0, ddof=1)
            attributes["values_error_"] = deviations / np.sqrt(len(results))
        return Result(
            values.mean(axis=0),
            float(np.mean([result.utility for result in results])),
            float(np.mean([result.empty_utility for result in results])),
            problem,
            attributes=attributes,
        )

    def _check_model(self):
        """Raise ValueError for parameters that the model does not have."""
        if hasattr(self.model, "get_params") and hasattr(self.model, "module"):
            raise ValueError(
                "model must be 'auto' or a torch module. Got a skorch estimator: pass "
                "its module, and its optimizer and batches as parameters. Got "
                f"{self.model!r}."
            )
        check_model(self, {"auto": None}, start=("auto",))

    def _optimizer(self):
        eps = self.eps
        if eps == "auto":
            eps = _EPS if self._is_built_in else _TORCH_EPS
        return Optimizer(
            self.optimizer,
            self.learning_rate,
            self.momentum,
            self.weight_decay,
            self.schedule,
            float(eps),
        )

    def _warn_of_far_values(self, results, optimizer, run):
        """Warn if the largest value of a training is far from what a removal does."""
        largest_values = chain.from_iterable(result.largest for result in results)
        far = [largest for largest in largest_values if largest.is_far]
        if not far:
            return
        worst = max(far, key=lambda largest: abs(largest.value))
        cure = "a smaller learning_rate"
        if self.optimizer == "adamw":
            cure += (
                f", or a larger eps than {optimizer.eps:g}: AdamW amplifies small mean "
                "gradients"
            )
        run.warn(
            f"The value of row {worst.row} is {worst.value:.3g}, but training without "
            f"it lowers the utility by {worst.effect:.3g}: what removals do is not of "
            f"first order here. Use {cure}.",
            ImpreciseValuesWarning,
        )

    def _run(self, problem, optimizer, seed):
        """The `RunResult` of a training for each split."""
        values = np.zeros(len(problem.y))
        utility = empty_utility = 0.0
        largest = []
        n_splits = len(problem.splits)
        for split, split_seed in zip(problem.splits, seed.spawn(n_splits)):
            rows, utility_at_points = self._rows(problem, split)
            result = self._train(rows, utility_at_points, optimizer, split_seed)
            values[split.players] += result.values
            utility += result.utility
            empty_utility += result.empty_utility

            row = np.abs(result.values).argmax()
            largest.append(
                LargestValue(
                    row=problem.row_numbers(split)[row],
                    value=result.values[row],
                    effect=result.effect,
                    rounding=_ROUNDING * abs(result.utility),
                )
            )
        return RunResult(
            problem.sum_by_group(values / n_splits),
            utility / n_splits,
            empty_utility / n_splits,
            largest,
        )

    def _train(self, rows, utility, optimizer, seed):
        """The `TrainingResult` of rows of a model, and a utility at its points."""
        model = utility.model
        n_rows = len(rows)
        # Batches and a random start come from the same seed. A random start draws one
        # number, which is skipped here, so that batches are independent of it.
        rng = np.random.default_rng(seed)
        rng.integers(2**63)
        batch_size = min(self.batch_size or n_rows, n_rows)
        batches = draw_batches(n_rows, batch_size, self.n_epochs, rng)

        with model.numerics_context():
            start = model.parameters(model.start(np.random.default_rng(seed)))
            values, end = unrolled_derivatives(
                model, rows, start, batches, optimizer, utility.gradient
            )
            end_utility = utility.value(end)
            start_utility = utility.value(start)

            # The effect of removing the row of the largest value, by another training.
            is_kept = np.arange(n_rows) != np.abs(values).argmax()
            end_without = train(
                model, rows, start, batches, optimizer, is_kept.astype(float)
            )
            effect = end_utility - utility.value(end_without)

        if not np.isfinite([*values, end_utility, start_utility]).all():
            raise ValueError(
                "learning_rate must be smaller: the training, or its derivatives, are "
                f"not finite after {len(batches)} steps. Got {self.learning_rate!r}."
            )
        return TrainingResult(values, end_utility, start_utility, effect)

    def _rows(self, problem, split):
        """The players of a split, as rows of a model, and the utility at its points."""
        X, y = problem.rows(split)
        if self._is_built_in:
            return self._standardized_rows(problem, split.points, X, y)
        from ..derivatives import TorchRowModel

        points = split.points
        model = TorchRowModel(
            self.model, self.loss, X, start=self.start, device=self.device
        )
        at_points = model.rows(points.X, points.y, "y_val")
        return model.rows(X, y), Utility(model, at_points, points.weights)

    @in_arrays
    def _standardized_rows(self, problem, points, X, y):
        """As `_rows`, of the built-in model: in units of the rows X, y."""
        columns = StandardScaler().fit(X)
        root = np.sqrt(X.shape[1])
        X_val = columns.transform(points.X) / root
        X = columns.transform(X) / root

        y_val = points.y
        scale = 1.0
        if not problem.n_classes:
            target = StandardScaler().fit(y[:, None])
            y = target.transform(y[:, None])[:, 0]
            y_val = target.transform(y_val[:, None])[:, 0]
            # Utilities are in squared units of the target.
            scale = float(target.scale_[0]) ** 2

        model = LinearRowModel(X.shape[1], problem.n_classes)
        rows = model.rows(X, y)
        at_points = model.rows(X_val, y_val)
        return rows, Utility(model, at_points, points.weights, scale)
