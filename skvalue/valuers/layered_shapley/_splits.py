"""Estimates of the layers of each split of a problem, and their means over splits."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import Bunch

from ..._utils.warned import add_counts, summaries
from ...base import Result
from ...games import failed_warnings
from ._designs import LayerEstimate, Utilities, n_steps, play
from ._plan import Plan
from ._settings import seconds_per_coalition


@dataclass(eq=False)
class SplitLayers:
    """One split with its latest estimate; after the fit it is kept without utilities."""

    plan: Plan
    players: np.ndarray  # numbers of the players of this split among all players
    seed: int  # of the fit
    number: int  # of the split, which selects its random streams
    utilities: Utilities | None
    estimate: LayerEstimate | None = None

    @property
    def streams(self):
        """Independent random generators by keys, see `random_streams`."""
        return random_streams(self.seed, self.number)

    @property
    def has_values(self):
        """Whether all layers have an estimate, and not only the enumerated ones."""
        return self.estimate is not None and (self.estimate.done > 0 or len(self.plan.sampled) == 0)


def random_streams(seed, number):
    """Independent random generators of one split, by keys that are integers >= -1."""

    def generator(*key):
        key = (number, *(part + 1 for part in key))
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    return generator


def set_up_splits(problem, settings, seed):
    """The splits of a problem with their games and plans, and the number of estimates to come."""
    games = [settings.game_of(problem, split) for split in problem.splits]
    for game in [] if problem.is_plain else games:
        game.require_trainable()
    splits = []
    for number, (game, split) in enumerate(zip(games, problem.splits)):
        groups = None if problem.groups is None else problem.groups[split.players]
        players = problem.row_numbers(split) if groups is None else np.unique(groups)
        plan = settings.plan(game, problem.shape, len(games))
        splits.append(SplitLayers(plan, players, seed, number, Utilities(game)))
    return splits, sum(n_steps(split.plan) for split in splits)


def cost_of(problem, settings, release):
    """What a fit costs, see `LayeredShapleyValuer.estimate_cost`."""
    games = [settings.game_of(problem, split) for split in problem.splits]
    plan = settings.plan(games[0], problem.shape, len(games))
    count = sum(settings.plan(game, problem.shape, len(games)).cost for game in games)
    if release is not None:
        counts = release.plan.counts
        plan = replace(plan, counts=counts, enumerated=np.zeros(len(counts), dtype=bool))
        count = release.plan.cost
    seconds = seconds_per_coalition(games[0], plan, settings.n_jobs)
    return Bunch(
        seconds=count * seconds,
        n_evaluations=int(count),
        seconds_per_evaluation=seconds,
        n_players=problem.n_players,
        solver=games[0].solver,
    )


def play_splits(splits):
    """Evaluate the splits one after another; yield all of them after each new estimate."""
    for split in splits:
        for estimate in play(split.plan, split.utilities, split.streams):
            split.estimate = estimate
            game = split.utilities.game
            if 0 < game.n_failed == game.n_evaluations:  # an error if all rows together fail, too
                split.utilities.tabulate(game.n_players)
            yield splits


def mean_over_splits(problem, settings, splits):
    """Result of the splits that have values, None if there is none.

    The value of a player in a split without it is 0.
    """
    done = [split for split in splits if split.has_values]
    if not done:
        return None
    weight, deepest = 1 / len(done), max(len(split.plan.counts) for split in done)
    layers, variance = np.zeros((deepest, problem.n_players)), np.zeros(problem.n_players)
    counts = np.zeros(deepest)
    for split in done:
        plan, estimate = split.plan, split.estimate
        layers[: len(estimate.layers), split.players] += weight * estimate.layers / plan.n
        variance[split.players] += weight**2 * estimate.variance
        counts[: len(plan.counts)] += weight * plan.counts
    played = [split.utilities for split in done]
    attributes = {
        "layer_values_": layers,
        "values_error_": np.sqrt(variance),
        "counts_": counts,
        "data_fraction_": float(np.mean([split.plan.data_fraction for split in done])),
        "truncation_bias_": float(np.mean([settings.bounds(split.plan.n)[1] for split in done])),
        "n_failed_": sum(split.utilities.game.n_failed for split in splits),
        "n_one_class_": sum(split.utilities.game.n_one_class for split in splits),
        "n_evaluations_": sum(split.utilities.n_evaluated for split in splits),
    }
    utility, warned = float(np.mean([utilities.full for utilities in played])), {}
    for utilities in played:
        add_counts(warned, utilities.warned)
    return Result(
        values=layers.sum(axis=0),
        utility=utility,
        empty_utility=float(np.mean([utilities.game.empty_utility for utilities in played])),
        problem=replace(problem, splits=tuple(problem.splits[split.number] for split in done)),
        statistic=[replace(split, utilities=None) for split in done],
        attributes=attributes,
        warnings=(*summaries(warned), *failed_warnings([each.game for each in played])),
    )
