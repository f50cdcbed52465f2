"""Derivatives of trained models by the weights of their rows.

A trained linear model minimises ``sum_i w_i l_i(theta) + R(theta)``. The derivative of
its coefficients by the weight of row i is ``-H^-1 grad l_i``, with the Hessian H of the
objective (Koh and Liang 2017, Section 2.1); the derivative of a utility U is minus its
gradient times that. Any other model is a function of the steps of its training:
`unrolled` goes back through them, runs say what each row adds to the utility in its
steps, and walks what players add that send clipped gradients.
"""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
