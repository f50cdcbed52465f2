"""What every public estimator of rows keeps, beside scikit-learn's checks."""

import ast
import inspect
import sys
from numbers import Integral

import numpy as np
import pytest
from joblib import parallel_config
from public_estimators import (
    LONG,
    TAKE_POINTS,
    VALUERS,
    build,
    build_bare,
    build_quick,
    each_estimator,
    each_valuer,
    each_with_one_of,
    each_with_points,
    estimators,
    slow_for,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skvalue
from skvalue import (
    BetaShapleyValuer,
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
)
from skvalue.base import Interval, valuer_checks

# Sets of a few rows fail and are imprecise: tests of these warnings are with the
# valuers.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 4))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, "yes", "no")


def target_of(cls, X, labels):
    """The labels, or a column for an estimator of regressions alone."""
    if cls is skvalue.ValueFilteredRegressor:
        return X[:, 0].copy()
    return labels


def test_estimators_are_found():
    assert {KNNShapleyValuer, skvalue.TKNNShapleyValuer} <= set(VALUERS)


# Checks of valuers, which authors of valuers run too ----------------------------------


@each_valuer
def test_values_and_fit_transform_agree(cls):
    valuer_checks.check_values_and_fit_transform_agree(build_quick(cls))


@pytest.mark.parametrize(
    ("cls", "groups"), each_with_one_of(TAKE_POINTS, [None, np.arange(10) % 5])
)
def test_leave_one_out_by_name_is_that_of_scikit_learn(cls, groups):
    valuer_checks.check_leave_one_out_by_name(build(cls), groups)


@each_valuer
def test_pickle_keeps_everything(cls):
    valuer_checks.check_pickle_keeps_everything(build_quick(cls))


@each_valuer
def test_clones_and_second_fits_have_the_same_values(cls):
    valuer_checks.check_clone_and_refit(build_quick(cls))


@each_valuer
def test_arguments_by_position_are_refused(cls):
    valuer_checks.check_arguments_by_position_are_refused(build(cls))


@pytest.mark.parametrize(
    ("cls", "error"), each_with_one_of(VALUERS, [KeyboardInterrupt, MemoryError])
)
def test_a_fit_that_ends_without_values_changes_nothing(cls, error):
    valuer_checks.check_a_fit_that_ends_without_values_changes_nothing(
        build_quick(cls), error
    )


@pytest.mark.parametrize(
    ("cls", "container"), each_with_one_of(VALUERS, ["pandas", "polars"])
)
def test_data_frames_have_the_values_of_arrays(cls, container):
    pytest.importorskip(container)
    valuer_checks.check_data_frames(build_quick(cls), container)


@each_with_points
def test_a_pipeline_transforms_the_validation_points(cls):
    valuer_checks.check_validation_set_through_a_pipeline(build_quick(cls))


@each_valuer
def test_every_parameter_is_documented_and_constrained(cls):
    valuer_checks.check_every_parameter_is_documented_and_constrained(cls)


# Fits ---------------------------------------------------------------------------------


# A thousand trees, in all checks of the slow tier too.
@pytest.mark.parametrize("cls", slow_for(estimators(), [DataOOBValuer]))
def test_defaults_fit(cls, data):
    """Only required parameters, and so no seed."""
    X = data[0][:30]
    labels = data[1][:30]
    y = target_of(cls, X, labels)
    estimator = build_bare(cls)
    if cls is skvalue.ValueFilter:
        kept, _ = estimator.fit_resample(X, y)
        assert len(kept) < len(X)
    else:
        estimator.fit(X, y)


@pytest.mark.parametrize(
    ("cls", "container"), each_with_one_of(estimators(), ["pandas", "polars"])
)
def test_scikit_learn_may_be_set_to_return_frames(cls, container, data):
    pytest.importorskip(container)
    X = data[0][:30]
    labels = data[1][:30]
    y = target_of(cls, X, labels)
    with config_context(transform_output=container):
        estimator = build_quick(cls)
        if cls is skvalue.ValueFilter:
            estimator.fit_resample(X, y)
        else:
            estimator.fit(X, y)
        if "embedding" in estimator.get_params():
            estimator.set_params(embedding=StandardScaler()).fit(X, y)


WITH_JOBS = [cls for cls in VALUERS if "n_jobs" in build(cls).get_params()]


@pytest.mark.parametrize("cls", slow_for(WITH_JOBS, LONG))
def test_processes_of_joblib_give_the_same_values(cls, rng):
    X = rng.normal(size=(40, 300))
    X_val = rng.normal(size=(20, 300))
    y = np.arange(40) % 2
    y_val = np.arange(20) % 2
    valuer = build(cls)
    small = {
        "max_evaluations": 40,
        "n_estimators": 8,
        "n_permutations": 4,
        "batch": "never",
        "cv": 2,
    }
    if cls in (DataShapleyValuer, *LONG):
        small["estimator"] = GaussianNB()
    names = small.keys() & valuer.get_params().keys()
    valuer.set_params(**{name: small[name] for name in names})
    points = {"X_val": X_val, "y_val": y_val} if cls in TAKE_POINTS else {}
    expected = valuer.fit(X, y, **points).values_
    with parallel_config("multiprocessing", n_jobs=2):
        values = valuer.fit(X, y, **points).values_
    np.testing.assert_allclose(values, expected, atol=1e-15)


@each_with_points
def test_few_groups_are_left_out_one_by_one(cls, data):
    X, y = data
    groups = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    by_default = build_quick(cls).set_params(cv=5).fit(X, y, groups=groups)
    one_by_one = clone(by_default).set_params(cv=LeaveOneGroupOut())
    one_by_one.fit(X, y, groups=groups)
    np.testing.assert_array_equal(by_default.values_, one_by_one.values_)


@each_with_points
def test_more_folds_than_groups_are_refused(cls, data):
    X, y = data
    groups = np.arange(len(y)) % 3
    message = "n_splits=4 greater than the number of groups: 3"
    with pytest.raises(ValueError, match=message):
        build_quick(cls).set_params(cv=4).fit(X, y, groups=groups)


# Parameters ---------------------------------------------------------------------------


def number_of_numpy(interval):
    """A number of numpy in an interval, of low precision."""
    lowest = 1 if interval.left is None else interval.left
    if interval.type is Integral:
        return np.int32(lowest + 1)
    highest = min(interval.right or 1e9, lowest + 1)
    return np.float32((lowest + highest) / 2)


@each_estimator
def test_numbers_of_numpy_are_taken_as_parameters(cls):
    estimator = build(cls)
    for name, constraint in cls._parameter_constraints.items():
        rules = constraint if isinstance(constraint, list) else []
        for rule in rules:
            if isinstance(rule, Interval):
                estimator.set_params(**{name: number_of_numpy(rule)})
                estimator._validate_params()


def defaults_of_type(cls, kind):
    """Names and values of parameters that are of a type, when the class is built."""
    parameters = build(cls).get_params(deep=False)
    return {name: value for name, value in parameters.items() if type(value) is kind}


@each_valuer
def test_numbers_of_low_precision_are_fitted_with(cls, data):
    X = data[0][:20]
    y = np.tile(["no", "yes"], 10)
    floats = defaults_of_type(cls, float)
    single = {name: np.float32(value) for name, value in floats.items()}
    build(cls).set_params(**single).fit(X, y)


@each_valuer
def test_booleans_are_no_counts(cls, data):
    X = data[0][:20]
    y = np.tile(["no", "yes"], 10)
    for name in defaults_of_type(cls, int).keys() - {"cv", "n_jobs", "random_state"}:
        message = f"The '{name}' parameter of {cls.__name__} must be"
        with pytest.raises(ValueError, match=message):
            build(cls).set_params(**{name: True}).fit(X, y)


# Metadata -----------------------------------------------------------------------------


def with_requests(cls):
    """An estimator that asks for all metadata it takes, and their names."""
    estimator = build_quick(cls)
    names = {"X_val", "y_val", "groups", "sample_weight", "sample_weight_val"}
    names &= set(inspect.signature(cls.fit).parameters)
    if cls in VALUERS and cls not in TAKE_POINTS:
        names -= {"X_val", "y_val", "sample_weight_val"}
    requests = dict.fromkeys(names, True)
    if "valuer" in estimator.get_params():
        estimator.set_params(valuer=KNNShapleyValuer().set_fit_request(groups=True))
    if cls in (skvalue.ValueFilteredClassifier, skvalue.ValueFilteredRegressor):
        model = clone(estimator.estimator).set_fit_request(sample_weight=True)
        estimator.set_params(estimator=model)
        names.add("sample_weight")
    return estimator.set_fit_request(**requests), names


def in_pipeline(step, X, y, metadata):
    return make_pipeline(FunctionTransformer(), step).fit(X, y, **metadata)[-1]


FOLDS = {"scoring": lambda *_: 0.0, "cv": KFold(2), "error_score": "raise"}


def in_search(step, X, y, metadata):
    return GridSearchCV(step, {}, **FOLDS).fit(X, y, **metadata).best_estimator_


def in_cross_validation(step, X, y, metadata):
    results = cross_validate(
        step, X, y, params=metadata, return_estimator=True, **FOLDS
    )
    return results["estimator"][0]


@pytest.mark.parametrize(
    ("cls", "fit"),
    each_with_one_of(estimators(), [in_pipeline, in_search, in_cross_validation]),
)
def test_metadata_are_routed(cls, fit, data, rng):
    """Entries of rows go with their fold, and validation points are passed whole."""
    X, y = data
    if cls is skvalue.ValueFilteredRegressor:
        y = X[:, 1]
    n = 30
    metadata = {
        "groups": np.tile(np.arange(5), 6),
        "sample_weight": 1 + rng.random(n),
        "X_val": X[n:],
        "y_val": y[n:],
        "sample_weight_val": 1 + rng.random(10),
    }
    training_rows = slice(15, n) if fit is in_cross_validation else slice(n)
    with config_context(enable_metadata_routing=True):
        estimator, names = with_requests(cls)
        routed = {name: metadata[name] for name in names}
        fitted = fit(clone(estimator), X[:n], y[:n], routed)
        for name in names & {"groups", "sample_weight"}:
            routed[name] = routed[name][training_rows]
        direct = estimator.fit(X[:n][training_rows], y[:n][training_rows], **routed)
    np.testing.assert_allclose(fitted.values_, direct.values_, atol=1e-12)
    if cls in VALUERS:
        assert len(direct.values_) == 5  # one per group


# Numbers that are not finite ----------------------------------------------------------


def outcome(cls, X, y, points):
    """The values of a fit, or what it refuses."""
    estimator = build_quick(cls)
    try:
        return estimator.fit(X, y, **points).values_
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def assert_same_with_assume_finite(cls, X, y, **points):
    """A fit refuses what is not finite, whatever scikit-learn is told to assume.

    NaN would pass into values, silently. Trees and scores may take NaN.
    """
    expected = outcome(cls, X, y, points)
    with config_context(assume_finite=True):
        np.testing.assert_array_equal(outcome(cls, X, y, points), expected)
    assert isinstance(expected, str) or cls in (DataOOBValuer, skvalue.ScoresValuer)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@each_estimator
def test_rows_that_are_not_finite_are_refused_with_assume_finite(cls, number, data):
    X = data[0][:30].copy()
    y = data[1][:30]
    y = target_of(cls, X, y)
    X[3, 1] = number
    assert_same_with_assume_finite(cls, X, y)


WITH_POINTS = [
    cls
    for cls in estimators()
    if cls in TAKE_POINTS
    or (cls not in VALUERS and cls is not skvalue.LabelErrorDetector)
]


@pytest.mark.parametrize("cls", WITH_POINTS, ids=lambda cls: cls.__name__)
def test_points_that_are_not_finite_are_refused_with_assume_finite(cls, data):
    X = data[0].copy()
    y = target_of(cls, X, data[1])
    X[35, 1] = np.nan
    assert_same_with_assume_finite(cls, X[:30], y[:30], X_val=X[30:], y_val=y[30:])


OF_REGRESSIONS = [cls for cls in VALUERS if build(cls)._capabilities.regression]


@pytest.mark.parametrize("cls", OF_REGRESSIONS)
def test_targets_that_are_not_finite_are_refused_with_assume_finite(cls, data):
    X = data[0][:30]
    y = X[:, 0].copy()
    y[3] = np.nan
    assert_same_with_assume_finite(cls, X, y)


@pytest.mark.parametrize(
    "cls", [cls for cls in VALUERS if hasattr(cls, "score_samples")]
)
def test_new_rows_with_nan_are_refused_with_assume_finite(cls, data):
    X, y = data
    valuer = build(cls).fit(X[:30], y[:30])
    with config_context(assume_finite=True):
        for method in (valuer.transform, valuer.score_samples):
            with pytest.raises(ValueError, match="NaN"):
                method(np.full((2, 4), np.nan))


# Docstrings ---------------------------------------------------------------------------


def defined_with(docstring_of, cls):
    """The class, defined anew from its source with another docstring."""
    module = sys.modules[cls.__module__]
    tree = ast.parse(inspect.getsource(module))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            node.body[0].value.value = docstring_of(ast.get_docstring(node))
    names = {"__name__": cls.__module__, "__package__": module.__package__}
    exec(compile(tree, module.__file__, "exec"), names)
    return names[cls.__name__]


@pytest.mark.parametrize("cls", [LeaveOneOutValuer, BetaShapleyValuer])
def test_shared_text_fits_the_docstrings_of_every_python(cls):
    """Python 3.13 takes the indentation out of docstrings, and -OO takes them away."""
    lines = cls.__doc__.splitlines()
    i = lines.index("estimator : estimator, default=None")
    assert lines[i + 1].startswith("    The model")
    assert "%(" not in cls.__doc__
    assert defined_with(lambda text: text, cls).__doc__ == cls.__doc__
    assert defined_with(lambda text: None, cls).__doc__ is None
