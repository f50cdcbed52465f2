"""A model fitted without the rows of low value: what classifier and regressor share."""

from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._utils.fits import swap_in
from .._utils.sklearn import HasMethods, StrOptions, fit_context
from ._base_filter import BaseValueFilter
from ._choice import fit_on_choice
from ._metadata import given, requested, route
from ._valuer import fresh_valuer

_DELEGATED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


class BaseFilteredModel(BaseValueFilter):
    """Base class of models that value their rows before they are fitted."""

    _parameter_constraints: dict = {
        **BaseValueFilter._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"])],
        "mode": [StrOptions({"drop", "weight"})],
    }
    _task = None  # the kind of target

    def __init__(
        self,
        estimator,
        valuer=None,
        drop=0.1,
        *,
        mode="drop",
        fdr=0.1,
        scoring=None,
        cv=5,
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
        self.memory = memory
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None, **params):
        """Value the rows, then fit the estimator on those that are kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points of the valuer; never cut.
        y_val : array-like of shape (n_validation,), default=None
            Their labels or targets.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows: they are valued, and dropped, as wholes.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points.
        **params : dict
            Metadata of the estimator's fit, such as `sample_weight`; an entry for every row is cut
            with the rows. With metadata routing, what the estimator and the valuer request, and
            the estimator has groups or a validation set, too, where it requests them; without it,
            `sample_weight` is not for the valuer.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            If no row would be left, drop="significant" comes without X_val, mode="weight" with an
            estimator that takes no sample_weight, or the valuer or estimator refuses the rows.
        """
        passed = dict(X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=sample_weight_val)
        if self.mode == "weight":
            self._check_weighable()
        of_estimator, of_valuer = route(self, "fit", given(**params))
        of_estimator = {**requested(self.estimator, given(**passed)), **of_estimator}
        X, y, choice, attributes = self._choose(
            X, y, passed, of_estimator, mode=self.mode, task=self._task, of_valuer=of_valuer
        )
        fitted = fit_on_choice(clone(self.estimator), X, y, of_estimator, choice, self.mode)
        swap_in(self, **attributes, estimator_=fitted)
        return self

    def _check_weighable(self):
        routing = get_routing_for_object(self.estimator)
        takes = has_fit_parameter(self.estimator, "sample_weight")
        if not takes and not routing.consumes("fit", ["sample_weight"]):
            raise ValueError(
                "mode='weight' needs an estimator whose fit takes sample_weight. Got "
                f"{type(self.estimator).__name__}."
            )

    def _delegate(self, method, *args, **params):
        check_is_fitted(self)
        of_estimator, _ = route(self, method, given(**params))
        return getattr(self.estimator_, method)(*args, **of_estimator)

    def predict(self, X, **params):
        """Predict with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, none of which is dropped.
        **params : dict
            Metadata of the estimator's predict.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            What the estimator predicts.
        """
        return self._delegate("predict", X, **params)

    def score(self, X, y, **params):
        """Score of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, none of which is dropped.
        y : array-like of shape (n_rows,)
            Their labels or targets.
        **params : dict
            Metadata of the estimator's score, such as `sample_weight`.

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
            What `fit` takes itself, and what is routed to the estimator and the valuer.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for method in _DELEGATED:
            mapping.add(caller=method, callee=method)
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=mapping)
        if self.valuer is not None:
            to_fit = MethodMapping().add(caller="fit", callee="fit")
            router.add(valuer=self.valuer, method_mapping=to_fit)
        return router

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        valuer, estimator = get_tags(fresh_valuer(self.valuer)), get_tags(self.estimator)
        for name in ("sparse", "allow_nan", "categorical", "string"):
            both = getattr(valuer.input_tags, name) and getattr(estimator.input_tags, name)
            setattr(tags.input_tags, name, both)
        tags.input_tags.positive_only = estimator.input_tags.positive_only
        tags.non_deterministic = estimator.non_deterministic
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags
