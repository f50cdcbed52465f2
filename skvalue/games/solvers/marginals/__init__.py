"""What every player of a game of retraining adds to a coalition."""

from .game import MarginalGame

__all__ = ["MarginalGame"]
