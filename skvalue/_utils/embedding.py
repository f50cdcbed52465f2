"""Embeddings: what turns texts, images or columns into the vectors that distances are taken of."""

import sys

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

_BATCH = 1024  # rows that a torch module takes at a time, at first


def _is_module(embedding):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(embedding, torch.nn.Module)


def learns_from_rows(embedding):
    """Whether an embedding would be fitted on the rows: transformers neither stateless nor frozen.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> [learns_from_rows(embedding) for embedding in (PCA(), HashingVectorizer(), np.fft.rfft)]
    [True, False, False]
    """
    if not hasattr(embedding, "transform") or isinstance(embedding, FrozenEstimator):
        return False
    return get_tags(embedding).requires_fit


def fit_embedding(embedding, X, y):
    """Return the embedding ready to be applied: a transformer is cloned and fitted on X.

    (A clone of a frozen transformer is the transformer itself, and fitting it does nothing.)
    """
    if hasattr(embedding, "transform") and not _is_module(embedding):
        return clone(embedding).fit(X, y)
    return embedding


def embed(embedding, X, name="X"):
    """Apply a fitted embedding to rows.

    Parameters
    ----------
    embedding : transformer, torch module or callable
        What `fit_embedding` returned.
    X : array-like of n rows
        Rows of any kind that the embedding takes.
    name : str
        What the message calls them.

    Returns
    -------
    vectors : array-like or sparse matrix of shape (n, n_components)
        The vectors.

    Raises
    ------
    ValueError
        If the embedding does not return one vector a row.
    """
    if _is_module(embedding):
        vectors = through_module(embedding, X)
    elif hasattr(embedding, "transform"):
        vectors = embedding.transform(X)
    else:
        vectors = embedding(X)
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
    """What a torch module returns for rows, in evaluation mode and in batches, flattened.

    Batches are halved where the device runs out of memory.

    Parameters
    ----------
    module : torch.nn.Module
        The module; it stays where it is, and in the modes it was in.
    X : array-like of shape (n, ...)
        Rows. Those of floats come in the precision of the module's first floating parameter.
    floats : bool, default=False
        Whether whole numbers become floats too. Some modules take them as they are: as words.

    Returns
    -------
    vectors : ndarray of shape (n, n_components)
        Float64 if the module is, else float32.
    """
    import torch

    from .torch_device import undisturbed

    X = X if hasattr(X, "shape") and not hasattr(X, "columns") else np.asarray(X)
    own = [*module.parameters(), *module.buffers()]
    device = own[0].device if own else None
    dtype = next((tensor.dtype for tensor in own if tensor.is_floating_point()), None)

    def vectors_of(batch):
        if not isinstance(batch, torch.Tensor):
            batch = torch.from_numpy(np.array(batch))
        as_it_is = dtype is None or not (floats or batch.is_floating_point())
        vectors = module(batch.to(device, batch.dtype if as_it_is else dtype))
        vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
        return vectors.cpu().numpy().reshape(len(batch), -1)

    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    n, start, out = X.shape[0], 0, []
    size = -(-n // max(1, -(-n // _BATCH)))
    try:
        with undisturbed(), torch.no_grad():
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
