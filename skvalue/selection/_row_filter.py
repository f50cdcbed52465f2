"""A filter that drops rows without fitting a model."""

from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import has_fit_parameter

from .._utils.containers import known_rows
from .._utils.fits import set_fitted_state
from .._utils.sklearn import HasMethods, fit_context, safe_indexing
from ..exceptions import ParameterError
from ._base_filter import BaseValueFilter, allow_any_columns
from ._caps import gives_probabilities
from ._metadata import given, route
from ._valuer import fresh_valuer


class ValueFilter(BaseValueFilter):
    """Drop the rows of low value, or list them for relabelling.

    `fit` values the rows and selects those to drop; `fit_resample` returns the others.
    It can be a step of imbalanced-learn's Pipeline, which drops rows only in fit. A
    step of scikit-learn's Pipeline cannot drop rows: use `ValueFilteredClassifier`
    there.

    Parameters
    ----------
    valuer : estimator, default=None
        A valuer; None means `KNNShapleyValuer()`.
    drop : float, int, "negative", "significant" or "auto", default=0.1
        Rows to drop. A float in [0, 1) is the fraction of lowest values, rounded down,
        and an int is their number (0 drops none); "negative": values below zero;
        "significant": ``valuer.harmful(fdr=fdr)``, which needs X_val; "auto": with
        a `LabelErrorDetector` of classes the rows of `capped_rows`; with another valuer
        the fraction that cross-validation of `estimator` chooses, see
        `ValueFilteredClassifier`. With groups, it is the fraction or number of groups,
        each of which is dropped as a whole. If a class would lose all its rows, its row
        of the highest value stays, with a warning; there is also one if it loses more
        than half of them. With 0, rows are not valued.
    stratify : bool, default=False
        Whether no class may lose more rows than labels can be wrong in it. Of the rows
        of a class that `drop` selects, at most `label_caps` are dropped, lowest value
        first; no others are dropped instead. The held-out probabilities for this are
        those of the valuer, if it is a `LabelErrorDetector`, or of `estimator` by
        cross-validation. Not with groups, nor for regression.
    fdr : float, default=0.1
        False discovery rate of drop="significant".
    estimator : estimator, default=None
        Model that is cross-validated by drop="auto" and `stratify`; not used with a
        `LabelErrorDetector`, nor otherwise.
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
        Cache of fitted valuers, so that rows are valued once for all settings of
        `drop`.
    n_jobs : int, default=None
        Number of joblib jobs for the splits of drop="auto".

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        Indices of the kept rows, ascending.
    dropped_indices_ : ndarray of shape (n_dropped,)
        Indices of the dropped rows, ascending.
    values_ : ndarray of shape (n_samples,)
        Value of every row; with groups, the value of its group. Not available with
        drop=0.
    report_ : Bunch
        Row, label or target, group, value, weight and reason of the dropped rows,
        lowest value first.
    valuer_ : estimator
        The fitted valuer; not set with drop=0.
    embedding_ : transformer, torch module or callable
        The fitted embedding, if `embedding` is set.
    drop_ : float, int or str
        `drop`, or the fraction that drop="auto" chose or dropped.
    drop_scores_ : ndarray of shape (n_candidates, n_splits)
        Scores of the fractions that drop="auto" evaluated; set only by drop="auto"
        without a `LabelErrorDetector`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during `fit`, if X has any.

    See Also
    --------
    ValueFilteredClassifier : Drop rows inside the last step of scikit-learn's Pipeline.
    ValueFilteredRegressor : The same for regression.

    Notes
    -----
    imbalanced-learn's Pipeline passes X_val and other metadata to a step that drops
    rows only with ``sklearn.set_config(enable_metadata_routing=True)``; otherwise it
    silently ignores them. It never drops entries of the `sample_weight` of later steps:
    use `ValueFilteredClassifier` for weights.

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
    >>> row_filter.report_
    1 row, lowest value first
    row  y    value  weight                                    reason
      2  b  -0.1429       0  rank 1 of 7 values; drop selects the lowest 1
    """

    _parameter_constraints: dict = {
        **BaseValueFilter._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "stratify": ["boolean"],
    }

    def __init__(
        self,
        valuer=None,
        drop: float | str = 0.1,
        *,
        stratify=False,
        fdr=0.1,
        estimator=None,
        scoring=None,
        cv: object = 5,
        embedding: object = None,
        row_metadata: object = (),
        memory=None,
        n_jobs=None,
    ):
        self.valuer = valuer
        self.drop = drop
        self.stratify = stratify
        self.fdr = fdr
        self.estimator = estimator
        self.scoring = scoring
        self.cv = cv
        self.embedding = embedding
        self.row_metadata = row_metadata
        self.memory = memory
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X,
        y,
        *,
        X_val=None,
        y_val=None,
        groups=None,
        sample_weight_val=None,
        **params,
    ):
        """Value the rows and select those to drop.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels or targets of the training rows.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points of the valuer.
        y_val : array-like of shape (n_validation,), default=None
            Labels or targets of the validation points.
        groups : array-like of shape (n_samples,), default=None
            Group of every row. Each group is valued, and kept or dropped, as a whole.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points.
        **params : dict
            Metadata for the valuer's fit, such as `sample_weight` for a valuer that
            trains models. With metadata routing, the valuer gets what it requests.

        Returns
        -------
        self : object
            The fitted filter.

        Raises
        ------
        ValueError
            If no row would be left, drop="significant" is used without X_val,
            drop="auto" is used without an estimator, or the valuer takes no
            sample_weight or raises it.
        """
        if self.drop == "auto" and not gives_probabilities(fresh_valuer(self.valuer)):
            self._check_cross_validated(self.valuer)
        own_params = dict(
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            sample_weight_val=sample_weight_val,
        )
        valuer_params = given(**params)
        if get_config()["enable_metadata_routing"]:
            _, valuer_params = route(self, "fit", valuer_params)
        self._check_takes_weights(valuer_params)

        _, _, attributes = self._choose(X, y, own_params, {}, valuer_params)
        set_fitted_state(self, **attributes)
        return self

    def _check_takes_weights(self, valuer_params):
        if "sample_weight" not in valuer_params:
            return
        valuer = fresh_valuer(self.valuer)
        if not has_fit_parameter(valuer, "sample_weight"):
            raise ParameterError(
                "sample_weight",
                f"needs a valuer whose fit takes it. Got {type(valuer).__name__}.",
            )

    def fit_resample(
        self,
        X,
        y,
        *,
        X_val=None,
        y_val=None,
        groups=None,
        sample_weight_val=None,
        **params,
    ):
        """Fit, and return the kept rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows. A data frame gives a data frame, with its index.
        y : array-like of shape (n_samples,)
            Labels or targets of the training rows.
        X_val, y_val, groups, sample_weight_val : array-likes, default=None
            As in `fit`.
        **params : dict
            As in `fit`.

        Returns
        -------
        X_kept : array-like of shape (n_kept, n_features)
            The kept rows. For other arrays use `sample_indices_`.
        y_kept : array-like of shape (n_kept,)
            Labels or targets of the kept rows.
        """
        X = known_rows(X)
        self.fit(
            X,
            y,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            sample_weight_val=sample_weight_val,
            **params,
        )
        X_kept = safe_indexing(X, self.sample_indices_)
        y_kept = safe_indexing(y, self.sample_indices_)
        return X_kept, y_kept

    def get_metadata_routing(self):
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            The requests of `fit` itself, and of the valuer. Those of `fit_resample`,
            which scikit-learn supports after imbalanced-learn is imported, are the
            same.
        """
        requests = super().get_metadata_routing()
        mapping = MethodMapping().add(caller="fit", callee="fit")
        if hasattr(requests, "fit_resample"):
            for name, alias in requests.fit.requests.items():
                requests.fit_resample.add_request(param=name, alias=alias)
            mapping.add(caller="fit_resample", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(requests)
        return router.add(valuer=fresh_valuer(self.valuer), method_mapping=mapping)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(fresh_valuer(self.valuer)).input_tags
        if self.embedding is not None:
            allow_any_columns(tags)
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags
