"""Arrays of a buyer's model in one file, without pickle: safetensors for networks, else npz.

Whoever runs a network has safetensors, which comes with the extra "torch"; the other maps must be
readable with numpy alone.
"""

import os

import numpy as np
from numpy.lib.npyio import NpzFile

_NETWORK, _PLAIN = "weights.safetensors", "weights.npz"


def save_weights(folder, arrays, network):
    """Write named arrays to a folder, which is made; `network`: weights of one are among them."""
    write = _safetensors().save_file if network else _save_npz
    os.makedirs(folder, exist_ok=True)
    write(arrays, os.path.join(folder, _NETWORK if network else _PLAIN))


def load_weights(folder, network):
    """Read named arrays from a folder that nobody vouches for.

    Together they are no larger than the file; `network` is as when they were saved.
    """
    name = _NETWORK if network else _PLAIN
    read = _safetensors().load_file if network else _load_npz
    try:
        return read(os.path.join(folder, name))
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged file makes of a reader
        kind = "a safetensors file" if network else "an uncompressed npz file of numbers"
        raise ValueError(f"{name} must be {kind}. Got {error}.") from None


def _save_npz(arrays, path):
    np.savez(path, **arrays)


def _load_npz(path):
    with open(path, "rb") as file, NpzFile(file, allow_pickle=False) as arrays:
        # What is compressed can fill memory from a few bytes.
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
