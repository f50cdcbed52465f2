"""Semivalues of parties that train one model together, round by round."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...base._old_in_sample import BaseInSampleValuer
from ...base._old_private import PRIVACY_CONSTRAINTS
from ...privacy import noise_source
from ...semivalues import check_semivalue
from ._fit import FederatedFitsMixin
from ._rounds import RationedNoise, release_updates

__all__ = ["FederatedSemivalueValuer"]

_ROUND_SCHEDULES = {"iid", "correlated", "recent"}


class FederatedSemivalueValuer(FederatedFitsMixin, BaseInSampleValuer):
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
        What judges a model in `fit`: the negated mean loss on the validation points, or the
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
        In place of epsilon: noise of deviation ``sqrt(n_rounds) * clip * noise_multiplier`` on
        every update. `privacy_` says what that guarantees.
    noise : {"iid", "correlated", "recent"}, callable or array-like, default="recent"
        Share of a party's newest update in what is used, where there is noise; the rest is what was
        used before. "iid": all. "correlated": ``1 / t``, the running mean. "recent":
        ``0.75 - 0.7 t / n_rounds``, since a global model moves. A callable gives it from (t,
        n_rounds), an array holds them; the first is 1.
    burn_in : float, default=0.2
        Share of rounds, the first ones, whose values do not count (nor are computed).
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
        Which rows judge which in `fit` when there is no validation set.
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
        "model": "no_validation",
        "semivalue": [str, tuple, list, callable],
        "loss": [callable, None],
        "utility": [StrOptions({"neg_loss", "accuracy"})],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "aggregate": [StrOptions({"mean", "sum"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "clip": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "standardize": ["boolean"],
        **{
            name: PRIVACY_CONSTRAINTS[name]
            for name in ("epsilon", "delta", "ledger", "noise_random_state")
        },
        "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
        "noise": [StrOptions(_ROUND_SCHEDULES), callable, "array-like"],
        "burn_in": [Interval(Real, 0, 1, closed="left")],
        "trust": [StrOptions({"local", "server"})],
        "unit": [StrOptions({"party", "example"})],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "device": [str],
        "random_state": ["random_state"],
    }
    _tasks = ("classification", "regression")
    _leave_one_out_at_once = False
    _done = "rounds played"

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
        if self.unit == "example" and self._is_private():
            raise ValueError(
                "unit must be 'party' in a training that runs elsewhere, whose rows are not seen. "
                "Got 'example'."
            )
        self._check_elsewhere()
        check_semivalue(self.semivalue, custom=True)
        self._check_noise()
        for name in ("privacy_", "classes_", "groups_", "n_features_in_"):
            self.__dict__.pop(name, None)
        self._n_parties, self.clip_ = int(n_parties), self.clip
        self.learning_rate_ = 1.0 if self.learning_rate == "auto" else float(self.learning_rate)
        self._event, draw = None, None
        if self._is_private():
            self._check_budget()
            self._event, draw = self._charge()
            self.privacy_ = self._report(self._event, groups=True)
        self._draw = None if draw is None else RationedNoise(draw, self.n_rounds)
        self._rounds = self._make_rounds(utility, self.learning_rate_, self._seed())
        self._show(self._rounds, np.full((3, n_parties), np.nan))
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
        self._check_noise()
        update = check_array(
            update, ensure_2d=False, ensure_all_finite=False, dtype=np.float64, input_name="update"
        )
        draw = None
        if self._is_private():
            self._check_budget()
            event = self._event_of_all().event
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
        check_is_fitted(
            self, "_rounds", msg="This %(name)s follows no training: call start before add_round."
        )
        rounds = self._rounds
        if rounds.done == len(rounds.shares):
            raise ValueError(
                f"n_rounds={rounds.done} rounds were planned, and noise and schedule were made "
                "for them: start again. Got one round more."
            )
        theta = check_array(theta, ensure_2d=False, dtype=np.float64, input_name="theta")
        try:
            updates = np.asarray(updates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"updates must be numbers in shape ({self._n_parties}, {len(theta)}), zeros where "
                f"a party sent nothing: {error}"
            ) from error
        p = len(theta) if rounds.used is None else rounds.used.shape[1]
        if theta.shape != (p,) or updates.shape != (self._n_parties, p):
            raise ValueError(
                f"theta must have shape ({p},), and updates ({self._n_parties}, {p}). Got "
                f"{theta.shape} and {updates.shape}."
            )
        if not released:
            updates = release_updates(updates, self.clip_, self._draw, stream=(rounds.done,))
        step = rounds.add(theta, updates)
        self._show(rounds)
        return step
