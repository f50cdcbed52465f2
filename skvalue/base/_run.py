"""One run of a method: its steps, its threads, and what follows once the values are
set."""

import logging
import time
from contextlib import closing, contextmanager

import numpy as np

from .._utils.duration import LONG, duration
from .._utils.parallel import ordered_map
from .._utils.sklearn import callback_context, has_callbacks
from .._utils.warned import counted_map, summaries, warn_all
from ..exceptions import ImpreciseValuesWarning, IncompleteFitWarning

_STEPS, _LEAST = (
    100,
    64,
)  # most steps that coalitions are reported in, and fewest coalitions of one
_SURE = 1  # second of work, before which no time is estimated


class _Stopped(BaseException):
    """A callback stops the fit. No `Exception`, so that no method takes it for an
    error."""


class Run:
    """What a method needs of the fit around it: steps that may end early, threads and
    warnings.

    The one loop of `_value` is in the context of `steps`, or of `evaluations`
    (coalitions), or over `map` (independent tasks). A callback or Ctrl-C ends the loop
    and nothing else: the lines after it make a `Result` of what was done until then, or
    return None if that has no values.

    If the first steps of a known number show that the fit takes more than a minute, a
    message is logged once. Fits that callbacks watch, with `max_time` or that are
    private log none.
    """

    def __init__(self, estimator):
        self.stopped = self.interrupted = False  # by a callback, by Ctrl-C
        self.late = (
            False  # a method sets it if `max_time` ends it before its announced steps
        )
        self.warned = {}  # counts of the warnings of models, see `skvalue._utils.warned`
        self._warnings, self._announced = [], False
        self._estimator, self._context, self._what = estimator, None, ""

    @contextmanager
    def steps(self, n, what):
        """Context of a loop of at most n steps (None: unknown); call what it yields
        after each.

        ``what`` says what a step does, such as "models trained".
        """
        name, left, step = what.rsplit(" ", 1)[0], np.inf if n is None else n, None
        start, first = time.perf_counter(), None
        told = {"estimator": self._estimator}
        self._what, self._context = what, callback_context(self._estimator, n)
        self._context.call_on_fit_task_begin(**told)

        def done(*, loop=True):
            """End the step, and begin the next one unless the loop is left."""
            nonlocal step, left, first
            if (
                step is not None
            ):  # None before the first and after the last announced step
                ended, step, left = step, None, left - 1
                self.stopped = bool(ended.call_on_fit_task_end(**told))
                now = time.perf_counter()
                if (
                    first is None
                ):  # a short first step may be that of compiling and importing
                    first = (now, 1) if now - start < LONG else (start, 0)
                if n is not None and now - first[0] > _SURE:
                    seconds = (
                        now - start + (now - first[0]) / (n - left - first[1]) * left
                    )
                    if seconds > LONG and not self._announced:
                        self._announce(seconds)
            if self.stopped and loop:
                raise _Stopped
            if left and loop:
                step = self._context.subcontext(task_name=name)
                step.call_on_fit_task_begin(**told)

        done()
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

    @contextmanager
    def evaluations(self, planned, what="coalitions evaluated", speedup=None):
        """As `steps`, of several of the ``planned`` evaluations each (None: unknown).

        Call what it yields with the number of new evaluations. With ``speedup`` a long
        first one tells how long the fit takes: that many of the others are done in its
        time.
        """
        n = None if planned is None else max(1, min(_STEPS, planned // _LEAST))
        evaluated, steps, start = 0, 0, time.perf_counter()
        with self.steps(n, what) as step:

            def done(count):
                nonlocal evaluated, steps
                first = time.perf_counter() - start
                if (
                    speedup
                    and planned
                    and not evaluated
                    and count == 1
                    and first > _SURE
                ):
                    seconds = first * (1 + (planned - 1) / speedup)
                    if seconds > LONG:
                        self._announce(seconds)
                evaluated += count
                due = (
                    steps + 1 if n is None else min(evaluated * n // max(planned, 1), n)
                )
                while steps < due:
                    steps += 1
                    step()

            yield done

    def _announce(self, seconds):
        """Log how long the fit takes, once. A warning could be turned into an error."""
        estimator, self._announced = self._estimator, True
        limit = getattr(estimator, "max_time", None)
        if (
            has_callbacks(estimator)
            or limit is not None
            or getattr(estimator, "_is_private", 0)
        ):
            return
        shorter = "max_time limits it; " if hasattr(estimator, "max_time") else ""
        logging.getLogger("skvalue").warning(
            "%s.fit takes about %s. %sset_callbacks(ProgressBar()) shows how far it is.",
            type(estimator).__name__, duration(seconds), shorter,
        )  # fmt: skip

    def map(
        self, function, tasks, n_jobs, n_tasks=None, what="validation points evaluated"
    ):
        """Yield ``function(*task)`` for every task, in order, each as a step; see
        `ordered_map`."""
        n_tasks = len(tasks) if n_tasks is None else n_tasks
        with (
            closing(ordered_map(function, tasks, n_jobs, n_tasks)) as parts,
            self.steps(n_tasks, what) as done,
        ):
            for part in parts:
                yield part
                del part  # it may be large, and the next one is being made
                done()

    def fits(self, function, tasks, n_jobs):
        """Yield ``function(*task)`` for tasks that train models; their warnings are
        counted."""
        return counted_map(function, tasks, n_jobs, self.warned)

    def warn(self, message, category):
        """Issue a warning after the values are set."""
        self._warnings.append((message, category))

    def close(self):
        """Tell the callbacks that the fit is complete, if it is: progress bars show 100
        % then."""
        if self._context is not None and not (
            self.stopped or self.interrupted or self.late
        ):
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def end(self, result):
        """Once the values are set: tell the callbacks, raise what ended the fit, and
        warn."""
        self.late |= result.error is not None
        self.close()
        if result.error is not None:
            raise result.error
        if self.interrupted:
            raise KeyboardInterrupt
        found = summaries(self.warned) if self.warned else []
        found += self._warnings
        errors = result.attributes.get("values_error_")
        told = ImpreciseValuesWarning in dict(found).values()
        if errors is not None and result.release is None and not told:
            error, std = (
                np.median(errors),
                np.std(result.values[np.isfinite(result.values)]),
            )
            if error > std:
                message = (
                    f"The values are mostly noise: their median standard error is {error:.2g}, "
                    f"their standard deviation {std:.2g}. Fit for longer, or value groups of rows."
                )
                found.append((message, ImpreciseValuesWarning))
        if self.stopped:
            message = (
                f"The fit was stopped by a callback: the values are based on the {self._what} "
                "until then."
            )
            found.append((message, IncompleteFitWarning))
        if found:
            warn_all(found)
