"""The validated input of a fit: rows, and splits into players and validation points."""

from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from .._utils.checks import (
    check_groups,
    check_length,
    check_numeric_target,
    check_outputs,
    check_sample_weight,
    check_target_scale,
    check_task,
    check_validation_weights,
    encode_labels,
    has_outputs,
    is_leave_one_out,
    label_codes,
    make_splits,
    may_be_regression,
    refuse_missing_labels,
)
from .._utils.embedding import fit_embedding, learns_from_rows
from .._utils.fits import blank_of, columns_of
from .._utils.warned import warn
from ..exceptions import ManyClassesWarning, QuadraticCostWarning, SameRowsWarning
from ..privacy import check_delta, check_epsilon
from ._containers import is_plain, n_rows_of, rows_at
from ._labels import codes_or_other, public_classes
from ._release import warn_of_guarantee
from ._rows import check_rows, check_validation_set

LEAVE_ONE_OUT_LIMIT = 50_000
_HOW = (
    "For a regression use a valuer with task='regression', such as KNNShapleyValuer.",
    "Pass task='regression' for a regression, task='classification' to keep the classes.",
)
_CURE = " If it holds targets of a regression, pass task='regression', or a regressor."


@dataclass(frozen=True)
class Takes:
    """What a class of valuers supports, and words for its progress."""

    targets: tuple = ("classification",)  # supported types of target, the default first
    task: str = "auto"  # the type of target that the user, or the model, requires
    dtypes: tuple = (np.float64, np.float32)  # dtypes kept; others are converted to the first
    new_classes: bool = False  # whether validation points may have labels that no row has
    outputs: bool = False  # whether y may have several columns, each of which is a target
    blocks: bool = False  # whether X may be `skvalue.neighbors.Rows`
    pairwise: bool = False  # whether X holds the distances between the rows
    allow_nd: bool = False  # whether X may have more than two dimensions
    any_rows: bool = False  # whether X is left to an estimator that is trained on some of the rows
    names: bool = True  # with any_rows: whether frames of numbers stay frames, with column names
    squares: bool = True  # whether targets are squared, so that they must not be too large
    points: bool = True  # whether there are validation points, given or held out
    means: bool = True  # whether the utility is a mean over points, so that new ones only add terms
    leave_one_out_at_once: bool = False  # whether one game, less each point itself, replaces n
    values_are_public: bool = False  # whether the values of a private fit are published
    fit_transform_error: str = ""  # why fit_transform is refused with epsilon, if it is
    part: str = "validation points"  # name of the parts, for callbacks
    done: str = "validation points evaluated"  # what the values of a stopped fit are based on


@dataclass(frozen=True, eq=False)
class Points:
    """Validation points of one split."""

    X: np.ndarray
    y: np.ndarray  # codes of the classes, or targets
    weights: np.ndarray  # of the points; they sum to one
    index: np.ndarray  # position in X_val, or in X if the points are rows of fit
    self_index: np.ndarray | None = None  # row that is the point itself, and does not play there
    prior: float = 0.0  # for regression: mean target, the prediction of the empty coalition

    def __len__(self):
        return len(self.y)

    def __getitem__(self, part):
        rows = None if self.self_index is None else self.self_index[part]
        return replace(
            self, X=rows_at(self.X, part), y=self.y[part], weights=self.weights[part],
            index=self.index[part], self_index=rows,
        )  # fmt: skip

    def first(self, n):
        """The first n points, with weights rescaled to sum to one."""
        if n == len(self):
            return self
        some = self[:n]
        return replace(some, weights=some.weights / (some.weights.sum() or 1.0))

    def centred(self):
        """The same points, with targets minus `prior`."""
        return replace(self, y=self.y - self.prior, prior=0.0)


@dataclass(frozen=True, eq=False)
class Split:
    """One game: its players (a slice if all rows play) and its validation points."""

    players: np.ndarray | slice
    points: Points
    output: int | None = None  # the column of y that is predicted, if there are several


@dataclass(frozen=True, eq=False)
class Problem:
    """The validated input of a fit. A private fit keeps it without the rows."""

    X: np.ndarray | None
    y: np.ndarray | None  # codes of classes, or targets; private fits: n_classes is any other label
    classes: np.ndarray | list | None  # None for regression; a list, of each column of y
    splits: tuple[Split, ...] = ()
    groups: np.ndarray | None = None  # code of the group of each row
    group_names: np.ndarray | None = None
    sample_weight: np.ndarray | None = None  # of the rows, when an estimator is fitted
    sample_weight_val: np.ndarray | None = None  # of the validation points, as passed
    has_validation_set: bool = False
    joining_fraction: float = 1.0  # fraction of splits in which one more row would be a player
    columns: dict = field(default_factory=dict)  # n_features_in_, and names and embedding, if any
    former: dict = field(default_factory=dict)  # attributes of the fit whose rows were changed

    @property
    def n_classes(self):
        """Number of classes, of any output the most; 0 for regression."""
        if isinstance(self.classes, list):
            return max(map(len, self.classes))
        return 0 if self.classes is None else len(self.classes)

    def n_classes_of(self, split):
        """Number of classes of the output of a split; 0 for regression."""
        several = isinstance(self.classes, list)
        return len(self.classes[split.output]) if several else self.n_classes

    @property
    def player_codes(self):
        """Player of each row: its group, or the row itself."""
        return np.arange(len(self.y)) if self.groups is None else self.groups

    @property
    def n_players(self):
        """Number of players: groups, or rows."""
        return len(self.y) if self.groups is None else len(self.group_names)

    @property
    def shape(self):
        """Number of rows, and of columns; one column for texts."""
        return len(self.y), self.columns.get("n_features_in_", 1)

    @property
    def is_plain(self):
        """Whether all rows and validation points are in arrays of finite numbers."""
        return is_plain(self.X) and all(is_plain(split.points.X) for split in self.splits)

    def n_rows(self, split):
        """Number of rows that are players in a split."""
        return len(self.y) if isinstance(split.players, slice) else len(split.players)

    def rows(self, split):
        """X and y of the players of a split."""
        y = self.y if split.output is None else np.ascontiguousarray(self.y[:, split.output])
        if isinstance(split.players, slice):  # all rows: the arrays themselves, not views
            return self.X, y
        return rows_at(self.X, split.players), y[split.players]

    def row_numbers(self, split):
        """Positions in X of the players of a split."""
        return np.arange(len(self.y))[split.players]

    def position(self, i, n):
        """Position of one of n players, given as position (also from the end) or group name."""
        if isinstance(i, Integral) and -n <= i < n:
            return int(i) % n
        names = [] if self.group_names is None else self.group_names.tolist()
        if not isinstance(i, Integral) and i in names:
            return names.index(i)
        what = ", or the name of a group" if names else ""
        raise ValueError(f"i must be between 0 and {n - 1}{what}. Got {i!r}.")

    def labels(self, y):
        """Labels from codes; targets are returned unchanged."""
        if isinstance(self.classes, list):
            return np.column_stack([known[codes] for known, codes in zip(self.classes, y.T)])
        return y if self.classes is None else self.classes[y]

    def labels_val(self):
        """Labels or targets of the validation set."""
        points = [split.points.y for split in self.splits]
        return self.labels(points[0] if self.y.ndim == 1 else np.column_stack(points))

    def sum_by_group(self, row_values):
        """Values of the players: sums of the values of their rows."""
        if self.groups is None:
            return row_values
        return np.bincount(self.groups, weights=row_values, minlength=len(self.group_names))


def make_problem(estimator, X, y, X_val=None, y_val=None, late=(), **metadata):
    """Validate the input of ``fit``; ``metadata`` are keywords of `build_problem`.

    ``late`` are arguments by position after X and y, which are refused.

    `validate_data` sets attributes, so it gets a blank estimator: a fit that fails must not change
    an estimator that is fitted.
    """
    if late:
        how = "X_val=X_val, y_val=y_val" if estimator._takes.points else "groups=groups"
        raise TypeError(
            f"{type(estimator).__name__}.fit takes X and y by position, and all other arguments by "
            f"name: fit(X, y, {how}). Got {2 + len(late)} positional arguments."
        )
    blank = blank_of(estimator)
    refuse_missing_labels(y)
    refuse_missing_labels(y_val, "y_val")
    if getattr(blank, "embedding", None) is not None:
        if estimator._is_private and learns_from_rows(blank.embedding):
            raise ValueError(
                "embedding must not learn from the private rows: with epsilon, pass a callable, a "
                "stateless transformer, or FrozenEstimator(transformer) fitted on public data. Got "
                f"{blank.embedding!r}."
            )
        blank.embedding_ = fit_embedding(blank.embedding, X, y)
    given, given_val = X, X_val
    names = columns_of(X) if hasattr(blank, "embedding_") else {}
    X, y = check_rows(blank, X, y)
    if names:  # of the rows, not of their vectors
        vars(blank).update(names, n_features_in_=len(names["feature_names_in_"]))
    X_val, y_val = check_validation_set(blank, X_val, y_val, X)
    compared = (given, given_val) if issparse(given) else (X, X_val)
    if X_val is not None and (given is given_val or _same_rows(*compared)):
        warn(
            "X_val holds the same rows as X: each row evaluates itself, and a wrong label agrees "
            "with itself. Pass other rows, or no X_val, so that `cv` holds out rows.",
            SameRowsWarning,
        )
    columns = {name: value for name, value in vars(blank).items() if name.endswith("_")}
    return build_problem(estimator, X, y, X_val, y_val, columns, **metadata)


def _same_rows(X, X_val):
    """Whether two arrays, dense or sparse, hold equal rows in the same order."""
    if not hasattr(X, "shape") or X.shape != getattr(X_val, "shape", None):
        return False
    if issparse(X):
        return issparse(X_val) and X.nnz == X_val.nnz and (X_val != X).nnz == 0
    if isinstance(X, np.ndarray) and isinstance(X_val, np.ndarray):
        return np.array_equal(X[:1], X_val[:1]) and np.array_equal(X, X_val)
    return type(X) is type(X_val) and hasattr(X, "equals") and X.equals(X_val)  # data frames


def build_problem(
    estimator, X, y, X_val, y_val, columns, *, groups=None, sample_weight=None,
    sample_weight_val=None,
):  # fmt: skip
    """Encode the labels and make the splits, from checked rows and validation points."""
    takes = estimator._takes
    if estimator._is_private:
        if estimator.epsilon is not None:
            check_epsilon(estimator.epsilon)
        check_delta(estimator.delta)
        if X_val is None:
            raise ValueError(
                "X_val and y_val must be passed with epsilon: a private fit needs public "
                "validation points to evaluate the rows. They are NOT protected, and must not be "
                "private rows. Got no X_val."
            )
    n = n_rows_of(X)
    group_names, group_codes = check_groups(groups, n)
    by_party = group_names is not None and getattr(estimator, "unit", None) == "party"
    warn_of_guarantee(estimator, len(group_names) if by_party else n)
    check_length(y, "y", n)
    encode = _encode_private if estimator._is_private else _encode
    classes, y, y_val = encode(type(estimator).__name__, takes, y, y_val)
    problem = Problem(
        X, y, classes, groups=group_codes, group_names=group_names,
        sample_weight=check_sample_weight(sample_weight, n),
        has_validation_set=X_val is not None, columns=columns,
    )  # fmt: skip
    if X_val is None and sample_weight_val is not None:
        raise ValueError("sample_weight_val needs X_val: it weights validation points.")
    if not takes.points:
        if X_val is not None:
            raise ValueError(
                f"X_val must be None: {type(estimator).__name__} has no validation points. Got "
                f"{n_rows_of(X_val)} rows."
            )
        return problem
    if X_val is None:
        splits, fraction = _split_rows(estimator, problem)
        splits = _weigh_classes(estimator, problem, splits)
        return replace(problem, splits=splits, joining_fraction=fraction)
    weights = check_validation_weights(sample_weight_val, len(y_val))
    index, splits = np.arange(len(y_val)), []
    for output, targets in _outputs(y_val):
        prior = 0.0 if problem.n_classes else float(targets @ weights)
        points = Points(X_val, targets, weights, index, prior=prior)
        splits.append(Split(slice(None), points, output))
    return replace(
        problem, splits=_weigh_classes(estimator, problem, tuple(splits)),
        sample_weight_val=None if sample_weight_val is None else np.asarray(sample_weight_val),
    )  # fmt: skip


def _outputs(y):
    """Number and targets of each output; of a single one, the number is None."""
    return [(None, y)] if y.ndim == 1 else list(enumerate(np.ascontiguousarray(y.T)))


def _weigh_classes(estimator, problem, splits):
    """The splits with the class weights of the estimator, if it has any, in those of the points."""
    if estimator.class_weight is None:
        return splits
    if not problem.n_classes or problem.y.ndim > 1:
        what = "targets of several columns" if problem.n_classes else "a regression"
        raise ValueError(f"class_weight must be None for {what}. Got {estimator.class_weight!r}.")
    weighted = []
    for split in splits:
        y, weights = split.points.y, split.points.weights
        totals = np.bincount(y, weights=weights, minlength=problem.n_classes)
        if np.count_nonzero(totals) < 2:
            raise ValueError(
                f"class_weight={estimator.class_weight!r} needs validation points of at least two "
                "classes, in X_val or in each split of cv. Got points of one class."
            )
        weights = weights / np.where(totals > 0, totals, 1.0)[y]
        points = replace(split.points, weights=weights / weights.sum())
        weighted.append(replace(split, points=points))
    return tuple(weighted)


def _encode(name, takes, y, y_val):
    """Classes and codes of labels; for regression, None and targets."""
    if takes.outputs and has_outputs(y):
        return _encode_outputs(takes, np.asarray(y), y_val)
    task = takes.targets[0]
    known = len(takes.targets) > 1
    if known:
        task = check_task(takes.task, y)
    elif check_task("auto", y) != task:
        raise ValueError(f"Unknown label type: {name} needs classes. Got a continuous target.")
    if task == "regression":
        return None, *_targets(takes, y, y_val)
    _warn_of_numbers(takes, y, "y")
    return encode_labels(y, y_val, _CURE if known else "", takes.new_classes)


def _encode_outputs(takes, y, y_val):
    """As `_encode`, for each column of y."""
    n_outputs = y.shape[1]
    if y_val is not None and np.shape(y_val)[1:] != (n_outputs,):
        raise ValueError(f"y_val must have {n_outputs} columns, as y. Got {np.shape(y_val)}.")
    columns = [(y[:, j], None if y_val is None else y_val[:, j]) for j in range(n_outputs)]
    if check_outputs(takes.task, y) == "regression":
        classes, encoded = None, [_targets(takes, *column) for column in columns]
    elif type_of_target(y) == "multilabel-indicator":  # a column may be constant
        classes = [np.array([0, 1], dtype=y.dtype)] * n_outputs
        encoded = [
            [None if part is None else label_codes(part, known, name)
             for part, name in zip(column, ("y", "y_val"))]
            for column, known in zip(columns, classes)
        ]  # fmt: skip
    else:
        _warn_of_numbers(takes, max(y.T, key=may_be_regression), "y")
        classes, *encoded = zip(*(encode_labels(*c, _CURE, takes.new_classes) for c in columns))
        classes, encoded = list(classes), zip(*encoded)
    y, y_val = (None if part[0] is None else np.column_stack(part) for part in zip(*encoded))
    return classes, y, y_val


def _encode_private(name, takes, y, y_val):
    """As `_encode`, for private labels: the task and the classes are those of y_val."""
    if len(takes.targets) > 1 and check_task(takes.task, y_val, "y_val") == "regression":
        return None, *_targets(takes, y, y_val)
    _warn_of_numbers(takes, y_val, "y_val")
    classes, y_val = public_classes(y_val)
    return classes, codes_or_other(y, classes), y_val


def _warn_of_numbers(takes, y, name):
    """Warn of classes that may be targets of a regression, unless the user named the task."""
    if takes.task == "auto" and may_be_regression(y):
        warn(
            f"{name} has {len(np.unique(y))} different whole numbers, which are taken for classes. "
            + _HOW[len(takes.targets) > 1],
            ManyClassesWarning,
        )


def _targets(takes, y, y_val):
    check = check_target_scale if takes.squares else check_numeric_target
    return check(y, "y"), None if y_val is None else check(y_val, "y_val")


def _split_rows(estimator, problem):
    """Splits of ``cv``, and the fraction of them in which one more row would be a player."""
    X, y, n = problem.X, problem.y, len(problem.y)
    priors = [0.0 if problem.n_classes else float(targets.mean()) for _, targets in _outputs(y)]
    at_once = estimator._takes.leave_one_out_at_once and problem.groups is None
    if at_once and is_leave_one_out(estimator.cv):
        if n > LEAVE_ONE_OUT_LIMIT:
            warn(
                f"cv='leave-one-out' compares {n * n:,} pairs of rows. Pass X_val and y_val, or "
                "cv=5, to make it cheaper.",
                QuadraticCostWarning,
            )
        # One game in place of n: each row is a validation point, and never its own neighbour.
        rows = np.arange(n)
        return tuple(
            Split(slice(None), Points(X, targets, np.full(n, 1.0 / n), rows, rows, prior), output)
            for (output, targets), prior in zip(_outputs(y), priors)
        ), n / (n + 1)
    splits = []
    stratify = problem.n_classes > 0 and y.ndim == 1
    for players, held_out in make_splits(estimator.cv, X, y, problem.groups, stratify):
        weights = np.full(len(held_out), 1.0 / len(held_out))
        for (output, targets), prior in zip(_outputs(y), priors):
            points = Points(rows_at(X, held_out), targets[held_out], weights, held_out, prior=prior)
            splits.append(Split(players, points, output))
    return tuple(splits), sum(len(split.players) for split in splits) / (n * len(splits))


def refuse_unseen_labels(problem, cv):
    """Refuse splits in which a label of the validation points is missing among the players."""
    for split in problem.splits if problem.n_classes else ():
        unseen = np.setdiff1d(split.points.y, problem.rows(split)[1])
        if len(unseen):
            shown = ", ".join(map(repr, problem.classes[unseen].tolist()[:5]))
            raise ValueError(
                "In each split the players must have all labels of the validation points: rows "
                f"with the label {shown} are all among the validation points of one split. "
                "Pass X_val and y_val, another cv, or task='regression' if y holds no classes. "
                f"Got cv={cv!r}."
            )
