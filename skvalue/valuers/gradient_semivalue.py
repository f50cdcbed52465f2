"""Semivalues from (private) gradients: G-Shapley, with noise that averages out."""

from dataclasses import replace
from itertools import groupby
from numbers import Integral, Real

import numpy as np

from .._utils.checks import seed_of
from .._utils.sklearn import Interval, StrOptions
from ..base import Result
from ..gradients import (
    SCHEDULES,
    GradientNoise,
    own_fractions,
    public_learning_rate,
    step_noise_std,
    walk_permutations,
)
from ..semivalues import size_weights
from ._gradients import BaseGradientValuer, is_named, noise_factors, players_of


class GradientSemivalueValuer(BaseGradientValuer):
    """Values of parties by what one gradient step along each of them adds to a model.

    For every random permutation of the parties a fresh model takes one step along each party's
    clipped gradient, in that order. What a step adds to the utility on the validation points,
    weighted by a semivalue and averaged over permutations, is the party's value (G-Shapley). It is
    no estimate of what retraining would give; it costs a pass through the data a permutation.

    With `epsilon`, parties add noise to their gradients before these leave them: nobody has to be
    trusted, and the values are public. Each party's releases are averaged over permutations, so
    that noise cancels.

    Parameters
    ----------
    model : {"auto", "logistic", "softmax", "linear"} or torch.nn.Module, default="auto"
        What is trained: a logistic regression (softmax, for more than two classes), a softmax
        regression, a linear regression, or any torch module. "auto" is "logistic" for classes and
        "linear" for a continuous target.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple (alpha, beta) or callable, \
            default="shapley"
        The semivalue; a tuple is Beta(alpha, beta)-Shapley, a callable one of your own, see
        `skvalue.semivalues.size_weights`.
    loss : callable, default=None
        Loss of a torch module, of outputs and targets; None is the cross-entropy for classes and
        the squared error for targets. Built-in models have their own.
    utility : {"neg_loss", "accuracy"}, default="neg_loss"
        Utility of a model: the negated mean loss on the validation points, or the accuracy.
    n_permutations : int, default=100
        Permutations. With `epsilon`, also the number of releases of every party: noise grows with
        its root.
    learning_rate : float or "auto", default="auto"
        Length of the steps. "auto" takes, of eight from 0.001 to 3, the smallest at which walks
        through half of the validation points gain at least half of the utility, on the other half,
        that they gain at the best rate; with as many steps, and as much noise. Public data, at no
        cost in privacy.
    clip : float, "auto" or None, default=1.0
        Bound of the norm of gradients. "auto" is the median norm of the validation points'
        gradients at the start, which are public. None, without noise only, clips nothing.
    n_components : int or None, default=None
        Coordinates of a gradient that leave a party: along the mean gradient of the validation
        points at the start, and along the directions in which those differ most. They are public,
        so that the guarantee is the same with the same `clip`; noise has fewer coordinates, and
        gradients are shorter: take ``clip="auto"``. A torch module starts from the parameters it
        has. None is all.
    standardize : bool, default=True
        Whether built-in models see columns less their mean over their standard deviation on the
        validation points, over the root of the number of columns (a typical row then has norm one);
        and continuous targets likewise.
    epsilon : float or None, default=None
        Privacy of everything that a party releases. None adds no noise.
    delta : float, default=1e-5
        Chance that the guarantee of epsilon does not cover.
    noise_multiplier : float or None, default=None
        In place of epsilon, to repeat experiments: noise of standard deviation
        ``sqrt(n_permutations) * clip * noise_multiplier`` on every release. `privacy_` says what
        that guarantees.
    noise : {"iid", "correlated", "optimal"}, callable or array-like, default="correlated"
        What steps go along, where there is noise: a party's release; the running mean of its
        releases; the mean of least squared error where gradients vary over permutations by
        `gradient_variance`; or the release and the mean of those before with weights of your own,
        the first of which a callable gives from (t, n_permutations), or an array holds.
    gradient_variance : float or None, default=None
        For noise="optimal": variance of every coordinate of a party's clipped gradient over
        permutations. None estimates it, from what was released.
    burn_in : float or None, default=None
        Fraction of permutations, the first ones, whose utilities do not count (nor are computed).
        None is 0.9 where noise is averaged, else 0.
    trust : {"local", "server"}, default="local"
        "local": parties trust nobody; "server": a server sees clipped gradients and adds the noise,
        half of it.
    unit : {"party", "example"}, default="party"
        What is protected: all that a party holds, or one of its rows. "example" clips every row's
        gradient, and needs less noise by the number of rows of a party.
    ledger : skvalue.privacy.Ledger, default=None
        Charged for all permutations before the first gradient is computed.
    noise_random_state : int, default=None
        For tests only: a seed of the noise, which VOIDS the guarantee.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" decides by `sklearn.utils.multiclass.type_of_target`, with epsilon by
        that of y_val.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Which rows are held out to value which others when there is no validation set; every row
        must play equally often. With epsilon a validation set is required.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where a torch module computes. Built-in models compute on the CPU.
    n_jobs : int, default=None
        Threads of built-in models: for permutations, where they do not depend on each other; else
        one walks while one computes utilities. They change no bit of the values.
    random_state : int, RandomState or None, default=None
        Seed of permutations, and of the start of torch modules. The noise never comes from it.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With epsilon they are a
        function of what was released, and public.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Standard error of every value over permutations. What permutations share, such as averaged
        noise, it does not see.
    privacy_ : skvalue.privacy.PrivacyReport
        With noise: what is guaranteed, and the best that anybody can do at finding wrong labels
        under that guarantee.
    learning_rate_ : float
        Length of the steps.
    clip_ : float or None
        Bound of the norm of gradients.
    n_evaluations_ : int
        Utilities computed.
    utility_, empty_utility_ : float
        Mean utility after the last step, and before the first; Shapley values add up to their
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
    DataShapleyValuer : Values by retraining.
    skvalue.privacy.detection_ceiling : What a guarantee leaves to detection.

    References
    ----------
    A. Ghorbani, J. Zou: "Data Shapley: Equitable Valuation of Data for Machine Learning", ICML
    2019, Algorithm 2 (G-Shapley).

    "Data Valuation using Private Gradients", Algorithm 1, Propositions 5.1 to 5.4 (with the raw
    gradients averaged, noise for replacing a party's data, and weights for permutations).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from skvalue import GradientSemivalueValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import noisy_label_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(X, y, test_size=200, stratify=y, random_state=0)
    >>> y, wrong = flip_labels(y, 0.2, random_state=0)
    >>> valuer = GradientSemivalueValuer("logistic", random_state=0)
    >>> valuer = valuer.fit(X, y, X_val=X_val, y_val=y_val)
    >>> noisy_label_auc(valuer.values_, wrong) > 0.95
    True
    """

    _parameter_constraints: dict = {
        **BaseGradientValuer._parameter_constraints,
        "noise": [StrOptions(set(SCHEDULES)), callable, "array-like"],
        "gradient_variance": [Interval(Real, 0, None, closed="left"), None],
        "burn_in": [Interval(Real, 0, 1, closed="left"), None],
        "n_jobs": [Integral, None],
    }
    _part, _done = "permutations", "permutations walked"

    def __init__(
        self,
        model="auto",
        semivalue="shapley",
        *,
        loss=None,
        utility="neg_loss",
        n_permutations=100,
        learning_rate="auto",
        clip=1.0,
        n_components=None,
        standardize=True,
        epsilon=None,
        delta=1e-5,
        noise_multiplier=None,
        noise="correlated",
        gradient_variance=None,
        burn_in=None,
        trust="local",
        unit="party",
        ledger=None,
        noise_random_state=None,
        task="auto",
        cv=5,
        device="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.model = model
        self.semivalue = semivalue
        self.loss = loss
        self.utility = utility
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
        self.random_state = random_state

    def _prepare(self, problem):
        self._check_model(problem)
        optimal = is_named(self.noise, "optimal")
        if self.gradient_variance is not None and not optimal:
            raise ValueError(
                "gradient_variance must be None unless noise='optimal'. Got "
                f"{self.gradient_variance!r}."
            )
        self._check_noise()
        if not optimal:
            own_fractions(self.noise, self.n_permutations)
        clip, bases = self._public_bounds(problem)
        first, *seeds = np.random.SeedSequence(seed_of(self.random_state)).spawn(
            len(problem.splits) + 1
        )
        rate = self.learning_rate
        if rate == "auto":
            rate = self._public_rate(problem, clip, bases[0], first)
        # The last two are no attributes of the valuer: their names have no underscore at the end.
        return {"clip_": clip, "learning_rate_": float(rate), "bases": bases, "seeds": seeds}

    def _public_rate(self, problem, clip, basis, seed):
        """Learning rate, chosen on the validation points of the first split."""
        points = problem.splits[0].points
        present, players = players_of(problem, problem.splits[0])
        make, noise_std = self._model_maker(problem, points, clip, basis), 0.0
        if self._is_private:
            noise_std = noise_factors(self.unit, players).mean() * step_noise_std(
                self.noise, self._event(clip).event.scale, self.n_permutations, self._n_skipped()
            )
        return public_learning_rate(
            lambda rows, players, some: make(points.X[rows], points.y[rows], players, some),
            len(points),
            len(present),
            max(1, round(len(players) / len(present))),
            np.random.default_rng(seed),
            noise_std,
        )

    def _of_split(self, model, names, factors, draw, seed, attributes):
        """Marginal utilities along the permutations of one split."""
        n, noise = len(names), None
        if draw is not None:
            noise = GradientNoise(
                draw, draw.scale, attributes["clip_"], factors, self.noise, self.gradient_variance
            )
        return walk_permutations(
            model,
            n * size_weights(self.semivalue, n),
            self.n_permutations,
            attributes["learning_rate_"],
            seed,
            noise=noise,
            skip=self._n_skipped(),
            names=names,
            n_jobs=self.n_jobs,
        )

    def _combine(self, problem, attributes, parts):
        sums = PermutationSums(problem.n_players)
        for number, walks in groupby(parts, key=lambda part: part[0]):
            present, _ = players_of(problem, problem.splits[number])
            sums.add(present, (walk for _, walk in walks))
        if not sums.n_splits:
            return self._without_values(parts)
        empty, utility = sums.utilities()
        return Result(
            sums.values(), float(utility), float(empty),
            replace(problem, splits=problem.splits[: sums.n_splits]),
            attributes={"values_error_": sums.errors(), "n_evaluations_": sums.n_evaluations},
        )  # fmt: skip


class PermutationSums:
    """Sums of marginal utilities over the permutations of every split.

    ``n_splits`` is the number of splits of which a permutation counted.
    """

    def __init__(self, n_players):
        self.n_splits = self.n_evaluations = 0
        self._values, self._variances = np.zeros(n_players), np.zeros(n_players)
        self._utilities = np.zeros(2)

    def add(self, present, walks):
        """Add the mean over walks of the marginal utilities of the players ``present``."""
        count, mean, squares = 0, np.zeros(len(present)), np.zeros(len(present))
        utilities = np.zeros(2)
        for marginals, ends in walks:
            if marginals is None:
                continue
            count += 1
            away = marginals - mean
            mean += away / count
            squares += away * (marginals - mean)
            utilities += (ends - utilities) / count
        if count:
            self.n_splits += 1
            self.n_evaluations += count * (len(present) + 1)
            self._values[present] += mean
            one = count == 1
            self._variances[present] += np.inf if one else squares / (count * (count - 1))
            self._utilities += utilities

    def values(self):
        """Mean over splits of the values, zero where a player does not play."""
        return self._values / self.n_splits

    def errors(self):
        """Standard errors of the values over permutations."""
        return np.sqrt(self._variances) / self.n_splits

    def utilities(self):
        """Mean utilities of the empty coalition and of all players."""
        return self._utilities / self.n_splits
