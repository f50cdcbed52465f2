"""The default `_value`, for classes that still have the former hooks. Goes with the last of them.

The former hooks are `_prepare(problem)`, `_release(problem, attributes)`, `_parts(problem,
attributes, release)` and `_combine(problem, attributes, parts)`.
"""

from dataclasses import replace
from itertools import islice


class Parts:
    """The parts of a computation as `_combine` takes them: they may end early."""

    def __init__(self, run, parts, n_parts, what):
        self._run, self._steps = run, self._follow(run, iter(parts), n_parts, what)

    def _follow(self, run, parts, n_parts, what):
        try:
            with run.steps(n_parts, what) as done:
                for part in islice(parts, n_parts):
                    yield part
                    del part
                    done()
        finally:
            if hasattr(parts, "close"):
                parts.close()

    def __iter__(self):
        return self._steps

    stopped = property(lambda self: self._run.stopped)
    interrupted = property(lambda self: self._run.interrupted)

    def close(self):
        """Cancel the parts that have not started."""
        self._steps.close()


def value_by_parts(valuer, problem, run):
    """The `Result` of a valuer with the former hooks."""
    attributes = valuer._prepare(problem) if hasattr(valuer, "_prepare") else {}
    release = valuer._release(problem, attributes) if hasattr(valuer, "_release") else None
    computed, n_parts = valuer._parts(problem, attributes, release)
    parts = Parts(run, computed, n_parts, problem.takes.done)
    try:
        result = valuer._combine(problem, attributes, parts)
    finally:
        parts.close()
    if result is None:
        return None
    for warning in result.warnings:
        run.warn(*warning)
    run.late = n_parts is not None and result.attributes.get("stop_reason_") == "max_time"
    return replace(
        result, attributes={**attributes, **result.attributes},
        release=release, warnings=(),
    )  # fmt: skip
