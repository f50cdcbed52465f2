"""Conversion of examples (images, rows of a table) to tensors for networks."""

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from ..._utils.checks import redact_errors
from ...exceptions import ParameterError
from ._modules import unit_of


def example_shape(shape, image_shape):
    """Shape of one example for a network: (n_features,) or (channels, height, width).

    >>> example_shape((10, 784), (28, 28)), example_shape((10, 32, 32, 3), None)
    ((1, 28, 28), (3, 32, 32))
    """
    own_shape = tuple(shape[1:])
    if image_shape is None:
        if len(own_shape) == 1:
            return own_shape
        image_shape = own_shape
    image_shape = tuple(int(side) for side in image_shape)
    if len(image_shape) not in (2, 3) or min(image_shape) < 1:
        raise ValueError(
            "Images must be (height, width) or (height, width, channels), by "
            f"image_shape or by the shape of X. Got {image_shape}."
        )
    flat_shape = (int(np.prod(image_shape)),)
    if own_shape not in (image_shape, flat_shape):
        raise ParameterError(
            "X",
            f"must hold images of image_shape {image_shape}, flattened or not. Got "
            f"examples of shape {own_shape}.",
        )
    if len(image_shape) == 2:
        return (1, *image_shape)
    height, width, channels = image_shape
    return (channels, height, width)


class Examples:
    """Conversion of X to tensors, with a shape and a scale from the buyer's rows.

    Images are scaled to [0, 1] and clipped: bytes are divided by 255, other numbers by
    the buyer's range. Rows of a table are centred, divided by the scale and clipped to
    `limit`.
    """

    def __init__(self, shape, is_bytes, centre, scale, limit=10.0):
        self.shape = tuple(shape)
        self.is_bytes = bool(is_bytes)
        self.centre = np.asarray(centre, float)
        self.scale = np.asarray(scale, float)
        self.limit = limit

    @property
    def is_table(self):
        """Whether examples are rows of a table, and not images."""
        return len(self.shape) == 1

    @classmethod
    def of(cls, X, image_shape):
        """Shape and scale from the buyer's rows; columns of a table get scale one."""
        shape = example_shape(X.shape, image_shape)
        if len(shape) == 1:
            unit = unit_of(X, axis=0)
            centre = unit * (X / unit).mean(axis=0)
            scale = unit * (X / unit).std(axis=0)
            # The scale of a column that is constant up to rounding is one.
            is_constant = scale <= 1e-9 * np.maximum(np.abs(centre), 1e-300)
            return cls(shape, False, centre, np.where(is_constant, 1.0, scale))
        if X.dtype == np.uint8:
            return cls(shape, True, [0.0], [255.0])
        low = float(X.min())
        high = float(X.max())
        scale = high - low if high > low else 1.0
        return cls(shape, False, [low], [scale])

    def tensor(self, X):
        """X as a tensor (n, *shape): bytes as they are, other numbers scaled."""
        if self.is_table:
            X = self._scaled(X, -self.limit, self.limit)
            return torch.from_numpy(np.ascontiguousarray(X))

        has_bytes = X.dtype == np.uint8
        if self.is_bytes and not has_bytes:
            raise ParameterError(
                "X", f"must hold uint8 images, as those of fit. Got {X.dtype}."
            )
        if has_bytes and not self.is_bytes:
            raise ParameterError(
                "X", "must hold floating-point images, as those of fit. Got uint8."
            )
        if not has_bytes:
            X = self._scaled(X, 0.0, 1.0)
        channels, height, width = self.shape
        X = X.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray(X))

    def _scaled(self, X, low, high):
        X = (X.astype(float) - self.centre) / self.scale
        return X.clip(low, high).astype(np.float32)

    @staticmethod
    def unit(batch):
        """A batch of a tensor as floats, bytes divided by 255.

        All rows as floats at once would take four times the memory.
        """
        return batch.float() / 255.0 if batch.dtype == torch.uint8 else batch


@redact_errors("X")
def read_examples(estimator, X, reset):
    """Validated X: an array of finite numbers of two or more dimensions.

    `n_features_in_` is the number of entries of an example of any shape.
    """
    if isinstance(X, (list, tuple)) or getattr(X, "ndim", 2) > 2:
        X = np.asarray(X)  # also of HDF5 data sets, which have no reshape
    shape = None
    if getattr(X, "ndim", 2) > 2:
        shape = X.shape
        X = X.reshape(shape[0], int(np.prod(shape[1:])))
    min_samples = 2 if reset else 1
    X = validate_data(
        estimator, X, reset=reset, dtype="numeric", ensure_min_samples=min_samples
    )
    if shape is None:
        return X
    return X.reshape(shape)
