"""What all semivalue valuers by retraining share: from parameters to estimations and back."""

import os
import warnings
from abc import abstractmethod
from functools import partial
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import validate_data

from ..._utils.sklearn import HasMethods, Interval, StrOptions
from ...base._judges import Progress, check_judged_labels
from ...base._validation import check_sample_weight, check_validation_set
from ..._utils.hashing import fingerprint
from ...estimation import (
    SAMPLERS,
    SUBSETS,
    OrderDesign,
    Run,
    Stopping,
    choose_sampler,
    default_evaluations,
    make_design,
    read_arrays,
    write_arrays,
)
from ...exceptions import ImpreciseValuesWarning
from ...games import ModelGame
from ...semivalues import check_semivalue
from ._base import BaseRetrainingValuer
from ._estimates import EstimatesMixin


class BaseSemivalueValuer(EstimatesMixin, BaseRetrainingValuer):
    """Base class of semivalues of the game of training an estimator on a coalition of rows.

    A method says which semivalue by `_semivalue`, and has the parameters of the estimation, or
    class attributes in their place.
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "sampler": [StrOptions({"auto", *SAMPLERS})],
        "scoring": [str, callable, None],
        "empty_utility": [Real, None],
        "error_score": [StrOptions({"empty", "raise"}), Real],
        "truncation": [Interval(Real, 0, None, closed="neither"), None],
        "max_evaluations": [Interval(Integral, 2, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "sign_level": [Interval(Real, 0, 1, closed="neither"), None],
        "stable_bottom": [Interval(Integral, 1, None, closed="left"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "batch": [StrOptions({"auto", "torch", "never"})],
        "device": [StrOptions({"auto", "cpu", "cuda"})],
        "memory": [str, HasMethods(["cache"]), None],
        "checkpoint": [str, os.PathLike, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    _tasks = ("classification", "regression")
    _leave_one_out_at_once = False
    _done = "coalitions evaluated"

    # Of methods that lack these parameters.
    sampler = "exact"
    truncation = max_evaluations = max_time = tol = sign_level = stable_bottom = None
    checkpoint = random_state = None
    warm_start = False

    @property
    @abstractmethod
    def _semivalue(self):
        """The semivalue, see `skvalue.semivalues.check_semivalue`."""

    # What a user calls ----------------------------------------------------------------------

    def estimate_cost(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight=None):
        """Say what `fit` would cost, from the time of a few coalitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the rest.
        y : array-like of shape (n_samples,)
            Labels or targets.
        X_val, y_val, groups, sample_weight : array-likes, default=None
            Validation set, groups, and weights of the rows.

        Returns
        -------
        cost : Bunch
            ``seconds`` (about; at most `max_time`), ``n_evaluations`` (None where a goal or the
            clock decides), ``seconds_per_evaluation`` of one worker, ``n_players``, ``sampler``
            and ``solver``.
        """
        probe = clone(self)
        probe._sample_weight = sample_weight
        X, y = validate_data(
            probe, X, y, dtype=list(self._dtypes), order="C", y_numeric=False, ensure_min_samples=2
        )
        X_val, y_val = check_validation_set(probe, X_val, y_val, X)
        games, _, codes, group_codes = probe._set_up(X, y, X_val, y_val, groups, None)
        run = probe._make_run(games, X, codes, group_codes)
        count, game = run.planned(), run.estimations[0].game
        seconds, workers = self._cost(run)
        limits = [] if count is None else [count * seconds / workers]
        limits += [] if self.max_time is None else [float(self.max_time)]
        return Bunch(
            seconds=min(limits, default=None),
            n_evaluations=count,
            seconds_per_evaluation=seconds,
            n_players=run.n,
            sampler=probe.sampler_,
            solver=game.solver,
        )

    # Plumbing -------------------------------------------------------------------------------

    def _cost(self, run):
        """Seconds that a coalition takes one worker, and workers."""
        estimation = run.estimations[0]
        seconds = estimation.game.evaluation_cost(nested=isinstance(estimation.design, OrderDesign))
        loop = estimation.game.solver == "loop"
        return seconds, effective_n_jobs(self.n_jobs) if loop else 1

    def _prepare(self, X_val, y_val):
        check_semivalue(self._semivalue, custom=True)
        if self.truncation is not None and self.sampler in ("subsets", "stratified", "exact"):
            raise ValueError(
                "truncation needs a sampler of orders: 'permutation', 'antithetic', 'latin' or "
                f"'orthogonal'. Got sampler={self.sampler!r}."
            )

    def _make_run(self, games, X, codes, groups, former=None):
        """Estimations of the games, going on from the arrays of a former run."""
        labels = self.classes_[codes] if self._n_classes else codes
        estimator = self.estimator
        if estimator is None:
            estimator = LogisticRegression() if self._n_classes else Ridge()
        weights = check_sample_weight(self._sample_weight, len(X))
        model_games, players = [], []
        for rows, judges in games:
            rows = np.arange(len(X)) if rows is None else rows
            if self._n_classes:
                check_judged_labels(judges.y, codes[rows], self.classes_, self.cv)
            judge_labels = self.classes_[judges.y] if self._n_classes else judges.y
            game = ModelGame(
                estimator, X[rows], labels[rows], judges.X, judge_labels,
                scoring=self.scoring, error_score=self.error_score,
                empty_utility=self.empty_utility,
                sample_weight=None if weights is None else weights[rows],
                sample_weight_val=judges.weights,
                groups=None if groups is None else groups[rows], batch=self.batch,
                device=self.device,
                random_state=0, memory=self.memory, n_jobs=self.n_jobs,
            )  # fmt: skip
            model_games.append(game)
            players.append(rows if groups is None else game.groups_)
        n = len(X) if groups is None else int(groups.max()) + 1
        stopping = self._stopping(n, X, len(games))
        mark = self._fingerprint(games, X, labels, weights, groups, estimator)
        largest = max(game.n_players for game in model_games)
        seed, sampler = self._seed_and_sampler(former, mark, largest, stopping, len(games))
        make = partial(self._make_run_by, model_games, players, n, stopping, mark, seed, former)
        run = make(sampler)
        if self.max_time is not None and all(e.exact for e in run.estimations):
            seconds, workers = self._cost(run)
            seconds *= run.planned() / workers
            if seconds > self.max_time:
                if former is not None or self._named_sampler() != "auto":
                    raise ValueError(
                        f"max_time must be enough for sampler='exact', whose {run.planned():,} "
                        f"coalitions take about {seconds:.2g} seconds here. Got {self.max_time}: "
                        "take more time or another sampler."
                    )
                few = stopping.max_evaluations is not None and (
                    stopping.max_evaluations // len(games) <= SUBSETS
                )
                run = make("permutation" if few else "stratified")
        return run

    def _make_run_by(self, model_games, players, n, stopping, mark, seed, former, sampler):
        """The run of a sampler."""
        self.sampler_ = sampler
        estimations = [
            Estimation(game, self._design(sampler, game.n_players), seed, number)
            for number, game in enumerate(model_games)
        ]
        self._check_count(estimations, stopping)
        header = {
            "fingerprint": np.array(mark),
            "seeds": np.array([str(seed)]),
            "sampler": np.array(sampler),
            "players": np.array([game.n_players for game in model_games]),
            "empty": np.array([game.empty_utility for game in model_games]),
            "n_values": np.array(n),
            "n_failed": np.array(0 if former is None else former["n_failed"]),
        }
        run = Run(estimations, players, n, stopping, header, self.checkpoint)
        if former is not None:
            header["seeds"] = former["seeds"]
            run.restore(former)
        return run

    def _design(self, sampler, n):
        return make_design(sampler, self._semivalue, n, self.truncation)

    def _named_sampler(self):
        """The sampler asked for; only orders can be truncated."""
        return "antithetic" if self.sampler == "auto" and self.truncation else self.sampler

    def _stopping(self, n, X, n_games):
        sampler = self._named_sampler()
        stopping = Stopping(
            self.max_evaluations, self.max_time, self.tol, self.sign_level, self.stable_bottom
        )
        if self.max_evaluations is None and self.max_time is None and not stopping.has_goals:
            count = default_evaluations(n, len(X), X.shape[1])
            # Two blocks at least, so that there is an error.
            cost = SUBSETS if sampler in ("auto", "exact") else self._design(sampler, n).cost
            stopping.max_evaluations = max(count, n_games * (2 * cost + 1))
        return stopping

    def _seed_and_sampler(self, former, mark, n, stopping, n_games):
        if former is not None:
            given = self.random_state
            if str(former["fingerprint"]) != mark:
                raise ValueError(
                    f"{self._former_name()} goes on with a fit on the same data with the same "
                    "parameters. Got other data or parameters."
                )
            seed = str(former["seeds"][0])
            if isinstance(given, Integral) and str(given) != seed:
                raise ValueError(
                    f"{self._former_name()} goes on with the random numbers of random_state={seed}."
                    f" Got random_state={given}."
                )
            return int(seed), str(former["sampler"])
        if self.random_state is None:
            seed = np.random.SeedSequence().entropy
        elif isinstance(self.random_state, Integral):
            seed = int(self.random_state)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self._named_sampler() != "auto":
            return seed, self._named_sampler()
        limit = stopping.max_evaluations
        limit = None if limit is None else limit // n_games
        return seed, choose_sampler(self._semivalue, n, limit)

    def _former_name(self):
        return "warm_start" if self.warm_start and hasattr(self, "_run") else "checkpoint"

    def _check_count(self, estimations, stopping):
        """Refuse a count that does not allow one replicate in every game."""
        if stopping.max_evaluations is None or self.max_evaluations is None:
            return
        least = len(estimations) * max(
            1 + (e.design.total if e.exact else e.design.cost) for e in estimations
        )
        if stopping.max_evaluations < least:
            games = "" if len(estimations) == 1 else f" in each of {len(estimations)} splits"
            raise ValueError(
                f"max_evaluations must be at least {least} for sampler={self.sampler_!r} and "
                f"{max(e.design.n for e in estimations)} players{games}. Got "
                f"{self.max_evaluations}."
            )

    def _fingerprint(self, games, X, labels, weights, groups, estimator):
        judged = [(rows, judges.X, judges.y, judges.weights) for rows, judges in games]
        kept = {
            name: getattr(self, name)
            for name in ("sampler", "scoring", "empty_utility", "error_score", "truncation")
        }
        parts = [type(self).__name__, X, labels, weights, groups, judged, estimator]
        return fingerprint(*parts, self._semivalue, kept, self.batch, self.device)

    def _former(self):
        """Arrays of the run to go on with, or None."""
        if self.warm_start and hasattr(self, "_run"):
            return self._run
        return None if self.checkpoint is None else read_arrays(self.checkpoint)

    def _play(self, games, X, y, groups):
        run = self._make_run(games, X, y, groups, self._former())
        progress = Progress(self, run.n_steps)
        for _ in progress.follow(run.steps(), run.n_steps, "coalitions"):
            pass
        played = run.valued
        if not played:
            if progress.interrupted:
                raise KeyboardInterrupt
            raise RuntimeError(
                "The fit was stopped by a callback before there was a value to keep."
            )
        error, exact = run.error, all(e.exact for e in run.estimations)
        self._publish(run)
        if progress.interrupted:
            self.stop_reason_ = "interrupted"
        elif progress.stopped:
            self.stop_reason_ = "callback"
        elif error is not None:
            self.stop_reason_ = "error"
        else:
            self.stop_reason_ = run.reason or ("exact" if exact else "max_evaluations")
        if run.checkpoint is not None and not isinstance(error, OSError):
            try:
                run.write()
            except OSError as failure:
                error = failure
        if error is not None:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            can_resume = "warm_start" in self._parameter_constraints
            progress.error = RuntimeError(
                f"The fit was ended by an error: {first_line.rstrip('.')}. What "
                f"{self.n_evaluations_} coalitions have given is kept in values_"
                + ("; fit with warm_start=True goes on." if can_resume else ".")
            )
            progress.error.__cause__ = error
        progress.warn = partial(self._warn, run)
        utility = np.mean([run.estimations[i].full for i in played])
        empty = np.mean([run.estimations[i].game.empty_utility for i in played])
        return [games[i] for i in played], run.result()[0], utility, empty, progress

    def _publish(self, run):
        """Set the attributes that say how the values have come about."""
        _, self.values_error_, self._freedom = run.result()
        self.n_evaluations_ = sum(e.asked for e in run.estimations)
        self._run = run.arrays()
        self.n_failed_ = int(self._run["n_failed"])
        self._players = run.players
        self.__dict__.pop("truncation_bias_", None)
        if self.truncation is not None:
            self.truncation_bias_ = np.zeros(run.n)
            for estimation, rows in zip(run.estimations, run.players):
                if not estimation.exact:
                    self.truncation_bias_[rows] += estimation.moments.bias / len(run.estimations)

    def _warn(self, run):
        for estimation in run.estimations:
            estimation.game.warn_failed()
        by_default = self.max_evaluations is None and run.stopping.max_evaluations is not None
        if by_default and self.stop_reason_ == "max_evaluations":
            warnings.warn(
                f"The values stand on {self.n_evaluations_:,} coalitions, as many as is usual for "
                f"such data: standard errors are {np.median(self.values_error_):.2g} (median), "
                f"values spread by {np.std(run.result()[0]):.2g}. Set max_evaluations, max_time or "
                "tol for another precision.",
                ImpreciseValuesWarning,
                stacklevel=6,
            )

    def _set_values(self, values):
        self.values_ = values
