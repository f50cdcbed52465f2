"""Threshold-KNN-Shapley: exact semivalues of the soft-label threshold-neighbour classifier.

Wang, Zhu, Wang, Jia and Mittal, "A Privacy-Friendly Approach to Data Valuation" (NeurIPS 2023).
"""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._utils.parallel import n_workers, ordered_map, tiles
from ..._utils.sklearn import Interval, StrOptions
from ...base._old_private import PRIVACY_CONSTRAINTS
from ...base._old_valuer import BaseValuer
from ...neighbors import METRICS, make_space, read_rows
from ...semivalues import check_semivalue
from .._neighbors import ENGINE_CONSTRAINTS, NeighboursMixin
from .._stored import StoresNeighborsMixin
from ._game import (
    call,
    group_moments,
    neighbour_values,
    spread,
    take_part,
    threshold_utility,
    weigh,
    weigh_joining,
)
from ._private import public_baseline
from ._radius import suggest_radius
from ._release import ReleasesBallsMixin

__all__ = ["TKNNShapleyValuer", "neighbour_values", "public_baseline", "suggest_radius"]


class TKNNShapleyValuer(NeighboursMixin, StoresNeighborsMixin, ReleasesBallsMixin, BaseValuer):
    """Exact Threshold-KNN-Shapley: what each row adds to a threshold-neighbour classifier.

    The game: a coalition of rows predicts, at a validation point, the share of each label among its
    rows inside the ball of `radius` around the point (1/C each if there is none); its utility is
    the mean predicted probability of the right labels. A validation point gives all its neighbours
    one of two values (`neighbour_values`), so that all values cost one matrix product, one
    comparison and a sum.

    Parameters
    ----------
    radius : float or "auto", default=0.5
        Radius of the closed ball around a validation point, in units of `metric`; "auto" takes
        `suggest_radius` of the validation set.
    metric : str or callable, default="cosine"
        "cosine" (1 - cosine similarity) and "euclidean" are one matrix product. "braycurtis",
        "canberra", "chebyshev", "correlation", "hamming", "l1", "manhattan", "sqeuclidean" or a
        callable of two rows go through `sklearn.metrics.pairwise_distances`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple (alpha, beta), default="shapley"
        The semivalue; a tuple is Beta(alpha, beta)-Shapley.
    engine : {"auto", "numba", "torch", "faiss"}, default="auto"
        What computes distances and counts. All give the same values. "auto" is "numba", or "torch"
        where device="cuda". The others need the extras `torch` and `faiss`.
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
    epsilon : float, default=None
        Privacy of the rows: the total of everything released. None computes exact values of which
        nothing is protected. With epsilon, what is computed from the rows together are the numbers
        of neighbours with and without the label of every validation point, with noise
        (`counts_`); a validation set is required, is public, and names the classes (any other
        label is one that differs from all). No row, clean count or value is pickled.
    delta : float, default=1e-5
        Chance by which the bound of epsilon may fail.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        What makes two data sets neighbours: a row blanked out, added or removed, or replaced.
    max_contributions : int, default=None
        Let a row count only in the balls of its so many nearest validation points, which makes the
        noise smaller and changes the game: far points have fewer neighbours. None caps nothing.
        The noise is in any case for no more balls than any row can be in: for true metrics and for
        cosines, the largest number of validation points within twice the radius of one of them.
    sampling_rate : float, default=None
        Count in every ball a fresh secret sample of the rows, each with this chance, as the paper
        does. It saves no privacy worth having: the noise that it adds is larger than what it saves.
    denoise : bool, default=True
        Whether to smooth the released counts over the validation points and to shrink values
        towards `public_baseline`, as far as the noise makes them uncertain. It costs no privacy.
    reader : {"curator"}, default=None
        Who reads the result of `fit_transform`: the values of all rows side by side are for a
        curator, who holds the rows anyway. None refuses `fit_transform` with epsilon.
    ledger : skvalue.privacy.Ledger, default=None
        Charged before noise is drawn; refuses a fit that would overrun its budget.
    noise_random_state : int, default=None
        For tests only: noise from this seed, which VOIDS the guarantee.
    store_neighbors : bool, default=False
        Keep which rows are in which balls: `add_rows` then measures the new rows alone,
        `remove_rows` none. Takes a bit a pair and 8 bytes a validation point. Needs X_val or
        cv="leave-one-out", and the engine of the CPU.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With epsilon, for the
        curator: not pickled. `values_for` has what an owner may see.
    utility_, empty_utility_ : float
        Mean utility of all rows together and of none. For the Shapley value ``values_.sum()`` is
        their difference. With epsilon, `utility_` is estimated from `counts_`.
    counts_ : ndarray of shape (n_classes, n_validation) or (2, n_validation)
        Rows of each class in the ball of each validation point; with epsilon, what was released:
        noisy numbers of rows with and without the point's label.
    privacy_ : PrivacyReport
        Who is protected from whom, and who is not. Only with epsilon.
    radius_ : float
        The radius used.
    neighbors_nbytes_ : int
        Bytes that `store_neighbors` keeps: ``N * ceil(V / 8) + 8 * V`` after a fit of N rows with V
        validation points.
    approximate_ : bool
        False: all engines that this method takes are exact.
    embedding_ : transformer, torch module or callable
        The embedding, fitted; only with `embedding`.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    KNNShapleyValuer : The K nearest neighbours in place of a ball.

    References
    ----------
    J. T. Wang, Y. Zhu, Y.-X. Wang, R. Jia, P. Mittal: "A Privacy-Friendly Approach to Data
    Valuation", NeurIPS 2023; Theorem 13 with A2 = H_c - 1, Appendix C.2. Private fits differ from
    its Section 5: two counts in place of three, and noise for no more balls than a row can be in.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import TKNNShapleyValuer
    >>> X, y = np.array([[1.0], [1.1], [0.9], [5.0]]), np.array(["a", "a", "b", "b"])
    >>> valuer = TKNNShapleyValuer(radius=0.5, metric="euclidean")
    >>> valuer.fit(X, y, X_val=[[1.0]], y_val=["a"]).values_.round(3).tolist()
    [0.306, 0.306, -0.444, 0.0]
    """

    _parameter_constraints: dict = {
        "radius": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "metric": [StrOptions(METRICS), callable],
        "semivalue": [str, tuple, list],
        **ENGINE_CONSTRAINTS,
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "n_jobs": [Integral, None],
        **PRIVACY_CONSTRAINTS,
        "max_contributions": [Interval(Integral, 1, None, closed="left"), None],
        "sampling_rate": [Interval(Real, 0, 1, closed="neither"), None],
        "denoise": ["boolean"],
        "store_neighbors": ["boolean"],
    }

    def __init__(
        self,
        radius=0.5,
        *,
        metric="cosine",
        semivalue="shapley",
        engine="auto",
        device="auto",
        embedding=None,
        cv="leave-one-out",
        n_jobs=None,
        epsilon=None,
        delta=1e-5,
        relation="add_remove",
        max_contributions=None,
        sampling_rate=None,
        denoise=True,
        reader=None,
        ledger=None,
        noise_random_state=None,
        store_neighbors=False,
    ):
        self.radius = radius
        self.metric = metric
        self.semivalue = semivalue
        self.engine = engine
        self.device = device
        self.embedding = embedding
        self.cv = cv
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.max_contributions = max_contributions
        self.sampling_rate = sampling_rate
        self.denoise = denoise
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state
        self.store_neighbors = store_neighbors

    def _prepare(self, X_val, y_val):
        check_semivalue(self.semivalue)
        self.radius_ = self.radius
        if self.radius == "auto":
            if X_val is None:
                raise ValueError(
                    "radius='auto' is chosen on a validation set alone. Pass X_val and y_val, or a "
                    "number as radius."
                )
            self.radius_ = suggest_radius(read_rows(X_val), y_val, metric=self.metric)
        self._counts = []
        self._prepare_stores(X_val)

    def _cut(self, n_players, n_judges, n_features):
        engine = self._get_engine()
        size = engine.ball_tile_size(n_players, n_judges, n_workers(self.n_jobs))
        if not self.store_neighbors:
            return tiles(n_judges, size)
        parts = tiles(-(-n_judges // 8), max(1, size // 8))  # whole bytes of bits
        return [slice(8 * part.start, min(8 * part.stop, n_judges)) for part in parts]

    def _store_under(self):
        return (self.metric, self.radius_)

    def _store_nbytes(self, n_players, n_judges, dtype):
        return n_players * -(-n_judges // 8) + 8 * n_judges

    def _store_change(self, before, stay, X):
        from ...neighbors._stored import BallChange

        return BallChange(self.metric, stay, X)

    def _balls(self, X, y, judges, n_classes):
        """Slices of the judges, and functions that value by their balls, as `ball_values` does."""
        engine = self._get_engine()

        def measure(make):
            return make(make_space(X, self.metric), engine.Strips(y, n_classes))

        if not self.store_neighbors:
            values = measure(partial(partial, engine.ball_values))
            return [(part, values) for part in self._tiles(len(X), len(judges.y))]
        from ...neighbors._stored import ChangedBalls, FirstBalls

        changed = partial(ChangedBalls, y, n_classes)
        sources = self._sources(X, judges, changed, partial(measure, FirstBalls))
        return [(part, source.values) for part, source in sources]

    def _value(self, X, y, judges, n_classes, progress):
        tasks = []
        for part, balls in self._balls(X, y, judges, n_classes):
            some = judges[part]
            weights = partial(weigh, some.y, some.weights, n_classes, self.semivalue)
            tasks.append((balls, some.X, self.radius_, some.own, weights))
        values, counts, kept = np.zeros(len(X)), [], []
        results = ordered_map(call, tasks, self.n_jobs)
        for part_values, part_counts, *tile in progress.follow(results, len(tasks)):
            values += part_values
            counts.append(part_counts)
            kept += tile
        if self.store_neighbors:
            self._keep(kept, len(tasks), len(X))
        counts = np.concatenate([np.zeros((n_classes, 0), np.int64), *counts], axis=1)
        self._counts.append(counts)
        y_done = judges.y[: counts.shape[1]]
        same = counts[y_done, np.arange(len(y_done))]
        utility = threshold_utility(same, counts.sum(axis=0) - same, n_classes)
        return values, utility, 1.0 / n_classes

    @property
    def counts_(self):
        """Rows of each class in the ball of each validation point, (n_classes, n_validation).

        In the order of X_val; with leave-one-out in the order of X, every row out of its own ball;
        with a splitter in the order of the splits. After a private fit, what was released: noisy
        numbers of rows with and without the point's label, (2, n_validation).
        """
        check_is_fitted(self)
        return np.concatenate(self._counts, axis=1)

    def _merge_judges(self):
        super()._merge_judges()
        self._counts = [np.concatenate(self._counts, axis=1)]

    def _value_joining(self, game, X, y, judges, n_classes, X_new, y_new):
        """A new row adds one to the counts of the balls it is in."""
        engine = self._get_engine()
        counts = self._counts[game]
        joins = partial(weigh_joining, judges.y, judges.weights, n_classes, self.semivalue, counts)
        if y_new is not None:
            return self._sum_balls(engine, X_new, y_new, judges, n_classes, joins)
        shares = self._shares(engine, X, y, X_new, n_classes)
        scores = np.zeros(len(X_new))
        for label in range(n_classes):
            labels = np.full(len(X_new), label)
            scores += shares[label] * self._sum_balls(
                engine, X_new, labels, judges, n_classes, joins
            )
        return scores

    def _judge_moments(self, X, y, judges, n_classes, groups):
        """Values at a judge take two sizes: square them in place of summing them."""
        agree, differ = self._kinds(0, judges, n_classes)
        if groups is None:
            return [
                self._sum_kinds(X, y, judges, n_classes, agree**power, differ**power)
                for power in (1, 2)
            ]
        # A count of a group and class takes as much as many pairs of a row and a judge.
        pairs = max(len(X), 16 * n_classes * (groups.max() + 1))
        space, parts = make_space(X, self.metric), self._tiles(pairs, len(judges.y))
        return group_moments(
            self._get_engine(), space, y, groups, judges, parts, self.radius_, agree, differ,
            n_classes,
        )  # fmt: skip

    def _judge_values(self, game, X, y, judges, n_classes, rows):
        engine = self._get_engine()
        agree, differ = self._kinds(game, judges, n_classes)
        # Each row is its own class, so that the counts are its membership.
        space, strips = (
            make_space(X[rows], self.metric),
            engine.Strips(np.arange(len(rows)), len(rows)),
        )
        own = None
        if judges.own is not None:
            place = np.full(len(X), -1)
            place[rows] = np.arange(len(rows))
            own = place[judges.own]
        values = np.zeros(len(judges.y))
        for part in self._tiles(len(rows), len(judges.y)):
            mine = None if own is None else own[part]
            _, inside = engine.ball_values(
                space, strips, judges.X[part], self.radius_, mine, np.zeros_like
            )
            match = y[rows, None] == judges.y[part]
            values[part] = (inside * np.where(match, agree[part], differ[part])).sum(axis=0)
        return values

    def _kinds(self, game, judges, n_classes):
        counts = self._counts[game]
        same = counts[judges.y, np.arange(len(judges.y))]
        return neighbour_values(same, counts.sum(axis=0) - same, n_classes, self.semivalue)

    def _sum_kinds(self, X, y, judges, n_classes, agree, differ):
        """Sum over balls of squared judge weights times the given sizes."""
        weights = spread(judges.y, judges.weights**2, n_classes, agree, differ)
        return self._sum_balls(
            self._get_engine(), X, y, judges, n_classes, partial(take_part, weights)
        )

    def _sum_balls(self, engine, X, y, judges, n_classes, weigh):
        space, strips = make_space(X, self.metric), engine.Strips(y, n_classes)
        values = np.zeros(len(X))
        for part in self._tiles(len(X), len(judges.y)):
            values += engine.ball_values(
                space, strips, judges.X[part], self.radius_, None, partial(weigh, part)
            )[0]
        return values

    def _shares(self, engine, X, y, X_new, n_classes):
        """Class probabilities that the classifier predicts at new rows, (n_classes, n_new)."""
        space, strips = make_space(X, self.metric), engine.Strips(y, n_classes)
        shares = np.empty((n_classes, len(X_new)))
        for part in self._tiles(len(X), len(X_new)):
            _, counts = engine.ball_values(
                space, strips, X_new[part], self.radius_, None, np.zeros_like
            )
            total = counts.sum(axis=0)
            shares[:, part] = np.where(total > 0, counts / np.maximum(total, 1), 1 / n_classes)
        return shares
