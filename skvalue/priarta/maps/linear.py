"""Representations and latent maps without a network, and whatever else a user hands over."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_array, check_is_fitted

from ..._utils.embedding import through_module
from ..._utils.sklearn import Interval, fit_context
from ._modules import unit_of

__all__ = ["Identity", "PrincipalComponents"]


class Identity(BaseEstimator):
    """Rows as they are; for embeddings and tables that were prepared beforehand.

    Parameters
    ----------
    standardize : bool, default=False
        Whether columns are centred and divided by their standard deviations among the buyer's rows.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        What is subtracted and divided by.

    See Also
    --------
    PrincipalComponents : Fewer columns.

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
        """Learn means and scales of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The buyer's rows.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted map.

        Raises
        ------
        ValueError
            If X is no table of finite numbers.
        """
        X = _table(X)
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            unit = unit_of(X, axis=0)
            self.mean_, scale = unit * (X / unit).mean(axis=0), unit * (X / unit).std(axis=0)
            # A column that hardly varies here must not blow up somebody else's rows.
            self.scale_ = np.where(scale > 1e-6 * np.abs(X).max(axis=0), scale, 1.0)
        return self

    def transform(self, X):
        """Standardize rows, if asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Float64 numbers.

        Raises
        ------
        ValueError
            If X has another number of columns, or NaN or infinity.
        """
        check_is_fitted(self)
        return (_table(X, len(self.mean_)) - self.mean_) / self.scale_

    def to_arrays(self):
        """Weights and configuration, see `ExportableMap`.

        Returns
        -------
        arrays : dict of str to ndarray
            Means and scales.
        config : dict
            The parameters.
        """
        check_is_fitted(self)
        return {"mean": self.mean_, "scale": self.scale_}, {"standardize": bool(self.standardize)}

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map from `to_arrays`, of an untrusted folder.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Means and scales.
        config : dict
            The parameters.

        Returns
        -------
        map : Identity
            Ready to transform.

        Raises
        ------
        ValueError
            If names, shapes or values do not fit together.
        """
        standardize = config.get("standardize")
        if set(config) != {"standardize"} or not isinstance(standardize, bool):
            raise ValueError(f"config must hold 'standardize', a bool. Got {config!r}.")
        made = cls(standardize)
        made.mean_, made.scale_ = _weights(arrays, ("mean", "scale"), ((None,), (None,)))
        if len(made.mean_) != len(made.scale_) or not (made.scale_ > 0).all():
            raise ValueError("arrays must hold as many scales as means, all above 0.")
        return made


class PrincipalComponents(BaseEstimator):
    """Coordinates along the principal directions of the buyer's rows.

    Parameters
    ----------
    n_components : int, default=8
        How many directions, at most; fewer columns or rows allow fewer.
    whiten : bool, default=False
        Whether each coordinate is divided by its standard deviation among the buyer's rows.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The buyer's mean.
    components_ : ndarray of shape (n_components, n_features)
        Directions, divided by standard deviations if `whiten`.

    See Also
    --------
    Identity : All columns.

    Examples
    --------
    >>> X = [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    >>> PrincipalComponents(1).fit(X).transform(X).round(3).ravel().tolist()
    [-2.828, 0.0, 2.828]
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "whiten": ["boolean"],
    }

    def __init__(self, n_components=8, *, whiten=False):
        self.n_components = n_components
        self.whiten = whiten

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows; images are flattened.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted map.

        Raises
        ------
        ValueError
            If X holds no finite numbers.
        """
        X = _table(X)
        pca = PCA(min(self.n_components, *X.shape), svd_solver="full").fit(X)
        scale = np.sqrt(pca.explained_variance_)
        safe = np.where(scale > 1e-9 * scale.max(initial=0.0), scale, np.inf)
        self.mean_ = pca.mean_
        self.components_ = pca.components_ / (safe[:, None] if self.whiten else 1.0)
        return self

    def transform(self, X):
        """Coordinates of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_components)
            Float64 numbers.

        Raises
        ------
        ValueError
            If X has another number of columns, or NaN or infinity.
        """
        check_is_fitted(self)
        return (_table(X, len(self.mean_)) - self.mean_) @ self.components_.T

    def to_arrays(self):
        """Weights and configuration, see `ExportableMap`.

        Returns
        -------
        arrays : dict of str to ndarray
            Mean and directions.
        config : dict
            The parameters.
        """
        check_is_fitted(self)
        config = {"n_components": int(self.n_components), "whiten": bool(self.whiten)}
        return {"mean": self.mean_, "components": self.components_}, config

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map from `to_arrays`, of an untrusted folder.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Mean and directions.
        config : dict
            The parameters.

        Returns
        -------
        map : PrincipalComponents
            Ready to transform.

        Raises
        ------
        ValueError
            If names, shapes or values do not fit together.
        """
        n, whiten = config.get("n_components"), config.get("whiten")
        whole = isinstance(n, int) and not isinstance(n, bool) and n >= 1
        if set(config) != {"n_components", "whiten"} or not whole or not isinstance(whiten, bool):
            raise ValueError(
                f"config must hold 'n_components', an int, and 'whiten', a bool. Got {config!r}."
            )
        made = cls(n, whiten=whiten)
        made.mean_, made.components_ = _weights(
            arrays, ("mean", "components"), ((None,), (None, None))
        )
        if made.components_.shape[1] != len(made.mean_) or len(made.components_) > n:
            raise ValueError("arrays must hold directions of as many entries as the mean has.")
        return made


class FittedMap:
    """A scikit-learn transformer, torch module or callable as a representation; not exportable.

    Parameters
    ----------
    inner : object
        What maps rows to numbers.
    """

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X):
        """Fit a transformer; leave a module or function as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows.

        Returns
        -------
        self : object
            The fitted map.
        """
        if hasattr(self.inner, "transform"):
            self.fitted_ = (
                clone(self.inner, safe=False) if _is_estimator(self.inner) else self.inner
            )
            if hasattr(self.fitted_, "fit"):
                self.fitted_.fit(X)
        else:
            self.fitted_ = self.inner
        return self

    def transform(self, X):
        """Rows of numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            What the inner object makes of them.
        """
        if hasattr(self.fitted_, "transform"):
            return _dense(self.fitted_.transform(X))
        if hasattr(self.fitted_, "named_parameters"):
            return through_module(self.fitted_, np.asarray(X), floats=True)
        return _dense(self.fitted_(X))

    @property
    def described(self):
        """What the map is, in words."""
        inner = self.inner
        kind = type(inner) if not isinstance(inner, type(_dense)) else inner
        return f"{kind.__module__}.{kind.__qualname__}"


def _is_estimator(thing):
    return hasattr(thing, "get_params") and not isinstance(thing, type)


def _dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def _table(X, n_features=None):
    """Rows as a table of finite float64 numbers; images are flattened."""
    X = check_array(X, dtype=np.float64, allow_nd=True, input_name="X")
    X = X.reshape(len(X), -1)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"X must have {n_features} columns, as the buyer's rows. Got {X.shape[1]}."
        )
    return X


def _weights(arrays, names, shapes):
    """Named float64 arrays, checked."""
    if set(arrays) != set(names):
        raise ValueError(f"arrays must be {sorted(names)}. Got {sorted(arrays)}.")
    made = []
    for name, shape in zip(names, shapes):
        array = np.asarray(arrays[name])
        if array.ndim != len(shape) or array.dtype != np.float64 or array.size == 0:
            raise ValueError(f"{name} must be a float64 array of {len(shape)} axes.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers. Got NaN or infinity.")
        made.append(array)
    return made
