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

# A step is halved until the objective falls by this fraction of what is expected.
_MAX_HALVINGS = 30
_MIN_DECREASE = 1e-4
_ROUNDING = 1e-12  # relative, of the objective


class TorchEngine:
    """Base of the engines: arrays on the device, tiles, sums of products of columns."""

    def __init__(self, solver):
        self.device = find_device(solver.training.device)
        solver.name = f"{solver.name} (torch, {self.device})"
        solver.in_threads = False  # torch itself uses several threads per tile
        self.X = self.to(solver.X)
        self.weights = self.to(solver.weights)
        self.penalty = self.to(solver.penalty)

        # Products of columns take half of the memory, for all rows or some at a time.
        n, p = solver.X.shape
        memory = block_bytes(self.device)
        self.rows, self.columns = np.tril_indices(p)
        self.block_size = int(np.clip(memory // (16 * len(self.rows)), 1, n))
        self.pairs = None

        # The other half is for the rows and Hessians of a tile of coalitions.
        n_vectors = max(solver.n_classes, 1) if solver.n_classes != 2 else 1
        coalition_bytes = 8 * (8 * n * n_vectors + 4 * (p * n_vectors) ** 2)
        n_answers = max(solver.n_classes, 1) * len(solver.X_val)
        size = min(ANSWERS // n_answers, memory // (2 * coalition_bytes))
        solver.tile = int(np.clip(size, 1, _MAX_TILE))

    def to(self, array):
        """A copy on the device, float64."""
        return torch.tensor(np.asarray(array, dtype=np.float64), device=self.device)

    def grams(self, D):
        """``X' diag(d) X`` for every row d of D (m, n), (m, p, p)."""
        n, p = self.X.shape
        sums = 0
        for start in range(0, n, self.block_size):
            block = slice(start, start + self.block_size)
            if self.pairs is None or self.block_size < n:
                X = self.X[block]
                self.pairs = X[:, self.rows] * X[:, self.columns]
            sums = sums + D[:, block] @ self.pairs
        grams = torch.empty((len(D), p, p), dtype=torch.float64, device=self.device)
        grams[:, self.rows, self.columns] = sums
        grams[:, self.columns, self.rows] = sums
        return grams


class TorchNewton(TorchEngine):
    """Newton's method for logistic regression of two or more classes."""

    def __init__(self, solver):
        super().__init__(solver)
        self.solver = solver
        self.unpenalised = np.flatnonzero(solver.penalty == 0)
        self.flat = FLAT * self.to(solver.scale)
        self.onehot = self.to(solver.onehot.T)

    @default_settings()
    @torch.no_grad()
    def solve(self, masks, counts):
        """Coefficients (m, K, p) of coalitions, and their status (m,).

        See `LogisticSolver`.
        """
        start = self.solver.start
        coefs = np.zeros((len(masks), self.solver.n_vectors, len(start)))
        status = np.full(len(masks), ONE_CLASS)
        is_present = counts > 0
        is_large = masks.sum(axis=1) >= len(start)

        # Coalitions of the same classes have coefficients of the same shape.
        has_model = is_present.sum(axis=1) > 1
        for is_in_problem in np.unique(is_present[has_model], axis=0):
            places = np.flatnonzero((is_present == is_in_problem).all(axis=1))
            classes = np.flatnonzero(is_in_problem)
            problem = Classes(self, self.onehot[classes])
            starts = np.where(is_large[places, None], np.tile(start, problem.k), 0.0)
            minima, solved = minimise(problem, self.to(masks[places]), self.to(starts))

            # Of two classes in all, the only vector of coefficients is that of class 1.
            vectors = classes[problem.first :] - (len(is_in_problem) == 2)
            coefs[np.ix_(places, vectors)] = minima.reshape(len(places), problem.k, -1)
            status[places] = np.where(solved, SOLVED, UNSOLVED)
        return coefs, status


class Classes:
    """Penalised cross-entropy of coalitions of given classes; coefficients (m, k p).

    The first of two classes has no coefficients: its margins are 0.
    """

    def __init__(self, engine, onehot):
        self.engine = engine
        self.X = engine.X
        self.onehot = onehot
        self.first = int(len(onehot) == 2)
        self.k = len(onehot) - self.first
        self.penalty = engine.penalty.repeat(self.k)
        self.flat = engine.flat.repeat(self.k)

    def _margins(self, coefs):
        Z = coefs.reshape(len(coefs), self.k, self.X.shape[1]) @ self.X.T
        return torch.nn.functional.pad(Z, (0, 0, self.first, 0))

    def value(self, coefs, W):
        """The objective (m,) at coefficients (m, k p), for weights W (m, n) of rows."""
        Z = self._margins(coefs)
        losses = torch.logsumexp(Z, dim=1) - (Z * self.onehot).sum(1)
        return (W * losses).sum(1) + (self.penalty * coefs**2).sum(1) / 2

    def derivatives(self, coefs, W):
        """Its gradient (m, k p) and Hessian (m, k p, k p)."""
        k = self.k
        m = len(coefs)
        p = self.X.shape[1]
        Q = torch.softmax(self._margins(coefs), dim=1)
        residuals = W[:, None] * (Q - self.onehot)[:, self.first :]
        gradient = (residuals @ self.X).flatten(1) + self.penalty * coefs

        Q = Q[:, self.first :]
        H = torch.empty((m, k, p, k, p), dtype=torch.float64, device=coefs.device)
        for c in range(k):
            for e in range(c + 1):
                block = self.engine.grams(W * Q[:, c] * (float(c == e) - Q[:, e]))
                H[:, c, :, e] = block
                H[:, e, :, c] = block
        H = H.reshape(m, k * p, k * p)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty

        # So that it can be inverted: the curvature of a large intercept vanishes, and
        # no step shifts the intercepts of all classes by the same amount.
        largest = diagonal.amax(dim=1, keepdim=True)
        diagonal += 1e-12 * largest + 1e-300
        if k > 1:
            for a in self.engine.unpenalised:
                H[:, a::p, a::p] += largest[:, :, None] / k
        return gradient, H


def minimise(problem, masks, coefs):
    """Newton's method with step halving for nonempty coalitions, from `coefs`.

    Returns the minima (m, k p) and a mask of those that converged, by the tolerances of
    the compiled solvers.
    """
    W = masks * problem.engine.weights
    sizes = masks.sum(dim=1)
    solved = torch.zeros(len(coefs), dtype=torch.bool, device=coefs.device)
    active = torch.arange(len(coefs), device=coefs.device)
    for _ in range(MAX_STEPS):
        if not len(active):
            break
        current = coefs[active]
        weights = W[active]
        gradient, H = problem.derivatives(current, weights)
        factor, info = torch.linalg.cholesky_ex(H)
        step = torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
        slope = (gradient * step).sum(dim=1)

        # The loop over fits solves those that are not usable.
        usable = (info == 0) & torch.isfinite(slope) & (slope >= 0)
        limit = problem.flat * sizes[active, None]
        is_flat = (gradient.abs() <= limit).all(dim=1)
        done = usable & (slope <= TOLERANCE**2) & is_flat
        coefs[active[done]] = current[done] - step[done]
        solved[active[done]] = True

        remaining = usable & ~done
        active = active[remaining]
        coefs[active] = _halved_steps(
            problem,
            current[remaining],
            step[remaining],
            slope[remaining],
            weights[remaining],
        )
    return coefs.cpu().numpy(), solved.cpu().numpy()


def _halved_steps(problem, coefs, step, slope, W):
    """Coefficients after steps that are halved until the objective falls enough."""
    after = coefs.clone()
    before = problem.value(coefs, W)
    scale = torch.ones_like(slope)
    waiting = torch.arange(len(coefs), device=coefs.device)
    for _ in range(_MAX_HALVINGS):
        if not len(waiting):
            break
        trial = coefs[waiting] - scale[waiting, None] * step[waiting]
        decrease = _MIN_DECREASE * scale[waiting] * slope[waiting]
        limit = before[waiting] * (1 + _ROUNDING) - decrease
        after[waiting] = trial
        waiting = waiting[problem.value(trial, W[waiting]) > limit]
        scale[waiting] /= 2
    return after


class TorchForm(TorchEngine):
    """Coefficients of least squares in closed form."""

    def __init__(self, solver):
        super().__init__(solver)
        self.y = self.to(solver.y - solver.shift)
        self.products = None

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
        """Coefficients (m, p), and a mask of those that were computed.

        Those of a matrix whose condition number may be above ``widest`` are not.
        """
        W = self.to(masks) * self.weights
        H = self.grams(W)
        diagonal = H.diagonal(dim1=1, dim2=2)
        diagonal += self.penalty

        # Scaled to a unit diagonal: columns may have any unit.
        scale = diagonal.clamp(min=1e-300).rsqrt()
        scaled = H * scale[:, :, None] * scale[:, None, :]
        factor, info = torch.linalg.cholesky_ex(scaled)
        right = scale * (W @ self.products)
        coefs = scale * torch.cholesky_solve(right[:, :, None], factor)[:, :, 0]
        inverse = torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2)
        solved = (info == 0) & (inverse.amax(dim=1) < 1 / _SAFE)

        # The product of the two traces bounds the condition number.
        trace = self.penalty.sum() + W @ self.squares
        inverse_trace = (inverse * scale**2).sum(dim=1)
        solved &= trace * inverse_trace < widest
        coefs = torch.where(solved[:, None], coefs, 0.0)
        return coefs.cpu().numpy(), solved.cpu().numpy()


ENGINES = {
    LeastSquaresSolver: TorchForm,
    LogisticSolver: TorchNewton,
    RidgeSolver: TorchForm,
}
