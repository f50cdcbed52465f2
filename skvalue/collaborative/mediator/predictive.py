"""Values of parties: how much better their releases make a model predict.

Sim, Fan, Tian, Xu, Jaillet and Low, "Incentivizing Truthfulness and Collaborative
Fairness in Bayesian Learning" (ICML 2026).
"""

import numpy as np

from ..._utils.sklearn import check_parameters, fit_context
from ..._utils.warned import warn
from ...exceptions import ClippedRowsWarning
from ._scorer import PartyScorer
from ._utilities import PredictiveGain
from .posterior import check_points

_MAX_CLIPPED = 0.2  # of the validation points, without a warning


class PredictiveValueScorer(PartyScorer):
    """Value of parties by what their releases add to a model's predictions.

    The value of a coalition is the mean log predictive density of the mediator's
    validation points under its posterior, less that under the prior. The value of a
    party is its `semivalue`. A party maximizes its expected value by a release of rows
    that it believes in, as long as it does not know the validation points; wrong labels
    and noise have values of at most about 0. The value of rows that predict is the same
    whether they were collected or copied: copies are paid.

    The validation points are not protected. They should be distributed as the rows on
    which the model will be used, and no party should know them.

    Parameters
    ----------
    model : model
        As in `BayesianSurpriseScorer`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple or callable, \
            default="shapley"
        The semivalue of the parties, see `skvalue.semivalues.size_weights`; a tuple
        (alpha, beta) is that of Beta(alpha, beta). With "banzhaf" a party cannot gain
        by splitting up under two names: in any game their values sum to that of the
        party. Pay such values with `skvalue.rewards.payments`.
    n_particles : int, default=None
        Number of particles of each sampled posterior. None takes 2,000, and fewer above
        4 parties, such that their total number does not grow: 800 of 12. A model of one
        parameter with a method ``prior_quantile(u)``, such as `GaussianMean`, is
        integrated on a grid.
    n_permutations : int, default=400
        Number of permutations of the parties, in pairs of reversed ones, above 12
        parties. Up to 12, all coalitions are evaluated.
    min_ess : float, default=100
        Posteriors of coalitions with a smaller effective sample size are sampled as
        well.
    max_time : float, default=None
        Seconds after which posteriors of coalitions with a small effective sample size
        are no longer sampled; values then depend on the machine. Those of each party
        and of all parties are, and the coalitions are evaluated, in any case.
    random_state : int, RandomState instance or None, default=None
        Controls the sampling.

    Attributes
    ----------
    parties_ : list
        Names of the parties.
    values_ : ndarray of shape (n_parties,)
        Values in the order of `parties_`, in nats per validation point; Shapley values
        sum to `grand_value_`.
    values_error_ : ndarray of shape (n_parties,)
        Errors of the values: the square root of the sum of squares of
        `computation_error_` and `release_error_`. Not set where the latter is not.
    computation_error_ : ndarray of shape (n_parties,)
        Standard errors of the computation: of the sampling of posteriors and, above 12
        parties, of permutations.
    release_error_ : ndarray of shape (n_parties,)
        Errors that the noise of the releases causes. The values without noise, of the
        same clipped rows, are within two of them in 95 % of draws of what is behind the
        releases, see Notes; 0 if no release has noise. Not set for releases with noise
        and a model without `exact_posteriors`, such as a user's, or that ignores noise:
        nothing is then known of it.
    validation_error_ : ndarray of shape (n_parties,)
        Standard errors over the validation points; NaN for a single point.
    coalition_values_ : ndarray of shape (2**n_parties,)
        Values of all coalitions: bit i of the index is party i of `parties_`. Only up
        to 12 parties.
    coalition_values_error_, coalition_computation_error_ : ndarray of shape \
            (2**n_parties,)
        Errors of `coalition_values_`, as those of `values_`.
    standalone_values_ : ndarray of shape (n_parties,)
        Values of the coalitions of one party.
    grand_value_, grand_value_error_ : float
        Value of the coalition of all parties, and its error.
    ess_ : ndarray of shape (n_coalitions,)
        Effective sample sizes of the evaluated coalitions, in the order of
        `coalition_values_` if it exists.
    n_evaluations_ : int
        Number of coalitions evaluated.
    model_ : model
        The model, bound to the releases.
    releases_ : dict
        The releases by party.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Needs no validation points, trusts the releases.
    skvalue.collaborative.RhoShapleyReward : Computes rewards from the values.

    Notes
    -----
    For `release_error_` the mediator draws statistics that may be behind the releases:
    a party's parameters from the posterior of its own release or, at the odds that its
    release agrees with the others and with the
    validation points, from their common posterior, and the
    statistic given these and the release. Coalitions are valued by each draw without
    noise, in closed form or, for `BayesianLogistic`, by a normal approximation that is
    corrected by one sampled game. The error is half the distance from `values_` within
    which 95 % of these values are: the standard deviation where they are normal around
    `values_`. It contains what noise takes from a value on average, and nothing of
    clipping, of which a mediator does not learn. The errors hold on average over what
    may be behind the releases: for one set of parties they can be too small. Of six
    organisations of which one has flipped labels, under `BayesianLogistic` at epsilon
    1, .96 of the values were within two errors of those without noise, and .80 of those
    of the largest party; with a prior of precision 1, which is too strong beside
    features that are scaled to the unit ball, .61 of all (:ref:`release_errors`).

    References
    ----------
    R. H. L. Sim, J. Fan, X. Tian, X. Xu, P. Jaillet, B. K. H. Low: "Incentivizing
    Truthfulness and Collaborative Fairness in Bayesian Learning", ICML 2026.

    Examples
    --------
    >>> from skvalue import PredictiveValueScorer
    >>> from skvalue.collaborative import GaussianMean, NoisyStatistic
    >>> releases = {
    ...     name: NoisyStatistic("gaussian", 100, (100 * mean,), 0.5, 2.0, (-1.0, 1.0))
    ...     for name, mean in [("a", 0.4), ("b", 0.35), ("false", -0.4)]
    ... }
    >>> scorer = PredictiveValueScorer(GaussianMean(variance=0.1))
    >>> scorer = scorer.fit(releases, y_val=[0.3, 0.7, 0.2, 0.4])
    >>> dict(zip(scorer.parties_, scorer.values_.round(2).tolist()))
    {'a': 0.93, 'b': 0.87, 'false': -1.09}
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, releases, y=None, *, X_val=None, y_val=None):
        """Value the parties.

        Parameters
        ----------
        releases : mapping of party to NoisyStatistic, or sequence of NoisyStatistic
            Releases of the parties. The parties of a sequence are named 0, 1, ...
        y : Ignored
            Not used, present for API consistency by convention.
        X_val : array-like of shape (n_validation, n_features), default=None
            The mediator's validation points; None for models without features.
        y_val : array-like of shape (n_validation,)
            Targets or labels of the validation points.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        TypeError
            If `releases` holds anything else than NoisyStatistic objects, such as rows.
        ValueError
            If there are no releases, they do not suit the model, are inconsistent, or
            state another prior than that of the model, or the validation points are
            missing or do not suit them.
        """
        bound = self._bind(releases)
        points, targets = check_points(self, bound.model, X_val, y_val, "_val")
        self._value(bound, PredictiveGain(bound.model, points, targets))
        if self._exact_draws is not None:
            self._warn_of_noise(self.release_error_)
        if hasattr(bound.model, "x_bound_"):
            _warn_of_clipped_points(bound.model, points)
        return self

    def estimate_cost(self, releases, *, X_val=None, y_val=None):
        """Estimate the cost of `fit` from the time of some likelihoods and coalitions.

        Parties that contradict each other take up to twice as long.

        Parameters
        ----------
        releases : mapping of party to NoisyStatistic, or sequence of NoisyStatistic
            Releases of the parties.
        X_val, y_val : array-likes
            The mediator's validation points, as in `fit`.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate), ``n_evaluations``, the number of coalitions,
            ``seconds_per_evaluation``, and ``n_players``, the number of parties.

        Raises
        ------
        TypeError, ValueError
            As in `fit`.
        """
        check_parameters(self)
        bound = self._bind(releases)
        X_val, y_val = check_points(self, bound.model, X_val, y_val, "_val")
        return self._cost(bound, PredictiveGain(bound.model, X_val, y_val))


def _warn_of_clipped_points(model, points):
    """Warn if many validation points were clipped, as rows of the parties then are."""
    # Points that were clipped are as long as the bound, to rounding.
    is_clipped = np.linalg.norm(points, axis=1) >= (1 - 1e-9) * model.x_bound_
    if is_clipped.mean() > _MAX_CLIPPED:
        warn(
            f"{is_clipped.sum()} of {len(points)} validation points are longer than "
            f"x_bound={model.x_bound_:g} and are clipped, as such rows of the parties "
            "are: agree on a public x_centre and x_scale of the features.",
            ClippedRowsWarning,
        )
