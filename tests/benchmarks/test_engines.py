"""Engines against the float32 product on the device that they use.

    pytest tests/benchmarks/test_engines.py -m bench -s

prints the ratios on the CPU, and on a GPU where torch sees one.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

from .compare import rows, texts

pytestmark = pytest.mark.bench


class Method(NamedTuple):
    """A valuer for d columns, and limits of its time over the product."""

    make: Callable
    cpu_limit: float
    gpu_limit: float


METHODS = {
    "KNN": Method(lambda d: KNNShapleyValuer(5), 500, 4),
    "KNN, max_rank=50": Method(lambda d: KNNShapleyValuer(5, max_rank=50), 50, 4),
    "TKNN": Method(lambda d: TKNNShapleyValuer(0.9 if d > 32 else 0.6), 60, 1.5),
}


@pytest.mark.parametrize("d", [32, 512])
@pytest.mark.parametrize("engine", ["native", "torch", "faiss"])
@pytest.mark.parametrize("method", METHODS)
def test_fit_on_a_cpu_against_the_product(method, engine, d, ratio):
    if engine != "native":
        pytest.importorskip(engine)
    if engine == "faiss" and method == "KNN":
        pytest.skip(
            "FAISS searches for few neighbours; a search for all rows takes minutes"
        )
    data = rows(20_000, 500, d)
    valuer = METHODS[method].make(d).set_params(engine=engine, device="cpu")
    out = np.empty((500, 20_000), dtype=np.float32)
    ratio(
        f"{method} by {engine}, d={d}, over X_val @ X.T",
        partial(valuer.fit, **data),
        partial(np.matmul, data["X_val"], data["X"].T, out=out),
        METHODS[method].cpu_limit,
        rounds=3,
    )


@pytest.mark.parametrize("name", ["KNN", "TKNN"])
def test_fit_of_sparse_rows_against_their_product(name, ratio):
    data = texts(20_000, 500)
    valuer = METHODS[name].make(512).set_params(metric="cosine")
    ratio(
        f"{name} of sparse rows, over their sparse product",
        partial(valuer.fit, **data),
        lambda: (data["X"] @ data["X_val"].T.tocsr()).toarray(),
        100,  # the product of thin rows is cheap; sorting them is not
        rounds=3,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("gpu", ["cuda"], indirect=True)
@pytest.mark.parametrize("method", ["KNN", "TKNN"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_fit_of_a_million_rows_on_a_gpu_against_the_product(method, metric, gpu, ratio):
    """1,000,000 rows, 10,000 points, d = 512, in float32, the rows on the device.

    The product writes no more than a tile at a time, as the engines do. What a fit does
    on the CPU (finiteness, norms, copying the rows to the device) is in its time, and
    printed apart.
    """
    import torch

    n = 1_000_000
    n_val = 10_000
    d = 512
    data = rows(n, n_val, d)
    valuer = METHODS[method].make(d).set_params(metric=metric, device="cuda")
    if method == "TKNN":
        valuer.set_params(radius={"cosine": 0.9, "euclidean": 31.0}[metric])
    torch.set_float32_matmul_precision("highest")
    X = torch.from_numpy(data["X"]).cuda()
    X_val = torch.from_numpy(data["X_val"]).cuda()
    out = torch.empty((1000, n), dtype=torch.float32, device="cuda")

    def product():
        for start in range(0, n_val, 1000):
            torch.mm(X_val[start : start + 1000], X.T, out=out)
        torch.cuda.synchronize()

    fit = partial(valuer.fit, **data)
    total = ratio(
        f"{method} {metric}, fit, over the product", fit, product, np.inf, rounds=3
    )
    # The part that does not grow with the points.
    few_points = {"X_val": data["X_val"][:10], "y_val": data["y_val"][:10]}
    start_up = ratio(
        f"{method} {metric}, fit of 10 points",
        partial(fit, **few_points),
        product,
        np.inf,
        rounds=3,
    )
    limit = METHODS[method].gpu_limit
    assert total - start_up <= limit, (
        f"{total - start_up:.2f} x the product; limit {limit}"
    )
