"""Errors of values of private rounds: trainings are simulated with other noise."""

from dataclasses import dataclass, replace

import numpy as np

from ...derivatives import HalvedMoments, denoised_means, pooled, pooled_variances
from ...privacy import clip_rows

N_ERROR_DRAWS = 30  # simulated trainings

# Simulated trainings for a warning, of few players and of many, and their permutations
# in a round.
_N_ROUGH_DRAWS = (4, 2)
_MANY = 20
_N_ROUGH_PERMUTATIONS = 4


@dataclass(frozen=True, eq=False)
class ReleasedRounds:
    """What the rounds of a private training made public: its errors follow.

    Parameters
    ----------
    noise_std : ndarray of shape (n_players,)
        Standard deviations of the noise of one release of each player.
    clip : float
        Bound of the norm of updates.
    thetas : tuple of ndarray of shape (p,)
        Parameters before each round.
    means : tuple of ndarray of shape (p,)
        Mean of the releases of each round.
    sums : ndarray of shape (n_players, p) or None
        Sum of the releases of each player.
    attendance : tuple of (ndarray, ndarray)
        Of each round, the numbers of the players that took part, and their weights.
    """

    noise_std: np.ndarray
    clip: float
    thetas: tuple = ()
    means: tuple = ()
    sums: np.ndarray | None = None
    attendance: tuple = ()

    def plus(self, theta, released, weights, present):
        """With one more round, as in `Rounds.add`."""
        sums = self.sums
        if sums is None:
            sums = np.zeros((len(self.noise_std), len(theta)))
        sums = sums.copy()
        sums[present] += released
        return replace(
            self,
            thetas=(*self.thetas, np.array(theta)),
            means=(*self.means, np.mean(released, axis=0)),
            sums=sums,
            attendance=(*self.attendance, (present, weights)),
        )


class Simulation:
    """Trainings as the released one, of parties as they seem to be.

    The update of a party is a common one plus a deviation that is the same in all
    rounds, both estimated from what was released.

    Parameters
    ----------
    rounds : Rounds
        The rounds that were released, with their utilities.
    gradient : callable, default=None
        Gradient (p,) of public rows, for parameters (p,): common updates are minus it.
        By default they are the means of the releases of a round, shrunk to zero as far
        as they are noise, for any parameters.
    """

    def __init__(self, rounds, gradient=None):
        self._rounds = rounds
        self._gradient = gradient
        released = rounds.released
        n_rounds = np.zeros(len(released.noise_std))
        sums = released.sums.copy()
        for t, (present, _) in enumerate(released.attendance):
            n_rounds[present] += 1
            sums[present] -= self._common_update(t, released.thetas[t])

        # Players without an update are like the others.
        is_known = n_rounds > 0
        self._deviations = np.zeros_like(sums)
        self._deviations[is_known] = denoised_means(
            sums[is_known] / n_rounds[is_known, None],
            released.noise_std[is_known] ** 2 / n_rounds[is_known],
            start=np.zeros(sums.shape[1]),
        )

    def errors(self, n_draws=N_ERROR_DRAWS):
        """Standard errors (n_players,): distances from the training without noise."""
        exact = self._values(None)
        changes = HalvedMoments()
        for seed in np.random.SeedSequence(0).spawn(n_draws):
            changes = changes.plus(self._values(np.random.default_rng(seed)) - exact)
        variances = pooled_variances(changes, self._kinds())
        squared_bias = changes.mean() ** 2 - variances / n_draws
        return np.sqrt(variances + np.maximum(squared_bias, 0.0))

    def rough_errors(self):
        """As `errors`, from a few trainings with few permutations: it costs little."""
        n_permutations = self._rounds.options["n_permutations"]
        options = {
            **self._rounds.options,
            "n_permutations": min(n_permutations, _N_ROUGH_PERMUTATIONS),
        }
        exact = self._values(None, options)
        squares = np.zeros(len(exact))
        n_draws = _N_ROUGH_DRAWS[len(exact) >= _MANY]
        for seed in np.random.SeedSequence(0).spawn(n_draws):
            values = self._values(np.random.default_rng(seed), options)
            squares += (values - exact) ** 2 / n_draws
        return np.sqrt(pooled(squares, self._kinds()))

    def _kinds(self):
        """Noise (n_players,) in the steps of players: errors of equals are pooled."""
        released = self._rounds.released
        kinds = released.noise_std.copy()
        for present, weights in released.attendance:
            kinds[present] = released.noise_std[present] * weights
        return kinds

    def _common_update(self, t, theta):
        """Common update (p,) of the players in round t, at parameters (p,)."""
        if self._gradient is not None:
            return -self._gradient(theta)
        released = self._rounds.released
        mean = released.means[t]
        present, _ = released.attendance[t]
        variance = np.sum(released.noise_std[present] ** 2) / len(present) ** 2
        square = max(mean @ mean, np.finfo(float).tiny)
        return max(0.0, 1 - len(mean) * variance / square) * mean

    def _values(self, rng, options=None):
        """Values (n_players,) of a training; without noise if there is no generator."""
        released = self._rounds.released
        rounds = self._rounds.restarted(options or self._rounds.options)
        if rng is None:
            # Without noise, updates are not averaged.
            ones = np.ones(len(rounds.newest_weights))
            rounds = replace(rounds, newest_weights=ones)
        theta = released.thetas[0]
        with np.errstate(over="ignore", invalid="ignore"):
            for t, (present, weights) in enumerate(released.attendance):
                updates = self._common_update(t, theta) + self._deviations[present]
                updates = clip_rows(updates, released.clip)
                if rng is not None:
                    noise = rng.standard_normal(updates.shape)
                    updates = updates + released.noise_std[present, None] * noise
                rounds = rounds.add(theta, updates, weights, present)
                theta = theta + rounds.step
        values, _, _ = rounds.result()
        return values
