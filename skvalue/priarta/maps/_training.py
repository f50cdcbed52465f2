"""Training loop of the representation and the latent map. Importing this imports torch."""

import copy
import math
from abc import ABCMeta, abstractmethod
from numbers import Integral, Real

import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin

from ..._utils.fits import blank_of, columns_on, swap_in
from ..._utils.sklearn import Interval, StrOptions
from ..._utils.torch_device import find_device, gains_from_bfloat16, seeded
from ..._utils.warned import warn
from ...base import Run
from ...exceptions import IncompleteFitWarning


def learning_rate_factor(step, n_steps):
    """Linear warm-up over a tenth of the steps, then half a cosine to zero.

    >>> [round(learning_rate_factor(step, 20), 2) for step in (0, 1, 2, 11, 20)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    warm = max(n_steps // 10, 1)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(n_steps - warm, 1)))


class Training:
    """Training of a network by AdamW, one epoch at a time.

    ``options`` has the parameters of a `TrainedTransformer`. ``loss_of`` maps indices of rows, a
    tensor on the CPU, to the mean loss over them; ``rng`` gives the seed of each epoch. A smaller
    last batch is left out; its rows differ between epochs. With ``early_stopping``, a random
    fraction of rows is held out and evaluated after each epoch; training stops after
    ``n_iter_no_change`` epochs without an improvement by ``tol``, and the best weights are kept.
    """

    def __init__(self, options, network, loss_of, n_rows, rng, device):
        self.options, self.network, self.loss_of = options, network, loss_of
        self.rng, self.device = rng, device
        n_held_out, mixed = 0, options.mixed_precision
        if options.early_stopping:
            n_held_out = max(2, round(options.validation_fraction * n_rows))
            if n_rows - n_held_out < 2:
                raise ValueError(
                    f"early_stopping holds out {n_held_out} of {n_rows} rows and needs 2 to train "
                    "on. Pass more rows or a smaller validation_fraction."
                )
        order = torch.from_numpy(rng.permutation(n_rows))
        self.held_out, self.rows = order[:n_held_out], order[n_held_out:]
        self.batch_size = min(options.batch_size, len(self.rows))
        self.mixed_precision = gains_from_bfloat16(device) if mixed == "auto" else mixed
        self.losses, self.held_out_losses, self.stopped_early = [], [], False
        self._optimizer = torch.optim.AdamW(
            network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        n_steps = options.n_epochs * (len(self.rows) // self.batch_size)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: learning_rate_factor(step, n_steps)
        )
        self._held_out_seed = rng.randint(2**31)
        self._best, self._best_weights, self._waited = math.inf, None, 0

    def _loss(self, rows):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.mixed_precision):
            return self.loss_of(rows)

    def _epoch(self):
        self.network.train()
        order = self.rows[torch.randperm(len(self.rows))]
        total, n_batches = 0.0, len(order) // self.batch_size
        for rows in order[: n_batches * self.batch_size].split(self.batch_size):
            loss = self._loss(rows)
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            total = total + loss.detach()
        return float(total) / n_batches

    def _held_out_loss(self):
        self.network.eval()
        parts = self.held_out.split(self.batch_size)
        with seeded(self._held_out_seed, self.device), torch.no_grad():
            total = sum(float(self._loss(rows)) * len(rows) for rows in parts if len(rows) > 1)
        return total / sum(len(rows) for rows in parts if len(rows) > 1)

    def epochs(self):
        """Train, and yield the mean loss of each epoch, which must be finite."""
        for epoch in range(self.options.n_epochs):
            with seeded(self.rng.randint(2**31), self.device):
                loss = self._epoch()
            if not math.isfinite(loss):
                raise RuntimeError(
                    f"The loss was {loss} in epoch {epoch + 1}. Lower learning_rate "
                    f"({self.options.learning_rate})."
                )
            self.losses.append(loss)
            if self.options.early_stopping:
                self._keep_best()
            yield loss
            if self.stopped_early:
                return

    def _keep_best(self):
        loss = self._held_out_loss()
        self.held_out_losses.append(loss)
        self._waited = 0 if loss < self._best - self.options.tol else self._waited + 1
        if loss < self._best:
            self._best = loss
            self._best_weights = copy.deepcopy(self.network.state_dict())
        self.stopped_early = self._waited >= self.options.n_iter_no_change

    def finish(self):
        """The network on the CPU in evaluation mode, with the best weights if there are any."""
        if self._best_weights is not None:
            self.network.load_state_dict(self._best_weights)
        return self.network.cpu().eval()


class TrainedTransformer(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of transformers with a network: training and its parameters."""

    _parameter_constraints = {
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "device": [StrOptions({"auto", "cpu", "cuda"})],
        "mixed_precision": ["boolean", StrOptions({"auto"})],
        "random_state": ["random_state"],
    }

    def _former(self):
        """The record of the previous fit, if this one resumes from it, else None.

        An object from `from_arrays` cannot resume, since a part of the weights may be missing.
        """
        if not (self.warm_start and hasattr(self, "_learnt")):
            return None
        if self._learnt.rng is None:
            raise ValueError(
                "warm_start=True needs a fit of this object to resume from. Got weights from "
                "from_arrays: fit with warm_start=False."
            )
        return self._learnt

    def _set_loaded(self, network, learnt, n_features):
        """Set a loaded network and its record."""
        swap_in(
            self,
            network_=network,
            loss_curve_=[],
            validation_loss_curve_=[],
            n_iter_=0,
            n_features_in_=n_features,
            _learnt=learnt,
        )
        return self

    @abstractmethod
    def _prepare(self, X, host, former, device):
        """The network, its loss as a function of row indices, the number of rows, and the record.

        `former` is the record of the fit to resume from, or None. Only `host` is changed, which
        gets the attributes of the columns of X.
        """

    def _fitted(self, X):
        """Train with callbacks, and set the fitted attributes, also if stopped or interrupted.

        A warm start extends the curves. A fit that fails, or is interrupted in its first epoch,
        leaves the previous fit unchanged.
        """
        former, device = self._former(), find_device(self.device)
        host = blank_of(self) if former is None else self
        network, loss_of, n_rows, learnt = self._prepare(X, host, former, device)
        training = Training(self, network, loss_of, n_rows, learnt.rng, device)
        run = Run(self)
        with run.steps(self.n_epochs, "epochs trained") as done:
            for _ in training.epochs():
                done()
        if run.interrupted and not training.losses:
            raise KeyboardInterrupt
        curves = ([], []) if former is None else (self.loss_curve_, self.validation_loss_curve_)
        swap_in(
            self,
            network_=training.finish(),
            loss_curve_=curves[0] + training.losses,
            validation_loss_curve_=curves[1] + training.held_out_losses,
            n_iter_=len(curves[0]) + len(training.losses),
            _learnt=learnt,
            **columns_on(host),
        )
        run.close()
        if run.interrupted:
            raise KeyboardInterrupt
        if run.stopped:
            warn(
                f"The fit was stopped by a callback after {len(training.losses)} of "
                f"{self.n_epochs} epochs.",
                IncompleteFitWarning,
            )
        return self
