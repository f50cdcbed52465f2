"""SimCLR: a representation that is robust to augmentations.

Importing this imports torch.
"""

from functools import partial
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..._utils.sklearn import Interval, StrOptions
from ..._utils.torch_device import seeded
from ..._utils.untrusted import choice, flag, integer, named_fields, refuse
from ._arrays import load_arrays, read_scale, state_arrays
from ._batches import Training
from ._examples import Examples, read_examples
from ._training import TrainedTransformer
from .augmentations import AUGMENTATIONS, make_augmentations
from .networks import make_network


def nt_xent_loss(first, second, temperature=0.5):
    """Contrastive loss of two views of each example.

    It is the cross-entropy of finding the other view.

    Parameters
    ----------
    first, second : tensor of shape (n, n_dimensions)
        Projections of two views of the same n examples.
    temperature : float
        Number by which cosines are divided.

    Returns
    -------
    loss : tensor
        Mean over the 2 n views of the cross-entropy of finding the other view of the
        same example among 2 n - 1.

    References
    ----------
    .. [1] Chen, T., Kornblith, S., Norouzi, M. and Hinton, G. "A simple framework for
       contrastive learning of visual representations". ICML, 2020, Equation 1 and
       Algorithm 1.

    Examples
    --------
    Two orthogonal examples, each with two equal views:

    >>> import torch
    >>> round(float(nt_xent_loss(torch.eye(2), torch.eye(2), temperature=1.0)), 4)
    0.5514
    """
    views = nn.functional.normalize(torch.cat([first, second]).float(), dim=1)
    # bfloat16 is too coarse for cosines.
    with torch.autocast(views.device.type, enabled=False):
        logits = views @ views.T / temperature
    is_same = torch.eye(len(views), dtype=bool, device=views.device)
    logits = logits.masked_fill(is_same, -torch.inf)
    partner = torch.arange(len(views), device=views.device).roll(len(first))
    return nn.functional.cross_entropy(logits, partner)


class SimCLR(TrainedTransformer):
    """Representation learned without labels, from random views of examples.

    Examples are rows of a table, or images, of bytes or of floats of any range: arrays
    of shape (n, height, width) or (n, height, width, channels), or flat ones with
    `image_shape`. The network is a perceptron for tables, has three convolutions for
    images whose shorter side has 8 to 28 pixels, and is a ResNet-18 for those of up to
    96.

    The network is trained on two random views of each example of a batch, such that the
    outputs of the two have nearly the same direction, away from the views of other
    examples. The representation thus ignores the augmentations: a rotated copy of a
    data set is mapped to nearly the same rows as the original.

    Parameters
    ----------
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels), for flattened images.
    augmentations : {"auto", "colour", "digits", "table"} or callable, default="auto"
        Random views. "digits": shift, crop, small rotation, blur, contrast. "colour":
        flip, jitter, crop, greyscale. "table": entries replaced by those of other rows
        (SCARF). "auto" takes "table" for tables, "digits" for images of one channel,
        and "colour" for others. A callable takes and returns tensors of shape (n,
        channels, height, width) with numbers in [0, 1], or (n, n_features) with
        standardized columns.
    output : {"projection", "backbone"}, default="projection"
        Output of `transform`: the projection, of norm one, which the loss makes equal
        for all views; or the output of the backbone, which keeps more information on
        orientation and brightness, and more that is useful for other tasks.
    projection_dim : int, default=64
        Dimension of the projection.
    temperature : float, default=0.5
        Temperature of the loss. Lower values separate similar examples more strongly.
    n_epochs : int, default=100
        Number of passes over the rows.
    batch_size : int, default=256
        Rows per step. Each view is contrasted with the 2 batch_size - 2 views of other
        examples.
    learning_rate : float, default=3e-3
        Maximum learning rate of AdamW. It increases over the first tenth of the steps
        and then decreases to zero.
    weight_decay : float, default=1e-4
        Weight decay of AdamW.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compute on. "auto" is "cuda" if torch finds a GPU.
    mixed_precision : bool or "auto", default="auto"
        Whether to train in mixed precision (bfloat16). "auto" does so on GPUs with
        bfloat16 arithmetic (Ampere and newer). On a CPU it is faster if there are
        instructions for it, and slower otherwise.
    random_state : int, RandomState instance or None, default=None
        Controls initial weights, order of rows and views. An integer gives the same
        network on the same CPU and number of threads, but not across machines or
        devices.

    Attributes
    ----------
    network_ : torch.nn.Module
        Backbone and projection head, on the CPU and in evaluation mode.
    loss_curve_ : list of float
        Mean loss of each epoch.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of entries of an example.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns, if `X` had any.

    See Also
    --------
    GaussianVAE : A latent map that can follow it.

    Notes
    -----
    A fit seeds torch's global generators during each epoch and then restores them. Two
    fits in threads of one process therefore change their random numbers; fits in
    separate processes do not.

    References
    ----------
    .. [1] Chen, T., Kornblith, S., Norouzi, M. and Hinton, G. "A simple framework for
       contrastive learning of visual representations". ICML, 2020.
    .. [2] Bahri, D., Jiang, H., Tay, Y. and Metzler, D. "SCARF: self-supervised
       contrastive learning using random feature corruption". ICLR, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvalue.priarta import SimCLR
    >>> X = load_iris().data
    >>> simclr = SimCLR(projection_dim=4, n_epochs=2, batch_size=50, random_state=0)
    >>> simclr.fit(X).transform(X).shape
    (150, 4)
    """

    _parameter_constraints = {
        "image_shape": ["array-like", None],
        "augmentations": [StrOptions({"auto", *AUGMENTATIONS}), callable],
        "output": [StrOptions({"backbone", "projection"})],
        "projection_dim": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        **TrainedTransformer._parameter_constraints,
    }

    def __init__(
        self,
        *,
        image_shape=None,
        augmentations: object = "auto",
        output="projection",
        projection_dim=64,
        temperature=0.5,
        n_epochs=100,
        batch_size=256,
        learning_rate=3e-3,
        weight_decay=1e-4,
        device="auto",
        mixed_precision: bool | str = "auto",
        random_state=None,
    ):
        self.image_shape = image_shape
        self.augmentations = augmentations
        self.output = output
        self.projection_dim = projection_dim
        self.temperature = temperature
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.mixed_precision = mixed_precision
        self.random_state = random_state

    def _checked(self, X, host, reset):
        return read_examples(host, X, reset)

    def _prepare(self, X, rng, device):
        examples = Examples.of(X, self.image_shape)
        inputs = examples.tensor(X)
        augment = self.augmentations
        draw = None
        if isinstance(augment, str):
            augment = make_augmentations(augment, examples.shape, inputs)

            def draw(n_examples):
                return augment.draw((2 * n_examples, *examples.shape))

        with seeded(rng.randint(2**31)):
            network = make_network(examples.shape, self.projection_dim)
        network = network.to(device)

        def loss_of(batch, drawn):
            batch = examples.unit(batch)
            make_views = augment if drawn is None else drawn
            with torch.no_grad(), torch.autocast(device, enabled=False):
                views = make_views(torch.cat([batch, batch]))
            projections = network.head(network.backbone(views))
            first, second = projections.chunk(2)
            return nt_xent_loss(first, second, self.temperature)

        return Training(network, examples, inputs, loss_of, draw)

    def _outputs(self, network, batch):
        outputs = network.backbone(batch)
        if self.output == "backbone":
            return outputs
        return nn.functional.normalize(network.head(outputs))

    @property
    def _n_features_out(self):
        if self.output == "projection":
            return self.network_.head[-1].out_features
        # The last parameters of the backbone are the biases of a batch norm.
        *_, biases = self.network_.backbone.parameters()
        return len(biases)

    def to_arrays(self):
        """Weights of the network by name, and its configuration.

        Returns
        -------
        arrays : dict of str to ndarray
            Weights, and the centre and scale of examples.
        config : dict
            Configuration, for JSON.
        """
        check_is_fitted(self)
        examples = self._examples
        network = _exported_modules(self.network_, self.output)
        projection_dim = int(self.projection_dim)
        if "head" in network:
            projection_dim = network.head[-1].out_features
        arrays = {
            **state_arrays(network),
            "centre": examples.centre,
            "scale": examples.scale,
        }
        config = {
            "shape": list(examples.shape),
            "bytes": examples.is_bytes,
            "output": self.output,
            "projection_dim": projection_dim,
        }
        return arrays, config

    @classmethod
    def from_arrays(cls, arrays, config):
        """The representation from untrusted arrays and configuration.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Arrays from `to_arrays`.
        config : dict
            Configuration from `to_arrays`.

        Returns
        -------
        simclr : SimCLR
            An object with the same `transform` as the exported one.

        Raises
        ------
        ValueError
            If names, shapes or values are invalid.
        """
        shape, is_bytes, output, projection_dim = named_fields(
            config,
            "config",
            shape=_checked_shape,
            bytes=flag,
            output=partial(choice, among=("backbone", "projection")),
            projection_dim=partial(integer, lowest=1, highest=2**16),
        )
        if len(shape) == 1:
            image_shape = None
            n_scales = shape[0]
        else:
            channels, height, width = shape
            image_shape = (height, width, channels)
            n_scales = 1
        centre, scale, weights = read_scale(arrays, n_scales, n_scales)

        def build():
            return _exported_modules(make_network(shape, projection_dim), output)

        simclr = cls(
            image_shape=image_shape, output=output, projection_dim=projection_dim
        )
        simclr._set_fitted(
            load_arrays(build, weights),
            losses=[],
            examples=Examples(shape, is_bytes, centre, scale),
            columns={"n_features_in_": int(np.prod(shape))},
        )
        return simclr


def _exported_modules(network, output):
    """The modules that `transform` needs; the head stays with the buyer if unused."""
    if output == "projection":
        return network
    return nn.ModuleDict({"backbone": network.backbone})


def _checked_shape(shape, name):
    """A shape from a config: (n_features,) or (channels, height, width), bounded."""
    rule = "one or three lengths, of at most 2**24 numbers"
    if not isinstance(shape, list) or len(shape) not in (1, 3):
        refuse(name, rule, shape)
    lengths = tuple(integer(length, name, 1, 2**20) for length in shape)
    if np.prod(lengths, dtype=float) > 2**24:
        refuse(name, rule, shape)
    return lengths
