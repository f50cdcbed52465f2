"""FAISS on a simulated GPU: the names of its GPU build, over the build for CPUs.

It takes and returns tensors of the simulated device of tests/simulated_gpu.py, and
counts what is made, searched and multiplied. Products are sums of one term after the
other with fused multiplications in float32, as on a card, whose errors are larger than
those of a CPU. What it cannot show is memory, speed, and how the real one aborts.
"""

from dataclasses import dataclass, field

import faiss
import numpy as np
import torch

from . import simulated_gpu

LARGEST_K = 2048


def card_products(left, right):
    """Inner products of all pairs, one term after the other, in float32.

    The product of two float32 numbers is exact in float64, so that each step is rounded
    once, as a fused multiplication and addition.
    """
    total = np.zeros((len(left), len(right)), dtype=np.float32)
    for x, q in zip(left.T.astype(np.float64), right.T.astype(np.float64)):
        total = (total + x[:, None] * q).astype(np.float32)
    return total


@dataclass
class Card:
    """What FAISS did on the simulated card.

    ``out_of_memory`` is the number of calls that still fail for lack of memory.
    """

    temporary: list = field(default_factory=list)
    searches: list = field(default_factory=list)
    products: list = field(default_factory=list)
    indices: list = field(default_factory=list)
    out_of_memory: int = 0
    resources: type = object

    def checked(self, *tensors):
        """The tensors of the CPU behind those of the card, which are refused if FAISS
        would refuse them."""
        if self.out_of_memory:
            self.out_of_memory -= 1
            raise RuntimeError("Error: 'err == cudaSuccess' failed: out of memory")
        arrays = []
        for tensor in tensors:
            assert isinstance(tensor, simulated_gpu.OnDevice)
            assert tensor.dtype == torch.float32
            assert tensor.inner.is_contiguous()
            arrays.append(tensor.inner.numpy())
        return arrays

    def products_of(self, resources, left, right, metric):
        assert isinstance(resources, self.resources)
        assert metric == faiss.METRIC_INNER_PRODUCT
        self.products.append((len(left), len(right)))
        return self.on_card(card_products(*self.checked(left, right)), left)

    def nearest(self, resources, queries, rows, k, metric):
        assert isinstance(resources, self.resources)
        assert k <= LARGEST_K
        self.searches.append((len(queries), k))
        q, x = self.checked(queries, rows)
        scores = card_products(q, x)
        if metric == faiss.METRIC_L2:
            norms = [np.vecdot(part, part).astype(np.float32) for part in (q, x)]
            scores = norms[0][:, None] + norms[1] - 2 * scores
        order = np.argsort(
            scores if metric == faiss.METRIC_L2 else -scores, axis=1, kind="stable"
        )[:, :k]
        scores = np.take_along_axis(scores, order, axis=1)
        return self.on_card(scores, queries), self.on_card(order, queries)

    def on_card(self, array, like):
        return simulated_gpu.OnDevice(
            torch.from_numpy(np.ascontiguousarray(array)), like.gpu
        )

    def index(self, resources, gpu, index):
        assert isinstance(resources, self.resources)
        moved = StrictIndex(index)
        self.indices.append(moved)
        return moved


class StrictIndex:
    """An index as on a GPU.

    It searches for few neighbours in few groups, and within no range.
    """

    max_groups = 2048

    def __init__(self, index):
        self.index = index
        self.nlist = getattr(index, "nlist", None)
        self.nprobe = getattr(index, "nprobe", None)

    def search(self, queries, k):
        assert k <= LARGEST_K
        if self.nlist:
            assert self.nprobe <= self.max_groups
            self.index.nprobe = self.nprobe
        return self.index.search(queries, k)


def install(monkeypatch):
    """Let faiss see one simulated GPU; returns the `Card` that counts."""
    card = Card()

    class StandardGpuResources:
        def setTempMemory(self, size):
            card.temporary.append(size)

    card.resources = StandardGpuResources

    def pairwise_distance_gpu(res, xq, xb, D=None, metric=faiss.METRIC_L2):
        return card.products_of(res, xq, xb, metric)

    def knn_gpu(res, xq, xb, k, D=None, I=None, metric=faiss.METRIC_L2):  # noqa: E741
        return card.nearest(res, xq, xb, k, metric)

    names = {
        "get_num_gpus": lambda: 1,
        "StandardGpuResources": StandardGpuResources,
        "pairwise_distance_gpu": pairwise_distance_gpu,
        "knn_gpu": knn_gpu,
        "index_cpu_to_gpu": card.index,
    }
    for name, value in names.items():
        monkeypatch.setattr(faiss, name, value, raising=False)
    return card
