"""Judging values: numbers here, matplotlib displays in files of their own."""

from ._scores import noisy_label_auc

__all__ = ["noisy_label_auc"]
