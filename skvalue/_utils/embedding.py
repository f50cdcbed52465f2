"""Embeddings map texts, images or columns to the vectors between which distances are
computed."""

import sys

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from .sklearn import validated

_BATCH = 1024  # initial number of rows per call of a torch module


def _is_module(embedding):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(embedding, torch.nn.Module)


def learns_from_rows(embedding):
    """Whether an embedding is fitted on the rows: a transformer neither stateless nor
    frozen.

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> [learns_from_rows(embedding) for embedding in (PCA(), HashingVectorizer(), np.fft.rfft)]
    [True, False, False]
    """
    if not hasattr(embedding, "transform") or isinstance(embedding, FrozenEstimator):
        return False
    return get_tags(embedding).requires_fit


def fit_embedding(embedding, X, y):
    """Return the embedding ready for `embed`: a transformer is cloned and fitted on X.

    The clone of a frozen transformer is the transformer itself, and fitting it has no
    effect.
    """
    if hasattr(embedding, "transform") and not _is_module(embedding):
        with validated():
            return clone(embedding).fit(X, y)
    return embedding


def embed(embedding, X, name="X"):
    """Vectors (n, n_components) of n rows by an embedding from `fit_embedding`.

    Raises ValueError, in which `name` stands for X, unless there is one vector per row.
    """
    if _is_module(embedding):
        vectors = through_module(embedding, X)
    elif hasattr(embedding, "transform"):
        vectors = embedding.transform(X)
    else:
        vectors = embedding(X)
    if hasattr(vectors, "columns") and hasattr(vectors, "to_numpy"):
        vectors = (
            vectors.to_numpy()
        )  # names are those of the rows, not of their vectors
    if not (sparse.issparse(vectors) or hasattr(vectors, "columns")):
        vectors = np.asarray(vectors)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if vectors.ndim != 2 or vectors.shape[0] != n:
        raise ValueError(
            f"embedding must return one vector for every row of {name}, an array of shape "
            f"({n}, n_components). Got shape {vectors.shape}."
        )
    return vectors


def through_module(module, X, floats=False):
    """Flattened outputs (n, n_components) of a torch module, in evaluation mode and in
    batches.

    Floats, and integers too if `floats`, are cast to the dtype of the module's first
    floating-point parameter. Batches are halved when the device runs out of memory; the
    module is left unchanged.
    """
    import torch

    from .torch_device import default_settings

    X = X if hasattr(X, "shape") and not hasattr(X, "columns") else np.asarray(X)
    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else None
    dtype = next(
        (tensor.dtype for tensor in tensors if tensor.is_floating_point()), None
    )

    def vectors_of(batch):
        if not isinstance(batch, torch.Tensor):
            batch = torch.from_numpy(np.array(batch))
        keep_dtype = dtype is None or not (floats or batch.is_floating_point())
        vectors = module(batch.to(device, batch.dtype if keep_dtype else dtype))
        vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
        return vectors.cpu().numpy().reshape(len(batch), -1)

    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    n, start, out = X.shape[0], 0, []
    size = -(-n // max(1, -(-n // _BATCH)))
    try:
        with default_settings(), torch.no_grad():
            while start < n:
                try:
                    out.append(vectors_of(X[start : start + size]))
                    start += size
                except torch.OutOfMemoryError:
                    if size == 1:
                        raise
                    size = -(-size // 2)
    finally:
        for part, mode in modes:
            part.training = mode
    return np.concatenate(out)
