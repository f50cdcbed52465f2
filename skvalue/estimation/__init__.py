"""Estimation of semivalues of a game from the utilities of some of its coalitions.

A design asks for coalitions, is told their utilities, and adds them up::

    design = make_design("antithetic", "shapley", game.n_players, seed=0)
    design.limit = 1000
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))

Coalitions come in blocks, each with random numbers of its own (a `SeedSequence` keyed by game and
block) and added up in the order of blocks, so that neither the number of workers, nor what runs
them, nor where a computation was interrupted changes a bit of the result.
"""

from .checkpoint import Checkpoint, read_arrays
from .designs import SAMPLERS, choose_sampler, make_design
from .intervals import bernstein_halfwidth, decided, t_halfwidth
from .orders import OrderDesign
from .run import Run, combine
from .stopping import Stopping, default_evaluations
from .subsets import SUBSETS
