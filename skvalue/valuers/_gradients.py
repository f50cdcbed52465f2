"""Models and public units of gradient methods, and the base of valuers of clipped
gradients."""

from dataclasses import replace
from numbers import Integral, Real

import numpy as np

from .._utils.sklearn import Interval, StrOptions
from ..base import PRIVACY_CONSTRAINTS, BaseInSampleValuer, Capabilities, Result
from ..derivatives import (
    LinearGradientModel,
    column_scales,
    gradient_event,
    gradient_report,
    gradients_at,
    public_directions,
    target_scale,
)
from ..privacy import Release
from ..semivalues import check_semivalue

BUILT_IN = {"auto": None, "logistic": "classification", "softmax": "classification",
            "linear": "regression"}  # fmt: skip

_POINTS = 1000  # most validation points whose gradients are computed


class BaseGradientValuer(BaseInSampleValuer):
    """Base class of valuers of parties that send clipped gradients, with or without
    noise."""

    _parameter_constraints: dict = {
        "model": "no_validation",
        "semivalue": [str, tuple, list, callable],
        "group_values": [StrOptions({"players", "faithful"})],
        "loss": [callable, None],
        "utility": [StrOptions({"neg_loss", "accuracy"})],
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "clip": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto", "median"}),
            None,
        ],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "standardize": ["boolean"],
        **{
            n: rule
            for n, rule in PRIVACY_CONSTRAINTS.items()
            if n not in ("reader", "relation")
        },
        "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
        "trust": [StrOptions({"local", "server"})],
        "unit": [StrOptions({"party", "example"})],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "device": [str],
        "random_state": ["random_state"],
    }

    @property
    def _capabilities(self):
        built_in = isinstance(self.model, str)
        wanted = BUILT_IN.get(self.model) if built_in else None
        return Capabilities(
            regression=True, task=wanted or self.task,
            allow_nd=not built_in, products=True,
            squares=False, values_are_public=True, protects_groups=self.unit == "party",
        )  # fmt: skip

    @property
    def _bound(self):
        """`clip`, with "auto" replaced: None without noise, else 1."""
        if self.clip == "auto":
            return 1.0 if self._is_private else None
        return float(self.clip) if isinstance(self.clip, Real) else self.clip

    def _check_model(self, problem):
        """Raise ValueError for parameters of the model that are incompatible, or do not
        fit y."""
        check_semivalue(self.semivalue, custom=True)
        check_model(self, BUILT_IN)
        if self.utility == "accuracy" and problem.n_classes == 0:
            raise ValueError(
                "utility must be 'neg_loss' for a continuous target. Got 'accuracy'."
            )

    def _check_noise(self):
        """Raise ValueError for incompatible parameters of the noise."""
        if not self._is_private:
            return
        if self.group_values != "players":
            raise ValueError(
                "group_values must be 'players' if gradients are private: with the values of rows, "
                f"every row would release its own gradient. Got {self.group_values!r}."
            )
        if self.epsilon is not None and self.noise_multiplier is not None:
            raise ValueError(
                "noise_multiplier must be None if epsilon is given, since both set the size of "
                f"the noise. Got {self.noise_multiplier!r}."
            )
        if self.clip is None:
            raise ValueError(
                "clip must be a number if gradients are private: the noise is based on this bound "
                "of their norms. Got None."
            )

    def _players_model(self, problem, split, clip, basis):
        """The players of a split, its model, and the factors of their noise."""
        present, players = problem.players_in(split)
        model = self._model_maker(problem, split.points, clip, basis)(
            *problem.rows(split), players
        )
        return present, model, noise_factors(self.unit, players)

    def _event(self, clip, n_releases):
        """The releases of a party as one event."""
        return gradient_event(
            n_releases, clip, epsilon=self.epsilon, delta=self.delta,
            noise_multiplier=self.noise_multiplier, trust=self.trust,
        )  # fmt: skip

    def _release(self, event, **parties):
        """The release of all gradients; ``parties`` goes to `gradient_report`."""
        report = gradient_report(
            event, self.delta, trust=self.trust, unit=self.unit,
            noise_random_state=self.noise_random_state, **parties,
        )  # fmt: skip
        label = f"{type(self).__name__}: perturbed gradients"
        return Release(event, self.ledger, label, self.noise_random_state, report)

    def _public_bounds(self, problem):
        """Bound of the norm of gradients, and the basis of their coordinates (or None)
        per split.

        From the gradients of validation points at the start, in parties of the size of
        the others.
        """
        size = len(problem.X) / problem.n_players
        found = [
            self._from_public(problem, split.points, size) for split in problem.splits
        ]
        return found[0][0], [basis for _, basis in found]

    def _from_public(self, problem, points, size):
        bound = self._bound
        if self.n_components is None and bound != "median":
            return bound, None
        some, weights = public_rows(points)
        make = self._model_maker(problem, points, None, unit="party")
        model = make(points.X[some], points.y[some], np.arange(len(some)), some[:1])
        gradients, basis = (
            gradients_at(model, model.start(np.random.default_rng(0))),
            None,
        )
        if self.n_components is not None:
            basis = public_directions(gradients, weights, self.n_components)
            gradients = gradients @ basis
        if bound != "median":
            return bound, basis
        if self.unit == "party" and size > 1:
            order = np.random.default_rng(0).permutation(len(some))
            count = max(1, int(len(some) / size))
            gradients = np.array(
                [gradients[part].mean(0) for part in np.array_split(order, count)]
            )
        clip = float(np.median(np.linalg.norm(gradients, axis=1)))
        if not clip > 0:
            raise ValueError(
                "clip must be a number if the gradients of the validation points are zero at the "
                "start. Got 'median'."
            )
        return clip, basis

    def _model_maker(self, problem, points, clip, basis=None, unit=None):
        """``make(X, y, players, some)``: the model of rows, evaluated on `some` of the
        points."""
        n_classes = problem.n_classes
        options = {
            "unit": unit or self.unit,
            "utility": self.utility,
            "clip": clip,
            "basis": basis,
        }
        if not isinstance(self.model, str):
            from ..derivatives import TorchGradientModel

            start = "auto" if self.n_components is None else "given"
            return lambda X, y, players, some=slice(None): TorchGradientModel(
                self.model, self.loss, X, y, players, points.X[some], points.y[some],
                weights_val=_normalised(points.weights[some]), start=start, n_classes=n_classes,
                private=self._is_private, device=self.device, **options,
            )  # fmt: skip
        units = public_units(points, n_classes, self.standardize)
        kind = "softmax" if n_classes > 2 or self.model == "softmax" else "logistic"
        options.update(kind=kind if n_classes else "linear", n_classes=n_classes)

        def make(X, y, players, some=slice(None)):
            X, y = standardized(X, y, units, n_classes)
            at_points = standardized(points.X[some], points.y[some], units, n_classes)
            # Utilities are in squared units of the target.
            weights = _normalised(points.weights[some]) * units[-1] ** 2
            return LinearGradientModel(X, y, players, *at_points, weights, **options)

        return make


def public_rows(points):
    """Numbers of at most 1,000 validation points, in even distances, and their
    weights."""
    some = np.linspace(0, len(points) - 1, min(len(points), _POINTS)).astype(int)
    return some, _normalised(points.weights[some])


def noise_factors(unit, players):
    """Factors of the players' noise: 1 / B for a mean of B clipped gradients, else
    1."""
    counts = np.bincount(players).astype(np.float64)
    return 1 / counts if unit == "example" else np.ones(len(counts))


def refuse_burn_in(run, n, what):
    """Raise RuntimeError if a callback stopped the fit in the burn-in; None if
    interrupted."""
    if run.stopped:
        raise RuntimeError(
            f"The fit was stopped by a callback in the burn-in, the first {n} {what}, so that "
            "there are no values."
        )


def mean_over_splits(problem, found, release, statistic=None, **attributes):
    """The `Result` of the means over splits.

    ``found`` has of each its players, their values, variances, and the utilities before
    and after.
    """
    values, variances, ends = (
        np.zeros(problem.n_players),
        np.zeros(problem.n_players),
        np.zeros(2),
    )
    for players, of_split, variances_of_split, ends_of_split in found:
        values[players] += of_split / len(found)
        variances[players] += variances_of_split / len(found) ** 2
        ends += ends_of_split / len(found)
    return Result(
        values, float(ends[1]), float(ends[0]),
        replace(problem, splits=problem.splits[: len(found)]), statistic,
        {**attributes, "values_error_": np.sqrt(variances)}, release,
    )  # fmt: skip


def _normalised(weights):
    """Weights of validation points with the sum one; equal weights if all are zero."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def check_model(valuer, built_in, **given):
    """Raise ValueError for parameters that a built-in model does not have; warn of
    dropout.

    ``built_in`` has the task of each name, or None; ``given`` the values of parameters
    other than loss and device that built-in models take.
    """
    model, task = valuer.model, valuer.task
    if not isinstance(model, str):
        from ..derivatives import warn_of_dropout

        warn_of_dropout(model)
        return
    if model not in built_in:
        names = ", ".join(map(repr, built_in))
        raise ValueError(f"model must be {names} or a torch module. Got {model!r}.")
    if built_in[model] is not None and task not in ("auto", built_in[model]):
        raise ValueError(
            f"task must be 'auto' or {built_in[model]!r} with model={model!r}. Got {task!r}."
        )
    for name, only in {"loss": (None,), "device": ("auto", "cpu"), **given}.items():
        value = getattr(valuer, name)
        if value not in only:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, only))} with model={model!r}: only torch "
                f"modules have another. Got {value!r}."
            )


def public_units(points, n_classes, standardize):
    """Means and scales of the columns, and centre and scale of the targets, of public
    points.

    The scales of d columns are their standard deviations times sqrt(d).
    """
    if not standardize:
        return None, None, 0.0, 1.0
    mean, scale = column_scales(points.X)
    units = mean, scale * np.sqrt(len(scale))
    if n_classes:
        return *units, 0.0, 1.0
    return *units, points.prior, target_scale(points.y, points.weights)


def standardized(X, y, units, n_classes):
    """Rows, and targets of a regression, in public units; None leaves columns as they
    are."""
    mean, scale, centre, std = units
    if mean is not None:
        X = (X - mean) / scale
    return X, y if n_classes or y is None else (y - centre) / std
