"""A private fit of threshold-KNN-Shapley: counts in balls are released, values follow from them."""

from functools import partial

import numpy as np

from ..._utils.parallel import n_workers, one_blas_thread
from ...neighbors import make_space
from ._game import spread, take_part
from ._passes import count_capped, weigh_after_counting, weigh_capped
from ._private import (
    ball_event,
    ball_report,
    overlap_bound,
    public_geometry,
    release_counts,
    released_game,
)


class ReleasesBallsMixin:
    """What `skvalue.base._old_private` asks of `TKNNShapleyValuer`."""

    def _release(self, X, y, judges, n_classes):
        workers, parts = n_workers(self.n_jobs), self._tiles(len(X), len(judges.y))
        # One BLAS thread from here on: idle ones would spin, and take cores from the tiles.
        with one_blas_thread():
            geometry = public_geometry(judges.X, self.radius_, self.metric)
            bound = overlap_bound(judges.X, self.radius_, self.metric, geometry)
            return self._release_within(bound, geometry, workers, parts, X, y, judges, n_classes)

    def _release_within(self, bound, geometry, workers, parts, X, y, judges, n_classes):
        cap = self.max_contributions
        cap = None if cap is None or cap >= bound else cap
        event = ball_event(
            self.epsilon, self.delta, cap or bound, self.relation, self.sampling_rate
        )
        released = {}

        def settle(counts):
            same = counts[judges.y, np.arange(len(judges.y))]
            noisy, noise = release_counts(
                np.stack([same, counts.sum(axis=0) - same]), event, ledger=self.ledger,
                label=f"{type(self).__name__}: counts in balls",
                noise_random_state=self.noise_random_state,
            )  # fmt: skip
            agree, differ, utility = released_game(
                noisy, noise, judges, geometry, n_classes, self.semivalue, denoise=self.denoise
            )
            released.update(counts=noisy, noise=noise, utility=float(utility @ judges.weights))
            return spread(judges.y, judges.weights, n_classes + 1, agree, differ)

        if cap is None:
            engine = self._get_engine()
            values = weigh_after_counting(
                engine, make_space(X, self.metric), engine.Strips(y, n_classes + 1), judges.X,
                self.radius_, parts, workers, settle,
            )  # fmt: skip
        else:
            balls = (X, y, judges.X, self.radius_, self.metric, cap)
            values = weigh_capped(*balls, settle(count_capped(*balls, n_classes + 1)))
        self._counts, self._noise, self._cap = [released["counts"]], released["noise"], cap
        self.privacy_ = ball_report(
            event,
            self.delta,
            groups=self._groups is not None,
            noise_random_state=self.noise_random_state,
        )
        return values, released["utility"], 1.0 / n_classes

    def _score_released(self, X, y):
        """A new row adds one to the released counts; without a label, public labels stand in."""
        judges, n_classes = self._games[0][1], self._n_classes
        if "joining" not in self._lazy:
            agree, differ, _ = released_game(
                self._counts[0], self._noise, judges,
                public_geometry(judges.X, self.radius_, self.metric), n_classes, self.semivalue,
                denoise=self.denoise, joins=True,
            )  # fmt: skip
            self._lazy["joining"] = spread(judges.y, judges.weights, n_classes + 1, agree, differ)
        if y is not None:
            return self._sum_released(X, y, judges, self._lazy["joining"])
        shares = self._shares(self._get_engine(), judges.X, judges.y, X, n_classes)
        return sum(
            share * self._sum_released(X, np.full(len(X), label), judges, self._lazy["joining"])
            for label, share in enumerate(shares)
        )

    def _sum_released(self, X, y, judges, weights):
        if self._cap is not None:
            return weigh_capped(X, y, judges.X, self.radius_, self.metric, self._cap, weights)
        return self._sum_balls(
            self._get_engine(), X, y, judges, len(weights), partial(take_part, weights)
        )
