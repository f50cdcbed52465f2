"""A regressor fitted without the rows of low value."""

from sklearn.utils import RegressorTags, get_tags

from ._base_model import BaseFilteredModel


class ValueFilteredRegressor(BaseFilteredModel):
    """Fit a regressor without the rows of low value.

    `fit` values the rows, drops those of the lowest value (or lowers their weights),
    and fits the estimator on the others; `sample_weight` and other metadata are reduced
    to the same rows. Predictions are those of the estimator. As the last step of a
    Pipeline it can be used in cross-validation and grid search: only rows of the
    training folds are dropped.

    Parameters
    ----------
    estimator : estimator
        The regressor to fit.
    valuer : estimator, default=None
        A valuer; None means `KNNShapleyValuer()`. (A grid over ``valuer__...`` needs an
        explicit valuer.) If its ``task`` is "auto" it becomes "regression".
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Rows to drop. A float in [0, 1) is the fraction of lowest values, rounded down,
        and an int is their number (0 drops none); "negative": values below zero;
        "significant": ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": see
        Notes. With groups, it is the fraction or number of groups, each of which is
        dropped as a whole. With 0, rows are not valued.
    mode : {"drop", "weight"}, default="drop"
        "weight" keeps all rows with the weight clip(percentile of the value / drop, 0,
        1), times any `sample_weight`, where `drop` is the fraction of rows that the
        rule selects. The percentile of a row is (rank - 1/2) / n; tied rows have their
        mean rank.
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
        The fitted regressor.
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
        Row, target, group, value, weight and reason of the rows that were dropped or
        whose weight was lowered, lowest value first.
    embedding_ : transformer, torch module or callable
        The fitted embedding, if `embedding` is set.
    drop_ : float, int or str
        `drop`, or the fraction that drop="auto" chose.
    drop_scores_ : ndarray of shape (n_candidates, n_splits)
        Scores of the fractions that drop="auto" evaluated; set only by drop="auto".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during `fit`, if X has any.

    See Also
    --------
    ValueFilteredClassifier : The same for classification.
    ValueFilter : Drop rows without fitting a model; a step for imbalanced-learn.

    Notes
    -----
    drop="auto" chooses a fraction of at most 0.4 by an inner cross-validation, and
    drops nothing unless this raises the score, as the Notes of
    :class:`ValueFilteredClassifier` describe. GridSearchCV splits a validation set that
    has the length of X like the rows; see there, too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.selection import ValueFilteredRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = 2 * X[:, 0]
    >>> y[7] = 100.5
    >>> model = ValueFilteredRegressor(
    ...     LinearRegression(), KNNShapleyValuer(n_neighbors=2), drop=1
    ... )
    >>> model.fit(X, y).dropped_indices_.tolist()
    [7]
    >>> model.estimator_.coef_.round(6).tolist()
    [2.0]
    """

    _task = "regression"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = get_tags(self.estimator).regressor_tags or RegressorTags()
        return tags
