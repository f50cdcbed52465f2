"""One run of a method: its steps, its threads, and its warnings and errors."""

import logging
import time
from contextlib import closing, contextmanager

import numpy as np

from .._utils.duration import LONG, duration
from .._utils.fits import follows_interrupt
from .._utils.log import log_engine
from .._utils.parallel import ordered_map
from .._utils.sklearn import callback_context, has_callbacks
from .._utils.warned import counted_map, summaries, warn_all
from ..exceptions import ImpreciseValuesWarning, IncompleteFitWarning

_MAX_STEPS = 100  # in which coalitions are reported
_COALITIONS_PER_STEP = 64  # the fewest
_MIN_SECONDS = 1  # of work, before which no time is estimated
# A fit is announced when this fraction of its steps is done. Of a very long one that
# may take long: then after some seconds of work.
_SURE_FRACTION = 0.1
_SURE_SECONDS = 30


class _Stopped(BaseException):
    """A callback stops the fit; no `Exception`, which a method might catch."""


class Run:
    """What the base class does around the loop of a method.

    It counts steps, runs tasks in threads, and collects warnings. The one loop of
    `_value` is in the context of `steps`, or of `evaluations` (coalitions), or over
    `map` (independent tasks). A callback or Ctrl-C ends the loop and nothing else: the
    lines after it make a `Result` of what was done until then, or return None if that
    has no values.

    If the first tenth of a known number of steps or of a preparation, or 30 seconds of
    work, show that the fit takes more than ten seconds, a message is logged once. Fits
    that callbacks watch, with `max_time` or that are private log none.

    Parameters
    ----------
    estimator : estimator
        The valuer.

    Attributes
    ----------
    stopped : bool
        Whether a callback ended the loop.
    interrupted : bool
        Whether Ctrl-C ended the loop.
    late : bool
        Whether `max_time` ended the loop before its announced steps; set by `steps`, or
        by a method with a rule of its own.
    warned : dict
        Counts of the warnings of models, to which `fits` adds.

    Examples
    --------
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.base import Run
    >>> run = Run(KNNShapleyValuer())
    >>> list(run.map(pow, [(2, 3), (3, 2)], n_jobs=1))
    [8, 9]
    """

    def __init__(self, estimator):
        self.stopped = False
        self.interrupted = False
        self.late = False
        self.warned = {}
        self._estimator = estimator
        self._context = None
        self._what = ""
        self._warnings = []
        self._is_announced = False
        self._start = time.perf_counter()
        # When the preparation of the loop began, see `prepared`.
        self._prepares_from = None

    @contextmanager
    def steps(self, n, what, max_time=None, fewest=1, n_unequal=0):
        """Context of a loop in steps.

        Parameters
        ----------
        n : int or None
            The largest number of steps; None if it is not known.
        what : str
            What a step does, such as "models trained".
        max_time : float, default=None
            Seconds after which the loop ends.
        fewest : int, default=1
            Number of steps before which `max_time` does not end it.
        n_unequal : int, default=0
            Number of first steps whose time says nothing of that of the others.

        Yields
        ------
        done : callable
            To be called after each step.
        """
        self._what = what
        self._context = callback_context(self._estimator, n)
        self._context.call_on_fit_task_begin(estimator=self._estimator)
        name = what.rsplit(" ", 1)[0]
        done = _Steps(
            self, n, name, max_time=max_time, fewest=fewest, n_unequal=n_unequal
        )
        done()  # begins the first step
        try:
            yield done
            done(loop=False)  # fewer steps than announced
        except GeneratorExit:  # the caller of `map` has enough
            done(loop=False)
            raise
        except _Stopped:
            pass
        except KeyboardInterrupt:
            self.interrupted = True
        except Exception as error:
            # Libraries that are interrupted can fail with an error of their own.
            if not follows_interrupt(error):
                raise
            self.interrupted = True

    @contextmanager
    def evaluations(self, planned, what="coalitions evaluated", speedup=None):
        """Context of a loop over coalitions, with several evaluations a step.

        Parameters
        ----------
        planned : int or None
            The largest number of evaluations; None if it is not known.
        what : str, default="coalitions evaluated"
            What an evaluation does.
        speedup : float, default=None
            How many of the other evaluations are done in the time of the first one. If
            that one takes more than 30 seconds, it tells how long the fit takes.

        Yields
        ------
        done : callable
            To be called with the number of new evaluations.
        """
        n_steps = None
        if planned is not None:
            n_steps = max(1, min(_MAX_STEPS, planned // _COALITIONS_PER_STEP))
        n_evaluated = 0
        n_reported = 0
        forecast = _Forecast(self, planned, speedup)
        with self.steps(n_steps, what) as step:

            def done(n_new):
                nonlocal n_evaluated, n_reported
                forecast.add(n_new)
                n_evaluated += n_new
                if n_steps is None:
                    n_due = n_reported + 1
                else:
                    n_due = min(n_evaluated * n_steps // max(planned, 1), n_steps)
                while n_reported < n_due:
                    n_reported += 1
                    step()

            yield done

    def map(
        self, function, tasks, n_jobs, n_tasks=None, what="validation points evaluated"
    ):
        """Results of independent tasks, in order, each of which is a step.

        Parameters
        ----------
        function : callable
            Called as ``function(*task)``, in several threads at a time.
        tasks : iterable of tuples
            The arguments. A generator is drawn from when a worker is free.
        n_jobs : int or None
            Number of workers; each uses one BLAS thread.
        n_tasks : int, default=None
            Number of tasks, which a generator needs.
        what : str, default="validation points evaluated"
            What a task does.

        Yields
        ------
        result : object
            What the function returned.
        """
        if n_tasks is None:
            n_tasks = len(tasks)
        with (
            closing(ordered_map(function, tasks, n_jobs, n_tasks)) as results,
            self.steps(n_tasks, what) as done,
        ):
            for result in results:
                yield result
                del result  # it may be large, and the next one is being made
                done()

    def prepared(self, n_done, n_parts, loop_seconds):
        """Count parts of a preparation that may take longer than the loop after it.

        Parameters
        ----------
        n_done : int
            Number of parts that are done: 0 where the preparation begins.
        n_parts : int
            Number of all parts.
        loop_seconds : float
            How long the loop takes, about.
        """
        now = time.perf_counter()
        if n_done == 0:
            self._prepares_from = now
            return
        measured = now - self._prepares_from
        if n_done >= _SURE_FRACTION * n_parts and measured > _MIN_SECONDS:
            remaining = measured / n_done * (n_parts - n_done)
            self._announce(now - self._start + remaining + loop_seconds)

    def fits(self, function, tasks, n_jobs):
        """Results of tasks that train models, in order; their warnings are counted.

        Parameters
        ----------
        function : callable
            Called as ``function(*task)``, on joblib's backend.
        tasks : iterable of tuples
            The arguments.
        n_jobs : int or None
            Number of workers.

        Returns
        -------
        results : generator
            What the function returned. The loop over it is in the context of `steps`.
        """
        return counted_map(function, tasks, n_jobs, self.warned)

    def warn(self, message, category):
        """Issue a warning after the values are set.

        Parameters
        ----------
        message : str
            Its text.
        category : type
            Its class.
        """
        self._warnings.append((message, category))

    def close(self):
        """Tell the callbacks that the fit is complete, if it is.

        Progress bars show 100 % then.
        """
        is_complete = not (self.stopped or self.interrupted or self.late)
        if self._context is not None and is_complete:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def end(self, result):
        """Tell the callbacks, raise what ended the fit, and warn, once values are set.

        Parameters
        ----------
        result : Result
            What the method returned.
        """
        self.late |= result.error is not None
        self.close()
        engine = result.attributes.get("engine_")
        if engine is not None:
            log_engine(self._estimator, "fit", engine, result.attributes["device_"])
        if result.error is not None:
            raise result.error
        if self.interrupted:
            raise KeyboardInterrupt

        pending = summaries(self.warned) if self.warned else []
        pending += self._warnings
        if not any(category is ImpreciseValuesWarning for _, category in pending):
            pending += _noise_warnings(result)
        if self.stopped:
            message = (
                "The fit was stopped by a callback: the values are based on the "
                f"{self._what} until then."
            )
            pending.append((message, IncompleteFitWarning))
        if pending:
            warn_all(pending)

    def _announce(self, seconds):
        """Log once that a fit is long. A warning could be turned into an error."""
        if seconds <= LONG or self._is_announced:
            return
        self._is_announced = True
        estimator = self._estimator
        if (
            has_callbacks(estimator)
            or getattr(estimator, "max_time", None) is not None
            or getattr(estimator, "_is_private", False)
        ):
            return
        limit = "max_time limits it; " if hasattr(estimator, "max_time") else ""
        logging.getLogger("skvalue").warning(
            "%s.fit takes about %s. "
            "%sset_callbacks(ProgressBar()) shows how far it is.",
            type(estimator).__name__,
            duration(seconds),
            limit,
        )


class _Forecast:
    """How long a loop over coalitions takes, by those that are evaluated.

    The first one is that of all rows, and imports what models need: if it takes longer
    than a forecast waits for, the others are counted by ``speedup`` (see
    `Run.evaluations`). Else they are measured, without the first.
    """

    def __init__(self, run, planned, speedup):
        self._run = run
        self._planned = planned
        self._speedup = speedup
        self._n_evaluated = 0
        self._start = time.perf_counter()
        self._first_end = None
        self._n_first = 0

    def add(self, n_new):
        """Count evaluations, and announce a long fit once that is sure."""
        now = time.perf_counter()
        self._n_evaluated += n_new
        if not self._planned or not n_new:
            return
        if self._first_end is None:
            self._first_end = now
            self._n_first = n_new
            first = now - self._start
            if self._speedup and n_new == 1 and first > _SURE_SECONDS:
                self._run._announce(first * (1 + (self._planned - 1) / self._speedup))
            return

        measured = now - self._first_end
        is_sure = (
            self._n_evaluated >= _SURE_FRACTION * self._planned
            or measured > _SURE_SECONDS
        )
        if is_sure and measured > _MIN_SECONDS:
            seconds = measured / (self._n_evaluated - self._n_first)
            remaining = seconds * max(self._planned - self._n_evaluated, 0)
            self._run._announce(now - self._run._start + remaining)


class _Steps:
    """The steps of a loop: each call ends one and begins the next one."""

    def __init__(self, run, n_steps, name, *, max_time, fewest, n_unequal):
        self._run = run
        self._n_steps = n_steps
        self._name = name
        self._max_time = np.inf if max_time is None else max_time
        self._fewest = fewest
        self._n_unequal = n_unequal
        self._n_ended = 0
        self._n_left = np.inf if n_steps is None else n_steps
        # None before the first step and after the last announced one.
        self._current = None
        self._start = time.perf_counter()
        # The time of a step is measured from here on, without the steps before.
        self._measured_from = None
        self._n_not_measured = 0

    def __call__(self, *, loop=True):
        """End the step, and begin the next one unless the loop is left."""
        run = self._run
        if self._current is not None:
            ended = self._current
            self._current = None
            self._n_left -= 1
            self._n_ended += 1
            stops = ended.call_on_fit_task_end(estimator=run._estimator)
            # After the last step there is nothing left to stop.
            run.stopped = bool(stops) and self._n_left > 0
            self._estimate_time()
        if run.stopped and loop:
            raise _Stopped
        is_late = time.perf_counter() - self._start > self._max_time
        if is_late and self._n_ended >= self._fewest and self._n_left and loop:
            run.late = True
            raise _Stopped
        if self._n_left and loop:
            self._current = run._context.subcontext(task_name=self._name)
            self._current.call_on_fit_task_begin(estimator=run._estimator)

    def _estimate_time(self):
        """Announce a long fit, after its first steps."""
        now = time.perf_counter()
        if 0 < self._n_ended <= self._n_unequal:
            self._measured_from = now
            self._n_not_measured = self._n_ended
            return
        if self._measured_from is None:
            self._measured_from = self._start
            # A short first step may be that of importing.
            if now - self._start < LONG:
                self._measured_from = now
                self._n_not_measured = 1
        if self._n_steps is None:
            return
        measured = now - self._measured_from
        n_done = self._n_steps - self._n_left
        is_sure = n_done >= _SURE_FRACTION * self._n_steps or measured > _SURE_SECONDS
        if is_sure and measured > _MIN_SECONDS:
            remaining = measured / (n_done - self._n_not_measured) * self._n_left
            self._run._announce(now - self._run._start + remaining)


def _noise_warnings(result):
    """A warning of values that are smaller than their errors, if they are.

    Private fits have warnings of their own.
    """
    errors = result.attributes.get("values_error_")
    if errors is None or result.release is not None:
        return []
    error = np.median(errors)
    deviation = np.std(result.values[np.isfinite(result.values)])
    if not error > deviation:
        return []
    message = (
        f"The values are mostly noise: their median standard error is {error:.2g}, "
        f"their standard deviation {deviation:.2g}. Fit for longer, or value groups "
        "of rows."
    )
    return [(message, ImpreciseValuesWarning)]
