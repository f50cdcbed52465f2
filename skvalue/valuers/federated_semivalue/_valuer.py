"""Semivalues of parties that train one model together, round by round."""

from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from ..._utils.checks import seed_of
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...base import EXACT, Problem, Result, warn_of_guarantee
from ...gradients import RATES, own_fractions
from ...privacy import check_delta, check_epsilon, noise_source
from ...semivalues import check_semivalue
from .._gradients import BaseGradientValuer, is_named, players_of, start_noise
from ._rounds import (
    RationedNoise,
    Rounds,
    public_utility,
    recent_fractions,
    release_updates,
    train_together,
)

_ROUND_SCHEDULES = {"iid", "correlated", "recent"}


@dataclass(frozen=True, eq=False)
class Training:
    """A training that runs elsewhere: its rounds so far, and the source of its noise."""

    rounds: Rounds
    n_parties: int
    draw: RationedNoise | None


class FederatedSemivalueValuer(BaseGradientValuer):
    """Values of parties by their updates of a jointly trained model, round by round.

    In every round each party sends an update of the global model, and the server takes a step along
    their mean. The value of a party in the round is its semivalue in a game: the utility of a
    coalition is that of the step along the mean of its updates. The value of a party is the mean
    over rounds. No model is trained again: the steps of coalitions are computed from the updates.

    `fit` simulates the training: groups of rows are parties, and an update is minus the gradient of
    a party. `start` and `add_round` value the parties of a training that runs elsewhere.

    With `epsilon`, parties clip their updates and add noise before sending them. The updates of a
    party are averaged over rounds, with most weight on the newest, which also averages the noise.

    Parameters
    ----------
    model : {"auto", "logistic", "softmax", "linear"} or torch.nn.Module, default="auto"
        The model that `fit` trains, as in `GradientSemivalueValuer`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple (alpha, beta) or callable, \
            default="shapley"
        The semivalue of a round, see `skvalue.semivalues.size_weights`.
    loss : callable, default=None
        Loss of a torch module; None is the cross-entropy for classes and the squared error for
        targets.
    utility : {"neg_loss", "accuracy"}, default="neg_loss"
        Utility of a model in `fit`: the negated mean loss on the validation points, or the
        accuracy.
    n_rounds : int, default=50
        Number of rounds of the training, and with `epsilon` of releases of every party.
    n_permutations : int, default=20
        Number of permutations evaluated in a round, at least four, of as many coalitions each as
        there are parties, less one (Banzhaf values use as many coalitions, without permutations).
        If there are fewer coalitions, all are evaluated and values are exact.
    aggregate : {"mean", "sum"}, default="mean"
        Step of a coalition: along the mean of its updates, or along their sum divided by the number
        of all parties.
    learning_rate : float or "auto", default="auto"
        Length of the server's step. "auto" in `fit` takes, of eight rates from 0.001 to 3, the best
        one for `n_rounds` steps on half of the validation points, evaluated on the other half; in a
        training that runs elsewhere it is 1.
    clip : float, "auto", "median" or None, default="auto"
        Bound of the norm of updates. "auto" is 1 with noise, and does not clip without noise.
        "median", in `fit` only, is the median norm of the gradients of the validation points at the
        start, which are public. None, without noise only, does not clip.
    n_components : int or None, default=None
        In `fit` only: number of coordinates of an update, along public directions, as in
        `GradientSemivalueValuer`. The global model changes only along them, and noise has fewer
        coordinates; use ``clip="median"``. A torch module starts from its current parameters. None
        sends all coordinates.
    standardize : bool, default=True
        Whether built-in models standardise columns, as in `GradientSemivalueValuer`.
    epsilon : float or None, default=None
        Privacy of all updates of a party together. None adds no noise.
    delta : float, default=1e-5
        Delta of (epsilon, delta)-differential privacy.
    noise_multiplier : float or None, default=None
        Instead of epsilon: noise of standard deviation
        ``sqrt(n_rounds) * clip * noise_multiplier`` on every update. `privacy_` has the resulting
        guarantee.
    noise : {"iid", "correlated", "recent"}, callable or array-like, default="recent"
        Weight of the newest update of a party in the average of private fits; the rest is the
        weight of the previous average. "iid": 1. "correlated": ``1 / t``, the running mean.
        "recent": ``0.75 - 0.7 t / n_rounds``, because the global model changes. A callable of
        (t, n_rounds) or an array gives the weights; the first is 1.
    burn_in : float, default=0.2
        Fraction of rounds at the start whose values are not computed.
    trust : {"local", "server"}, default="local"
        "local": every party adds the noise and trusts no other party or server; "server": a server
        sees clipped updates and adds the noise, half as much.
    unit : {"party", "example"}, default="party"
        Protected unit: all rows of a party, or one of its rows, by clipping the gradient of each
        row (in `fit` only).
    ledger : skvalue.privacy.Ledger, default=None
        Charged for all rounds before the first one; by `release`, for that release.
    noise_random_state : int, default=None
        For tests only: a seed of the noise, which VOIDS the guarantee.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target in `fit`.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Splits used by `fit` when no validation set is passed: the test rows of each split are the
        validation points of its training rows.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device of a torch module.
    random_state : int, RandomState or None, default=None
        Seed of coalitions, and of the initial parameters of torch modules. It never seeds the
        noise.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,), (n_groups,) or (n_parties,)
        Mean values over rounds; NaN during the burn-in. With epsilon they are a function of the
        released updates, and public.
    values_error_ : ndarray, as `values_`
        Standard error of every value over coalitions; zero if all were evaluated.
    round_values_ : ndarray of shape (n_rounds so far, n_values)
        Values of every round; NaN in the burn-in.
    privacy_ : skvalue.privacy.PrivacyReport
        With noise: the guarantee.
    learning_rate_ : float
        Length of the server's step.
    clip_ : float or None
        Bound of the norm of updates.
    n_evaluations_ : int
        Number of utilities computed.
    utility_, empty_utility_ : float
        Mean utility after and before the rounds that follow the burn-in; Shapley values sum to
        their difference.
    classes_ : ndarray of shape (n_classes,)
        The labels, in a classification; with epsilon those of y_val.
    groups_ : ndarray of shape (n_groups,)
        Group labels, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has string column names.

    See Also
    --------
    GradientSemivalueValuer : Values by one step per party from a new model.

    References
    ----------
    T. Wang, J. Rausch, C. Zhang, R. Jia, D. Song: "A Principled Approach to Data Valuation for
    Federated Learning", Federated Learning (Springer LNCS 12500), 2020.

    "Data Value Estimation on Private Gradients", Appendix D.2 (the schedule "recent", burn-in 0.2).

    Examples
    --------
    Parties 0 and 1 train on wrong labels.

    >>> import numpy as np
    >>> from skvalue import FederatedSemivalueValuer
    >>> rng = np.random.default_rng(0)
    >>> X, parties = rng.normal(size=(300, 3)), np.arange(300) % 6
    >>> y = X[:, 0] > 0
    >>> valuer = FederatedSemivalueValuer("logistic", n_rounds=10, learning_rate=1.0)
    >>> valuer = valuer.fit(
    ...     X[:240], np.where(parties < 2, ~y, y)[:240], groups=parties[:240],
    ...     X_val=X[240:], y_val=y[240:],
    ... )
    >>> bool(valuer.values_[:2].max() < valuer.values_[2:].min())
    True

    A training that runs elsewhere: the updates of all parties except the last move a parameter
    towards 1.

    >>> theta = np.zeros(1)
    >>> watch = FederatedSemivalueValuer(n_rounds=5, burn_in=0.0, clip=None)
    >>> watch = watch.start(lambda thetas: -np.abs(thetas - 1)[:, 0], n_parties=3)
    >>> for _ in range(5):
    ...     updates = 0.5 * np.array([1 - theta, 1 - theta, -1 - theta])
    ...     theta = theta + watch.add_round(theta, updates)
    >>> watch.values_.round(3).tolist(), watch.round_values_.shape
    ([0.272, 0.272, -0.478], (5, 3))
    """

    _parameter_constraints: dict = {
        **BaseGradientValuer._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "aggregate": [StrOptions({"mean", "sum"})],
        "noise": [StrOptions(_ROUND_SCHEDULES), callable, "array-like"],
        "burn_in": [Interval(Real, 0, 1, closed="left")],
    }
    _part, _done = "rounds", "rounds played"

    def __init__(
        self,
        model="auto",
        semivalue="shapley",
        *,
        loss=None,
        utility="neg_loss",
        n_rounds=50,
        n_permutations=20,
        aggregate="mean",
        learning_rate="auto",
        clip="auto",
        n_components=None,
        standardize=True,
        epsilon=None,
        delta=1e-5,
        noise_multiplier=None,
        noise="recent",
        burn_in=0.2,
        trust="local",
        unit="party",
        ledger=None,
        noise_random_state=None,
        task="auto",
        cv=5,
        device="auto",
        random_state=None,
    ):
        self.model = model
        self.semivalue = semivalue
        self.loss = loss
        self.utility = utility
        self.n_rounds = n_rounds
        self.n_permutations = n_permutations
        self.aggregate = aggregate
        self.learning_rate = learning_rate
        self.clip = clip
        self.n_components = n_components
        self.standardize = standardize
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.noise = noise
        self.burn_in = burn_in
        self.trust = trust
        self.unit = unit
        self.ledger = ledger
        self.noise_random_state = noise_random_state
        self.task = task
        self.cv = cv
        self.device = device
        self.random_state = random_state

    # What a user calls ----------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def start(self, utility, n_parties):
        """Start to value the parties of a training that runs elsewhere.

        Parameters
        ----------
        utility : callable
            Utilities of parameters on public validation points: ``utility(thetas)`` takes an array
            of shape (m, p) and returns one of shape (m,). It is pickled with the valuer.
        n_parties : int
            Number of parties.

        Returns
        -------
        self : object
            The valuer, without rounds.

        Raises
        ------
        ValueError
            If a parameter is out of range or incompatible with others, there are fewer than two
            parties, or the budget of the ledger is exceeded.
        TypeError
            If utility is not callable.
        """
        if not callable(utility):
            raise TypeError(f"utility must be a function of parameters. Got {utility!r}.")
        if not isinstance(n_parties, Integral) or n_parties < 2:
            raise ValueError(f"n_parties must be an integer of at least 2. Got {n_parties!r}.")
        if self.unit == "example" and self._is_private:
            raise ValueError(
                "unit must be 'party' in a training that runs elsewhere, whose rows are unknown. "
                "Got 'example'."
            )
        self._check_elsewhere()
        check_semivalue(self.semivalue, custom=True)
        fractions = self._fractions()
        rate = 1.0 if self.learning_rate == "auto" else float(self.learning_rate)
        warn_of_guarantee(self, n_parties)
        release = EXACT
        if self._is_private:
            release = self._release_of(self._bound, groups=True, elsewhere=True)
        draw = start_noise(release)
        training = Training(
            self._new_rounds(utility, fractions, rate, seed_of(self.random_state)),
            int(n_parties),
            None if draw is None else RationedNoise(draw, self.n_rounds),
        )
        self._show(training, {"clip_": self._bound, "learning_rate_": rate}, release)
        return self

    def release(self, update):
        """Clip one update and add noise, as a party does before sending it.

        Parameters
        ----------
        update : array-like of shape (p,)
            The update of the party.

        Returns
        -------
        released : ndarray of shape (p,)
            The update to send, once per round for `n_rounds` rounds.

        Raises
        ------
        ValueError
            If a parameter is out of range or incompatible with others, the update is not finite and
            there is no noise, or the budget of the ledger is exceeded.
        """
        self._check_elsewhere()
        self._fractions()
        update = check_array(
            update, ensure_2d=False, ensure_all_finite=False, dtype=np.float64, input_name="update"
        )
        draw = None
        if self._is_private:
            event = self._event(self._bound).event
            if self.ledger is not None:
                self.ledger.charge(event, label=f"{type(self).__name__}: one update")
            draw = noise_source(event, noise_random_state=self.noise_random_state)
        return release_updates([update], self._bound, draw)[0]

    def add_round(self, theta, updates, *, released=False):
        """Value the parties of the next round.

        Parameters
        ----------
        theta : array-like of shape (p,)
            Parameters of the global model before the round.
        updates : array-like of shape (n_parties, p)
            Update of each party, such as the change of the parameters by its local training.
        released : bool, default=False
            Whether the parties have clipped the updates and added noise by `release`. If not, this
            method does so.

        Returns
        -------
        step : ndarray of shape (p,)
            The step that the server must add to the parameters: `learning_rate_` times the mean of
            the averaged updates. With epsilon the updates must not be used in any other way.

        Raises
        ------
        ValueError
            If there have been `n_rounds` rounds, shapes are wrong, or parties have released
            `n_rounds` times: a round in which `utility` failed counts too.
        sklearn.exceptions.NotFittedError
            If `start` has not been called.
        """
        fitted = vars(self).get("_fitted")
        if fitted is None or fitted.statistic is None:
            raise NotFittedError(
                f"This {type(self).__name__} has no training: call start before add_round."
            )
        training, rounds = fitted.statistic, fitted.statistic.rounds
        if rounds.done == len(rounds.fractions):
            raise ValueError(
                "n_rounds must be at least the number of rounds of the training, since noise and "
                f"schedule are made for it: call start again with a larger n_rounds. Got round "
                f"{rounds.done + 1} with n_rounds={rounds.done}."
            )
        theta = check_array(theta, ensure_2d=False, dtype=np.float64, input_name="theta")
        n = training.n_parties
        try:
            updates = np.asarray(updates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"updates must be numbers in shape ({n}, {len(theta)}), zeros for parties without "
                f"an update: {error}"
            ) from error
        p = len(theta) if rounds.used is None else rounds.used.shape[1]
        if theta.shape != (p,) or updates.shape != (n, p):
            raise ValueError(
                f"theta must have shape ({p},), and updates ({n}, {p}). Got {theta.shape} and "
                f"{updates.shape}."
            )
        if not released:
            clip = fitted.attributes["clip_"]
            updates = release_updates(updates, clip, training.draw, stream=(rounds.done,))
        rounds = rounds.add(theta, updates)
        self._show(replace(training, rounds=rounds), fitted.attributes, fitted.release)
        return rounds.step

    # Fit ------------------------------------------------------------------------------------

    def _prepare(self, problem):
        self._check_model(problem)
        fractions = self._fractions()
        clip, bases = self._public_bounds(problem)
        seeds = np.random.SeedSequence(seed_of(self.random_state)).spawn(len(problem.splits))
        rate = self.learning_rate
        if rate == "auto":
            rate = self._public_rate(problem, clip, bases[0], seeds[0])
        # The last three do not become attributes of the valuer: they have no trailing underscore.
        return {
            "clip_": clip, "learning_rate_": float(rate), "bases": bases, "seeds": seeds,
            "fractions": fractions,
        }  # fmt: skip

    def _public_rate(self, problem, clip, basis, seed):
        """Learning rate, chosen on the validation points of the first split."""
        points = problem.splits[0].points
        order = np.random.default_rng(seed).permutation(len(points))
        half = (len(order) + 1) // 2
        train, test = np.sort(order[:half]), np.sort(order[len(order) // 2 :])
        make = self._model_maker(problem, points, clip, basis)
        model = make(points.X[train], points.y[train], np.zeros(half, dtype=np.int64), test)
        found = [public_utility(model, rate, self.n_rounds, seed) for rate in RATES]
        return RATES[int(np.argmax(found))]

    def _of_split(self, model, names, factors, draw, seed, attributes):
        """The rounds of one split, in order."""
        rounds = self._new_rounds(
            model.utilities, attributes["fractions"], attributes["learning_rate_"],
            int(seed.generate_state(1)[0]),
        )  # fmt: skip
        return train_together(
            model, rounds, np.random.default_rng(seed), self.n_rounds, draw, factors
        )

    def _combine(self, problem, attributes, parts):
        trainings = dict(parts)  # the last of each split
        played = [
            (players_of(problem, problem.splits[number])[0], rounds)
            for number, rounds in trainings.items()
            if rounds.counted
        ]
        return mean_over_trainings(problem, played) if played else self._without_values(parts)

    def _fractions(self):
        """Weights of the newest updates in the averages; checks the parameters of the noise."""
        self._check_noise()
        if not self._is_private:
            return np.ones(self.n_rounds)
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        check_delta(self.delta)
        if is_named(self.noise, "recent"):
            return recent_fractions(self.n_rounds)
        return own_fractions(self.noise, self.n_rounds)

    def _new_rounds(self, utilities, fractions, rate, seed):
        options = {"semivalue": self.semivalue, "aggregate": self.aggregate, "seed": seed}
        return Rounds(utilities, fractions, options, rate, self._n_skipped(), self.n_permutations)

    def _check_elsewhere(self):
        """Raise ValueError for parameters that need validation points, unknown in `start`."""
        why = "in a training that runs elsewhere, whose validation points are unknown"
        if self.n_components is not None:
            raise ValueError(
                f"n_components must be None {why}: pass coordinates as parameters and updates. Got "
                f"{self.n_components!r}."
            )
        if self.clip == "median":
            raise ValueError(f"clip must be a number, 'auto' or None {why}. Got 'median'.")

    def _show(self, training, attributes, release):
        """Set the fitted record to the state of a training that runs elsewhere."""
        rounds, n = training.rounds, training.n_parties
        values, errors, empty, utility = np.full(n, np.nan), np.full(n, np.nan), np.nan, np.nan
        if rounds.counted:
            values, errors, empty, utility = rounds.result()
        shown = {
            "values_error_": errors, "n_evaluations_": rounds.n_evaluations,
            "round_values_": np.array(rounds.values).reshape(-1, n),
        }  # fmt: skip
        result = Result(values, utility, empty, Problem(None, None, None), training, shown)
        self._swap_in(result, attributes, release)


def mean_over_trainings(problem, played):
    """The `Result` of the means over splits of values and utilities.

    ``played`` has the players of each split and its rounds, at least one after the burn-in.
    """
    n = problem.n_players
    values, variances, ends = np.zeros(n), np.zeros(n), np.zeros(2)
    by_round = np.zeros((max(rounds.done for _, rounds in played), n))
    for present, rounds in played:
        found, errors, *of_rounds = rounds.result()
        values[present] += found / len(played)
        variances[present] += (errors / len(played)) ** 2
        ends += np.array(of_rounds) / len(played)
        by_round[: rounds.done, present] += np.array(rounds.values) / len(played)
    attributes = {
        "values_error_": np.sqrt(variances), "round_values_": by_round,
        "n_evaluations_": sum(rounds.n_evaluations for _, rounds in played),
    }  # fmt: skip
    problem = replace(problem, splits=problem.splits[: len(played)])
    return Result(values, float(ends[1]), float(ends[0]), problem, attributes=attributes)
