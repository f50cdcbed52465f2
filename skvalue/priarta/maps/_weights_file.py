"""Arrays of a buyer's model in one file without pickle: safetensors for networks, else npz.

safetensors is installed with the extra "torch", which networks need; other maps need only numpy.
"""

import os

import numpy as np
from numpy.lib.npyio import NpzFile

from ..._utils.untrusted import refuse_no_file

_NETWORK, _PLAIN = "weights.safetensors", "weights.npz"


def weights_file(arrays, network):
    """Name and content of the file of named arrays; `network` selects safetensors."""
    if network:
        return _NETWORK, _safetensors().save(arrays)
    return _PLAIN, lambda file: np.savez(file, **arrays)


def load_weights(folder, network):
    """Read named arrays from an untrusted folder; `network` as in `weights_file`.

    The arrays are together no larger than the file.
    """
    name = _NETWORK if network else _PLAIN
    read, path = _safetensors().load_file if network else _load_npz, os.path.join(folder, name)
    refuse_no_file(path, name)
    try:
        return read(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file can raise anything
        kind = "a safetensors file" if network else "an uncompressed npz file of numbers"
        raise ValueError(f"{name} must be {kind}. Got {error}.") from None


def _load_npz(path):
    with open(path, "rb") as file, NpzFile(file, allow_pickle=False) as arrays:
        # A small compressed file could fill the memory.
        size = sum(part.file_size for part in arrays.zip.infolist())
        if size > os.path.getsize(path):
            raise ValueError(f"{size} bytes in fewer")
        return {name: arrays[name] for name in arrays.files}


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            "A buyer's folder with a network needs safetensors: pip install 'skvalue[torch]' (or "
            "safetensors)."
        ) from None
    return safetensors.numpy
