"""Influence: the estimated decrease of a trained model's utility without a row."""

from ._valuer import InfluenceValuer
