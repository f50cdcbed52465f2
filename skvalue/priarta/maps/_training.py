"""Training loop of the representation and the latent map.

Importing this imports torch.
"""

import copy
import math
from abc import ABCMeta, abstractmethod
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import columns_on, set_fitted_state, unfitted_copy
from ..._utils.parallel import tiles
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ..._utils.torch_device import (
    default_settings,
    find_device,
    gains_from_bfloat16,
    seeded,
)
from ..._utils.warned import warn
from ...base import Run
from ...exceptions import IncompleteFitWarning
from ._batches import Batches

_BATCH_SIZE = 512  # of `transform`


def learning_rate_factor(step, n_steps):
    """Linear warm-up over a tenth of the steps, then half a cosine to zero.

    >>> [round(learning_rate_factor(step, 20), 2) for step in (0, 1, 2, 11, 20)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    n_warm = max(n_steps // 10, 1)
    if step < n_warm:
        return (step + 1) / n_warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - n_warm) / max(n_steps - n_warm, 1)))


def train(options, training, rng, device):
    """Train a network by AdamW, and yield the mean loss of each epoch.

    ``options`` has the parameters of a `TrainedTransformer`; losses of the `Training`
    must be finite; ``rng`` gives the seed of each epoch. A smaller last batch is left
    out; its rows differ between epochs.
    """
    network = training.network
    n_rows = len(training.inputs)
    mixed_precision = options.mixed_precision
    if mixed_precision == "auto":
        mixed_precision = gains_from_bfloat16(device)
    # The rows are permuted again in each epoch. Neither this order nor the next draw is
    # needed: they keep the networks of the documented figures.
    order = torch.from_numpy(rng.permutation(n_rows))
    rng.randint(2**31)
    batch_size = min(options.batch_size, n_rows)
    n_batches = n_rows // batch_size
    n_steps = options.n_epochs * n_batches
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=options.learning_rate,
        weight_decay=options.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_factor(step, n_steps)
    )
    batches = Batches(training, device)
    for epoch in range(options.n_epochs):
        network.train()
        total = 0.0
        with seeded(rng.randint(2**31), device):
            epoch_rows = order[torch.randperm(n_rows)][: n_batches * batch_size]
            for batch, drawn in batches(epoch_rows, batch_size):
                with torch.autocast(device, torch.bfloat16, enabled=mixed_precision):
                    loss = training.loss_of(batch, drawn)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                total = total + loss.detach()
        mean_loss = float(total) / n_batches
        if not math.isfinite(mean_loss):
            raise RuntimeError(
                f"The loss was {mean_loss} in epoch {epoch + 1}. Lower learning_rate "
                f"({options.learning_rate})."
            )
        yield mean_loss


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
        "device": [StrOptions({"auto", "cpu", "cuda"})],
        "mixed_precision": ["boolean", StrOptions({"auto"})],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _checked(self, X, host, reset):
        """X as an array; with `reset`, `host` gets the attributes of its columns."""

    @abstractmethod
    def _prepare(self, X, rng, device):
        """The `Training` of a network, which is on the device."""

    @abstractmethod
    def _outputs(self, network, batch):
        """The outputs (n, n_outputs) of `transform` for a batch."""

    @fit_context(prefer_skip_nested_validation=True)
    @default_settings()
    def fit(self, X, y=None):
        """Train on the buyer's rows, or their representation.

        With callbacks, a fit that is stopped or interrupted keeps the epochs that were
        trained. One that fails, or is interrupted in its first epoch, leaves the
        previous fit unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of numbers. `SimCLR` takes images, too, see there.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted map.

        Raises
        ------
        ValueError
            If a parameter is out of its range or does not suit `X`.
        ImportError
            If images are to be augmented and kornia is not installed.
        RuntimeError
            If the loss is no longer finite.
        """
        device = find_device(self.device)
        rng = check_random_state(self.random_state)
        columns_host = unfitted_copy(self)
        X = self._checked(X, columns_host, reset=True)
        training = self._prepare(X, rng, device)

        losses = []
        run = Run(self)
        with run.steps(self.n_epochs, "epochs trained") as done:
            for loss in train(self, training, rng, device):
                losses.append(loss)
                done()
        if run.interrupted and not losses:
            raise KeyboardInterrupt
        self._set_fitted(
            training.network, losses, training.examples, columns_on(columns_host)
        )
        run.close()
        if run.interrupted:
            raise KeyboardInterrupt
        if run.stopped:
            warn(
                f"The fit was stopped by a callback after {len(losses)} of "
                f"{self.n_epochs} epochs.",
                IncompleteFitWarning,
            )
        return self

    def _set_fitted(self, network, losses, examples, columns):
        """Set the fitted attributes, also of a network that was loaded."""
        set_fitted_state(
            self,
            network_=network.cpu().eval(),
            loss_curve_=losses,
            n_iter_=len(losses),
            _examples=examples,
            **columns,
        )

    @default_settings()
    def transform(self, X):
        """Outputs of the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or images, like those of `fit`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_outputs)
            The outputs, in float64.

        Raises
        ------
        ValueError
            If the rows are not like those of `fit`.
        """
        check_is_fitted(self)
        X = self._checked(X, self, reset=False)
        network, device, dtype = self._network_for_rows()
        rows = np.empty((len(X), self._n_features_out))
        with torch.no_grad():
            for tile, batch in self._batches(X, device, dtype):
                rows[tile] = self._outputs(network, batch).cpu().numpy()
        return rows

    @default_settings()
    def transform_alone(self, X):
        """Outputs of the network for each row in a batch of its own.

        Rounding in a batch depends on its size and on the place of a row in it. Here a
        row has the same bits whatever other rows there are, as the guarantee of a
        seller's release needs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or images, like those of `fit`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_outputs)
            The outputs, in float64.

        Raises
        ------
        ValueError
            If the rows are not like those of `fit`.
        """
        check_is_fitted(self)
        X = self._checked(X, self, reset=False)
        network, device, dtype = self._network_for_rows()
        rows = np.empty((len(X), self._n_features_out))
        # One array for all rows: instructions can depend on its alignment.
        alone = torch.empty((1, *self._examples.shape), dtype=dtype, device=device)
        with torch.no_grad():
            for tile, batch in self._batches(X, device, dtype):
                for place, row in zip(range(tile.start, tile.stop), batch):
                    alone[0] = row
                    rows[place] = self._outputs(network, alone)[0].cpu().numpy()
        return rows

    def _batches(self, X, device, dtype):
        """Slices of the rows, and a tensor of scaled examples for each."""
        for tile in tiles(len(X), _BATCH_SIZE):
            batch = self._examples.tensor(X[tile]).to(device)
            yield tile, self._examples.unit(batch).to(dtype)

    def _network_for_rows(self):
        """A copy of the network, its device and its dtype.

        Tables are transformed in double precision, images in single precision.
        """
        device = find_device(self.device)
        dtype = torch.float64 if self._examples.is_table else torch.float32
        return copy.deepcopy(self.network_).to(device, dtype), device, dtype
