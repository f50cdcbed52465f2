"""Base class of the classifier and the regressor fitted without rows of low value."""

from typing import TYPE_CHECKING, Any

from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from .._utils.checks import refuse_pairwise
from .._utils.containers import as_numpy
from .._utils.embedding import embed
from .._utils.fits import set_fitted_state
from .._utils.sklearn import HasMethods, StrOptions, fit_context
from ..exceptions import ParameterError
from ._base_filter import BaseValueFilter, allow_any_columns
from ._choice import fit_on_choice, is_zero
from ._metadata import given, requested, route
from ._valuer import fresh_valuer

_DELEGATED = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
)


class BaseFilteredModel(BaseValueFilter):
    """Base class of models that value the training rows before they are fitted."""

    # Set by `fit`.
    if TYPE_CHECKING:
        dropped_indices_: Any

    _parameter_constraints: dict = {
        **BaseValueFilter._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"])],
        "mode": [StrOptions({"drop", "weight"})],
    }

    def __init__(
        self,
        estimator,
        valuer=None,
        drop: float | str = 0.1,
        *,
        mode="drop",
        fdr=0.1,
        scoring=None,
        cv: object = 5,
        embedding: object = None,
        row_metadata: object = (),
        memory=None,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.valuer = valuer
        self.drop = drop
        self.mode = mode
        self.fdr = fdr
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
        """Value the rows, then fit the estimator on the rows that are kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels or targets of the training rows.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points of the valuer; none of them is dropped.
        y_val : array-like of shape (n_validation,), default=None
            Labels or targets of the validation points.
        groups : array-like of shape (n_samples,), default=None
            Group of every row. Each group is valued, and kept or dropped, as a whole.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points.
        **params : dict
            Metadata for the estimator's fit, such as `sample_weight` or an `eval_set`;
            those with one entry per row, see `row_metadata`, are reduced to the kept
            rows. With metadata routing, the estimator and the valuer get what they
            request, for the estimator also groups or a validation set; without it, the
            valuer does not get `sample_weight`.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            If the estimator is not of the task, no row would be left,
            drop="significant" is used without X_val, mode="weight" is used with an
            estimator that takes no sample_weight, or the valuer or the estimator raises
            it.
        """
        own_params = dict(
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            sample_weight_val=sample_weight_val,
        )
        self._check_task()
        if self.mode == "weight":
            self._check_takes_weights()
        elif not is_zero(self.drop):
            refuse_pairwise(self.estimator)

        estimator_params = given(**params)
        valuer_params = {}
        if get_config()["enable_metadata_routing"]:
            estimator_params, valuer_params = route(self, "fit", estimator_params)
            shared_params = requested(self.estimator, given(**own_params))
            estimator_params = {**shared_params, **estimator_params}

        data, choice, attributes = self._choose(
            X, y, own_params, estimator_params, valuer_params
        )
        fitted = fit_on_choice(clone(self.estimator), data, choice, self.mode)
        set_fitted_state(self, **attributes, estimator_=fitted)
        return self

    def _check_task(self):
        name = type(self.estimator).__name__
        if self._task == "classification" and is_regressor(self.estimator):
            raise ParameterError(
                "estimator",
                "must be a classifier: use ValueFilteredRegressor for this "
                f"one. Got {name}.",
            )
        if self._task == "regression" and is_classifier(self.estimator):
            raise ParameterError(
                "estimator",
                "must be a regressor: use ValueFilteredClassifier for this "
                f"one. Got {name}.",
            )

    def _check_takes_weights(self):
        routing = get_routing_for_object(self.estimator)
        takes_weights = has_fit_parameter(
            self.estimator, "sample_weight"
        ) or routing.consumes("fit", ["sample_weight"])
        if not takes_weights:
            raise ValueError(
                "mode='weight' needs an estimator whose fit takes sample_weight. Got "
                f"{type(self.estimator).__name__}."
            )

    def _delegate(self, method, X, *args, **params):
        check_is_fitted(self)
        # That of the fit, whatever the parameter is now.
        embedding = getattr(self, "embedding_", None)
        if embedding is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
            X = embed(embedding, X)
        # The estimator was fitted on arrays of numpy.
        X = as_numpy(X)
        args = [as_numpy(entry) for entry in args]
        params = {name: as_numpy(value) for name, value in params.items()}
        params = given(**params)
        if get_config()["enable_metadata_routing"]:
            params, _ = route(self, method, params)
        return getattr(self.estimator_, method)(X, *args, **params)

    def predict(self, X, **params):
        """Predict with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict; none of them is dropped.
        **params : dict
            Metadata for the estimator's predict.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Predictions of the estimator.
        """
        return self._delegate("predict", X, **params)

    def score(self, X, y, **params):
        """Score of the fitted estimator on rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict; none of them is dropped.
        y : array-like of shape (n_rows,)
            Labels or targets of the rows.
        **params : dict
            Metadata for the estimator's score, such as `sample_weight`.

        Returns
        -------
        score : float
            Accuracy for most classifiers, R2 for most regressors.
        """
        return self._delegate("score", X, y, **params)

    def get_metadata_routing(self):
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            The requests of `fit` itself, and of the estimator and the valuer.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for method in _DELEGATED:
            mapping.add(caller=method, callee=method)
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=mapping)
        if self.valuer is not None:
            mapping_of_valuer = MethodMapping().add(caller="fit", callee="fit")
            router.add(valuer=self.valuer, method_mapping=mapping_of_valuer)
        return router

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        valuer_tags = get_tags(fresh_valuer(self.valuer)).input_tags
        estimator_tags = get_tags(self.estimator)
        for name in ("sparse", "allow_nan", "categorical", "string"):
            by_valuer = getattr(valuer_tags, name)
            by_estimator = getattr(estimator_tags.input_tags, name)
            setattr(tags.input_tags, name, by_valuer and by_estimator)
        if self.embedding is not None:
            allow_any_columns(tags)
        tags.input_tags.positive_only = estimator_tags.input_tags.positive_only
        tags.non_deterministic = estimator_tags.non_deterministic
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags
