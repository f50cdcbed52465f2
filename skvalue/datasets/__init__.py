"""Data sets with known faults: noise put into labels or features, and loaders of benchmarks."""

from ._loaders import fetch_benchmark
from ._noise import flip_labels, perturb_features

__all__ = ["fetch_benchmark", "flip_labels", "perturb_features"]
