"""Noise for labels and features, with a record of the noisy rows, and benchmark data
sets."""

from ._loaders import fetch_benchmark
from ._noise import flip_labels, perturb_features

__all__ = ["fetch_benchmark", "flip_labels", "perturb_features"]
