"""Games: utilities of coalitions of rows, or of groups of rows.

Every game has a method ``utility(masks)``, where each row of the bool array is a coalition, and the
attributes `n_players`, `empty_utility`, `solver`, `n_evaluations`, `n_failed` and
`n_one_class`; see `Game`.
"""

from ..privacy import clip_rows
from ._known import airport_game, gloves_game, voting_game
from ._marginals import MarginalGame
from ._model import ModelGame
from ._protocol import FunctionGame, Game
from ._protocol import failed_warnings as failed_warnings
from ._stable import StableLogisticGame, stability, validation_bounds
from ._stable import weight_norm as weight_norm
from ._training import check_takes_weights as check_takes_weights
from ._training import seeded as seeded
from .solvers import check_scorer as check_scorer
from .solvers import has_solver as has_solver
from .solvers import on_all_rows as on_all_rows
from .solvers import train as train

__all__ = [
    "FunctionGame",
    "Game",
    "MarginalGame",
    "ModelGame",
    "StableLogisticGame",
    "airport_game",
    "clip_rows",
    "gloves_game",
    "stability",
    "validation_bounds",
    "voting_game",
]
