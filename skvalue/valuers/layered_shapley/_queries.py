"""Values of new rows, and of several rows together, from the stored coalitions of a fit."""

from dataclasses import replace

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import Bunch

from ...base import n_rows_of
from ...samplers import uniform_subsets
from ._core import CoreSet
from ._designs import Utilities
from ._settings import GameSettings


def core_set(fitted, settings, number):
    """The core set of one split, created once per fit."""
    cores = fitted.cache.setdefault("cores", {})
    if number not in cores:
        cores[number] = _make_core(fitted, settings, number)
    return cores[number]


def _make_core(fitted, settings, number):
    problem, layers = fitted.problem, fitted.statistic[number]
    split, n = problem.splits[number], layers.plan.n
    groups = None
    if problem.groups is not None:
        groups = np.searchsorted(layers.players, problem.groups[split.players])
    coalitions = list(layers.estimate.core)
    if settings.n_layers is None or settings.n_layers >= n:
        full = settings.game_of(problem, split).utility(np.ones((1, n), dtype=bool))
        coalitions.append((np.arange(n)[None], np.ones(1), full))
    points = split.points
    return CoreSet(
        GameSettings.of(settings), *problem.rows(split), points.X, points.y, problem.classes,
        coalitions, n, groups, points.weights,
    )  # fmt: skip


def joining_values(fitted, settings, number, X, y):
    """Values of rows that join the core set of one split.

    Without labels, values are averages over labels by the probabilities of the estimator fitted on
    all rows; for regression, the target is its prediction.
    """
    core = core_set(fitted, settings, number)
    if y is not None:
        return core.joining(X, y)
    return sum(core.joining(X, label) * p for label, p in _predictions(fitted, settings, X))


def _predictions(fitted, settings, X):
    """Pairs (codes, probabilities) for rows without labels; (targets, 1) for regression."""
    problem = fitted.problem
    if "model" not in fitted.cache:
        model = clone(settings.model(problem.classes))
        fitted.cache["model"] = model.fit(problem.X, problem.labels(problem.y))
    model = fitted.cache["model"]
    if problem.classes is None:
        return [(model.predict(X), 1.0)]
    if is_classifier(model) and hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
    else:
        probabilities = (model.predict(X)[:, None] == problem.classes).astype(np.float64)
    return [(np.full(n_rows_of(X), c), probabilities[:, c]) for c in range(problem.n_classes)]


def value_of_group(fitted, settings, indices, tol, confidence):
    """Total value of several players, see `LayeredShapleyValuer.value_of_group`."""
    n = len(fitted.result.values)
    indices = np.unique(np.asarray(indices, dtype=np.int64))
    if len(indices) == 0 or indices.min() < 0 or indices.max() >= n:
        raise ValueError(f"indices must be rows of fit, between 0 and {n - 1}. Got {indices}.")
    tol = settings.tol if tol is None else tol
    if tol is None:
        raise ValueError("tol must be a number, here or in the parameters of fit. Got None.")
    failure = (1 - (settings.confidence if confidence is None else confidence)) / len(indices)
    settings = replace(settings, tol=tol, confidence=1 - failure)
    values, evaluated = fitted.result.values[indices].copy(), 0
    for layers, split in zip(fitted.statistic, fitted.problem.splits):
        players, plan = layers.players, layers.plan
        chosen = np.flatnonzero(np.isin(players, indices))
        missing = settings.counts(plan.n) - plan.counts
        extra = np.where(plan.enumerated | (plan.counts < 1), 0, missing)
        utilities = Utilities(settings.game_of(fitted.problem, split))
        rng = layers.streams(-1)
        places = np.searchsorted(indices, players[chosen])
        for k in np.flatnonzero(extra > 0).tolist():
            count = int(np.ceil(extra[k]))
            more = _new_gains(utilities, chosen, k, count, rng)
            weight = count / (count + plan.counts[k]) / (plan.n * len(fitted.statistic))
            values[places] += weight * (more - layers.estimate.layers[k, chosen])
        evaluated += utilities.n_evaluated
    return Bunch(
        value=float(values.sum()),
        mean=float(values.mean()),
        row_values=values,
        n_evaluations=evaluated,
    )


def _new_gains(utilities, players, k, count, rng):
    """Mean contributions of some players to ``count`` new coalitions of k others each."""
    draws = uniform_subsets(rng, utilities.n - 1, k, len(players) * count)
    repeated = np.repeat(players, count)
    others = draws + (draws >= repeated[:, None])
    gains = utilities.of(np.column_stack([others, repeated])) - utilities.of(others)
    return gains.reshape(len(players), count).mean(axis=1)
