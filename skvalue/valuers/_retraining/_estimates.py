"""What a semivalue valuer says of its estimates after fit, and how two of them are merged."""

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...estimation.designs import OrderDesign
from ...estimation.estimation import Estimation
from ...estimation.intervals import bernstein_halfwidth, decided, t_halfwidth
from ...estimation.run import Run
from ...estimation.stopping import Stopping

_UNIT_SCORES = (None, "accuracy", "balanced_accuracy", "roc_auc", "f1", "precision", "recall")


class EstimatesMixin:
    """Intervals of the values of a fitted valuer, and merging it with another."""

    def confidence_interval(self, level=0.95, method="t", utility_range=None):
        """Interval around every value, for what sampling coalitions leaves open.

        Parameters
        ----------
        level : float, default=0.95
            Chance that the interval of one row holds its value.
        method : {"t", "bernstein"}, default="t"
            By Student's t, which wants enough replicates; or the empirical Bernstein bound of
            Maurer and Pontil (2009), which holds for any number of them if utilities have a known
            range, and is wider. The latter needs one of the samplers of orders.
        utility_range : tuple of two floats, default=None
            Lowest and highest utility that can be, for "bernstein". None knows it for accuracy and
            other scores between 0 and 1.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_groups, 2)
            Lower and upper ends.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, `method` is unknown or cannot be had, or
            `utility_range` is needed.
        """
        check_is_fitted(self)
        half = self._halfwidths(level, method, utility_range)
        return np.stack([self.values_ - half, self.values_ + half], axis=1)

    def sign_decided(self, level=0.95, method="t", utility_range=None):
        """Rows whose values are above or below zero for sure, as far as sampling goes.

        Parameters
        ----------
        level : float, default=0.95
            Level of the interval that must not hold zero.
        method : {"t", "bernstein"}, default="t"
            As in `confidence_interval`.
        utility_range : tuple of two floats, default=None
            As in `confidence_interval`.

        Returns
        -------
        mask : ndarray of bool of shape (n_samples,) or (n_groups,)
            True where the sign is decided.

        Raises
        ------
        ValueError
            As in `confidence_interval`.
        """
        check_is_fitted(self)
        return decided(self.values_, self._halfwidths(level, method, utility_range))

    def merge(self, other):
        """Add what another fit on the same data has found with other random numbers.

        Parameters
        ----------
        other : object of the same class
            A valuer fitted on the same data with the same parameters, but for `random_state`,
            stopping rules and what concerns computation only.

        Returns
        -------
        self : object
            This valuer, whose values stand on the coalitions of both. Fitted again with
            `warm_start`, it goes on with its own random numbers.

        Raises
        ------
        ValueError
            If data, parameters or samplers differ, random numbers are the same, or values are
            exact.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        ours, theirs = self._run, other._run
        if type(self) is not type(other) or ours["fingerprint"] != theirs["fingerprint"]:
            raise ValueError(
                "merge needs a valuer of the same class, fitted on the same data with the same "
                "parameters (all but random_state and stopping rules)."
            )
        if self.sampler_ != other.sampler_ or self.sampler_ == "exact":
            raise ValueError(
                "merge needs two estimates by the same sampler, none of them exact. Got "
                f"{self.sampler_!r} and {other.sampler_!r}."
            )
        same = set(ours["seeds"].tolist()) & set(theirs["seeds"].tolist())
        if same:
            raise ValueError(
                "merge needs other random numbers: fit with another random_state. Got the same "
                f"seed {same.pop()} in both."
            )
        run = self._restored(ours)
        for estimation, more in zip(run.estimations, other._restored(theirs).estimations):
            estimation.merge(more)
        run.header["seeds"] = np.concatenate([ours["seeds"], theirs["seeds"]])
        run.header["n_failed"] = ours["n_failed"] + theirs["n_failed"]
        self._publish(run)
        self.values_ = run.result()[0]
        return self

    def _restored(self, arrays):
        """A run that can be looked at and merged, but not go on."""
        games = [
            SimpleNamespace(n_players=int(n), empty_utility=float(empty), solver="", n_failed=0)
            for n, empty in zip(arrays["players"], arrays["empty"])
        ]
        estimations = [
            Estimation(game, self._design(str(arrays["sampler"]), game.n_players), 0, number)
            for number, game in enumerate(games)
        ]
        keys = ("fingerprint", "seeds", "sampler", "players", "empty", "n_values", "n_failed")
        header = {name: arrays[name] for name in keys}
        run = Run(estimations, self._players, int(arrays["n_values"]), Stopping(), header)
        run.restore(arrays)
        return run

    def _halfwidths(self, level, method, utility_range):
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level}.")
        if method == "t":
            return t_halfwidth(self.values_error_, self._freedom, level)
        if method != "bernstein":
            raise ValueError(f"method must be 't' or 'bernstein'. Got {method!r}.")
        run = self._restored(self._run)
        if self.sampler_ == "exact":
            return np.zeros(run.n)
        if not isinstance(run.estimations[0].design, OrderDesign):
            raise ValueError(
                "method='bernstein' needs independent replicates: sampler='permutation', "
                f"'antithetic', 'latin' or 'orthogonal'. Got {self.sampler_!r}."
            )
        if utility_range is None:
            if self.scoring not in _UNIT_SCORES or not self._n_classes:
                raise ValueError(
                    "method='bernstein' needs utility_range, the lowest and highest utility that "
                    f"can be, with scoring={self.scoring!r}."
                )
            utility_range = 0.0, 1.0
        span = 2 * (utility_range[1] - utility_range[0])
        half, share = np.zeros(run.n), 1 / len(run.estimations)
        for estimation, rows in zip(run.estimations, run.players):
            errors = np.sqrt(estimation.variances()[0])
            # The intervals of all splits hold together.
            half[rows] += share * bernstein_halfwidth(
                errors,
                estimation.moments.count,
                span * estimation.design.weights.max(),
                1 - share * (1 - level),
            )
        return half
