"""A classifier fitted without the rows of low value."""

from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metaestimators import available_if

from .._utils.sklearn import estimator_has
from ._base_model import BaseFilteredModel


class ValueFilteredClassifier(BaseFilteredModel):
    """Fit a classifier without the rows of low value.

    `fit` values the rows, drops those of the lowest value (or lowers their weights),
    and fits the estimator on the others; `sample_weight` and other metadata are reduced
    to the same rows. Predictions are those of the estimator. As the last step of a
    Pipeline it can be used in cross-validation and grid search: only rows of the
    training folds are dropped.

    Parameters
    ----------
    estimator : estimator
        The classifier to fit.
    valuer : estimator, default=None
        A valuer; None means `KNNShapleyValuer()`. (A grid over ``valuer__...`` needs an
        explicit valuer.) If its ``task`` is "auto" it becomes "classification".
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Rows to drop. A float in [0, 1) is the fraction of lowest values, rounded down,
        and an int is their number (0 drops none); "negative": values below zero;
        "significant": ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": see
        Notes. With groups, it is the fraction or number of groups, each of which is
        dropped as a whole. If a class would lose all its rows, its row of the highest
        value stays, with a warning; there is also one if it loses more than half of
        them. With 0, rows are not valued.
    mode : {"drop", "weight"}, default="drop"
        "weight" keeps all rows with the weight clip(percentile of the value / drop, 0,
        1), times any `sample_weight`, where `drop` is the fraction of rows that the
        rule selects. The percentile of a row is (rank - 1/2) / n; tied rows have their
        mean rank.
    stratify : bool, default=False
        Whether no class may lose more rows than labels can be wrong in it. Of the rows
        of a class that `drop` selects, at most `label_caps` are dropped, lowest value
        first; no others are dropped instead. The held-out probabilities for this are
        those of the valuer, if it is a `LabelErrorDetector`, or of `estimator` by
        cross-validation. Not with groups.
    fdr : float, default=0.1
        False discovery rate of drop="significant".
    scoring : str or callable, default=None
        Score of drop="auto"; None means the `score` method of the estimator.
    cv : int, splitter or iterable, default=5
        Cross-validation splits of drop="auto".
    embedding : transformer, torch module, callable or "auto", default=None
        Map of X and X_val to vectors, which the valuer and the estimator get then. A
        transformer is cloned and fitted on X without y. "auto" encodes the columns of a
        frame by what they hold: numbers, categories, dates, texts, missing entries.
    row_metadata : list of str, default=()
        Names of metadata that have one entry per row and are cut with the rows, besides
        `sample_weight`, `groups`, `pred_probs` and, of boosting libraries,
        `base_margin`, `init_score` and `baseline`. All others, such as an `eval_set`,
        are passed whole.
    memory : str or joblib.Memory, default=None
        Cache of fitted valuers, so that a grid over `drop` or the estimator's
        parameters values the rows of each fold once. The cache contains the rows
        themselves.
    n_jobs : int, default=None
        Number of joblib jobs for the splits of drop="auto".

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    valuer_ : estimator
        The fitted valuer; not set with drop=0.
    values_ : ndarray of shape (n_samples,)
        Value of every row; with groups, the value of its group. Not available with
        drop=0.
    sample_indices_ : ndarray of shape (n_kept,)
        Indices of the kept rows, ascending.
    dropped_indices_ : ndarray of shape (n_dropped,)
        Indices of the dropped rows, ascending; empty with mode="weight".
    report_ : Bunch
        Row, label, group, value, weight and reason of the rows that were dropped or
        whose weight was lowered, lowest value first.
    embedding_ : transformer, torch module or callable
        The fitted embedding, if `embedding` is set.
    drop_ : float, int or str
        `drop`, or the fraction that drop="auto" chose or dropped.
    drop_scores_ : ndarray of shape (n_candidates, n_splits)
        Scores of the fractions that drop="auto" evaluated; set only by drop="auto"
        without a `LabelErrorDetector`.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during `fit`, if X has any.

    See Also
    --------
    ValueFilteredRegressor : The same for regression.
    ValueFilter : Drop rows without fitting a model; a step for imbalanced-learn.

    Notes
    -----
    With a `LabelErrorDetector`, drop="auto" drops the rows of `capped_rows`: those for
    which another label is more probable, at most as many of a class as can be wrong.

    With other valuers it evaluates the fractions 0, 0.05, 0.1, 0.2, 0.3 and 0.4 by
    cross-validation on the rows of fit: in each split the training rows are valued, and
    the estimator is fitted without those of the lowest value and scored on all test
    rows. Rows are dropped only if the best fraction beats 0 by more than two standard
    errors of the paired difference; then the smallest fraction within one standard
    error of the best is used. So clean rows are mostly kept.

    A validation set is passed on unchanged. However, GridSearchCV and cross_validate of
    scikit-learn split it like the rows if it has the same length as X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.selection import ValueFilteredClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> y, flipped = flip_labels(y, 0.1, random_state=0)
    >>> classifier = ValueFilteredClassifier(
    ...     LogisticRegression(), KNNShapleyValuer(), drop=0.1
    ... )
    >>> float(flipped[classifier.fit(X, y).dropped_indices_].mean())
    0.8
    >>> model = make_pipeline(StandardScaler(), classifier)
    >>> grid = {"valuefilteredclassifier__drop": [0, 0.1]}
    >>> GridSearchCV(model, grid).fit(X, y).best_params_
    {'valuefilteredclassifier__drop': 0.1}
    """

    _parameter_constraints: dict = {
        **BaseFilteredModel._parameter_constraints,
        "stratify": ["boolean"],
    }
    _task = "classification"

    def __init__(
        self,
        estimator,
        valuer=None,
        drop: float | str = 0.1,
        *,
        mode="drop",
        stratify=False,
        fdr=0.1,
        scoring=None,
        cv: object = 5,
        embedding: object = None,
        row_metadata: object = (),
        memory=None,
        n_jobs=None,
    ):
        super().__init__(
            estimator,
            valuer,
            drop,
            mode=mode,
            fdr=fdr,
            scoring=scoring,
            cv=cv,
            embedding=embedding,
            row_metadata=row_metadata,
            memory=memory,
            n_jobs=n_jobs,
        )
        self.stratify = stratify

    @property
    def classes_(self):
        """The class labels of the estimator."""
        return self.estimator_.classes_

    @available_if(estimator_has("predict_proba"))
    def predict_proba(self, X, **params):
        """Predict class probabilities with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict.
        **params : dict
            Metadata for the estimator's predict_proba.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._delegate("predict_proba", X, **params)

    @available_if(estimator_has("predict_log_proba"))
    def predict_log_proba(self, X, **params):
        """Predict logarithms of class probabilities with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict.
        **params : dict
            Metadata for the estimator's predict_log_proba.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._delegate("predict_log_proba", X, **params)

    @available_if(estimator_has("decision_function"))
    def decision_function(self, X, **params):
        """Decision function of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict.
        **params : dict
            Metadata for the estimator's decision_function.

        Returns
        -------
        decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Decision function of the estimator.
        """
        return self._delegate("decision_function", X, **params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = (
            get_tags(self.estimator).classifier_tags or ClassifierTags()
        )
        tags.classifier_tags.multi_label = False
        return tags
