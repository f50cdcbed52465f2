"""What the features need of the rows."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import StandardScaler

from ..._utils.sklearn import in_arrays

_NEGLIGIBLE = 1e-10  # of the largest variance


@in_arrays
def standard_components(X, n_components=14, random_state=None):
    """Leading principal components of the standardised columns, each of variance 1.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Finite numbers.
    n_components : int, default=14
        Largest number of components.
    random_state : int, RandomState instance or None, default=None
        For the solvers of `sklearn.decomposition.PCA` that start from random vectors.

    Returns
    -------
    components : ndarray of shape (n_rows, n_components)
        The components by their variance, without those of (almost) no variance.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(5.0)[:, None]
    >>> standard_components(np.hstack([x, 2 * x, 0 * x])).shape
    (5, 1)
    """
    if len(X) < 2:
        return np.zeros((len(X), 0))
    pca = PCA(min(n_components, *X.shape), random_state=random_state)
    scores = pca.fit_transform(StandardScaler().fit_transform(X))
    variances = pca.explained_variance_
    kept = variances > _NEGLIGIBLE * variances.max()
    return scores[:, kept] / np.sqrt(variances[kept])


def ranked_rows(X, y, X_val, y_val, is_regression):
    """Rows by their distance from validation points, and how well their labels match.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, n_columns)
        The rows. Standardise columns first: distances are Euclidean.
    y : ndarray of shape (n,)
        Their classes or targets.
    X_val : ndarray or sparse matrix of shape (V, n_columns)
        The validation points.
    y_val : ndarray of shape (V,)
        Their classes or targets.
    is_regression : bool
        Whether y are targets.

    Returns
    -------
    order : ndarray of int of shape (V, n)
        Rows, the nearest first; ties in the order of the rows.
    matches : ndarray of float of shape (V, n)
        Of the rows in this order: 1 for an equal class, else 0; minus the squared
        difference of targets.

    Examples
    --------
    >>> import numpy as np
    >>> X, X_val = np.array([[0.0], [3.0], [1.0]]), np.array([[0.9]])
    >>> y, y_val = np.array([0, 1, 1]), np.array([1])
    >>> order, matches = ranked_rows(X, y, X_val, y_val, is_regression=False)
    >>> order.tolist(), matches.tolist()
    ([[2, 0, 1]], [[1.0, 0.0, 1.0]])
    """
    distances = euclidean_distances(X_val, X, squared=True)
    order = np.argsort(distances, axis=1, kind="stable")
    labels = np.asarray(y)[order]
    point_labels = np.asarray(y_val)[:, None]
    if is_regression:
        return order, -((labels - point_labels) ** 2)
    return order, (labels == point_labels).astype(np.float64)
