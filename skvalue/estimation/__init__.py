"""Estimation of semivalues of a game from the utilities of some of its coalitions.

A design requests coalitions, receives their utilities and keeps running sums of them::

    design = make_design("antithetic", "shapley", game.n_players, seed=0)
    design.limit = 1000
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))

Coalitions come in blocks. Each block has its own random numbers (a `SeedSequence` keyed by game and
block), and blocks are added in order, so that results are bitwise identical for any number and
kind of workers, and after an interruption.
"""

from .adjust import FEWEST, Adjustment
from .checkpoint import Checkpoint, read_arrays
from .designs import SAMPLERS, choose_sampler, make_design
from .intervals import bernstein_halfwidth, decided, t_halfwidth
from .orders import OrderDesign
from .run import Run, combine
from .stopping import Stopping, default_evaluations
from .subsets import SUBSETS
