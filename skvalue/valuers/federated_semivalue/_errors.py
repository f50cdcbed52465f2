"""Errors of values of private rounds: trainings are simulated with other noise."""

from dataclasses import dataclass, replace

import numpy as np

from ...derivatives import HalvedMoments, denoised_means, pooled_variances
from ...privacy import clip_rows
from ...samplers import marginal_masks
from ...semivalues import size_weights

N_ERROR_DRAWS = 30  # simulated trainings

# What a warning is based on: marginal contributions of some players in a few rounds.
# Few players have more draws of the noise.
_N_ROUGH_ROUNDS = 3
_N_ROUGH_PLAYERS = 100
_N_ROUGH_CHANGES = 40  # of all players together
_MAX_ROUGH_DRAWS = 8
_N_ROUGH_CONTRIBUTIONS = 20  # of all players together, in each half


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
        if self.sums is None:
            sums = np.zeros((len(self.noise_std), len(theta)))
        else:
            sums = self.sums.copy()
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
    gradients : callable, default=None
        Gradients (m, p) of public rows, for parameters (m, p): common updates are minus
        them. By default they are the means of the releases of a round, shrunk to zero
        as far as they are noise, for any parameters.
    """

    def __init__(self, rounds, gradients=None):
        self._rounds = rounds
        self._gradients = gradients
        released = rounds.released
        n_rounds = np.zeros(len(released.noise_std))
        sums = released.sums.copy()
        self._common_updates = self._released_common_updates()
        for (present, _), common in zip(released.attendance, self._common_updates):
            n_rounds[present] += 1
            sums[present] -= common

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
        """As `errors`, of equals on average, at the cost of a few rounds.

        In a few of the rounds that count, marginal contributions of some players are
        computed for the training without noise, and for the released one with new noise
        and with its negative. Half the difference of the latter is what the noise of
        the round changes: it averages out over rounds as the noise does. The distance
        of their mean from the training without noise is what noise changes by curvature
        and by other parameters: it does not average out.
        """
        rng = np.random.default_rng(0)
        rounds = self._rounds
        released = rounds.released
        counted = np.arange(rounds.n_skipped, rounds.n_done)
        n_sampled = min(_N_ROUGH_ROUNDS, len(counted))
        centers = (2 * np.arange(n_sampled) + 1) * len(counted) // (2 * n_sampled)
        sampled = counted[centers]
        averages = _averages(rounds, sampled, self._common_updates)
        noiseless_thetas = self._noiseless_thetas(sampled)

        n_players = rounds.n_players
        n_chosen = min(_N_ROUGH_PLAYERS, n_players)
        chosen = np.sort(rng.choice(n_players, n_chosen, replace=False))
        n_draws = int(np.clip(_N_ROUGH_CHANGES // n_players, 1, _MAX_ROUGH_DRAWS))
        shape = (n_draws, *self._deviations.shape)
        noise = averages.draw(shape, rng) * released.noise_std[:, None]

        # Sums over rounds, of two halves of the coalitions.
        odd = np.zeros((n_draws, 2, n_players))
        even = np.zeros((n_draws, 2, n_players))
        for number, t in enumerate(sampled):
            present, weights = released.attendance[t]
            own = np.flatnonzero(np.isin(present, chosen))
            if not len(own):
                continue
            contributions = _Contributions(rounds, weights, own, rng)

            theta = noiseless_thetas[number]
            updates = self._updates(self._common_update(t, theta), present)
            noiseless = contributions(theta, updates[None])

            # Averages of clipped updates are about as long as clipped averages.
            common = averages.common_updates[averages.codes[present], number]
            updates = self._updates(common, present)
            changes = noise[number][:, present]
            noisy = np.concatenate([updates + changes, updates - changes])
            noisy = contributions(released.thetas[t], noisy)
            plus, minus = noisy[:n_draws], noisy[n_draws:]
            odd[:, :, present[own]] += (plus - minus) / 2
            even[:, :, present[own]] += (plus + minus) / 2 - noiseless

        # Products of halves have no square of what differs between coalitions.
        odd *= averages.shrinkage
        squares = (odd.prod(axis=1) + even.prod(axis=1)) / n_sampled**2
        squares = squares.mean(axis=0)[chosen]

        # The errors of other players are as much larger as the noise in their steps is.
        kinds = self._kinds()
        size = np.sqrt(max(squares.mean(), 0.0))
        return kinds * size / np.linalg.norm(kinds[chosen]) * np.sqrt(n_chosen)

    def _kinds(self):
        """Noise (n_players,) in the steps of players: errors of equals are pooled."""
        released = self._rounds.released
        kinds = released.noise_std.copy()
        for present, weights in released.attendance:
            kinds[present] = released.noise_std[present] * weights
        return kinds

    def _released_common_updates(self):
        """Common updates (n_rounds, p) of the players in each round."""
        thetas = np.array(self._rounds.released.thetas)
        if self._gradients is not None:
            return -self._gradients(thetas)
        common_updates = [
            self._common_update(t, theta) for t, theta in enumerate(thetas)
        ]
        return np.array(common_updates)

    def _common_update(self, t, theta):
        """Common update (p,) of the players in round t, at parameters (p,)."""
        if self._gradients is not None:
            return -self._gradients(theta[None])[0]
        released = self._rounds.released
        mean = released.means[t]
        present, _ = released.attendance[t]
        variance = np.sum(released.noise_std[present] ** 2) / len(present) ** 2
        square = max(mean @ mean, np.finfo(float).tiny)
        return max(0.0, 1 - len(mean) * variance / square) * mean

    def _updates(self, common, present):
        """Clipped updates (n_present, p), about: rounding of the norm is left."""
        updates = common + self._deviations[present]
        norms = np.sqrt(np.einsum("ip,ip->i", updates, updates))
        clip = self._rounds.released.clip
        return updates * np.minimum(1.0, clip / np.maximum(norms, clip))[:, None]

    def _noiseless_thetas(self, places):
        """Parameters (p,) before some rounds of a training without noise."""
        theta = self._rounds.released.thetas[0]
        thetas = []
        for t, (present, weights) in enumerate(self._rounds.released.attendance):
            if t in places:
                thetas.append(theta)
                if t == places[-1]:
                    break
            updates = self._updates(self._common_update(t, theta), present)
            theta = theta + self._rounds.rate * (weights @ updates) / weights.sum()
        return thetas

    def _values(self, rng):
        """Values (n_players,) of a training; without noise if there is no generator."""
        released = self._rounds.released
        rounds = self._rounds.restarted()
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


@dataclass(frozen=True, eq=False)
class _Averages:
    """The averages of the updates of players in k rounds, by the rounds they were in.

    Parameters
    ----------
    codes : ndarray of int of shape (n_players,)
        Numbers of the attendances of the players.
    common_updates : ndarray of shape (n_attendances, k, p)
        Averages of the common updates.
    factors : ndarray of shape (n_attendances, k, k)
        Linear maps from k standard normal numbers to the noise in the k averages.
    shrinkage : ndarray of shape (n_players,)
        Noise in the mean of the averages of all rounds that count, over that in the
        mean of these k.
    """

    codes: np.ndarray
    common_updates: np.ndarray
    factors: np.ndarray
    shrinkage: np.ndarray

    def draw(self, shape, rng):
        """Noise of averages, if that of a release has the standard deviation one.

        Its shape is (k, n_draws, n_players, p), the last three of which are given.
        """
        normal = rng.standard_normal((self.factors.shape[1], *shape))
        return np.einsum("ikl,ldip->kdip", self.factors[self.codes], normal)


def _averages(rounds, sampled, common_updates):
    """The `_Averages` in some rounds, from the common updates (n_rounds, p) of all."""
    n_rounds = rounds.n_done
    attended = np.zeros((rounds.n_players, n_rounds), dtype=bool)
    for t, (present, _) in enumerate(rounds.released.attendance):
        attended[present, t] = True

    # An average is a sum of the releases of a player with these weights.
    release_weights = np.zeros((n_rounds, n_rounds))
    for t, newest in enumerate(rounds.newest_weights[:n_rounds]):
        release_weights[t] = (1 - newest) * release_weights[t - 1]
        release_weights[t, t] = newest

    attendances, codes = np.unique(attended, axis=0, return_inverse=True)
    common_averages = []
    factors = []
    shrinkage = []
    for is_present in attendances:
        weights = np.zeros((n_rounds, n_rounds))
        n = np.count_nonzero(is_present)
        weights[np.ix_(is_present, is_present)] = release_weights[:n, :n]
        common_averages.append(weights[sampled] @ common_updates)
        factors.append(np.linalg.qr(weights[sampled].T, mode="r").T)
        of_all = np.linalg.norm(weights[rounds.n_skipped :].mean(axis=0))
        of_sampled = np.linalg.norm(weights[sampled].mean(axis=0))
        shrinkage.append(of_all / of_sampled if of_sampled > 0 else 1.0)
    codes = codes.reshape(-1)
    return _Averages(
        codes,
        np.array(common_averages),
        np.array(factors),
        np.array(shrinkage)[codes],
    )


class _Contributions:
    """Mean marginal contributions of some players of a round to random coalitions.

    The coalitions are the same at each call. ``players`` (m,) are numbers among those
    of the round, of these ``weights`` (n,).
    """

    def __init__(self, rounds, weights, players, rng):
        self._rounds = rounds
        self._weights = weights
        n_orders = 2 * -(-_N_ROUGH_CONTRIBUTIONS // len(players))
        self._shape = (2, n_orders // 2, len(players))
        probabilities = size_weights(rounds.options["semivalue"], len(weights))
        masks = marginal_masks(rng, probabilities, players, n_orders)
        self._masks = masks.reshape(-1, len(weights))
        self._numbers = np.arange(len(self._masks))
        if 2 ** len(weights) < len(self._masks):
            # Few players have few coalitions, and a utility may take long.
            self._masks, numbers = np.unique(self._masks, axis=0, return_inverse=True)
            self._numbers = numbers.reshape(-1)

    def __call__(self, theta, updates):
        """Contributions (b, 2, m) to steps along updates (b, n, p) from theta (p,).

        They are the means over two halves of the coalitions.
        """
        utility = self._rounds.coalition_utility(theta, updates, self._weights)
        utilities = utility(self._masks)[:, self._numbers]
        utilities = utilities.reshape(len(updates), 2, *self._shape)
        contributions = utilities[:, 1] - utilities[:, 0]
        return contributions.mean(axis=2)
