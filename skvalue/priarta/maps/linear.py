"""Representations and latent maps without a network, and a wrapper of other maps."""

from functools import partial
from numbers import Integral
from types import FunctionType

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_array, check_is_fitted

from ..._utils.checks import redact_errors
from ..._utils.embedding import through_module
from ..._utils.parallel import one_blas_thread
from ..._utils.sklearn import Interval, fit_context
from ..._utils.untrusted import flag, integer, named_arrays, named_fields, refuse
from ._modules import unit_of


class Identity(BaseEstimator):
    """Rows without a map, or standardized; for embeddings and prepared tables.

    Parameters
    ----------
    standardize : bool, default=False
        Whether columns are centred and divided by their standard deviations among the
        buyer's rows.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Mean that is subtracted, and scale by which rows are divided.

    See Also
    --------
    PrincipalComponents : Map to fewer columns.

    Examples
    --------
    >>> Identity(standardize=True).fit([[0.0], [2.0]]).transform([[3.0]])
    array([[2.]])
    """

    _parameter_constraints: dict = {"standardize": ["boolean"]}

    def __init__(self, standardize=False):
        self.standardize = standardize

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Compute means and scales of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The buyer's rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted map.

        Raises
        ------
        ValueError
            If `X` is not a table of finite numbers.
        """
        X = _table(X)
        self.mean_ = np.zeros(X.shape[1])
        self.scale_ = np.ones(X.shape[1])
        if self.standardize:
            unit = unit_of(X, axis=0)
            self.mean_ = unit * (X / unit).mean(axis=0)
            scale = unit * (X / unit).std(axis=0)
            # A nearly constant column must not scale up the rows of sellers.
            is_varying = scale > 1e-6 * np.abs(X).max(axis=0)
            self.scale_ = np.where(is_varying, scale, 1.0)
        return self

    def transform(self, X):
        """Transform rows, with standardization if `standardize` is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Transformed rows, in float64.

        Raises
        ------
        ValueError
            If `X` has another number of columns than in `fit`, or NaN or infinity.
        """
        check_is_fitted(self)
        return (_table(X, len(self.mean_)) - self.mean_) / self.scale_

    def transform_alone(self, X):
        """Transform each row by itself, which `transform` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            As by `transform`.
        """
        return self.transform(X)

    def to_arrays(self):
        """Arrays and configuration to export.

        Returns
        -------
        arrays : dict of str to ndarray
            Means and scales.
        config : dict
            Parameters of the map.
        """
        check_is_fitted(self)
        arrays = {"mean": self.mean_, "scale": self.scale_}
        return arrays, {"standardize": bool(self.standardize)}

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map from untrusted arrays and configuration.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Means and scales.
        config : dict
            Parameters of the map.

        Returns
        -------
        map : Identity
            The fitted map.

        Raises
        ------
        ValueError
            If names, shapes or values are invalid.
        """
        (standardize,) = named_fields(config, "config", standardize=flag)
        arrays = named_arrays(arrays, {"mean": (None,), "scale": (None,)})
        mean = arrays["mean"]
        scale = arrays["scale"]
        if len(mean) != len(scale) or not (scale > 0).all():
            refuse("arrays", "as many scales as means, all above 0", scale)
        identity = cls(standardize)
        identity.mean_ = mean
        identity.scale_ = scale
        return identity


class PrincipalComponents(BaseEstimator):
    """Coordinates along the principal directions of the buyer's rows.

    Parameters
    ----------
    n_components : int, default=8
        Maximum number of directions; it is bounded by the numbers of columns and rows.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the buyer's rows.
    components_ : ndarray of shape (n_components, n_features)
        Principal directions.

    See Also
    --------
    Identity : Map that keeps all columns.

    Examples
    --------
    >>> X = [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    >>> PrincipalComponents(1).fit(X).transform(X).round(3).ravel().tolist()
    [-2.828, 0.0, 2.828]
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_components=8):
        self.n_components = n_components

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Compute the principal directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows; images are flattened.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted map.

        Raises
        ------
        ValueError
            If `X` is not finite.
        """
        X = _table(X)
        pca = PCA(min(self.n_components, *X.shape), svd_solver="full").fit(X)
        self.mean_ = pca.mean_
        self.components_ = pca.components_
        return self

    def transform(self, X):
        """Coordinates of rows along the principal directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_components)
            Transformed rows, in float64.

        Raises
        ------
        ValueError
            If `X` has another number of columns than in `fit`, or NaN or infinity.
        """
        check_is_fitted(self)
        centred = np.ascontiguousarray(_table(X, len(self.mean_)) - self.mean_)
        components = np.ascontiguousarray(self.components_)
        # A product of two vectors for each entry: a product of matrices rounds a row
        # in a way that depends on the number of rows, and the guarantee of a seller
        # needs a row's output to depend on that row alone.
        with one_blas_thread():
            return np.vecdot(centred[:, None, :], components)

    def transform_alone(self, X):
        """Transform each row by itself, which `transform` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_components)
            As by `transform`.
        """
        return self.transform(X)

    def to_arrays(self):
        """Arrays and configuration to export.

        Returns
        -------
        arrays : dict of str to ndarray
            Mean and directions.
        config : dict
            Parameters of the map.
        """
        check_is_fitted(self)
        arrays = {"mean": self.mean_, "components": self.components_}
        return arrays, {"n_components": int(self.n_components)}

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map from untrusted arrays and configuration.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Mean and directions.
        config : dict
            Parameters of the map.

        Returns
        -------
        map : PrincipalComponents
            The fitted map.

        Raises
        ------
        ValueError
            If names, shapes or values are invalid.
        """
        size = partial(integer, lowest=1, highest=2**31)
        (n_components,) = named_fields(config, "config", n_components=size)
        arrays = named_arrays(arrays, {"mean": (None,), "components": (None, None)})
        mean = arrays["mean"]
        components = arrays["components"]
        if components.shape[1] != len(mean) or len(components) > n_components:
            refuse(
                "arrays",
                f"up to {n_components} directions of as many entries as the mean has",
                components.shape,
            )
        pca = cls(n_components)
        pca.mean_ = mean
        pca.components_ = components
        return pca


class FittedMap:
    """Another object as a map, which cannot be exported.

    It is a scikit-learn transformer, a torch module or a callable.
    """

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X):
        """Fit a clone of a transformer to the buyer's rows; others are not changed."""
        self.fitted_ = self.inner
        if hasattr(self.inner, "transform"):
            is_class = isinstance(self.inner, type)
            if hasattr(self.inner, "get_params") and not is_class:
                self.fitted_ = clone(self.inner, safe=False)
            if hasattr(self.fitted_, "fit"):
                self.fitted_.fit(X)
        return self

    def transform(self, X):
        """Output of the object for rows, as a dense array (n_samples, n_dimensions)."""
        if hasattr(self.fitted_, "transform"):
            return _dense(self.fitted_.transform(X))
        if hasattr(self.fitted_, "named_parameters"):
            return through_module(self.fitted_, np.asarray(X), floats=True)
        return _dense(self.fitted_(X))

    @property
    def import_path(self):
        """Import path of a function, or of the class of another object."""
        named = self.inner
        if not isinstance(named, FunctionType):
            named = type(named)
        return f"{named.__module__}.{named.__qualname__}"


def _dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


@redact_errors("X")
def _table(X, n_features=None):
    """Rows as a table of finite float64 numbers; images are flattened."""
    X = check_array(X, dtype=np.float64, allow_nd=True, input_name="X")
    X = X.reshape(len(X), -1)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"X must have {n_features} columns, as the buyer's rows. Got {X.shape[1]}."
        )
    return X
