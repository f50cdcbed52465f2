"""Batched solvers by torch, on a CPU or a CUDA device. Importing this imports torch.

Newton steps on all coalitions of a tile at once, with masks as weights; all Hessians
are one matrix product with the products of pairs of columns. All arrays are float64.
"""

import numpy as np
import torch

from ..._utils.torch_device import block_bytes, default_settings, find_device
from ...linear import ONE_CLASS, SOLVED, UNSOLVED
from ...linear.logistic_kernels import FLAT
from .base import ANSWERS
from .linear import LeastSquaresSolver, RidgeSolver
from .logistic import MAX_STEPS, TOLERANCE, LogisticSolver

_MAX_TILE = 4096
_SAFE = 1e-7  # smallest pivot of a matrix with a unit diagonal that is inverted
_HALVINGS = 30
_ENOUGH = 1e-4  # least fraction of the expected decrease for a step
_ROUNDING = 1e-12  # relative, of the objective


class TorchEngine:
    """Base of the engines: arrays on the device, size of tiles, sums of products of
    columns."""

    def __init__(self, solver):
        self.device = find_device(solver.training.device)
        solver.name = f"{solver.name} (torch, {self.device})"
        solver.in_threads = False  # torch itself uses several threads per tile
        n_classes, (n, p), memory = (
            solver.n_classes,
            solver.X.shape,
            block_bytes(self.device),
        )
        blocks = max(n_classes, 1) if n_classes != 2 else 1
        self.rows, self.columns = np.tril_indices(p)
        self.X = self.to(solver.X)
        self.weights, self.penalty = self.to(solver.weights), self.to(solver.penalty)
        # Products of columns take half of the memory, for all rows or some at a time.
        self.step = int(np.clip(memory // (16 * len(self.rows)), 1, n))
        self.pairs = None
        each = 8 * (8 * n * blocks + 4 * (p * blocks) ** 2)
        width = max(n_classes, 1) * len(solver.X_val)
        fitting = min(ANSWERS // width, memory // (2 * each))
        solver.tile = int(np.clip(fitting, 1, _MAX_TILE))

    def to(self, array):
        """A copy on the device, float64."""
        return torch.tensor(np.asarray(array, dtype=np.float64), device=self.device)

    def grams(self, D):
        """``X' diag(d) X`` for every row d of D, (m, p, p)."""
        n, p = self.X.shape
        total = 0
        for start in range(0, n, self.step):
            if self.pairs is None or self.step < n:
                X = self.X[start : start + self.step]
                self.pairs = X[:, self.rows] * X[:, self.columns]
            total = total + D[:, start : start + self.step] @ self.pairs
        out = torch.empty((len(D), p, p), dtype=torch.float64, device=self.device)
        out[:, self.rows, self.columns] = out[:, self.columns, self.rows] = total
        return out


class TorchNewton(TorchEngine):
    """Newton's method for logistic regression of two or more classes."""

    def __init__(self, solver):
        super().__init__(solver)
        self.solver, self.unpenalised = solver, np.flatnonzero(solver.penalty == 0)
        self.flat, self.onehot = FLAT * self.to(solver.scale), self.to(solver.onehot.T)

    @default_settings()
    @torch.no_grad()
    def solve(self, masks, counts):
        """Coefficients (m, K, p) of coalitions, and their status; see
        `LogisticSolver`."""
        n_vectors, start = self.solver.n_vectors, self.solver.start
        coefs = np.zeros((len(masks), n_vectors, len(start)))
        status = np.full(len(masks), ONE_CLASS)
        present, large = counts > 0, masks.sum(axis=1) >= len(start)
        for seen in np.unique(present[present.sum(axis=1) > 1], axis=0):
            some = np.flatnonzero((present == seen).all(axis=1))
            classes = np.flatnonzero(seen)
            problem = Classes(self, self.onehot[classes])
            starts = np.where(large[some, None], np.tile(start, problem.k), 0.0)
            found, solved = minimise(problem, self.to(masks[some]), self.to(starts))
            rows = classes[problem.first :] - (len(seen) == 2)
            coefs[np.ix_(some, rows)] = found.reshape(len(some), problem.k, -1)
            status[some] = np.where(solved, SOLVED, UNSOLVED)
        return coefs, status


class Classes:
    """The penalised cross-entropy of coalitions of the given classes; coefficients (m,
    k p).

    The first of two classes has no coefficients: its margins are 0.
    """

    def __init__(self, engine, onehot):
        self.engine, self.X, self.onehot = engine, engine.X, onehot
        self.first = int(len(onehot) == 2)
        self.k = len(onehot) - self.first
        self.penalty, self.flat = (
            engine.penalty.repeat(self.k),
            engine.flat.repeat(self.k),
        )

    def _margins(self, coefs):
        Z = coefs.reshape(len(coefs), self.k, self.X.shape[1]) @ self.X.T
        return torch.nn.functional.pad(Z, (0, 0, self.first, 0))

    def value(self, coefs, W):
        Z = self._margins(coefs)
        losses = torch.logsumexp(Z, dim=1) - (Z * self.onehot).sum(1)
        return (W * losses).sum(1) + (self.penalty * coefs**2).sum(1) / 2

    def derivatives(self, coefs, W):
        Q = torch.softmax(self._margins(coefs), dim=1)
        residuals = W[:, None] * (Q - self.onehot)[:, self.first :]
        gradient = (residuals @ self.X).flatten(1) + self.penalty * coefs
        (k, p), Q = (self.k, self.X.shape[1]), Q[:, self.first :]
        H = torch.empty(
            (len(coefs), k, p, k, p), dtype=torch.float64, device=coefs.device
        )
        for c in range(k):
            for e in range(c + 1):
                block = self.engine.grams(W * Q[:, c] * (float(c == e) - Q[:, e]))
                H[:, c, :, e] = H[:, e, :, c] = block
        H = H.reshape(len(coefs), k * p, k * p)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty
        top = diagonal.amax(dim=1, keepdim=True)
        diagonal += 1e-12 * top + 1e-300  # the curvature of a large intercept vanishes
        # Constant along shifts of the intercepts of all classes, which no step makes.
        for a in self.engine.unpenalised if k > 1 else ():
            H[:, a::p, a::p] += top[:, :, None] / k
        return gradient, H


def minimise(problem, masks, coefs):
    """Newton's method with step halving for nonempty coalitions, starting from `coefs`.

    Returns the minima (m, k p) and a mask of those that converged, by the tolerances of
    the compiled solvers.
    """
    W, sizes = masks * problem.engine.weights, masks.sum(dim=1)
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
        on = usable & ~done  # the loop solves those that are not usable
        active, here, step, slope, some = (
            active[on],
            here[on],
            step[on],
            slope[on],
            some[on],
        )
        before, t = problem.value(here, some), torch.ones_like(slope)
        waiting = torch.arange(len(active), device=coefs.device)
        for _ in range(_HALVINGS):
            if not len(waiting):
                break
            trial = here[waiting] - t[waiting, None] * step[waiting]
            limit = (
                before[waiting] * (1 + _ROUNDING)
                - _ENOUGH * t[waiting] * slope[waiting]
            )
            coefs[active[waiting]] = trial
            waiting = waiting[problem.value(trial, some[waiting]) > limit]
            t[waiting] /= 2
    return coefs.cpu().numpy(), solved.cpu().numpy()


class TorchForm(TorchEngine):
    """Coefficients of least squares in closed form."""

    def __init__(self, solver):
        super().__init__(solver)
        self.y, self.products = self.to(solver.y - solver.shift), None

    @default_settings()
    @torch.no_grad()
    def prepare(self):
        """Precompute, once, the products that all coalitions use."""
        if self.products is None:
            self.products = self.X * self.y[:, None]
            self.squares = (self.X**2).sum(dim=1)

    @default_settings()
    @torch.no_grad()
    def coefs(self, masks, widest):
        """Coefficients (m, p), and a mask of those that were computed."""
        W = self.to(masks) * self.weights
        H = self.grams(W)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty
        scale = diagonal.clamp(
            min=1e-300
        ).rsqrt()  # to a unit diagonal, for columns of any unit
        factor, info = torch.linalg.cholesky_ex(
            H * scale[:, :, None] * scale[:, None, :]
        )
        right = scale * (W @ self.products)
        coefs = scale * torch.cholesky_solve(right[:, :, None], factor)[:, :, 0]
        inverse = torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2)
        solved = (info == 0) & (inverse.amax(dim=1) < 1 / _SAFE)
        # The product of the two traces bounds the condition number.
        traces = (self.penalty.sum() + W @ self.squares) * (inverse * scale**2).sum(
            dim=1
        )
        solved &= traces < widest
        return torch.where(
            solved[:, None], coefs, 0.0
        ).cpu().numpy(), solved.cpu().numpy()


ENGINES = {
    LeastSquaresSolver: TorchForm,
    LogisticSolver: TorchNewton,
    RidgeSolver: TorchForm,
}
