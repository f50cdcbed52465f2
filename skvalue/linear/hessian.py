"""Solutions of linear systems with the Hessian of a linear model."""

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from sklearn import get_config

from .._utils.parallel import tiles
from .losses import SOFTMAX

_BLOCK = 2**21  # numbers in a block of rows
_SINGULAR = 1e-7  # smallest pivot of a regular matrix, relative to the largest


class Hessian:
    """The Hessian of the objective of a linear model, factorised or as a product.

    Parameters
    ----------
    model : LinearModel
        The objective.
    less_weight : float, default=0.0
        Weight by which the penalty per weight is reduced: that of a row that is
        removed.

    Attributes
    ----------
    solver : {"cholesky", "cg"}
        "cholesky" stores the matrix, 8 (K p)^2 bytes for p coefficients of K decisions,
        and needs about n (K p)^2 / 2 + (K p)^3 / 3 operations. If that does not fit
        into scikit-learn's `working_memory`, "cg" solves by conjugate gradients with
        products of the Hessian, and stores 8 (n K + 4 K p) bytes besides the rows.

    Raises
    ------
    ValueError
        If the objective has no unique minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import Hessian, linear_model
    >>> X, y = np.array([[1.0], [1.0]]), np.array([0.0, 1.0])
    >>> model = linear_model(Ridge(alpha=2.0, fit_intercept=False).fit(X, y), X, y)
    >>> Hessian(model).solve(np.ones((1, 1, 1))).round(9).tolist()
    [[[0.125]]]
    """

    def __init__(self, model, less_weight=0.0):
        self.model = model
        p, k = model.theta.shape
        is_small = 8 * (k * p) ** 2 <= get_config()["working_memory"] * 2**20
        self.solver = "cholesky" if is_small else "cg"
        weight = model.weights.sum() - less_weight
        self._penalty = model.penalty + weight * model.row_penalty

        # Columns may have any unit: the matrix is scaled to a diagonal near one. A
        # column has one scale in all decisions, so that directions along which all of
        # them shift stay such directions.
        diagonal = self._diagonal().mean(axis=0)
        self._scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        self._factor = self._factorise() if is_small else None

    def _factorise(self):
        """Cholesky factor of the matrix, in the form of `cho_factor`."""
        scale = self._scale
        matrix = self._matrix() * scale[:, None, None] * scale
        n_coefs = self.model.theta.size
        try:
            factor, lower = cho_factor(
                matrix.reshape(n_coefs, n_coefs), lower=True, overwrite_a=True
            )
            pivots = np.abs(np.diag(factor))
            is_singular = pivots.min() < _SINGULAR * pivots.max()
        except LinAlgError:
            is_singular = True
        if is_singular:
            raise ValueError(
                "estimator must have a unique optimum: its Hessian is singular. Pass "
                "one with a penalty, or fewer columns. Got "
                f"{self.model.estimator!r}."
            )
        return factor, lower

    def _diagonal(self):
        """The diagonal of the Hessian, (K, p)."""
        model = self.model
        p, k = model.theta.shape
        diagonal = np.tile(self._penalty, (k, 1))
        for block in tiles(len(model.y), max(1, _BLOCK // (p + k * k))):
            X = model.X[block]
            squares = X.power(2) if sparse.issparse(X) else X**2
            curvature = model.curvature(block)
            diagonal += (squares.T @ np.einsum("naa->na", curvature)).T
        return diagonal

    def _matrix(self):
        """The matrix of the Hessian, (K, p, K, p)."""
        model = self.model
        p, k = model.theta.shape
        matrix = np.zeros((k, p, k, p))
        for block in tiles(len(model.y), max(1, _BLOCK // (p + k * k))):
            X = model.X[block]
            curvature = model.curvature(block)
            for a in range(k):
                for b in range(a, k):
                    product = (X * curvature[:, a, b, None]).T @ X
                    if sparse.issparse(product):
                        product = product.toarray()
                    matrix[a, :, b] += product
                    if a != b:
                        matrix[b, :, a] += product

        diagonal = np.arange(p)
        for a in range(k):
            matrix[a, diagonal, a, diagonal] += self._penalty

        if model.loss is SOFTMAX:
            # The same shift of all decisions changes no probability. Gradients have no
            # component along it, so a term along it makes the matrix regular and
            # changes no solution.
            mean_diagonal = np.einsum("ajaj->j", matrix) / k
            matrix[:, diagonal, :, diagonal] += mean_diagonal[:, None, None]
        return matrix

    def product(self, vectors):
        """Products of the Hessian with vectors.

        Parameters
        ----------
        vectors : ndarray of shape (m, K, p)
            The vectors.

        Returns
        -------
        products : ndarray of shape (m, K, p)
            The products.
        """
        model = self.model
        products = vectors * self._penalty
        for block in tiles(len(model.y), max(1, _BLOCK // model.theta.size)):
            X = model.X[block]
            curvature = model.curvature(block)
            for vector, product in zip(vectors, products):
                changes = np.einsum("nab,nb->na", curvature, X @ vector.T)
                product += (X.T @ changes).T
        return products

    def solve(self, vectors):
        """Solutions of linear systems.

        Parameters
        ----------
        vectors : ndarray of shape (m, K, p)
            Right-hand sides: gradients.

        Returns
        -------
        solutions : ndarray of shape (m, K, p)
            The inverse of the Hessian times each of them.

        Raises
        ------
        ValueError
            If conjugate gradients do not converge.
        """
        shape = vectors.shape[1:]
        flat = (vectors * self._scale).reshape(len(vectors), -1)
        if self._factor is not None:
            solutions = cho_solve(self._factor, flat.T).T
            return solutions.reshape(vectors.shape) * self._scale

        if self.model.loss is SOFTMAX:
            # Rounding errors along shifts of all decisions have no solution.
            free = self._penalty == 0
            centered = flat.reshape(vectors.shape).copy()
            centered[:, :, free] -= centered[:, :, free].mean(axis=1, keepdims=True)
            flat = centered.reshape(flat.shape)
        n_coefs = flat.shape[1]

        def multiply(vector):
            product = self.product(vector.reshape(1, *shape) * self._scale)
            return (product * self._scale).ravel()

        operator = LinearOperator((n_coefs, n_coefs), multiply, dtype=np.float64)
        solutions = []
        for vector in flat:
            solution, status = cg(operator, vector, rtol=1e-10, maxiter=10 * n_coefs)
            if status:
                raise ValueError(
                    "estimator must be better conditioned for conjugate gradients, "
                    "which did not converge: scale the columns, or use a larger "
                    f"penalty. Got {self.model.estimator!r}."
                )
            solutions.append(solution)
        return np.array(solutions).reshape(vectors.shape) * self._scale
