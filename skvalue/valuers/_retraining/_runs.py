"""What a run has in common with those that resume it, and how it ends."""

import numpy as np
from sklearn.base import clone

from ..._utils.hashing import fingerprint


def fingerprints(problem, **settings):
    """Names of the data and settings of a fit, and their fingerprints, in two rows.

    The ``estimator`` among the settings counts without its fitted state, which no fit
    uses.
    """
    points = []
    for split in problem.splits:
        all_play = isinstance(split.players, slice)
        players = None if all_play else split.players
        points.append((players, split.points.X, split.points.y, split.points.weights))
    inputs = {
        "X": problem.X,
        "y": problem.labels(problem.y),
        "sample_weight": problem.sample_weight,
        "groups": problem.groups,
        "X_val and y_val, or cv": points,
        **settings,
    }
    inputs["estimator"] = clone(settings["estimator"])
    return np.array([list(inputs), [fingerprint(value) for value in inputs.values()]])


def changed_inputs(marks, former_marks):
    """Names of what differs between the fingerprints of two fits, in one text."""
    former = dict(former_marks.T.tolist())
    names = [name for name, mark in marks.T.tolist() if former.get(name) != mark]
    return ", ".join(names)


def stop_reason(run, error, complete):
    """The attribute `stop_reason_`; ``complete`` if nothing ended the run early."""
    if run.interrupted:
        return "interrupted"
    if run.stopped:
        return "callback"
    if error is not None:
        return "error"
    return complete


def interruption_error(error, n_evaluations, how_to_resume=""):
    """The exception raised after the values are set, of a fit that an error ended."""
    # Texts of other errors than those of files may show entries of the rows.
    reason = ""
    if isinstance(error, OSError):
        reason = str(error).partition("\n")[0].rstrip(".")
    if not reason:
        reason = f"{type(error).__name__}, the cause of this error"
    raised = RuntimeError(
        f"The fit was ended by an error: {reason}. The results of the {n_evaluations} "
        f"coalitions evaluated before are kept in values_{how_to_resume}."
    )
    raised.__cause__ = error
    return raised
