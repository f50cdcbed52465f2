"""Estimators that make a party's release: one noisy statistic of its rows.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine
Learning" (NeurIPS 2023), Section 2.
"""

import math
from numbers import Real

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from ..._utils.checks import (
    check_numbers,
    exact_integers,
    one_column,
    redact_errors,
)
from ..._utils.fits import columns_on, unfitted_copy
from ..._utils.private_entries import private_entries, private_labels
from ..._utils.sklearn import StrOptions
from ..._utils.targets import check_target, codes_or_other, refuse_other_kind
from ...privacy import clip_rows
from ._party import BOUND, SCALING, BasePartyRelease
from ._statistics import SUMS, gram_vector, logistic_vector


class GramRelease(BasePartyRelease):
    """A party's release for linear regression: the noisy Gram matrix of (x, y).

    Rows and targets are clipped to public bounds first.

    Parameters
    ----------
    epsilon : float, "auto" or None, default="auto"
        With `delta`, the differential privacy of the release; smaller is more private.
        "auto" is 1.0, unless `renyi_epsilon` is set. None adds no noise, unless
        `renyi_epsilon` is set.
    renyi_epsilon : float, default=None
        In place of `epsilon`, a bound on the Renyi divergence of order `renyi_order`;
        `privacy_` states the corresponding epsilon at `delta`.
    renyi_order : float, default=2
        Order of the Renyi divergence, above 1.
    x_bound : float or "data", default=1
        Public bound on the Euclidean norm, to which longer rows are scaled down. "data"
        takes the largest norm of the rows, which voids the guarantee.
    x_centre, x_scale : float or array-like of shape (n_features,), default=None
        Public map of the features, which comes before clipping: `x_centre` is
        subtracted, and the difference divided by `x_scale`. They must be chosen without
        looking at private rows, are the same at every party, and are stated in the
        release, so that the mediator maps its validation points alike. None are 0
        and 1.
    y_bound : float or "data", default=1
        Public bound on the targets, which are clipped to [-y_bound, y_bound]. "data" as
        in `x_bound`.
    fit_intercept : bool, default=False
        Whether a constant feature is part of the statistic.
    prior : model or str, default=None
        The prior that the parties agreed on: a model (such as `BayesianLinear`) or the
        text of its `prior_statement`. The release states it, and a scorer whose model
        has another prior raises an error.
    delta : float, default=1e-5
        Delta of `epsilon`; with `renyi_epsilon` it does not affect the release.
    ledger : Ledger, default=None
        Ledger to charge before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        Seed of the noise, for tests and experiments only: it VOIDS the guarantee.

    Attributes
    ----------
    release_ : NoisyStatistic
        The only object that may leave the party, as ``release_.to_json()``.
    privacy_ : PrivacyReport
        Guarantee of the release; None without noise.
    n_clipped_rows_, n_clipped_targets_ : int
        Numbers of rows and of targets that were clipped to the bounds, for the party
        alone: no release, message or report depends on them, and they are not pickled.
        If they are many, the release says little of what the rows say, see `x_scale`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had any.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes values of parties from their releases.
    LogisticRelease : Release for targets of two classes.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in
    Private Collaborative Machine Learning", NeurIPS 2023, Section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import GramRelease
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(100, 2))
    >>> party = GramRelease(epsilon=0.2).fit(X, X @ [0.5, -0.2])
    >>> party.release_.n_samples, len(party.release_.statistic)
    (100, 6)
    >>> party.privacy_.guarantee
    '(0.2, 1e-05)-differential privacy'
    """

    _parameter_constraints: dict = {
        **BasePartyRelease._parameter_constraints,
        "x_bound": BOUND,
        **SCALING,
        "y_bound": BOUND,
        "fit_intercept": [bool],
    }

    def __init__(
        self,
        epsilon: float | str | None = "auto",
        *,
        renyi_epsilon=None,
        renyi_order: float = 2,
        x_bound: float | str = 1.0,
        x_centre=None,
        x_scale=None,
        y_bound: float | str = 1.0,
        fit_intercept=False,
        prior=None,
        delta=1e-5,
        ledger=None,
        noise_random_state=None,
    ):
        super().__init__(
            epsilon=epsilon,
            renyi_epsilon=renyi_epsilon,
            renyi_order=renyi_order,
            prior=prior,
            delta=delta,
            ledger=ledger,
            noise_random_state=noise_random_state,
        )
        self.x_bound = x_bound
        self.x_centre = x_centre
        self.x_scale = x_scale
        self.y_bound = y_bound
        self.fit_intercept = fit_intercept

    def _summarize(self, X, y):
        columns_host = unfitted_copy(self)
        with redact_errors("X and y"):
            if self._has_noise:
                X, y, scaling = self._null_rows(columns_host, X, y)
            else:
                X, y = validate_data(
                    columns_host, X, y, dtype=np.float64, y_numeric=True
                )
                scaling = self._scaling(X.shape[1])
                X = self._scaled(X, scaling)
        y = check_target(y, "y", squares=False)

        x_bound, x_reason = self._bound("x_bound", X)
        y_bound, y_reason = self._bound("y_bound", y[:, None])
        clipped = clip_rows(X, x_bound)
        counts = {
            "n_clipped_rows_": int((clipped != X).any(axis=1).sum()),
            "n_clipped_targets_": int((np.abs(y) > y_bound).sum()),
        }
        X = clipped
        y = np.clip(y, -y_bound, y_bound)
        fields = {
            "kind": "linear",
            "n_samples": len(X),
            "statistic": tuple(gram_vector(X, y, self.fit_intercept)),
            "bounds": (x_bound, y_bound),
            "n_features": X.shape[1],
            "intercept": self.fit_intercept,
            **scaling,
        }
        void_reason = "; ".join(filter(None, [x_reason, y_reason]))
        return fields, void_reason, {**columns_on(columns_host), **counts}

    def _null_rows(self, columns_host, X, y):
        """Scaled rows and targets, zeros for those that are not finite; the scaling."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        X = validate_data(
            columns_host,
            private_entries(X),
            dtype=np.float64,
            ensure_all_finite=False,
        )
        y = private_entries(y, "y")
        y = check_numbers(y, "y", ensure_all_finite=False)
        check_consistent_length(X, y)
        scaling = self._scaling(X.shape[1])
        X = self._scaled(X, scaling)
        is_finite = np.isfinite(X).all(axis=1) & np.isfinite(y)
        X = np.where(is_finite[:, None], X, 0.0)
        return X, np.where(is_finite, y, 0.0), scaling


class LogisticRelease(BasePartyRelease):
    """A party's release for logistic regression: noisy sums of y x and of x x'.

    Rows are clipped to a public bound first. The classes are encoded as y = -1 and
    y = 1.

    Parameters
    ----------
    epsilon : float, "auto" or None, default="auto"
        With `delta`, the differential privacy of the release; smaller is more private.
        "auto" is 1.0, unless `renyi_epsilon` is set. None adds no noise, unless
        `renyi_epsilon` is set.
    renyi_epsilon : float, default=None
        In place of `epsilon`, a bound on the Renyi divergence of order `renyi_order`;
        `privacy_` states the corresponding epsilon at `delta`.
    renyi_order : float, default=2
        Order of the Renyi divergence, above 1.
    x_bound : float or "data", default=1
        Public bound on the Euclidean norm, to which longer rows are scaled down. "data"
        takes the largest norm of the rows, which voids the guarantee.
    x_centre, x_scale : float or array-like of shape (n_features,), default=None
        Public map of the features, which comes before clipping: `x_centre` is
        subtracted, and the difference divided by `x_scale`. They must be chosen without
        looking at private rows, are the same at every party, and are stated in the
        release, so that the mediator maps its validation points alike. None are 0
        and 1.
    classes : tuple of two labels, default=(0, 1)
        The negative and the positive class. They are public and the same at every
        party.
    fit_intercept : bool, default=False
        Whether a constant feature is part of the statistic. If False, features should
        be centred by public numbers.
    prior : model or str, default=None
        The prior that the parties agreed on: a model (such as `BayesianLinear`) or the
        text of its `prior_statement`. The release states it, and a scorer whose model
        has another prior raises an error.
    delta : float, default=1e-5
        Delta of `epsilon`; with `renyi_epsilon` it does not affect the release.
    ledger : Ledger, default=None
        Ledger to charge before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        Seed of the noise, for tests and experiments only: it VOIDS the guarantee.

    Attributes
    ----------
    release_ : NoisyStatistic
        The only object that may leave the party, as ``release_.to_json()``.
    privacy_ : PrivacyReport
        Guarantee of the release; None without noise.
    n_clipped_rows_ : int
        Number of rows that were clipped to the bound, for the party alone: no release,
        message or report depends on it, and it is not pickled. If it is large, the
        release says little of what the rows say, see `x_scale`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had any.

    See Also
    --------
    BayesianLogistic : The mediator's model of this release.

    References
    ----------
    J. H. Huggins, R. P. Adams, T. Broderick: "PASS-GLM: Polynomial Approximate
    Sufficient Statistics for Scalable Bayesian GLM Inference", NeurIPS 2017; Sim et
    al., NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import LogisticRelease
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) / 3
    >>> LogisticRelease(renyi_epsilon=0.2).fit(X, X[:, 0] > 0).release_.kind
    'logistic'
    """

    _parameter_constraints: dict = {
        **BasePartyRelease._parameter_constraints,
        "x_bound": BOUND,
        **SCALING,
        "classes": [tuple, list],
        "fit_intercept": [bool],
    }

    def __init__(
        self,
        epsilon: float | str | None = "auto",
        *,
        renyi_epsilon=None,
        renyi_order: float = 2,
        x_bound: float | str = 1.0,
        x_centre=None,
        x_scale=None,
        classes: object = (0, 1),
        fit_intercept=False,
        prior=None,
        delta=1e-5,
        ledger=None,
        noise_random_state=None,
    ):
        super().__init__(
            epsilon=epsilon,
            renyi_epsilon=renyi_epsilon,
            renyi_order=renyi_order,
            prior=prior,
            delta=delta,
            ledger=ledger,
            noise_random_state=noise_random_state,
        )
        self.x_bound = x_bound
        self.x_centre = x_centre
        self.x_scale = x_scale
        self.classes = classes
        self.fit_intercept = fit_intercept

    def _summarize(self, X, y):
        if len(self.classes) != 2 or self.classes[0] == self.classes[1]:
            raise ValueError(
                "classes must be two different labels, which are encoded as -1 and 1. "
                f"Got {self.classes!r}."
            )
        columns_host = unfitted_copy(self)
        with redact_errors("X"):
            if self._has_noise:
                y = private_labels(y)
            y = exact_integers(y)
            if self._has_noise:
                X = validate_data(
                    columns_host,
                    private_entries(X),
                    dtype=np.float64,
                    ensure_all_finite=False,
                )
                y = column_or_1d(y)
                check_consistent_length(X, y)
            else:
                X, y = validate_data(columns_host, X, y, dtype=np.float64)
            scaling = self._scaling(X.shape[1])
            X = self._scaled(X, scaling)
        y = one_column(y, "y")
        are_strings = [isinstance(label, str) for label in self.classes]
        if len(set(are_strings)) == 1:
            classes = np.asarray(self.classes)
            refuse_other_kind(y, classes, "y", f"classes={self.classes!r}")
        # Objects, since the classes are in no order.
        codes = codes_or_other(y, np.array(self.classes, dtype=object))
        is_positive = codes == 1
        is_usable = codes < 2
        if self._has_noise:
            # A row that cannot be used is a row of zeros of the negative class.
            is_usable &= np.isfinite(X).all(axis=1)
            X = np.where(is_usable[:, None], X, 0.0)
            is_positive &= is_usable
        elif not np.all(is_usable):
            raise ValueError(
                f"y must hold the labels of classes={self.classes!r} only."
            )

        x_bound, void_reason = self._bound("x_bound", X)
        clipped = clip_rows(X, x_bound)
        n_clipped = int((clipped != X).any(axis=1).sum())
        X = clipped
        signs = np.where(is_positive, 1.0, -1.0)
        fields = {
            "kind": "logistic",
            "n_samples": len(X),
            "statistic": tuple(logistic_vector(X, signs, self.fit_intercept)),
            "bounds": (x_bound,),
            "n_features": X.shape[1],
            "intercept": self.fit_intercept,
            "classes": tuple(_python_scalar(label) for label in self.classes),
            **scaling,
        }
        attributes = {**columns_on(columns_host), "n_clipped_rows_": n_clipped}
        return fields, void_reason, attributes


class MeanRelease(BasePartyRelease):
    """A party's release for the mean of numbers: their noisy sum.

    The numbers are clipped to a public range first. With noise, what is not finite, no
    zero or one, or no count counts as zero, or as the end of the range that is nearest
    to it; without noise it is refused.

    Parameters
    ----------
    epsilon : float, "auto" or None, default="auto"
        With `delta`, the differential privacy of the release; smaller is more private.
        "auto" is 1.0, unless `renyi_epsilon` is set. None adds no noise, unless
        `renyi_epsilon` is set.
    renyi_epsilon : float, default=None
        In place of `epsilon`, a bound on the Renyi divergence of order `renyi_order`;
        `privacy_` states the corresponding epsilon at `delta`.
    renyi_order : float, default=2
        Order of the Renyi divergence, above 1.
    family : {"gaussian", "bernoulli", "poisson"}, default="gaussian"
        Distribution of the numbers: normal, zeros and ones, or counts. The mediator's
        model is `GaussianMean`, `BetaBernoulli` or `GammaPoisson`.
    lower, upper : float, default=-1, 1
        Public range to which numbers are clipped. Zeros and ones have none, and for
        counts it is from 0 to `upper`.
    prior : model or str, default=None
        The prior that the parties agreed on: a model (such as `BayesianLinear`) or the
        text of its `prior_statement`. The release states it, and a scorer whose model
        has another prior raises an error.
    delta : float, default=1e-5
        Delta of `epsilon`; with `renyi_epsilon` it does not affect the release.
    ledger : Ledger, default=None
        Ledger to charge before noise is drawn, see `skvalue.privacy.Ledger`.
    noise_random_state : int, default=None
        Seed of the noise, for tests and experiments only: it VOIDS the guarantee.

    Attributes
    ----------
    release_ : NoisyStatistic
        The only object that may leave the party, as ``release_.to_json()``.
    privacy_ : PrivacyReport
        Guarantee of the release; None without noise.
    n_clipped_rows_ : int
        Number of numbers that were clipped to the range, for the party alone: no
        release, message or report depends on it, and it is not pickled.

    See Also
    --------
    GaussianMean : The mediator's model of the mean of normal numbers.
    BetaBernoulli : The mediator's model of the probability of ones.
    GammaPoisson : The mediator's model of the rate of counts.

    References
    ----------
    G. Bernstein, D. Sheldon: "Differentially Private Bayesian Inference for
    Exponential Families", NeurIPS 2018; Sim et al., NeurIPS 2023, Section 2.

    Examples
    --------
    >>> from skvalue.collaborative import MeanRelease
    >>> release = MeanRelease(lower=0, upper=3).fit([0.5, 1.5, 2.0]).release_
    >>> round(release.sensitivity, 9)
    3.0
    >>> MeanRelease(family="bernoulli").fit([0, 1, 1, 0, 1]).release_.bounds
    (0.0, 1.0)
    """

    _parameter_constraints: dict = {
        **BasePartyRelease._parameter_constraints,
        "family": [StrOptions(set(SUMS))],
        "lower": [Real],
        "upper": [Real],
    }
    _normal_approximation = False

    def __init__(
        self,
        epsilon: float | str | None = "auto",
        *,
        renyi_epsilon=None,
        renyi_order: float = 2,
        family="gaussian",
        lower=-1.0,
        upper=1.0,
        prior=None,
        delta=1e-5,
        ledger=None,
        noise_random_state=None,
    ):
        super().__init__(
            epsilon=epsilon,
            renyi_epsilon=renyi_epsilon,
            renyi_order=renyi_order,
            prior=prior,
            delta=delta,
            ledger=ledger,
            noise_random_state=noise_random_state,
        )
        self.family = family
        self.lower = lower
        self.upper = upper

    def _summarize(self, X, y):
        if self._has_noise:
            X = private_entries(X)
        numbers = check_numbers(X, "X", ensure_all_finite=not self._has_noise)
        lower, upper = self._range()
        is_valid = np.isfinite(numbers)
        if self.family == "bernoulli":
            is_valid &= np.isin(numbers, (0, 1))
        if self.family == "poisson":
            is_valid &= (numbers >= 0) & (np.floor(numbers) == numbers)
        if not self._has_noise and not is_valid.all():
            content = {"bernoulli": "0 and 1", "poisson": "counts"}[self.family]
            raise ValueError(f"X must hold {content} for family={self.family!r}.")

        numbers = np.where(is_valid, numbers, 0.0)
        clipped = np.clip(numbers, lower, upper)
        fields = {
            "kind": self.family,
            "n_samples": len(numbers),
            "statistic": (math.fsum(clipped),),  # rounded once
            "bounds": (lower, upper),
        }
        is_clipped = is_valid & (clipped != numbers)
        return fields, "", {"n_clipped_rows_": int(is_clipped.sum())}

    def _range(self):
        """The public range to which numbers are clipped."""
        if self.family == "bernoulli":
            return 0.0, 1.0
        if self.family == "poisson":
            if not self.upper >= 2 or not float(self.upper).is_integer():
                raise ValueError(
                    "upper must be a whole number of at least 2 for family='poisson': "
                    f"it is the largest count. Got {self.upper!r}."
                )
            return 0.0, float(self.upper)
        if not self.lower < self.upper:
            raise ValueError(
                f"upper must be above lower={self.lower:g}. Got {self.upper!r}."
            )
        return float(self.lower), float(self.upper)


def _python_scalar(label):
    """A label as JSON can hold it, also where it is a scalar of numpy."""
    return label.item() if hasattr(label, "item") else label
