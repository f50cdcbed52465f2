"""Unrolled values: exact derivatives of a utility by the rows' weights, through
training."""

from numbers import Integral, Real

import numpy as np
from sklearn.preprocessing import StandardScaler

from .._utils.checks import seed_of
from .._utils.sklearn import Interval, StrOptions
from .._utils.warned import warn
from ..base import BaseInSampleValuer, Capabilities, Result
from ..derivatives import LinearRowModel, Utility
from ..derivatives.optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from ..derivatives.unrolled import draw_batches, train, unrolled_derivatives
from ..exceptions import ImpreciseValuesWarning
from ._gradients import check_model

_EPS = {
    True: 0.01,
    False: 1e-8,
}  # of "auto": of the built-in model, and of torch modules
_FAR = 10  # a value that is this times the effect of a removal is reported
_ROUNDING = 1e-6  # relative, of utilities of modules of float32


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
    skvalue.inspection.linear_datamodeling_score : Whether values predict what retraining does.

    Notes
    -----
    Of T steps, the states at every sqrt(T)-th are kept, or fewer if more steps fit into
    `working_memory` of :func:`sklearn.set_config`; the steps between them are taken again on the
    way back. All values cost 4 to 6 times one training: the training itself is one, and one is
    without the row of the largest value. An `ImpreciseValuesWarning` says so if the value has
    another sign than what the removal does, or is more than ten times as large.

    References
    ----------
    D. Maclaurin, D. Duvenaud, R. P. Adams: "Gradient-based Hyperparameter Optimization through
    Reversible Learning", ICML 2015.

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
    def _capabilities(self):
        return Capabilities(
            regression=True, task=self.task, products=True, squares=False,
            allow_nd=not isinstance(self.model, str),
        )  # fmt: skip

    def _value(self, problem, run):
        self._check_model()
        eps = (
            _EPS[isinstance(self.model, str)] if self.eps == "auto" else float(self.eps)
        )
        how = Optimizer(
            self.optimizer,
            self.learning_rate,
            self.momentum,
            self.weight_decay,
            self.schedule,
            eps,
        )
        found = []  # of each run: values, utility, that of the start, and the largest values
        with run.steps(self.n_runs, "runs") as done:
            for seed in np.random.SeedSequence(seed_of(self.random_state)).spawn(
                self.n_runs
            ):
                found.append(self._run(problem, how, seed))
                done()
        if not found:
            return None
        values, utility, empty = (np.array(part) for part in list(zip(*found))[:3])
        self._warn_of_far_values(
            [largest for *_, of_run in found for largest in of_run], how
        )
        attributes = {}
        if len(found) > 1:
            attributes["values_error_"] = values.std(axis=0, ddof=1) / np.sqrt(
                len(found)
            )
        return Result(
            values.mean(axis=0), float(utility.mean()), float(empty.mean()), problem,
            attributes=attributes,
        )  # fmt: skip

    def _check_model(self):
        """Raise ValueError for parameters that the model does not have."""
        if hasattr(self.model, "get_params") and hasattr(self.model, "module"):
            raise ValueError(
                "model must be 'auto' or a torch module. Got a skorch estimator: pass its module, "
                f"and its optimizer and batches as parameters. Got {self.model!r}."
            )
        check_model(self, {"auto": None}, start=("auto",))

    def _warn_of_far_values(self, largest, how):
        """Warn if the largest value of a training is far from what the removal of its
        row does."""
        far = [
            (row, value, effect)
            for row, value, effect, least in largest
            if abs(value) > least and not 0 < value / (effect or np.nan) <= _FAR
        ]
        if far:
            row, value, effect = max(far, key=lambda one: abs(one[1]))
            cure = "a smaller learning_rate"
            if self.optimizer == "adamw":
                cure += f", or a larger eps than {how.eps:g}: AdamW amplifies small mean gradients"
            warn(
                f"The value of row {row} is {value:.3g}, but training without it lowers the utility"
                f" by {effect:.3g}: what removals do is not of first order here. Use {cure}.",
                ImpreciseValuesWarning,
            )

    def _run(self, problem, how, seed):
        """Values of the players, utility, that of the start (means), and largest
        values."""
        values, utilities, largest = np.zeros(len(problem.y)), np.zeros(2), []
        for split, drawn in zip(problem.splits, seed.spawn(len(problem.splits))):
            by_row, by_model, effect = self._train(
                *self._rows(problem, split), how, drawn
            )
            values[split.players] += by_row
            utilities += by_model
            row, least = np.abs(by_row).argmax(), _ROUNDING * abs(by_model[0])
            largest.append(
                (problem.row_numbers(split)[row], by_row[row], effect, least)
            )
        n_splits = len(problem.splits)
        return problem.sum_by_group(values / n_splits), *(utilities / n_splits), largest

    def _train(self, rows, utility, how, seed):
        """Values of the rows, utilities of trained model and start, and a removal's
        effect.

        The latter is the decrease of the utility without the row of the largest value.
        """
        model, n, rng = utility.model, len(rows), np.random.default_rng(seed)
        rng.integers(
            2**63
        )  # that of the start: batches do not depend on whether it is drawn
        batches = draw_batches(n, min(self.batch_size or n, n), self.n_epochs, rng)
        with model.numerics_context():
            start = model.parameters(model.start(np.random.default_rng(seed)))
            values, end = unrolled_derivatives(
                model, rows, start, batches, how, utility.gradient
            )
            utilities = [utility.value(theta) for theta in (end, start)]
            others = np.arange(n) != np.abs(values).argmax()
            without = utility.value(
                train(model, rows, start, batches, how, others.astype(float))
            )
        if not np.isfinite([*values, *utilities]).all():
            raise ValueError(
                "learning_rate must be smaller: the training, or its derivatives, are not finite "
                f"after {len(batches)} steps. Got {self.learning_rate!r}."
            )
        return values, utilities, utilities[0] - without

    def _rows(self, problem, split):
        """The players of a split, as rows of a model, and the utility at its points."""
        (X, y), points, scale = problem.rows(split), split.points, 1.0
        X_val, y_val = points.X, points.y
        if isinstance(self.model, str):
            columns = StandardScaler().fit(X)
            if not problem.n_classes:
                target = StandardScaler().fit(y[:, None])
                y, y_val = (
                    target.transform(part[:, None])[:, 0] for part in (y, y_val)
                )
                scale = (
                    float(target.scale_[0]) ** 2
                )  # utilities are in squared units of the target
            X, X_val = (
                columns.transform(part) / np.sqrt(X.shape[1]) for part in (X, X_val)
            )
            model = LinearRowModel(X.shape[1], problem.n_classes)
            return model.rows(X, y), Utility(
                model, model.rows(X_val, y_val), points.weights, scale
            )
        from ..derivatives import TorchRowModel

        model = TorchRowModel(
            self.model, self.loss, X, start=self.start, device=self.device
        )
        at_points = model.rows(X_val, y_val, "y_val")
        return model.rows(X, y), Utility(model, at_points, points.weights)
