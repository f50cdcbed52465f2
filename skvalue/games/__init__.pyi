"""Games: utilities of coalitions of rows, or of groups of rows."""

from ..privacy import clip_rows as clip_rows
from ._known import airport_game as airport_game
from ._known import gloves_game as gloves_game
from ._known import voting_game as voting_game
from ._model import ModelGame as ModelGame
from ._protocol import FunctionGame as FunctionGame
from ._protocol import Game as Game
from ._protocol import failed_warnings, underflow_warnings
from ._stable import StableLogisticGame as StableLogisticGame
from ._stable import stability as stability
from ._stable import validation_bounds as validation_bounds
from ._stable import weight_norm
from ._training import check_takes_weights, seeded
from .solvers import MarginalGame as MarginalGame
from .solvers import check_scorer, has_solver, on_all_rows, train
