"""KNN-Shapley: exact Shapley values of the K-nearest-neighbour classifier and regressor.

Wang and Jia, "A Note on 'Towards Efficient Data Valuation Based on the Shapley Value'" (2023), and
Jia et al., "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms" (PVLDB 2019).
"""

from functools import partial
from numbers import Integral, Real

import numpy as np

from ..._utils.parallel import n_workers, ordered_map, tiles
from ..._utils.sklearn import Interval, StrOptions
from ...base._old_private import PRIVACY_CONSTRAINTS, Unfollowed
from ...base._old_valuer import BaseValuer
from ...neighbors import APPROXIMATE, ENGINES, METRICS, Space, concatenate_rows, make_space
from .._neighbors import ENGINE_CONSTRAINTS, NeighboursMixin
from .._stored import StoresNeighborsMixin
from ._games import class_game, max_rank_bound, target_game
from ._joining import join_classes, join_targets, shares_at
from ._private import release_values, sampled_values, value_event, value_report
from ._tiles import Ranks, moment_tile, row_tile, value_tile

__all__ = ["KNNShapleyValuer", "class_game", "max_rank_bound", "target_game"]


class KNNShapleyValuer(NeighboursMixin, StoresNeighborsMixin, BaseValuer):
    """Exact KNN-Shapley: what each row adds to a K-nearest-neighbour model.

    The game: a coalition of rows predicts, at a validation point, by its `n_neighbors` nearest
    rows. For classes its utility is the mean share of the right label among them; for continuous
    targets minus the mean squared error of their mean. Tied rows get the mean over their orders.
    One sort by distance a validation point gives all values.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number K of neighbours. A coalition of fewer rows predicts with all of them.
    utility : {"soft", "original"}, default="soft"
        What a coalition S of fewer than K rows is worth. "soft" (Wang and Jia 2023) divides by
        ``min(K, |S|)``, the empty coalition has 1/C; "original" (Jia et al. 2019) divides by K, the
        empty coalition has 0. For regression, missing neighbours count as the mean validation
        target in "original", and the empty coalition predicts that mean in both. (Without a
        validation set it is the mean target of all rows, and stays so when `score_samples` lets a
        row join.)
    metric : str or callable, default="euclidean"
        "euclidean" and "cosine" are one matrix product. "braycurtis", "canberra", "chebyshev",
        "correlation", "hamming", "l1", "manhattan", "sqeuclidean" or a callable of two rows go
        through `sklearn.metrics.pairwise_distances`.
    max_rank : int, default=None
        Rank only so many nearest rows at each validation point (at least `n_neighbors`) and take
        the others as tied; `max_rank_error_` bounds the error. Classification only.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is a regression where the target is continuous.
    engine : {"auto", "numba", "torch", "faiss", "faiss-ivf"}, default="auto"
        What computes distances and ranks. All but "faiss-ivf" give the same values; that may miss
        some of the nearest rows, and needs `max_rank`. "auto" is "numba", or "torch" where
        device="cuda". The others need the extras `torch` and `faiss`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine works; "auto" is a GPU where the engine named uses one and sees one.
    embedding : transformer, torch module or callable, default=None
        Applied to X, X_val and rows to value before distances are taken; X may then be anything
        that it takes (texts, images). A scikit-learn transformer is cloned and fitted on X in `fit`
        (`embedding_`); wrap it in `sklearn.frozen.FrozenEstimator` to use it as it is. A torch
        module runs in evaluation mode, in batches, its output flattened.
    cv : "leave-one-out", int, splitter or iterable, default="leave-one-out"
        Which rows judge which when there is no validation set. "leave-one-out" costs one pass:
        every row is judged by all others. A splitter must let every row play equally often.
    n_jobs : int, default=None
        Number of threads. None takes as many as a matrix product would.
    store_neighbors : bool, default=False
        Keep the order of the rows at every validation point: `add_rows` then measures the new rows
        alone, `remove_rows` none. Takes 8 bytes a pair if X is float32 and the metric "euclidean"
        or "cosine", else 12; with a sixteenth more, rounded down, as room for new rows, and 8 bytes
        a validation point. All rows are ranked, whatever `max_rank`. Needs X_val or
        cv="leave-one-out", and the engine of the CPU.
    epsilon : float, default=None
        Privacy of the rows: noise on every value, as a baseline of private valuation (see
        `TKNNShapleyValuer` for values worth their noise). Needs classes, a validation set, which is
        public and names the classes, and utility="original", whose sensitivity is known: it is
        1 / (K (K + 1)) for one value, whatever the number of rows. Nothing is protected with None.
    delta : float, default=1e-5
        Chance by which the bound of epsilon may fail.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        What makes two data sets neighbours: a row blanked out, added or removed, or replaced.
    readers : {"pooled", "alone"}, default="pooled"
        Against whom epsilon holds: all other owners together, or, as in the paper of
        `TKNNShapleyValuer`, every one of them alone, with less noise and nothing against owners
        who pool what they see. A ledger is charged for all values in either case.
    sampling_rate : float, default=None
        Value every row in a fresh secret sample of the others, each in it with this chance, and
        take less noise, as in that paper. Takes time of order N^2.
    reader : {"curator"}, default=None
        Who reads the result of `fit_transform`; None refuses it with epsilon.
    ledger : skvalue.privacy.Ledger, default=None
        Charged before noise is drawn; refuses a fit that would overrun its budget.
    noise_random_state : int, default=None
        For tests only: noise from this seed, which VOIDS the guarantee.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With epsilon, noisy and
        for the curator: not pickled. `values_for` has what an owner may see.
    utility_, empty_utility_ : float
        Mean utility of all rows together and of none; ``values_.sum()`` is their difference. With
        epsilon, `utility_` is NaN: it is not released.
    privacy_ : PrivacyReport
        Who is protected from whom, and who is not. Only with epsilon.
    max_rank_error_ : float
        Bound of the error of any value that `max_rank` can have made; 0 for exact values.
    neighbors_nbytes_ : int
        Bytes that `store_neighbors` keeps: ``V * (room * pair + 8)`` after a fit with V validation
        points and N players at each, ``room = N + N // 16`` and `pair` 8 or 12.
    approximate_ : bool
        Whether the engine may have missed some of the nearest `max_rank` rows ("faiss-ivf");
        `max_rank_error_` bounds the error of the truncation alone.
    embedding_ : transformer, torch module or callable
        The embedding, fitted; only with `embedding`.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for a regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    TKNNShapleyValuer : A ball in place of the K nearest neighbours; cheaper.

    References
    ----------
    J. T. Wang, R. Jia: "A Note on 'Towards Efficient Data Valuation Based on the Shapley Value'",
    2023. R. Jia et al.: "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms",
    PVLDB 12(11), 2019; Theorems 1 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> X, y = np.array([[1.0], [1.2], [0.9], [5.0]]), np.array(["a", "a", "b", "b"])
    >>> valuer = KNNShapleyValuer(n_neighbors=2).fit(X, y, X_val=[[1.0]], y_val=["a"])
    >>> valuer.values_.round(3).tolist()
    [0.292, 0.292, -0.375, -0.208]
    """

    _tasks = ("classification", "regression")
    _parameter_constraints: dict = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "utility": [StrOptions({"soft", "original"})],
        "metric": [StrOptions(METRICS), callable],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        **ENGINE_CONSTRAINTS,
        "engine": [StrOptions({"auto", *ENGINES})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "n_jobs": [Integral, None],
        "store_neighbors": ["boolean"],
        **PRIVACY_CONSTRAINTS,
        "readers": [StrOptions({"pooled", "alone"})],
        "sampling_rate": [Interval(Real, 0, 1, closed="neither"), None],
    }

    def __init__(
        self,
        n_neighbors=5,
        *,
        utility="soft",
        metric="euclidean",
        max_rank=None,
        task="auto",
        engine="auto",
        device="auto",
        embedding=None,
        cv="leave-one-out",
        n_jobs=None,
        store_neighbors=False,
        epsilon=None,
        delta=1e-5,
        relation="add_remove",
        readers="pooled",
        sampling_rate=None,
        reader=None,
        ledger=None,
        noise_random_state=None,
    ):
        self.n_neighbors = n_neighbors
        self.utility = utility
        self.metric = metric
        self.max_rank = max_rank
        self.task = task
        self.engine = engine
        self.device = device
        self.embedding = embedding
        self.cv = cv
        self.n_jobs = n_jobs
        self.store_neighbors = store_neighbors
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.readers = readers
        self.sampling_rate = sampling_rate
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    def _prepare(self, X_val, y_val):
        self._prepare_stores(X_val)
        self.max_rank_error_ = 0.0
        if self.engine in APPROXIMATE and (self.max_rank is None or not self._n_classes):
            raise ValueError(
                f"engine={self.engine!r} is approximate and needs max_rank, and classes. Got "
                f"max_rank={self.max_rank} and a "
                f"{'classification' if self._n_classes else 'regression'}."
            )
        if self.max_rank is None:
            return
        if not self._n_classes:
            raise ValueError(
                f"max_rank must be None for a regression: its error has no bound. Got "
                f"{self.max_rank}."
            )
        if self.max_rank < self.n_neighbors:
            raise ValueError(
                f"max_rank must be at least n_neighbors={self.n_neighbors}. Got {self.max_rank}."
            )

    def _cut(self, n_players, n_judges, n_features):
        size = self._get_engine().rank_tile_size(
            n_players, n_judges, n_features, n_workers(self.n_jobs), self.max_rank or n_players
        )
        return tiles(n_judges, size)

    def _game(self, n, n_classes):
        if n_classes:
            return class_game(n, self.n_neighbors, n_classes, self.utility)
        return target_game(n, self.n_neighbors, self.utility)

    def _store_under(self):
        return (self.metric,)

    def _store_nbytes(self, n_players, n_judges, dtype):
        from ...neighbors._stored import key_dtype, room_for

        pair = 4 + key_dtype(dtype, self.metric).itemsize
        return n_judges * (room_for(n_players) * pair + 8)

    def _store_change(self, before, stay, X):
        from ...neighbors._stored import RankChange

        change = RankChange(before.frame, stay, X)
        return None if change.frame.is_off(X) else change

    def _stored_ranks(self, X, judges):
        """Sources of ranks that are kept, and a function for the frame that they share."""
        from ...neighbors._stored import ChangedRanks, FirstRanks, Frame

        if self._pending is not None:
            frame = self._pending[2].frame
            sources = self._sources(
                X, judges, ChangedRanks, lambda: FirstRanks(Space(X, self.metric, frame.center))
            )
            return [(part, source.rank) for part, source in sources], lambda: frame
        center = self._stores[-1].frame.center if self._stores else "mean"
        space = Space(X, self.metric, center)
        sources = self._sources(X, judges, ChangedRanks, lambda: FirstRanks(space))
        return [(part, source.rank) for part, source in sources], partial(Frame.of, space)

    def _tables(self, n, y, judges, n_classes):
        """The game of n players with its judges, and what else a tile needs."""
        if not n_classes:
            y, judges = y - judges.prior, judges.centred()
        counts = np.bincount(y, minlength=n_classes) if n_classes else np.zeros(0, np.int64)
        if n_classes:
            y = y.astype(np.min_scalar_type(n_classes))  # labels stay in the cache
        max_rank = n if self.max_rank is None else min(self.max_rank, n)
        return judges, (self._game(n, n_classes), y, counts, max_rank)

    def _tasks_of(self, X, y, judges, n_classes):
        """Arguments of one task a tile of judges."""
        n = len(X) - (judges.own is not None)
        judges, tables = self._tables(n, y, judges, n_classes)
        rank = Ranks(self._get_engine(), make_space(X, self.metric))
        parts = self._tiles(len(X), len(judges.y), X.shape[1])
        return [(rank, judges[part], *tables) for part in parts]

    def _rank_space(self, X):
        if not self._wants_privacy():
            return make_space(X, self.metric)
        from ...neighbors._exact import PairSpace

        return PairSpace(X, self.metric)

    def _value(self, X, y, judges, n_classes, progress):
        n = len(X) - (judges.own is not None)
        seen, (game, *tables) = self._tables(n, y, judges, n_classes)
        if self.store_neighbors:
            ranks, frame = self._stored_ranks(X, judges)
        else:
            rank = Ranks(self._get_engine(), self._rank_space(X))
            ranks = [(part, rank) for part in self._tiles(len(X), len(judges.y), X.shape[1])]
        tasks = [(rank, seen[part], game, *tables) for part, rank in ranks]
        max_rank = tables[-1]
        self.max_rank_error_ = max(self.max_rank_error_, max_rank_bound(game.n, max_rank))
        values, rest, utility, kept = np.zeros(len(X)), np.zeros(n_classes + 1), [], []
        results = ordered_map(value_tile, tasks, self.n_jobs)
        for part_values, part_rest, part_utility, tile in progress.follow(results, len(tasks)):
            values += part_values
            rest += part_rest
            utility.append(part_utility)
            kept.append(tile)
        if self.store_neighbors:
            self._keep(kept, len(tasks), len(X), frame())
        if max_rank < game.n:
            values += rest[n_classes] + rest[y]
        if n_classes:
            empty = 1.0 / n_classes if self.utility == "soft" else 0.0
        else:
            empty = -((judges.y - judges.prior) ** 2 @ judges.weights)
        return values, np.concatenate([np.zeros(0), *utility]), empty

    def _release(self, X, y, judges, n_classes):
        """Noise on every value of the original game; labels that y_val has not are one class."""
        if self.utility != "original" or self.task == "regression" or self.max_rank is not None:
            raise ValueError(
                "utility must be 'original', task a classification and max_rank None with epsilon: "
                f"of other games no useful sensitivity is known. Got utility={self.utility!r}, "
                f"task={self.task!r}, max_rank={self.max_rank!r}."
            )
        everything, seen = value_event(
            self.epsilon, self.delta, self.n_neighbors, len(X), self.relation, self.readers,
            self.sampling_rate,
        )  # fmt: skip
        if self.sampling_rate is None:
            clean, _, _ = self._value(X, y, judges, n_classes + 1, Unfollowed())
        else:
            clean = sampled_values(
                X, y, judges.X, judges.y, judges.weights, self.n_neighbors, self.metric,
                self.sampling_rate, self.noise_random_state,
            )  # fmt: skip
        values = release_values(
            clean, everything, ledger=self.ledger, label=f"{type(self).__name__}: noisy values",
            noise_random_state=self.noise_random_state,
        )  # fmt: skip
        self.privacy_ = value_report(
            seen, self.delta, readers=self.readers, noise_random_state=self.noise_random_state
        )
        return values, float("nan"), 0.0

    def _score_released(self, X, y):
        raise ValueError(
            "score_samples and transform are not there after a private fit of KNNShapleyValuer: "
            "ranks are not released. TKNNShapleyValuer prices new rows from its released counts."
        )

    def _judge_moments(self, X, y, judges, n_classes, groups):
        n_out = len(X) if groups is None else groups.max() + 1
        tasks = [(groups, n_out, *task) for task in self._tasks_of(X, y, judges, n_classes)]
        return sum(ordered_map(moment_tile, tasks, self.n_jobs))

    def _judge_values(self, game, X, y, judges, n_classes, rows):
        tasks = [(rows, *task) for task in self._tasks_of(X, y, judges, n_classes)]
        return np.concatenate(list(ordered_map(row_tile, tasks, self.n_jobs)))

    def _value_joining(self, game, X, y, judges, n_classes, X_new, y_new):
        """Rank old and new rows together: a new row's place among the players is its rank."""
        engine = self._get_exact_engine()
        n_players = len(X)
        tables = self._game(n_players - (judges.own is not None) + 1, n_classes)
        shift, votes = judges.prior, min(self.n_neighbors, n_players)
        scores = np.empty(len(X_new))
        for part in tiles(len(X_new), n_players):
            extra = X_new[part]
            both = make_space(concatenate_rows(X, extra), self.metric)
            known = None if y_new is None else y_new[part]
            if n_classes:
                rest, bonus = join_classes(engine, both, y, judges, tables, n_classes)
                if known is not None:
                    scores[part] = rest + bonus[np.arange(len(extra)), known]
                else:
                    shares = shares_at(
                        engine, make_space(X, self.metric), y, extra, votes, n_classes
                    )
                    scores[part] = rest + (shares * bonus).sum(axis=1)
                continue
            terms = join_targets(engine, both, y - shift, judges, tables)
            if known is not None:
                first, second = known - shift, (known - shift) ** 2
            else:
                first, second = shares_at(
                    engine, make_space(X, self.metric), y - shift, extra, votes, 0
                ).T
            scores[part] = terms[:, 0] + terms[:, 1] * first + terms[:, 2] * second
        return scores
