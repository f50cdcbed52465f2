"""Conversion of examples (images, rows of a table) to tensors for networks."""

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from ..._utils.checks import hidden_entries
from ._modules import unit_of


def example_shape(shape, image_shape):
    """Shape of one example for a network: (n_features,) or (channels, height, width).

    >>> example_shape((10, 784), (28, 28)), example_shape((10, 32, 32, 3), None)
    ((1, 28, 28), (3, 32, 32))
    """
    given = tuple(shape[1:])
    if image_shape is None:
        image_shape = given
        if len(given) == 1:
            return given
    image_shape = tuple(int(side) for side in image_shape)
    fits = given == image_shape or given == (int(np.prod(image_shape)),)
    if len(image_shape) not in (2, 3) or min(image_shape) < 1:
        raise ValueError(
            "Images must be (height, width) or (height, width, channels), by image_shape or by "
            f"the shape of X. Got {image_shape}."
        )
    if not fits:
        raise ValueError(
            f"X must hold images of image_shape {image_shape}, flattened or not. Got examples "
            f"of shape {given}."
        )
    height, width, *channels = image_shape
    return (channels[0] if channels else 1, height, width)


class Examples:
    """Conversion of X to tensors, with a shape and a scale from the buyer's rows.

    Images are scaled to [0, 1] and clipped: bytes are divided by 255, other numbers by
    the buyer's range. Rows of a table are centred, divided by the scale and clipped to
    `limit`.
    """

    def __init__(self, shape, is_bytes, centre, scale, limit=10.0):
        self.shape, self.bytes, self.limit = tuple(shape), bool(is_bytes), limit
        self.centre, self.scale = np.asarray(centre, float), np.asarray(scale, float)

    @property
    def is_table(self):
        return len(self.shape) == 1

    @classmethod
    def of(cls, X, image_shape):
        """Shape and scale from the buyer's rows; those of a table have columns of scale
        one."""
        shape = example_shape(X.shape, image_shape)
        if len(shape) == 1:
            unit = unit_of(X, axis=0)
            centre, scale = (
                unit * (X / unit).mean(axis=0),
                unit * (X / unit).std(axis=0),
            )
            # The scale of a column that is constant up to rounding is one.
            constant = scale <= 1e-9 * np.maximum(np.abs(centre), 1e-300)
            return cls(shape, False, centre, np.where(constant, 1.0, scale))
        if X.dtype == np.uint8:
            return cls(shape, True, [0.0], [255.0])
        low, high = float(X.min()), float(X.max())
        return cls(shape, False, [low], [high - low if high > low else 1.0])

    def tensor(self, X):
        """X as a tensor of shape (n, *shape): bytes as they are, other numbers
        scaled."""
        if not self.is_table and self.bytes != (X.dtype == np.uint8):
            want, got = (
                ("uint8", str(X.dtype)) if self.bytes else ("floating-point", "uint8")
            )
            raise ValueError(f"X must hold {want} images, as those of fit. Got {got}.")
        if self.is_table or not self.bytes:
            low, high = (-self.limit, self.limit) if self.is_table else (0.0, 1.0)
            X = (
                ((X.astype(float) - self.centre) / self.scale)
                .clip(low, high)
                .astype(np.float32)
            )
        if not self.is_table:
            channels, height, width = self.shape
            X = X.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray(X))

    @staticmethod
    def unit(batch):
        """A batch of a tensor as floats: all rows as floats would take four times the
        memory."""
        return batch.float() / 255.0 if batch.dtype == torch.uint8 else batch


@hidden_entries("X")
def read_examples(estimator, X, reset):
    """Validated X: an array of finite numbers of two or more dimensions.

    `n_features_in_` is the number of entries of an example of any shape.
    """
    if isinstance(X, (list, tuple)) or getattr(X, "ndim", 2) > 2:
        X = np.asarray(X)  # also of HDF5 data sets, which have no reshape
    shape = X.shape if getattr(X, "ndim", 2) > 2 else None
    if shape is not None:
        X = X.reshape(shape[0], int(np.prod(shape[1:])))
    X = validate_data(
        estimator, X, reset=reset, dtype="numeric", ensure_min_samples=1 + reset
    )
    return X if shape is None else X.reshape(shape)
