"""The approximate FAISS engine: an inverted file, which needs `max_rank`. Imports faiss.

Rows are grouped around centres, and a point is compared with the rows of the nearest groups only:
neighbours near the edge of another group may be missed. Ranks among the rows found are exact.
"""

import faiss
import numpy as np

from ._faiss import FaissEngine, check_device
from .kernels.kinds import COSINE

_PROBED = 8  # one in 8 groups is searched, and at least 16


def make_engine(device):
    """Return the engine on a device, see `_faiss.check_device`."""
    return FaissIVFEngine(check_device(device))


class FaissIVFEngine(FaissEngine):
    """Approximate ranks of the nearest by an inverted file."""

    name = "faiss-ivf"
    most_gpu_groups = 2048  # that a GPU searches

    def _build(self, vectors, kind):
        n, d = vectors.shape
        most = self.most_gpu_groups if self.device == "cuda" else n
        n_groups = int(max(1, min(4 * np.sqrt(n), n // 39, most)))  # faiss wants 39 rows per group
        metric = faiss.METRIC_INNER_PRODUCT if kind == COSINE else faiss.METRIC_L2
        centres = faiss.IndexFlatIP(d) if kind == COSINE else faiss.IndexFlatL2(d)
        index = faiss.IndexIVFFlat(centres, d, n_groups, metric)
        centres.this.disown()
        index.own_fields = True
        index.train(vectors)
        index.add(vectors)
        index.nprobe = min(n_groups, max(16, n_groups // _PROBED))
        return index
