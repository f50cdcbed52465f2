"""The estimator of Threshold-KNN-Shapley: counts -> release -> values at points -> sum.

Wang, Zhu, Wang, Jia and Mittal, "A Privacy-Friendly Approach to Data Valuation"
(NeurIPS 2023).
"""

from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..._utils.log import log_engine
from ..._utils.messages import Message
from ..._utils.parallel import n_workers, one_blas_thread
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...base import (
    PRIVACY_CONSTRAINTS,
    BaseValuer,
    Capabilities,
    make_problem,
    mean_over_points,
    warn_if_noise_exceeds,
)
from ...exceptions import ErrorsTooSmallWarning, RadiusWarning
from ...neighbors import Rows, ball_tiles, balls, check_engine, make_space
from ...privacy import Release, calibrate_counts
from ...semivalues import check_semivalue
from .._neighbors import (
    LARGEST_RADIUS,
    NEIGHBOR_CONSTRAINTS,
    estimated_cost,
    find_engine,
    n_at_points,
    prime_first_task,
    quotient_problem,
    rows_of_players,
)
from ._game import LabelGame, same_and_other
from ._noisy import NoisyGame
from ._overlap import counted_balls
from ._radius import choose_radius
from ._report import ball_report
from ._row_sums import RowSums, StandardErrors
from ._sampled import sampled_event
from ._targets import TargetGame

# The event of counts in balls, of which a number can contain one row.
ball_event = lru_cache(maxsize=32)(calibrate_counts)

_N_PUBLIC_ROWS = 100  # validation points whose values say how large the noise is


class BallSearch(NamedTuple):
    """How the rows in the balls around points are found."""

    engine: object
    radius: float


def value_tile(number, search, space, game, y, points):
    """Evaluate a tile of points of a split, as `mean_over_points` takes it.

    Returns the number of the split, the sum over the points of weight times value in
    units of the game, (n_players,), the utility at each point, (n_points,), and what is
    counted in the balls, (n_counts, n_points).
    """
    tiles = []
    halving = search.engine.halving(len(points))
    for rows in halving:
        with halving:
            tiles.append(_value_points(search, space, game, y, points[rows]))
    if len(tiles) == 1:
        return number, *tiles[0]
    values, utilities, counts = zip(*tiles)
    counts = np.concatenate(counts, axis=1)
    return number, sum(values), np.concatenate(utilities), counts


def _value_points(search, space, game, y, points):
    """`value_tile` of points that are evaluated together."""
    with search.engine.device_lock():
        neighbours = search.engine.balls(
            space, points.X, search.radius, points.self_index
        )
        counts = game.count(neighbours, y)
        terms = game.terms(counts, points) * points.weights
        values = game.sum_of_tile(neighbours, terms, y)
        return values, game.utility(counts, points), counts


def uninformative_fractions(result):
    """Fractions of the balls that contain no row, and of those that contain all."""
    problem = result.problem
    n_codes = problem.n_classes or 1
    is_empty = []
    is_full = []
    for split, counts in zip(problem.splits, result.statistic):
        sizes = np.concatenate(counts, axis=1)[:n_codes].sum(axis=0)
        is_empty.append(sizes == 0)
        is_full.append(sizes == n_at_points(problem, split))
    return np.mean(np.concatenate(is_empty)), np.mean(np.concatenate(is_full))


class TKNNShapleyValuer(BaseValuer):
    """Exact Threshold-KNN-Shapley: what each row adds to a threshold-neighbour model.

    The game: a coalition of rows predicts, at a validation point, the fraction of each
    label among its rows within `radius` of the point (1/C each if there is none); its
    utility is the mean predicted probability of the right labels. At a validation
    point, all neighbours with its label have one value and all others another
    (`neighbour_values`), so that all values cost one matrix product, one comparison and
    a sum.

    For a continuous target, a coalition predicts the mean target of its rows within the
    radius, or the mean validation target if there is none; its utility is minus the
    mean squared error. Values are quadratic in the target of the row (`target_values`).
    (Without a validation set the prior is the mean target of the rows of fit, also when
    `score_samples` values a row that joins them.)

    Parameters
    ----------
    radius : float or "auto", default="auto"
        Radius of the closed ball around a validation point, in units of `metric`.
        "auto" is `suggest_radius` of the validation set or, without one, of the rows:
        the largest radius for which each of these points is predicted by the others as
        well as for any radius, up to two standard errors. With epsilon a validation set
        is required, and the rows are not used. The radius is chosen by `fit`; it is
        kept when rows or validation points are added or removed.
    metric : str or callable, default="cosine"
        "cosine" (1 - cosine similarity) and "euclidean" are computed by one matrix
        product; "braycurtis", "canberra", "chebyshev", "correlation", "hamming", "l1",
        "manhattan", "sqeuclidean" or a callable of two rows by
        `sklearn.metrics.pairwise_distances`. With "precomputed", X holds the distances
        between the rows, of shape (n_samples, n_samples), and X_val those from the
        validation points to the rows, of shape (n_validation, n_samples); either may be
        sparse, and rows whose distance is not stored (a stored zero is a distance) are
        in no ball. With X_val, the entries of X are not used, and `radius` must be a
        number. "precomputed" needs epsilon=None, and sparse distances engine="native".
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue; a tuple (alpha, beta) is Beta(alpha, beta)-Shapley.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if the target is continuous; whole numbers with many values
        are taken for classes, with a warning. Private fits are for classes only.
    engine : {"auto", "native", "torch", "faiss"}, default="auto"
        What computes distances and counts. All give the same values, for classes to
        the bit. "auto" is "native", or "torch" if device="cuda". The others need the
        extras `torch` and `faiss`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine computes; "auto" is a GPU if the engine is given by name,
        supports GPUs and finds one. What computed is in `engine_` and `device_`, and in
        a line of the log, of the logger "skvalue" at level INFO.
    embedding : transformer, torch module, callable or "auto", default=None
        Applied to X, X_val and rows to value before distances are computed; X may then
        be anything that it accepts (texts, images). A scikit-learn transformer is
        cloned and fitted on X in `fit` (`embedding_`); wrap it in
        `sklearn.frozen.FrozenEstimator` if it is fitted already. A torch module runs in
        evaluation mode, in batches, and its output is flattened. "auto" encodes the
        columns of a frame by what they hold: numbers, categories, dates, texts.
    cv : "leave-one-out", int, splitter or iterable, default="leave-one-out"
        How rows are held out as validation points if there is no validation set.
        "leave-one-out" costs one pass: each row is a validation point for all others.
        With a splitter, all rows must be players equally often.
    class_weight : {"balanced", None}, default=None
        "balanced" weights the validation points such that each class has the same total
        weight in the utility, times any `sample_weight_val` within the class. Use it
        for imbalanced classes. Rows held out by `cv` are weighted in each split, of
        which "leave-one-out" is one, and keep these weights when `score_samples` values
        a row that joins them.
    duplicates : {"quotient"}, default=None
        How copies are treated. "quotient": rows of one label that are connected by
        distances of at most `duplicate_radius` are a cluster, of which only the first
        row plays; its value is divided, so that copies within the radius are not paid.
        Copies that are moved by more are paid as with None: on digits, rows sent four
        times and moved by 1.5 radii still gain more than half. It needs dense rows and
        `X_val`, and no `epsilon`; `validation_error_`, `contributions` and
        `add_validation` are not available then.
    duplicate_radius : float or "auto", default="auto"
        Largest distance of a copy. "auto": such that about 1 % of honest rows have an
        honest neighbour of their label within it, from the distances between the
        validation points. 0 finds exact copies only; use it where most columns are
        categories.
    duplicate_owner : {"groups", "rows", "first"}, default="groups"
        Who gets the value of a cluster. "groups": the `groups` that have rows in it, in
        equal parts; without groups, as "rows". "rows": all its rows, in equal parts.
        "first": its first row in X, for rows that are in the order of trusted times.
    n_jobs : int, default=None
        Number of threads. None uses as many as a matrix product would.
    epsilon : float, default=None
        Privacy budget of the rows: the total of everything released. With None, values
        are exact and nothing is protected. With epsilon, the only statistics of several
        rows are, for each validation point, the numbers of neighbours with and without
        its label, with noise (`counts_`). A validation set is required; it is public,
        and its labels are the classes (all other labels count as one more class). Rows,
        exact counts and values are not pickled.
    delta : float, default=1e-5
        Probability that the bound of epsilon fails.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        Neighbouring relation: two data sets are neighbours if a row is replaced by a
        null row, added or removed, or replaced.
    max_contributions : int, "auto" or None, default="auto"
        Count a row only in the balls of that many nearest validation points. This makes
        the noise smaller and changes the game: points that are far from a row lose it
        as a neighbour. "auto" is the largest number of balls that contain one
        validation point, so that rows like these are counted in all their balls. None:
        in all balls. In any case the noise is calibrated to a bound of the number of
        balls that can contain one row: for true metrics and "cosine", the largest
        number of validation points within twice the radius of one of them.
    denoise : bool, default=True
        Whether to estimate the values from counts that are smoothed over the validation
        points. It costs no privacy. Otherwise the released counts are rounded and
        clipped at zero.
    sampling_rate : float, default=None
        With None, all rows are counted. A number is the algorithm of the paper, which
        has 0.01: in each ball, the rows of a fresh secret sample are counted, in which
        each row is with this probability; noise is composed exactly over all points.
        Counts are not rescaled, so that values are those of a row that joins a sample
        and are larger than those of all rows. It needs ``denoise=False``,
        ``max_contributions=None`` and another relation than "replace". See the user
        guide for when it is worth using.
    reader : {"curator"}, default=None
        Who reads the result of `fit_transform`: the values of all rows together are for
        a curator, who has the rows anyway. With None, `fit_transform` raises an error
        if epsilon is set.
    ledger : skvalue.privacy.Ledger, default=None
        Charged before noise is drawn; raises an error if the fit would exceed its
        budget.
    noise_random_state : int, default=None
        For tests only: seed of the noise, which VOIDS the guarantee.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With
        epsilon, they are for the curator and are not pickled; an owner may see
        `values_for`.
    baseline_ : ndarray, as `values_`
        Only with epsilon: `public_baseline`, in the balls in which a row is counted. It
        depends on the row and on public points alone. For the curator, as `values_`;
        see `values_for`.
    values_error_ : ndarray, as `values_`
        Only with epsilon: standard errors of `values_` over draws of the counts given
        those that were released. For the curator, as `values_`; see `values_for`. At
        least .88 of the values were within two errors in the cases measured at epsilon
        1 and 3 (clean and wrong labels, balanced and imbalanced), except for wine with
        a class of 5 % and wrong labels: .72 to .79. With ``denoise=False``, of which
        `sampling_rate` is a case, .77 to 1.00 were at epsilon .5 to 8. Most errors are
        too large: of 360 rows of three columns .97 to .99 were within two errors on
        average, and as many of six groups of these. If noise exceeds the signal in
        values of validation points as rows, `fit` warns. Errors that hold cost
        accuracy: on digits (ten classes) at epsilon 1, the L1 error is 1.10 times that
        of an earlier estimate, whose errors were too small.
    utility_, empty_utility_ : float
        Mean utility of all rows and of the empty coalition. For the Shapley value,
        ``values_.sum()`` is their difference. With epsilon, `utility_` is estimated
        from `counts_`.
    counts_ : ndarray of shape (n_classes, n_validation) or (2, n_validation)
        Number of rows of each class in the ball of each validation point, (1,
        n_validation) for a regression; with epsilon, the released noisy numbers of rows
        with and without the label of the point.
    privacy_ : PrivacyReport
        What is protected, from whom, and what is not. Only with epsilon.
    radius_ : float
        The radius used.
    engine_ : str
        The engine that found the balls.
    device_ : {"cpu", "cuda"}
        Where it did.
    approximate_ : bool
        False, since all engines of this method are exact.
    clusters_ : ndarray of int of shape (n_samples,)
        With ``duplicates="quotient"``: cluster of copies of every row.
    merged_fraction_ : float
        Fraction of the rows that do not play, as copies.
    duplicate_radius_ : float
        Radius of the clusters.
    embedding_ : transformer, torch module or callable
        The fitted embedding, if `embedding` is set.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features; with `embedding`, of its vectors, unless X has column names.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    KNNShapleyValuer : The K nearest neighbours in place of those within a radius.

    References
    ----------
    J. T. Wang, Y. Zhu, Y.-X. Wang, R. Jia, P. Mittal: "A Privacy-Friendly Approach to
    Data Valuation", NeurIPS 2023; Theorem 13 with A2 = H_c - 1, Appendix C.2. Private
    fits differ from its Section 5: two counts in place of three, and noise calibrated
    to the number of balls that can contain one row.

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
        "radius": [
            Interval(Real, 0, LARGEST_RADIUS, closed="both"),
            StrOptions({"auto"}),
        ],
        **NEIGHBOR_CONSTRAINTS,
        **PRIVACY_CONSTRAINTS,
        "max_contributions": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "denoise": ["boolean"],
        "sampling_rate": [Interval(Real, 0, 1, closed="right"), None],
    }

    def __init__(
        self,
        radius: float | str = "auto",
        *,
        metric: object = "cosine",
        semivalue: object = "shapley",
        task="auto",
        engine="auto",
        device="auto",
        embedding=None,
        cv: object = "leave-one-out",
        class_weight=None,
        duplicates=None,
        duplicate_radius: float | str = "auto",
        duplicate_owner="groups",
        n_jobs=None,
        epsilon=None,
        delta=1e-5,
        relation="add_remove",
        max_contributions: int | str | None = "auto",
        denoise=True,
        sampling_rate: float | None = None,
        reader=None,
        ledger=None,
        noise_random_state=None,
    ):
        self.radius = radius
        self.metric = metric
        self.semivalue = semivalue
        self.task = task
        self.engine = engine
        self.device = device
        self.embedding = embedding
        self.cv = cv
        self.class_weight = class_weight
        self.duplicates = duplicates
        self.duplicate_radius = duplicate_radius
        self.duplicate_owner = duplicate_owner
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.max_contributions = max_contributions
        self.denoise = denoise
        self.sampling_rate = sampling_rate
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    @property
    def _capabilities(self):
        return Capabilities(
            regression=not self._is_private,
            task=self.task,
            neighbors=True,
            pairwise=self.metric == "precomputed",
        )

    # The fit --------------------------------------------------------------------------

    def _value(self, problem, run):
        attributes = self._resolve_parameters(problem)
        if self._is_private:
            return self._private_value(problem, run, attributes)
        if self.duplicates is not None:
            problem, of_copies = quotient_problem(self, problem)
            attributes |= of_copies

        plan = self._plan(problem)
        n_tasks = sum(map(len, plan))
        tasks = prime_first_task(self._tasks(problem, plan, attributes["radius_"]))
        values = run.map(value_tile, tasks, self.n_jobs, n_tasks)

        def empty_utility(split):
            return self._game(problem, split).empty_utility(split.points)

        result = mean_over_points(
            problem,
            values,
            empty_utility,
            unit=self._game(problem, problem.splits[0]).unit,
            attributes=attributes,
        )
        if result is not None:
            self._warn_of_radius(result, run)
        return result

    def _private_value(self, problem, run, attributes):
        """As `_value`, with noise: counts -> release -> values at points -> sum."""
        points = problem.splits[0].points
        radius = attributes["radius_"]
        is_sampled = self.sampling_rate is not None
        release, cap = self._release(problem, radius)
        game = NoisyGame(
            n_classes=problem.n_classes,
            semivalue=self.semivalue,
            radius=radius,
            metric=self.metric,
            noise=release.noise.scale,
            denoise=self.denoise,
            cap=cap,
            sampling_rate=self.sampling_rate,
        )

        workers = n_workers(self.n_jobs)
        result = None
        with run.steps(1, "validation points evaluated") as done, one_blas_thread():
            engine = find_engine(self, problem)
            neighbours = game.balls(engine, problem.X, problem.y, points.X, workers)
            counted = neighbours
            if is_sampled:
                counted = game.sampled_balls(
                    problem.X, problem.y, points.X, self.noise_random_state
                )
            counts = same_and_other(counted.counts, points.y)

            # The release: what follows is a function of it and of each row.
            counts = release.of(counts)

            model = game.model(counts, points)
            value_same, value_other, utility = game.estimate(
                counts, model, joins=is_sampled
            )
            half = np.full(len(points), 0.5)
            weights = game.by_label(value_same, value_other, points)
            baseline_weights = game.by_label(half, -half, points)
            error_draws = game.errors(counts, model)
            errors = StandardErrors(
                error_draws, points, problem.groups, problem.n_players
            )
            row_sums = RowSums([weights, baseline_weights], errors, len(problem.X))
            for rows, part in neighbours.parts():
                row_sums.add(rows, part, workers)
            values, baseline = row_sums.values()
            if is_sampled:
                # A row that is in a sample does not join it.
                own_same, own_other, _ = game.estimate(counts, model)
                corrections = game.by_label(
                    own_same - value_same, own_other - value_other, points
                )
                values += counted.sum(corrections)
            self._warn_of_noise(game, engine, points, weights, error_draws, run)
            result = mean_over_points(
                problem,
                [(0, values, utility, counts)],
                1.0 / problem.n_classes,
                attributes=attributes | {"game": game},
                release=release,
                curator={
                    "baseline_": problem.sum_by_group(baseline),
                    "values_error_": errors.values(),
                },
            )
            done()
        return result

    def _release(self, problem, radius):
        """The release of the counts, and the largest number of balls that count a row.

        The latter is None if all do.
        """
        points = problem.splits[0].points
        is_sampled = self.sampling_rate is not None
        cap = None
        if is_sampled:
            event = sampled_event(
                self.epsilon,
                self.delta,
                len(points),
                self.relation,
                self.sampling_rate,
            )
        else:
            contributions, cap = counted_balls(
                points.X, radius, self.metric, self.max_contributions
            )
            event = ball_event(self.epsilon, self.delta, contributions, self.relation)
        report = ball_report(
            event,
            self.delta,
            auto_radius=self.radius == "auto",
            groups=problem.groups is not None,
            sampled=is_sampled,
            noise_random_state=self.noise_random_state,
        )
        label = "TKNNShapleyValuer: counts in balls"
        release = Release(event, self.ledger, label, self.noise_random_state, report)
        return release, cap

    def _warn_of_noise(self, game, engine, points, weights, error_draws, run):
        """Warn if noise exceeds the signal, or if its stated size can be too small.

        The signal is that of some validation points, which are public, and valued as
        rows would be that are where they are.
        """
        numbers = np.linspace(0, len(points) - 1, min(len(points), _N_PUBLIC_ROWS))
        numbers = np.unique(numbers.astype(int))
        neighbours = game.balls(
            engine, points.X[numbers], points.y[numbers], points.X, 1
        )
        errors = StandardErrors(error_draws, points, None, len(numbers))
        row_sums = RowSums([weights], errors, len(numbers))
        for rows, part in neighbours.parts():
            row_sums.add(rows, part, 1)
        (values,) = row_sums.values()
        warn_if_noise_exceeds(
            values,
            errors.values(),
            "more rows, fewer validation points or a larger epsilon have less noise",
            run.warn,
            what="the values of validation points as rows",
        )
        if not self.denoise:
            run.warn(
                "values_error_ can be too small with denoise=False: .77 to 1.00 of the "
                "values were within two errors at epsilon .5 to 8, and .97 to .99 on "
                "average with denoise=True.",
                ErrorsTooSmallWarning,
            )

    def _warn_of_radius(self, result, run):
        """Warn if most balls contain no row, or all rows."""
        empty, full = uninformative_fractions(result)
        if empty + full > 0.5:
            message = Message(
                "radius",
                f"With radius={result.attributes['radius_']:.3g}, the balls around "
                f"{empty:.0%} of the validation points contain no row, and those "
                f"around {full:.0%} contain all rows: there, all rows of a "
                "class have equal values.",
                "Pass another {}.",
                [("radius", ...)],
                subject="",
            )
            run.warn(message, RadiusWarning)

    def _plan(self, problem):
        """Slices of the points of each split, one per task."""
        engine = find_engine(self, problem)
        workers = n_workers(self.n_jobs)
        return [
            ball_tiles(engine, problem.n_rows(split), len(split.points), workers)
            for split in problem.splits
        ]

    def _tasks(self, problem, plan, radius):
        """Arguments of `value_tile` for the tiles of the points of each split."""
        search = BallSearch(find_engine(self, problem), radius)
        for number, split in enumerate(problem.splits):
            X, y = rows_of_players(problem, split)
            game = self._game(problem, split)
            space = self._space(game, X, y)
            for tile in plan[number]:
                yield number, search, space, game, y, split.points[tile]

    def _game(self, problem, split):
        """The game of a split, which is not private."""
        if problem.n_classes:
            return LabelGame(problem.n_classes, self.semivalue)
        return TargetGame(split.points.prior, self.semivalue)

    def _space(self, game, X, y):
        """Rows with the classes y, which are counted apart; targets are not."""
        if game.n_classes:
            return make_space(X, self.metric, y, game.n_classes)
        return make_space(X, self.metric)

    # Parameters that depend on each other, on the task and on the rows ----------------

    def _resolve_parameters(self, problem):
        """Attributes that follow from the parameters; refuses those that do not fit."""
        check_semivalue(self.semivalue)
        check_engine(self.engine, self.device, problem.X, self.metric)
        if self._is_private:
            self._check_private_parameters(problem)
        elif self.sampling_rate is not None:
            raise ValueError(
                "sampling_rate must be None without epsilon: a secret sample amplifies "
                f"noise, and there is none. Got {self.sampling_rate!r}."
            )
        engine = find_engine(self, problem)
        return {
            "radius_": self._choose_radius(problem),
            "approximate_": False,
            "engine_": engine.name,
            "device_": engine.device,
        }

    def _check_private_parameters(self, problem):
        """Refuse, with its reason, the first parameter that epsilon rules out."""
        if self.duplicates is not None:
            raise ValueError(
                "duplicates must be None with epsilon: private rows decide which rows "
                f"are copies. Got {self.duplicates!r}."
            )
        if self.task == "regression":
            raise ValueError(
                "task must not be 'regression' with epsilon: sums of targets have no "
                f"bound. Got {self.task!r}."
            )
        if self.engine == "faiss" and problem.X.dtype != np.float32:
            raise ValueError(
                "X must be in float32 for engine='faiss' with epsilon: FAISS computes "
                "in float32, and a refusal of rows that do not fit it would tell of "
                f"private rows. Got {problem.X.dtype}."
            )
        if self.metric == "precomputed":
            raise ValueError(
                "metric must not be 'precomputed' with epsilon: the noise depends on "
                "the distances between the validation points. Got "
                f"{self.metric!r}."
            )
        if self.sampling_rate is not None:
            self._check_sampling_parameters()

    def _check_sampling_parameters(self):
        """Refuse the first parameter that samples of the rows rule out."""
        if self.denoise:
            raise ValueError(
                "denoise must be False with sampling_rate: counts of fresh samples are "
                "not smooth over the points. Got True."
            )
        if self.max_contributions is not None:
            raise ValueError(
                "max_contributions must be None with sampling_rate: noise is composed "
                "over all validation points, whatever number of balls can contain a "
                f"row. Got {self.max_contributions!r}."
            )
        if self.relation == "replace":
            raise ValueError(
                "relation must be 'add_remove' or 'null' with sampling_rate: the "
                "composition over samples is exact for a row that is there or not. Got "
                "'replace'."
            )

    def _choose_radius(self, problem):
        """The radius; if it is "auto", from the validation points, or else the rows."""
        if "radius_" in problem.former:
            return problem.former["radius_"]
        if self.radius != "auto":
            return self.radius
        has_points = problem.has_validation_set
        if self.metric == "precomputed" and (has_points or isinstance(problem.X, Rows)):
            raise ValueError(
                "radius must be a number with metric='precomputed', unless X is dense "
                "and there is no X_val: 'auto' needs the distances between the "
                "validation points. Got 'auto'."
            )

        # There always are validation points with epsilon: the rows are private.
        if has_points:
            points = problem.splits[0].points
            X = points.X
            y = points.y
            name = "y_val"
        else:
            X = problem.X
            y = problem.y
            name = "y"
        n_values = len(np.unique(y))
        if len(y) < 3 or (problem.n_classes and n_values < 2):
            what = "labels of 2 classes" if problem.n_classes else "targets"
            raise ValueError(
                f"radius='auto' needs at least 3 {what} in {name}. Got {len(y)}, "
                f"{n_values} of them different: pass a number as radius."
            )
        if problem.n_classes:
            return choose_radius(X, y, self.metric)
        prior = points.prior if has_points else y.mean()
        return choose_radius(X, y - prior, self.metric, regression=True)

    # After the fit --------------------------------------------------------------------

    @property
    def baseline_(self):
        """The part of each private value that costs nothing, see `public_baseline`."""
        return self._for_curator("baseline_")

    @property
    def values_error_(self):
        """Standard errors of private values, for the curator, as the values are."""
        return self._for_curator("values_error_")

    @property
    def counts_(self):
        """Number of rows of each class in each ball, (n_classes, n_validation).

        In the order of X_val; with leave-one-out in the order of X, where a row is not
        counted in its own ball; with a splitter in the order of the splits. After a
        private fit, the released noisy numbers of rows with and without the label of
        the point, (2, n_validation).
        """
        fitted = self._record("counts_")
        counts = np.concatenate(
            [np.concatenate(tiles, axis=1) for tiles in fitted.statistic], axis=1
        )
        if fitted.problem.n_classes:
            return counts
        return counts[:1].astype(np.int64)

    def _balls(self, fitted, game, X, y, points, self_index=None):
        """The balls around points, for rows X with classes or targets y."""
        engine = find_engine(self, fitted.problem)
        space = self._space(game, X, y)
        return balls(engine, space, points, self.radius_, self_index, self.n_jobs)

    def _terms(self, fitted, number, joins=False):
        """The game of a split, and its terms at the points, (n_terms, n_points)."""
        split = fitted.problem.splits[number]
        game = self._game(fitted.problem, split)
        counts = np.concatenate(fitted.statistic[number], axis=1)
        return game, game.terms(counts, split.points, joins)

    def _score_new(self, fitted, number, X, y):
        """A new row adds one to the counts of the balls that contain it."""
        if number == 0:
            engine = find_engine(self, fitted.problem)
            log_engine(self, "score_samples", engine.name, engine.device)
        if fitted.is_private:
            return self._score_privately(fitted, X, y)
        problem = fitted.problem
        split = problem.splits[number]
        points = split.points
        game, terms = self._terms(fitted, number, joins=True)
        terms = terms * points.weights

        new_rows = X
        centers = points.X
        if problem.capabilities.pairwise:
            # X are distances from the rows of fit, of which the points are some.
            new_rows = np.arange(len(X))
            centers = _columns(X, points.index)
        if y is not None:
            return game.add(self._balls(fitted, game, new_rows, y, centers), terms, y)

        # Without labels: the mean over those of the rows in the ball of each new row.
        X_fit, y_fit = rows_of_players(problem, split)
        neighbours = self._balls(fitted, game, X_fit, y_fit, X)
        factors = game.predict(game.count(neighbours, y_fit))
        one_class = LabelGame(1, self.semivalue)
        in_balls = self._balls(fitted, one_class, new_rows, None, centers)
        sums = [in_balls.sum(line[None]) for line in terms]
        return np.einsum("kx,kx->x", factors, sums)

    def _score_privately(self, fitted, X, y):
        """As `_score_new`, from what was released.

        Without y, values are means over the public labels in the ball of each row.
        """
        points = fitted.problem.splits[0].points
        game = fitted.attributes["game"]
        # Smoothing takes long.
        if "joining" not in fitted.cache:
            (counts,) = fitted.statistic[0]
            model = game.model(counts, points)
            value_same, value_other, _ = game.estimate(counts, model, joins=True)
            fitted.cache["joining"] = value_same, value_other
        value_same, value_other = fitted.cache["joining"]

        weights = game.by_label(value_same, value_other, points)
        engine = find_engine(self, fitted.problem)
        in_balls = game.balls(engine, X, y, points.X, self.n_jobs)
        if y is not None:
            return in_balls.sum(weights)
        public = LabelGame(game.n_classes, game.semivalue)
        factors = public.predict(
            self._balls(fitted, public, points.X, points.y, X).counts
        )
        sums = [in_balls.sum(line[None]) for line in weights[:-1]]
        return np.einsum("kx,kx->x", factors, sums)

    def _point_values(self, fitted, number, players):
        split = fitted.problem.splits[number]
        X, y = rows_of_players(fitted.problem, split)
        self_index = split.points.self_index
        if self_index is not None:
            # Positions among these players; -1 for points that are none of them.
            position = np.full(len(X), -1)
            position[players] = np.arange(len(players))
            self_index = position[self_index]
        game, terms = self._terms(fitted, number)
        neighbours = self._balls(
            fitted, game, X[players], y[players], split.points.X, self_index
        )
        counts = game.count(neighbours, y[players])
        return np.einsum("kv,kv->v", terms, counts)

    def _point_moments(self, fitted):
        problem = fitted.problem
        split = problem.splits[0]
        squared_weights = split.points.weights**2
        if problem.groups is not None:
            moments = []
            for i in range(problem.n_players):
                members = np.flatnonzero(problem.groups == i)
                values = self._point_values(fitted, 0, members)
                moments.append([squared_weights @ values, squared_weights @ values**2])
            return np.array(moments).T

        X, y = rows_of_players(problem, split)
        game, terms = self._terms(fitted, 0)
        neighbours = self._balls(fitted, game, X, y, split.points.X)
        return [
            game.add(neighbours, terms * squared_weights, y),
            game.add(neighbours, game.squares(terms) * squared_weights, y),
        ]

    @fit_context(prefer_skip_nested_validation=True)
    def estimate_cost(
        self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None
    ):
        """Estimate the cost of `fit` from fits with a few of the validation points.

        All rows are compared with some of the points, on this machine, by the engine
        and the number of threads of `fit`: this takes about a second for a million
        rows. `radius="auto"` is chosen as in `fit`.

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
            ``seconds_per_point``, ``memory`` (approximate largest number of bytes of
            NumPy arrays, apart from the data; the libraries of other engines than
            "native" need more), ``n_players`` and ``solver``, the engine.

        Raises
        ------
        ValueError
            As in `fit`; with epsilon, since measured times depend on the private rows.
        """
        if self._is_private:
            raise ValueError(
                "estimate_cost needs epsilon=None: measured times depend on the "
                "private rows. Estimate with public rows of the same shape. Got "
                f"epsilon={self.epsilon}."
            )
        start = perf_counter()
        problem = make_problem(
            self, X, y, X_val, y_val, groups=groups, sample_weight_val=sample_weight_val
        )
        # The radius, for one, is the same in all fits that are timed.
        problem = replace(problem, former=self._resolve_parameters(problem))
        plan = self._plan(problem)
        return estimated_cost(self, problem, plan, perf_counter() - start)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


def _columns(X, index):
    """Distances of points from the rows, which are columns of those of new rows."""
    if not isinstance(X, Rows):
        return X[:, index].T
    return Rows(csr_array(X.read()[:, index].T), X.dtype)
