"""The buyer's estimator: fits the maps, exports them, and scores sellers' summaries.

"Private, Augmentation-Robust and Task-Agnostic Data Valuation Approach for Data
Marketplace" (PriArTa), with another mechanism, which has a proven guarantee.
"""

import warnings
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import columns_of, set_fitted_state
from ..._utils.sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_feature_names,
    fit_context,
)
from ..._utils.warned import warn
from ...exceptions import NoiseExceedsSignalWarning, ParameterError
from ...privacy import SeededNoiseWarning
from ..maps import (
    LATENTS,
    MAX_REACH,
    MIN_REACH,
    REPRESENTATIONS,
    BuyerModel,
    FittedMap,
    as_rows,
    class_named,
    count_rows,
    name_of,
    row_norms,
)
from ..seller import (
    RELEASE_CONSTRAINTS,
    SellerRelease,
    n_radius_counts,
    noise_of,
    release_event,
    typical_radius,
)
from ._estimates import METRICS, Buyer, Estimates, by_radius, estimate_summaries
from ._reading import read_summaries
from ._simulation import choose_weight, noise_floor, pair_floor, score_error
from .metrics import factored_wasserstein, principal_contributions

_AUTO_QUANTILE = 0.95  # of the buyer's norms


class PriArTaScorer(BaseEstimator):
    """Score sellers' data sets by private summaries: distances from the buyer's data.

    The buyer fits a representation and a latent map on its own rows and exports them.
    Each seller returns the moments of its latent rows, with noise if it has an
    `epsilon`. The score is the distance between the Gaussian distributions with the
    seller's and the buyer's moments; without noise it is that of the paper. A large
    score means that the data differ from the buyer's: they may have new classes or be
    pure noise, which no distance can distinguish.

    Of private scores .94 to .99 are within two of the errors of `score_errors`, in a
    market of near, far, wide, narrow and alike sellers of 20 to 1,040 rows at epsilon
    0.5 to 8; of sellers with two modes far apart .70 to 1.00, since rows far out are
    clipped.

    Parameters
    ----------
    representation : str or object, default="identity"
        Map from rows to vectors: "identity", "pca", "simclr", or an object of these
        classes. Any scikit-learn transformer, torch module or function of rows is
        accepted as well, but cannot be exported. It must transform each row separately.
    latent : str or object, default="gaussian"
        Map from representations to latent rows, whose moments are released: "gaussian"
        is the identity, "pca" takes principal components, "vae" the means of a
        variational autoencoder.
    metric : {"wasserstein", "kl", "diversity", "relevance"}, default="wasserstein"
        2-Wasserstein distance, Jeffreys divergence, or one of the baselines of the
        paper, see `skvalue.priarta.diversity_relevance`. Relevance falls with the
        distance: for it, larger scores than `noise_floor_` are not significant.
    epsilon : float or None, default=None
        Privacy loss of each seller's rows in `summarize` and `transform`; None adds no
        noise. Sellers that use `SellerRelease` on their own machines choose their own.
    delta : float, default=1e-5
        Delta of the guarantee.
    max_norm : float or "auto", default="auto"
        Radius around the buyer's mean to which private sellers clip their latent rows;
        without noise none is clipped. "auto": each has a radius of its own, by the
        noisy median of its distances, see `SellerRelease`. A number is the radius of
        all: it saves a fifth of the budget, if it is known how far rows reach.
    relation : {"replace", "null", "add_remove"}, default="replace"
        Neighbouring relation of the sellers, see `SellerRelease`.
    mean_weight : float or "auto", default="auto"
        Weight of the mean in a noisy release, see `BuyerModel`. "auto" minimizes the
        error of simulated distances between the buyer and parts of its own rows, at
        this epsilon (1 if that is None). No seller's rows are used.
    shrink : bool, default=True
        Whether noisy moments are shrunk towards the buyer's, by Bayes estimates with
        the known variance of the noise. The prior assumes that sellers differ from the
        buyer in the directions in which its rows vary, by an unknown amount. It is
        post-processing: it reduces the error by a factor of up to ten where noise is
        large, and keeps scores from growing with the noise.
    random_state : int, RandomState instance or None, default=0
        Controls maps given by name, and simulated standard errors and noise floors.
    noise_random_state : int, default=None
        Seed of the sellers' noise, for tests and experiments only: it VOIDS their
        guarantees.

    Attributes
    ----------
    model_ : BuyerModel
        Model that `export` writes, with the `mean_weight` used.
    max_norm_ : float
        `max_norm`, or the 95 % quantile of the norms of the buyer's rows.
    noise_floor_ : float
        95 % quantile of the score of a seller with the buyer's distribution and number
        of rows, and noise with these parameters. Smaller scores are not significant.
    components_ : ndarray of shape (n_dimensions, n_dimensions)
        Principal directions of the buyer's latent rows, one per row, as used by
        `explain`.
    n_samples_ : int
        Number of the buyer's rows.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the buyer's columns, if it had any.

    See Also
    --------
    skvalue.priarta.SellerRelease : Makes the summary of a seller.

    References
    ----------
    The paper of PriArTa; W. E. Strawderman: "Proper Bayes Minimax Estimators of the
    Multivariate Normal Mean", Annals of Mathematical Statistics 1971.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.priarta import PriArTaScorer
    >>> rng = np.random.default_rng(0)
    >>> X_buyer, X_near, X_far = rng.normal(size=(3, 500, 2))
    >>> PriArTaScorer().fit(X_buyer).transform([X_near, X_far + 2]).round(1)
    array([[0.1],
           [2.8]])
    """

    _parameter_constraints: dict = {
        "representation": [
            StrOptions(set(REPRESENTATIONS)),
            HasMethods(["transform"]),
            callable,
        ],
        "latent": [StrOptions(set(LATENTS)), HasMethods(["transform"]), callable],
        "metric": [StrOptions(set(METRICS))],
        **RELEASE_CONSTRAINTS,
        "max_norm": [
            Interval(Real, MIN_REACH, MAX_REACH, closed="both"),
            StrOptions({"auto"}),
        ],
        "mean_weight": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "shrink": ["boolean"],
        "random_state": ["random_state"],
        "noise_random_state": [Integral, None],
    }

    def __init__(
        self,
        representation: object = "identity",
        *,
        latent: object = "gaussian",
        metric="wasserstein",
        epsilon=None,
        delta=1e-5,
        max_norm: float | str = "auto",
        relation="replace",
        mean_weight: float | str = "auto",
        shrink=True,
        random_state=0,
        noise_random_state=None,
    ):
        self.representation = representation
        self.latent = latent
        self.metric = metric
        self.epsilon = epsilon
        self.delta = delta
        self.max_norm = max_norm
        self.relation = relation
        self.mean_weight = mean_weight
        self.shrink = shrink
        self.random_state = random_state
        self.noise_random_state = noise_random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, model=None):
        """Fit the maps on the buyer's rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows, in a shape that the representation accepts. They are not
            protected.
        y : Ignored
            Not used, present for API consistency by convention.
        model : BuyerModel, default=None
            A model that was exported after a fit to the same rows: its maps, radius and
            weight are used in place of the parameters, to score summaries in a later
            process.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If there are fewer than 2 rows, the output of a map is not finite,
            parameters are inconsistent, or `model` belongs to other rows.
        ImportError
            If a map needs a package that is not installed.
        """
        n_rows = count_rows(X)
        if n_rows < 2:
            raise ParameterError("X", f"must have at least 2 rows. Got {n_rows}.")
        columns = columns_of(X)
        random_state = check_random_state(self.random_state)

        # Latent rows, around their mean.
        if model is None:
            representation = _fit_map(
                self.representation, REPRESENTATIONS, X, random_state
            )
            rows = as_rows(representation.transform(X), n_rows, "representation")
            latent = _fit_map(self.latent, LATENTS, rows, random_state)
            rows = as_rows(latent.transform(rows), n_rows, "latent")
            centre = rows.mean(axis=0)
            rows = rows - centre
            max_norm, median_norm = self._norms(rows)
        else:
            model.check_columns(X)
            rows = model.latent_rows(X)
            _check_mean(rows, model)
            rows = rows - model.centre
            max_norm = model.max_norm
        _check_reach(rows)

        buyer = Buyer(
            rows, max_norm, self.metric, seed=int(random_state.randint(2**31))
        )
        if model is None:
            model = BuyerModel(
                representation,
                latent,
                centre,
                max_norm,
                median_norm=median_norm,
                columns=columns.get("feature_names_in_"),
            )
            model = self._with_mean_weight(model, buyer)
        floor = self._own_noise_floor(buyer, model, n_rows)
        set_fitted_state(
            self,
            model_=model,
            max_norm_=max_norm,
            noise_floor_=floor,
            components_=np.linalg.eigh(buyer.exact.covariance)[1].T[::-1],
            n_samples_=n_rows,
            _buyer=buyer,
            _shrink=self.shrink,
            **columns,
        )
        return self

    def _norms(self, rows):
        """`max_norm` and `median_norm` of the model, of centred rows (n, d)."""
        if not isinstance(self.max_norm, str):
            return self.max_norm, None
        norms = row_norms(rows)
        largest, median = map(float, np.quantile(norms, [_AUTO_QUANTILE, 0.5]))
        # Rows that are mostly equal have norms of 0, around which there is no search.
        if median == 0:
            return largest or 1.0, None
        return largest, median

    def _with_mean_weight(self, model, buyer):
        """The model with the weight of the mean; "auto" tunes it on the rows."""
        weight = self.mean_weight
        if isinstance(weight, str):
            weight = choose_weight(
                buyer,
                typical_radius(model),
                n_radius_counts(model),
                epsilon=self.epsilon or 1.0,
                delta=self.delta,
                relation=self.relation,
                shrink=self.shrink,
            )
        return BuyerModel(
            model.representation,
            model.latent,
            model.centre,
            model.max_norm,
            weight,
            model.median_norm,
            model.columns,
        )

    def _own_noise_floor(self, buyer, model, n_rows):
        """The noise floor of a seller with as many rows as the buyer."""
        if self.epsilon is None:
            return noise_floor(buyer, None, n_rows, None, self.shrink)
        event = release_event(
            self.epsilon,
            self.delta,
            model.mean_weight,
            self.relation,
            n_radius_counts(model),
        )
        radius = typical_radius(model)
        noise = noise_of(
            self.relation,
            event.scale,
            model.mean_weight,
            n_rows,
            model.n_dimensions,
            radius,
        )
        return noise_floor(buyer, noise, n_rows, radius, self.shrink)

    # Sellers --------------------------------------------------------------------------

    def summarize(self, datasets):
        """Simulate sellers: summaries of their data sets.

        Parameters
        ----------
        datasets : sequence of array-like
            The rows of each seller, in the shape of the buyer's rows.

        Returns
        -------
        summaries : list of Summary
            One summary per seller, with noise by `epsilon`.

        Raises
        ------
        ValueError
            If a data set does not suit the model: a DataFrame must have the buyer's
            columns, in their order.
        """
        check_is_fitted(self, "model_")
        if isinstance(datasets, Mapping):
            raise ValueError(
                "datasets must be a sequence of data sets, one per seller. Got a "
                "mapping: pass its values()."
            )
        if getattr(datasets, "ndim", 3) < 3:
            raise ValueError(
                "datasets must be a sequence of data sets, one per seller. Got a table "
                f"of shape {datasets.shape}; for one seller pass [X]."
            )
        summaries = []
        for i, X in enumerate(datasets):
            check_feature_names(self, X, reset=False)
            seed = self.noise_random_state
            if seed is not None:
                seed += i
            seller = SellerRelease(
                self.model_,
                self.epsilon,
                delta=self.delta,
                relation=self.relation,
                noise_random_state=seed,
            )
            with warnings.catch_warnings():
                # The first seller has warned.
                if i > 0:
                    warnings.simplefilter("ignore", SeededNoiseWarning)
                summaries.append(seller.fit(X).summary_)
        return summaries

    def transform(self, datasets):
        """Scores of sellers from their rows, through `summarize`.

        Parameters
        ----------
        datasets : sequence of array-like
            The rows of each seller.

        Returns
        -------
        scores : ndarray of shape (n_sellers, 1)
            Scores by `metric`, with new noise in every call.

        Raises
        ------
        ValueError
            If a data set does not suit the model.
        """
        return self.score_summaries(self.summarize(datasets))

    # Summaries ------------------------------------------------------------------------

    def score_summaries(self, summaries):
        """Scores of sellers from their summaries; files are not trusted.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            Summaries, or paths to their files.

        Returns
        -------
        scores : ndarray of shape (n_sellers, 1)
            Scores by `metric`.

        Raises
        ------
        ValueError
            If a summary was made with another model, or is damaged, too long or
            invalid.
        TypeError
            If an element is neither a summary nor a path.
        """
        check_is_fitted(self, "model_")
        summaries = read_summaries(self.model_, summaries)
        scores = np.empty((len(summaries), 1))
        for places, own, estimates in self._estimates_by_radius(summaries):
            scores[places, 0] = self._buyer.score(own, estimates.mean, estimates.factor)
        return scores

    def score_errors(self, summaries):
        """Standard errors of scores, estimated from the summaries alone.

        Rows are assumed to have a Gaussian distribution with the estimated moments, of
        which releases are simulated. Without noise, the error is the standard deviation
        of their scores, by the sampling of rows. With noise, it is the root mean
        squared difference from the score of these moments: it includes the noise, and
        the bias of clipping and shrinkage. It is at least half of the difference that
        the score has with probability 0.92 from that of the seller, by the posterior on
        which shrinkage is based. No further release is needed.

        The errors of sellers like the buyer, and of those of 20 rows, are up to three
        times as large as needed.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        errors : ndarray of shape (n_sellers,)
            Standard errors.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        summaries, estimates = self._estimates(summaries)
        rng = np.random.default_rng(self._buyer.seed)
        errors = [
            score_error(
                self._buyer, mean, factor, summary, shrink=self._shrink, rng=rng
            )
            for mean, factor, summary in zip(
                estimates.mean, estimates.factor, summaries
            )
        ]
        errors = np.array(errors)
        self._warn_of_noise(summaries, errors)
        return errors

    def _warn_of_noise(self, summaries, errors):
        """Warn of private scores that are smaller than their errors."""
        scores = self.score_summaries(summaries)[:, 0]
        is_private = np.array([summary.noise is not None for summary in summaries])
        n_hidden = int((is_private & (errors > np.abs(scores))).sum())
        if n_hidden:
            warn(
                f"The scores of {n_hidden} of {len(summaries)} sellers are smaller "
                "than their errors: their rows are like the buyer's, or noise hides "
                "the difference.",
                NoiseExceedsSignalWarning,
            )

    def noise_floor(self, summaries):
        """Scores below which a seller does not differ significantly from the buyer.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        floors : ndarray of shape (n_sellers,)
            95 % quantiles of the score of a seller with the buyer's distribution.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        check_is_fitted(self, "model_")
        # A floor is simulated once for sellers of the same size and noise.
        kinds = [
            (summary.noise, summary.n_samples, summary.max_norm)
            for summary in read_summaries(self.model_, summaries)
        ]
        floors = {kind: noise_floor(self._buyer, *kind, self._shrink) for kind in kinds}
        return np.array([floors[kind] for kind in kinds])

    def pairwise_distances(self, summaries):
        """Pairwise 2-Wasserstein distances between sellers, to find near-duplicates.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        distances : ndarray of shape (n_sellers, n_sellers)
            Distances: symmetric, with zeros on the diagonal.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        _, (means, factors) = self._estimates(summaries)
        n_sellers = len(means)
        distances = np.zeros((n_sellers, n_sellers))
        for i in range(n_sellers - 1):
            distances[i, i + 1 :] = factored_wasserstein(
                means[i], factors[i], means[i + 1 :], factors[i + 1 :]
            )
        return distances + distances.T

    def pairwise_floor(self, summaries, level=0.95):
        """Quantiles of the distance of two sellers that have one distribution.

        Two sellers whose distance is below the floor do not differ significantly: they
        may have copies, or other rows of the same population. A distance below a small
        quantile, such as that of level 0.01, is one that other rows rarely have: look
        whether they are copies. Releases are simulated of independent normal rows with
        the mean moments of the two sellers, their numbers of rows and their noise.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.
        level : float or sequence of float, default=0.95
            Probabilities of the quantiles.

        Returns
        -------
        floors : ndarray of shape (n_sellers, n_sellers) or \
                (n_levels, n_sellers, n_sellers)
            Quantiles of `pairwise_distances`: symmetric, with zeros on the diagonal.

        Raises
        ------
        ValueError
            As in `score_summaries`, or if a level is not in (0, 1).
        """
        levels = np.asarray(level, dtype=np.float64)
        if not ((levels > 0) & (levels < 1)).all():
            raise ParameterError("level", f"must be in (0, 1). Got {level!r}.")
        summaries, estimates = self._estimates(summaries)
        n_sellers = len(summaries)
        floors = np.zeros((*levels.shape, n_sellers, n_sellers))
        for i in range(n_sellers):
            for j in range(i):
                pair = [i, j]
                floor = pair_floor(
                    self._buyer,
                    Estimates(estimates.mean[pair], estimates.factor[pair]),
                    [summaries[i], summaries[j]],
                    shrink=self._shrink,
                    levels=levels,
                )
                floors[..., i, j] = floor
                floors[..., j, i] = floor
        return floors

    def explain(self, summaries):
        """Squared 2-Wasserstein distance from the buyer, by principal direction.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        contributions : ndarray of shape (n_sellers, 2, n_dimensions)
            Contributions of the shift of the mean (first) and of the change of the
            covariance, along each row of `components_`. They sum to the squared
            distance of the seller.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        check_is_fitted(self, "model_")
        summaries = read_summaries(self.model_, summaries)
        d = self._buyer.n_dimensions
        contributions = np.empty((len(summaries), 2, d))
        for places, own, estimates in self._estimates_by_radius(summaries):
            contributions[places] = principal_contributions(
                own.mean,
                own.covariance,
                estimates.mean,
                estimates.covariance,
                self.components_,
            )
        return contributions

    def export(self, folder):
        """Write the model for sellers to a folder.

        It gets a JSON file and an npz file of arrays.

        THE BUYER IS NOT PROTECTED: weights, centre and norms are fitted on its rows
        without noise, and disclose information on them to anyone with the folder.

        Parameters
        ----------
        folder : str or path-like
            Folder without a model, which is created if it does not exist.

        Raises
        ------
        ValueError
            If a map cannot be exported, or the folder has a model.
        """
        check_is_fitted(self, "model_")
        self.model_.save(folder)

    def _estimates(self, summaries):
        """Checked summaries, and the moments estimated from them."""
        check_is_fitted(self, "model_")
        summaries = read_summaries(self.model_, summaries)
        d = self._buyer.n_dimensions
        means = np.empty((len(summaries), d))
        factors = np.empty((len(summaries), d, d))
        for places, _, estimates in self._estimates_by_radius(summaries):
            means[places], factors[places] = estimates
        return summaries, Estimates(means, factors)

    def _estimates_by_radius(self, summaries):
        """Yield places of summaries of one radius, the buyer's moments, and estimates.

        The buyer's moments are those for this radius.
        """
        for places, radius in by_radius(summaries):
            own = self._buyer.moments_for(radius)
            of_radius = [summaries[place] for place in places]
            estimates = estimate_summaries(self._buyer, own, of_radius, self._shrink)
            yield places, own, estimates

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.epsilon is not None
        return tags


def _fit_map(spec, names, X, random_state):
    """A fitted map, from a name or an object."""
    if isinstance(spec, str):
        fitted_map = class_named(spec, names)()
        if "random_state" in fitted_map.get_params():
            fitted_map.set_params(random_state=int(random_state.randint(2**31)))
    elif name_of(spec, names) is not None:
        fitted_map = clone(spec)
    else:
        fitted_map = FittedMap(spec)
    return fitted_map.fit(X)


def _check_mean(rows, model):
    """Refuse latent rows whose mean is not the centre of a model."""
    tolerance = 1e-4 * (np.abs(model.centre) + model.max_norm)
    if (np.abs(rows.mean(axis=0) - model.centre) > tolerance).any():
        raise ParameterError(
            "X",
            "must have the rows that the model was fitted on, whose mean is its "
            f"centre. Got {len(rows)} rows with another mean.",
        )


def _check_reach(rows):
    """Refuse centred rows whose moments would overflow or underflow."""
    reach = np.abs(rows).max()
    if reach != 0 and not MIN_REACH <= reach <= MAX_REACH:
        raise ParameterError(
            "X",
            f"must give latent rows that reach from {MIN_REACH:g} to "
            f"{MAX_REACH:g} away from their mean. Got {reach:g}: scale its columns, "
            "or pass representation=Identity(standardize=True).",
        )
