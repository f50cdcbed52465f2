"""The latent map of PriArTa: the encoder of a variational autoencoder.

Importing this imports torch.
"""

import copy
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from ..._utils.checks import hidden_entries
from ..._utils.parallel import tiles
from ..._utils.sklearn import Interval, fit_context
from ..._utils.torch_device import default_settings, find_device, seeded
from ..._utils.untrusted import integer, named_fields
from ._arrays import load_arrays, read_scale, state_arrays
from ._modules import unit_of
from ._training import TrainedTransformer

_ROWS = 4096  # per batch of `transform`
_LIMIT = 1e4  # to which scaled entries are clipped


def negative_elbo(x, reconstruction, mean, log_variance, beta=1.0):
    """Negative evidence lower bound of a decoder with noise of variance one, up to a constant.

    Parameters
    ----------
    x, reconstruction : tensor of shape (n, n_features)
        Rows, and the outputs of the decoder for one latent draw each.
    mean, log_variance : tensor of shape (n, latent_dim)
        Mean and log variance of the latent distribution of each row: normal, with independent
        coordinates.
    beta : float
        Weight of the divergence.

    Returns
    -------
    loss : tensor
        Mean over rows of half the squared error plus beta times the Kullback-Leibler divergence
        from the standard normal distribution.

    References
    ----------
    .. [1] Kingma, D. P. and Welling, M. "Auto-encoding variational Bayes". ICLR, 2014, Equations 3
       and 10.

    Examples
    --------
    >>> import torch
    >>> zero = torch.zeros(1, 2)
    >>> float(negative_elbo(zero, zero + 1.0, zero + 1.0, zero))
    2.0
    """
    error = 0.5 * (x - reconstruction).square().sum(dim=1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
    return (error + beta * divergence).mean()


class GaussianVAE(TrainedTransformer):
    """Latent means of a variational autoencoder: short vectors with a nearly normal distribution.

    Encoder and decoder have two linear layers each, with a LeakyReLU between them. Rows are centred
    and divided by one scale, the root mean square of all entries, and the evidence lower bound is
    maximized. Only the encoder is exported to sellers.

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
        Maximum learning rate of AdamW. It increases over the first tenth of the steps and then
        decreases to zero.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compute on. "auto" is "cuda" if torch finds a GPU.
    mixed_precision : bool or "auto", default="auto"
        Whether to train in mixed precision (bfloat16). "auto" does so on GPUs with bfloat16
        arithmetic (Ampere and newer). On a CPU it is faster if there are instructions for it, and
        slower otherwise.
    random_state : int, RandomState instance or None, default=None
        Controls initial weights, order of rows and latent draws. An integer gives the same map on
        the same CPU and number of threads, but not across machines or devices.

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

    @fit_context(prefer_skip_nested_validation=True)
    @default_settings()
    def fit(self, X, y=None):
        """Train on the representation of the buyer's rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of numbers.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : GaussianVAE
            The fitted map.

        Raises
        ------
        ValueError
            If a parameter is out of its range.
        RuntimeError
            If the loss is no longer finite.
        """
        return self._fitted(X)

    def _prepare(self, X, host, rng, device):
        with hidden_entries("X"):
            X = validate_data(host, X, dtype=float, ensure_min_samples=2)
        with seeded(rng.randint(2**31)):
            network = _network(X.shape[1], self.hidden_dim, self.latent_dim)
        unit = unit_of(X)
        centre = unit * (X / unit).mean(axis=0)
        scale = float(unit * np.sqrt(np.mean(((X - centre) / unit) ** 2))) or 1.0
        learnt = _Learnt(centre, scale, self.hidden_dim, self.latent_dim)
        rows, network = learnt.tensor(X), network.to(device)

        def loss_of(chosen):
            x = rows[chosen].to(device)
            mean, log_variance = network.encoder(x).float().chunk(2, dim=1)
            drawn = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            return negative_elbo(x, network.decoder(drawn).float(), mean, log_variance, self.beta)

        return network, loss_of, len(rows), learnt

    @property
    def _n_features_out(self):
        return self._learnt.latent_dim

    @default_settings()
    def transform(self, X):
        """Latent means of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of numbers.

        Returns
        -------
        means : ndarray of shape (n_samples, latent_dim)
            Means of the latent distributions.

        Raises
        ------
        ValueError
            If `X` has another number of columns than in `fit`.
        """
        check_is_fitted(self)
        device = find_device(self.device)
        with hidden_entries("X"):
            X = validate_data(self, X, reset=False, dtype=float)
        # Double precision makes the effect of other rows in the batch on rounding negligible.
        encoder = copy.deepcopy(self.network_.encoder).to(device, torch.float64)
        means = np.empty((len(X), self._n_features_out))
        with torch.no_grad():
            for part in tiles(len(X), _ROWS):
                x = self._learnt.tensor(X[part]).to(device, torch.float64)
                means[part] = encoder(x).chunk(2, dim=1)[0].cpu().numpy()
        return means

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
        arrays = state_arrays(self.network_)
        arrays = {name: array for name, array in arrays.items() if name.startswith("encoder.")}
        learnt = self._learnt
        arrays |= {"centre": learnt.centre, "scale": np.array([learnt.scale])}
        sizes = {
            "n_features": len(learnt.centre),
            "hidden_dim": learnt.hidden_dim,
            "latent_dim": learnt.latent_dim,
        }
        return arrays, sizes

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
        n_features, hidden, latent = named_fields(
            config, "config", n_features=size, hidden_dim=size, latent_dim=size
        )
        centre, scale, arrays = read_scale(arrays, n_features, 1)
        vae = cls(latent, hidden_dim=hidden)
        network = load_arrays(lambda: _network(n_features, hidden, latent, False), arrays)
        learnt = _Learnt(centre, float(scale[0]), hidden, latent)
        return vae._set_loaded(network, learnt, n_features)


class _Learnt(NamedTuple):
    """State of a fit except the network."""

    centre: np.ndarray
    scale: float
    hidden_dim: int
    latent_dim: int

    def tensor(self, X):
        """Rows as the encoder takes them."""
        scaled = (X - self.centre) / self.scale
        return torch.from_numpy(scaled.clip(-_LIMIT, _LIMIT).astype(np.float32))


def _network(n_features, hidden, latent, with_decoder=True):
    """Encoder to means and log variances, and decoder, as one module."""
    network = nn.Module()
    network.encoder = _two_layers(n_features, hidden, 2 * latent)
    if with_decoder:
        network.decoder = _two_layers(latent, hidden, n_features)
    return network


def _two_layers(n_in, hidden, n_out):
    return nn.Sequential(nn.Linear(n_in, hidden), nn.LeakyReLU(), nn.Linear(hidden, n_out))
