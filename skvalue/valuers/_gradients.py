"""From the parameters of a gradient valuer to walks, and back to values."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from .._utils.checks import check_numeric_target, check_task, encode_labels
from ..base._old_judges import Progress
from ..base._old_private import codes_or_other, public_classes
from ..gradients._models import LinearGradientModel, gradients_at
from ..gradients._noise import gradient_event, gradient_report, own_shares, step_deviation
from ..gradients._public import column_scales, public_directions, public_learning_rate, target_scale
from ..gradients._walk import Perturbed, walk_permutations
from ..privacy import noise_source
from ..privacy._checks import check_delta, check_epsilon
from ..semivalues import check_semivalue, size_weights

BUILT_IN = {"auto": None, "logistic": "classification", "softmax": "classification",
            "linear": "regression"}  # fmt: skip

_JUDGES = 1000  # whose gradients are looked at, at most


class GradientFitsMixin:
    """Fits of `GradientSemivalueValuer`: what is checked, built, walked, and added up."""

    _curator = ()  # values are a function of what is public
    n_components = None  # of gradients that leave a party, where that can be chosen

    # Parameters -----------------------------------------------------------------------------

    @property
    def _built_in(self):
        return isinstance(self.model, str)

    @property
    def _allows_nd(self):
        return not self._built_in

    @property
    def _n_releases(self):
        """How often a party releases a gradient."""
        return self.n_permutations

    def _is_private(self):
        return self.epsilon is not None or self.noise_multiplier is not None

    def _wants_privacy(self):
        return self._is_private()

    def _refuse_reader(self):
        """Values are public."""

    def _task(self):
        """The kind of target that the model wants, or the user."""
        if self._built_in and self.model not in BUILT_IN:
            raise ValueError(
                "model must be 'auto', 'logistic', 'softmax', 'linear' or a torch module. Got "
                f"{self.model!r}."
            )
        wanted = BUILT_IN[self.model] if self._built_in else None
        if wanted is not None and self.task not in ("auto", wanted):
            raise ValueError(
                f"task must be 'auto' or {wanted!r} with model={self.model!r}. Got {self.task!r}."
            )
        return self.task if wanted is None else wanted

    def _prepare(self, X_val, y_val):
        check_semivalue(self.semivalue, custom=True)
        if self._built_in:
            if self.loss is not None:
                raise ValueError(
                    f"loss must be None for model={self.model!r}, which has its own. Got "
                    f"{self.loss!r}."
                )
            if self.device not in ("auto", "cpu"):
                raise ValueError(
                    f"device must be 'auto' or 'cpu' for model={self.model!r}; torch modules "
                    f"compute elsewhere. Got {self.device!r}."
                )
        if self.utility == "accuracy" and self._n_classes == 0:
            raise ValueError("utility must be 'neg_loss' for a continuous target. Got 'accuracy'.")
        if self.gradient_variance is not None and not self._noise_is("optimal"):
            raise ValueError(
                "gradient_variance must be None unless noise='optimal'. Got "
                f"{self.gradient_variance!r}."
            )
        self._check_noise()

    def _check_noise(self):
        """Refuse parameters of the noise that do not fit together."""
        if self._is_private():
            if self.epsilon is not None and self.noise_multiplier is not None:
                raise ValueError(
                    "noise_multiplier must be None where epsilon is given: either says how much "
                    f"noise there is. Got {self.noise_multiplier!r}."
                )
            if self.clip is None:
                raise ValueError(
                    "clip must be a number where gradients are private: it bounds what one of them "
                    "can be. Got None."
                )
        self._check_shares()

    def _check_shares(self):
        if not self._noise_is("optimal"):
            own_shares(self.noise, self._n_releases)

    def _noise_is(self, name):
        return isinstance(self.noise, str) and self.noise == name

    def _n_skipped(self):
        """Permutations whose utilities do not count."""
        share = self.burn_in
        if share is None:
            share = 0.9 if self._is_private() and not self._noise_is("iid") else 0.0
        return min(int(share * self._n_releases), self._n_releases - 1)

    # What `fit` calls -----------------------------------------------------------------------

    def _check_budget(self):
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        check_delta(self.delta)

    def _fit_private(self, X, y, X_val, y_val, groups, sample_weight_val):
        self._check_budget()
        if X_val is None:
            raise ValueError(
                "X_val and y_val must be passed with epsilon: a private fit needs public "
                "validation points to judge the rows. They are NOT protected, so take none of the "
                "private rows. Got no X_val."
            )
        progress = self._fit_arrays(X, y, X_val, y_val, groups, sample_weight_val)
        self._X = self._y = self._seen = None
        return progress

    def _encode_target(self, y, y_val):
        private, task = self._is_private(), self._task()
        task = check_task(task, y_val if private else y, "y_val" if private else "y")
        if task == "regression":
            self._n_classes = 0
            self.__dict__.pop("classes_", None)
            y = check_numeric_target(y, "y")
            return y, None if y_val is None else check_numeric_target(y_val, "y_val")
        if private:
            self.classes_, y_val = public_classes(y_val)
            y = codes_or_other(y, self.classes_)
        else:
            self.classes_, y, y_val = encode_labels(y, y_val)
        self._n_classes = len(self.classes_)
        return y, y_val

    def _play(self, games, X, y, groups):
        n = len(X) if groups is None else int(groups.max()) + 1
        seeds = np.random.SeedSequence(self._seed()).spawn(len(games) + 1)
        skip, rate, sums = self._n_skipped(), None, Sums(n)
        size = len(X) / n
        bases, bounds = zip(*(self._from_public(judges, size) for _, judges in games))
        self.clip_ = bounds[0]
        event, draw = self._charge() if self._is_private() else (None, None)
        progress = Progress(self, len(games) * self.n_permutations)
        for (rows, judges), seed, basis in zip(games, seeds[1:], bases):
            rows = np.arange(len(X)) if rows is None else rows
            codes = rows if groups is None else groups[rows]
            present, players = np.unique(codes, return_inverse=True)
            make = self._model_maker(judges, basis=basis)
            perturbed = None if event is None else self._perturbed(event, draw, players)
            if rate is None:
                rate = self._rate(make, judges, len(rows), len(present), seeds[0], perturbed)
            walks = walk_permutations(
                make(X[rows], y[rows], players),
                len(present) * size_weights(self.semivalue, len(present)),
                self.n_permutations,
                rate,
                seed,
                perturbed=perturbed,
                skip=skip,
                names=present if groups is None else self.groups_[present],
                n_jobs=self.n_jobs,
            )
            sums.add(present, progress.follow(walks, self.n_permutations, "permutations"))
            if progress.over:
                break
        if not sums.played:
            if progress.interrupted:
                raise KeyboardInterrupt
            raise RuntimeError(
                "The fit was stopped by a callback before a permutation counted: the first "
                f"{skip} are the burn-in."
            )
        self.learning_rate_, self.n_evaluations_ = rate, sums.evaluations
        self.values_error_ = sums.errors()
        if event is not None:
            self.privacy_ = gradient_report(
                event, self.delta, trust=self.trust, unit=self.unit, groups=groups is not None,
                noise_random_state=self.noise_random_state,
            )  # fmt: skip
        empty, utility = sums.utilities()
        return games[: sums.played], sums.values(), utility, empty, progress

    def _set_values(self, values):
        self.values_ = values

    # Plumbing -------------------------------------------------------------------------------

    def _seed(self):
        if self.random_state is None:
            return np.random.SeedSequence().entropy
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _event_of_all(self):
        """All releases of a party."""
        return gradient_event(
            self._n_releases, self._bound(), epsilon=self.epsilon, delta=self.delta,
            noise_multiplier=self.noise_multiplier, trust=self.trust,
        )  # fmt: skip

    def _charge(self):
        """The event of all releases, on record; and the source of its noise."""
        event = self._event_of_all()
        if self.ledger is not None:
            self.ledger.charge(event, label=f"{type(self).__name__}: perturbed gradients")
        return event, noise_source(event.event, noise_random_state=self.noise_random_state)

    def _perturbed(self, event, draw, players):
        counts = np.bincount(players).astype(np.float64)
        return Perturbed(
            draw,
            1 / counts if self.unit == "example" else np.ones(len(counts)),
            event.event.scale,
            self._bound(),
            self.noise,
            self.gradient_variance,
        )

    def _bound(self):
        """Bound of the norm of gradients."""
        return self.clip_ if self.clip == "auto" else self.clip

    def _from_public(self, judges, size):
        """Basis in which gradients are taken, None for all of it, and bound of their norm.

        From the gradients of judges at the start; as parties, they have the size of the others.
        """
        if self.n_components is None and self.clip != "auto":
            return None, self.clip
        some = np.linspace(0, len(judges.y) - 1, min(len(judges.y), _JUDGES)).astype(int)
        make = self._model_maker(judges, clip=None, unit="party")
        model = make(judges.X[some], judges.y[some], np.arange(len(some)), some[:1])
        gradients, basis = gradients_at(model, model.initial(np.random.default_rng(0))), None
        if self.n_components is not None:
            weights = _shares(judges.weights[some])
            basis = public_directions(gradients, weights, self.n_components)
            gradients = gradients @ basis
        if self.clip != "auto":
            return basis, self.clip
        if self.unit == "party" and size > 1:
            order = np.random.default_rng(0).permutation(len(some))
            count = max(1, int(len(some) / size))
            gradients = np.array([gradients[part].mean(0) for part in np.array_split(order, count)])
        bound = float(np.median(np.linalg.norm(gradients, axis=1)))
        if not bound > 0:
            raise ValueError(
                "clip must be a number where validation points have no gradient at the start. Got "
                "'auto'."
            )
        return basis, bound

    def _model_maker(self, judges, **own):
        """``make(X, y, players, some)``: the model of rows, judged by (some of) the judges."""
        private, n_classes = self._is_private(), self._n_classes
        options = {"unit": self.unit, "utility": self.utility, **own}
        if "clip" not in own:
            options["clip"] = self._bound()
        if not self._built_in:
            from ..gradients._torch import TorchGradientModel

            other = n_classes if private and n_classes else None
            start = "auto" if self.n_components is None else "given"
            return lambda X, y, players, some=slice(None): TorchGradientModel(
                self.model, self.loss, X, y, players, judges.X[some], judges.y[some],
                weights_val=_shares(judges.weights[some]), other=other, start=start,
                non_finite="zero" if private else "pass", device=self.device, **options,
            )  # fmt: skip
        mean, scale, centre, unit = 0.0, 1.0, 0.0, 1.0
        if self.standardize:
            mean, scale = column_scales(judges.X)
            scale = scale * np.sqrt(len(scale))
            if not n_classes:
                centre, unit = judges.prior, target_scale(judges.y, judges.weights)
        kind = "softmax" if n_classes > 2 or self.model == "softmax" else "logistic"
        options.update(kind=kind if n_classes else "linear", n_classes=n_classes)

        def make(X, y, players, some=slice(None)):
            y_val = judges.y[some]
            if not n_classes:
                y, y_val = (y - centre) / unit, (y_val - centre) / unit
            # Utilities are in the units of the target, squared.
            weights = _shares(judges.weights[some]) * unit**2
            X, X_val = (X - mean) / scale, (judges.X[some] - mean) / scale
            return LinearGradientModel(X, y, players, X_val, y_val, weights, **options)

        return make

    def _rate(self, make, judges, n_rows, n_players, seed, perturbed):
        """Learning rate, chosen on the judges."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        deviation = 0.0
        if perturbed is not None:
            deviation = perturbed.scales.mean() * step_deviation(
                self.noise, perturbed.deviation, self._n_releases, self._n_skipped()
            )
        return public_learning_rate(
            lambda rows, players, test: make(judges.X[rows], judges.y[rows], players, test),
            len(judges.y),
            n_players,
            max(1, round(n_rows / n_players)),
            np.random.default_rng(seed),
            deviation,
        )


def _shares(weights):
    """Weights of some judges, with the sum one; equal where they have none."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


class Sums:
    """Sums of marginal utilities over the permutations of every game.

    Parameters
    ----------
    n : int
        Number of players of all games.

    Attributes
    ----------
    played : int
        Games of which a permutation counted.
    evaluations : int
        Utilities computed.
    """

    def __init__(self, n):
        self.played = self.evaluations = 0
        self._values, self._variances = np.zeros(n), np.zeros(n)
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
            self.played += 1
            self.evaluations += count * (len(present) + 1)
            self._values[present] += mean
            one = count == 1
            self._variances[present] += np.inf if one else squares / (count * (count - 1))
            self._utilities += utilities

    def values(self):
        """Mean over games of the values, zero where a player does not play."""
        return self._values / self.played

    def errors(self):
        """Standard errors of the values over permutations."""
        return np.sqrt(self._variances) / self.played

    def utilities(self):
        """Mean utilities of nobody and of all."""
        return self._utilities / self.played
