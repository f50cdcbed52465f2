"""Base class of the semivalue valuers that retrain an estimator."""

import os
import warnings
from abc import abstractmethod
from collections import deque
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..._utils.checks import seed_of
from ..._utils.sklearn import HasMethods, Interval, StrOptions
from ..._utils.warned import add_counts, counted_warnings, summaries
from ...base import Result, make_problem, refuse_unseen_labels
from ...estimation import (
    FEWEST,
    SAMPLERS,
    SUBSETS,
    Checkpoint,
    Run,
    Stopping,
    choose_sampler,
    decided,
    default_evaluations,
    make_design,
    read_arrays,
)
from ...exceptions import ImpreciseValuesWarning
from ...games import failed_warnings
from ...semivalues import check_semivalue
from ._adjustment import ControlRows, adjustment_of, choose_adjustment
from ._base import BaseRetrainingValuer, takes_of
from ._estimates import halfwidths, merged, reweighted
from ._plan import (
    COUNTS,
    Plan,
    batch_options,
    default_estimator,
    different,
    fingerprints,
    make_games,
    refuse_few,
)

_LARGER = 1.5  # ratio of standard errors from which on `reweight` warns


class BaseSemivalueValuer(BaseRetrainingValuer):
    """Base class of semivalues of the game of training an estimator on a coalition of rows.

    A subclass defines its semivalue by `_semivalue`. If it lacks some of the parameters, it
    defines its own `__init__`, and class attributes in place of the missing parameters.
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "sampler": [StrOptions({"auto", *SAMPLERS})],
        "scoring": [str, callable, None],
        "empty_utility": [Real, None],
        "error_score": [StrOptions({"empty", "raise"}), Real],
        "adjust": ["boolean", StrOptions({"auto"})],
        "truncation": [Interval(Real, 0, None, closed="neither"), None],
        "max_evaluations": [Interval(Integral, 2, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "sign_level": [Interval(Real, 0, 1, closed="neither"), None],
        "stable_bottom": [Interval(Integral, 1, None, closed="left"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "class_weight": [StrOptions({"balanced"}), None],
        "batch": [StrOptions({"auto", "torch", "never"})],
        "device": [StrOptions({"auto", "cpu", "cuda"})],
        "memory": [str, HasMethods(["cache"]), None],
        "checkpoint": [str, os.PathLike, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        scoring=None,
        empty_utility=None,
        error_score="empty",
        sampler="auto",
        adjust="auto",
        truncation=None,
        max_evaluations=None,
        max_time=None,
        tol=None,
        sign_level=None,
        stable_bottom=None,
        task="auto",
        cv=5,
        class_weight=None,
        batch="auto",
        device="auto",
        memory=None,
        checkpoint=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.empty_utility = empty_utility
        self.error_score = error_score
        self.sampler = sampler
        self.adjust = adjust
        self.truncation = truncation
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.tol = tol
        self.sign_level = sign_level
        self.stable_bottom = stable_bottom
        self.task = task
        self.cv = cv
        self.class_weight = class_weight
        self.batch = batch
        self.device = device
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    @abstractmethod
    def _semivalue(self):
        """The semivalue, see `skvalue.semivalues.check_semivalue`."""

    _default_estimator = LogisticRegression()

    def _game(self, game, X, y, weights, groups):
        """The game to play in place of the game of retraining, on the same rows."""
        return game

    # What a user calls ----------------------------------------------------------------------

    def estimate_cost(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight=None):
        """Estimate the cost of `fit` from the time of a few coalitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the other parameters.
        y : array-like of shape (n_samples,)
            Labels or targets.
        X_val, y_val, groups, sample_weight : array-likes, default=None
            Validation set, groups, and weights of the rows.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate, at most `max_time`), ``n_evaluations`` (None if a goal or
            `max_time` decides), ``seconds_per_evaluation`` of one worker, ``n_players``,
            ``sampler`` and ``solver``.
        """
        problem = make_problem(self, X, y, X_val, y_val, groups=groups, sample_weight=sample_weight)
        self._prepare(problem)
        plan = self._plan(problem)
        count = plan.run.planned
        seconds, workers = plan.cost(self.n_jobs)
        limits = [] if count is None else [count * seconds / workers]
        limits += [] if self.max_time is None else [float(self.max_time)]
        return Bunch(
            seconds=min(limits, default=None),
            n_evaluations=count,
            seconds_per_evaluation=seconds,
            n_players=plan.run.n,
            sampler=plan.sampler,
            solver=plan.games[0].solver,
        )

    def confidence_interval(self, level=0.95, method="t", utility_range=None):
        """Confidence interval of every value, for the error of sampling coalitions.

        Parameters
        ----------
        level : float, default=0.95
            Probability that the interval of one row contains its value.
        method : {"t", "bernstein"}, default="t"
            "t": Student's t, which needs enough replicates. "bernstein": the empirical Bernstein
            bound of Maurer and Pontil (2009), which holds for any number of replicates if the
            range of utilities is known, and is wider; it needs a sampler of permutations.
        utility_range : tuple of two floats, default=None
            Lowest and highest possible utility, for "bernstein". None means 0 and 1 for accuracy
            and other scores in that range.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_groups, 2)
            Lower and upper bounds.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, `method` is unknown or not available for the
            sampler, or `utility_range` is needed.
        """
        fitted = self._record("confidence_interval")
        half = halfwidths(fitted, level, method, utility_range, self.scoring)
        return np.stack([self.values_ - half, self.values_ + half], axis=1)

    def sign_decided(self, level=0.95, method="t", utility_range=None):
        """Mask of the rows whose confidence interval excludes zero.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence interval.
        method : {"t", "bernstein"}, default="t"
            As in `confidence_interval`.
        utility_range : tuple of two floats, default=None
            As in `confidence_interval`.

        Returns
        -------
        mask : ndarray of bool of shape (n_samples,) or (n_groups,)
            True where the sign is decided.

        Raises
        ------
        ValueError
            As in `confidence_interval`.
        """
        fitted = self._record("sign_decided")
        return decided(self.values_, halfwidths(fitted, level, method, utility_range, self.scoring))

    def merge(self, other):
        """Add the coalitions of another fit on the same data with a different `random_state`.

        Parameters
        ----------
        other : object of the same class
            A valuer fitted on the same data with the same parameters, except `random_state`,
            stopping rules and parameters of the computation such as `n_jobs`.

        Returns
        -------
        self : object
            This valuer, with values based on the coalitions of both fits. Fitted again with
            `warm_start`, it resumes with its own random numbers.

        Raises
        ------
        ValueError
            If data, parameters or samplers differ, random numbers are the same, or values are
            exact.
        """
        fitted = self._record("merge")
        check_is_fitted(other, "_fitted")
        if type(self) is not type(other):
            raise ValueError(
                f"merge needs a valuer of the same class. Got a {type(other).__name__}."
            )
        sampled = merged(fitted.statistic, other._fitted.statistic)
        values, attributes = self._found(sampled)
        result = replace(
            fitted.result, values=values, statistic=sampled,
            attributes={**fitted.result.attributes, **attributes},
        )  # fmt: skip
        self._swap_in(result, fitted.attributes, fitted.release)
        return self

    def reweight(self, semivalue):
        """Values of another semivalue from the coalitions of the fit, which are not fitted again.

        The importance weights of the coalitions are those of this semivalue, so that the values
        are unbiased too, and exact after an enumeration. Their errors depend on how often the fit
        drew the sizes that the semivalue weights: after a fit of Data Shapley, those of
        Beta(alpha, 1) are a little larger than those of a fit of its own, those of Banzhaf values
        several times. The masks of the coalitions are drawn again, not kept. After a fit with
        `adjust`, control variates are fitted for this semivalue, too, under the same rule.

        Parameters
        ----------
        semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple (alpha, beta) or callable
            The semivalue, as in `SemivalueValuer`.

        Returns
        -------
        result : Bunch
            ``values_`` and ``values_error_``, ndarrays of shape (n_samples,) or (n_groups,), as
            those of a fit.

        Raises
        ------
        ValueError
            If the coalitions are those of permutations or of leave-one-out, or if sizes that the
            semivalue weights were never drawn or too rarely; the sizes are named.

        Warns
        -----
        ImpreciseValuesWarning
            If the standard error is expected to be more than 1.5 times that of a fit of the
            semivalue with as many coalitions.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import train_test_split
        >>> from skvalue import DataShapleyValuer
        >>> X, y = load_iris(return_X_y=True)
        >>> X, X_val, y, y_val = train_test_split(X, y, train_size=20, stratify=y, random_state=0)
        >>> valuer = DataShapleyValuer(max_evaluations=2000, random_state=0)
        >>> beta = valuer.fit(X, y, X_val=X_val, y_val=y_val).reweight((4, 1))
        >>> bool(np.corrcoef(beta.values_, valuer.values_)[0, 1] > 0.7)
        True
        """
        fitted = self._record("reweight")
        run, semivalue = fitted.statistic.run, check_semivalue(semivalue, custom=True)
        values, errors, ratio = reweighted(run, semivalue)
        if ratio > _LARGER:
            warnings.warn(
                f"The standard errors are about {ratio:.2g} times those of a fit of this semivalue "
                f"with as many coalitions; a fit with {run.n_evaluations / ratio**2:,.0f} would "
                "be as precise.",
                ImpreciseValuesWarning,
                stacklevel=2,
            )
        return Bunch(values_=values, values_error_=errors)

    # From a problem to a result -------------------------------------------------------------

    @property
    def _takes(self):
        return takes_of(self, "coalitions", done="coalitions evaluated")

    def _prepare(self, problem):
        check_semivalue(self._semivalue, custom=True)
        if self.truncation is not None and self.sampler in ("subsets", "stratified", "exact"):
            raise ValueError(
                "truncation needs a sampler of permutations: 'permutation', 'antithetic', 'latin' "
                f"or 'orthogonal'. Got sampler={self.sampler!r}."
            )
        if not problem.has_validation_set:
            refuse_unseen_labels(problem, self.cv)
        return {}

    def _parts(self, problem, attributes, release):
        plan = self._plan(problem, self._former())
        plan.games[0].warn_unbatched(stacklevel=6)  # the line that called `fit`
        return self._evaluate(plan), plan.run.n_steps

    def _evaluate(self, plan):
        """Evaluate coalitions until the run ends; yields the plan once per step of the run."""
        run, checkpoint, steps = plan.run, Checkpoint(self.checkpoint), 0
        try:
            while (masks := run.ask()) is not None:
                with counted_warnings() as found:
                    utilities = plan.games[run.turn].utility(masks)
                add_counts(plan.warned, found)
                run.tell(utilities)
                if checkpoint.is_due:
                    checkpoint.write(plan.sampled.arrays)
                due = steps + 1 if run.n_steps is None else run.steps_done
                while steps < due:
                    steps += 1
                    yield plan
        except Exception as error:
            untrainable = isinstance(error, ValueError) and run.designs[run.turn].full is None
            if untrainable or not run.valued:
                raise
            run.error = error
        except KeyboardInterrupt:
            if not steps:
                yield plan
            raise
        if not steps:
            yield plan

    def _combine(self, problem, attributes, parts):
        last = deque(parts, maxlen=1)
        if not last:
            return None
        plan = last.pop()
        run = plan.run
        run.finish()
        played = run.valued
        if not played:
            return None
        sampled, error = plan.sampled, run.error
        if not isinstance(error, OSError):
            try:
                Checkpoint(self.checkpoint).write(sampled.arrays)
            except OSError as failure:
                error = failure
        values, attributes = self._found(sampled)
        reason = run.reason or ("exact" if run.exact else "max_evaluations")
        if run.error is not None:
            reason = "error"
        if parts.stopped or parts.interrupted:
            reason = "interrupted" if parts.interrupted else "callback"
        attributes |= {"sampler_": plan.sampler, "stop_reason_": reason}
        return Result(
            values,
            float(np.mean([run.designs[i].full for i in played])),
            float(np.mean([run.designs[i].empty_utility for i in played])),
            replace(problem, splits=tuple(problem.splits[i] for i in played)),
            sampled,
            attributes,
            None if error is None else self._ended_by(error, run.n_evaluations),
            self._warnings(plan, values, attributes),
        )

    # Plumbing -------------------------------------------------------------------------------

    def _plan(self, problem, former=None):
        """Games of the splits, and a run that starts or resumes; sets no attribute."""
        estimator = self.estimator if self.estimator is not None else default_estimator(problem)
        names = ("scoring", "error_score", "empty_utility", "batch", "device", "memory", "n_jobs")
        options = {name: getattr(self, name) for name in names}
        games, players = make_games(problem, estimator, self._game, **options)
        stopping = self._stopping(problem)
        names = ("sampler", "scoring", "empty_utility", "error_score", "truncation")
        marks = fingerprints(
            problem, **{"class": type(self).__name__}, estimator=estimator,
            semivalue=self._semivalue, batch=self.batch, device=self.device,
            **{name: getattr(self, name) for name in names},
        )  # fmt: skip
        seed, sampler = self._seed_and_sampler(games, stopping, marks, former)

        limit = stopping.max_evaluations
        each = None if limit is None else limit // len(games) - 1

        def plan_by(sampler):
            designs = [
                make_design(
                    sampler, self._semivalue, game.n_players, self.truncation,
                    choose_adjustment(
                        self.adjust, sampler, each, game.solver, ControlRows(problem, number)
                    ),
                    seed=seed, number=number, empty_utility=game.empty_utility,
                    **batch_options(game),
                )
                for number, game in enumerate(games)
            ]  # fmt: skip
            run = Run(designs, players, problem.n_players, stopping)
            if self.max_evaluations is not None:
                refuse_few(run, sampler, self.max_evaluations)
            header = {"fingerprint": marks, "seeds": np.array([str(seed)])}
            header["sampler"] = np.array(sampler)
            header |= {name: 0 if former is None else int(former[name]) for name in COUNTS}
            if former is not None:
                header["seeds"] = former["seeds"]
                run.restore(former)
            return Plan(run, games, sampler, header)

        plan = plan_by(sampler)
        if self.max_time is None or not plan.run.exact:
            return plan
        seconds, workers = plan.cost(self.n_jobs)
        seconds *= plan.run.planned / workers
        if seconds <= self.max_time:
            return plan
        if former is not None or self._named_sampler() != "auto":
            raise ValueError(
                f"max_time must be enough for sampler='exact', whose {plan.run.planned:,} "
                f"coalitions take about {seconds:.2g} seconds. Got {self.max_time}: increase it "
                "or set another sampler."
            )
        few = limit is not None and limit // len(games) <= SUBSETS
        return plan_by("permutation" if few else "stratified")

    def _named_sampler(self):
        """The sampler set by the user; "auto" with truncation is "antithetic"."""
        return "antithetic" if self.sampler == "auto" and self.truncation else self.sampler

    def _stopping(self, problem):
        """The stopping rules; a number of coalitions if none is set."""
        stopping = Stopping(
            self.max_evaluations, self.max_time, self.tol, self.sign_level, self.stable_bottom
        )
        if self.max_evaluations is None and self.max_time is None and not stopping.goals:
            sampler, n = self._named_sampler(), problem.n_players
            cost = SUBSETS
            if sampler not in ("auto", "exact"):
                cost = make_design(sampler, self._semivalue, n, self.truncation).cost
            # At least two blocks, so that there is a standard error.
            stopping.max_evaluations = max(
                default_evaluations(n, *problem.shape), len(problem.splits) * (2 * cost + 1)
            )
        return stopping

    def _seed_and_sampler(self, games, stopping, marks, former):
        """Seed and sampler of a new run, or of the run that resumes."""
        if former is not None:
            name, anew = "warm_start", "set warm_start=False"
            if not self._resumes_last_fit:
                name, anew = "checkpoint", f"delete {str(self.checkpoint)!r} or name another file"
            if what := different(marks, former["fingerprint"]):
                raise ValueError(
                    f"{name} resumes a fit on the same data with the same parameters. Got another "
                    f"{what}: {anew} to start again."
                )
            seed = str(former["seeds"][0])
            if isinstance(self.random_state, Integral) and str(self.random_state) != seed:
                raise ValueError(
                    f"{name} resumes with the random numbers of random_state={seed}. Got "
                    f"random_state={self.random_state}: {anew} to start again."
                )
            return int(seed), str(former["sampler"])
        seed, limit = seed_of(self.random_state), stopping.max_evaluations
        if self._named_sampler() != "auto":
            return seed, self._named_sampler()
        largest = max(game.n_players for game in games)
        limit = None if limit is None else limit // len(games)
        return seed, choose_sampler(self._semivalue, largest, limit)

    @property
    def _resumes_last_fit(self):
        return self.warm_start and hasattr(self, "_fitted")

    def _former(self):
        """Arrays of the run to resume, or None."""
        if self._resumes_last_fit:
            return self._fitted.statistic.arrays
        return None if self.checkpoint is None else read_arrays(self.checkpoint)

    def _found(self, sampled):
        """Values, and the attributes about their errors."""
        run = sampled.run
        values, errors, _ = run.result()
        attributes = {
            "values_error_": errors,
            "n_evaluations_": run.n_evaluations,
            "n_failed_": int(sampled.header["n_failed"]),
            "n_one_class_": int(sampled.header["n_one_class"]),
        }
        if self.truncation is not None:
            attributes["truncation_bias_"] = run.truncation_bias
        if self.adjust is not None:  # None where it is no parameter
            attributes["adjustment_"] = adjustment_of(run)
        for design in run.designs:
            design.forget()
        return values, attributes

    def _ended_by(self, error, n_evaluations):
        """The exception raised after the values are set."""
        # Texts of other errors may show entries of the rows.
        why = str(error).partition("\n")[0].rstrip(".") if isinstance(error, OSError) else ""
        why = why or f"{type(error).__name__}, the cause of this error"
        can_resume = "warm_start" in self._parameter_constraints
        raised = RuntimeError(
            f"The fit was ended by an error: {why}. The results of the {n_evaluations} coalitions "
            "evaluated before are kept in values_"
            + ("; fit with warm_start=True to resume." if can_resume else ".")
        )
        raised.__cause__ = error
        return raised

    def _warnings(self, plan, values, attributes):
        """Warnings about the fits of the estimator and a default number of coalitions."""
        found = [*summaries(plan.warned), *failed_warnings(plan.games)]
        if self.adjust not in (None, "auto", False) and not attributes["adjustment_"].used:
            message = (
                f"adjust=True needs {FEWEST} coalitions in each split. The fit ended before, after "
                f"{attributes['n_evaluations_']} in total: values_ are not adjusted."
            )
            found.append((message, ImpreciseValuesWarning))
        by_default = self.max_evaluations is None and plan.run.stopping.max_evaluations is not None
        if by_default and attributes["stop_reason_"] == "max_evaluations":
            error, std = np.median(attributes["values_error_"]), np.std(values)
            noise = ", so they are mostly noise" if error > std else ""
            message = (
                f"The values are based on {attributes['n_evaluations_']:,} coalitions, the default "
                f"for data of this size: their median standard error is {error:.2g}, the "
                f"standard deviation of the values {std:.2g}{noise}. "
                "Set max_evaluations, max_time or tol for another precision."
            )
            found.append((message, ImpreciseValuesWarning))
        return tuple(found)
