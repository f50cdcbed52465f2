"""Noise for labels and features, with a mask of the noisy rows, and benchmark data."""

from ._loaders import fetch_benchmark
from ._noise import flip_labels, perturb_features

__all__ = ["fetch_benchmark", "flip_labels", "perturb_features"]
