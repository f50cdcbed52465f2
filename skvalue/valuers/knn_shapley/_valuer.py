"""The estimator of KNN-Shapley: ranks -> values at validation points -> sum.

Wang and Jia, "A Note on 'Towards Efficient Data Valuation Based on the Shapley Value'" (2023), and
Jia et al., "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms" (PVLDB 2019).
"""

from dataclasses import replace
from numbers import Integral, Real

import numpy as np

from ..._utils.parallel import n_workers, ordered_map, tiles
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...base import BaseValuer, Takes, mean_over_splits
from ...neighbors import (
    APPROXIMATE,
    ENGINES,
    METRICS,
    Rows,
    append_columns,
    concatenate_rows,
    get_engine,
    make_space,
    rank_parts,
    read_rows,
)
from ...semivalues import check_semivalue
from .._neighbors import ENGINE_CONSTRAINTS, check_neighbors, estimated_cost, started
from ._games import class_game, max_rank_bound, smallest_max_rank, target_game, vote_game
from ._values import (
    join_classes,
    join_targets,
    join_votes,
    point_moments,
    point_values,
    predict_at,
    value_part,
    vote_fractions,
)


class KNNShapleyValuer(BaseValuer):
    """Exact KNN-Shapley: what each row adds to a K-nearest-neighbour model.

    The game: a coalition of rows predicts, at a validation point, by its `n_neighbors` nearest
    rows. For classification its utility is the mean fraction of the right label among them; for
    regression minus the mean squared error of their mean. The value of tied rows is the mean over
    their orders. All values follow from one sort by distance per validation point.

    If y has several columns (labels of a multilabel problem, or several targets), utilities and
    values are means over the columns, each of which takes the time of one target.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number K of neighbours. A coalition of fewer rows predicts with all of them.
    utility : {"soft", "original", "hard"}, default="soft"
        Utility of a coalition S of fewer than K rows. "soft" (Wang and Jia 2023) divides by
        ``min(K, |S|)``, and the empty coalition has utility 1/C, with C classes; "original" (Jia et
        al. 2019) divides by K, and the empty coalition has utility 0. For regression, missing
        neighbours count as the mean validation target in "original", and the empty coalition
        predicts that mean in both. (Without a validation set it is the mean target of the rows of
        fit, also when `score_samples` values a row that joins them.) "hard" (Wang, Mittal and Jia
        2024) is whether a majority vote is right: for each other class, whether the right class has
        at least as much weight as that one among the nearest ``min(K, |S|)`` rows of these two
        classes. The utility is the mean over the other classes; that of the empty coalition is 1/C.
        It is for classes and dense rows, without `max_rank` and `min_coalition`, by
        engine="numba".
    weights : {"uniform", "distance"}, default="uniform"
        Weights of the neighbours, with ``utility="hard"``. "distance": the smallest distance
        of a row from the point over the distance of the neighbour, rounded to a multiple of
        ``2**-n_bits``.
    n_bits : int, default=3
        Number of bits of a weight with ``weights="distance"``. Time grows as ``2**n_bits``.
    metric : str or callable, default="euclidean"
        "euclidean" and "cosine" are computed by one matrix product; "braycurtis", "canberra",
        "chebyshev", "correlation", "hamming", "l1", "manhattan", "sqeuclidean" or a callable of
        two rows by `sklearn.metrics.pairwise_distances`. With "precomputed", X holds the distances
        between the rows, of shape (n_samples, n_samples), and X_val those from the validation
        points to the rows, of shape (n_validation, n_samples); either may be sparse, and rows
        whose distance is not stored (a stored zero is a distance) are tied, beyond all others.
        With X_val, the entries of X are not used.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple (alpha, beta), default="shapley"
        The semivalue; a tuple is Beta(alpha, beta)-Shapley. All cost the same.
    min_coalition : int, default=0
        Number T of rows of the smallest coalition that a row joins; all sizes from T on have the
        same weight. With T > 0 these are calibrated values (Yang et al. 2024): predictions from few
        rows, which nearly every row improves, no longer raise the values of harmful rows above 0.
        It must be less than the number of players, and needs the Shapley value.
    max_rank : int or "auto", default=None
        Number of nearest rows that are ranked at each validation point (at least `n_neighbors`);
        the others count as tied. `truncation_error_` bounds the error. "auto" is the smallest
        number whose bound is at most `tol`. Classification only.
    tol : float, default=None
        Largest error of a value, in units of the utility, with ``max_rank="auto"``, and only then.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if the target is continuous; whole numbers with many values are taken
        for classes, with a warning.
    engine : {"auto", "numba", "torch", "faiss", "faiss-ivf"}, default="auto"
        What computes distances and ranks. All but "faiss-ivf" give the same values; that one may
        miss some of the nearest rows, and needs `max_rank`. "auto" is "numba", or "torch" if
        device="cuda". The others need the extras `torch` and `faiss`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine computes; "auto" is a GPU if the engine is given by name, supports GPUs
        and finds one.
    embedding : transformer, torch module or callable, default=None
        Applied to X, X_val and rows to value before distances are computed; X may then be anything
        that it accepts (texts, images). A scikit-learn transformer is cloned and fitted on X in
        `fit` (`embedding_`); wrap it in `sklearn.frozen.FrozenEstimator` if it is fitted already. A
        torch module runs in evaluation mode, in batches, and its output is flattened.
    cv : "leave-one-out", int, splitter or iterable, default="leave-one-out"
        How rows are held out as validation points if there is no validation set. "leave-one-out"
        costs one pass: each row is a validation point for all others. With a splitter, all rows
        must be players equally often.
    class_weight : {"balanced", None}, default=None
        "balanced" weights the validation points such that each class has the same total weight in
        the utility, times any `sample_weight_val` within the class. Use it for imbalanced classes.
        Rows held out by `cv` are weighted in each split, of which "leave-one-out" is one, and keep
        these weights when `score_samples` values a row that joins them. Classification only.
    n_jobs : int, default=None
        Number of threads. None uses as many as a matrix product would.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better.
    utility_, empty_utility_ : float
        Mean utility of all rows and of the empty coalition. For the Shapley value,
        ``values_.sum()`` is their difference.
    max_rank_ : int
        Number of nearest rows that are ranked; the number of players for exact values. (If the
        splits of `cv` have different numbers of players, the largest over the splits.)
    truncation_error_ : float
        Bound of the error of each value due to `max_rank`; 0 for exact values.
    approximate_ : bool
        Whether the engine may have missed some of the nearest `max_rank` rows ("faiss-ivf");
        `truncation_error_` bounds the error of the truncation alone.
    embedding_ : transformer, torch module or callable
        The fitted embedding, if `embedding` is set.
    classes_ : ndarray of shape (n_classes,), or list of these
        The labels, or those of each column of y; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features; with `embedding`, of its vectors, unless X has column names.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    TKNNShapleyValuer : The neighbours within a radius in place of the K nearest; cheaper.

    References
    ----------
    J. T. Wang, R. Jia: "A Note on 'Towards Efficient Data Valuation Based on the Shapley Value'",
    2023. R. Jia et al.: "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms",
    PVLDB 12(11), 2019; Theorems 1 and 6. Z. Yang, H. Yue, J. Chen, H. Liu: "On the Inflation of
    KNN-Shapley Value", arXiv:2405.17489, 2024 (`min_coalition`). J. T. Wang, P. Mittal, R. Jia:
    "Efficient Data Shapley for Weighted Nearest Neighbor Algorithms", AISTATS 2024
    (``utility="hard"``).

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> X, y = np.array([[1.0], [1.2], [0.9], [5.0]]), np.array(["a", "a", "b", "b"])
    >>> valuer = KNNShapleyValuer(n_neighbors=2).fit(X, y, X_val=[[1.0]], y_val=["a"])
    >>> valuer.values_.round(3).tolist()
    [0.292, 0.292, -0.375, -0.208]
    """

    _parameter_constraints: dict = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "utility": [StrOptions({"soft", "original", "hard"})],
        "weights": [StrOptions({"uniform", "distance"})],
        "n_bits": [Interval(Integral, 1, 10, closed="both")],
        "metric": [StrOptions(METRICS | {"precomputed"}), callable],
        "semivalue": [str, tuple, list],
        "min_coalition": [Interval(Integral, 0, None, closed="left")],
        "max_rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        **ENGINE_CONSTRAINTS,
        "engine": [StrOptions({"auto", *ENGINES})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "class_weight": [StrOptions({"balanced"}), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_neighbors=5,
        *,
        utility="soft",
        weights="uniform",
        n_bits=3,
        metric="euclidean",
        semivalue="shapley",
        min_coalition=0,
        max_rank=None,
        tol=None,
        task="auto",
        engine="auto",
        device="auto",
        embedding=None,
        cv="leave-one-out",
        class_weight=None,
        n_jobs=None,
    ):
        self.n_neighbors = n_neighbors
        self.utility = utility
        self.weights = weights
        self.n_bits = n_bits
        self.metric = metric
        self.semivalue = semivalue
        self.min_coalition = min_coalition
        self.max_rank = max_rank
        self.tol = tol
        self.task = task
        self.engine = engine
        self.device = device
        self.embedding = embedding
        self.cv = cv
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    @property
    def _is_precomputed(self):
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _takes(self):
        return Takes(
            targets=("classification", "regression"), task=self.task, outputs=True,
            new_classes=True, blocks=True, leave_one_out_at_once=True,
            pairwise=self._is_precomputed,
        )  # fmt: skip

    # The fit --------------------------------------------------------------------------------

    def _prepare(self, problem):
        approximate = check_neighbors(problem, self.engine, self.device, self.metric)
        if approximate and (self.max_rank is None or not problem.n_classes):
            raise ValueError(
                f"engine={self.engine!r} is approximate and needs max_rank, and classes. Got "
                f"max_rank={self.max_rank} and a "
                f"{'classification' if problem.n_classes else 'regression'}."
            )
        semivalue = check_semivalue(self.semivalue)
        self._check_vote(problem)
        sizes = {_n_players(problem, split) for split in problem.splits}
        if self.min_coalition and semivalue != "shapley":
            raise ValueError(
                "min_coalition needs semivalue='shapley'. Got "
                f"min_coalition={self.min_coalition} and semivalue={semivalue!r}."
            )
        if self.min_coalition >= min(sizes):
            raise ValueError(
                f"min_coalition must be less than the number of players, {min(sizes)}. Got "
                f"{self.min_coalition}."
            )
        self._check_max_rank(problem)
        error = 0.0
        if self.max_rank is not None:
            error = max(
                max_rank_bound(
                    n, self._n_ranked(n), self.n_neighbors, semivalue, self.min_coalition
                )
                for n in sizes
            )  # fmt: skip
        return {
            "max_rank_": max(map(self._n_ranked, sizes)), "truncation_error_": error,
            "approximate_": approximate,
        }  # fmt: skip

    def _check_max_rank(self, problem):
        if (self.max_rank == "auto") != (self.tol is not None):
            raise ValueError(
                "max_rank='auto' and tol, the largest error of a value, need each other. Got "
                f"max_rank={self.max_rank!r} and tol={self.tol}."
            )
        if self.max_rank is not None and not problem.n_classes:
            raise ValueError(
                "max_rank must be None for a regression: its error has no bound. Got "
                f"{self.max_rank!r}."
            )
        if self.max_rank not in (None, "auto") and self.max_rank < self.n_neighbors:
            raise ValueError(
                f"max_rank must be at least n_neighbors={self.n_neighbors}. Got {self.max_rank}."
            )

    def _n_ranked(self, n):
        """Number of nearest rows that are ranked, of n players."""
        if self.max_rank != "auto":
            return n if self.max_rank is None else min(self.max_rank, n)
        semivalue = check_semivalue(self.semivalue)
        return smallest_max_rank(n, self.tol, self.n_neighbors, semivalue, self.min_coalition)

    def _check_vote(self, problem):
        """Refuse what the game of a majority vote, or weights of the neighbours, do not support."""
        if self.utility != "hard":
            if self.weights != "uniform":
                raise ValueError(
                    f"weights={self.weights!r} needs utility='hard'. Got utility={self.utility!r}."
                )
            return
        if not problem.n_classes:
            raise ValueError("utility='hard' needs classes. Got a regression.")
        for name, needed in (("max_rank", None), ("min_coalition", 0)):
            if getattr(self, name) != needed:
                raise ValueError(
                    f"{name} must be {needed} with utility='hard'. Got {getattr(self, name)!r}."
                )
        if get_engine(self.engine, self.device).name != "numba":
            raise ValueError(
                f"utility='hard' needs engine='numba' or 'auto', on the CPU. Got "
                f"engine={self.engine!r} and device={self.device!r}."
            )
        if any(isinstance(split.points.X, Rows) for split in problem.splits) or (
            isinstance(problem.X, Rows) and not self._is_precomputed
        ):
            raise ValueError(
                "utility='hard' needs dense rows, or distances, in memory. Got sparse ones, a file "
                "or a Dask array."
            )

    def _parts(self, problem, attributes, release):
        parts = self._plan(problem)
        tasks = (
            (number, *task)
            for number in range(len(problem.splits))
            for task in self._tasks(problem, number, parts[number])
        )
        value = value_part
        if get_engine(self.engine, self.device).name == "torch":  # ranks stay on its device
            from ._torch import value_part as value
        n_tasks = sum(map(len, parts))
        return ordered_map(value, started(tasks), self.n_jobs, n_tasks), n_tasks

    def _combine(self, problem, attributes, parts):
        def empty(split):
            n_classes = problem.n_classes_of(split)
            if not n_classes:
                return _empty_utility(split.points)
            return 0.0 if self.utility == "original" else 1.0 / n_classes

        return mean_over_splits(problem, parts, empty)

    def _plan(self, problem):
        """Slices of the points of each split, one per task."""
        engine, workers = get_engine(self.engine, self.device), n_workers(self.n_jobs)
        d = problem.X.shape[1]
        return [
            rank_parts(engine, problem.n_rows(split), len(split.points), d, max_rank, workers)
            for split in problem.splits
            for max_rank in [self.max_rank and self._n_ranked(_n_players(problem, split))]
        ]

    def _tasks(self, problem, number, parts):
        """Arguments of `value_points` for the parts of the points of one split."""
        split = problem.splits[number]
        n_classes = problem.n_classes_of(split)
        engine, n = get_engine(self.engine, self.device), _n_players(problem, split)
        (X, y), points = problem.rows(split), split.points
        if n_classes:
            class_counts = np.bincount(y, minlength=n_classes)
            y = y.astype(np.min_scalar_type(n_classes))  # small, for the processor's cache
        else:
            class_counts, y, points = np.zeros(0, np.int64), y - points.prior, points.centred()
        max_rank = self._n_ranked(n)
        rows = problem.row_numbers(split) if self._is_precomputed else X
        space = make_space(rows, self.metric)
        if self.utility == "hard":
            game = self._vote_game(class_counts, split)
        else:
            game = self._game(n, n_classes)
        for part in parts:
            yield engine, space, y, points[part], game, class_counts, max_rank

    def _game(self, n, n_classes):
        weights = check_semivalue(self.semivalue), self.min_coalition
        if n_classes:
            return class_game(n, self.n_neighbors, n_classes, self.utility, *weights)
        return target_game(n, self.n_neighbors, self.utility, *weights)

    @property
    def _bits(self):
        """Bits of the weights of a majority vote; 0 without weights."""
        return self.n_bits if self.weights == "distance" else 0

    def _vote_game(self, class_counts, split):
        left_out = split.points.self_index is not None
        semivalue = check_semivalue(self.semivalue)
        return vote_game(class_counts, self.n_neighbors, self._bits, semivalue, left_out)

    # After the fit --------------------------------------------------------------------------

    def _score_new(self, fitted, number, X, y):
        """Rank old and new rows together: the rank of a new row is its position among players."""
        exact = "faiss" if self.engine in APPROXIMATE else self.engine
        engine, problem = get_engine(exact, self.device), fitted.problem
        split = problem.splits[number]
        n_classes = problem.n_classes_of(split)
        X_old, y_old = problem.rows(split)
        is_vote = self.utility == "hard"
        game = None if is_vote else self._game(_n_players(problem, split) + 1, n_classes)
        prior, votes = split.points.prior, min(self.n_neighbors, len(X_old))
        if not n_classes:
            y_old = y_old - prior
        scores = np.empty(len(X))
        for part in tiles(len(X), len(X_old)):
            new = X[part]
            if self._is_precomputed:
                old, points = problem.row_numbers(split), split.points
                both = np.concatenate([old, points.X.shape[1] + np.arange(len(new))])
                distances = read_rows(new)[:, points.index].T
                points = replace(points, X=append_columns(points.X, distances))
            else:
                old, points, both = X_old, split.points, concatenate_rows(X_old, new)
            both = make_space(both, self.metric)
            if is_vote:
                labels = (
                    np.tile(np.arange(n_classes), (len(new), 1)) if y is None else y[part, None]
                )

                def make_game(joined):
                    counts = np.bincount(joined, minlength=n_classes)
                    return self._vote_game(counts, split), counts

                found = join_votes(engine, both, y_old, points, make_game, labels)
                if y is None:
                    known = make_space(old, self.metric)
                    found *= vote_fractions(known, y_old, new, votes, self._bits, n_classes)
                scores[part] = found.sum(axis=1)
                continue
            if y is None:
                predicted = predict_at(
                    engine, make_space(old, self.metric), y_old, new, votes, n_classes
                )
            if n_classes:
                common, by_label = join_classes(engine, both, y_old, points, game, n_classes)
                if y is None:
                    scores[part] = common + (predicted * by_label).sum(axis=1)
                else:
                    scores[part] = common + by_label[np.arange(len(new)), y[part]]
                continue
            terms = join_targets(engine, both, y_old, points.centred(), game)
            if y is None:
                first, second = predicted.T
            else:
                first, second = y[part] - prior, (y[part] - prior) ** 2
            scores[part] = terms[:, 0] + terms[:, 1] * first + terms[:, 2] * second
        return scores

    def _point_values(self, fitted, number, players):
        parts = self._plan(fitted.problem)[number]
        tasks = [(players, *task) for task in self._tasks(fitted.problem, number, parts)]
        return np.concatenate(list(ordered_map(point_values, tasks, self.n_jobs)))

    def _point_moments(self, fitted):
        problem = fitted.problem
        players = problem.groups, problem.n_players
        by_output = [
            self._tasks(problem, number, parts) for number, parts in enumerate(self._plan(problem))
        ]
        tasks = [(*players, *games) for games in zip(*by_output)]
        return sum(ordered_map(point_moments, tasks, self.n_jobs))

    @fit_context(prefer_skip_nested_validation=True)
    def estimate_cost(
        self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None
    ):  # fmt: skip
        """Estimate the cost of `fit` from fits with a few of the validation points.

        All rows are compared with some of the points, on this machine, by the engine and the
        number of threads of `fit`: this takes about a second for a million rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the other parameters.
        y : array-like of shape (n_samples,)
            Labels or targets.
        X_val, y_val, groups, sample_weight_val : array-likes, default=None
            Validation set, groups, and weights of the validation points.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate), ``n_points`` (validation points of all splits),
            ``seconds_per_point``, ``memory`` (approximate largest number of bytes of NumPy arrays,
            apart from the data; the libraries of other engines than "numba" need more),
            ``n_players`` and ``solver``, the engine.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        return estimated_cost(
            self, X, y, X_val, y_val, groups=groups, sample_weight_val=sample_weight_val
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.utility != "hard"
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags


def _n_players(problem, split):
    """Number of players at each point of a split."""
    return problem.n_rows(split) - (split.points.self_index is not None)


def _empty_utility(points):
    """Utility of the empty coalition for regression, which predicts the mean target."""
    return -(points.centred().y ** 2 @ points.weights)
