"""From the parameters of a federated valuer to rounds, and back to values."""

import numpy as np

from ...base._old_judges import Progress
from ...gradients._noise import gradient_report, own_shares
from ...gradients._public import RATES
from .._gradients import GradientFitsMixin
from ._rounds import Rounds, public_utility, recent_shares, train_together


class FederatedFitsMixin(GradientFitsMixin):
    """Fits of `FederatedSemivalueValuer`, and what it shows of a training that runs elsewhere."""

    gradient_variance = None  # of a schedule that there is not here

    @property
    def _n_releases(self):
        return self.n_rounds

    def _check_shares(self):
        self._shares()

    def _check_elsewhere(self):
        """Refuse what is made of validation points, of which a training elsewhere shows none."""
        why = "in a training that runs elsewhere, whose validation points are not seen"
        if self.n_components is not None:
            raise ValueError(
                f"n_components must be None {why}: pass coordinates as parameters and updates. Got "
                f"{self.n_components!r}."
            )
        if self.clip == "auto":
            raise ValueError(f"clip must be a number or None {why}. Got 'auto'.")

    def _shares(self):
        """Shares of the newest updates in what is used."""
        if not self._is_private():
            return np.ones(self.n_rounds)
        if self._noise_is("recent"):
            return recent_shares(self.n_rounds)
        return own_shares(self.noise, self.n_rounds)

    def _report(self, event, groups):
        return gradient_report(
            event, self.delta, trust=self.trust, unit=self.unit, groups=groups,
            noise_random_state=self.noise_random_state,
        )  # fmt: skip

    def _make_rounds(self, utilities, rate, seed):
        options = {"semivalue": self.semivalue, "aggregate": self.aggregate, "seed": seed}
        return Rounds(
            utilities, self._shares(), options, rate, self._n_skipped(), self.n_permutations
        )

    def _show(self, rounds, nothing=None):
        """Set what is known of a training that runs elsewhere."""
        result = rounds.result() if nothing is None else (*nothing[:2], np.nan, np.nan)
        self.values_, self.values_error_, self.empty_utility_, self.utility_ = result
        self.round_values_ = np.array(rounds.values).reshape(-1, self._n_parties)
        self.n_evaluations_ = rounds.asked

    def _play(self, games, X, y, groups):
        self.__dict__.pop("_rounds", None)  # of a training that ran elsewhere
        n = len(X) if groups is None else int(groups.max()) + 1
        seeds = np.random.SeedSequence(self._seed()).spawn(len(games))
        size = len(X) / n
        bases, bounds = zip(*(self._from_public(judges, size) for _, judges in games))
        self.clip_ = bounds[0]
        event, draw = self._charge() if self._is_private() else (None, None)
        progress = Progress(self, len(games) * self.n_rounds)
        rate, played = None, []
        for (rows, judges), seed, basis in zip(games, seeds, bases):
            rows = np.arange(len(X)) if rows is None else rows
            codes = rows if groups is None else groups[rows]
            present, players = np.unique(codes, return_inverse=True)
            make = self._model_maker(judges, basis=basis)
            if rate is None:
                rate = self._rate(make, judges, seed)
            model = make(X[rows], y[rows], players)
            scales = 1.0
            if event is not None and self.unit == "example":
                scales = 1 / np.bincount(players)
            rounds = self._make_rounds(model.utilities, rate, int(seed.generate_state(1)[0]))
            training = train_together(
                model, rounds, np.random.default_rng(seed), self.n_rounds, draw, scales
            )
            for _ in progress.follow(training, self.n_rounds, "rounds"):
                pass
            if rounds.done > rounds.skip:
                played.append((present, rounds))
            if progress.over:
                break
        if not played:
            if progress.interrupted:
                raise KeyboardInterrupt
            raise RuntimeError(
                "The fit was stopped by a callback before a round counted: the first "
                f"{self._n_skipped()} are the burn-in."
            )
        if event is not None:
            self.privacy_ = self._report(event, groups is not None)
        return games[: len(played)], *self._summed(played, n, rate), progress

    def _summed(self, played, n, rate):
        """Mean over games of the values and utilities."""
        values, variances, ends = np.zeros(n), np.zeros(n), np.zeros(2)
        by_round = np.zeros((max(rounds.done for _, rounds in played), n))
        for present, rounds in played:
            found, errors, *of_rounds = rounds.result()
            values[present] += found / len(played)
            variances[present] += (errors / len(played)) ** 2
            ends += np.array(of_rounds) / len(played)
            by_round[: rounds.done, present] += np.array(rounds.values) / len(played)
        self.round_values_, self.values_error_ = by_round, np.sqrt(variances)
        self.learning_rate_ = rate
        self.n_evaluations_ = sum(rounds.asked for _, rounds in played)
        return values, ends[1], ends[0]

    def _set_values(self, values):
        self.values_ = values

    def _rate(self, make, judges, seed):
        """Learning rate, chosen on the judges."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        order = np.random.default_rng(seed).permutation(len(judges.y))
        half = (len(order) + 1) // 2
        train, test = np.sort(order[:half]), np.sort(order[len(order) // 2 :])
        model = make(judges.X[train], judges.y[train], np.zeros(half, dtype=np.int64), test)
        found = [public_utility(model, rate, self.n_rounds, seed) for rate in RATES]
        return RATES[int(np.argmax(found))]
