"""What every valuer of rows keeps, whoever wrote it: checks beside scikit-learn's."""

import inspect
import pickle
from importlib.util import find_spec

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted


def check_valuer(valuer):
    """Check that a valuer keeps what all valuers of rows have in common.

    Values, pickles, clones, groups, validation points in a pipeline, data frames, fits
    that end early and documented parameters are checked, on 40 rows of two classes. Run
    :func:`sklearn.utils.estimator_checks.check_estimator` too.

    Parameters
    ----------
    valuer : BaseInSampleValuer
        The valuer, which is cloned. A quick one: it is fitted some 20 times.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.base import check_valuer
    >>> check_valuer(KNNShapleyValuer())
    """
    check_values_and_fit_transform_agree(valuer)
    check_pickle_keeps_everything(valuer)
    check_clone_and_refit(valuer)
    check_arguments_by_position_are_refused(valuer)
    check_every_parameter_is_documented_and_constrained(type(valuer))
    for error in (KeyboardInterrupt, MemoryError):
        check_a_fit_that_ends_without_values_changes_nothing(valuer, error)
    for container in ("pandas", "polars"):
        if find_spec(container) is not None:
            check_data_frames(valuer, container)
    if valuer._capabilities.points:
        for groups in (None, np.arange(10) % 5):
            check_leave_one_out_by_name(valuer, groups)
        check_validation_set_through_a_pipeline(valuer)


def _two_classes():
    """40 rows of four columns, and labels of two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, "yes", "no")
    return X, y


def check_values_and_fit_transform_agree(valuer):
    """`values_` are floats, one a row; `fit_transform` and `transform` give them."""
    X, y = _two_classes()
    valuer = clone(valuer)
    values = valuer.fit_transform(X, y)
    assert values.shape == (40, 1)
    assert valuer.values_.dtype == np.float64
    np.testing.assert_array_equal(values[:, 0], valuer.values_)
    if hasattr(valuer, "transform"):
        np.testing.assert_allclose(valuer.transform(X[::-1])[::-1], values)


def check_pickle_keeps_everything(valuer):
    """A pickled valuer has the values, and gives new rows the same ones."""
    X, y = _two_classes()
    valuer = clone(valuer).fit(X[:30], y[:30])
    copy = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(copy.values_, valuer.values_)
    if hasattr(valuer, "transform"):
        np.testing.assert_array_equal(copy.transform(X), valuer.transform(X))


def check_clone_and_refit(valuer):
    """A clone has the same values, and a second fit those of a first one."""
    X, y = _two_classes()
    fitted = clone(valuer).fit(X[:30], y[:30])
    again = clone(fitted).fit(X[:30], y[:30])
    np.testing.assert_array_equal(again.values_, fitted.values_)
    points = {"X_val": X[20:], "y_val": y[20:]} if valuer._capabilities.points else {}
    fitted.fit(X[:20], y[:20], **points)
    fresh = clone(valuer).fit(X[:20], y[:20], **points)
    np.testing.assert_array_equal(fresh.values_, fitted.values_)


def check_leave_one_out_by_name(valuer, groups):
    """The name "leave-one-out" and scikit-learn's splitter give the same values."""
    X, y = _two_classes()[0][:10], np.tile(["no", "yes"], 5)
    splitter = LeaveOneOut() if groups is None else LeaveOneGroupOut()
    by_name, by_splitter = (
        clone(valuer).set_params(cv=cv).fit(X, y, groups=groups)
        for cv in ("leave-one-out", splitter)
    )
    np.testing.assert_allclose(by_name.values_, by_splitter.values_, atol=1e-12)
    np.testing.assert_allclose(by_name.utility_, by_splitter.utility_, atol=1e-12)


def check_arguments_by_position_are_refused(valuer):
    """Only X and y are passed by position to `fit`."""
    X, y = _two_classes()
    message = _refusal(TypeError, clone(valuer).fit, X, y, X, y)
    assert f"{type(valuer).__name__}.fit() too many positional arguments" in message
    assert "*, X_val=None" in str(inspect.signature(valuer.fit))


def check_validation_set_through_a_pipeline(valuer):
    """A pipeline transforms the validation points of its last step."""
    X, y = _two_classes()
    with config_context(enable_metadata_routing=True):
        step = clone(valuer).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), step, transform_input=["X_val"])
        pipeline.fit(100 + 9 * X[:30], y[:30], X_val=100 + 9 * X[30:], y_val=y[30:])
    scaler = StandardScaler().fit(X[:30])
    direct = clone(valuer).fit(
        scaler.transform(X[:30]), y[:30], X_val=scaler.transform(X[30:]), y_val=y[30:]
    )
    np.testing.assert_allclose(pipeline[-1].values_, direct.values_, atol=1e-12)


class _EndsAtOnce:
    """A callback that raises an error before a fit has a result."""

    def __init__(self, error):
        self.error = error

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_end = setup

    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None:
            raise self.error


def check_a_fit_that_ends_without_values_changes_nothing(valuer, error):
    """A fit that fails or is interrupted leaves the former one, if there is any."""
    X, y = _two_classes()
    valuer = clone(valuer).set_callbacks(_EndsAtOnce(error))
    _refusal(error, valuer.fit, X, y)
    _refusal(NotFittedError, check_is_fitted, valuer)
    estimator_html_repr(valuer)

    valuer.set_callbacks().fit(X, y)
    before = dict(vars(valuer))
    # Of other names, in other columns.
    X, classes = X[:, :2], np.where(y == "yes", 2, 1)
    _refusal(error, valuer.set_callbacks(_EndsAtOnce(error)).fit, X, classes)
    fit = valuer.set_callbacks().fit
    message = _refusal(ValueError, fit, X, classes, groups=[0, 1])
    assert "groups must have one entry" in message
    assert vars(valuer).keys() == before.keys()
    for name in before.keys() - {"_sample_weight"}:
        assert vars(valuer)[name] is before[name], name


def check_data_frames(valuer, container):
    """Frames of pandas or polars have the values of arrays, and checked columns."""
    frames = __import__(container)
    X, y = _two_classes()
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame(dict(zip(names, X.T)))
    takes_points = valuer._capabilities.points
    fitted = clone(valuer).set_output(transform=container)
    points = {"X_val": frame[:20], "y_val": y[:20]} if takes_points else {}
    values = fitted.fit_transform(frame, frames.Series(y), **points)
    assert isinstance(values, frames.DataFrame)
    assert list(values.columns) == [f"{type(valuer).__name__.lower()}0"]
    assert list(fitted.feature_names_in_) == names

    points = {"X_val": X[:20], "y_val": y[:20]} if takes_points else {}
    of_arrays = clone(valuer).fit(X, y, **points)
    np.testing.assert_array_equal(fitted.values_, of_arrays.values_)
    other = frame[names[::-1]]
    message = _refusal(ValueError, fitted.fit, frame, y, X_val=other, y_val=y)
    assert "X_val must be like X: The feature names should match" in message


def check_every_parameter_is_documented_and_constrained(cls):
    """Each parameter of a class is in its docstring and in its constraints."""
    parameters = set(inspect.signature(cls).parameters)
    assert parameters == set(cls._parameter_constraints)
    section = cls.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    assert parameters <= {line.split(" :")[0].strip() for line in section.splitlines()}


def _refusal(error, function, *args, **kwargs):
    """Text of the error of a call; AssertionError if it raises no such error."""
    try:
        function(*args, **kwargs)
    except error as refusal:
        return str(refusal)
    raise AssertionError(f"No {error.__name__} was raised.")
