"""A detector of wrong labels: scores, a list of rows, and what verdicts say of it."""

import warnings
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import (
    check_groups,
    one_column,
    refuse_large,
    refuse_pairwise,
    seed_of,
)
from .._utils.containers import known_rows
from .._utils.embedding import embed, fit_embedding
from .._utils.fits import columns_of, set_fitted_state, unfitted_copy
from .._utils.probabilities import check_probabilities
from .._utils.row_encoder import RowEncoder
from .._utils.row_groups import differing, groups_of, merge_pairs
from .._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from .._utils.targets import (
    check_labels,
    check_target,
    check_task,
    encode_labels,
    task_of,
)
from .._utils.text_encoder import TextEncoder
from .._utils.untrusted import refuse
from ..base import Capabilities, Run, check_rows, follow_input_tags, warn_of_numbers
from ..exceptions import ParameterError
from ._duplicates import NO_PAIRS, find_duplicates
from ._held_out import (
    best_mixture,
    default_models,
    join_folds,
    label_scores,
    log_loss,
    make_folds,
    predict_fold,
    residual_spread,
)
from ._reasons import influence_ranks, label_reasons
from ._table import table_to_numbers
from ._verdicts import check_row_numbers, check_verdicts, draw_rows, make_statement

# Largest entry of X, so that squares are finite.
_MAX_ENTRY = 1e150

# Targets with a larger residual are listed, in multiples of the typical residual.
_MAX_RESIDUAL = 2.0

# If a larger fraction of the rows equals a row with another label, equal rows do not
# count as duplicates.
_COARSE_FRACTION = 0.2

# Attributes that `review` sets.
_SET_BY_REVIEW = {
    "label_error_",
    "q_values_",
    "error_rate_",
    "threshold_",
    "verdicts_",
}


class LabelErrorDetector(CallbackSupportMixin, BaseEstimator):
    """Rank rows by how probable their label is, and suggest other labels.

    Models that have not seen a row give the probability of its label: the lower, the
    more doubtful. Rows for which another label is more probable form a list. From
    probabilities alone, wrong labels cannot be told from classes that overlap; so a
    person looks at some rows of the list, `to_review_`, and from these verdicts
    `review` computes which part of the list has at most a fraction `fdr` of right
    labels.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier with `predict_proba`; a valuer with ``score_samples(X, y)``, such
        as :class:`~skvalue.KNNShapleyValuer`, whose values then replace probabilities;
        a regressor for continuous targets. It gets X as it is, or its embedding. None
        is a random forest and a logistic regression, mixed in the proportion of least
        log loss of the held-out rows; for targets, boosted trees of least absolute
        error (of a sparse matrix, a random forest) and Ridge, mixed in the proportion
        of least absolute error. These get the columns as `preparation_` says.
    fdr : float, default=0.1
        False discovery rate: the highest fraction of right labels in the list of
        `label_error_`.
    confidence : float, default=None
        None bounds the expected fraction. A confidence, such as 0.95, is the
        probability with which the fraction is at most `fdr`, by a one-sided normal
        bound.
    n_verdicts : int, default=50
        Number of rows to look at.
    cv : int, default=5
        Number of folds in which rows are held out, each once. Duplicates and groups are
        kept in one fold.
    embedding : transformer, callable, torch.nn.Module or "auto", default=None
        Map from texts, images or other rows to vectors. A transformer is fitted on X
        without y. "auto" encodes texts, and the columns of a frame by what they hold,
        as an audit does.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is the task of the estimator or, without one, regression if y is
        continuous.
    n_jobs : int, default=None
        Number of models that are trained at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, forests, and the draw of the rows to look at.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,)
        Held-out probability of the given label, or value by the valuer; for regression,
        minus the absolute residual in multiples of `spread_`. Low values are doubtful.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Held-out probabilities, or values, of all labels; not set for regression.
    suggested_label_ : ndarray of shape (n_samples,)
        Label with the highest score; the held-out prediction for regression.
    spread_ : ndarray of shape (n_samples,)
        For regression: the typical size of residuals of rows like this one, by the
        medians of those of rows of near predictions, and of similar rows.
    to_review_ : ndarray of shape (min(n_verdicts, n_listed),)
        Rows to look at, in random order: if only the first m are looked at, these are a
        draw of m.
    conflicts_ : list of ndarray
        Groups of equal rows with different labels, or targets that differ by more than
        twice the spread, most doubtful row first. If equal rows must have equal labels,
        one in each group is wrong. Unless coincidence may have made the rows equal,
        they are not in the list.
    duplicates_ : Bunch
        ``groups``, the groups of equal rows; ``verdict``, "copies", "perhaps
        coincidence" or "none"; and ``similar``, pairs of rows that are nearly equal:
        see :func:`~skvalue.labels.find_duplicates`.
    report_ : Bunch
        The list, most doubtful row first, in columns: ``row``, ``y``, ``suggestion``,
        ``value``; ``probability`` of the suggestion, for classes; and by each of the
        two default models the probability of the given label, ``forest`` and
        ``logistic``, or its prediction, ``boosting`` and ``ridge``.
    label_error_ : ndarray of bool of shape (n_samples,)
        After `review`: whether the row is named, ``q_values_ <= fdr``.
    q_values_ : ndarray of shape (n_samples,)
        After `review`: the smallest `fdr` at which the row is named. Rows with a
        verdict have 0 or 1, rows outside of the list 1.
    error_rate_ : Bunch
        After `review`: ``rate``, the fraction of all rows that are in the list and
        wrong, a lower bound of the error rate of the table; ``low`` and ``high``, its
        normal interval at ``confidence`` (95 %, or `confidence`).
    threshold_ : float
        After `review`: the highest value of the rows named without a verdict on
        themselves; minus infinity if there are none.
    verdicts_ : Bunch
        After `review`: ``row`` and ``is_error`` of all verdicts.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    mixture_ : float
        Weight of the forest, or of boosting; set for the default estimator.
    preparation_ : list of str
        What was done to columns that are no plain numbers; empty if nothing was.
    embedding_ : transformer, callable or torch.nn.Module
        The fitted embedding, if there is one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ValueFilter : Drop the rows of low value.
    DataOOBValuer : How well models predict a row that they were not trained on.

    Notes
    -----
    Labels of classes with too few rows, which a fold lacks entirely, are not listed.
    The statement of `review` trusts a logistic curve in the log of the rank, and that
    verdicts are right; it is no finite-sample theorem.

    References
    ----------
    C. Northcutt, L. Jiang, I. Chuang: "Confident Learning: Estimating Uncertainty in
    Dataset Labels", JAIR 2021, on held-out probabilities of given labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvalue import LabelErrorDetector
    >>> from skvalue.datasets import flip_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> y, flipped = flip_labels(y, 0.1, random_state=0)
    >>> detector = LabelErrorDetector(random_state=0).fit(X, y)

    A person looks at these rows:

    >>> rows = detector.to_review_
    >>> detector = detector.review(rows, flipped[rows])
    >>> bool(flipped[detector.label_error_].mean() > 0.8)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "fdr": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0.5, 1, closed="left"), None],
        "n_verdicts": [Interval(Integral, 1, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "embedding": [
            HasMethods(["fit", "transform"]),
            callable,
            StrOptions({"auto"}),
            None,
        ],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    _capabilities = Capabilities(any_rows=True)

    def __init__(
        self,
        estimator=None,
        *,
        fdr=0.1,
        confidence=None,
        n_verdicts=50,
        cv=5,
        embedding=None,
        task="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.fdr = fdr
        self.confidence = confidence
        self.n_verdicts = n_verdicts
        self.cv = cv
        self.embedding = embedding
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    # Public methods -------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, groups=None, pred_probs=None):
        """Score the labels, and choose the rows to look at.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows. Texts and images need an `embedding`. May be None with
            `pred_probs`: then duplicates are not looked for.
        y : array-like of shape (n_samples,)
            Their labels, or targets.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are held out together, such as those of one patient.
            Values are those of rows nevertheless.
        pred_probs : array-like of shape (n_samples, n_classes), default=None
            Probabilities from models that have not seen the row. Columns of a frame are
            matched to the labels by their names; those of an array, or of a frame
            without names (0, 1, ...; column_0, column_1, ...), are in the order of the
            sorted labels, as `classes_`. No model is trained then.

        Returns
        -------
        self : object
            The fitted detector.

        Raises
        ------
        ValueError
            If X has no columns of numbers or categories and there is no embedding, y
            has one class or missing labels, pred_probs are no probabilities of the
            classes of y, or the scores of a valuer do not depend on the label.
        """
        # A copy of the detector is checked, so that a fit that fails changes nothing.
        blank = unfitted_copy(self)
        seed = seed_of(self.random_state)
        y = check_labels(y)
        X = known_rows(X)
        original_X = X
        X, y = self._check_rows(blank, X, y, pred_probs)
        attributes = {
            name: value for name, value in vars(blank).items() if name.endswith("_")
        }
        vectors = self._vectorize(blank, X)

        # Rows that are equal, or nearly equal, are held out together.
        if X is None:
            duplicates = _no_duplicates(len(y))
        else:
            comparable = X
            if self.embedding is not None:
                comparable = _comparable_rows(original_X, X)
            duplicates = find_duplicates(comparable, vectors.scaled)
        equal, held_together, note = _group_duplicates(duplicates, y)
        attributes["preparation_"] = vectors.notes + note
        _, group_codes = check_groups(groups, len(y))
        if group_codes is not None:
            held_together = _merge_groups(held_together, group_codes)

        inputs = [X]
        if self.estimator is None:
            inputs = [vectors.scaled, vectors.for_linear]
        task = check_task(task_of(self.task, self.estimator), y)
        if task == "classification":
            doubts = self._doubt_labels(inputs, y, held_together, seed, pred_probs)
        elif pred_probs is None:
            doubts = self._doubt_targets(inputs, vectors, y, held_together, seed)
        else:
            raise ParameterError(
                "pred_probs", "must be None for regression. Got an array."
            )
        attributes |= doubts.attributes

        values = attributes["values_"]
        spread = attributes.get("spread_")
        conflicts = _find_conflicts(doubts.codes, equal, values, spread)
        if conflicts and duplicates.verdict == "copies":
            doubts.is_doubtful[np.concatenate(conflicts)] = False
        listed = np.flatnonzero(doubts.is_doubtful)
        listed = listed[np.argsort(values[listed], kind="stable")]
        rng = np.random.default_rng(seed)
        places = draw_rows(len(listed), self.n_verdicts, rng)
        attributes |= {
            "conflicts_": conflicts,
            "duplicates_": Bunch(
                groups=groups_of(duplicates.codes),
                verdict=duplicates.verdict,
                similar=duplicates.similar,
            ),
            "to_review_": listed[places],
            "report_": _make_report(listed, doubts, attributes),
        }
        evidence = Bunch(vectors=vectors.scaled, codes=doubts.codes)
        set_fitted_state(self, **attributes, _evidence=evidence)
        return self

    def review(self, rows, is_error):
        """Take verdicts on rows, and say which part of the list is wrong.

        Nothing is fitted again. Verdicts of several calls are put together; a later
        verdict on a row replaces an earlier one. The statement on the list comes from
        rows of the list, as `to_review_` draws them; verdicts on other rows only decide
        about these rows.

        Parameters
        ----------
        rows : array-like of int of shape (n_verdicts,)
            Row numbers.
        is_error : array-like of bool of shape (n_verdicts,)
            Whether the label of each row is wrong.

        Returns
        -------
        self : object
            The detector, with `label_error_`, `q_values_`, `error_rate_` and
            `threshold_`.

        Raises
        ------
        ValueError
            If there is no such row, or a verdict is neither true nor false.
        """
        check_is_fitted(self, "_evidence")
        verdicts = check_verdicts(rows, is_error, len(self.values_))
        if "verdicts_" in vars(self):
            earlier = zip(self.verdicts_.row.tolist(), self.verdicts_.is_error.tolist())
            verdicts = dict(earlier) | verdicts
        statement = make_statement(
            self.report_.row, verdicts, self.values_, self.fdr, self.confidence
        )
        vars(self).update(statement)
        return self

    def reasons(self, rows=None, *, n_rows=5, influence=False):
        """What speaks for and against the labels of some rows.

        Parameters
        ----------
        rows : array-like of int, default=None
            Row numbers; None is `to_review_`.
        n_rows : int, default=5
            Number of rows for, and of rows against.
        influence : bool, default=False
            Whether to add the influence of each row on a logistic regression (Ridge),
            which costs a fit by :class:`~skvalue.InfluenceValuer`.

        Returns
        -------
        reasons : Bunch
            Columns with one entry per row: ``row``; ``supporters`` and ``opponents``,
            the rows that contribute most to and against the prediction of its label by
            its 10 nearest neighbours, with ``supporter_contributions`` and
            ``opponent_contributions``, their Shapley values in that game of
            :class:`~skvalue.KNNShapleyValuer`; ``neighbors``, the fraction of these
            neighbours with its label (for regression, the absolute difference between
            their mean target and its own); and ``influence``, the fraction of rows with
            a lower influence.

        Raises
        ------
        ValueError
            If there is no such row, or the detector was fitted without X.
        """
        check_is_fitted(self, "_evidence")
        if rows is None:
            rows = self.to_review_
        else:
            rows = check_row_numbers(rows, len(self.values_))
        vectors = self._evidence.vectors
        codes = self._evidence.codes
        if vectors is None:
            raise ValueError(
                "reasons needs vectors of rows: fit had no X, or no embedding of it."
            )
        is_classifier = hasattr(self, "classes_")
        by_row = [
            label_reasons(vectors, codes, row, n_rows, is_classifier) for row in rows
        ]
        reasons = Bunch(
            row=rows,
            neighbors=np.array([entry.neighbors for entry in by_row]),
            supporters=[entry.supporters for entry in by_row],
            supporter_contributions=[entry.supporter_contributions for entry in by_row],
            opponents=[entry.opponents for entry in by_row],
            opponent_contributions=[entry.opponent_contributions for entry in by_row],
        )
        if influence:
            reasons.influence = influence_ranks(vectors, codes, rows, is_classifier)
        return reasons

    def __getattr__(self, name):
        # Called for attributes that are not set.
        if name not in _SET_BY_REVIEW:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        raise AttributeError(
            f"{name} needs verdicts: from probabilities alone, wrong labels cannot be "
            "told from overlapping classes. Look at the rows of to_review_ and call "
            "review(rows, is_error)."
        )

    # Steps of the fit -----------------------------------------------------------------

    def _check_rows(self, blank, X, y, pred_probs):
        """The rows, or their vectors by the embedding, and y.

        Sets the attributes of the copy `blank`.
        """
        if X is None:
            if pred_probs is None:
                raise ParameterError(
                    "X", "must be passed without pred_probs. Got None."
                )
            return None, one_column(y, "y", warn=True)
        column_names = {}
        if self.embedding is not None:
            # The embedding is fitted without y, so that no label leaks.
            blank.embedding_ = fit_embedding(self.embedding, X, None, all_words=True)
            column_names = columns_of(X)
            X = embed(blank.embedding_, X)
        X, y = check_rows(blank, self._capabilities, X, y)
        if column_names:
            # Names are those of the columns of the rows, not of their vectors.
            n_columns = len(column_names["feature_names_in_"])
            vars(blank).update(column_names, n_features_in_=n_columns)
        return X, y

    def _vectorize(self, blank, X):
        """Scaled vectors of the rows, if they have any."""
        if X is None:
            return _Vectors()
        encoder = getattr(blank, "embedding_", None)
        if isinstance(encoder, (TextEncoder, RowEncoder)) and hasattr(encoder, "split"):
            scaler = StandardScaler().set_output(transform="default")
            scaled, for_linear = encoder.split(X, scaler)
            return _Vectors(scaled, for_linear)
        try:
            vectors, notes = table_to_numbers(X)
            _check_size(vectors)
        except ValueError as error:
            # An estimator may take such rows.
            if self.estimator is None:
                raise
            note = f"only equal rows count as duplicates, since {error}"
            return _Vectors(notes=[note])
        scaler = StandardScaler(with_mean=not issparse(vectors))
        scaled = scaler.set_output(transform="default").fit_transform(vectors)
        return _Vectors(scaled, scaled, notes)

    def _doubt_labels(self, inputs, y, groups, seed, pred_probs):
        """Doubts about labels, by their held-out probabilities or values."""
        if self.task == "auto":
            warn_of_numbers(y)
        classes, codes, _ = encode_labels(y)
        y = classes[codes]
        codes = codes.astype(np.intp)
        if pred_probs is None:
            folds, scores_by_model = self._train(inputs, y, groups, classes, seed)
        else:
            folds = []
            scores_by_model = {"": check_probabilities(pred_probs, len(y), classes)}
        loss = partial(log_loss, codes=codes)
        scores, weight = best_mixture(scores_by_model, loss)
        if not np.ptp(scores, axis=1).any():
            raise ParameterError(
                "estimator",
                "must give values that depend on the label. Got "
                f"{self.estimator!r}, whose score_samples(X, y) ignores y.",
            )

        # A model cannot choose a label that its training rows lack: this is no evidence
        # against the label. Such rows are not doubted, and have a middle value.
        could_be_chosen = np.ones(len(codes), dtype=bool)
        for train, test in folds:
            could_be_chosen[test] = np.isin(codes[test], codes[train])
        values = label_scores(scores, codes)
        values[~could_be_chosen] = np.median(values)
        suggested_codes = scores.argmax(axis=1)
        attributes = {
            "classes_": classes,
            "values_": values,
            "label_scores_": scores,
            "suggested_label_": classes[suggested_codes],
        }
        if weight is not None:
            attributes["mixture_"] = weight
        opinions = {}
        for name, scores_of_model in scores_by_model.items():
            opinions[name] = label_scores(scores_of_model, codes)
        return _Doubts(
            codes=codes,
            is_doubtful=could_be_chosen & (suggested_codes != codes),
            opinions=opinions,
            attributes=attributes,
        )

    def _doubt_targets(self, inputs, vectors, y, groups, seed):
        """Doubts about targets of a regression, by their residuals."""
        y = check_target(y, "y")
        folds, predictions_by_model = self._train(inputs, y, groups, None, seed)
        prediction, weight = best_mixture(
            predictions_by_model, lambda mixture: np.sum(np.abs(mixture - y))
        )
        spread = residual_spread(
            vectors.scaled, prediction, y - prediction, folds, seed, self.n_jobs
        )
        values = -np.abs(y - prediction) / spread
        attributes = {
            "values_": values,
            "suggested_label_": prediction,
            "spread_": spread,
        }
        if weight is not None:
            attributes["mixture_"] = weight
        return _Doubts(
            codes=y,
            is_doubtful=values < -_MAX_RESIDUAL,
            opinions=predictions_by_model,
            attributes=attributes,
        )

    def _train(self, inputs, y, groups, classes, seed):
        """Folds, and held-out scores or predictions by each model, by its name.

        `inputs` has the rows for each model.
        """
        is_classifier = classes is not None
        if self.estimator is None:
            models = default_models(is_classifier, seed, inputs[0])
        else:
            models = {"": self.estimator}
            refuse_pairwise(self.estimator)
            if is_classifier and not _scores_labels(self.estimator):
                rule = (
                    "a classifier with predict_proba, or a valuer with "
                    "score_samples(X, y)"
                )
                refuse("estimator", rule, self.estimator)

        folds = make_folds(self.cv, y, groups, is_classifier, seed)
        if is_classifier and self.estimator is None:
            _check_two_classes(y, folds)
        tasks = []
        for model, X in zip(models.values(), inputs):
            tasks += [(model, X, y, train, test, classes) for train, test in folds]
        run = Run(self)
        with warnings.catch_warnings():
            if self.estimator is None:
                warnings.simplefilter("ignore", ConvergenceWarning)
            predictions = list(
                run.map(predict_fold, tasks, self.n_jobs, what="models trained")
            )
        if run.interrupted:
            raise KeyboardInterrupt
        if len(predictions) < len(tasks):
            raise RuntimeError(
                "The fit was stopped by a callback before all rows were held out."
            )
        run.close()

        predictions_by_model = {}
        for i, name in enumerate(models):
            of_model = predictions[i * len(folds) : (i + 1) * len(folds)]
            predictions_by_model[name] = join_folds(of_model, folds)
        return folds, predictions_by_model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        if self.estimator is not None and self.embedding is None:
            return follow_input_tags(tags, self.estimator)
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Vectors of the rows: for distances and forests, and for a linear model.

    Notes say what was done to the columns.
    """

    scaled: Any = None
    for_linear: Any = None
    notes: list = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Doubts:
    """What held-out models say about the labels.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Codes of the labels, or the targets.
    is_doubtful : ndarray of bool of shape (n_samples,)
        The rows to list.
    opinions : dict of str to ndarray of shape (n_samples,)
        For each model the probabilities of the labels, or its predictions.
    attributes : dict
        Fitted attributes by name.
    """

    codes: np.ndarray
    is_doubtful: np.ndarray
    opinions: dict
    attributes: dict


def _scores_labels(estimator):
    """Whether an estimator has probabilities, or values that depend on the label."""
    if hasattr(estimator, "predict_proba"):
        return True
    method = getattr(estimator, "score_samples", None)
    return method is not None and "y" in signature(method).parameters


def _check_size(vectors):
    refuse_large(vectors, _MAX_ENTRY, "X", ", for their squares to be finite")


# Duplicates and conflicts -------------------------------------------------------------


def _comparable_rows(X, vectors):
    """The rows if these are columns, texts or arrays, else their vectors."""
    if hasattr(X, "columns") or issparse(X):
        return X
    if all(isinstance(row, str) for row in X):
        return np.array(X, dtype=object)
    return X if isinstance(X, np.ndarray) and X.ndim > 1 else vectors


def _no_duplicates(n_rows):
    """The result of `find_duplicates` for rows without any."""
    return Bunch(
        codes=np.arange(n_rows), verdict="none", similar=NO_PAIRS, near=NO_PAIRS
    )


def _group_duplicates(duplicates, y):
    """Codes of equal rows, codes of rows to hold out together, and notes."""
    equal = duplicates.codes
    held_together = merge_pairs(duplicates.codes, duplicates.near)
    _, label_codes = np.unique(y, return_inverse=True)
    fraction = differing(label_codes, held_together).mean()
    if fraction <= _COARSE_FRACTION:
        return equal, held_together, []

    every_row_alone = np.arange(len(y))
    note = (
        f"{fraction:.0%} of the rows equal a row with another label, or nearly: the "
        "columns do not tell rows apart, so that equal rows do not count as duplicates"
    )
    return every_row_alone, every_row_alone, [note]


def _check_two_classes(y, folds):
    """Refuse folds that are trained on one class, which the default models are not."""
    for train, _ in folds:
        if len(np.unique(y[train])) < 2:
            raise ParameterError(
                "y",
                "must have two rows of at least two classes, which are no duplicates, "
                "so that models are trained on both. Got "
                f"{len(y)} rows, of which a fold without {len(y) - len(train)} has one "
                "class.",
            )


def _merge_groups(held_together, group_codes):
    """Codes of rows to hold out together, if those of a group are."""
    _, first_rows = np.unique(group_codes, return_index=True)
    rows = np.arange(len(group_codes))
    return merge_pairs(held_together, np.column_stack([rows, first_rows[group_codes]]))


def _find_conflicts(codes, equal, values, spread):
    """Groups of equal rows that differ in their labels, or too much in their targets.

    The most doubtful row of each group is its first, and that of all groups is in the
    first group.
    """
    _, label_codes = np.unique(codes, return_inverse=True)
    groups = groups_of(equal, differing(label_codes, equal))
    if spread is not None:
        groups = [
            group for group in groups if np.ptp(codes[group]) > 2 * spread[group].mean()
        ]
    groups = [group[np.argsort(values[group], kind="stable")] for group in groups]
    return sorted(groups, key=lambda group: values[group[0]])


def _make_report(listed, doubts, attributes):
    """The list in columns."""
    y = doubts.codes
    if "classes_" in attributes:
        y = attributes["classes_"][doubts.codes]
    columns = {
        "y": y,
        "suggestion": attributes["suggested_label_"],
        "value": attributes["values_"],
    }
    if "label_scores_" in attributes:
        columns["probability"] = attributes["label_scores_"].max(axis=1)
    if len(doubts.opinions) > 1:
        columns |= doubts.opinions
    report = Bunch(row=listed)
    for name, column in columns.items():
        report[name] = column[listed]
    return report
