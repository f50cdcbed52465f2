"""The base of valuers of parties that send clipped gradients."""

import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._utils.fits import unfitted_copy
from .._utils.sklearn import Interval, StrOptions
from ..base import (
    PRIVACY_CONSTRAINTS,
    BaseInSampleValuer,
    Capabilities,
    Result,
    Run,
    make_problem,
)
from ..derivatives import (
    LinearGradientModel,
    gradient_event,
    gradient_report,
    gradients_at,
    public_directions,
)
from ..privacy import Release
from ..semivalues import check_semivalue
from ._gradient_models import check_model, public_units

# The task of each built-in model; None if it depends on the target.
BUILT_IN_TASKS = {
    "auto": None,
    "logistic": "classification",
    "softmax": "classification",
    "linear": "regression",
}

_MAX_POINTS = 1000  # validation points whose gradients are computed

# Seconds of steps that are timed, at least.
_LONG_ENOUGH = 0.2


class BaseGradientValuer(BaseInSampleValuer):
    """Base class of valuers of parties that send clipped gradients.

    The parties may add noise to their gradients.
    """

    _parameter_constraints: dict = {
        "model": "no_validation",
        "semivalue": [str, tuple, list, callable],
        "group_values": [StrOptions({"players", "faithful"})],
        "loss": [callable, None],
        "utility": [StrOptions({"neg_loss", "accuracy"})],
        "step_weights": [StrOptions({"rows", "equal"})],
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
            name: constraint
            for name, constraint in PRIVACY_CONSTRAINTS.items()
            if name not in ("reader", "relation")
        },
        "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
        "trust": [StrOptions({"local", "server"})],
        "unit": [StrOptions({"party", "example"})],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "device": [str],
        "random_state": ["random_state"],
    }

    _steps_parameter = ""  # the parameter that is the number of steps of a split

    @property
    def _capabilities(self):
        is_built_in = isinstance(self.model, str)
        task = self.task
        if is_built_in and BUILT_IN_TASKS.get(self.model) is not None:
            task = BUILT_IN_TASKS[self.model]
        return Capabilities(
            regression=True,
            task=task,
            allow_nd=not is_built_in,
            products=True,
            squares=False,
            values_are_public=True,
            protects_groups=self.unit == "party",
        )

    def estimate_cost(self, X, y, *, X_val=None, y_val=None, groups=None):
        """Estimate the cost of `fit` from the time of a few steps.

        Nothing is released, and no ledger is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the other parameters.
        y : array-like of shape (n_samples,)
            Labels or targets.
        X_val, y_val, groups : array-likes, default=None
            Validation set, and groups.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate, at most `max_time`), ``n_steps`` (of all splits),
            ``seconds_per_step``, and ``n_players``.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        problem = make_problem(self, X, y, X_val, y_val, groups=groups)
        n_steps = getattr(self, self._steps_parameter)
        n_skipped = self._n_skipped()
        self._seconds_of(problem, 1, 0)  # imports, and touches memory
        first = self._seconds_of(problem, 1, 0)
        seconds_per_step = self._seconds_per_step(problem, first, n_steps, 0)
        seconds = first + (n_steps - n_skipped - 1) * seconds_per_step
        if n_skipped:
            skipped = self._seconds_per_step(problem, first, n_skipped + 1, 1)
            seconds += n_skipped * skipped
        if self.max_time is not None:
            seconds = min(seconds, float(self.max_time))
        n_splits = len(problem.splits)
        return Bunch(
            seconds=float(seconds),
            n_steps=n_steps * n_splits,
            seconds_per_step=float(seconds_per_step / n_splits),
            n_players=problem.n_players,
        )

    def _seconds_per_step(self, problem, first, most, n_counted):
        """Seconds of a step, from more steps, at most `most`, than one in `first`.

        They are so many that their time is more than noise. All of them are counted, or
        with `n_counted` only so many.
        """
        n_steps = 1
        difference = 0.0
        while n_steps < most and difference < max(first, _LONG_ENOUGH):
            n_steps = min(4 * n_steps, most)
            n_skipped = n_steps - n_counted if n_counted else 0
            difference = self._seconds_of(problem, n_steps, n_skipped) - first
        return max(difference, 0.0) / max(n_steps - 1, 1)

    def _seconds_of(self, problem, n_steps, n_skipped):
        """Seconds of so many steps in each split, without callbacks and ledger."""
        quiet = unfitted_copy(self)
        quiet.ledger = None
        quiet.max_time = None
        # A schedule may be an array, of all steps.
        quiet.noise = "iid"
        quiet.burn_in = (n_skipped + 0.5) / n_steps if n_skipped else 0.0
        setattr(quiet, self._steps_parameter, n_steps)
        if hasattr(quiet, "gradient_variance"):
            quiet.gradient_variance = None
        start = perf_counter()
        with warnings.catch_warnings(action="ignore"):
            quiet._value(problem, Run(quiet))
        return perf_counter() - start

    # Parameters -----------------------------------------------------------------------

    @abstractmethod
    def _n_skipped(self):
        """Number of first steps of a split that are not valued (burn-in)."""

    @property
    def _bound(self):
        """`clip`, with "auto" replaced: None without noise, else 1."""
        if self.clip == "auto":
            return 1.0 if self._is_private else None
        if isinstance(self.clip, Real):
            return float(self.clip)
        return self.clip

    def _check_model(self, problem):
        """Raise ValueError for parameters that do not fit the model, or its target."""
        check_semivalue(self.semivalue, custom=True)
        check_model(self, BUILT_IN_TASKS)
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
                "group_values must be 'players' if gradients are private: with the "
                "values of rows, every row would release its own gradient. Got "
                f"{self.group_values!r}."
            )
        if self.epsilon is not None and self.noise_multiplier is not None:
            raise ValueError(
                "noise_multiplier must be None if epsilon is given, since both set the "
                f"size of the noise. Got {self.noise_multiplier!r}."
            )
        if self.clip is None:
            raise ValueError(
                "clip must be a number if gradients are private: the noise is based on "
                "this bound of their norms. Got None."
            )

    @property
    def _noise_advice(self):
        """What to do if noise exceeds the signal, for `warn_if_noise_exceeds`."""
        if self.unit == "party":
            return (
                "with unit='party' the noise is that of a party as a whole, however "
                "many rows it has: a few parties cannot be told apart at usual "
                "epsilons, many may be, and unit='example' protects a row of a party "
                "with far less noise"
            )
        return (
            "parties of more rows, fewer parameters (n_components) or a larger epsilon "
            "have less noise"
        )

    # The release ----------------------------------------------------------------------

    def _event(self, clip, n_releases):
        """The releases of a party as one event."""
        return gradient_event(
            n_releases,
            clip,
            epsilon=self.epsilon,
            delta=self.delta,
            noise_multiplier=self.noise_multiplier,
            trust=self.trust,
        )

    def _release(self, event, **parties):
        """The release of all gradients; ``parties`` goes to `gradient_report`."""
        report = gradient_report(
            event,
            self.delta,
            trust=self.trust,
            unit=self.unit,
            by_rows=self.step_weights == "rows",
            noise_random_state=self.noise_random_state,
            **parties,
        )
        label = f"{type(self).__name__}: perturbed gradients"
        return Release(event, self.ledger, label, self.noise_random_state, report)

    # What validation points set -------------------------------------------------------

    def _public_bounds(self, problem):
        """Bound of the norm of gradients, and a basis of their coordinates per split.

        From the gradients of the validation points at the start, in parties of the
        size of the others. A basis has shape (n_parameters, n_components), or is None.
        """
        party_size = len(problem.X) / problem.n_players
        clips = []
        bases = []
        for split in problem.splits:
            clip, basis = self._bound_and_basis(problem, split.points, party_size)
            clips.append(clip)
            bases.append(basis)
        return clips[0], bases

    def _bound_and_basis(self, problem, points, party_size):
        """As `_public_bounds`, of one split."""
        clip = self._bound
        if self.n_components is None and clip != "median":
            return clip, None

        rows, weights = public_rows(points)
        make_model = self._model_maker(problem, points, None, unit="party")
        model = make_model(
            points.X[rows], points.y[rows], np.arange(len(rows)), rows[:1]
        )
        gradients = gradients_at(model, model.start(np.random.default_rng(0)))

        basis = None
        if self.n_components is not None:
            basis = public_directions(gradients, weights, self.n_components)
            gradients = gradients @ basis
        if clip != "median":
            return clip, basis

        if self.unit == "party" and party_size > 1:
            gradients = _means_of_parties(gradients, party_size)
        clip = float(np.median(np.linalg.norm(gradients, axis=1)))
        if not clip > 0:
            raise ValueError(
                "clip must be a number if the gradients of the validation points are "
                "zero at the start. Got 'median'."
            )
        return clip, basis

    # Models ---------------------------------------------------------------------------

    def _players_model(self, problem, split, clip, basis):
        """The players of a split, its model, and the factors of their noise."""
        present, players = problem.players_in(split)
        make_model = self._model_maker(problem, split.points, clip, basis)
        weights = party_weights(self.step_weights, players)
        model = make_model(*problem.rows(split), players, step_weights=weights)
        return present, model, noise_factors(self.unit, players)

    def _model_maker(self, problem, points, clip, basis=None, unit=None):
        """A function that makes the model of some rows.

        ``make_model(X, y, players, numbers)`` is the model of rows X, y of the players,
        evaluated at these numbers of the points; at all of them by default. The keyword
        ``step_weights`` has the weights of the steps of the players, ones by default.
        """
        options = {
            "unit": unit or self.unit,
            "utility": self.utility,
            "clip": clip,
            "basis": basis,
            "n_classes": problem.n_classes,
        }
        if isinstance(self.model, str):
            return self._linear_maker(points, options)
        return self._torch_maker(points, options)

    def _torch_maker(self, points, options):
        from ..derivatives import TorchGradientModel

        # Directions of coordinates are those at the given parameters.
        start = "auto" if self.n_components is None else "given"

        def make_model(X, y, players, numbers=slice(None), step_weights=None):
            return TorchGradientModel(
                self.model,
                self.loss,
                X,
                y,
                players,
                X_val=points.X[numbers],
                y_val=points.y[numbers],
                weights_val=_normalised(points.weights[numbers]),
                start=start,
                private=self._is_private,
                step_weights=step_weights,
                device=self.device,
                **options,
            )

        return make_model

    def _linear_maker(self, points, options):
        n_classes = options["n_classes"]
        units = public_units(points, n_classes, self.standardize)
        if not n_classes:
            kind = "linear"
        elif n_classes > 2 or self.model == "softmax":
            kind = "softmax"
        else:
            kind = "logistic"

        def make_model(X, y, players, numbers=slice(None), step_weights=None):
            X, y = units.standardize(X, y)
            X_val, y_val = units.standardize(points.X[numbers], points.y[numbers])
            # Utilities are in squared units of the target.
            weights = _normalised(points.weights[numbers]) * units.target_scale**2
            return LinearGradientModel(
                X,
                y,
                players,
                X_val=X_val,
                y_val=y_val,
                weights=weights,
                kind=kind,
                private=self._is_private,
                step_weights=step_weights,
                **options,
            )

        return make_model


def _normalised(weights):
    """Weights of validation points with the sum one; equal weights if all are zero."""
    total = weights.sum()
    if total > 0:
        return weights / total
    return np.full(len(weights), 1.0 / len(weights))


def _means_of_parties(gradients, party_size):
    """Means (n_parties, p) of gradients (n, p), in random parties of about one size."""
    order = np.random.default_rng(0).permutation(len(gradients))
    n_parties = max(1, int(len(gradients) / party_size))
    parties = np.array_split(order, n_parties)
    return np.array([gradients[party].mean(0) for party in parties])


def public_rows(points, limit=None):
    """Numbers of some validation points, evenly spaced, and their weights.

    There are at most ``limit`` of them; None is 1,000.
    """
    n_rows = min(len(points), limit or _MAX_POINTS)
    rows = np.linspace(0, len(points) - 1, n_rows).astype(int)
    return rows, _normalised(points.weights[rows])


def noise_factors(unit, players):
    """Factors (n_players,) of the noise of players, from the player of each row.

    The mean of B clipped gradients has 1 / B of the noise of their sum.
    """
    counts = np.bincount(players).astype(np.float64)
    return 1 / counts if unit == "example" else np.ones(len(counts))


def party_weights(step_weights, players):
    """Weights (n_players,) of the steps of players, from the player of each row.

    With "rows", numbers of rows over their mean, so that the weights have mean one and
    the steps of all players are together as long as equal ones; with "equal", ones.
    """
    counts = np.bincount(players).astype(np.float64)
    if step_weights == "equal":
        return np.ones(len(counts))
    return counts / counts.mean()


def refuse_burn_in(run, n, what):
    """Raise RuntimeError if a callback stopped the fit in the first n steps."""
    if run.stopped:
        raise RuntimeError(
            f"The fit was stopped by a callback in the burn-in, the first {n} {what}, "
            "so that there are no values."
        )


class SplitValues(NamedTuple):
    """Values of the players of one split.

    Parameters
    ----------
    players : ndarray of int of shape (n_present,)
        Numbers of the players.
    values, variances : ndarray of shape (n_present,)
        Their values, and the squared standard errors.
    ends : ndarray of shape (2,)
        Utilities before the first step and after the last.
    """

    players: np.ndarray
    values: np.ndarray
    variances: np.ndarray
    ends: np.ndarray


def mean_over_splits(problem, by_split, release, statistic=None, **attributes):
    """The `Result` of the means over splits, from the `SplitValues` of each."""
    n_splits = len(by_split)
    values = np.zeros(problem.n_players)
    variances = np.zeros(problem.n_players)
    ends = np.zeros(2)
    for split in by_split:
        values[split.players] += split.values / n_splits
        variances[split.players] += split.variances / n_splits**2
        ends += split.ends / n_splits

    empty_utility, utility = ends
    attributes["values_error_"] = np.sqrt(variances)
    # A fit that was interrupted has fewer splits.
    problem = replace(problem, splits=problem.splits[:n_splits])
    return Result(
        values,
        float(utility),
        float(empty_utility),
        problem,
        statistic=statistic,
        attributes=attributes,
        release=release,
    )
