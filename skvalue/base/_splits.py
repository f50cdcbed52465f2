"""Splits of a problem: which rows play, and which weighted points evaluate them."""

from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, LeaveOneOut, check_cv

from .._utils.checks import format_values
from .._utils.messages import Message
from .._utils.warned import warn
from ..exceptions import ParameterError, QuadraticCostWarning
from ._containers import rows_at
from ._problem import Points, Split

LEAVE_ONE_OUT_LIMIT = 50_000
DEFAULT_FOLDS = 5  # of the methods that do not leave out one row by default


def split_rows(cv, problem):
    """Splits of ``cv``, and the fraction of them in which one more row would play."""
    X = problem.X
    y = problem.y
    n = len(y)
    prior = 0.0 if problem.n_classes else float(y.mean())
    if cv is None and problem.capabilities.on_themselves:
        return (Split(slice(None), _all_rows(X, y, prior)),), 1.0
    is_name = isinstance(cv, str) and cv == "leave-one-out"
    if is_name or isinstance(cv, LeaveOneOut):
        if problem.capabilities.neighbors and problem.groups is None:
            return _leave_one_out_in_one_game(X, y, prior)
        cv = LeaveOneOut() if problem.groups is None else LeaveOneGroupOut()

    splits = []
    for players, held_out in _positions(cv, problem):
        points = Points(
            X=rows_at(X, held_out),
            y=y[held_out],
            weights=np.full(len(held_out), 1.0 / len(held_out)),
            index=held_out,
            prior=prior,
        )
        splits.append(Split(players, points))
    n_players = sum(len(split.players) for split in splits)
    return tuple(splits), n_players / (n * len(splits))


def _leave_one_out_in_one_game(X, y, prior):
    """One game in place of n, and the fraction of them in which one more row plays.

    Each row is a validation point, and never its own neighbour.
    """
    n = len(y)
    if n > LEAVE_ONE_OUT_LIMIT:
        message = Message(
            "cv",
            f"Leave-one-out compares {n * n:,} pairs of rows.",
            "Pass {}, or {}, to make it cheaper.",
            [("X_val", ...), ("cv", 5)],
            subject="",
        )
        warn(message, QuadraticCostWarning)
    return (Split(slice(None), _all_rows(X, y, prior)),), n / (n + 1)


def _all_rows(X, y, prior):
    """All rows as validation points."""
    rows = np.arange(len(y))
    return Points(
        X=X,
        y=y,
        weights=np.full(len(y), 1.0 / len(y)),
        index=rows,
        self_index=rows,
        prior=prior,
    )


def _positions(cv, problem):
    """Positions of players and of held-out rows in the splits of ``cv``.

    Raises ValueError unless each row is a player in equally many splits, and no row or
    group is on both sides of a split.
    """
    X = problem.X
    y = problem.y
    groups = problem.groups
    if cv is None:
        cv = DEFAULT_FOLDS
    name = f"cv={_described(cv)}"
    if groups is not None and isinstance(cv, Integral):
        n_groups = len(np.unique(groups))
        if cv == DEFAULT_FOLDS and 1 < n_groups < cv:
            cv = LeaveOneGroupOut()
        else:
            cv = GroupKFold(int(cv))
    cv = check_cv(cv, y, classifier=problem.n_classes > 0)
    splits = [
        (_row_numbers(players, len(y), name), _row_numbers(held_out, len(y), name))
        for players, held_out in cv.split(X, y, groups)
    ]
    if not splits:
        raise ValueError(f"{name} must give at least one split. Got none.")
    n_games = np.zeros(len(y), dtype=np.int64)
    for players, held_out in splits:
        if len(players) == 0 or len(held_out) == 0:
            raise ValueError(
                f"{name} must give splits with at least one row on each side."
            )
        if np.intersect1d(players, held_out).size:
            raise ValueError(f"{name} must not put a row on both sides of a split.")
        n_games[players] += 1
        if groups is not None:
            on_both_sides = np.intersect1d(groups[players], groups[held_out])
            if on_both_sides.size:
                raise ValueError(
                    f"With groups, {name} must keep every group on one side of a "
                    "split: use GroupKFold, LeaveOneGroupOut or an int."
                )
    if n_games.min() != n_games.max():
        raise ValueError(
            f"{name} must let every row play equally often (KFold, StratifiedKFold, "
            "GroupKFold, repeated K-fold, leave-one-out). Got rows that play "
            f"{n_games.min()} to {n_games.max()} times."
        )
    return splits


def _row_numbers(rows, n_rows, name):
    """Row numbers of one side of a split in ascending order, also of a mask."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if rows.size == 0:
        return np.zeros(0, dtype=np.intp)
    numbers = np.unique(rows)
    is_numbers = rows.ndim == 1 and rows.dtype.kind in "iu"
    if not is_numbers or len(numbers) < len(rows):
        raise ValueError(
            f"{name} must give row numbers, each once on a side, or masks of all rows."
        )
    if numbers[0] < 0 or numbers[-1] >= n_rows:
        raise ValueError(
            f"{name} must give row numbers from 0 to {n_rows - 1}. Got "
            f"{numbers[0]} to {numbers[-1]}."
        )
    return numbers


def _described(cv):
    """What cv is, for messages: of a list of splits, only that it is one."""
    if isinstance(cv, (Integral, str)) or hasattr(cv, "split"):
        return repr(cv)
    return f"a {type(cv).__name__} of splits"


def with_class_weights(class_weight, problem, splits):
    """The splits with weights of the points by which all classes count equally."""
    if not problem.n_classes:
        raise ParameterError(
            "class_weight", f"must be None for a regression. Got {class_weight!r}."
        )
    weighted = []
    for split in splits:
        y = split.points.y
        weights = split.points.weights
        totals = np.bincount(y, weights=weights, minlength=problem.n_classes)
        if np.count_nonzero(totals) < 2:
            raise ValueError(
                f"class_weight={class_weight!r} needs validation points of at least "
                "two classes, in X_val or in each split of cv. Got points of one class."
            )
        weights = weights / np.where(totals > 0, totals, 1.0)[y]
        points = replace(split.points, weights=weights / weights.sum())
        weighted.append(replace(split, points=points))
    return tuple(weighted)


def refuse_unseen_labels(problem, cv):
    """Refuse splits in which no player has the label of a validation point.

    Parameters
    ----------
    problem : Problem
        The problem.
    cv : object
        The parameter that says how rows are split, for the message.

    Raises
    ------
    ValueError
        If there is such a split.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.base import make_problem, refuse_unseen_labels
    >>> X, y = np.arange(6.0).reshape(-1, 1), np.array(["no", "yes"] * 3)
    >>> valuer = KNNShapleyValuer(cv=3)
    >>> refuse_unseen_labels(make_problem(valuer, X, y), valuer.cv)
    """
    if not problem.n_classes:
        return
    for split in problem.splits:
        unseen = np.setdiff1d(split.points.y, problem.rows(split)[1])
        if len(unseen):
            labels = format_values(problem.classes[unseen])
            raise ParameterError(
                "cv",
                "must give splits whose players have all labels of the validation "
                f"points: rows with the label {labels} are all among the validation "
                f"points of one split. Got {_described(cv)}.",
                "Pass {}, another {}, or {} if the target holds no classes.",
                [("X_val", ...), ("cv", ...), ("task", "regression")],
            )
