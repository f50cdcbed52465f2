"""Every public estimator of the package: scikit-learn's checks and ours."""

import ast
import inspect
import sys
from collections import Counter
from numbers import Integral

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import skvalue
from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
)
from skvalue.base import BaseInSampleValuer, Interval, valuer_checks

# Sets of a few rows fail and are imprecise: tests of these warnings are with the
# valuers.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


class Agreement:
    """Scores of rows of any kind: 1 where labels agree, less by the place of the
    row."""

    def __call__(self, X, y, X_val, y_val):
        return (y == y_val[:, None]) - np.linspace(0, 0.5, len(y))

    def __repr__(self):
        return "Agreement()"  # the same in every worker: names of tests hold it


# Parameters to build a class with, where it cannot be built bare.
INIT_PARAMS = {
    "BetaShapleyValuer": {"max_evaluations": 200, "random_state": 0},
    "DataBanzhafValuer": {"max_evaluations": 200, "random_state": 0},
    "DataOOBValuer": {"n_estimators": 20, "random_state": 0},
    "DataShapleyValuer": {"max_evaluations": 200, "random_state": 0},
    "FederatedSemivalueValuer": {"n_rounds": 3, "n_permutations": 2, "random_state": 0},
    "GradientSemivalueValuer": {"n_permutations": 10, "random_state": 0},
    "LabelErrorDetector": {"estimator": GaussianNB(), "random_state": 0},
    "LayeredShapleyValuer": {"max_evaluations": 100, "random_state": 0},
    "ScoresValuer": {"scores": Agreement()},
    "SemivalueValuer": {"max_evaluations": 200, "random_state": 0},
    "ValueFilteredClassifier": {"estimator": GaussianNB()},
    "ValueFilteredRegressor": {"estimator": Ridge()},
}
# Rooms whose estimators value whole data sets: their checks are in tests of their own.
OF_DATA_SETS = ("skvalue.collaborative", "skvalue.priarta")


def estimators(base=BaseEstimator):
    """All public, concrete estimator classes of the package that take rows."""
    public = {
        value
        for name in skvalue.__all__
        if inspect.isclass(value := getattr(skvalue, name))
    }
    classes = {
        cls for cls in public if issubclass(cls, base) and not inspect.isabstract(cls)
    }
    classes = {cls for cls in classes if not cls.__module__.startswith(OF_DATA_SETS)}
    return sorted(classes, key=lambda cls: cls.__name__)


def build(cls):
    return cls(**INIT_PARAMS.get(cls.__name__, {}))


VALUERS = estimators(BaseInSampleValuer)
each_valuer = pytest.mark.parametrize("cls", VALUERS)
TAKE_POINTS = [cls for cls in VALUERS if build(cls)._capabilities.points]
each_with_points = pytest.mark.parametrize("cls", TAKE_POINTS)
# One of rows that are valued by the game and one of rows of fit alone, with points and
# without.
IN_PIPELINES = [KNNShapleyValuer, DataShapleyValuer, DataOOBValuer]


def test_estimators_are_found():
    assert {cls.__name__ for cls in VALUERS} >= {
        "KNNShapleyValuer",
        "TKNNShapleyValuer",
    }


NAMED = (
    BetaShapleyValuer,
    DataBanzhafValuer,
    SemivalueValuer,
)  # DataShapleyValuer, other weights
LONG = (
    *NAMED,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
)  # DataShapleyValuer fits models as they do


def build_quick(cls):
    """Few and small models a fit: scikit-learn's checks fit hundreds of times."""
    estimator = build(cls)
    quick = {"max_evaluations": 100, "n_estimators": 10, "n_permutations": 2, "cv": 2}
    if cls in NAMED:
        quick["estimator"] = GaussianNB()
    return estimator.set_params(
        **{k: quick[k] for k in quick if k in estimator.get_params()}
    )


def each_with_one_of(classes, options):
    """Each class with each option; in the default tier with one of them, which take
    turns."""
    return [
        pytest.param(
            cls,
            option,
            marks=[pytest.mark.slow] * ((place + number) % len(options) > 0),
        )
        for place, cls in enumerate(classes)
        for number, option in enumerate(options)
    ]


# Parameters without a default.
REQUIRED = {
    name: INIT_PARAMS[name]
    for name in ("ScoresValuer", "ValueFilteredClassifier", "ValueFilteredRegressor")
}


@pytest.mark.parametrize(
    ("cls", "container"), each_with_one_of(estimators(), ["pandas", "polars"])
)
def test_frames_as_outputs_of_scikit_learn(cls, container, data):
    pytest.importorskip(container)
    X, y = data[0][:30], data[1][:30]
    with config_context(transform_output=container):
        estimator = build_quick(cls)
        if cls is skvalue.ValueFilter:
            estimator.fit_resample(X, y)
        else:
            y = X[:, 0] if cls is skvalue.ValueFilteredRegressor else y
            estimator.fit(X, y)
        if "embedding" in estimator.get_params():
            estimator.set_params(embedding=StandardScaler()).fit(X, y)


@pytest.mark.parametrize(
    "cls",  # a thousand trees, in all checks of the slow tier too
    [
        pytest.param(cls, marks=[pytest.mark.slow] * (cls is DataOOBValuer))
        for cls in estimators()
    ],
)
def test_built_bare(cls, data):
    """Only required parameters, and so no seed."""
    X, y = data[0][:30], data[1][:30]
    if cls is skvalue.ValueFilteredRegressor:
        y = X[:, 0]
    if cls is skvalue.ValueFilter:
        kept, _ = cls().fit_resample(X, y)
        assert len(kept) < len(X)
        return
    cls(**REQUIRED.get(cls.__name__, {})).fit(X, y)


def in_two_tiers(estimators, slow, **options):
    """As `parametrize_with_checks`, with those checks in the slow tier for which
    ``slow`` says so.

    It gets the class, the name of the check, and its number among those of the class.
    """
    mark, numbers, cases = parametrize_with_checks(estimators, **options), Counter(), []
    for case in mark.args[1]:
        estimator, check = getattr(case, "values", case)
        cls = type(estimator[-1] if isinstance(estimator, Pipeline) else estimator)
        marks = [*getattr(case, "marks", ())]
        if slow(cls, check.func.__name__, numbers[cls]):
            marks.append(pytest.mark.slow)
        numbers[cls] += 1
        cases.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(mark.args[0], cases, **mark.kwargs)


def is_repeated(cls, name, number):
    """Sparse matrices after sparse arrays; valuers, which have one `fit` in common,
    take turns."""
    if "sparse_matrix" in name or cls not in VALUERS or cls is KNNShapleyValuer:
        return "sparse_matrix" in name
    if "sparse" in name and cls in (DataOOBValuer, DataShapleyValuer, *LONG):
        return cls is not DataOOBValuer
    turns = 3 if cls in NAMED else 2  # those of NAMED differ in their weights alone
    return (VALUERS.index(cls) + number) % turns > 0


@in_two_tiers([build_quick(cls) for cls in estimators()], is_repeated)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [cls(**REQUIRED.get(cls.__name__, {})) for cls in estimators()]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_built_bare(estimator, check):
    """Only required parameters, and so no seed and the budgets of users."""
    check(estimator)


# Pipeline rewrites its own `steps`: scikit-learn expects these two of any Pipeline to
# fail.
PIPELINE = dict.fromkeys(
    ["check_dont_overwrite_parameters", "check_estimators_overwrite_params"],
    "Pipeline changes the `steps` parameter",
)


def expected_of_a_pipeline(pipeline):
    """A Pipeline lacks the tag `allow_nan` even if all its steps have it."""
    nan = {"check_estimators_nan_inf": "Pipeline has no tag allow_nan"}
    return PIPELINE | (nan if get_tags(pipeline[-1]).input_tags.allow_nan else {})


@in_two_tiers(
    [make_pipeline(StandardScaler(), build_quick(cls)) for cls in IN_PIPELINES],
    slow=lambda cls, _, number: cls is not KNNShapleyValuer and number % 4 > 0,
    expected_failed_checks=expected_of_a_pipeline,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_in_a_pipeline(estimator, check):
    check(estimator)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 4))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, "yes", "no")


@each_valuer
def test_values_and_fit_transform_agree(cls):
    valuer_checks.check_values_and_fit_transform_agree(build_quick(cls))


@pytest.mark.parametrize(
    ("cls", "groups"), each_with_one_of(TAKE_POINTS, [None, np.arange(10) % 5])
)
def test_leave_one_out_by_name(cls, groups):
    valuer_checks.check_leave_one_out_by_name(build(cls), groups)


@each_valuer
def test_pickle_keeps_everything(cls):
    valuer_checks.check_pickle_keeps_everything(build_quick(cls))


@each_valuer
def test_clone_and_refit(cls):
    valuer_checks.check_clone_and_refit(build_quick(cls))


@each_valuer
def test_arguments_by_position_are_refused(cls):
    valuer_checks.check_arguments_by_position_are_refused(build(cls))


@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_numbers_of_numpy_are_parameters(cls):
    numbers = {float: np.float32, int: np.int32}
    given = build(cls)
    for name, constraint in cls._parameter_constraints.items():
        for rule in constraint if isinstance(constraint, list) else ():
            if isinstance(rule, Interval):
                low = 1 if rule.left is None else rule.left
                value = (low + min(rule.right or 1e9, low + 1)) / 2
                kind = int if rule.type is Integral else float
                value = numbers[kind](low + 1 if kind is int else value)
                given.set_params(**{name: value})._validate_params()


@each_with_points
def test_few_groups_are_left_out_one_by_one(cls, data):
    X, y = data
    names = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    valuer = build_quick(cls).set_params(cv=5).fit(X, y, groups=names)
    one_by_one = clone(valuer).set_params(cv=LeaveOneGroupOut()).fit(X, y, groups=names)
    np.testing.assert_array_equal(valuer.values_, one_by_one.values_)
    with pytest.raises(
        ValueError, match="n_splits=4 greater than the number of groups: 3"
    ):
        valuer.set_params(cv=4).fit(X, y, groups=names)


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, marks=[pytest.mark.slow] * (cls in LONG))
        for cls in VALUERS
        if "n_jobs" in build(cls).get_params()
    ],
)
def test_processes_of_joblib_give_the_same_values(cls, rng):
    X, X_val = rng.normal(size=(40, 300)), rng.normal(size=(20, 300))
    y, y_val = np.arange(40) % 2, np.arange(20) % 2
    few = {
        "max_evaluations": 40, "n_estimators": 8, "n_permutations": 4, "batch": "never", "cv": 2,
    }  # fmt: skip
    if cls in (DataShapleyValuer, *LONG):
        few["estimator"] = GaussianNB()
    names = build(cls).get_params()
    valuer = build(cls).set_params(**{k: v for k, v in few.items() if k in names})
    given = {"X_val": X_val, "y_val": y_val} if valuer._capabilities.points else {}
    plain = valuer.fit(X, y, **given).values_
    with parallel_config("multiprocessing", n_jobs=2):
        np.testing.assert_allclose(valuer.fit(X, y, **given).values_, plain, atol=1e-15)


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
def test_data_frames(cls, container):
    pytest.importorskip(container)
    valuer_checks.check_data_frames(build_quick(cls), container)


@each_with_points
def test_validation_set_through_a_pipeline(cls):
    valuer_checks.check_validation_set_through_a_pipeline(build_quick(cls))


def with_requests(cls):
    """An estimator that asks for all metadata it takes, and their names."""
    estimator, names = build_quick(cls), set(inspect.signature(cls.fit).parameters)
    names &= {"X_val", "y_val", "groups", "sample_weight", "sample_weight_val"}
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


def in_pipeline(step, X, y, given):
    return make_pipeline(FunctionTransformer(), step).fit(X, y, **given)[-1]


FOLDS = {"scoring": lambda *_: 0.0, "cv": KFold(2), "error_score": "raise"}


def in_search(step, X, y, given):
    return GridSearchCV(step, {}, **FOLDS).fit(X, y, **given).best_estimator_


def in_cross_validation(step, X, y, given):
    return cross_validate(step, X, y, params=given, return_estimator=True, **FOLDS)[
        "estimator"
    ][0]


@pytest.mark.parametrize(
    ("cls", "fit"),
    each_with_one_of(estimators(), [in_pipeline, in_search, in_cross_validation]),
)
def test_metadata_are_routed(cls, fit, data, rng):
    """Entries of rows go with the rows of a fold, validation points are passed
    whole."""
    X, y = data[0], data[0][:, 1] if cls is skvalue.ValueFilteredRegressor else data[1]
    n, points = 30, slice(30, 40)
    metadata = {
        "groups": np.tile(np.arange(5), 6), "sample_weight": 1 + rng.random(n),
        "X_val": X[points], "y_val": y[points], "sample_weight_val": 1 + rng.random(10),
    }  # fmt: skip
    with config_context(enable_metadata_routing=True):
        estimator, names = with_requests(cls)
        given = {name: metadata[name] for name in names}
        fitted = fit(clone(estimator), X[:n], y[:n], given)
        rows = (
            slice(15, n) if fit is in_cross_validation else slice(n)
        )  # the first training rows
        for name in names & {"groups", "sample_weight"}:
            given[name] = given[name][rows]
        direct = estimator.fit(X[:n][rows], y[:n][rows], **given)
    np.testing.assert_allclose(fitted.values_, direct.values_, atol=1e-12)
    assert len(direct.values_) == 5 or cls not in VALUERS  # one per group


def outcome(cls, X, y, points):
    """The values of a fit, or what it refuses."""
    estimator = build_quick(cls)
    try:
        return estimator.fit(X, y, **points).values_
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("where", ["X", "infinite X", "X_val", "y"])
@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_nan_is_refused_with_assume_finite(cls, where, data):
    """As without it: NaN would pass into values, silently."""
    X, y = data[0].copy(), data[1]
    if where == "y":
        if not (cls in VALUERS and build(cls)._capabilities.regression):
            return
        y = X[:, 0].copy()
        y[3] = np.nan
    elif cls is skvalue.ValueFilteredRegressor:
        y = X[:, 0].copy()
    points = {}
    if where == "X_val":
        if (
            cls in VALUERS and cls not in TAKE_POINTS
        ) or cls is skvalue.LabelErrorDetector:
            return
        points = {"X_val": X[30:], "y_val": y[30:]}
    if where != "y":
        X[35 if points else 3, 1] = np.inf if where == "infinite X" else np.nan
    found = outcome(cls, X[:30], y[:30], points)
    with config_context(assume_finite=True):
        np.testing.assert_array_equal(outcome(cls, X[:30], y[:30], points), found)
    takes = (DataOOBValuer, skvalue.ScoresValuer)  # whose trees, or scores, take NaN
    assert isinstance(found, str) or cls in takes


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


@each_valuer
def test_every_parameter_is_documented_and_constrained(cls):
    valuer_checks.check_every_parameter_is_documented_and_constrained(cls)


@each_valuer
def test_numbers_of_any_precision_are_taken_and_booleans_are_not(cls, data):
    X, y = data[0][:20], np.tile(["no", "yes"], 10)
    valuer = build(cls)
    counts = [
        name
        for name, value in valuer.get_params(deep=False).items()
        if type(value) is int
    ]
    numbers = valuer.get_params(deep=False).items()
    numbers = {
        name: np.float32(value) for name, value in numbers if type(value) is float
    }
    valuer.set_params(**numbers).fit(X, y)
    for name in set(counts) - {"cv", "n_jobs", "random_state"}:
        with pytest.raises(
            ValueError, match=f"The '{name}' parameter of {cls.__name__} must be"
        ):
            build(cls).set_params(**{name: True}).fit(X, y)


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
    assert lines[lines.index("estimator : estimator, default=None") + 1].startswith(
        "    The model"
    )
    assert "%(" not in cls.__doc__
    assert defined_with(lambda text: text, cls).__doc__ == cls.__doc__
    assert defined_with(lambda text: None, cls).__doc__ is None
