"""Margins of logistic regressions on coalitions of fewer rows than features."""

import numpy as np

_TOLERANCE = 1e-9  # of the gradient, relative to the largest possible gradient of the losses
_MAX_STEPS = 100
_MAX_PRODUCTS = 2**25


class DualMargins:
    """L2 logistic regressions solved in the dual; the intercept is not penalised.

    X and X_val of shapes (n, d) and (V, d) have no constant column; `positive` marks the rows of
    the second class; C is the weight of the sum of losses.
    """

    def __init__(self, X, X_val, positive, C, intercept):
        self.gram, self.gram_val = X @ X.T, X @ X_val.T
        self.t, self.C, self.intercept = positive.astype(np.float64), C, intercept
        self.largest = X.shape[1] // 2  # above that many rows the dual is slower

    @classmethod
    def fits(cls, n, n_val, d):
        """Whether the inner products of rows and validation points fit into memory and help."""
        return d >= 4 and n * (n + n_val) <= _MAX_PRODUCTS

    def margins(self, masks):
        """Margins (m, V) of coalitions of two classes, and the status of each."""
        from .dual_kernels import dual_tile

        margins = np.empty((len(masks), self.gram_val.shape[1]))
        status = np.empty(len(masks), dtype=np.int64)
        dual_tile(
            self.gram, self.gram_val, self.t, masks, np.full(len(masks), self.C), self.intercept,
            _TOLERANCE, _MAX_STEPS, margins, status,
        )  # fmt: skip
        return margins, status
