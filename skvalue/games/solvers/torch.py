"""Batched solvers by torch, on a CPU or a CUDA device. Importing this imports torch.

Newton steps on all coalitions of a tile at once, with their masks as weights; all Hessians are one
product with the products of pairs of columns. Everything is float64.
"""

import numpy as np
import torch

from ..._utils.torch_device import block_bytes, find_device, undisturbed
from .base import ANSWERS
from .linear import LeastSquaresSolver, RidgeSolver
from .logistic import MAX_STEPS, TOLERANCE, LogisticSolver
from .logistic_kernels import FLAT
from .status import ONE_CLASS, SOLVED, TWO_CLASSES, UNSOLVED

_MAX_TILE = 4096
_SAFE = 1e-7  # smallest pivot of a matrix with a unit diagonal that is inverted
_HALVINGS = 30
_ENOUGH = 1e-4  # share of the expected decrease that a step must bring
_ROUNDING = 1e-12  # of the objective


class TorchSolver:
    """What the solvers share: arrays on the device, tiles that fit, sums of products of columns."""

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.device = find_device(training.device)
        self.name = f"{self.name} (torch, {self.device})"
        (n, p), blocks = self.X.shape, max(self.n_classes, 1) if self.n_classes != 2 else 1
        self.rows, self.columns = np.tril_indices(p)
        self.X_ = self.to(self.X)
        self.weights_, self.penalty_ = self.to(self.weights), self.to(self.penalty)
        # Pairs of columns take half of the room, for all rows or some at a time.
        self.step = int(np.clip(self._room() // (16 * len(self.rows)), 1, n))
        self.pairs = None
        each = 8 * (8 * n * blocks + 4 * (p * blocks) ** 2)
        width = max(self.n_classes, 1) * len(X_val)
        self.tile = int(np.clip(min(ANSWERS // width, self._room() // (2 * each)), 1, _MAX_TILE))

    def _room(self):
        """Bytes for one block."""
        return block_bytes(self.device)

    def to(self, array):
        """A copy on the device, float64."""
        return torch.tensor(np.asarray(array, dtype=np.float64), device=self.device)

    def utilities(self, masks, n_jobs):
        with (
            undisturbed(),
            torch.no_grad(),
        ):  # one tile at a time: torch spreads it over threads by itself
            return super().utilities(masks, 1)

    def grams(self, D):
        """``X' diag(d) X`` for every row d of D, (m, p, p)."""
        n, p = self.X_.shape
        total = 0
        for start in range(0, n, self.step):
            if self.pairs is None or self.step < n:
                X = self.X_[start : start + self.step]
                self.pairs = X[:, self.rows] * X[:, self.columns]
            total = total + D[:, start : start + self.step] @ self.pairs
        out = torch.empty((len(D), p, p), dtype=torch.float64, device=self.device)
        out[:, self.rows, self.columns] = out[:, self.columns, self.rows] = total
        return out


class TorchLogisticSolver(TorchSolver, LogisticSolver):
    """Logistic regression by Newton steps, of two classes or more."""

    has_dual = False

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.flat = FLAT * self.to(self.scale)

    def _solve(self, masks, positive, start):
        first = masks[:, positive].any(axis=1)
        both = first & masks[:, ~positive].any(axis=1)
        coefs = np.where((masks.sum(axis=1) >= len(start))[:, None], start, 0.0)
        status = np.full(len(masks), ONE_CLASS)
        problem = TwoClasses(self, positive)
        coefs[both], solved = minimise(problem, self.to(masks[both]), self.to(coefs[both]))
        status[both] = np.where(solved, SOLVED, UNSOLVED)
        return coefs, status

    def _solve_many(self, masks, counts):
        coefs = np.zeros((len(masks), self.n_classes, self.X.shape[1]))
        present = counts > 0
        n_present = present.sum(axis=1)
        status = np.where(n_present < 2, ONE_CLASS, TWO_CLASSES)
        for seen in np.unique(present[n_present > 2], axis=0):
            some = np.flatnonzero((present == seen).all(axis=1))
            problem = ManyClasses(self, np.flatnonzero(seen))
            found, solved = minimise(
                problem, self.to(masks[some]), self.to(np.zeros((len(some), problem.width)))
            )
            coefs[np.ix_(some, seen)] = found.reshape(len(some), seen.sum(), -1)
            status[some] = np.where(solved, SOLVED, UNSOLVED)
        return coefs, status


class TwoClasses:
    """The penalised log-loss of coalitions; coefficients (m, p)."""

    def __init__(self, solver, positive):
        self.solver, self.X = solver, solver.X_
        self.y, self.penalty = solver.to(positive), solver.penalty_
        self.width, self.flat = self.X.shape[1], solver.flat

    def value(self, coefs, W):
        Z = coefs @ self.X.T
        losses = torch.clamp(Z, min=0) - self.y * Z + torch.log1p(torch.exp(-Z.abs()))
        return (W * losses).sum(1) + (self.penalty * coefs**2).sum(1) / 2

    def derivatives(self, coefs, W):
        S = torch.sigmoid(coefs @ self.X.T)
        gradient = (W * (S - self.y)) @ self.X + self.penalty * coefs
        H = self.solver.grams(W * S * (1 - S))
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty
        # A far-away intercept has no curvature of its own.
        diagonal += 1e-12 * diagonal.amax(dim=1, keepdim=True) + 1e-300
        return gradient, H


class ManyClasses:
    """The penalised cross-entropy of coalitions of the given classes; coefficients (m, k p)."""

    def __init__(self, solver, classes):
        self.solver, self.X = solver, solver.X_
        self.k, p = len(classes), self.X.shape[1]
        self.onehot = solver.to(solver.onehot[:, classes].T)
        self.penalty = solver.penalty_.repeat(self.k)
        self.width, self.flat = self.k * p, solver.flat.repeat(self.k)

    def _margins(self, coefs):
        return coefs.reshape(len(coefs), self.k, self.X.shape[1]) @ self.X.T

    def value(self, coefs, W):
        Z = self._margins(coefs)
        losses = torch.logsumexp(Z, dim=1) - (Z * self.onehot).sum(1)
        return (W * losses).sum(1) + (self.penalty * coefs**2).sum(1) / 2

    def derivatives(self, coefs, W):
        Q = torch.softmax(self._margins(coefs), dim=1)
        gradient = ((W[:, None] * (Q - self.onehot)) @ self.X).flatten(1) + self.penalty * coefs
        k, p = self.k, self.X.shape[1]
        H = torch.empty((len(coefs), k, p, k, p), dtype=torch.float64, device=coefs.device)
        for c in range(k):
            for e in range(c + 1):
                block = self.solver.grams(W * Q[:, c] * (float(c == e) - Q[:, e]))
                H[:, c, :, e] = H[:, e, :, c] = block
        H = H.reshape(len(coefs), k * p, k * p)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty
        top = diagonal.amax(dim=1, keepdim=True)
        diagonal += 1e-12 * top + 1e-300
        # Flat where an intercept of all classes moves together, a way nobody goes.
        for a in np.flatnonzero(self.solver.penalty == 0):
            H[:, a::p, a::p] += top[:, :, None] / k
        return gradient, H


def minimise(problem, masks, coefs):
    """Newton's method with halved steps, on all coalitions until each is done.

    Ends where the Newton decrement and the gradient are as small as the compiled solvers want them.

    Parameters
    ----------
    problem : TwoClasses or ManyClasses
        What is minimised.
    masks : tensor of shape (m, n)
        The coalitions, none empty.
    coefs : tensor of shape (m, width)
        Where to start.

    Returns
    -------
    coefs : ndarray of shape (m, width)
        The minima.
    solved : ndarray of bool of shape (m,)
        Which were found.
    """
    W, sizes = masks * problem.solver.weights_, masks.sum(dim=1)
    solved = torch.zeros(len(coefs), dtype=torch.bool, device=coefs.device)
    active = torch.arange(len(coefs), device=coefs.device)
    for _ in range(MAX_STEPS):
        if not len(active):
            break
        here, some = coefs[active], W[active]
        gradient, H = problem.derivatives(here, some)
        factor, info = torch.linalg.cholesky_ex(H)
        step = torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
        slope = (gradient * step).sum(dim=1)
        usable = (info == 0) & torch.isfinite(slope) & (slope >= 0)
        flat = (gradient.abs() <= problem.flat * sizes[active, None]).all(dim=1)
        done = usable & (slope <= TOLERANCE**2) & flat
        coefs[active[done]] = here[done] - step[done]
        solved[active[done]] = True
        on = usable & ~done  # what is not usable is left to the loop
        active, here, step, slope, some = active[on], here[on], step[on], slope[on], some[on]
        before, t = problem.value(here, some), torch.ones_like(slope)
        waiting = torch.arange(len(active), device=coefs.device)
        for _ in range(_HALVINGS):
            if not len(waiting):
                break
            trial = here[waiting] - t[waiting, None] * step[waiting]
            limit = before[waiting] * (1 + _ROUNDING) - _ENOUGH * t[waiting] * slope[waiting]
            coefs[active[waiting]] = trial
            waiting = waiting[problem.value(trial, some[waiting]) > limit]
            t[waiting] /= 2
    return coefs.cpu().numpy(), solved.cpu().numpy()


class TorchRidgeSolver(TorchSolver, RidgeSolver):
    """Ridge regression in closed form."""

    def prepare(self):
        if self.products is None:
            self.products = self.X_ * self.to(self.y - self.shift)[:, None]
            self.squares = (self.X_**2).sum(dim=1)

    def _closed(self, masks, widest):
        W = self.to(masks) * self.weights_
        H = self.grams(W)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty_
        scale = diagonal.clamp(min=1e-300).rsqrt()  # to a unit diagonal: columns may have any unit
        factor, info = torch.linalg.cholesky_ex(H * scale[:, :, None] * scale[:, None, :])
        right = scale * (W @ self.products)
        coefs = scale * torch.cholesky_solve(right[:, :, None], factor)[:, :, 0]
        inverse = torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2)
        solved = (info == 0) & (inverse.amax(dim=1) < 1 / _SAFE)
        # The product of the two traces is above the condition number.
        traces = (self.penalty_.sum() + W @ self.squares) * (inverse * scale**2).sum(dim=1)
        solved &= traces < widest
        return torch.where(solved[:, None], coefs, 0.0).cpu().numpy(), solved.cpu().numpy()


class TorchLeastSquaresSolver(TorchRidgeSolver, LeastSquaresSolver):
    """Least squares; coalitions of hardly more rows than features are solved on the CPU."""


SOLVERS = [TorchLeastSquaresSolver, TorchLogisticSolver, TorchRidgeSolver]
