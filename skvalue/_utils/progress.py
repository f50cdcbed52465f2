"""Progress of a fit, reported to callbacks; a callback or Ctrl-C may stop the fit early."""

from itertools import count

from .sklearn import callback_context


class Progress:
    """Iterates over the parts of a computation until the end, or until a callback or Ctrl-C stops.

    ``n_parts`` is the largest number of parts, or None if unbounded. Call `close` if a loop over it
    may break.
    """

    def __init__(self, estimator, parts, n_parts=None, task_name="parts"):
        self.stopped = self.interrupted = False
        self._estimator = estimator
        self._context = callback_context(estimator, n_parts)
        self._context.call_on_fit_task_begin(estimator=estimator)
        self._steps = self._follow(iter(parts), n_parts, task_name)

    def __iter__(self):
        return self._steps

    def close(self):
        """Cancel the parts that have not started."""
        self._steps.close()

    def end(self, complete=True):
        """Notify the callbacks of the end of the fit, unless it ended early.

        A progress bar would show 100 % otherwise; callbacks are torn down in both cases.
        """
        if complete and not (self.stopped or self.interrupted):
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def _follow(self, parts, n_parts, task_name):
        end = object()
        try:
            # A context refuses more subtasks than announced, so none starts after the last part.
            for _ in count() if n_parts is None else range(n_parts):
                step = self._context.subcontext(task_name=task_name)
                step.call_on_fit_task_begin(estimator=self._estimator)
                part, left = next(parts, end), False
                if part is not end:
                    try:
                        yield part
                    except GeneratorExit:  # the consumer stopped
                        left = True
                if step.call_on_fit_task_end(estimator=self._estimator):
                    self.stopped = True
                    return
                if part is end or left:
                    return
                part = None  # free it, it may be large, before the next one is made
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            if hasattr(parts, "close"):
                parts.close()
