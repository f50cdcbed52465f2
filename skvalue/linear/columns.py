"""Where the columns of linear models are centred, and by what they are scaled.

A free intercept makes up for any shift of the columns, so that their offset, which
costs digits in every product, is taken off first. Scales are powers of two: dividing by
them rounds nothing.
"""

import numpy as np


def column_centers(X):
    """The median of each column (p,) of an array.

    Not the mean: a few large numbers would move it away from all others, which would
    lose digits.
    """
    return np.median(X, axis=0)


def column_scales(X, penalty=0.0):
    """A power of two (p,) for each column, near its root mean square; 1 if that is 0.

    ``penalty`` (p,), that of a coefficient by the number of rows, counts as a part of
    the mean square: the Hessian of the scaled columns has a diagonal near one.
    """
    squares = np.einsum("ij,ij->j", X, X) / len(X) + penalty
    roots = np.sqrt(np.where(squares > 0, squares, 1.0))
    return np.exp2(np.round(np.log2(roots)))
