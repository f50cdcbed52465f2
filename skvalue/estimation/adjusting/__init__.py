"""Control variates: functions of coalitions whose expectations are known exactly.

A utility is regressed on features x(S) of its coalition S, and the mean of ``v(S) -
x(S)'beta`` is estimated in its place; the expectation of ``x(S)'beta`` in every stratum
of sizes, given that a player is in S or not, is added back exactly::

    controls = make_controls(strata, codes=y, components=X)
    described = controls.describe(masks)
    x = controls.block(described[labels == k], k)  # features of a stratum
    inside, outside = controls.expected(beta)  # each (n_strata, n_players, n_fits)

A design keeps its coalitions as `Coalitions`, and calls `adjusted_moments`, which does
all this.
"""

from ._adjust import FEWEST, Adjustment, adjusted_moments, refit_due
from ._coalitions import Coalitions
from ._controls import KINDS, Controls, make_controls
from ._folds import assign_folds, other_folds, sum_by_fold
from ._rows import ranked_rows, standard_components
