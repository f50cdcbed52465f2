"""Dropping rows as a step of its own."""

from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from .._utils.fits import swap_in
from .._utils.sklearn import HasMethods, fit_context, safe_indexing
from ._base_filter import BaseValueFilter
from ._metadata import given
from ._valuer import fresh_valuer


class ValueFilter(BaseValueFilter):
    """Drop the rows of low value, or name them to whoever relabels.

    `fit` values the rows and says which would go; `fit_resample` returns the others. It works as a
    step of imbalanced-learn's Pipeline, in which rows are dropped in fit only. A step of
    scikit-learn's Pipeline cannot drop rows: there, take `ValueFilteredClassifier`.

    Parameters
    ----------
    valuer : estimator, default=None
        A valuer such as `KNNShapleyValuer`, which None stands for.
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Which rows go. A float in [0, 1) is the fraction of lowest values, rounded down, an int
        their number (0 is none in both); "negative": values below zero; "significant":
        ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": the fraction that cross-validation
        of `estimator` chooses, see `ValueFilteredClassifier`. With groups, they are fractions or
        numbers of groups, which go as wholes. Of every class at least the row of the highest value
        stays, with a warning.
    fdr : float, default=0.1
        False discovery rate of drop="significant".
    estimator : estimator, default=None
        The model that drop="auto" cross-validates; no other rule needs one.
    scoring : str or callable, default=None
        Score of drop="auto"; None is the estimator's own.
    cv : int, splitter or iterable, default=5
        Splits of drop="auto".
    memory : str or joblib.Memory, default=None
        Where fitted valuers are kept, so that rows are valued once whatever `drop` is.
    n_jobs : int, default=None
        Number of joblib jobs over the splits of drop="auto".

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        Positions of the rows that were kept, ascending.
    dropped_indices_ : ndarray of shape (n_dropped,)
        Positions of the others, ascending.
    values_ : ndarray of shape (n_samples,)
        Value of every row; with groups, its group's.
    report_ : Bunch
        Row, value, weight and reason of the rows dropped, lowest value first.
    valuer_ : estimator
        The fitted valuer.
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
    ValueFilteredClassifier : Drops rows inside the last step of scikit-learn's Pipeline.
    ValueFilteredRegressor : The same for regression.

    Notes
    -----
    imbalanced-learn's Pipeline hands X_val and other metadata to a step that drops rows only with
    ``sklearn.set_config(enable_metadata_routing=True)``; without, it loses them silently. It never
    cuts `sample_weight` of later steps: use `ValueFilteredClassifier` for weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.selection import ValueFilter
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2]])
    >>> y = np.array(["a", "a", "b", "a", "b", "b", "b"])
    >>> row_filter = ValueFilter(KNNShapleyValuer(n_neighbors=1), drop=1)
    >>> X_kept, y_kept = row_filter.fit_resample(X, y)
    >>> y_kept.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> row_filter.report_.row.tolist(), row_filter.report_.reason.tolist()
    ([2], ['among the 1 lowest of 7 values'])
    """

    _parameter_constraints: dict = {
        **BaseValueFilter._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
    }

    def __init__(
        self,
        valuer=None,
        drop=0.1,
        *,
        fdr=0.1,
        estimator=None,
        scoring=None,
        cv=5,
        memory=None,
        n_jobs=None,
    ):
        self.valuer = valuer
        self.drop = drop
        self.fdr = fdr
        self.estimator = estimator
        self.scoring = scoring
        self.cv = cv
        self.memory = memory
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None, **params):
        """Value the rows and name those that would be dropped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points of the valuer.
        y_val : array-like of shape (n_validation,), default=None
            Their labels or targets.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows: they are valued, and dropped, as wholes.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points.
        **params : dict
            Metadata of the valuer's fit, such as the `sample_weight` of one that trains models.
            With metadata routing, what the valuer requests.

        Returns
        -------
        self : object
            The fitted filter.

        Raises
        ------
        ValueError
            If no row would be left, drop="significant" comes without X_val or drop="auto" without
            an estimator, the valuer takes no sample_weight, or it refuses the rows.
        """
        if self.drop == "auto" and self.estimator is None:
            raise ValueError(
                "drop='auto' needs an estimator to cross-validate: pass estimator=. Got None."
            )
        passed = dict(X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=sample_weight_val)
        *_, attributes = self._choose(
            X, y, passed, {}, mode="drop", task="auto", of_valuer=self._routed(params)
        )
        swap_in(self, **attributes)
        return self

    def fit_resample(
        self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None, **params
    ):
        """Fit and return the rows that are kept, in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; frames come back as frames, with their index.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        X_val, y_val, groups, sample_weight_val : array-likes, default=None
            As in `fit`.
        **params : dict
            As in `fit`.

        Returns
        -------
        X_kept : array-like of shape (n_kept, n_features)
            The rows kept. Other arrays are cut by `select` or by `sample_indices_`.
        y_kept : array-like of shape (n_kept,)
            Their labels or targets.
        """
        passed = dict(X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=sample_weight_val)
        self.fit(X, y, **passed, **params)
        return safe_indexing(X, self.sample_indices_), safe_indexing(y, self.sample_indices_)

    def _routed(self, params):
        """Metadata of the valuer's fit."""
        params = given(**params)
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **params)["valuer"]["fit"]) if params else {}
        valuer = fresh_valuer(self.valuer)
        if "sample_weight" in params and not has_fit_parameter(valuer, "sample_weight"):
            raise ValueError(
                f"sample_weight needs a valuer whose fit takes it. Got {type(valuer).__name__}."
            )
        return params

    def get_metadata_routing(self):
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What `fit` takes itself, and what is routed to the valuer. `fit_resample`, which
            scikit-learn knows of once imbalanced-learn is imported, has the same.
        """
        requests, mapping = super().get_metadata_routing(), MethodMapping()
        mapping.add(caller="fit", callee="fit")
        if hasattr(requests, "fit_resample"):
            for name, alias in requests.fit.requests.items():
                requests.fit_resample.add_request(param=name, alias=alias)
            mapping.add(caller="fit_resample", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(requests)
        return router.add(valuer=fresh_valuer(self.valuer), method_mapping=mapping)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(fresh_valuer(self.valuer)).input_tags.sparse
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags
