"""Semivalues from (private) gradients: G-Shapley, with averaged noise."""

from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np

from .._utils.checks import seed_of
from .._utils.sklearn import Interval, StrOptions
from ..base import BaseScoringValuer, warn_if_noise_exceeds
from ..derivatives import (
    SCHEDULES,
    AveragedReleases,
    GradientNoise,
    HalvedMoments,
    class_probabilities,
    is_named,
    joining_values,
    needed_positions,
    newest_weights,
    noise_squares,
    optimal_weights,
    pooled_variances,
    public_learning_rate,
    recorded_positions,
    simulated_squares,
    step_noise_std,
    target_scale,
    walk_permutations,
    without_tails,
)
from ..exceptions import ErrorsTooSmallWarning
from ..privacy import SelfComposedEvent
from ..semivalues import size_weights
from ._gradients import (
    BaseGradientValuer,
    SplitValues,
    mean_over_splits,
    noise_factors,
    party_weights,
    public_rows,
    refuse_burn_in,
)

_N_ERROR_DRAWS = 50  # simulated fits for the errors of averaged noise
_N_ROUGH_ROWS = 200  # public rows for rough errors, on which a warning depends
_MAX_MODELS = 100  # recorded models, at which joining rows are valued
_MAX_FINAL_MODELS = 10  # that predict the labels of joining rows


@dataclass(frozen=True, eq=False)
class PermutationResults:
    """The permutations of a split that were walked after the burn-in.

    Parameters
    ----------
    players : ndarray of int of shape (n_present,)
        Numbers of the players that have values.
    moments : HalvedMoments
        Of the weighted marginal utilities of these players.
    weight_of_row : float
        Weight of the step of a party of one row.
    ends : tuple of ndarray of shape (2,)
        Of each permutation, utilities before the first and after the last step.
    models : tuple of ndarray of shape (n_positions, n_parameters)
        Of each permutation, parameters at the positions where a row joins.
    final_models : tuple of ndarray of shape (n_parameters,)
        Parameters at the ends of the first permutations.
    noise_std : ndarray of shape (n_present,) or None
        Standard deviations of the noise of one release of each player.
    release_means : ndarray of shape (n_present, n_parameters) or None
        Means of the players' releases after the last permutation, if steps are along
        averages.
    released : AveragedReleases or None
        What a private fit that averages releases made public.
    n_utilities : int
        Number of utilities that are computed along each permutation.
    """

    players: np.ndarray
    weight_of_row: float = 1.0
    moments: HalvedMoments = field(default_factory=HalvedMoments)
    ends: tuple = ()
    models: tuple = ()
    final_models: tuple = ()
    noise_std: np.ndarray | None = None
    release_means: np.ndarray | None = None
    released: AveragedReleases | None = None
    n_utilities: int = 0

    @property
    def n_evaluations(self):
        """Number of utilities computed."""
        return self.moments.count * self.n_utilities

    def plus(self, walk):
        """The results with one more `Walk`."""
        return replace(
            self,
            moments=self.moments.plus(walk.marginals),
            ends=(*self.ends, walk.ends),
            models=(*self.models, walk.models),
            final_models=(*self.final_models, walk.final)[:_MAX_FINAL_MODELS],
            release_means=walk.past,
        )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is set before a gradient of a party is computed: nothing is private.

    Parameters
    ----------
    clip : float or None
        Bound of the norm of gradients.
    bases : list of ndarray of shape (n_parameters, n_components) or None
        Coordinates of the gradients in each split.
    event : SelfComposedEvent or None
        The releases of a party, if gradients are private.
    schedule : str, callable or array-like
        The weights of releases, as `newest_weights` takes them.
    newest : ndarray of shape (n_counted,)
        Weights of the newest release in the permutations after the burn-in.
    n_skipped : int
        Number of permutations of the burn-in.
    rate : float
        Learning rate.
    split_seeds : list of SeedSequence
        Seed of each split.
    """

    clip: float | None
    bases: list
    event: SelfComposedEvent | None
    schedule: object
    newest: np.ndarray
    n_skipped: int
    rate: float
    split_seeds: list


class GradientSemivalueValuer(BaseGradientValuer, BaseScoringValuer):
    """Values of parties by the utility of one gradient step along each of them.

    For every random permutation of the parties a new model takes one step along the
    clipped gradient of each party, in that order. The step of a party is as long as its
    number of rows, as in federated averaging. The value of a party is the change of the
    utility on the validation points in its step, weighted by a semivalue and averaged
    over permutations (G-Shapley). It is not an estimate of a value by retraining; each
    permutation costs one pass through the data.

    With `epsilon`, parties add noise to their gradients before sending them: no party
    or server has to be trusted, and the values are public. The releases of each party
    are averaged over permutations, so that noise cancels.

    Parameters
    ----------
    model : {"auto", "logistic", "softmax", "linear"} or torch.nn.Module, default="auto"
        The model to train: a logistic regression (softmax for more than two classes), a
        softmax regression, a linear regression, or any torch module. "auto" is
        "logistic" for classes and "linear" for a continuous target.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple or callable, \
            default="shapley"
        The semivalue; a tuple (alpha, beta) is Beta(alpha, beta)-Shapley, a callable a
        custom semivalue, see `skvalue.semivalues.size_weights`.
    group_values : {"players", "faithful"}, default="players"
        With `groups`: "players" takes a step along the gradient of each group,
        "faithful" along that of each row; the value of a group is then the sum of those
        of its rows, which does not depend on how they are divided into groups, as in
        `DataShapleyValuer`. Without noise only.
    loss : callable, default=None
        Loss of a torch module, of outputs and targets; None is the cross-entropy for
        classes and the squared error for targets. Must be None for built-in models.
    utility : {"neg_loss", "accuracy"}, default="neg_loss"
        Utility of a model: the negated mean loss on the validation points, or the
        accuracy.
    step_weights : {"rows", "equal"}, default="rows"
        How long the steps of parties are. "rows": the learning rate times the number of
        rows of the party over the mean number of rows, so that large data sets count
        more (the weights of federated averaging). "equal": a step of every party is as
        long, however few its rows are. Weights are applied to what parties release, and
        numbers of rows are public: the guarantee is the same.
    n_permutations : int, default=100
        Number of permutations. With `epsilon`, also the number of releases of every
        party: the noise of a release grows with its square root.
    learning_rate : float or "auto", default="auto"
        Length of the steps. "auto" trains on one half of the validation points and
        evaluates on the other half, with as many steps and as much noise. Of eight
        rates from 0.001 to 3, divided by the largest weight of a party, it takes the
        smallest with at least half of the gain in utility of the best rate. Validation
        points are public, so that this has no privacy cost.
    clip : float, "auto", "median" or None, default="auto"
        Bound of the norm of gradients. "auto" is 1 with noise, and does not clip
        without noise. "median" is the median norm of the gradients of the validation
        points at the start, which are public. None, without noise only, does not clip.
    n_components : int or None, default=None
        Number of coordinates of a gradient that a party releases: along the mean
        gradient of the validation points at the start, and along the first principal
        directions of these gradients. They are public, so that the guarantee is the
        same with the same `clip`; noise has fewer coordinates, and gradients are
        shorter, so use ``clip="median"``. A torch module starts from its current
        parameters. None releases all coordinates.
    standardize : bool, default=True
        Whether built-in models standardise the columns by the means and standard
        deviations of the validation points, and divide by the square root of the number
        of columns (so that a typical row has norm one); continuous targets are
        standardised likewise.
    epsilon : float or None, default=None
        Privacy of all releases of a party together. None adds no noise.
    delta : float, default=1e-5
        Delta of (epsilon, delta)-differential privacy.
    noise_multiplier : float or None, default=None
        Instead of epsilon, to reproduce experiments: noise of standard deviation
        ``sqrt(n_permutations) * clip * noise_multiplier`` on every release. `privacy_`
        has the resulting guarantee.
    noise : {"iid", "correlated", "optimal"}, callable or array-like, \
            default="correlated"
        Direction of the steps of private fits. "iid": the current release of the party.
        "correlated": the running mean of its releases. "optimal": the average of least
        squared error, for gradients that vary over permutations by `gradient_variance`.
        A callable of (t, n_permutations) or an array gives the weight of the current
        release; the rest is the weight of the mean of the previous releases.
    gradient_variance : float or None, default=None
        For ``noise="optimal"``: variance of each coordinate of a party's clipped
        gradient over permutations. It must be known without looking at the rows, for
        instance from public rows.
    burn_in : float or None, default=None
        Fraction of permutations at the start whose utilities are not computed. None is
        0.9 if noise is averaged, else 0.
    trust : {"local", "server"}, default="local"
        "local": every party adds the noise and trusts no other party or server;
        "server": a server sees clipped gradients and adds the noise, half as much.
    unit : {"party", "example"}, default="party"
        Protected unit: all rows of a party, or one of its rows. "party" has as much
        noise for many rows as for one: it exceeds the values of a few parties at all
        usual epsilons. "example" clips the gradient of every row, and divides the noise
        by the number of rows of the party.
    ledger : skvalue.privacy.Ledger, default=None
        Charged for all permutations before the first gradient is computed.
    noise_random_state : int, default=None
        For tests only: a seed of the noise, which VOIDS the guarantee.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" uses `sklearn.utils.multiclass.type_of_target` of y, with
        epsilon of y_val.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Splits used when no validation set is passed: the test rows of each split are
        the validation points of its training rows. Every row must be a training row
        equally often. With epsilon a validation set is required.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device of a torch module. Built-in models run on the CPU.
    n_jobs : int, default=None
        Number of threads of built-in models. Independent permutations run in parallel;
        otherwise one thread takes the steps while another computes utilities. The
        values do not depend on it.
    max_time : float, default=None
        Seconds after which no further permutation is walked, once there are values.
        They then depend on the machine.
    random_state : int, RandomState or None, default=None
        Seed of permutations, and of the initial parameters of torch modules. It never
        seeds the noise.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With epsilon
        they are a function of what was released, and public.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Standard error of every value, over permutations and noise. Errors are shrunk to
        their mean over parties (of equal noise) as far as two halves of the
        permutations disagree on them. Where noise is averaged, all permutations have it
        in common: 50 fits are then simulated at first access, from what was released,
        with other permutations and other noise of the same distribution, and ten of
        them without noise, since noise makes values larger or smaller on average;
        utilities take 60 times as long as in `fit`. Gradients of a party are constants
        in them: where steps are larger than those of the rate "auto", or with two or
        three parties and little noise, these errors were down to .69 of the true ones.
        With noise="iid" they leave out the bias of the noise: .69 to .97 of the values
        were within two errors, where it is .90 to 1 otherwise. If noise exceeds the
        signal, `fit` warns: with few parties and unit="party" it does so at all usual
        epsilons.
    privacy_ : skvalue.privacy.PrivacyReport
        With noise: the guarantee, and the best possible AUROC of detecting wrong labels
        under it.
    learning_rate_ : float
        Length of the steps.
    clip_ : float or None
        Bound of the norm of gradients.
    n_evaluations_ : int
        Number of utilities computed.
    utility_, empty_utility_ : float
        Mean utility after the last step, and before the first; Shapley values sum to
        their difference.
    classes_ : ndarray of shape (n_classes,)
        Class labels, in classification; with epsilon those of y_val.
    groups_ : ndarray of shape (n_groups,)
        Group labels, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has string column names.

    See Also
    --------
    DataShapleyValuer : Values by retraining.
    skvalue.privacy.detection_ceiling : Bound on detection under a guarantee.

    References
    ----------
    A. Ghorbani, J. Zou: "Data Shapley: Equitable Valuation of Data for Machine
    Learning", ICML 2019, Algorithm 2 (G-Shapley).

    H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Aguera y Arcas:
    "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS
    2017, Algorithm 1 (weights by numbers of rows).

    "Data Value Estimation on Private Gradients", Algorithm 1, Propositions 5.1 to 5.4,
    C.10 ("optimal"; here
    releases are averaged, noise is for replacing the data of a party, and permutations
    are weighted).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import GradientSemivalueValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import noisy_label_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(
    ...     X, y, test_size=200, stratify=y, random_state=0
    ... )
    >>> y, wrong = flip_labels(y, 0.2, random_state=0)
    >>> valuer = GradientSemivalueValuer("logistic", random_state=0)
    >>> valuer = valuer.fit(X, y, X_val=X_val, y_val=y_val)
    >>> noisy_label_auc(valuer.values_, wrong) > 0.95
    True
    """

    _parameter_constraints: dict = {
        **BaseGradientValuer._parameter_constraints,
        "noise": [StrOptions({*SCHEDULES, "optimal"}), callable, "array-like"],
        "gradient_variance": [Interval(Real, 0, None, closed="left"), None],
        "burn_in": [Interval(Real, 0, 1, closed="left"), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        model: object = "auto",
        semivalue: object = "shapley",
        *,
        group_values="players",
        loss=None,
        utility="neg_loss",
        step_weights="rows",
        n_permutations=100,
        learning_rate: float | str = "auto",
        clip: float | str | None = "auto",
        n_components=None,
        standardize=True,
        epsilon=None,
        delta=1e-5,
        noise_multiplier=None,
        noise: object = "correlated",
        gradient_variance=None,
        burn_in=None,
        trust="local",
        unit="party",
        ledger=None,
        noise_random_state=None,
        task="auto",
        cv: object = 5,
        device="auto",
        n_jobs=None,
        max_time=None,
        random_state=None,
    ):
        self.model = model
        self.semivalue = semivalue
        self.group_values = group_values
        self.loss = loss
        self.utility = utility
        self.step_weights = step_weights
        self.n_permutations = n_permutations
        self.learning_rate = learning_rate
        self.clip = clip
        self.n_components = n_components
        self.standardize = standardize
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.noise = noise
        self.gradient_variance = gradient_variance
        self.burn_in = burn_in
        self.trust = trust
        self.unit = unit
        self.ledger = ledger
        self.noise_random_state = noise_random_state
        self.task = task
        self.cv = cv
        self.device = device
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.random_state = random_state

    _steps_parameter = "n_permutations"

    # The fit --------------------------------------------------------------------------

    def _value(self, problem, run):
        self._check_model(problem)
        self._check_noise()
        game = problem
        if self.group_values == "faithful":
            game = problem.without_groups()  # rows take steps; their values are summed
        plan = self._plan(game)

        # The ledger is charged before the first gradient of a party is computed.
        release = None
        draw = None
        if plan.event is not None:
            release = self._release(plan.event, groups=problem.groups is not None)
            draw = release.source()

        # The results of each split are replaced after each permutation, so that a fit
        # that is stopped has those so far.
        by_split = []
        n_steps = len(problem.splits) * self.n_permutations
        fewest = plan.n_skipped + 1
        with run.steps(n_steps, "permutations walked", self.max_time, fewest) as done:
            for number in range(len(problem.splits)):
                walks, results = self._start_walks(problem, game, plan, number, draw)
                by_split.append(results)
                for walk in walks:
                    if walk.marginals is not None:  # after the burn-in
                        by_split[-1] = by_split[-1].plus(walk)
                    done()
        by_split = [results for results in by_split if results.moments.count]
        if not by_split:
            refuse_burn_in(run, plan.n_skipped, "permutations")
            return None

        values = [self._split_values(problem, results) for results in by_split]
        attributes = {
            "clip_": plan.clip,
            "learning_rate_": plan.rate,
            "bases": plan.bases,
        }
        if release is not None:
            # A private fit has one split.
            released = self._released(problem, game, plan, by_split[0])
            by_split = [replace(by_split[0], released=released)]
            self._warn_of_noise(problem, attributes, values[0], released, run)
        return mean_over_splits(
            problem,
            values,
            release,
            by_split,
            **attributes,
            n_evaluations_=sum(results.n_evaluations for results in by_split),
        )

    def _plan(self, game):
        """What is set before a gradient of a party is computed: the `_Plan`."""
        n_skipped = self._n_skipped()
        clip, bases = self._public_bounds(game)
        event = self._event(clip, self.n_permutations) if self._is_private else None
        schedule = self._schedule(game, event)
        newest = newest_weights(schedule, self.n_permutations)

        seeds = np.random.SeedSequence(seed_of(self.random_state))
        rate_seed, *split_seeds = seeds.spawn(len(game.splits) + 1)
        rate = self.learning_rate
        if rate == "auto":
            rate = self._public_rate(game, clip, bases[0], rate_seed, event, schedule)
        return _Plan(
            clip=clip,
            bases=bases,
            event=event,
            schedule=schedule,
            newest=newest[n_skipped:],
            n_skipped=n_skipped,
            rate=float(rate),
            split_seeds=split_seeds,
        )

    def _start_walks(self, problem, game, plan, number, draw):
        """The walks of a split, an iterator of `Walk`, and results without any.

        ``number`` is that of the split; ``draw`` has the noise of the fit, or is None.
        """
        split = game.splits[number]
        basis = plan.bases[number]
        present, model, factors = self._players_model(game, split, plan.clip, basis)
        n_players = len(present)
        weights = self._weights(n_players)
        noise = None
        if draw is not None:
            noise = GradientNoise(draw, factors, plan.schedule)

        # A row that joins is one of n + 1 players.
        joining_weights = size_weights(self.semivalue, n_players + 1)
        record = recorded_positions(
            joining_weights, self.n_permutations, plan.n_skipped, _MAX_MODELS
        )
        walks = walk_permutations(
            model,
            weights,
            self.n_permutations,
            plan.rate,
            plan.split_seeds[number],
            noise=noise,
            skip=plan.n_skipped,
            record=record,
            names=present if game.groups is None else problem.group_names[present],
            n_jobs=self.n_jobs,
        )

        # Those who have values need not be those who take steps.
        valued, codes = problem.players_in(split)
        if game is not problem:
            walks = _sums_of_rows(walks, codes)
        weight_of_row = 1.0
        if self.step_weights == "rows":
            weight_of_row = n_players / len(codes)
        results = PermutationResults(
            valued,
            weight_of_row,
            noise_std=None if noise is None else noise.noise_std,
            n_utilities=int(needed_positions(weights).sum()),
        )
        return walks, results

    def _released(self, problem, game, plan, results):
        """What the private fit made public; None if it does not average releases."""
        if not self._averages_releases():
            return None
        _, players = game.players_in(problem.splits[0])
        return AveragedReleases(
            means=results.release_means,
            noise_std=results.noise_std,
            weights=plan.newest[: results.moments.count],
            skip=plan.n_skipped,
            step_weights=party_weights(self.step_weights, players),
            clip=plan.clip,
        )

    def _warn_of_noise(self, problem, attributes, values, released, run):
        """Warn if noise exceeds the signal in the `SplitValues`, or errors miss some.

        ``attributes`` are those of the fit, ``released`` what `_released` returns.
        """
        squares = values.variances
        if released is not None:
            simulation = self._simulation(problem, attributes, released, _N_ROUGH_ROWS)
            squares = squares + noise_squares(**simulation)
        warn_if_noise_exceeds(
            values.values, np.sqrt(squares), self._noise_advice, run.warn
        )
        if released is None:
            run.warn(
                "values_error_ leaves out the bias of the noise with noise='iid': .69 "
                "to .97 of the values were within two errors, where it is .90 to 1 "
                "with averaged noise.",
                ErrorsTooSmallWarning,
            )

    def _schedule(self, problem, event):
        """The weights of releases as `newest_weights` takes them."""
        if not is_named(self.noise, "optimal"):
            if self.gradient_variance is not None:
                raise ValueError(
                    "gradient_variance must be None unless noise='optimal', which "
                    f"alone uses it. Got {self.gradient_variance!r}."
                )
            return self.noise
        if self.gradient_variance is None:
            raise ValueError(
                "gradient_variance must be a number for noise='optimal': the weights "
                "of past releases depend on how much gradients vary. Got None."
            )
        if event is None:
            return "iid"
        # Parties of several sizes have noise of several sizes: its mean variance.
        _, players = problem.players_in(problem.splits[0])
        noise_std = event.event.scale * noise_factors(self.unit, players)
        noise_variance = np.mean(noise_std**2)
        return optimal_weights(
            self.n_permutations, noise_variance, self.gradient_variance
        )

    def _averages_releases(self):
        """Whether the steps of private fits are along averages of releases."""
        return not is_named(self.noise, "iid")

    def _n_skipped(self):
        """Number of first permutations whose utilities are not computed (burn-in)."""
        burn_in = self.burn_in
        if burn_in is None:
            averages_noise = self._is_private and self._averages_releases()
            burn_in = 0.9 if averages_noise else 0.0
        return min(int(burn_in * self.n_permutations), self.n_permutations - 1)

    def _weights(self, n):
        """Weights (n,) of the marginal utilities at each position."""
        return n * without_tails(size_weights(self.semivalue, n))

    def _public_rate(self, problem, clip, basis, seed, event, schedule):
        """Learning rate, chosen on the validation points of the first split."""
        split = problem.splits[0]
        points = split.points
        present, players = problem.players_in(split)
        weights = party_weights(self.step_weights, players)
        noise_std = 0.0
        if event is not None:
            # The root mean square noise in the steps of parties of several sizes.
            factors = noise_factors(self.unit, players) * weights
            factor = np.sqrt(np.mean(factors**2))
            noise_std = factor * step_noise_std(
                schedule, event.event.scale, self.n_permutations, self._n_skipped()
            )

        make_model = self._model_maker(problem, points, clip, basis)

        def make_public_model(rows, players, test_rows):
            return make_model(points.X[rows], points.y[rows], players, test_rows)

        party_size = max(1, round(len(players) / len(present)))
        rng = np.random.default_rng(seed)
        return public_learning_rate(
            make_public_model,
            len(points),
            len(present),
            party_size,
            rng,
            noise_std,
            weights.max(),
        )

    def _split_values(self, problem, results):
        """The `SplitValues` of the permutations of a split."""
        # Errors are shrunk to their mean over players of a kind: those of equal noise,
        # or the sums over equally many rows.
        kinds = np.zeros(len(results.players))
        if self.group_values == "faithful" and problem.groups is not None:
            kinds = np.bincount(problem.groups)[results.players]
        if results.noise_std is not None:
            kinds = results.noise_std
        moments = results.moments
        variances = pooled_variances(moments, kinds) / moments.count
        ends = np.mean(results.ends, axis=0)
        return SplitValues(results.players, moments.mean(), variances, ends)

    # After the fit --------------------------------------------------------------------

    @property
    def values_error_(self):
        """Standard errors of the values, over permutations and noise."""
        fitted = self._record(
            "values_error_", needs_parameters=True, error=AttributeError
        )
        released = fitted.statistic[0].released
        if released is None:
            return fitted.attributes["values_error_"]
        if "error" not in fitted.cache:
            simulation = self._simulation(fitted.problem, fitted.attributes, released)
            squares = simulated_squares(
                **simulation, n_draws=_N_ERROR_DRAWS, n_jobs=self.n_jobs
            )
            fitted.cache["error"] = np.sqrt(squares)
        return fitted.cache["error"]

    def _simulation(self, problem, attributes, released, n_rows=None):
        """Keywords of `simulated_squares` and `noise_squares`: nothing is private.

        ``n_rows`` limits the number of public rows.
        """
        # A private fit has one split.
        points = problem.splits[0].points
        rows, point_weights = public_rows(points, n_rows)
        return {
            "model": self._model_of(
                problem, attributes, 0, points.X[rows], points.y[rows]
            ),
            "weights": self._weights(len(released.means)),
            "rate": attributes["learning_rate_"],
            "released": released,
            "point_weights": point_weights,
        }

    def _model_of(self, problem, attributes, number, X, y):
        """The model of a split, with rows as parties of their own."""
        make_model = self._model_maker(
            problem,
            problem.splits[number].points,
            attributes["clip_"],
            attributes["bases"][number],
            unit="party",
        )
        return make_model(X, y, np.arange(len(y)))

    def _score_new(self, fitted, number, X, y):
        """A new row takes a step at the recorded models."""
        results = fitted.statistic[number]
        n_classes = fitted.problem.n_classes

        def model_of(labels):
            return self._model_of(fitted.problem, fitted.attributes, number, X, labels)

        def values_of(labels):
            model = model_of(labels)
            thetas = np.concatenate(results.models)
            rate = fitted.attributes["learning_rate_"] * results.weight_of_row
            return joining_values(model, thetas, rate)

        if y is not None:
            return values_of(y)

        # Without labels, values are averaged over those that the final models predict.
        unlabelled = np.zeros(len(X), int if n_classes else float)
        model = model_of(unlabelled)
        final_models = np.array(results.final_models)
        if not n_classes:
            targets = model.outputs(final_models).mean(axis=(0, 2))
            if isinstance(self.model, str) and self.standardize:
                points = fitted.problem.splits[number].points
                scale = target_scale(points.y, points.weights)
                targets = points.prior + scale * targets
            return values_of(targets)
        probabilities = class_probabilities(model, final_models).T
        return sum(
            probability * values_of(np.full(len(X), code))
            for code, probability in enumerate(probabilities)
        )


def _sums_of_rows(walks, codes):
    """Walks of rows as those of their groups, from the group (n_rows,) of every row."""
    for walk in walks:
        if walk.marginals is not None:
            walk = walk._replace(marginals=np.bincount(codes, walk.marginals))
        yield walk
