"""A regressor that is fitted without the rows of low value."""

from sklearn.utils import RegressorTags, get_tags

from ._base_model import BaseFilteredModel


class ValueFilteredRegressor(BaseFilteredModel):
    """Fit a regressor without the rows of low value.

    In fit the rows are valued, the lowest are dropped (or weigh less), and the estimator is fitted
    on the others; `sample_weight` and other metadata of the rows are cut with them. Prediction is
    the estimator's. As the last step of a Pipeline it survives cross-validation and grid-search:
    only rows of the training folds are dropped.

    Parameters
    ----------
    estimator : estimator
        The regressor to fit.
    valuer : estimator, default=None
        A valuer such as `KNNShapleyValuer`, which None stands for. (For ``valuer__...`` in a grid
        it must be given.) Where its ``task`` is "auto" it becomes "regression".
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Which rows go. A float in [0, 1) is the fraction of lowest values, rounded down, an int
        their number (0 is none in both); "negative": values below zero; "significant":
        ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": see Notes. With groups, they are
        fractions or numbers of groups, which go as wholes.
    mode : {"drop", "weight"}, default="drop"
        "weight" keeps all rows and gives them the weight clip(percentile of the value / drop, 0,
        1), times any `sample_weight`; a rule counts as the fraction of rows it names. The
        percentile of a row is (rank - 1/2) / n, tied rows having their mean rank.
    fdr : float, default=0.1
        False discovery rate of drop="significant".
    scoring : str or callable, default=None
        Score of drop="auto"; None is the estimator's own.
    cv : int, splitter or iterable, default=5
        Splits of drop="auto".
    memory : str or joblib.Memory, default=None
        Where fitted valuers are kept, so that a grid over `drop` or the estimator's parameters
        values the rows of each fold once. The store holds the rows themselves.
    n_jobs : int, default=None
        Number of joblib jobs over the splits of drop="auto".

    Attributes
    ----------
    estimator_ : estimator
        The fitted regressor.
    valuer_ : estimator
        The fitted valuer.
    values_ : ndarray of shape (n_samples,)
        Value of every row; with groups, its group's.
    sample_indices_ : ndarray of shape (n_kept,)
        Positions of the rows that were kept, ascending.
    dropped_indices_ : ndarray of shape (n_dropped,)
        Positions of the others, ascending; none with mode="weight".
    report_ : Bunch
        Row, value, weight and reason of the rows dropped or weighed down, lowest value first.
    drop_ : float, int or str
        `drop`, or what "auto" chose.
    drop_scores_ : ndarray of shape (n_candidates, n_splits)
        Scores of the fractions that "auto" tried; set by it alone.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    ValueFilteredClassifier : The same for classification.
    ValueFilter : Names or drops rows without fitting a model; a step for imbalanced-learn.

    Notes
    -----
    drop="auto" tries the fractions 0, 0.05, 0.1, 0.2, 0.3 and 0.4 by cross-validation on the rows
    of fit: in each split the training rows are valued anew, the estimator is fitted without the
    lowest, and scored on all test rows. Rows are dropped only if the best fraction beats 0 by more
    than two standard errors of the paired difference; then the smallest fraction is taken that is
    within one standard error of the best. So clean rows are mostly left alone.

    A validation set is passed on whole. Only scikit-learn's own GridSearchCV and cross_validate
    slice it with the rows when it happens to be as long as X.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.selection import ValueFilteredRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = 2 * X[:, 0]
    >>> y[7] = 100.5
    >>> model = ValueFilteredRegressor(LinearRegression(), KNNShapleyValuer(n_neighbors=2), drop=1)
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
