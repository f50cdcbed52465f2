"""Semivalues from the marginal contributions of all players to random coalitions.

One model of a coalition tells, to second order, what every player adds to it. A design
draws the coalitions; `contributions` asks a game for them, and corrects them by models
that are trained for some players::

    design = MarginalDesign(q, game.n_trained, game.smooth, seed=0)
    answers = [contributions(game, mask, rng) for mask in design.ask()]
    design.tell(np.stack(answers, axis=1))

The game has the methods `trained`, `steps`, `utilities` and `work`, and the attributes
`n_trained`, `n_players`, `exact` and `smooth`, as `skvalue.games.MarginalGame`.
"""

from ._corrections import contributions, corrections, draw_players
from ._design import MarginalDesign
from ._pilot import pilot_variances
