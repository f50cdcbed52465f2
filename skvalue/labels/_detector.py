"""A detector of wrong labels: scores of rows, a list, and what verdicts say about the
list."""

import warnings
from functools import partial
from inspect import signature
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_array
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_groups, one_column, seed_of
from .._utils.embedding import embed, fit_embedding
from .._utils.fits import columns_of, set_fitted_state, unfitted_copy
from .._utils.row_groups import differing, groups_of, merge_pairs
from .._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from .._utils.targets import (
    check_target,
    check_task,
    encode_labels,
    refuse_missing_labels,
    task_of,
)
from .._utils.text_encoder import TextEncoder
from .._utils.untrusted import refuse
from ..base import Capabilities, Run, check_rows, follow_input_tags, warn_of_numbers
from ._duplicates import NO_PAIRS, find_duplicates
from ._held_out import (
    default_models,
    held_out,
    in_row_order,
    log_loss,
    make_folds,
    mix,
    own,
    spread_of,
)
from ._reasons import REASONS, influence_ranks, speakers
from ._table import table_to_numbers
from ._verdicts import check_places, check_verdicts, draw_rows, make_statement

_LARGEST = 1e150  # of the entries of X, whose squares are finite
_FAR = 2.0  # residual, in multiples of the typical one, above which a target is listed
_BY_REVIEW = {"label_error_", "q_values_", "error_rate_", "threshold_", "verdicts_"}
_COARSE = 0.2  # fraction of rows in groups of equal rows with different labels


class LabelErrorDetector(CallbackSupportMixin, BaseEstimator):
    """Rank rows by how probable their label is, suggest others, and say how sure that
    is.

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
        is a random forest and a logistic regression (Ridge for targets), mixed in the
        proportion of least log loss (squared error) of the held-out rows; these get the
        columns as `preparation_` says.
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
    embedding : transformer, callable or torch.nn.Module, default=None
        Map from texts, images or other rows to vectors. A transformer is fitted on X
        without y.
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
        For regression: the typical size of residuals of rows like this one.
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
        ``logistic``, or its prediction.
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
        Weight of the forest; set for the default estimator.
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
    Labels of classes with too few rows, which a fold lacks entirely, are not listed. The statement
    of `review` trusts a logistic curve in the log of the rank, and that verdicts are right; it is
    no finite-sample theorem.

    References
    ----------
    C. Northcutt, L. Jiang, I. Chuang: "Confident Learning: Estimating Uncertainty in Dataset
    Labels", JAIR 2021, on held-out probabilities of given labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvalue import LabelErrorDetector
    >>> from skvalue.datasets import flip_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> y, flipped = flip_labels(y, 0.1, random_state=0)
    >>> detector = LabelErrorDetector(random_state=0).fit(X, y)
    >>> rows = detector.to_review_  # show these to a person
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
        "embedding": [HasMethods(["fit", "transform"]), callable, None],
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
            Probabilities from models that have not seen the row, in the order of the
            sorted labels. No model is trained then.

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
        blank, seed = unfitted_copy(self), seed_of(self.random_state)
        refuse_missing_labels(y)
        given, (X, y) = X, self._rows(blank, X, y, pred_probs)
        attributes = {
            name: entry for name, entry in vars(blank).items() if name.endswith("_")
        }
        vectors, wide, notes = self._vectors(blank, X)
        alone = np.arange(len(y))
        found = Bunch(codes=alone, verdict="none", similar=NO_PAIRS, near=NO_PAIRS)
        if X is not None:
            rows = X if self.embedding is None else _comparable(given, X)
            found = find_duplicates(rows, vectors)
        equal, twins = found.codes, merge_pairs(found.codes, found.near)
        differ = differing(np.unique(y, return_inverse=True)[1], twins).mean()
        if differ > _COARSE:
            notes.append(
                f"{differ:.0%} of the rows equal a row with another label, or nearly: the columns "
                "do not tell rows apart, so that equal rows do not count as duplicates"
            )
            equal = twins = alone
        attributes["preparation_"] = notes
        group_codes = check_groups(groups, len(y))[1]
        if group_codes is not None:
            first = np.unique(group_codes, return_index=True)[1]
            twins = merge_pairs(twins, np.column_stack([alone, first[group_codes]]))
        rows = (vectors, wide) if self.estimator is None else (X, X)
        if check_task(task_of(self.task, self.estimator), y) == "classification":
            doubts = self._doubt_labels(rows, y, twins, seed, pred_probs)
        elif pred_probs is None:
            doubts = self._doubt_targets(rows, vectors, y, twins, seed)
        else:
            raise ValueError("pred_probs must be None for regression. Got an array.")
        scores, codes, doubtful, opinions = doubts
        attributes |= scores
        values = attributes["values_"]
        conflicts = _conflicts(codes, equal, values, attributes.get("spread_"))
        if conflicts and found.verdict == "copies":
            doubtful[np.concatenate(conflicts)] = False
        listed = np.flatnonzero(doubtful)
        listed = listed[np.argsort(values[listed], kind="stable")]
        drawn = draw_rows(len(listed), self.n_verdicts, np.random.default_rng(seed))
        attributes |= {
            "conflicts_": conflicts,
            "duplicates_": Bunch(
                groups=groups_of(found.codes),
                verdict=found.verdict,
                similar=found.similar,
            ),
            "to_review_": listed[drawn],
            "report_": _report(listed, codes, opinions, attributes),
        }
        set_fitted_state(
            self, **attributes, _evidence=Bunch(vectors=vectors, codes=codes)
        )
        return self

    def review(self, rows, is_error):
        """Take verdicts on rows, and say which part of the list is wrong. Nothing is
        fitted again.

        Verdicts of several calls are put together; a later verdict on a row replaces an
        earlier one. The statement on the list comes from rows of the list, as
        `to_review_` draws them; verdicts on other rows only decide about these rows.

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
            rows, is_error = (
                self.verdicts_.row.tolist(),
                self.verdicts_.is_error.tolist(),
            )
            verdicts = dict(zip(rows, is_error)) | verdicts
        statement = make_statement(
            self.report_.row, verdicts, self.values_, self.fdr, self.confidence
        )
        vars(self).update(statement)
        return self

    def reasons(self, rows=None, *, n_rows=5, influence=False):
        """What speaks for and against the label of some rows, and what other methods
        say.

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
        rows = (
            self.to_review_ if rows is None else check_places(rows, len(self.values_))
        )
        vectors, codes = self._evidence.vectors, self._evidence.codes
        if vectors is None:
            raise ValueError(
                "reasons needs vectors of rows: fit had no X, or no embedding of it."
            )
        classifier = hasattr(self, "classes_")
        spoken = [speakers(vectors, codes, row, n_rows, classifier) for row in rows]
        found = Bunch(
            row=rows, **{name: [each[name] for each in spoken] for name in REASONS}
        )
        found.neighbors = np.array(found.neighbors)
        if influence:
            found.influence = influence_ranks(vectors, codes, rows, classifier)
        return found

    # Internals ------------------------------------------------------------------------

    def __getattr__(self, name):  # of attributes that are not set
        if name not in _BY_REVIEW:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        raise AttributeError(
            f"{name} needs verdicts: from probabilities alone, wrong labels cannot be told from "
            "overlapping classes. Look at the rows of to_review_ and call review(rows, is_error)."
        )

    def _rows(self, blank, X, y, pred_probs):
        """The rows, or their vectors by the embedding, and y; sets attributes of the
        copy."""
        if X is None:
            if pred_probs is None:
                raise ValueError("X must be passed without pred_probs. Got None.")
            return None, one_column(y, "y", warn=True)
        names = {}
        if self.embedding is not None:
            blank.embedding_ = fit_embedding(
                self.embedding, X, None
            )  # labels must not leak
            names, X = columns_of(X), embed(blank.embedding_, X)
        X, y = check_rows(blank, self._capabilities, X, y)
        if names:  # of the rows, not of their vectors
            vars(blank).update(names, n_features_in_=len(names["feature_names_in_"]))
        return X, y

    def _vectors(self, blank, X):
        """Scaled vectors of the rows, those for a linear model, what was done to their
        columns."""
        if X is None:
            return None, None, []
        if isinstance(getattr(blank, "embedding_", None), TextEncoder):
            scaler = StandardScaler().set_output(transform="default")
            return *blank.embedding_.split(X, scaler), []
        try:
            vectors, notes = table_to_numbers(X)
            largest = np.abs(vectors.data if issparse(vectors) else vectors).max(
                initial=0.0
            )
            if largest > _LARGEST:
                raise ValueError(
                    f"X must hold numbers of at most {_LARGEST:g} in absolute value, for their "
                    f"squares to be finite: scale its columns. Got {largest:g}."
                )
        except ValueError as error:
            if self.estimator is None:
                raise
            return None, None, [f"only equal rows count as duplicates, since {error}"]
        scaler = StandardScaler(with_mean=not issparse(vectors)).set_output(
            transform="default"
        )
        vectors = scaler.fit_transform(vectors)
        return vectors, vectors, notes

    def _doubt_labels(self, rows, y, parts, seed, pred_probs):
        """Attributes, codes of labels, whether another is more probable, and what
        models say."""
        if self.task == "auto":
            warn_of_numbers(y)
        classes, codes, _ = encode_labels(y)
        y, codes = classes[codes], codes.astype(np.intp)
        if pred_probs is None:
            folds, by_model = self._train(rows, y, parts, classes, seed)
        else:
            folds, by_model = (
                [],
                {"": _check_probabilities(pred_probs, len(y), classes)},
            )
        scores, mixture = mix(by_model, partial(log_loss, codes=codes))
        values, known = own(scores, codes), np.ones(len(codes), dtype=bool)
        if not np.ptp(scores, axis=1).any():
            raise ValueError(
                "estimator must give values that depend on the label. Got "
                f"{self.estimator!r}, whose score_samples(X, y) ignores y."
            )
        for train, test in folds:
            known[test] = np.isin(codes[test], codes[train])
        values[~known] = np.median(values)  # their label was not to be chosen
        suggested = scores.argmax(axis=1)
        attributes = {
            "classes_": classes,
            "values_": values,
            "label_scores_": scores,
            "suggested_label_": classes[suggested],
            **mixture,
        }
        opinions = {name: own(scores, codes) for name, scores in by_model.items()}
        return attributes, codes, known & (suggested != codes), opinions

    def _doubt_targets(self, rows, vectors, y, parts, seed):
        """The same for targets of a regression, by their residuals."""
        y = check_target(y, "y")
        folds, by_model = self._train(rows, y, parts, None, seed)
        prediction, mixture = mix(by_model, lambda p: np.sum((p - y) ** 2))
        rows = rows[0] if vectors is None else vectors
        spread = spread_of(rows, y - prediction, folds, seed, self.n_jobs)
        values = -np.abs(y - prediction) / spread
        attributes = {
            "values_": values,
            "suggested_label_": prediction,
            "spread_": spread,
        }
        return attributes | mixture, y, values < -_FAR, by_model

    def _train(self, rows, y, parts, classes, seed):
        """Folds, and held-out scores or predictions by each model, by its name."""
        models, known = {"": self.estimator}, classes is not None
        if self.estimator is None:
            models = default_models(known, seed)
        elif known and not _scores_labels(self.estimator):
            rule = (
                "a classifier with predict_proba, or a valuer with score_samples(X, y)"
            )
            refuse("estimator", rule, self.estimator)
        folds, run = make_folds(self.cv, y, parts, known, seed), Run(self)
        pairs = zip(models.values(), rows)
        tasks = [(model, X, y, *fold, classes) for model, X in pairs for fold in folds]
        with warnings.catch_warnings():
            if self.estimator is None:
                warnings.simplefilter("ignore", ConvergenceWarning)
            found = list(run.map(held_out, tasks, self.n_jobs, what="models trained"))
        if run.interrupted:
            raise KeyboardInterrupt
        if len(found) < len(tasks):
            raise RuntimeError(
                "The fit was stopped by a callback before all rows were held out."
            )
        run.close()
        n, tests = len(folds), [test for _, test in folds]
        of_models = [found[start : start + n] for start in range(0, len(found), n)]
        return folds, {
            name: in_row_order(each, tests) for name, each in zip(models, of_models)
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        if self.estimator is not None and self.embedding is None:
            return follow_input_tags(tags, self.estimator)
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


def _scores_labels(estimator):
    """Whether an estimator has probabilities, or values that may depend on the
    label."""
    if hasattr(estimator, "predict_proba"):
        return True
    method = getattr(estimator, "score_samples", None)
    return method is not None and "y" in signature(method).parameters


def _comparable(X, vectors):
    """The given rows if these are columns, texts or arrays, else their vectors."""
    if hasattr(X, "columns") or issparse(X):
        return X
    if all(isinstance(row, str) for row in X):
        return np.array(X, dtype=object)
    return X if isinstance(X, np.ndarray) and X.ndim > 1 else vectors


def _conflicts(codes, twins, values, spread):
    """Groups of duplicates that differ in their labels, or too much in their
    targets."""
    groups = groups_of(
        twins, differing(np.unique(codes, return_inverse=True)[1], twins)
    )
    if spread is not None:
        groups = [
            group for group in groups if np.ptp(codes[group]) > 2 * spread[group].mean()
        ]
    groups = [group[np.argsort(values[group], kind="stable")] for group in groups]
    return sorted(groups, key=lambda group: values[group[0]])


def _report(listed, codes, opinions, attributes):
    """The list in columns."""
    y = attributes["classes_"][codes] if "classes_" in attributes else codes
    columns = {
        "y": y,
        "suggestion": attributes["suggested_label_"],
        "value": attributes["values_"],
    }
    if "label_scores_" in attributes:
        columns["probability"] = attributes["label_scores_"].max(axis=1)
    if len(opinions) > 1:
        columns |= opinions
    return Bunch(
        row=listed, **{name: column[listed] for name, column in columns.items()}
    )


def _check_probabilities(pred_probs, n, classes):
    """Probabilities of all classes by row, or an error."""
    scores = check_array(pred_probs, dtype=np.float64, input_name="pred_probs")
    if scores.shape != (n, len(classes)):
        raise ValueError(
            f"pred_probs must have a row for each of {n} labels and a column for each of "
            f"{len(classes)} classes. Got shape {scores.shape}."
        )
    if scores.min() < 0 or np.abs(scores.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError("pred_probs must be probabilities: rows at least 0, of sum 1.")
    return scores
