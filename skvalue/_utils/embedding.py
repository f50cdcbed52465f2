"""Embeddings: from texts, images or columns to vectors that have distances."""

import math
import sys
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from .containers import as_numpy
from .sklearn import num_samples, safe_indexing, validated

_BATCH = 1024  # initial number of rows per call of a torch module


def _is_module(embedding):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(embedding, torch.nn.Module)


def is_auto(embedding):
    """Whether an embedding is "auto", which encodes rows by what they hold."""
    return isinstance(embedding, str) and embedding == "auto"


def learns_from_rows(embedding):
    """Whether an embedding is a transformer that is neither stateless nor frozen.

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> embeddings = PCA(), HashingVectorizer(), np.fft.rfft
    >>> [learns_from_rows(embedding) for embedding in embeddings]
    [True, False, False]
    >>> learns_from_rows("auto")
    True
    """
    if is_auto(embedding):
        return True
    if not hasattr(embedding, "transform") or isinstance(embedding, FrozenEstimator):
        return False
    return get_tags(embedding).requires_fit


def fit_embedding(embedding, X, y, *, all_words=False):
    """Return the embedding ready for `embed`: a transformer is cloned and fitted on X.

    The clone of a frozen transformer is the transformer itself, and fitting it has no
    effect. "auto" is a `RowEncoder`, of which `all_words` is a parameter.
    """
    if is_auto(embedding):
        # It needs pandas, which other embeddings do not.
        from .row_encoder import RowEncoder

        return RowEncoder(all_words).fit(X)
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
    # The names of columns are those of the rows, not of their vectors.
    if hasattr(vectors, "columns") and hasattr(vectors, "to_numpy"):
        vectors = vectors.to_numpy()
    vectors = as_numpy(vectors)
    if not (sparse.issparse(vectors) or hasattr(vectors, "columns")):
        vectors = np.asarray(vectors)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if vectors.ndim != 2 or vectors.shape[0] != n:
        raise ValueError(
            f"embedding must return one vector for every row of {name}, an array of "
            f"shape ({n}, n_components). Got shape {vectors.shape}."
        )
    return vectors


def embed_private(embedding, X, points):
    """Vectors as by `embed`, of private rows; NaN for those that it refuses.

    An error or a warning would tell that there is such a row. Another row takes its
    place, so that the others are embedded in as many rows as they would be without it.

    embedding : from `fit_embedding`; it maps each row by itself
    X : n private rows
    points : public rows, whose vectors have as many components, or None
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return embed(embedding, X)
        except Exception:
            return _embed_others(embedding, X, points)


def _embed_others(embedding, X, points):
    """As `embed_private`, of rows of which the embedding refuses some."""
    n_rows = num_samples(X)
    refused = _refused_rows(embedding, X, np.arange(n_rows))
    if len(refused) == n_rows:
        # If the points are refused, too, it is because of the columns.
        n_components = embed(embedding, X if points is None else points).shape[1]
        return np.full((n_rows, n_components), np.nan)
    is_refused = np.zeros(n_rows, dtype=bool)
    is_refused[refused] = True
    another = np.flatnonzero(~is_refused)[0]
    order = np.where(is_refused, another, np.arange(n_rows))
    vectors = embed(embedding, safe_indexing(X, order))
    if sparse.issparse(vectors):
        vectors = sparse.lil_array(vectors, dtype=np.result_type(vectors.dtype, "f4"))
        vectors[refused, 0] = np.nan
        return vectors.tocsr()
    vectors = np.array(vectors, dtype=np.result_type(vectors.dtype, "f4"))
    vectors[refused] = np.nan
    return vectors


def _refused_rows(embedding, X, rows):
    """Which of some rows an embedding refuses, found by halves."""
    if not len(rows):
        return rows
    try:
        embed(embedding, safe_indexing(X, rows))
    except Exception:
        if len(rows) == 1:
            return rows
        halves = np.array_split(rows, 2)
        return np.concatenate([_refused_rows(embedding, X, half) for half in halves])
    return rows[:0]


def through_module(module, X, floats=False):
    """Flattened outputs (n, n_components) of a torch module for n rows, in batches.

    The module is in evaluation mode meanwhile, and left unchanged. Floats, and integers
    too if `floats`, are cast to the dtype of its first floating-point parameter.
    Batches are halved when the device runs out of memory.
    """
    import torch

    from .torch_device import default_settings

    if hasattr(X, "columns") or not hasattr(X, "shape"):
        X = np.asarray(X)
    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else None
    dtypes = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]

    def vectors_of(batch):
        if not isinstance(batch, torch.Tensor):
            batch = torch.from_numpy(np.array(batch))
        dtype = batch.dtype
        if dtypes and (floats or batch.is_floating_point()):
            dtype = dtypes[0]
        vectors = module(batch.to(device, dtype))
        if not isinstance(vectors, torch.Tensor):
            raise TypeError(
                "embedding must return a tensor with a vector for every row. Got "
                f"{type(vectors).__name__} from {type(module).__name__}: wrap the "
                "module in one that returns the tensor alone."
            )
        if vectors.dtype != torch.float64:
            vectors = vectors.float()
        vectors = torch.atleast_1d(vectors)
        n_components = math.prod(vectors.shape[1:])
        return vectors.cpu().numpy().reshape(len(vectors), n_components)

    modes = [(submodule, submodule.training) for submodule in module.modules()]
    module.eval()
    n = X.shape[0]
    n_batches = max(1, math.ceil(n / _BATCH))
    size = math.ceil(n / n_batches)
    start = 0
    vectors = []
    try:
        with default_settings(), torch.no_grad():
            # No rows are one batch, which tells the number of components.
            while start < n or not vectors:
                try:
                    vectors.append(vectors_of(X[start : start + size]))
                    start += size
                except torch.OutOfMemoryError:
                    if size <= 1:
                        raise
                    size = math.ceil(size / 2)
    finally:
        for submodule, mode in modes:
            submodule.training = mode
    return np.concatenate(vectors)
