"""The latent map of PriArTa: the encoder of a variational autoencoder.

Importing this imports torch.
"""

from functools import partial
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from ..._utils.checks import redact_errors
from ..._utils.sklearn import Interval
from ..._utils.torch_device import seeded
from ..._utils.untrusted import integer, named_fields
from ._arrays import load_arrays, read_scale, state_arrays
from ._batches import Training
from ._examples import Examples
from ._modules import unit_of
from ._training import TrainedTransformer

_LIMIT = 1e4  # to which scaled entries are clipped


def negative_elbo(x, reconstruction, mean, log_variance, beta=1.0):
    """Negative evidence lower bound, up to a constant.

    The decoder has noise of variance one.

    Parameters
    ----------
    x, reconstruction : tensor of shape (n, n_features)
        Rows, and the outputs of the decoder for one latent draw each.
    mean, log_variance : tensor of shape (n, latent_dim)
        Mean and log variance of the latent distribution of each row: normal, with
        independent coordinates.
    beta : float
        Weight of the divergence.

    Returns
    -------
    loss : tensor
        Mean over rows of half the squared error plus beta times the Kullback-Leibler
        divergence from the standard normal distribution.

    References
    ----------
    .. [1] Kingma, D. P. and Welling, M. "Auto-encoding variational Bayes". ICLR, 2014,
       Equations 3 and 10.

    Examples
    --------
    >>> import torch
    >>> zero = torch.zeros(1, 2)
    >>> float(negative_elbo(zero, zero + 1.0, zero + 1.0, zero))
    2.0
    """
    error = 0.5 * (x - reconstruction).square().sum(dim=1)
    terms = mean.square() + log_variance.exp() - 1.0 - log_variance
    divergence = 0.5 * terms.sum(dim=1)
    return (error + beta * divergence).mean()


class GaussianVAE(TrainedTransformer):
    """Latent means of a variational autoencoder: short, nearly normal vectors.

    Encoder and decoder have two linear layers each, with a LeakyReLU between them. Rows
    are centred and divided by one scale, the root mean square of all entries, and the
    evidence lower bound is maximized. Only the encoder is exported to sellers.

    Parameters
    ----------
    latent_dim : int, default=8
        Dimension of the latent rows. The noise of a private release increases with it.
    hidden_dim : int, default=64
        Units of the hidden layers.
    beta : float, default=1.0
        Weight of the divergence from the standard normal distribution.
    n_epochs : int, default=100
        Number of passes over the rows.
    batch_size : int, default=256
        Rows per step.
    learning_rate : float, default=2e-3
        Maximum learning rate of AdamW. It increases over the first tenth of the steps
        and then decreases to zero.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compute on. "auto" is "cuda" if torch finds a GPU.
    mixed_precision : bool or "auto", default="auto"
        Whether to train in mixed precision (bfloat16). "auto" does so on GPUs with
        bfloat16 arithmetic (Ampere and newer). On a CPU it is faster if there are
        instructions for it, and slower otherwise.
    random_state : int, RandomState instance or None, default=None
        Controls initial weights, order of rows and latent draws. An integer gives the
        same map on the same CPU and number of threads, but not across machines or
        devices.

    Attributes
    ----------
    network_ : torch.nn.Module
        Encoder and decoder, on the CPU and in evaluation mode.
    loss_curve_ : list of float
        Mean loss of each epoch.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns, if `X` had any.

    See Also
    --------
    SimCLR : A representation that can precede it.

    References
    ----------
    .. [1] Kingma, D. P. and Welling, M. "Auto-encoding variational Bayes". ICLR, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvalue.priarta import GaussianVAE
    >>> X = load_iris().data
    >>> GaussianVAE(latent_dim=2, n_epochs=2, random_state=0).fit(X).transform(X).shape
    (150, 2)
    """

    _parameter_constraints = {
        "latent_dim": [Interval(Integral, 1, None, closed="left")],
        "hidden_dim": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="neither")],
        **TrainedTransformer._parameter_constraints,
    }

    def __init__(
        self,
        latent_dim=8,
        *,
        hidden_dim=64,
        beta=1.0,
        n_epochs=100,
        batch_size=256,
        learning_rate=2e-3,
        weight_decay=0.0,
        device="auto",
        mixed_precision: bool | str = "auto",
        random_state=None,
    ):
        self.latent_dim = latent_dim
        self.hidden_dim = hidden_dim
        self.beta = beta
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.mixed_precision = mixed_precision
        self.random_state = random_state

    def _checked(self, X, host, reset):
        with redact_errors("X"):
            return validate_data(
                host, X, reset=reset, dtype=float, ensure_min_samples=1 + reset
            )

    def _prepare(self, X, rng, device):
        with seeded(rng.randint(2**31)):
            encoder = _two_layers(X.shape[1], self.hidden_dim, 2 * self.latent_dim)
            decoder = _two_layers(self.latent_dim, self.hidden_dim, X.shape[1])
        network = nn.ModuleDict({"encoder": encoder, "decoder": decoder}).to(device)
        unit = unit_of(X)
        centre = unit * (X / unit).mean(axis=0)
        scale = float(unit * np.sqrt(np.mean(((X - centre) / unit) ** 2))) or 1.0
        examples = Examples(X.shape[1:], False, centre, [scale], _LIMIT)
        inputs = examples.tensor(X)

        def loss_of(x, _):
            mean, log_variance = network.encoder(x).float().chunk(2, dim=1)
            noise = torch.randn_like(mean)
            latent = mean + noise * torch.exp(0.5 * log_variance)
            reconstruction = network.decoder(latent).float()
            return negative_elbo(x, reconstruction, mean, log_variance, self.beta)

        return Training(network, examples, inputs, loss_of)

    def _outputs(self, network, batch):
        mean, _ = network.encoder(batch).chunk(2, dim=1)
        return mean

    @property
    def _n_features_out(self):
        return self.network_.encoder[-1].out_features // 2

    def to_arrays(self):
        """Weights of the encoder by name, and its configuration.

        Returns
        -------
        arrays : dict of str to ndarray
            Weights, centre and scale.
        config : dict
            Configuration, for JSON.
        """
        check_is_fitted(self)
        examples = self._examples
        encoder = self.network_.encoder
        arrays = {
            **state_arrays(nn.ModuleDict({"encoder": encoder})),
            "centre": examples.centre,
            "scale": examples.scale,
        }
        config = {
            "n_features": len(examples.centre),
            "hidden_dim": encoder[0].out_features,
            "latent_dim": self._n_features_out,
        }
        return arrays, config

    @classmethod
    def from_arrays(cls, arrays, config):
        """The map from untrusted arrays and configuration.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Arrays from `to_arrays`.
        config : dict
            Configuration from `to_arrays`.

        Returns
        -------
        vae : GaussianVAE
            An object with the same `transform` as the exported one.

        Raises
        ------
        ValueError
            If names, shapes or values are invalid.
        """
        size = partial(integer, lowest=1, highest=2**20)
        n_features, hidden_dim, latent_dim = named_fields(
            config, "config", n_features=size, hidden_dim=size, latent_dim=size
        )
        centre, scale, weights = read_scale(arrays, n_features, 1)

        def build():
            encoder = _two_layers(n_features, hidden_dim, 2 * latent_dim)
            return nn.ModuleDict({"encoder": encoder})

        vae = cls(latent_dim, hidden_dim=hidden_dim)
        vae._set_fitted(
            load_arrays(build, weights),
            losses=[],
            examples=Examples((n_features,), False, centre, scale, _LIMIT),
            columns={"n_features_in_": n_features},
        )
        return vae


def _two_layers(n_in, n_hidden, n_out):
    """Two linear layers with a LeakyReLU between them."""
    return nn.Sequential(
        nn.Linear(n_in, n_hidden), nn.LeakyReLU(), nn.Linear(n_hidden, n_out)
    )
