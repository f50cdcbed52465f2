"""Games: utilities of coalitions of rows, or of groups of rows.

Every game has a method ``utility(masks)``, where each row of the bool array is a
coalition, and the attributes `n_players`, `empty_utility`, `solver`, `n_evaluations`,
`n_failed` and `n_one_class`; see `Game`.
"""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
