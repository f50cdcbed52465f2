"""Margins of logistic regressions on coalitions of fewer rows than features."""

import numpy as np

_TOLERANCE = 1e-9  # of the gradient, as a share of what the losses of all rows can make it
_MAX_STEPS = 100
_MAX_PRODUCTS = 2**25


class DualMargins:
    """Logistic regressions with an L2 penalty, solved in the dual; the intercept is free.

    Parameters
    ----------
    X, X_val : ndarrays of shape (n, d) and (V, d)
        Rows and validation points, without a constant column.
    positive : ndarray of bool of shape (n,)
        Rows of the second class.
    C : float
        Weight of the sum of losses.
    intercept : bool
        Whether there is one.
    """

    def __init__(self, X, X_val, positive, C, intercept):
        self.gram, self.gram_val = X @ X.T, X @ X_val.T
        self.t, self.C, self.intercept = positive.astype(np.float64), C, intercept
        self.largest = X.shape[1] // 2  # from there on it is slower

    @classmethod
    def fits(cls, n, n_val, d):
        """Whether the products of rows with rows and validation points are worth their memory."""
        return d >= 4 and n * (n + n_val) <= _MAX_PRODUCTS

    def margins(self, masks):
        """Margins (m, V) of coalitions of two classes, and what became of each."""
        from .dual_kernels import dual_tile

        margins = np.empty((len(masks), self.gram_val.shape[1]))
        status = np.empty(len(masks), dtype=np.int64)
        dual_tile(
            self.gram, self.gram_val, self.t, masks, np.full(len(masks), self.C), self.intercept,
            _TOLERANCE, _MAX_STEPS, margins, status,
        )  # fmt: skip
        return margins, status
