"""What a mediator publishes, so that the releases of all parties fit together."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass

import numpy as np

from ..._utils.untrusted import choice, flag, number, read_record, refuse
from ...exceptions import ParameterError
from ..party import GramRelease, LogisticRelease
from .linear import BayesianLinear
from .logistic import BayesianLogistic

_FORMAT = "skvalue.collaborative.MediatorModel"
_VERSION = 1
MAX_MODEL_SIZE = 1_000_000  # characters
_MAX_COLUMNS = 1000
_MAX_NAME = 200  # characters
_KINDS = ("linear", "logistic")
_VALUES = ("predictive", "surprise")
_SEMIVALUES = ("shapley", "banzhaf", "leave-one-out")
SEPARATORS = (",", ";", "\t", "|")
# Public rows within the bound, after they were scaled.
_WITHIN = 0.95
_TARGETS_WITHIN = 0.99
# Prior standard deviation of the log odds by one standard deviation of a feature.
_WEIGHT_DEVIATION = 2.5


@dataclass(frozen=True)
class MediatorModel:
    """What a mediator publishes before parties release their statistics.

    It says which columns the rows have, how they are scaled and clipped, what the model
    and its prior are, and how parties will be valued. All of it is public: it must be
    chosen without a look at any party's rows. Fields are checked on construction.

    Parameters
    ----------
    kind : {"linear", "logistic"}
        Linear regression, from `GramRelease`, or logistic, from `LogisticRelease`.
    columns : sequence of str
        Names of the features, in their order.
    target : str
        Name of the target.
    centre, scale : sequence of float
        What is subtracted from each feature, and what the difference is divided by.
    target_centre, target_scale : float, default=0, 1
        The same for the target of a linear regression.
    classes : tuple of two labels, default=()
        The negative and the positive class of a logistic regression.
    x_bound, y_bound : float, default=1
        Norm to which scaled rows are clipped, and largest scaled target.
    intercept : bool, default=True
        Whether the model has a constant feature.
    mean, precision : sequence of float, default=()
        Prior mean and precision of each weight, the intercept first. Empty ones are
        those of `BayesianLinear` or `BayesianLogistic`.
    a0, b0 : float, default=1, 0.03
        Prior of the variance of a linear regression.
    value : {"predictive", "surprise"}, default="predictive"
        Whether `PredictiveValueScorer` or `BayesianSurpriseScorer` values the parties.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, default="shapley"
        The semivalue of the parties.
    separator, decimal : str, default=",", "."
        How files of rows are read.

    Attributes
    ----------
    fingerprint : str
        Hash of all fields, which a release and a reward state.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range.

    See Also
    --------
    NamedRelease : What a party sends back.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import MediatorModel
    >>> rng = np.random.default_rng(0)
    >>> X_public = rng.normal(size=(200, 2)) * [1.0, 1000.0]
    >>> y_public = np.where(X_public[:, 0] > 0, "yes", "no")
    >>> model = MediatorModel.from_points(
    ...     X_public, y_public, columns=["dose", "metres"], target="cured"
    ... )
    >>> model.kind, model.classes
    ('logistic', ('no', 'yes'))
    >>> party = model.make_party(epsilon=1.0)
    >>> party.fit(model.transform(X_public), y_public).release_.n_features
    2
    >>> MediatorModel.from_json(model.to_json()) == model
    True
    """

    kind: str
    columns: tuple
    target: str
    centre: tuple
    scale: tuple
    target_centre: float = 0.0
    target_scale: float = 1.0
    classes: tuple = ()
    x_bound: float = 1.0
    y_bound: float = 1.0
    intercept: bool = True
    mean: tuple = ()
    precision: tuple = ()
    a0: float = 1.0
    b0: float = 0.03
    value: str = "predictive"
    semivalue: str = "shapley"
    separator: str = ","
    decimal: str = "."

    def __post_init__(self):
        self._check("kind", choice, _KINDS)
        self._check("columns", _checked_names)
        n_columns = len(self.columns)
        self._check("target", _checked_name)
        if self.target in self.columns:
            refuse("target", "a column that is no feature", self.target)
        self._check("centre", _checked_numbers, n_columns, -1e50, 1e50)
        self._check("scale", _checked_numbers, n_columns, 1e-50, 1e50)
        self._check("target_centre", number, -1e50, 1e50)
        self._check("target_scale", number, 1e-50, 1e50)
        self._check("classes", _checked_classes, self.kind)
        self._check("x_bound", number, 1e-50, 1e50)
        self._check("y_bound", number, 1e-50, 1e50)
        self._check("intercept", flag)
        n_weights = n_columns + self.intercept
        if len(self._sequence("mean")):
            self._check("mean", _checked_numbers, n_weights, -1e50, 1e50)
        if len(self._sequence("precision")):
            self._check("precision", _checked_numbers, n_weights, 1e-50, 1e50)
        self._check("a0", number, 0, 1e50)
        self._check("b0", number, 0, 1e50)
        self._check("value", choice, _VALUES)
        self._check("semivalue", choice, _SEMIVALUES)
        self._check("separator", choice, SEPARATORS)
        self._check("decimal", choice, (".", ","))
        if self.decimal == self.separator:
            refuse("decimal", "another character than the separator", self.decimal)

    def _check(self, name, check, *arguments):
        """Replace a field of this frozen class by its checked value."""
        value = check(getattr(self, name), name, *arguments)
        object.__setattr__(self, name, value)

    def _sequence(self, name):
        """A field as a tuple, which may be empty."""
        value = getattr(self, name)
        if not isinstance(value, list | tuple | np.ndarray):
            refuse(name, "a sequence of numbers", value)
        object.__setattr__(self, name, tuple(value))
        return getattr(self, name)

    @classmethod
    def from_points(cls, X, y, *, columns, target, **fields):
        """Model for rows that are distributed as public points.

        Features are centred and scaled by the points, such that 95 % of them have a
        norm of at most 1, to which rows are clipped. Targets that are numbers are
        scaled such that 99 % of them are in [-1, 1]. Two classes have a prior at their
        frequencies: a model without features, which knows no more than these, then has
        a predictive value of 0. The weights of their features have a weak prior: a
        standard deviation of a feature changes the log odds by 2.5, one standard
        deviation of the prior. A stronger one would make a bad party look less bad, and
        errors too small.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Public rows, which are no party's.
        y : array-like of shape (n_points,)
            Their targets: numbers, or labels of two classes.
        columns : sequence of str
            Names of the features.
        target : str
            Name of the target.
        **fields
            Other fields of the model, in place of those that follow from the points.

        Returns
        -------
        model : MediatorModel
            The model.

        Raises
        ------
        ValueError
            If a column is constant or not finite, or a field is invalid.
        """
        X = np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
        if X.ndim != 2 or len(X) != len(y) or len(X) < 2:
            raise ParameterError(
                "X",
                "must hold two or more rows, and y the target of each. Got shapes "
                f"{X.shape} and {y.shape}.",
            )
        if not np.isfinite(X).all():
            raise ParameterError("X", "must hold finite numbers. Got NaN or infinity.")
        constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
        if len(constant):
            name = list(columns)[constant[0]]
            raise ParameterError(
                "X",
                f"must not have a constant column: leave it out. Got {name!r}.",
            )

        # Columns of variance 1 -> rows of norm at most 1.
        centre = X.mean(axis=0)
        deviations = X.std(axis=0)
        norms = np.linalg.norm((X - centre) / deviations, axis=1)
        radius = np.quantile(norms, _WITHIN)
        scale = deviations * radius
        labels = np.unique(y)
        kind = fields.get("kind")
        if kind is None:
            kind = "logistic" if len(labels) == 2 else "linear"
        by_points = {"kind": kind, "centre": centre, "scale": scale}
        if kind == "linear":
            by_points |= _scaling_of_targets(y)
        else:
            by_points |= _prior_of_classes(y, labels, fields, X.shape[1], radius)
        return cls(columns=columns, target=target, **{**by_points, **fields})

    def transform(self, X):
        """Scaled rows, each by itself; they are clipped by the release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of their columns.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Rows in the units of the model.
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.columns):
            raise ParameterError(
                "X",
                f"must have the {len(self.columns)} columns of the model. Got shape "
                f"{X.shape}.",
            )
        with np.errstate(all="ignore"):  # a warning can tell of a row
            return (X - np.array(self.centre)) / np.array(self.scale)

    def transform_target(self, y):
        """Scaled targets of a linear regression; labels are returned as they are.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets or labels.

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            Targets in the units of the model.
        """
        y = np.asarray(y)
        if self.kind == "logistic":
            return y
        with np.errstate(all="ignore"):
            return (y.astype(np.float64) - self.target_centre) / self.target_scale

    def make_party(self, epsilon=1.0, **parameters):
        """The estimator of a party, with the bounds and the prior of this model.

        Parameters
        ----------
        epsilon : float or None, default=1.0
            Privacy loss of the party's rows.
        **parameters
            Other parameters of `GramRelease` or `LogisticRelease`, such as `delta` and
            `ledger`.

        Returns
        -------
        party : GramRelease or LogisticRelease
            The estimator, to be fitted to scaled rows.
        """
        common = {
            "epsilon": epsilon,
            "x_bound": self.x_bound,
            "fit_intercept": self.intercept,
            "prior": self.make_model(),
        }
        if self.kind == "linear":
            return GramRelease(**common, y_bound=self.y_bound, **parameters)
        return LogisticRelease(**common, classes=self.classes, **parameters)

    def make_model(self):
        """The mediator's Bayesian model, not bound to releases.

        Returns
        -------
        model : BayesianLinear or BayesianLogistic
            The model, with the prior of this object.
        """
        parameters = {}
        if len(self.mean):
            parameters["mean"] = np.array(self.mean)
        if len(self.precision):
            parameters["precision"] = np.diag(self.precision)
        if self.kind == "linear":
            return BayesianLinear(a0=self.a0, b0=self.b0, **parameters)
        return BayesianLogistic(classes=self.classes, **parameters)

    def check_release(self, named):
        """Refuse a release that does not fit this model, by what differs.

        Parameters
        ----------
        named : NamedRelease
            What a party sent.

        Raises
        ------
        ValueError
            If the columns, the bounds, the classes, the prior or another field are not
            those of this model.
        """
        _refuse_other("columns", named.columns, (*self.columns, self.target))
        release = named.release
        bounds = (self.x_bound,)
        if self.kind == "linear":
            bounds = (self.x_bound, self.y_bound)
        _refuse_other("kind", release.kind, self.kind)
        _refuse_other("bounds", release.bounds, bounds)
        # Rows of this model are scaled before the release.
        _refuse_other("x_centre", release.x_centre, ())
        _refuse_other("x_scale", release.x_scale, ())
        _refuse_other("intercept", release.intercept, self.intercept)
        _refuse_other("classes", release.classes, self.classes)
        _refuse_other("prior", release.prior, self.make_model().prior_statement())
        self.check_fingerprint(named.model)

    def check_fingerprint(self, fingerprint):
        """Refuse what was made for another model.

        Parameters
        ----------
        fingerprint : str
            The fingerprint that a release or a reward states.

        Raises
        ------
        ValueError
            If it is not that of this model.
        """
        if fingerprint != self.fingerprint:
            raise ParameterError(
                "model",
                "must be that of the mediator, with the same public scaling and the "
                f"same other fields, {self.fingerprint[:12]}... Got "
                f"{str(fingerprint)[:12]}...",
            )

    @property
    def fingerprint(self):
        """Hash of all fields."""
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()

    def to_json(self):
        """The model as text.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an equal object.
        """
        record = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        return json.dumps(record, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """Read from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        model : MediatorModel
            The model.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        return cls(**read_record(text, _FORMAT, _VERSION, names, MAX_MODEL_SIZE))


def _scaling_of_targets(y):
    """Fields of the targets of public points."""
    try:
        y = y.astype(np.float64)
    except ValueError:
        raise ParameterError(
            "y", "must hold numbers, or labels of two classes. Got other labels."
        ) from None
    if not np.isfinite(y).all() or np.ptp(y) == 0:
        raise ParameterError("y", "must hold finite numbers that differ. Got others.")
    centre = float(y.mean())
    scale = float(np.quantile(np.abs(y - centre), _TARGETS_WITHIN))
    return {"target_centre": centre, "target_scale": scale or float(np.ptp(y))}


def _prior_of_classes(y, labels, fields, n_features, radius):
    """Classes of public points, and a prior with their frequencies.

    A column of variance 1 has been divided by the radius, so that its weight is as many
    times larger.
    """
    classes = tuple(fields.get("classes", labels.tolist()))
    by_points = {"classes": classes}
    has_intercept = fields.get("intercept", True)
    if "precision" not in fields:
        of_features = (_WEIGHT_DEVIATION * radius) ** -2 * np.ones(n_features)
        of_intercept = np.ones(int(has_intercept))
        by_points["precision"] = (*of_intercept, *of_features)
    if len(classes) != 2 or not has_intercept:
        return by_points
    # As if there were half a point more of each class.
    n_positive = np.count_nonzero(y == classes[1]) + 0.5
    n_negative = np.count_nonzero(y == classes[0]) + 0.5
    log_odds = math.log(n_positive / n_negative)
    if "mean" not in fields:
        by_points["mean"] = (log_odds, *np.zeros(n_features))
    return by_points


# Checks: of a value, by the name of its field -----------------------------------------


def _checked_name(name, field):
    """The name of a column."""
    is_name = isinstance(name, str) and 0 < len(name) <= _MAX_NAME
    if not is_name or not name.isprintable():
        refuse(field, f"a name of 1 to {_MAX_NAME} printable characters", name)
    return str(name)


def _checked_names(names, field):
    """Names of columns, each of them once, as a tuple."""
    is_sequence = isinstance(names, list | tuple | np.ndarray)
    if not is_sequence or not 1 <= len(names) <= _MAX_COLUMNS:
        refuse(field, f"a sequence of 1 to {_MAX_COLUMNS} names", type(names).__name__)
    checked = tuple(_checked_name(name, field) for name in names)
    for name in checked:
        if checked.count(name) > 1:
            refuse(field, "names that differ", name)
    return checked


def _checked_numbers(numbers, field, size, lowest, highest):
    """A sequence of this many numbers within limits, as a tuple of floats."""
    is_sequence = isinstance(numbers, list | tuple | np.ndarray)
    if not is_sequence or len(numbers) != size:
        got = len(numbers) if is_sequence else numbers
        refuse(field, f"a sequence of {size} numbers", got)
    if isinstance(numbers, np.ndarray):
        numbers = numbers.tolist()
    return tuple(number(entry, field, lowest, highest) for entry in numbers)


def _checked_classes(classes, field, kind):
    """Two labels of a logistic regression, none of a linear one, as a tuple."""
    rule = "two different texts or numbers for kind='logistic', or else none"
    if not isinstance(classes, list | tuple):
        refuse(field, rule, classes)
    for label in classes:
        is_text = isinstance(label, str) and 0 < len(label) <= _MAX_NAME
        is_number = isinstance(label, int | float) and math.isfinite(label)
        if not is_text and (isinstance(label, bool) or not is_number):
            refuse(field, rule, label)
    n_classes = 2 if kind == "logistic" else 0
    if len(classes) != n_classes or len(set(classes)) != n_classes:
        refuse(field, rule, classes)
    return tuple(classes)


def _refuse_other(name, stated, expected):
    """Refuse a stated field that is not the mediator's."""
    if stated != expected:
        refuse(f"the {name}", f"as in the mediator's model, {expected!r}", stated)
