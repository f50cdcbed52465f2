"""A classifier that is fitted without the rows of low value."""

from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metaestimators import available_if

from ._base_model import BaseFilteredModel


def _has(method):
    """Whether the estimator, fitted or not, has a method."""

    def check(self):
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class ValueFilteredClassifier(BaseFilteredModel):
    """Fit a classifier without the rows of low value.

    In fit the rows are valued, the lowest are dropped (or weigh less), and the estimator is fitted
    on the others; `sample_weight` and other metadata of the rows are cut with them. Prediction is
    the estimator's. As the last step of a Pipeline it survives cross-validation and grid-search:
    only rows of the training folds are dropped.

    Parameters
    ----------
    estimator : estimator
        The classifier to fit.
    valuer : estimator, default=None
        A valuer such as `KNNShapleyValuer`, which None stands for. (For ``valuer__...`` in a grid
        it must be given.) Where its ``task`` is "auto" it becomes "classification".
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Which rows go. A float in [0, 1) is the fraction of lowest values, rounded down, an int
        their number (0 is none in both); "negative": values below zero; "significant":
        ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": see Notes. With groups, they are
        fractions or numbers of groups, which go as wholes. Of every class at
        least the row of the highest value stays, with a warning.
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
        The fitted classifier.
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
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    ValueFilteredRegressor : The same for regression.
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
    >>> clean = ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(), drop=0.1)
    >>> float(flipped[clean.fit(X, y).dropped_indices_].mean())
    0.8
    >>> model = make_pipeline(StandardScaler(), clean)
    >>> grid = {"valuefilteredclassifier__drop": [0, 0.1]}
    >>> GridSearchCV(model, grid).fit(X, y).best_params_
    {'valuefilteredclassifier__drop': 0.1}
    """

    _task = "classification"

    @property
    def classes_(self):
        """The labels, as the estimator has them."""
        return self.estimator_.classes_

    @available_if(_has("predict_proba"))
    def predict_proba(self, X, **params):
        """Probabilities of the classes by the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        **params : dict
            Metadata of the estimator's predict_proba.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._delegate("predict_proba", X, **params)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X, **params):
        """Logarithms of the probabilities by the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        **params : dict
            Metadata of the estimator's predict_log_proba.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._delegate("predict_log_proba", X, **params)

    @available_if(_has("decision_function"))
    def decision_function(self, X, **params):
        """Decision function of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        **params : dict
            Metadata of the estimator's decision_function.

        Returns
        -------
        decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
            What the estimator gives.
        """
        return self._delegate("decision_function", X, **params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = get_tags(self.estimator).classifier_tags or ClassifierTags()
        tags.classifier_tags.multi_label = False
        return tags
