"""The buyer's side: fit the maps, ship them, and score what sellers send back.

"Private, Augmentation-Robust and Task-Agnostic Data Valuation Approach for Data Marketplace"
(PriArTa), with a release whose guarantee holds.
"""

import warnings
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import former_fit_kept
from ..._utils.sklearn import HasMethods, Interval, StrOptions, check_feature_names, fit_context
from ...exceptions import VoidGuaranteeWarning
from ...privacy import SeededNoiseWarning, clip_rows
from ..maps._modules import LATENTS, REPRESENTATIONS, as_rows, class_named, count_rows, name_of
from ..maps.linear import FittedMap
from ..maps.model import BuyerModel, map_rows
from ..seller.release import RELEASE_CONSTRAINTS, SellerRelease, check_release
from ._estimates import METRICS, Buyer
from ._scores import SummaryScores
from ._simulation import DEFAULT_WEIGHT, choose_weight

__all__ = ["PriArTaScorer"]

_AUTO_QUANTILE = 0.95  # of the buyer's norms
_NEAREST, _FARTHEST, _LARGEST = 1e-50, 1e50, 1e100  # of latent rows: what moments have room for


class PriArTaScorer(SummaryScores, BaseEstimator):
    """Scores sellers' data sets by their distance from the buyer's, from private summaries.

    The buyer fits a representation and a latent map on its own rows and ships them; each seller
    returns mean and covariance of its latent rows, with noise; the score is the distance of two
    Gaussian distributions. A large score is data unlike the buyer's: new classes, or noise, which
    no distance tells apart.

    Parameters
    ----------
    representation : str or object, default="identity"
        Map from a row to numbers: "identity", "pca", "simclr", or an object of these classes; or
        any scikit-learn transformer, torch module or function of rows, which works but cannot be
        exported. It must treat every row by itself.
    latent : str or object, default="gaussian"
        Map of representations to the rows whose moments are released: "gaussian" leaves them as
        they are, "pca" takes principal components, "vae" the means of a variational autoencoder.
    metric : {"wasserstein", "kl", "diversity", "relevance"}, default="wasserstein"
        2-Wasserstein distance; Jeffreys divergence; the two baselines of Amiri et al.
    epsilon : float or None, default=None
        Privacy loss of each seller's rows in `summarize` and `transform`; None adds no noise. What
        a seller on its own machine asks for is its own affair.
    delta : float, default=1e-5
        With `epsilon`.
    max_norm : float, "auto" or None, default="auto"
        Radius around the buyer's mean that latent rows are clipped to. "auto" takes the 95 %
        quantile of the buyer's rows; None does not clip, and then nothing can be private.
    mechanism, relation, noise, subset_size, secret_subset : object
        As in `SellerRelease`.
    mean_weight : float or "auto", default="auto"
        Weight of the mean in a noisy release, see `BuyerModel`. "auto" takes what is best for
        distances between the buyer and parts of its own rows, at this epsilon (at 1 if that is
        None): no seller's rows are used for the choice.
    shrink : bool, default=True
        Whether noisy moments are drawn toward the buyer's by what the noise is known to add: a
        Bayes estimate, to which sellers differ from the buyer as its rows differ from one another,
        by an unknown amount. It is post-processing: better by a factor of up to ten where noise is
        large, and a seller that asks for much noise hardly looks farther for it.
    random_state : int, RandomState instance or None, default=0
        Of maps that are given by name, and of simulated errors and noise floors.
    noise_random_state : int, default=None
        For tests and experiments only: noise of the sellers from this seed, which VOIDS their
        guarantees.

    Attributes
    ----------
    model_ : BuyerModel
        What `export` ships; its `mean_weight` is the weight taken.
    max_norm_ : float or None
        The radius.
    noise_floor_ : float
        Score that a seller with the buyer's own distribution and as many rows stays below with
        probability 0.95, under this setting: smaller scores mean nothing.
    components_ : ndarray of shape (n_dimensions, n_dimensions)
        Principal directions of the buyer's latent rows, one a row, which `explain` refers to.
    n_samples_ : int
        Number of the buyer's rows.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the buyer's columns, where it had any.

    See Also
    --------
    SellerRelease : A seller's side.

    References
    ----------
    The paper of PriArTa; M. Mohammadi Amiri, F. Berdoz, R. Raskar: "Fundamentals of Task-Agnostic
    Data Valuation", AAAI 2023; W. E. Strawderman: "Proper Bayes Minimax Estimators of the
    Multivariate Normal Mean", Annals of Mathematical Statistics 1971.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.priarta import PriArTaScorer
    >>> rng = np.random.default_rng(0)
    >>> X_buyer, X_near, X_far = rng.normal(size=(3, 500, 2)) + np.array([0, 0, 2])[:, None, None]
    >>> PriArTaScorer().fit(X_buyer).transform([X_near, X_far]).round(1)
    array([[0.1],
           [2.2]])
    """

    _parameter_constraints: dict = {
        "representation": [StrOptions(set(REPRESENTATIONS)), HasMethods(["transform"]), callable],
        "latent": [StrOptions(set(LATENTS)), HasMethods(["transform"]), callable],
        "metric": [StrOptions(set(METRICS))],
        **RELEASE_CONSTRAINTS,
        "max_norm": [
            Interval(Real, _NEAREST, _FARTHEST, closed="both"),
            StrOptions({"auto"}),
            None,
        ],
        "mean_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "shrink": ["boolean"],
        "random_state": ["random_state"],
        "noise_random_state": [Integral, None],
    }

    def __init__(
        self,
        representation="identity",
        *,
        latent="gaussian",
        metric="wasserstein",
        epsilon=None,
        delta=1e-5,
        max_norm="auto",
        mechanism="central",
        relation="replace",
        noise="gaussian",
        subset_size=None,
        secret_subset=True,
        mean_weight="auto",
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
        self.mechanism = mechanism
        self.relation = relation
        self.noise = noise
        self.subset_size = subset_size
        self.secret_subset = secret_subset
        self.mean_weight = mean_weight
        self.shrink = shrink
        self.random_state = random_state
        self.noise_random_state = noise_random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Fit the maps on the buyer's rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The buyer's rows, of whatever shape the representation takes. They are not protected.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If there are fewer than 2 rows, a map gives something else than finite numbers, or
            parameters contradict one another.
        ImportError
            If a map needs a package that is not installed.
        """
        n_rows = count_rows(X)
        if n_rows < 2:
            raise ValueError(f"X must have at least 2 rows. Got {n_rows}.")
        check_release(self, self.max_norm)
        with former_fit_kept(self):
            self._fit(X, n_rows)
        return self

    def _fit(self, X, n_rows):
        check_feature_names(self, X, reset=True)
        random = check_random_state(self.random_state)
        representation = _fit_map(self.representation, REPRESENTATIONS, X, random)
        rows = as_rows(representation.transform(X), n_rows, "representation")
        latent = _fit_map(self.latent, LATENTS, rows, random)
        rows = map_rows(representation, latent, X)
        _check_size(np.abs(rows).max(), 0.0, _LARGEST, f"with entries up to {_LARGEST:g}")
        centre = rows.mean(axis=0)
        self.max_norm_ = self.max_norm
        if isinstance(self.max_norm, str):
            norms = np.linalg.norm(rows - centre, axis=1)
            self.max_norm_ = float(np.quantile(norms, _AUTO_QUANTILE)) or 1.0
        self._seed = int(random.randint(2**31))
        clipped = clip_rows(rows - centre, self.max_norm_)
        reach = f"that reach from {_NEAREST:g} to {_FARTHEST:g} away from their mean"
        _check_size(np.abs(clipped).max(), _NEAREST, _FARTHEST, reach)
        self._buyer = Buyer(clipped, self.max_norm_, self.metric, self._seed)
        weight = self._weight(clipped)
        self.model_ = BuyerModel(representation, latent, centre, self.max_norm_, weight)
        self.n_samples_ = len(rows)
        self.components_ = np.linalg.eigh(self._buyer.covariance)[1].T[::-1]
        self.noise_floor_ = self._own_floor()

    def _weight(self, rows):
        if not isinstance(self.mean_weight, str):
            return self.mean_weight
        if self.max_norm_ is None or self.mechanism == "local" or self.noise == "paper":
            return DEFAULT_WEIGHT
        asked = self.epsilon or 1.0, self.delta, self.relation
        return choose_weight(self._buyer, rows, *asked, self.shrink, self._seed)

    def _own_floor(self):
        """Noise floor for as many rows as the buyer has, with the noise that they would get."""
        seller = SellerRelease(self.model_, **self._setting())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VoidGuaranteeWarning)  # fit has said so
            return self._floor(seller.plan(max(self.n_samples_, self.subset_size or 0)))

    # Sellers ----------------------------------------------------------------------------------

    def summarize(self, datasets):
        """Summaries that sellers with these rows would send.

        Parameters
        ----------
        datasets : sequence of array-like
            The rows of each seller, shaped as the buyer's.

        Returns
        -------
        summaries : list of Summary
            One a seller, with noise under `epsilon`.

        Raises
        ------
        ValueError
            If a data set does not suit the model: a frame must have the buyer's columns, in their
            order.
        """
        check_is_fitted(self, "model_")
        if isinstance(datasets, Mapping):
            raise ValueError(
                "datasets must be a sequence of data sets, one a seller. Got a mapping: pass its "
                "values()."
            )
        alone = getattr(datasets, "ndim", 3) < 3  # a table, not a sequence of them
        if alone:
            raise ValueError(
                "datasets must be a sequence of data sets, one a seller. Got a table of shape "
                f"{datasets.shape}; for one seller pass [X]."
            )
        made = []
        for place, X in enumerate(datasets):
            check_feature_names(self, X, reset=False)
            seed = self.noise_random_state
            seller = SellerRelease(
                self.model_,
                **self._setting(),
                noise_random_state=None if seed is None else seed + place,
            )
            with warnings.catch_warnings():
                if place:  # one warning is enough
                    warnings.simplefilter("ignore", SeededNoiseWarning)
                    warnings.simplefilter("ignore", VoidGuaranteeWarning)
                made.append(seller.fit(X).summary_)
        return made

    def transform(self, datasets):
        """Scores of sellers, from rows that pass through `summarize`.

        Parameters
        ----------
        datasets : sequence of array-like
            The rows of each seller.

        Returns
        -------
        scores : ndarray of shape (n_sellers, 1)
            By the metric; fresh noise in every call.

        Raises
        ------
        ValueError
            If a data set does not suit the model.
        """
        return self.score_summaries(self.summarize(datasets))

    def export(self, folder):
        """Write the folder that sellers need: a file of arrays and a JSON file, no pickle.

        Arrays are in safetensors where a map is a network, else in npz, which numpy alone reads.

        THE BUYER IS NOT PROTECTED: weights, centre and radius are fitted on its rows without any
        noise, and everybody who has the folder can learn from them.

        Parameters
        ----------
        folder : str or path-like
            Made if it is not there.

        Raises
        ------
        ValueError
            If a map cannot be exported.
        ImportError
            If a map is a network and safetensors is not installed.
        """
        check_is_fitted(self, "model_")
        self.model_.save(folder)

    # Plumbing ---------------------------------------------------------------------------------

    def _setting(self):
        return {name: getattr(self, name) for name in RELEASE_CONSTRAINTS}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.epsilon is not None
        return tags


def _check_size(size, least, most, rule):
    """Refuse latent rows whose moments overflow, or vanish; rows that are all the same may."""
    if size and not least <= size <= most:
        raise ValueError(
            f"X must give latent rows {rule}. Got {size:g}: scale its columns, or pass "
            "representation=Identity(standardize=True)."
        )


def _fit_map(given, names, X, random):
    """A fitted map, from a word or an object."""
    if isinstance(given, str):
        fitted = class_named(given, names)()
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=int(random.randint(2**31)))
    elif name_of(given, names) is not None:
        fitted = clone(given)
    else:
        fitted = FittedMap(given)
    return fitted.fit(X)
