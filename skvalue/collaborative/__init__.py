"""Parties who release noisy statistics once, and a mediator who values and rewards them."""

from .parties import GramRelease, LogisticRelease, MeanRelease
from .release import Release

__all__ = ["GramRelease", "LogisticRelease", "MeanRelease", "Release"]
