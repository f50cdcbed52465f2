"""Rewards of the parties: draws from a posterior, as fitted estimators."""

import json

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d

from ..._utils.untrusted import (
    checked_array,
    from_base64,
    integer,
    read_record,
    refuse,
    to_base64,
)
from ..models import check_targets, model_record, stored_model

_FORMAT = "skvalue.collaborative.PosteriorDraws"
_VERSION = 1
MAX_POSTERIOR_SIZE = 100_000_000  # characters
_MAX_DRAWS = 1_000_000
_CHARACTERS = 11  # of a number as text, and more than a number's part of all else
_BLOCK_SIZE = 2_000_000  # draws times rows


def check_n_draws(n_draws, name, n_parameters=1):
    """Refuse more draws than a file of them can have."""
    largest = min(_MAX_DRAWS, MAX_POSTERIOR_SIZE // (_CHARACTERS * n_parameters))
    integer(n_draws, name, 1, largest)


def check_points(host, model, X, y, suffix=""):
    """Checked rows and targets, as arrays, for a model's `predict_logpdf`.

    Rows are mapped and clipped as those of the parties are.
    The rows may be None for a model without features. `host` is the estimator that
    errors name.
    """
    if y is None or (X is None and hasattr(model, "n_features_in_")):
        raise ValueError(
            f"X{suffix} and y{suffix} must hold points. Got {X!r} and {y!r}."
        )
    y = column_or_1d(y)
    if len(y) == 0:
        raise ValueError(f"y{suffix} must hold at least one point. Got none.")
    classes = getattr(model, "classes_", None)
    if classes is not None:
        known = np.asarray(classes).tolist()
        unseen = [label for label in dict.fromkeys(y.tolist()) if label not in known]
        if unseen:
            raise ValueError(
                f"y{suffix} must hold only labels of classes_, {known}. Got "
                f"{', '.join(map(repr, unseen[:5]))}."
            )
    y = check_targets(model, y, f"y{suffix}")
    if X is not None:
        X = _mapped_rows(host, model, X)
        if len(X) != len(y):
            raise ValueError(
                f"X{suffix} and y{suffix} must have the same length. Got {len(X)} and "
                f"{len(y)}."
            )
    return X, y


def _rows(host, model, X):
    """X as an array with as many columns as the releases have features."""
    X = check_array(X, dtype=np.float64)
    n_features = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(host).__name__} is expecting "
            f"{n_features} features as input."
        )
    return X


def _mapped_rows(host, model, X):
    """Rows by the public map of the parties' features, if the model has one."""
    X = _rows(host, model, X)
    if hasattr(model, "map_features"):
        return model.map_features(X)
    return X


class PosteriorDraws(BaseEstimator):
    """Draws from the posterior of a model.

    Parameters
    ----------
    model : model
        The model, bound to releases.
    samples : ndarray of shape (n_draws, n_parameters)
        The draws.

    Attributes
    ----------
    samples_ : ndarray of shape (n_draws, n_parameters)
        The draws.

    See Also
    --------
    PosteriorRegressor : Also predicts numbers.
    PosteriorClassifier : Also predicts classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import GaussianMean, PosteriorDraws
    >>> posterior = PosteriorDraws(GaussianMean(), np.zeros((5, 1)))
    >>> round(posterior.mnlp(None, [0.0, 1.0]), 3)
    1.169
    """

    def __init__(self, model, samples):
        self.model = model
        self.samples = samples

    @property
    def samples_(self):
        """The draws."""
        return np.asarray(self.samples)

    def fit(self, X=None, y=None):
        """Do nothing and return the object unchanged.

        Parameters
        ----------
        X, y : ignored
            Not used, present for API consistency, as in
            `sklearn.frozen.FrozenEstimator`.

        Returns
        -------
        self : object
            The object itself.
        """
        return self

    def __sklearn_is_fitted__(self):
        return True

    def to_json(self):
        """The draws and the model as text, without the releases behind them.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an object that predicts the same.

        Raises
        ------
        TypeError
            If the model is not one of skvalue's.
        ValueError
            If there are more draws than `from_json` reads: 1,000,000, or fewer of more
            than nine parameters.
        """
        samples = self.samples_
        check_n_draws(len(samples), "samples", samples.shape[1])
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "model": model_record(self.model),
            "n_draws": len(samples),
            "samples": to_base64(samples),
        }
        return json.dumps(record, allow_nan=False)

    @staticmethod
    def from_json(text):
        """Read from text, which is not trusted; no code in it is run.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        posterior : PosteriorRegressor, PosteriorClassifier or PosteriorDraws
            The draws, of the class that suits the model.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = {"model", "n_draws", "samples"}
        record = read_record(text, _FORMAT, _VERSION, names, MAX_POSTERIOR_SIZE)
        model = stored_model(record["model"])
        n_draws = integer(record["n_draws"], "n_draws", 1, _MAX_DRAWS)
        numbers = from_base64(record["samples"], "samples")
        n_parameters = model.sample_prior(1, np.random.default_rng(0)).shape[1]
        if len(numbers) != n_draws * n_parameters:
            rule = f"{n_draws} draws of {n_parameters} numbers"
            refuse("samples", rule, f"{len(numbers)} numbers")
        shape = (n_draws, n_parameters)
        samples = checked_array(numbers.reshape(shape), "samples", shape)
        return make_posterior(model, samples)

    def log_density(self, X, y):
        """Log of the predictive density of each target: the mean density over draws.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows; None for models without features.
        y : array-like of shape (n_rows,)
            Targets or labels of the rows.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            Log densities.

        Raises
        ------
        ValueError
            If `X` has another number of columns than the releases, `y` has another
            length, or labels that are not in the releases.
        """
        X, y = check_points(self, self.model, X, y)
        samples = self.samples_
        block_size = max(1, _BLOCK_SIZE // len(samples))
        log_densities = []
        for start in range(0, len(y), block_size):
            rows = slice(start, start + block_size)
            X_block = None if X is None else X[rows]
            logs = self.model.predict_logpdf(samples, X_block, y[rows])
            log_densities.append(logsumexp(logs, axis=0) - np.log(len(logs)))
        return np.concatenate(log_densities)

    def mnlp(self, X, y):
        """Mean negative log probability of test points; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows; None for models without features.
        y : array-like of shape (n_rows,)
            Targets or labels of the rows.

        Returns
        -------
        mnlp : float
            In nats per point.

        References
        ----------
        Sim et al., NeurIPS 2023, Section 6.3.
        """
        return -float(self.log_density(X, y).mean())


class PosteriorRegressor(RegressorMixin, PosteriorDraws):
    """Draws from a posterior of a regression model, as a fitted regressor.

    Parameters
    ----------
    model : model
        A model with a method `predict_mean`, bound to releases.
    samples : ndarray of shape (n_draws, n_parameters)
        The draws.

    Attributes
    ----------
    samples_ : ndarray of shape (n_draws, n_parameters)
        The draws.

    See Also
    --------
    BayesianLinear : The model.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import (
    ...     BayesianLinear, GramRelease, PosteriorRegressor
    ... )
    >>> X = np.random.default_rng(0).normal(size=(100, 1)) / 3
    >>> model = BayesianLinear().bind([GramRelease(None).fit(X, X[:, 0]).release_])
    >>> reward = PosteriorRegressor(model, np.array([[1.0, -4.0], [2.0, -4.0]]))
    >>> reward.predict([[0.5]]).round(6).tolist()
    [0.75]
    """

    def predict(self, X):
        """Mean of the target over draws.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Predictions.
        """
        X = _mapped_rows(self, self.model, X)
        # A mean over draws of a linear function: no (n_draws, n_rows) array is made.
        mean = self.samples_.mean(axis=0, keepdims=True)
        return self.model.predict_mean(mean, X)[0]


class PosteriorClassifier(ClassifierMixin, PosteriorDraws):
    """Draws from a posterior of a classification model, as a fitted classifier.

    Parameters
    ----------
    model : model
        A model with an attribute `classes_`, bound to releases.
    samples : ndarray of shape (n_draws, n_parameters)
        The draws.

    Attributes
    ----------
    samples_ : ndarray of shape (n_draws, n_parameters)
        The draws.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    See Also
    --------
    BayesianLogistic : The model.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import (
    ...     BayesianLogistic, LogisticRelease, PosteriorClassifier
    ... )
    >>> X = np.random.default_rng(0).normal(size=(100, 1)) / 3
    >>> release = LogisticRelease(None).fit(X, X[:, 0] > 0).release_
    >>> model = BayesianLogistic().bind([release])
    >>> reward = PosteriorClassifier(model, np.array([[1.0], [2.0]]))
    >>> reward.predict([[0.5], [-0.5]]).tolist()
    [1, 0]
    """

    @property
    def classes_(self):
        """The labels."""
        return self.model.classes_

    def predict_proba(self, X):
        """Mean probability of every class over draws.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            They sum to 1 in every row.
        """
        X = _rows(self, self.model, X)
        logs = [self.log_density(X, np.full(len(X), label)) for label in self.classes_]
        return np.exp(np.column_stack(logs))

    def predict(self, X):
        """The class of largest probability.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels.
        """
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def make_posterior(model, samples):
    """The draws as an object of the class that suits the model's task."""
    task = getattr(model, "task", "density")
    if task == "regression":
        return PosteriorRegressor(model, samples)
    if task == "classification":
        return PosteriorClassifier(model, samples)
    return PosteriorDraws(model, samples)
