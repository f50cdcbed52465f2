"""Games: what a coalition of rows, or of groups of rows, is worth.

Every game has ``utility(masks)``, the utilities of coalitions given as rows of a bool array, and
`n_players`, `empty_utility`, `solver`, `n_evaluations`, `n_failed`; see `Game`.
"""

from ..privacy import clip_rows
from ._known import airport_game, gloves_game, voting_game
from ._model import ModelGame
from ._protocol import FunctionGame, Game
from ._stable import StableLogisticGame, stability
from ._training import check_takes_weights as check_takes_weights
from .solvers import check_scorer as check_scorer
from .solvers import train as train

__all__ = [
    "FunctionGame",
    "Game",
    "ModelGame",
    "StableLogisticGame",
    "airport_game",
    "clip_rows",
    "gloves_game",
    "stability",
    "voting_game",
]
