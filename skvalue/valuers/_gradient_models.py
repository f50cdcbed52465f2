"""Models that are walked through parties, one gradient step a party."""

from typing import Protocol, runtime_checkable

__all__ = ["GradientModel"]


@runtime_checkable
class GradientModel(Protocol):
    """A model, the rows of its players and its public test points, ready to be walked.

    A walk starts at `initial`, takes one step ``theta - learning_rate * g`` a player, and asks for
    the utilities of all parameters on the way at once. Parameters and gradients are flat float64
    arrays on the CPU, whatever the model computes on.

    Attributes
    ----------
    n_parameters : int
        Number of trained parameters, p.
    n_players : int
        Number of parties.
    """

    n_parameters: int
    n_players: int

    def initial(self, rng):
        """Parameters that a walk starts from.

        Parameters
        ----------
        rng : numpy.random.Generator
            The permutation's own generator; the same state gives the same parameters. It depends
            on no row.

        Returns
        -------
        theta : ndarray of shape (p,)
            The parameters.
        """

    def gradient(self, theta, player):
        """Clipped gradient of a player's loss.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            Where.
        player : int
            Whose.

        Returns
        -------
        gradient : ndarray of shape (p,)
            With unit "party", the mean gradient of the player's rows, clipped; with "example", the
            mean of its rows' clipped gradients. A norm of at most ``clip`` (unless that is None).
            What is not finite is handed on: the walk refuses it, with the player's name.
        """

    def utilities(self, thetas):
        """Utilities of many parameters on the public test points.

        Parameters
        ----------
        thetas : ndarray of shape (T, p)
            The parameters; T is what `working_memory` allows.

        Returns
        -------
        utilities : ndarray of shape (T,)
            Means over the test points; higher is better.
        """
