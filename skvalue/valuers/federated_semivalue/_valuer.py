"""Semivalues of parties that train one model together, round by round."""

from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from ..._utils.checks import seed_of
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...base import EXACT, Problem, Result
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
    """A training that runs elsewhere: its rounds so far, and the noise that is left."""

    rounds: Rounds
    n_parties: int
    draw: RationedNoise | None


class FederatedSemivalueValuer(BaseGradientValuer):
    """Values of parties by what their updates add to a jointly trained model, round by round.

    In every round each party sends an update of the global model, and the server takes a step along
    their mean. The value of a party in the round is its semivalue in the game whose coalitions take
    that step without the others; its value is the mean over rounds. Nobody trains twice: a round's
    coalitions are sums of what was sent.

    `fit` simulates the training: groups of rows are parties, and an update is minus a party's
    gradient. `start` and `add_round` follow a training that runs elsewhere.

    With `epsilon`, parties clip their updates and add noise before these leave them. What a party
    has sent is averaged over rounds, newest most, and noise with it.

    Parameters
    ----------
    model : {"auto", "logistic", "softmax", "linear"} or torch.nn.Module, default="auto"
        What `fit` trains, as in `GradientSemivalueValuer`.
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
        Rounds of the training, and with `epsilon` releases of every party.
    n_permutations : int, default=20
        Coalitions asked in a round are as many as that many orders of the parties have. Where all
        coalitions are fewer, values of rounds are exact.
    aggregate : {"mean", "sum"}, default="mean"
        What a coalition's step goes along: the mean of its members' updates, or their sum over the
        number of all parties.
    learning_rate : float or "auto", default="auto"
        Length of the server's step. "auto" takes in `fit`, of eight from 0.001 to 3, the one at
        which `n_rounds` steps on half of the validation points predict the other half best, and 1
        in a training that runs elsewhere.
    clip : float, "auto" or None, default=1.0
        Bound of the norm of updates. "auto", in `fit` only, is the median norm of the validation
        points' gradients at the start, which are public. None, without noise only, clips nothing.
    n_components : int or None, default=None
        In `fit` only: coordinates of an update, along public directions, as in
        `GradientSemivalueValuer`. The global model moves along them, and noise has fewer
        coordinates; take ``clip="auto"``. A torch module starts from the parameters it has. None is
        all.
    standardize : bool, default=True
        Whether built-in models see standardised columns, as in `GradientSemivalueValuer`.
    epsilon : float or None, default=None
        Privacy of everything that a party sends. None adds no noise.
    delta : float, default=1e-5
        Chance that the guarantee of epsilon does not cover.
    noise_multiplier : float or None, default=None
        In place of epsilon: noise of standard deviation
        ``sqrt(n_rounds) * clip * noise_multiplier`` on every update. `privacy_` says what that
        guarantees.
    noise : {"iid", "correlated", "recent"}, callable or array-like, default="recent"
        Weight of a party's newest update in what is used, where there is noise; the rest is what
        was used before. "iid": all. "correlated": ``1 / t``, the running mean. "recent":
        ``0.75 - 0.7 t / n_rounds``, since a global model moves. A callable gives it from (t,
        n_rounds), an array holds them; the first is 1.
    burn_in : float, default=0.2
        Fraction of rounds, the first ones, whose values do not count (nor are computed).
    trust : {"local", "server"}, default="local"
        "local": parties trust nobody; "server": a server sees clipped updates and adds the noise,
        half of it.
    unit : {"party", "example"}, default="party"
        What is protected: all that a party holds, or one of its rows, by clipping each row's
        gradient (in `fit` only).
    ledger : skvalue.privacy.Ledger, default=None
        Charged for all rounds before the first; by `release`, for that release.
    noise_random_state : int, default=None
        For tests only: a seed of the noise, which VOIDS the guarantee.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target in `fit`.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Which rows are held out to value which others in `fit` when there is no validation set.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where a torch module computes.
    random_state : int, RandomState or None, default=None
        Seed of coalitions, and of the start of torch modules. The noise never comes from it.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,), (n_groups,) or (n_parties,)
        Mean over rounds of the values; NaN while all rounds so far are burn-in. With epsilon they
        are a function of what was sent, and public.
    values_error_ : ndarray, as `values_`
        Standard error of every value over coalitions; zero where all were asked.
    round_values_ : ndarray of shape (n_rounds so far, n_values)
        Values round by round; NaN in the burn-in.
    privacy_ : skvalue.privacy.PrivacyReport
        With noise: what is guaranteed.
    learning_rate_ : float
        Length of the server's step.
    clip_ : float or None
        Bound of the norm of updates.
    n_evaluations_ : int
        Utilities computed.
    utility_, empty_utility_ : float
        Mean utility after and before the rounds that count; Shapley values add up to their
        difference.
    classes_ : ndarray of shape (n_classes,)
        The labels, in a classification; with epsilon those of y_val.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    GradientSemivalueValuer : Values by one step a party from a fresh model.

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

    A training that runs elsewhere: parties pull a parameter to 1, but for the last one.

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
        clip=1.0,
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
        """Begin to follow a training that runs elsewhere.

        Parameters
        ----------
        utility : callable
            Utilities of parameters on public validation points: ``utility(thetas)`` takes an array
            of shape (m, p) and gives one of shape (m,). It is pickled with the valuer.
        n_parties : int
            Number of parties.

        Returns
        -------
        self : object
            The valuer, without rounds.

        Raises
        ------
        ValueError
            If a parameter is out of range or does not fit the others, there are fewer than two
            parties, or the ledger refuses.
        TypeError
            If utility is no function.
        """
        if not callable(utility):
            raise TypeError(f"utility must be a function of parameters. Got {utility!r}.")
        if not isinstance(n_parties, Integral) or n_parties < 2:
            raise ValueError(f"n_parties must be an integer of at least 2. Got {n_parties!r}.")
        if self.unit == "example" and self._is_private:
            raise ValueError(
                "unit must be 'party' in a training that runs elsewhere, whose rows are not seen. "
                "Got 'example'."
            )
        self._check_elsewhere()
        check_semivalue(self.semivalue, custom=True)
        fractions = self._fractions()
        rate = 1.0 if self.learning_rate == "auto" else float(self.learning_rate)
        release = EXACT
        if self._is_private:
            release = self._release_of(self.clip, groups=True, elsewhere=True)
        draw = start_noise(release)
        training = Training(
            self._new_rounds(utility, fractions, rate, seed_of(self.random_state)),
            int(n_parties),
            None if draw is None else RationedNoise(draw, self.n_rounds),
        )
        self._show(training, {"clip_": self.clip, "learning_rate_": rate}, release)
        return self

    def release(self, update):
        """Clip one update and add noise, as a party does before it leaves.

        Parameters
        ----------
        update : array-like of shape (p,)
            The party's update.

        Returns
        -------
        released : ndarray of shape (p,)
            What may leave, once a round for `n_rounds` rounds.

        Raises
        ------
        ValueError
            If a parameter is out of range or does not fit the others, the update is not finite and
            there is no noise, or the ledger refuses.
        """
        self._check_elsewhere()
        self._fractions()
        update = check_array(
            update, ensure_2d=False, ensure_all_finite=False, dtype=np.float64, input_name="update"
        )
        draw = None
        if self._is_private:
            event = self._event(self.clip).event
            if self.ledger is not None:
                self.ledger.charge(event, label=f"{type(self).__name__}: one update")
            draw = noise_source(event, noise_random_state=self.noise_random_state)
        return release_updates([update], self.clip, draw)[0]

    def add_round(self, theta, updates, *, released=False):
        """Value the parties of the next round.

        Parameters
        ----------
        theta : array-like of shape (p,)
            Parameters of the global model before the round.
        updates : array-like of shape (n_parties, p)
            What each party would add to them, such as the difference that its own training makes.
        released : bool, default=False
            Whether parties have clipped them and added noise by `release`. If not, that is done
            here, in place of the parties.

        Returns
        -------
        step : ndarray of shape (p,)
            What the server is to add to the parameters: `learning_rate_` times the mean of what is
            used of the updates. With epsilon nothing else of the updates may be used.

        Raises
        ------
        ValueError
            If all `n_rounds` rounds were there, or shapes do not fit, or parties have released
            `n_rounds` times: a round in which `utility` failed counts, too.
        sklearn.exceptions.NotFittedError
            If there was no `start`.
        """
        fitted = vars(self).get("_fitted")
        if fitted is None or fitted.statistic is None:
            raise NotFittedError(
                f"This {type(self).__name__} follows no training: call start before add_round."
            )
        training, rounds = fitted.statistic, fitted.statistic.rounds
        if rounds.done == len(rounds.fractions):
            raise ValueError(
                f"n_rounds={rounds.done} rounds were planned, and noise and schedule were made "
                "for them: start again. Got one round more."
            )
        theta = check_array(theta, ensure_2d=False, dtype=np.float64, input_name="theta")
        n = training.n_parties
        try:
            updates = np.asarray(updates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"updates must be numbers in shape ({n}, {len(theta)}), zeros where a party sent "
                f"nothing: {error}"
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

    # What a fit does ------------------------------------------------------------------------

    def _prepare(self, problem):
        self._check_model(problem)
        fractions = self._fractions()
        clip, bases = self._public_bounds(problem)
        seeds = np.random.SeedSequence(seed_of(self.random_state)).spawn(len(problem.splits))
        rate = self.learning_rate
        if rate == "auto":
            rate = self._public_rate(problem, clip, bases[0], seeds[0])
        # The last three are no attributes of the valuer: their names end in no underscore.
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
        """The rounds of one split, one after the other."""
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
        """Weights of the newest updates in what is used; refuses parameters of the noise."""
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
        """Refuse what is made of validation points, of which a training elsewhere shows none."""
        why = "in a training that runs elsewhere, whose validation points are not seen"
        if self.n_components is not None:
            raise ValueError(
                f"n_components must be None {why}: pass coordinates as parameters and updates. Got "
                f"{self.n_components!r}."
            )
        if self.clip == "auto":
            raise ValueError(f"clip must be a number or None {why}. Got 'auto'.")

    def _show(self, training, attributes, release):
        """Make what is known of a training that runs elsewhere the record of the valuer."""
        rounds, n = training.rounds, training.n_parties
        values, errors, empty, utility = np.full(n, np.nan), np.full(n, np.nan), np.nan, np.nan
        if rounds.counted:
            values, errors, empty, utility = rounds.result()
        shown = {
            "values_error_": errors, "n_evaluations_": rounds.n_asked,
            "round_values_": np.array(rounds.values).reshape(-1, n),
        }  # fmt: skip
        result = Result(values, utility, empty, Problem(None, None, None), training, shown)
        self._swap_in(result, attributes, release)


def mean_over_trainings(problem, played):
    """Means over splits of the values and utilities of their rounds, as a result.

    ``played`` holds the players of each split, and its rounds, at least one of which counts.
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
        "n_evaluations_": sum(rounds.n_asked for _, rounds in played),
    }  # fmt: skip
    problem = replace(problem, splits=problem.splits[: len(played)])
    return Result(values, float(ends[1]), float(ends[0]), problem, attributes=attributes)
