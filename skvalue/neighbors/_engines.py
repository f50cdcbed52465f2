"""The engines by name; each is imported at its first use, for it may need a library."""

import sys
from importlib import import_module

from .._utils import measured
from ._rows import Rows

ENGINES = {
    "native": "skvalue.neighbors._native",
    "torch": "skvalue.neighbors._torch",
    "faiss": "skvalue.neighbors._faiss",
    "faiss-ivf": "skvalue.neighbors._faiss",
}
# Never chosen by "auto".
APPROXIMATE = {"faiss-ivf"}
DEVICES = {"auto", "cpu", "cuda"}


def get_engine(name, device="auto", n_products=0):
    """Return an engine.

    Parameters
    ----------
    name : {"auto", "native", "torch", "faiss", "faiss-ivf"}
        "auto" is "torch" if device="cuda", else "native", the fastest exact engine on a
        CPU.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine computes. "auto" is the GPU if the engine is given by name,
        supports GPUs and finds one.
    n_products : int, default=0
        Number of multiplications, rows times points times columns. From a measured
        number on "auto" for both is "torch" on a GPU, if there is one. As long as the
        number is not known of any card, it is never.

    Returns
    -------
    engine : object
        The methods are listed in the docstring of this package.

    Raises
    ------
    ImportError
        If the engine's library is not installed; the message contains the pip command.
    ValueError
        If the engine does not support the device.

    Examples
    --------
    >>> from skvalue.neighbors import get_engine
    >>> get_engine("auto").name
    'native'
    """
    if name == "auto" and device == "auto" and _gains_from_gpu(n_products):
        device = "cuda"
    if name == "auto":
        name = "torch" if device == "cuda" else "native"
    if name == "native" and device == "cuda":
        raise ValueError(
            "engine='native' runs on the CPU. Got device='cuda': pass engine='torch'."
        )
    try:
        module = import_module(ENGINES[name])
    except ImportError as error:
        # The extra has the name of the library.
        library = name.partition("-")[0]
        if error.name != library:
            raise
        raise ImportError(
            f"engine={name!r} needs {library}, which is not installed: "
            f"pip install 'skvalue[{library}]'",
            name=library,
        ) from error
    return module.make_engine(name, device)


def _gains_from_gpu(n_products):
    """Whether there is a GPU, on which so many multiplications are faster."""
    if measured.GPU_FROM is None or n_products < measured.GPU_FROM:
        return False
    try:
        from .._utils.torch_device import find_device
    except ImportError:
        return False
    return find_device("auto") != "cpu"


def check_engine(name, device, X, metric):
    """Raise an error if the engine is not installed or does not support X.

    Parameters
    ----------
    name, device : str
        As in `get_engine`.
    X : ndarray or Rows
        The rows.
    metric : str or callable
        The metric.

    Raises
    ------
    ImportError
        If the engine's library is not installed.
    ValueError
        If the engine does not support X or the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import check_engine
    >>> check_engine("native", "cpu", np.zeros((3, 2)), "euclidean")
    """
    engine = get_engine(name, device)
    name = engine.name
    if name.startswith("faiss") and metric not in ("cosine", "euclidean"):
        raise ValueError(
            f"metric must be 'cosine' or 'euclidean' for engine={name!r}, which has no "
            f"other distances. Got {metric!r}."
        )
    if not isinstance(X, Rows):
        return
    if X.is_sparse and name != "native":
        raise ValueError(
            f"engine={name!r} does not take sparse X: pass engine='native'."
        )
    if name.startswith("faiss") and not engine.keeps_on_device:
        raise ValueError(
            f"engine={name!r} takes X in memory. Got rows in a file or a Dask array: "
            "pass engine='native' or 'torch'."
        )


def release_gpu_memory():
    """Free what FAISS has allocated on a GPU; the next search allocates it again.

    FAISS keeps memory of the size of scikit-learn's `working_memory` on each card that
    it has used, until the process ends. Rows that are on a card are freed with the fit
    that uses them.

    Examples
    --------
    >>> from skvalue.neighbors import release_gpu_memory
    >>> release_gpu_memory()
    """
    module = sys.modules.get("skvalue.neighbors._faiss_gpu")
    if module is not None:
        module.forget_resources()
