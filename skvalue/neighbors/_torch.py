"""The torch engine: exact ranks and balls on a CPU or a GPU. Imports torch."""

import torch

from .._utils.torch_device import find_device
from ._device import DeviceEngine


def make_engine(name, device):
    """Return the engine on a device, see `find_device`."""
    return TorchEngine(find_device(device))


class TorchEngine(DeviceEngine):
    """Products by torch, in the dtype of X."""

    name = "torch"

    def _product_dtype(self, space):
        return space.X.dtype

    def _fill_keys(self, keys, half, queries, block):
        torch.addmm(half, queries, block.T, alpha=-1, out=keys)

    def _scores(self, half, block, queries):
        return torch.addmm(half[:, None], block, queries.T, beta=-1)

    def _nearest(self, space, queries, k):
        return None
